// Package truth holds servers whose behaviour is known exactly, so that the lab can be tested
// against arithmetic instead of against itself. Here is Null, which does nothing, and so is the
// floor under every measurement; package exact below it has those that answer by a formula.
package truth

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Null answers every request with the same few bytes, as cheaply as one thread can: what a
// generator reaches against it is the generator's own ceiling, not a service's. It serves until ctx
// ends, which it notices within half a second; the listener is the caller's to close. Requests have
// no body; each ends in an empty line. A client that does not take its answers is dropped.
func Null(ctx context.Context, l *net.TCPListener, answer []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := l.File()
	if err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	defer f.Close()
	n := &null{
		answer: answer, listener: int(f.Fd()), buf: make([]byte, len(emptyLine)-1+64<<10),
		open: map[int]bool{}, part: map[int][]byte{},
	}
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
	part     map[int][]byte // the last bytes of a request that has not come whole, at most three
	events   [128]unix.EpollEvent
}

func (n *null) watch(fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return unix.EpollCtl(n.epfd, unix.EPOLL_CTL_ADD, fd, &ev)
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
	delete(n.part, fd)
	unix.Close(fd)
}

func (n *null) closeAll() {
	for fd := range n.open {
		n.drop(fd)
	}
}

var emptyLine = []byte("\r\n\r\n")

// serve reads until a read does not fill the buffer: the event is told once (EPOLLET), and what is
// left unread would be left for good.
func (n *null) serve(fd int) {
	for whole := false; !whole; {
		old := copy(n.buf, n.part[fd])
		k, err := unix.Read(fd, n.buf[old:])
		if err == unix.EAGAIN {
			return
		}
		if k <= 0 || err != nil {
			n.drop(fd)
			return
		}
		b := n.buf[:old+k]
		whole = len(b) < len(n.buf)
		n.keep(fd, b)
		for range bytes.Count(b, emptyLine) {
			if k, err := unix.Write(fd, n.answer); err != nil || k < len(n.answer) {
				n.drop(fd)
				return
			}
		}
	}
}

// keep puts aside what may be the beginning of an empty line, cut in two by the network. That is
// rare: a request usually comes whole, and then there is nothing to keep and nothing to look up.
func (n *null) keep(fd int, b []byte) {
	if bytes.HasSuffix(b, emptyLine) {
		if len(n.part) > 0 {
			delete(n.part, fd)
		}
		return
	}
	if i := bytes.LastIndex(b, emptyLine); i >= 0 {
		b = b[i+len(emptyLine):] // it has been counted and must not be again
	}
	n.part[fd] = append(n.part[fd][:0], b[max(len(b)-len(emptyLine)+1, 0):]...)
}
