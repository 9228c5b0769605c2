// Package cpuclock reads processor time of a target (Clock) and of the machine (Machine) within
// microseconds. It is for the moments in which load moves from one target to another. Readings
// neither allocate, lock nor wait, so a load thread can take them.
//
// The kernel adds to a thread's time when the thread leaves its core and at each scheduler tick. A
// reading therefore lacks up to one tick (1 to 10 ms) of each thread that runs at that moment, and
// nothing of threads that wait or are stopped. If a target is read twice in the same state, such as
// under load, the two gaps have the same mean: differences are unbiased, and scatter by at most a
// tick for each core. Readings of a stopped target are exact, and those right after its threads had
// to leave their cores (stalls.Interrupter). Only the process itself could read its running threads
// exactly without that (clock_gettime(2) of a thread, getrusage(2)).
//
// Non-goals: it does not sample by itself (package probe does), and judges nothing.
package cpuclock

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unknown stands for a value that the kernel does not provide.
const unknown = -1

// Group is a control group that holds exactly the processes of a target, and counts processor time.
type Group struct {
	Dir     string
	Version int // 1 or 2
}

// Clock reads the processor time of a target: by its control group, which counts all processes that
// ever ran in it, otherwise as the sum over its processes, by their clocks
// (clock_getcpuclockid(3)), which need no permission. It is not safe for concurrent use.
//
// In the sum a process counts from its own start, even if Refresh found it later. An ended process
// counts with its last reading, so the sum lacks the time that it used after the last Read. A
// process that starts and ends between two calls of Refresh is missing: Complete reports it.
type Clock struct {
	group   int    // file of the group's counter; -1: sum over processes
	key     string // before the number in that file
	unit    int64  // of the number, in ns
	text    []byte
	pids    func() []int
	rows    []row
	began   int64 // first reading
	missing int64 // processor time of processes that were never listed
	sum     int64 // of ended processes
	time    unix.Timespec
}

// row is a process.
type row struct {
	pid      int
	last     int64
	children int64 // time of its ended children, in ns: see ended
	ended    bool  // it has ended
}

// tolerance is the share of the processor time that may be missing in a sum over processes.
const tolerance = 0.01

// New returns the clock of a target, after a first Refresh: of the first group whose counter can be
// read, otherwise of the processes that pids lists.
func New(pids func() []int, groups ...Group) *Clock {
	c := &Clock{group: -1, pids: pids, text: make([]byte, 1<<10)}
	for _, g := range groups {
		if c.open(g); c.group >= 0 {
			break
		}
	}
	c.Refresh()
	c.began, c.missing = c.Read(), 0
	return c
}

// open opens a group's counter if it can be read.
func (c *Clock) open(g Group) {
	file := filepath.Join(g.Dir, "cpuacct.usage")
	c.key, c.unit = "", 1
	if g.Version == 2 {
		file, c.key, c.unit = filepath.Join(g.Dir, "cpu.stat"), "usage_usec ", 1000
	}
	if fd, err := openFile(file); err == nil {
		if c.group = fd; c.used() < 0 {
			c.Close()
		}
	}
}

// Close closes the group's counter.
func (c *Clock) Close() {
	if c.group >= 0 {
		unix.Close(c.group)
	}
	c.group = -1
}

// Grouped reports whether the clock counts all processes of a control group.
func (c *Clock) Grouped() bool { return c.group >= 0 }

// Complete reports whether the readings until the last Refresh lack at most 1 % of the processor
// time since New. Processes that started and ended between two calls of Refresh are found by the
// time that the kernel adds to the process that waited for them.
func (c *Clock) Complete() bool {
	return float64(c.missing) <= tolerance*float64(c.Read()-c.began+c.missing)
}

// used returns the group's counter.
func (c *Clock) used() int64 {
	ns, _, ok := number(after(read(c.group, c.text), c.key))
	if !ok {
		return unknown
	}
	return ns * c.unit
}

// Refresh lists the processes again. It may allocate and take milliseconds, so call it between
// slices.
func (c *Clock) Refresh() {
	if c.group >= 0 {
		return
	}
	c.read()
	pids := c.pids()
	unlisted := int64(0)
	c.rows = slices.DeleteFunc(c.rows, func(r row) bool {
		gone := r.ended || !slices.Contains(pids, r.pid)
		if gone {
			c.sum += r.last
			unlisted -= r.last + r.children // its parent may have waited for it
		}
		return gone
	})
	for i := range c.rows {
		r := &c.rows[i]
		before := r.children
		r.children = max(before, ended(r.pid))
		unlisted += r.children - before
	}
	for _, pid := range pids {
		known := slices.ContainsFunc(c.rows, func(r row) bool { return r.pid == pid })
		if known || pid <= 0 { // 0 would be this process
			continue
		}
		if ns := c.process(pid); ns >= 0 {
			r := row{pid: pid, last: ns, children: ended(pid)}
			c.rows = append(c.rows, r)
			unlisted += r.children
		}
	}
	c.missing += max(unlisted, 0)
}

// ended returns the time of a process's children that have ended and that it has waited for, with
// theirs, in steps of 10 ms: cutime and cstime of proc_pid_stat(5).
func ended(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return endedChildren(b)
}

func endedChildren(b []byte) (ns int64) {
	const state, cutime, cstime = 3, 16, 17
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // a name may contain blanks
	for _, field := range []int{cutime, cstime} {
		if i := field - state; i < len(f) {
			ticks, _, _ := number(f[i])
			ns += ticks * statTick
		}
	}
	return ns
}

// Read returns the group's processor time, or that of all processes found so far since they
// started, in ns. It returns -1 if no process was found or no clock can be read, for example on
// another machine. Measured: 0.6 µs for a process with five threads, 1.3 µs with 45, 2.7 µs with
// 205, 1.7 µs for a group of version 1, 2.3 µs of version 2.
func (c *Clock) Read() int64 {
	if c.group >= 0 {
		return c.used()
	}
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
