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
	return t, <-ready
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
	woke := int64(0) // how often it was woken since the last reading of waits
	w.since(0)
	t.started <- struct{}{}
	for {
		due += t.period
		until := unix.NsecToTimespec(due + t.offset)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) ==
			unix.EINTR {
		}
		now := clock.Mono()
		woke++
		delay, parked := int64(0), false
		if !t.realTime || now-due > slack {
			delay, parked = w.since(woke)
			woke = 0
		}
		if t.realTime {
			delay = 0
		}
		woken := max(now-delay, due)
		t.add(tick{ns: woken, gap: parked && now-due > slack})
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

// since returns how long the thread was ready and others ran, since the last call, and whether it
// has slept more often than it was woken: Go's scheduler had nothing to run it with then, and what
// its clock showed after the first sleep says nothing of the core.
func (w *waits) since(woken int64) (delayNs int64, parked bool) {
	n, _ := unix.Pread(w.schedstat, w.text[:], 0) // without it, the delay is 0
	if fields := strings.Fields(string(w.text[:max(n, 0)])); len(fields) > 1 {
		sum, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel wrote it
		delayNs, w.delayNs = sum-w.delayNs, sum
	}
	if unix.Getrusage(unix.RUSAGE_THREAD, &w.usage) == nil {
		parked = w.usage.Nvcsw-w.slept > woken
		w.slept = w.usage.Nvcsw
	}
	return delayNs, parked
}

func (w *waits) close() { _ = unix.Close(w.schedstat) } // opened for reading: nothing can be lost
