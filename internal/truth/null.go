package truth

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Null answers every request with the same few bytes, as cheaply as one thread can: what a generator
// reaches against it is the generator's own ceiling, not a service's. It serves until ctx ends.
// Requests have no body; each ends in an empty line.
func Null(ctx context.Context, l *net.TCPListener, answer []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := l.File()
	if err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	defer f.Close()
	n := &null{answer: answer, listener: int(f.Fd()), buf: make([]byte, 64<<10)}
	if n.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	defer unix.Close(n.epfd)
	if err := n.watch(n.listener, unix.EPOLLIN); err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	if err := unix.SetNonblock(n.listener, true); err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	defer n.closeAll()
	for ctx.Err() == nil {
		if err := n.turn(); err != nil {
			return err
		}
	}
	return nil
}

type null struct {
	answer   []byte
	epfd     int
	listener int
	buf      []byte
	open     map[int]bool
	events   [128]unix.EpollEvent
}

func (n *null) watch(fd int, events uint32) error {
	return unix.EpollCtl(n.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// turn waits half a second at most, so that the end of the context is noticed.
func (n *null) turn() error {
	k, err := unix.EpollWait(n.epfd, n.events[:], 500)
	if err == unix.EINTR {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	for _, ev := range n.events[:k] {
		if int(ev.Fd) == n.listener {
			n.accept()
		} else {
			n.serve(int(ev.Fd))
		}
	}
	return nil
}

func (n *null) accept() {
	for {
		fd, _, err := unix.Accept4(n.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		if n.open == nil {
			n.open = map[int]bool{}
		}
		n.open[fd] = true
		// The socket lives on without the option; only a later answer in two parts would be slower.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if n.watch(fd, unix.EPOLLIN|unix.EPOLLET) != nil {
			n.drop(fd)
		}
	}
}

func (n *null) drop(fd int) {
	delete(n.open, fd)
	unix.Close(fd)
}

func (n *null) closeAll() {
	for fd := range n.open {
		n.drop(fd)
	}
}

func (n *null) serve(fd int) {
	k, err := unix.Read(fd, n.buf)
	if err == unix.EAGAIN {
		return
	}
	if k <= 0 || err != nil {
		n.drop(fd)
		return
	}
	for range bytes.Count(n.buf[:k], []byte("\r\n\r\n")) {
		if _, err := unix.Write(fd, n.answer); err != nil {
			n.drop(fd)
			return
		}
	}
}
