// Package cpuclock reads processor time of a target (Clock) and of the machine (Machine) within
// microseconds. It is for the moments in which load moves from one target to another. Readings
// neither allocate, lock nor wait, so a load thread can take them.
//
// The kernel adds to a thread's time when the thread leaves its core and at each scheduler tick. A
// reading therefore lacks up to one tick (1 to 10 ms) of each thread that runs at that moment, and
// nothing of threads that wait or are stopped. If a target is read twice in the same state, such as
// under load, the two gaps have the same mean: differences are unbiased, and scatter by at most a
// tick for each core. Readings of a stopped target are exact. Only the process itself could read
// its running threads exactly (clock_gettime(2) of a thread, getrusage(2)).
//
// Non-goals: it does not sample by itself (package probe does), and judges nothing.
package cpuclock

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unknown stands for a value that the kernel does not provide.
const unknown = -1

// Clock sums the processor time of a target's processes by their clocks (clock_getcpuclockid(3)),
// which need no permission. It is not safe for concurrent use.
//
// A process counts from its own start, even if Refresh found it later. An ended process counts with
// its last reading, so the sum lacks the time that it used after the last Read. A process that
// starts and ends between two calls of Refresh is missing.
type Clock struct {
	pids func() []int
	rows []row
	sum  int64 // of ended processes
	time unix.Timespec
}

// row is a process.
type row struct {
	pid   int
	last  int64
	ended bool // it has ended
}

// New returns the clock of the processes that pids lists, after a first Refresh.
func New(pids func() []int) *Clock {
	c := &Clock{pids: pids}
	c.Refresh()
	return c
}

// Refresh lists the processes again. It may allocate and take milliseconds, so call it between
// slices.
func (c *Clock) Refresh() {
	c.read()
	pids := c.pids()
	c.rows = slices.DeleteFunc(c.rows, func(r row) bool {
		gone := r.ended || !slices.Contains(pids, r.pid)
		if gone {
			c.sum += r.last
		}
		return gone
	})
	for _, pid := range pids {
		known := slices.ContainsFunc(c.rows, func(r row) bool { return r.pid == pid })
		if known || pid <= 0 { // 0 would be this process
			continue
		}
		if ns := c.process(pid); ns >= 0 {
			c.rows = append(c.rows, row{pid: pid, last: ns})
		}
	}
}

// Read returns the processor time, in ns, that all processes found so far have used since they
// started. It returns -1 if no process was found or no clock can be read, for example on another
// machine. Measured: 0.6 µs for a process with five threads, 1.3 µs with 45, 2.7 µs with 205.
func (c *Clock) Read() int64 {
	if len(c.rows) == 0 && c.sum == 0 {
		return unknown
	}
	return c.read()
}

func (c *Clock) read() int64 {
	sum := c.sum
	for i := range c.rows {
		r := &c.rows[i]
		if !r.ended {
			// A clock that goes back belongs to a later process with the same number.
			if ns := c.process(r.pid); ns >= r.last {
				r.last = ns
			} else {
				r.ended = true
			}
		}
		sum += r.last
	}
	return sum
}

// process returns the clock of a process including its ended threads, or unknown if the process has
// ended. The call never blocks, so it bypasses the Go scheduler.
func (c *Clock) process(pid int) int64 {
	const perProcessSchedClock = 2 // CPUCLOCK_SCHED of linux/posix-timers_types.h
	id := int32(^pid<<3 | perProcessSchedClock)
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id),
		uintptr(unsafe.Pointer(&c.time)), 0)
	if errno != 0 {
		return unknown
	}
	return unix.TimespecToNsec(c.time)
}
