package truth

import (
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller holds a single-threaded server's listener and the events of the listener and its
// connections.
type poller struct {
	file     *os.File // of the listener
	listener int32
	epfd     int
	events   [128]unix.EpollEvent
	known    bool // system calls go through Go's runtime
}

func (p *poller) open(l *net.TCPListener) (err error) {
	if p.file, err = l.File(); err != nil {
		return err
	}
	p.listener = int32(p.file.Fd())
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if err = unix.SetNonblock(int(p.listener), true); err != nil {
		return err
	}
	return p.watch(p.listener, unix.EPOLLIN)
}

func (p *poller) close() {
	if p.epfd > 0 {
		unix.Close(p.epfd)
	}
	if p.file != nil {
		p.file.Close()
	}
}

// wait waits for events; a signal ends it without any. If Go's runtime takes part in the wait,
// another thread monitors it and wakes up to 50,000 times a second; a raw call avoids that.
func (p *poller) wait(timeoutMs int) ([]unix.EpollEvent, error) {
	var k int
	var err error
	if p.known {
		k, err = unix.EpollWait(p.epfd, p.events[:], timeoutMs)
	} else {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epfd),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(timeoutMs), 0, 0)
		k, err = int(n), errno
	}
	if err == unix.EINTR || err == unix.Errno(0) {
		err = nil
	}
	return p.events[:max(k, 0)], err
}

// receive reads from a connection without blocking. After a call through Go's runtime, the thread
// may wait for other threads of the runtime, and a thread with real-time priority keeps these off
// its core.
func (p *poller) receive(fd int32, into []byte) (int, error) {
	if p.known {
		return unix.Read(int(fd), into)
	}
	return raw(unix.SYS_READ, fd, into)
}

// send writes to a connection without blocking, with calls as in receive.
func (p *poller) send(fd int32, text []byte) (int, error) {
	if p.known {
		return unix.Write(int(fd), text)
	}
	return raw(unix.SYS_WRITE, fd, text)
}

func raw(call uintptr, fd int32, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

func (p *poller) watch(fd int32, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: fd}
	return unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, int(fd), &ev)
}

// accept accepts the pending connections, watches them, and passes them to take.
func (p *poller) accept(events uint32, take func(fd int32)) {
	for {
		fd, _, err := unix.Accept4(int(p.listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		// Without it, dripped bytes would wait for acknowledgements.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if p.watch(int32(fd), events) != nil {
			unix.Close(fd)
			continue
		}
		take(int32(fd))
	}
}

var emptyLine = []byte("\r\n\r\n")
