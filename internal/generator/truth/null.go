package truth

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Null responds to every request with the same few bytes, as cheaply as one thread can. A
// generator's throughput against it is the generator limit. It serves until ctx ends, which it
// detects within half a second; the caller closes the listener. Requests have no body; each ends
// with an empty line. Clients that do not read their responses are disconnected.
func Null(ctx context.Context, l *net.TCPListener, answer []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := &null{poller: poller{known: true}, answer: answer,
		buf: make([]byte, len(emptyLine)-1+64<<10), open: map[int]bool{}, part: map[int][]byte{}}
	defer n.closeAll()
	err := n.poller.open(l)
	for err == nil && ctx.Err() == nil {
		err = n.turn()
	}
	if err != nil {
		return fmt.Errorf("serve null: %w", err)
	}
	return nil
}

type null struct {
	poller
	answer []byte
	buf    []byte
	open   map[int]bool
	part   map[int][]byte // the last bytes of an incomplete request, at most three
}

// turn waits at most half a second, so that the end of the context is detected.
func (n *null) turn() error {
	events, err := n.wait(500)
	for _, ev := range events {
		if ev.Fd == n.listener {
			n.accept(unix.EPOLLIN|unix.EPOLLET, func(fd int32) { n.open[int(fd)] = true })
		} else {
			n.serve(int(ev.Fd))
		}
	}
	return err
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
	n.poller.close()
}

// serve reads until a read does not fill the buffer: an event is reported only once (EPOLLET), and
// unread data would never be reported again.
func (n *null) serve(fd int) {
	for complete := false; !complete; {
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
		complete = len(b) < len(n.buf)
		n.keep(fd, b)
		for range bytes.Count(b, emptyLine) {
			if k, err := unix.Write(fd, n.answer); err != nil || k < len(n.answer) {
				n.drop(fd)
				return
			}
		}
	}
}

// keep stores the beginning of an empty line that a read has split. That is rare: most requests
// arrive complete, and then nothing is stored or looked up.
func (n *null) keep(fd int, b []byte) {
	if bytes.HasSuffix(b, emptyLine) {
		if len(n.part) > 0 {
			delete(n.part, fd)
		}
		return
	}
	if i := bytes.LastIndex(b, emptyLine); i >= 0 {
		b = b[i+len(emptyLine):] // already counted
	}
	n.part[fd] = append(n.part[fd][:0], b[max(len(b)-len(emptyLine)+1, 0):]...)
}
