//go:build linux && !portable

package rtsched

import (
	"runtime"

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
	if !Promote(0, level) {
		return nil, false
	}
	return func() { _ = unix.SchedSetAttr(0, was, 0) }, true // to come down is always permitted
}

// Promote puts a thread, of any process, before all ordinary ones for good, and reports whether
// this user may do that.
func Promote(tid, level int) bool {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
		Priority: uint32(level)}
	return unix.SchedSetAttr(tid, &first, 0) == nil
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
	if unix.Getrusage(unix.RUSAGE_THREAD, &b.usage) != nil {
		return
	}
	if b.usage.Nvcsw == b.slept {
		pause := unix.Timespec{Nsec: breathNs}
		_ = unix.Nanosleep(&pause, nil) // a signal ends it early
		b.usage.Nvcsw++
	}
	b.slept = b.usage.Nvcsw
}
