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

// Ahead puts the calling thread, which its goroutine must have locked, before all ordinary ones
// (SCHED_FIFO), until back is called on it or it ends; a process's first thread never does, the Go
// runtime puts it to sleep for good. Of a locked thread it lets none inherit that. Where this user
// may not (no CAP_SYS_NICE, no RLIMIT_RTPRIO, a group without real-time budget) ok is false and all
// stays as it was.
func Ahead(level int) (back func(), ok bool) {
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, false
	}
	if promote(0, level) != nil {
		return nil, false
	}
	return func() { _ = unix.SchedSetAttr(0, was, 0) }, true // to come down is always permitted
}

func promote(tid, level int) error {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
		Priority: uint32(level)}
	return unix.SchedSetAttr(tid, &first, 0)
}

// Promote puts all threads of a process before ordinary ones, and reports whether this user may do
// that. One thread of a Go program is not enough: the runtime stops each thread every 10 ms, also a
// locked one, and only another thread makes it run again. An ordinary one may have to wait for long
// beside other programs. Threads that the process makes later are like the ones that make them. No
// thread of the process may wait for another one in a loop that does not sleep.
func Promote(pid, level int) bool {
	return eachThread(pid, func(tid int) error { return promote(tid, level) })
}

// Nice sets the nice value of all threads of a process, and reports whether this user may do that.
// Less than 0 lets them go before ordinary threads that use more of a core than they do. It is for
// the threads beside one that is ahead, which it needs after each 10 ms (see Promote): at the
// lowest value they hardly wait for ordinary threads, and never keep the one that is ahead off its
// core.
func Nice(pid, value int) bool {
	return eachThread(pid, func(tid int) error {
		return unix.Setpriority(unix.PRIO_PROCESS, tid, value)
	})
}

// Lowest is the nice value of threads that go before all others that are not ahead (nice(2)).
const Lowest = -20

// eachThread does something with each thread of a process, and reports whether it succeeded.
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

// IsAhead reports whether the calling thread goes before ordinary ones.
func IsAhead() bool {
	a, err := unix.SchedGetAttr(0, 0)
	return err == nil && a.Policy == unix.SCHED_FIFO
}

// Locked does something on a thread that goes first meanwhile, where that may be had.
func Locked(level int, do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if back, ok := Ahead(level); ok {
		defer back()
	}
	do()
}

// Breath lets others have their turn. A thread that goes first and never sleeps would keep them off
// its processor until the kernel intervenes, after most of a second and for a twentieth of one.
// The zero value is ready; it belongs to one thread.
type Breath struct {
	usage unix.Rusage
	pause unix.Timespec
	slept int64 // how often the thread had slept at the last look
	next  int64
}

// Take sleeps for 50 µs where the calling thread has not slept by itself for 2 ms: a fortieth of
// the time of one that is always busy, none of one that is not. It allocates nothing and asks the
// kernel once in 2 ms; now is clock.Mono.
func (b *Breath) Take(now int64) {
	if now < b.next {
		return
	}
	b.next = now + breathEveryNs
	// Raw calls: when a call returns of which Go's runtime has been told, the thread may have to
	// wait for another one, which it keeps off the core.
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
