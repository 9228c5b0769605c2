//go:build linux && !portable

package rtsched

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ahead gives the calling thread, which its goroutine must have locked, real-time priority
// (SCHED_FIFO) until back is called on it or it ends. A process's first thread never ends: the Go
// runtime puts it to sleep for good. Threads that a locked thread starts don't inherit the
// priority. Without the right (no CAP_SYS_NICE, no RLIMIT_RTPRIO, a group without real-time budget)
// ok is false and nothing changes.
func Ahead(level int) (back func(), ok bool) {
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, false
	}
	if promote(0, level) != nil {
		return nil, false
	}
	return func() { _ = unix.SchedSetAttr(0, was, 0) }, true // lowering is always permitted
}

func promote(tid, level int) error {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
		Priority: uint32(level)}
	return unix.SchedSetAttr(tid, &first, 0)
}

// Promote gives all threads of a process real-time priority, and reports whether this user may do
// that. One thread of a Go program is not enough: the runtime preempts each thread every 10 ms,
// also a locked one, and only another thread resumes it. An ordinary thread may wait long for other
// programs. Threads that the process starts later inherit the priority. No thread of the process
// may wait for another in a loop that does not sleep.
func Promote(pid, level int) bool {
	return eachThread(pid, func(tid int) error { return promote(tid, level) })
}

// Nice sets the nice value of all threads of a process, and reports whether this user may do that.
// It is for the threads beside a real-time one, which needs them after each 10 ms (see Promote). At
// the lowest value they hardly wait for ordinary threads, and never preempt the real-time thread.
func Nice(pid, value int) bool {
	return eachThread(pid, func(tid int) error {
		return unix.Setpriority(unix.PRIO_PROCESS, tid, value)
	})
}

// Lowest is the nice value with the highest priority among ordinary threads (nice(2)).
const Lowest = -20

// eachThread calls a function for each thread of a process, and reports whether all calls
// succeeded. It ignores threads that ended.
func eachThread(pid int, do func(tid int) error) bool {
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name()) //nolint:errcheck // the kernel's number
		if failed := do(tid); failed != nil && !errors.Is(failed, unix.ESRCH) {
			err = failed
		}
	}
	return err == nil
}

// IsAhead reports whether the calling thread has real-time priority.
func IsAhead() bool {
	a, err := unix.SchedGetAttr(0, 0)
	return err == nil && a.Policy == unix.SCHED_FIFO
}

// Locked calls a function on a locked thread with real-time priority, or with ordinary priority if
// this user lacks the right.
func Locked(level int, do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if back, ok := Ahead(level); ok {
		defer back()
	}
	do()
}

// Breath lets a real-time thread yield. A real-time thread that never sleeps would block its core
// until the kernel intervenes, after most of a second and for a twentieth of one. The zero value is
// ready; it belongs to one thread.
type Breath struct {
	usage unix.Rusage
	pause unix.Timespec
	slept int64 // number of voluntary sleeps at the last check
	next  int64
}

// Take sleeps for 50 µs if the calling thread has not slept by itself for 2 ms: a fortieth of the
// time of a thread that is always busy. It does not allocate and calls the kernel once in 2 ms. now
// is clock.Mono.
func (b *Breath) Take(now int64) {
	if now < b.next {
		return
	}
	b.next = now + breathEveryNs
	// Raw calls bypass Go's scheduler: after an ordinary call the thread may have to wait for
	// another thread, which it keeps off the core.
	const thread = unix.RUSAGE_THREAD
	if _, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, uintptr(thread),
		uintptr(unsafe.Pointer(&b.usage)), 0); errno != 0 {
		return
	}
	if b.usage.Nvcsw == b.slept {
		b.pause = unix.Timespec{Nsec: breathNs}
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.pause)), 0, 0)
		b.usage.Nvcsw++
	}
	b.slept = b.usage.Nvcsw
}
