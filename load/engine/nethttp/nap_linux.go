//go:build linux && !portable

package nethttp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
)

// Pacing describes how the load thread waits for a moment.
const Pacing = "timerfd, absolute"

// nap is a timer as exact as that of the engine epoll, with an eventfd by which goroutines end the
// sleep.
type nap struct {
	epfd, timer, waker int
	toMono             int64
}

func (n *nap) prepare() (err error) {
	n.epfd, n.timer, n.waker = -1, -1, -1
	if n.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("create epoll instance: %w", err)
	}
	n.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("create timerfd: %w", err)
	}
	if n.waker, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("create eventfd: %w", err)
	}
	for _, fd := range []int{n.timer, n.waker} {
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}
		if err := unix.EpollCtl(n.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return fmt.Errorf("watch the engine's timer and eventfd: %w", err)
		}
	}
	n.toMono, err = clock.Kernel()
	return err
}

func (n *nap) close() {
	for _, fd := range []int{n.epfd, n.timer, n.waker} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// end wakes the load thread, or makes its next sleep end at once.
func (n *nap) end() {
	item := uint64(1)
	// It fails only if 2^64 wake-ups are pending, and one is enough.
	_, _ = unix.Write(n.waker, (*[8]byte)(unsafe.Pointer(&item))[:])
}

// set sets the end of the next sleep.
func (n *nap) set(deadline int64) error {
	atNs := deadline + n.toMono
	if atNs < deadline {
		atNs = 1<<63 - 1
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(atNs)}
	if err := unix.TimerfdSettime(n.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set timerfd: %w", err)
	}
	return nil
}

// take sleeps until the deadline or a call of end.
func (n *nap) take() error {
	var events [2]unix.EpollEvent
	if _, err := unix.EpollWait(n.epfd, events[:], -1); err != nil && err != unix.EINTR {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	return nil
}
