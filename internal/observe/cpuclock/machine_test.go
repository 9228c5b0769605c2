package cpuclock

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
)

// statText has ticks of 10 ms. Busy is user, nice, system, irq and softirq: of cpu0 1+2+3+6+7 = 19,
// of cpu1 10+20+30+60+70 = 190, of cpu12 5. Steal is the eighth number of the first line, 88.
const statText = `cpu  11 22 33 44 55 66 77 88 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu1 10 20 30 40 50 60 70 80 0 0
cpu12 1 1 1 900 900 1 1 0 0 0
intr 55 1 2 3
ctxt 7
`

// schedstatText has a core's run time in ns as its seventh number.
const schedstatText = `version 17
timestamp 4294
cpu0 0 0 0 0 0 0 1111 5 6
domain0 MC 3 1 2 3 4 5 6 7 8 9
cpu1 0 0 0 0 0 0 2222 5 6
cpu12 0 0 0 0 0 0 4444 5 6
`

const percpuText = "1000 2000 4000 \n"

func TestMachineText(t *testing.T) {
	const tick = int64(10 * time.Millisecond)
	check := func(name, source string, files map[string]string, cores []int, want Reading) {
		t.Helper()
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := openMachine(dir, filepath.Join(dir, "usage"), cores)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := m.Read(); got != want || m.source != source {
			t.Errorf("%s, cores %v: %+v from %s, want %+v from %s", name, cores, got, m.source,
				want, source)
		}
	}
	stat := map[string]string{"stat": statText}
	check("stat", BusyStat, stat, nil, Reading{88 * tick, 214 * tick})
	check("stat", BusyStat, stat, []int{1}, Reading{88 * tick, 190 * tick})
	check("stat", BusyStat, stat, []int{12, 0}, Reading{88 * tick, 24 * tick})
	check("stat", BusyStat, stat, []int{2}, Reading{88 * tick, unknown})
	sched := map[string]string{"stat": statText, "schedstat": schedstatText}
	check("schedstat", BusySchedstat, sched, nil, Reading{88 * tick, 7777})
	check("schedstat", BusySchedstat, sched, []int{12}, Reading{88 * tick, 4444})
	percpu := map[string]string{"stat": statText, "schedstat": schedstatText, "usage": percpuText}
	check("cpuacct", BusyCpuacct, percpu, nil, Reading{88 * tick, 7000})
	check("cpuacct", BusyCpuacct, percpu, []int{0, 2}, Reading{88 * tick, 5000})
	check("cpuacct", BusyCpuacct, percpu, []int{3}, Reading{88 * tick, unknown})
	check("empty", BusyStat, map[string]string{"stat": ""}, nil, Reading{unknown, unknown})
	check("cut", BusyStat, map[string]string{"stat": "cpu  1 2"}, nil, Reading{unknown, unknown})
	if _, err := openMachine(t.TempDir(), "", nil); err == nil {
		t.Error("a machine without /proc/stat was opened")
	}
	if _, err := OpenMachine([]int{-1}); err == nil {
		t.Error("core -1 was accepted")
	}
}

// TestMachineCountsWork checks that each source counts 20 ms of work.
func TestMachineCountsWork(t *testing.T) {
	testsets.Live(t)
	check := func(cpuacct string) {
		t.Helper()
		m, err := openMachine("/proc", cpuacct, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		before := m.Read()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for end := rusage(unix.RUSAGE_SELF) + int64(5*burnt); rusage(unix.RUSAGE_SELF) < end; {
		}
		time.Sleep(20 * time.Millisecond) // until the last tick is counted
		after := m.Read()
		// /proc/stat samples whole ticks, of which one at each end may be missing.
		const least = int64(5*burnt) - int64(3*10*time.Millisecond)
		if before.BusyNs < 0 || after.BusyNs-before.BusyNs < least ||
			after.StealNs < before.StealNs {
			t.Errorf("%s: from %+v to %+v while 100 ms were used", m.source, before, after)
		}
	}
	check("")
	check(cpuacctRoot())
}
