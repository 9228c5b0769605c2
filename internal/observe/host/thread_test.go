//go:build linux && !portable

package host

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEachThread checks that each thread gets one call, also threads that start meanwhile.
func TestEachThread(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	begun := 0
	begin := func() int {
		tid := make(chan int)
		go func() {
			runtime.LockOSThread() // it ends with its goroutine
			tid <- unix.Gettid()
			<-over
		}()
		return <-tid
	}
	turns := map[int]int{}
	var late []int
	err := EachThread("self", func(tid int) error {
		turns[tid]++
		if begun++; begun <= 5 {
			late = append(late, begin())
		}
		if begun == 3 {
			return unix.ESRCH
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range late {
		if turns[tid] != 1 {
			t.Errorf("a thread that was begun meanwhile had %d turns", turns[tid])
		}
	}
	for tid, n := range turns {
		if n != 1 {
			t.Errorf("thread %d had %d turns", tid, n)
		}
	}
	if err := EachThread("self", func(int) error { return unix.EPERM }); err != unix.EPERM {
		t.Errorf("what fails is %v", err)
	}
	if err := EachThread("none", nil); err == nil {
		t.Error("there is no such process, and no error")
	}
}
