package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// tickNs is USER_HZ as time: the kernel's text files count CPU time in hundredths of a second on
// all architectures that Go knows (proc(5), sysconf(3) _SC_CLK_TCK).
const tickNs = int64(10 * time.Millisecond)

// cpuClock reads the kernel's CPU clocks. It holds what the system calls write to, since a variable
// on the stack would escape and cost an allocation a call. Not for two goroutines at a time.
type cpuClock struct {
	time  unix.Timespec
	usage unix.Rusage
}

// thread is the CPU time of the calling OS thread, in ns.
func (c *cpuClock) thread() int64 { return c.get(unix.CLOCK_THREAD_CPUTIME_ID) }

// self is the CPU time of this process, ended threads included, in ns.
func (c *cpuClock) self() int64 { return c.get(unix.CLOCK_PROCESS_CPUTIME_ID) }

// process is the CPU time of another process, its ended threads included, in ns; unknown when it is
// gone. This is clock_getcpuclockid(3): exact to the ns where /proc/PID/stat counts 10 ms, and it
// needs no permission.
func (c *cpuClock) process(pid int) int64 {
	const perProcessSchedClock = 2 // CPUCLOCK_SCHED of linux/posix-timers_types.h
	return c.get(int32(^pid<<3 | perProcessSchedClock))
}

// endedChildren is the CPU time of this process's children that ended and were waited for, in ns.
func (c *cpuClock) endedChildren() int64 {
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &c.usage); err != nil {
		return 0
	}
	return unix.TimevalToNsec(c.usage.Utime) + unix.TimevalToNsec(c.usage.Stime)
}

func (c *cpuClock) get(id int32) int64 {
	if err := unix.ClockGettime(id, &c.time); err != nil {
		return unknown
	}
	return unix.TimespecToNsec(c.time)
}
