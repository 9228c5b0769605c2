//go:build linux && !portable

package rtsched

import (
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/host"
)

// alone calls a function on a thread that ends afterwards.
func alone(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		do()
	}()
	<-done
}

func policy(t *testing.T) uint32 {
	t.Helper()
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a.Policy
}

// permitted skips a test if this user may not set real-time priority.
func permitted(t *testing.T) {
	t.Helper()
	ok := false
	alone(func() { _, ok = Ahead(Load) })
	if !ok {
		t.Skip("this user may not put threads first (CAP_SYS_NICE)")
	}
}

func TestAhead(t *testing.T) {
	permitted(t)
	alone(func() {
		back, _ := Ahead(Load)
		if got := policy(t); got != unix.SCHED_FIFO {
			t.Errorf("a thread that goes first has policy %d", got)
		}
		if back(); policy(t) != unix.SCHED_NORMAL {
			t.Errorf("it came back to policy %d", policy(t))
		}
		Locked(Probe, func() {
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil || a.Policy != unix.SCHED_FIFO || a.Priority <= Load {
				t.Errorf("what reads counters has %+v (%v), and the load %d", a, err, Load)
			}
		})
		if policy(t) != unix.SCHED_NORMAL {
			t.Errorf("after it the thread has policy %d", policy(t))
		}
	})
}

// TestPromote checks that all threads of another process get the priority.
func TestPromote(t *testing.T) {
	permitted(t)
	other := exec.CommandContext(t.Context(), "sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()         //nolint:errcheck // it was killed
	defer other.Process.Kill() //nolint:errcheck // it may have ended
	pid := other.Process.Pid
	check := func(want uint32) {
		t.Helper()
		if a, err := unix.SchedGetAttr(pid, 0); err != nil || a.Policy != want {
			t.Errorf("its policy is %+v, %v; want %d", a, err, want)
		}
	}
	check(unix.SCHED_NORMAL)
	// The kernel's call returns 20 minus the value (getpriority(2)).
	const lowest = 20 - Lowest
	if !Nice(pid, Lowest) {
		t.Error("another nice value is refused")
	}
	if got, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || got != lowest {
		t.Errorf("getpriority returns %d, %v; want %d", got, err, lowest)
	}
	if !Promote(pid, Load) {
		t.Error("it is refused")
	}
	check(unix.SCHED_FIFO)
	if Promote(1<<30, Load) {
		t.Error("a process that does not exist is put first")
	}
	alone(func() {
		if IsAhead() {
			t.Error("an ordinary thread is first")
		}
		Ahead(Load)
		if !IsAhead() {
			t.Error("a thread that goes first is ordinary")
		}
	})
}

// TestBreath checks that a busy real-time thread yields its core every few milliseconds; otherwise
// the kernel would intervene only after most of a second (sched(7)).
func TestBreath(t *testing.T) {
	permitted(t)
	testsets.Measured(t)
	cores, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	var one unix.CPUSet
	one.Set(cores[0])
	var turns atomic.Int64
	var over atomic.Bool
	begun := make(chan struct{})
	go alone(func() {
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Errorf("pin: %v", err)
		}
		close(begun)
		for last := clock.Mono(); !over.Load(); {
			now := clock.Mono()
			if now-last > breathEveryNs/2 { // another thread ran on the core
				turns.Add(1)
			}
			last = now
		}
	})
	<-begun
	var breath Breath
	const busy = 300 * time.Millisecond
	alone(func() {
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Errorf("pin: %v", err)
		}
		Ahead(Load)
		for until := clock.Mono() + int64(busy); clock.Mono() < until; {
			breath.Take(clock.Mono())
		}
	})
	over.Store(true)
	if got := turns.Load(); got < 3 {
		t.Errorf("beside a busy thread there were %d turns in %v", got, busy)
	}
	now := clock.Mono()
	if n := testing.AllocsPerRun(100, func() { breath.Take(now); now += breathEveryNs }); n != 0 {
		t.Errorf("a breath allocates %v times", n)
	}
}
