//go:build linux && !portable

package probe

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/rtsched"
	"prony.example/internal/observe/host"
)

// TestSamplesGoFirst checks that samples have accurate times even on cores with a load, because
// their thread has priority while it samples.
func TestSamplesGoFirst(t *testing.T) {
	may := make(chan bool)
	go func() {
		runtime.LockOSThread()
		back, ok := rtsched.Ahead(rtsched.Load)
		if ok {
			back()
		}
		may <- ok
	}()
	if !<-may {
		t.Skip("this user may not put threads first (CAP_SYS_NICE)")
	}
	before := func() (n int) {
		err := host.EachThread("self", func(tid int) error {
			a, err := unix.SchedGetAttr(tid, 0)
			if err == nil && a.Policy == unix.SCHED_FIFO && a.Priority > rtsched.Load {
				n++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s, err := Start(Config{}, Subject{})
	if err != nil {
		t.Fatal(err)
	}
	if n := before(); n != 1 {
		t.Errorf("%d threads go before a load's, want the sampler's alone", n)
	}
	s.Stop()
	if n := before(); n != 0 {
		t.Errorf("%d threads still do", n)
	}
	// A thread that outlives its sampler must not keep the priority.
	if s, err = open(Config{}, Subject{}); err != nil {
		t.Fatal(err)
	}
	ready, policy := make(chan error), make(chan uint32)
	go func() {
		s.run(nil, ready)
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
		}
		policy <- a.Policy
	}()
	<-ready
	s.Stop()
	if <-policy != unix.SCHED_NORMAL {
		t.Error("its thread is still ahead")
	}
}
