package cgroup

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFavour checks that a thread with the name of a HotSpot compiler thread gets precedence, that
// no other does, and that taking it back leaves none.
func TestFavour(t *testing.T) {
	tids, end := make(chan int), make(chan bool)
	born := func(name string) int {
		go func() {
			runtime.LockOSThread() // ends with its goroutine
			if err := os.WriteFile("/proc/thread-self/comm", []byte(name), 0); err != nil {
				t.Error(err)
			}
			tids <- unix.Gettid()
			<-end
		}()
		return <-tids
	}
	defer close(end)
	compiler, collector, pids := born("C2 CompilerThre"), born("GC Thread#0"), []int{os.Getpid()}
	check := func(what string, threads int, err error, compilers, collectors int) {
		t.Helper()
		if a, b := priority(compiler), priority(collector); threads != 1 || err != nil ||
			a != compilers || b != collectors {
			t.Errorf("%s: %d threads at %d, others at %d; %v", what, threads, a, b, err)
		}
	}
	threads, err := Favour(pids, true)
	if threads == 0 && err == nil && os.Getuid() != 0 {
		t.Skip("only root may favour threads")
	}
	usual := priority(collector)
	check("first", threads, err, usual-favour, usual)
	threads, err = Favour(pids, true)
	check("again", threads, err, usual-favour, usual)
	threads, err = Favour(pids, false)
	check("equal", threads, err, usual, usual)
	if threads, err = Favour(append(pids, 1<<30), false); threads != 0 || err != nil {
		t.Errorf("of nobody: %d threads, %v", threads, err)
	}
}
