// Package epoll implements the generator's readiness engine with one edge-triggered epoll instance.
// Each connection is registered once and never changed. The response is read in the event, and the
// next request is written from the same event, so a request costs one recv, one send and its share
// of one epoll_wait (see epoll(7)). In comparison, wrk needs two epoll_ctl calls and a second
// wake-up more.
//
// It waits for deadlines by a timerfd with absolute time, which uses the kernel's high-resolution
// timer without timer slack and without the millisecond resolution of epoll_wait's timeout.
package epoll

import (
	"fmt"
	"math"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/socket"
)

const (
	readSize  = 256 << 10       // one read of a large body; shared by all connections of the thread
	readsMax  = 16              // of one connection in a row, so that others get their turn
	maxEvents = engine.WaitMost // so that the time between reading the clock stays short
	timerSlot = -1

	// ends are the events after which a read reports the end of the connection.
	ends = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

// Engine implements engine.Engine.
type Engine struct {
	epfd, timer int
	addr        socket.Address

	slots    []slot
	events   []unix.EpollEvent
	buf      []byte
	armed    int64   // the timer's deadline, clock.Mono; 0 if not set
	toMono   int64   // kernel CLOCK_MONOTONIC minus clock.Mono
	unopened bool    // a connect failed at once; the next Wait reports it
	unread   []int32 // slots with more to read in the next Wait
}

type slot struct {
	fd      int32
	gen     int32 // distinguishes events of this connection from those of its predecessor
	opening bool
	tail    []byte // of a write that the kernel took only in part
	full    bool   // the kernel took only part of a Push
	parted  bool   // the peer has ended its direction, so a request would not be answered
	unsent  int    // bytes of the last Send that the kernel did not take; remains after the end
	err     error  // error of the write or connect, reported in the next Wait
	unread  uint32 // events of which the next Wait goes on reading; 0: none
}

// New returns an engine for a number of slots, all for one address. It fails if the kernel refuses
// the epoll instance or the timer.
func New(addr netip.AddrPort, slots int) (*Engine, error) {
	e := &Engine{
		addr:   socket.AddressOf(addr),
		slots:  make([]slot, slots),
		events: make([]unix.EpollEvent, maxEvents),
		buf:    make([]byte, readSize),
	}
	for i := range e.slots {
		e.slots[i].fd = -1
	}
	var err error
	if e.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create epoll instance: %w", err)
	}
	e.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		unix.Close(e.epfd)
		return nil, fmt.Errorf("create timerfd: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: timerSlot}
	if err := unix.EpollCtl(e.epfd, unix.EPOLL_CTL_ADD, e.timer, &ev); err != nil {
		e.Release()
		return nil, fmt.Errorf("watch timerfd: %w", err)
	}
	if e.toMono, err = clock.Kernel(); err != nil {
		e.Release()
		return nil, err
	}
	return e, nil
}

// Open starts a non-blocking connect. If the peer refuses, the socket has an event. If the local
// kernel refuses (no descriptor, no free port, no route), there is no event, and the socket would
// even look open; Open keeps that error for the next Wait.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	s.fd, s.opening, s.tail, s.full, s.err, s.unsent = -1, true, nil, false, nil, 0
	s.parted, s.unread = false, 0
	fd, err := e.addr.New()
	if err != nil {
		e.refuse(s, err)
		return
	}
	s.gen++
	_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd),
		uintptr(unsafe.Pointer(&e.addr.Raw)), uintptr(e.addr.Len))
	if errno != 0 && errno != unix.EINPROGRESS && errno != unix.EINTR {
		unix.Close(fd)
		e.refuse(s, errno)
		return
	}
	ev := unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET,
		Fd:     int32(i), Pad: s.gen,
	}
	if err := unix.EpollCtl(e.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		unix.Close(fd)
		e.refuse(s, err)
		return
	}
	s.fd = int32(fd)
}

// refuse records a connect that has failed already.
func (e *Engine) refuse(s *slot, err error) {
	s.err = err
	e.unopened = true
}

// Send writes at once; bytes that do not fit go out when the socket is writable again. A failed
// write is reported in the next Wait, so that Send never calls the Handler.
func (e *Engine) Send(i int, b []byte) {
	s := &e.slots[i]
	s.unsent = len(b)
	if s.parted {
		return // the end is read next
	}
	if s.tail != nil {
		e.spoil(s, socket.ErrEarly)
		return
	}
	n, errno := send(s.fd, b)
	if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
		e.spoil(s, errno)
		return
	}
	if s.unsent -= n; s.unsent > 0 {
		s.tail = b[n:]
	}
}

// Unsent implements engine.Engine.
func (e *Engine) Unsent(i int) int { return e.slots[i].unsent }

// Push implements engine.Streamer.
func (e *Engine) Push(i int, b []byte) int {
	s := &e.slots[i]
	n, errno := send(s.fd, b)
	if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
		e.spoil(s, errno)
		return len(b)
	}
	s.full = n < len(b)
	return n
}

// spoil ends a connection after a failed write. Shutting it down raises an event, in which the next
// Wait reports the error.
func (e *Engine) spoil(s *slot, err error) {
	s.err, s.tail = err, nil
	// It fails on a connection that the peer has reset, which has raised that event already.
	_ = unix.Shutdown(int(s.fd), unix.SHUT_RDWR)
}

// Close closes the socket, which also removes it from the epoll set.
func (e *Engine) Close(i int) {
	s := &e.slots[i]
	if s.fd >= 0 {
		unix.Close(int(s.fd))
	}
	s.fd, s.opening, s.tail, s.full, s.err, s.unread = -1, false, nil, false, nil, 0
	s.gen++
}

// Release closes everything.
func (e *Engine) Release() {
	for i := range e.slots {
		e.Close(i)
	}
	unix.Close(e.timer)
	unix.Close(e.epfd)
}

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	timeout := -1
	if e.unopened {
		e.tellFailedOpens(h)
		deadline = math.MinInt64 // an event was delivered: only poll for more
	}
	unread := len(e.unread)
	switch {
	case unread > 0:
		timeout = 0
	case deadline == e.armed && deadline != 0: // the timer ends the wait, at once if it has fired
	case deadline <= clock.Mono():
		timeout = 0
	default:
		if err := e.arm(deadline); err != nil {
			return err
		}
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.epfd),
		uintptr(unsafe.Pointer(&e.events[0])), maxEvents, uintptr(timeout), 0, 0)
	if errno == unix.EINTR {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("epoll_wait: %w", errno)
	}
	for k := range e.events[:n] {
		ev := &e.events[k]
		if ev.Fd == timerSlot {
			e.armed = 0
			continue
		}
		if s := &e.slots[ev.Fd]; s.fd >= 0 && s.gen == ev.Pad {
			e.serve(int(ev.Fd), s, ev.Events, h)
		}
	}
	for _, i := range e.unread[:unread] {
		if s := &e.slots[i]; s.unread != 0 {
			e.read(int(i), s, s.unread, h)
		}
	}
	e.unread = e.unread[:copy(e.unread, e.unread[unread:])]
	return nil
}

func (e *Engine) arm(deadline int64) error {
	atNs := deadline + e.toMono
	if atNs < deadline { // beyond the kernel's clock: practically never
		atNs = math.MaxInt64
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(atNs)}
	_, _, errno := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(e.timer),
		unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("set timerfd: %w", errno)
	}
	e.armed = deadline
	return nil
}

func (e *Engine) tellFailedOpens(h engine.Handler) {
	e.unopened = false
	for i := range e.slots {
		if s := &e.slots[i]; s.opening && s.fd < 0 {
			err := s.err
			s.opening, s.err = false, nil
			h.Closed(i, clock.Mono(), engine.Connecting, err)
		}
	}
}

// serve handles one connection's event. The Handler can close or reopen the connection meanwhile,
// which changes its generation.
func (e *Engine) serve(i int, s *slot, events uint32, h engine.Handler) {
	gen := s.gen
	if s.opening {
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
			return
		}
		if err := socket.Error(int(s.fd)); err != nil {
			e.Close(i)
			h.Closed(i, clock.Mono(), engine.Connecting, err)
			return
		}
		s.opening = false
		h.Opened(i, clock.Mono())
		if s.gen != gen {
			return
		}
	}
	if s.tail != nil && events&unix.EPOLLOUT != 0 {
		tail := s.tail
		s.tail = nil
		e.Send(i, tail)
	}
	if s.full && events&unix.EPOLLOUT != 0 {
		s.full = false
		if h.(engine.Drained).Drained(i, clock.Mono()); s.gen != gen {
			return
		}
	}
	switch events &= unix.EPOLLIN | ends; {
	case s.unread != 0:
		s.unread |= events
	case events != 0:
		e.read(i, s, events, h)
	}
}

// read reads until the socket is empty. A read shorter than the buffer has emptied it (epoll(7),
// Q9), which saves a second recv that only returns EAGAIN. After readsMax reads, others get their
// turn: a peer that writes as fast as this thread reads would occupy it.
func (e *Engine) read(i int, s *slot, events uint32, h engine.Handler) {
	gen := s.gen
	s.parted, s.unread = events&ends != 0, 0
	for range readsMax {
		if s.err == socket.ErrEarly {
			e.ended(i, nil, h) // these bytes belong to a response that already ended
			return
		}
		n, errno := recv(s.fd, e.buf)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno == unix.EINTR:
			continue
		case errno != 0:
			e.ended(i, errno, h)
			return
		case n == 0:
			e.ended(i, nil, h)
			return
		}
		h.Received(i, clock.Mono(), e.buf[:n])
		if s.gen != gen {
			return
		}
		if n < len(e.buf) && events&ends == 0 {
			return
		}
	}
	s.unread = events
	e.unread = append(e.unread, int32(i))
}

// ended closes a connection that has ended and reports the interrupted operation: writing if a
// write failed or is incomplete, otherwise reading.
func (e *Engine) ended(i int, err error, h engine.Handler) {
	s := &e.slots[i]
	op := engine.Reading
	if s.err != nil {
		op, err = engine.Writing, s.err
	} else if err != nil && (s.tail != nil || s.full) {
		op = engine.Writing
	}
	e.Close(i)
	h.Closed(i, clock.Mono(), op, err)
}

func send(fd int32, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func recv(fd int32, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
