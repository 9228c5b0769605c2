package probe

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestStepAllocatesNothing runs samples over simulated minutes, with listings, readings of
// /proc/stat and a halved log.
func TestStepAllocatesNothing(t *testing.T) {
	check := func(name string, proc string, pids []int, groups []Group) {
		t.Helper()
		list := func() []int { return pids }
		s := opened(t, Config{proc: proc}, Subject{PIDs: list, Load: list, Groups: groups})
		l := newLog(64)
		tNs := int64(0)
		allocs := testing.AllocsPerRun(500, func() {
			tNs += int64(100 * time.Millisecond)
			l.add(s.watch.step(tNs))
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a sample", name, allocs)
		}
		if l.every == 1 || s.watch.service.rows == nil {
			t.Errorf("%s: the samples did not do what they should", name)
		}
	}
	self := []int{os.Getpid()}
	fakes := []int{fakeParent, fakeWorker}
	check("this process", "/proc", self, nil)
	check("proc", "testdata/proc", fakes, nil)
	check("v1", "testdata/proc", fakes, v1Groups())
	check("v2", "testdata/proc", fakes, v2Group("v2"))

	s := opened(t, Config{}, Subject{})
	allocs := testing.AllocsPerRun(10, func() { s.wait(s.start + s.now() + 1000) })
	if allocs != 0 {
		t.Errorf("%v allocations a wait", allocs)
	}
}

func BenchmarkSample(b *testing.B) {
	self := func() []int { return []int{os.Getpid()} }
	run := func(name string, groups []Group) {
		b.Run(name, func(b *testing.B) {
			s := opened(b, Config{}, Subject{PIDs: self, Groups: groups})
			b.ReportAllocs()
			for b.Loop() {
				s.sample()
			}
		})
	}
	run("proc", nil)
	if _, err := os.Stat("/sys/fs/cgroup/cpuacct/cpuacct.usage"); err == nil {
		run("v1", []Group{
			{"/sys/fs/cgroup/cpuacct", "cpuacct", 1},
			{"/sys/fs/cgroup/memory", "memory", 1},
		})
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cpu.stat"); err == nil {
			run("v2", []Group{{Dir: dir, Version: 2}})
		}
	}
}

// BenchmarkMark measures the cost of a mark by the number of the service's threads, and of PSS by
// memory.
func BenchmarkMark(b *testing.B) {
	self := func() []int { return []int{os.Getpid()} }
	s := opened(b, Config{}, Subject{PIDs: self})
	run := func(name string, mark func() Mark) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var m Mark
			for b.Loop() {
				m = mark()
			}
			b.ReportMetric(float64(len(m.Threads)), "threads")
			b.ReportMetric(float64(m.RSSBytes)/(1<<20), "RSS-MiB")
		})
	}
	run("few threads", s.Mark)
	run("few threads with PSS", s.MarkPSS)

	release := make(chan struct{})
	defer close(release)
	for range 200 {
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread() // a sleeping thread
			close(locked)
			<-release
		}()
		<-locked
	}
	run("200 threads", s.Mark)
	held := make([]byte, 256<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	run("256 MiB with PSS", s.MarkPSS)
	if held[0] == 0 {
		b.Fatal("memory is gone")
	}
}
