//go:build linux && !portable

package stalls

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
)

// threadClock is a thread that sleeps until each point of the grid. At real-time priority, only the
// hypervisor, the kernel and processes of a higher priority delay it. At normal priority the
// service itself delays it, so the time that it was ready and others ran is subtracted, as far as
// the kernel counts it: since Linux 6.12 it does not always (EEVDF, delayed dequeue).
type threadClock struct {
	mutex  sync.Mutex // of what follows
	ticks  []tick     // at most its capacity
	full   bool
	missed int

	start, started chan struct{}
	stop, stopped  chan struct{}
	id             int
	realTime       bool
	period         int64
	offset         int64 // CLOCK_MONOTONIC minus clock.Mono
}

func openThread(core int, period int64, realTime bool, room int) (*threadClock, error) {
	offset, err := clock.Kernel()
	if err != nil {
		return nil, err
	}
	t := &threadClock{
		ticks: make([]tick, 0, room),
		start: make(chan struct{}), started: make(chan struct{}),
		stop: make(chan struct{}, 1), stopped: make(chan struct{}),
		realTime: realTime, period: period, offset: offset,
	}
	ready := make(chan error)
	go t.run(core, ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	// While a load is offered, all processors of Go's scheduler may be busy: one more for each
	// clock.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	return t, nil
}

// run is the thread's life. The thread ends with it, because it is not unlocked.
func (t *threadClock) run(core int, ready chan<- error) {
	runtime.LockOSThread()
	t.id = unix.Gettid()
	var only unix.CPUSet
	only.Set(core)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		ready <- fmt.Errorf("pin a thread: %w", err)
		return
	}
	if t.realTime {
		if _, ok := rtsched.Ahead(rtsched.Probe); !ok {
			ready <- fmt.Errorf("give a thread real-time priority: %w: run as root, or give the "+
				"program CAP_SYS_NICE", unix.EPERM)
			return
		}
	}
	w, err := newWaits()
	if err != nil {
		ready <- err
		return
	}
	defer w.close()
	close(ready)
	for range t.start {
		t.wake(w)
		t.stopped <- struct{}{}
	}
}

// wake records a tick each period until stop.
func (t *threadClock) wake(w *waits) {
	due := clock.Mono()
	w.switches()
	w.delay()
	t.started <- struct{}{}
	for {
		due += t.period
		until := unix.NsecToTimespec(due + t.offset)
		parked := w.switches() > 0
		sleeps := int64(1)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) ==
			unix.EINTR {
			sleeps++
		}
		now := clock.Mono()
		parked = w.switches() > sleeps || parked
		woken := now
		if !t.realTime {
			woken = max(now-w.delay(), due)
		}
		t.add(tick{ns: woken, gap: parked && woken-due > slack})
		for due+t.period <= now { // as a timer of the kernel does, it leaves out what is over
			due += t.period
			if due > woken { // the core ran then, though not this thread
				t.add(tick{ns: due + slack/2}) // as late as usual
			}
		}
		select {
		case <-t.stop:
			return
		default:
		}
	}
}

func (t *threadClock) add(now tick) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.ticks) == cap(t.ticks) {
		t.missed++
		t.full = true
		return
	}
	now.gap = now.gap || t.full
	t.full = false
	t.ticks = append(t.ticks, now)
}

func (t *threadClock) begin() error {
	t.start <- struct{}{}
	<-t.started
	return nil
}

func (t *threadClock) end() error {
	t.stop <- struct{}{}
	<-t.stopped
	return nil
}

func (t *threadClock) drain(add func(tick)) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, now := range t.ticks {
		add(now)
	}
	t.ticks = t.ticks[:0]
}

func (t *threadClock) lost() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.missed
}

func (t *threadClock) close() error {
	close(t.start)
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0)-1, 1))
	return nil
}

// waits reads why the calling thread did not run.
type waits struct {
	schedstat int
	delayNs   int64
	slept     int64
	usage     unix.Rusage
	text      [128]byte
}

func newWaits() (*waits, error) {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read how long a thread waited: %w", err)
	}
	return &waits{schedstat: fd}, nil
}

// delay returns how long the thread was ready and others ran, since the last call.
func (w *waits) delay() int64 {
	n, _ := unix.Pread(w.schedstat, w.text[:], 0) // without it, the delay is 0
	fields := strings.Fields(string(w.text[:max(n, 0)]))
	if len(fields) < 2 {
		return 0
	}
	sum, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel wrote it
	ns := sum - w.delayNs
	w.delayNs = sum
	return ns
}

// switches returns how often the thread has left its core by itself, since the last call. Where
// that is not for its sleep, Go's scheduler had nothing to run it with, and what its clock shows
// afterwards says nothing of the core.
func (w *waits) switches() int64 {
	if unix.Getrusage(unix.RUSAGE_THREAD, &w.usage) != nil {
		return 0
	}
	count := w.usage.Nvcsw - w.slept
	w.slept = w.usage.Nvcsw
	return count
}

func (w *waits) close() { _ = unix.Close(w.schedstat) } // opened for reading: nothing can be lost
