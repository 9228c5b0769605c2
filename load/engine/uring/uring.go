// Package uring implements the generator's completion engine with one io_uring ring per thread and
// raw system calls, without a library. A turn is one io_uring_enter, which submits all requests
// since the last turn, processes what has come meanwhile, and waits if nothing has:
//
//	Send, Open, Close ─► submission queue ─► io_uring_enter ─► completion queue ─► Handler
//
// Each connection has one multishot receive, which ends only with the connection. The kernel takes
// a buffer for it only when bytes have come; see buffers. A small send produces no completion
// unless it fails, so the response is the only outcome of a request. The deadline of a wait is an
// argument of the call, an absolute time of the kernel's high-resolution clock, so no timer is
// armed while there is work.
//
// A request contains slot and generation of its connection, which distinguishes late outcomes of a
// closed connection from those of its successor.
//
// The ring belongs to the thread that made it: call New, Release and everything between on one
// locked thread. Memory that the kernel gets by address does not move and stays referenced: the
// peer's address by the engine, a request's bytes by its slot, until the next request in that slot.
// Cancellation is requested before a descriptor is closed, and the kernel works for the ring only
// inside io_uring_enter, so it reads no byte of a closed connection's request after the next turn.
//
// Non-goals: a polling thread in the kernel (SQPOLL), which costs more than it saves here, and
// zero-copy sends, which only pay for larger requests.
package uring

import (
	"errors"
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

// sendAtOnce fits into the send buffer of a connection with nothing under way (tcp_wmem's default),
// so the kernel accepts it at once.
const sendAtOnce = 16 << 10

// Kinds of requests, in the top byte of userData; below it are 24 bits of the slot's generation and
// the slot.
const (
	connecting uint64 = iota
	receiving
	sending
	sendingParts
	draining
	cancelling
)

const generations = 1 << 24

// Engine implements engine.Engine.
type Engine struct {
	ring  ring
	bufs  buffers
	addr  socket.Address
	opt   Options
	slots []slot

	closing []int32 // descriptors to close after earlier requests were submitted
	hungry  []int32 // slots whose receive found no buffer
	untold  []int32 // slots with a failure to report in the next Wait
	broken  error   // why the ring cannot continue

	waitBy   uintptr // flags of a wait
	absolute bool    // deadlines are absolute
	toMono   int64   // kernel CLOCK_MONOTONIC minus clock.Mono
	recvBy   uint16
	sendBy   uint8
	fileBy   uint8 // sqeFixedFile with direct descriptors
}

type slot struct {
	fd        int32
	gen       uint32
	opening   bool
	armed     bool   // the multishot receive is active
	requested bool   // bytes were sent, and nothing has come since
	parts     bool   // a large request is being sent
	hungry    bool   // in Engine.hungry
	full      bool   // the kernel accepted only part of a Push; waits for space
	out       []byte // bytes that the kernel may be reading; of a large request, the rest
	unsent    int    // bytes of the last Send that the kernel did not take; remains after the end
	err       error  // why the connection must end, if not closed by the peer
}

// New returns an engine for a number of slots, all for one address. It fails if the kernel creates
// no ring; see Probe.
func New(addr netip.AddrPort, slots int) (*Engine, error) {
	return NewWith(addr, slots, Options{})
}

// NewWith returns an engine with Options, for experiments.
func NewWith(addr netip.AddrPort, slots int, o Options) (*Engine, error) {
	o.fill(slots)
	e := &Engine{addr: socket.AddressOf(addr), opt: o, slots: make([]slot, slots)}
	for i := range e.slots {
		e.slots[i].fd = -1
	}
	if err := e.ring.open(o.requests, o.outcomes, o.rungs); err != nil {
		return nil, err
	}
	if err := e.equip(); err != nil {
		e.ring.close()
		return nil, err
	}
	return e, nil
}

// equip registers the ring's buffers and selects how it waits.
func (e *Engine) equip() error {
	var err error
	if e.toMono, err = clock.Kernel(); err != nil {
		return err
	}
	e.recvBy, e.sendBy, e.waitBy = recvMultishot, sqeSkipSuccess, enterGetEvents|enterExtArg
	if e.absolute = e.ring.features&featMinTimeout != 0 && !e.opt.Relative; e.absolute {
		e.waitBy |= enterAbsTimer
	} else if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		// On older kernels a wait can end late by the timer slack, 50 µs by default.
		return fmt.Errorf("set timer slack: %w", err)
	}
	e.opt.apply(e)
	if e.opt.Direct {
		if err := e.ring.files(len(e.slots)); err != nil {
			return err
		}
	}
	return e.bufs.open(&e.ring, e.opt.Buffers, e.opt.BufferSize, e.opt.Whole)
}

// Release closes everything and cancels what is under way. The peers' connections end.
func (e *Engine) Release() {
	for i := range e.slots {
		if s := &e.slots[i]; s.fd >= 0 {
			e.closing = append(e.closing, s.fd)
			s.fd = -1
		}
	}
	e.ring.close()
	for _, fd := range e.closing {
		unix.Close(int(fd))
	}
	e.closing = nil
	e.bufs.close() // only now, because nothing can write there any more
}

// request queues a request for slot i. It overwrites all of the entry, because the kernel does not
// clear it; the caller sets the fields of its kind.
func (e *Engine) request(op uint8, kind uint64, i int) *sqe {
	if e.ring.full() {
		if err := e.ring.flush(); err != nil {
			e.broken = err
			return &sqe{} // a dummy; the next Wait fails
		}
	}
	q := e.ring.next()
	*q = sqe{op: op, userData: name(kind, i, e.slots[i].gen)}
	return q
}

func name(kind uint64, i int, gen uint32) uint64 {
	return kind<<56 | uint64(gen%generations)<<32 | uint64(uint32(i))
}

// Open begins to connect. An immediate error of the local kernel (no descriptor) is kept for the
// next Wait.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	s.gen++
	s.opening, s.out, s.err, s.unsent = true, nil, nil, 0
	fd, err := e.addr.New(0)
	if err == socket.ErrNone && len(e.closing) > 0 && e.drop() == nil {
		fd, err = e.addr.New(0) // closing descriptors has made room
	}
	if s.fd = int32(fd); err == nil && e.opt.Direct {
		err = e.ring.file(i, &s.fd)
	}
	if err != nil {
		e.fail(i, err)
		return
	}
	q := e.request(opConnect, connecting, i)
	q.fd, q.flags = e.file(i), e.fileBy
	q.addr, q.offset = uint64(uintptr(unsafe.Pointer(&e.addr.Raw))), uint64(e.addr.Len)
}

// file returns the number by which requests name slot i's socket.
func (e *Engine) file(i int) int32 {
	if e.fileBy != 0 {
		return int32(i)
	}
	return e.slots[i].fd
}

// Send queues b. A large request is sent in parts as the kernel accepts them, which shows whether
// it is still under way when the response comes.
func (e *Engine) Send(i int, b []byte) {
	s := &e.slots[i]
	if s.parts {
		e.fail(i, socket.ErrEarly)
		return
	}
	s.out, s.requested, s.unsent = b, true, 0
	if len(b) > sendAtOnce {
		s.parts, s.unsent = true, len(b)
		e.sendPart(i)
		return
	}
	q := e.request(opSend, sending, i)
	q.fd, q.flags, q.opFlags = e.file(i), e.sendBy|e.fileBy, unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	q.addr, q.len = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b))
}

// Unsent implements engine.Engine. A small request has left unless its send has failed.
func (e *Engine) Unsent(i int) int { return e.slots[i].unsent }

func (e *Engine) sendPart(i int) {
	b := e.slots[i].out
	q := e.request(opSend, sendingParts, i)
	q.fd, q.flags, q.opFlags = e.file(i), e.fileBy, unix.MSG_NOSIGNAL
	q.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	q.len = uint32(min(len(b), math.MaxInt32))
}

// Push implements engine.Streamer. It calls the kernel directly: sent bytes cannot be reordered
// with later ones, as queued requests could, and there is no outcome to wait for. It is not
// available with the ring's own files.
func (e *Engine) Push(i int, b []byte) int {
	s := &e.slots[i]
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		n = 0
	case errno != 0:
		spoil(s, errno)
		return len(b)
	}
	if int(n) < len(b) && !s.full {
		s.full = true
		q := e.request(opPollAdd, draining, i)
		q.fd, q.opFlags = s.fd, unix.POLLOUT
	}
	return int(n)
}

// fail records an error that ends slot i's connection in the next Wait, because only Wait calls the
// Handler.
func (e *Engine) fail(i int, err error) {
	e.slots[i].err = err
	e.untold = append(e.untold, int32(i))
}

// arm starts the multishot receive of slot i.
func (e *Engine) arm(i int, filter uint16) {
	e.slots[i].armed = true
	q := e.request(opRecv, receiving, i)
	q.fd, q.flags, q.ioprio = e.file(i), sqeBufferSelect|e.fileBy, e.recvBy|filter
}

// Close ends slot i's connection. It cancels the connection's requests, because each one keeps the
// socket open. It closes the descriptor after requests that name it were submitted; otherwise they
// would use whatever takes its number.
func (e *Engine) Close(i int) {
	s := &e.slots[i]
	if s.fd >= 0 {
		if s.opening {
			e.cancel(i, connecting)
		}
		if s.armed {
			e.cancel(i, receiving)
		}
		if s.full {
			e.cancel(i, draining)
		}
		if s.parts {
			e.cancel(i, sendingParts)
		} else if s.requested { // no outcome yet, so the kernel may or may not have sent it
			e.cancel(i, sending)
		}
		e.closing = append(e.closing, s.fd)
		if e.opt.Direct {
			e.opt.unfile(e, i)
		}
	}
	s.fd, s.opening, s.armed, s.requested, s.parts, s.err = -1, false, false, false, false, nil
	s.full = false
	s.gen++
}

// cancel cancels slot i's requests of a kind. It ignores that there may be none.
func (e *Engine) cancel(i int, kind uint64) {
	q := e.request(opAsyncCancel, cancelling, i)
	q.fd, q.flags, q.opFlags = -1, sqeSkipSuccess, cancelAll
	q.addr = name(kind, i, e.slots[i].gen)
}

// drop closes the descriptors in closing.
func (e *Engine) drop() error {
	if err := e.ring.flush(); err != nil {
		return err
	}
	for _, fd := range e.closing {
		unix.Close(int(fd))
	}
	e.closing = e.closing[:0]
	return nil
}

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	if len(e.closing) > 0 {
		if err := e.drop(); err != nil {
			return err
		}
	}
	if len(e.untold) > 0 {
		e.tell(h)
		deadline = math.MinInt64 // an event was delivered: only poll for more
	}
	if len(e.hungry) > 0 && e.ring.drained() { // all buffers have been returned
		if e.feed(); len(e.hungry) > 0 {
			deadline = math.MinInt64
		}
	}
	if e.broken != nil {
		return e.broken
	}
	if err := e.turn(deadline); err != nil {
		return err
	}
	e.deliver(h)
	return nil
}

// tell ends connections that failed without an outcome of the ring. Failures during the calls are
// left for the next Wait.
func (e *Engine) tell(h engine.Handler) {
	n := len(e.untold)
	for k := range n {
		i := int(e.untold[k])
		if s := &e.slots[i]; s.err != nil {
			op, err := engine.Writing, s.err
			if s.opening {
				op = engine.Connecting
			}
			e.Close(i)
			h.Closed(i, clock.Mono(), op, err)
		}
	}
	e.untold = e.untold[:copy(e.untold, e.untold[n:])]
}

// turn enters the kernel unless that is useless: available outcomes come first, and a deadline in
// the past leaves no time to wait.
func (e *Engine) turn(deadline int64) error {
	r := &e.ring
	if r.ready() > 0 {
		if r.pending() == 0 {
			return nil
		}
		return r.enter(0, 0, nil, 0)
	}
	now := clock.Mono()
	if deadline <= now {
		if r.pending() == 0 && !r.due() {
			return nil
		}
		return r.enter(0, enterGetEvents, nil, 0)
	}
	atNs := deadline - now
	if e.absolute {
		if atNs = deadline + e.toMono; atNs < deadline { // beyond the kernel's clock
			atNs = math.MaxInt64 / 2 // practically never; the very last moment is a special case
		}
	}
	r.ts = unix.NsecToTimespec(atNs)
	r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.ts)))
	return r.enter(max(uint32(e.opt.Gather), 1), e.waitBy, unsafe.Pointer(&r.arg),
		unsafe.Sizeof(r.arg))
}

// deliver passes outcomes to the Handler, up to a maximum, because requests sent meanwhile leave
// only with the next turn.
func (e *Engine) deliver(h engine.Handler) {
	r := &e.ring
	n := min(r.ready(), uint32(e.opt.Batch))
	if n == 0 {
		return
	}
	atNs := int64(0)
	if e.opt.StampOnce {
		atNs = clock.Mono()
	}
	for range n {
		c := r.take()
		e.outcome(c, atNs, h)
	}
	r.give()
	e.bufs.publish()
}

// feed restarts receives that ended for lack of a buffer, at most as many as there are buffers;
// otherwise some would be retried over and over while others wait.
func (e *Engine) feed() {
	n := min(len(e.hungry), len(e.bufs.entries))
	for _, i := range e.hungry[:n] {
		s := &e.slots[i]
		if s.hungry = false; s.fd >= 0 && !s.opening && !s.armed { // unless it was renewed
			e.arm(int(i), 0)
		}
	}
	e.hungry = e.hungry[:copy(e.hungry, e.hungry[n:])]
}

// outcome handles an outcome. The Handler can close or reopen the connection meanwhile, which
// changes its generation.
func (e *Engine) outcome(c cqe, atNs int64, h engine.Handler) {
	i := int(uint32(c.userData))
	s := &e.slots[i]
	current := uint32(c.userData>>32)%generations == s.gen%generations
	kind := c.userData >> 56
	if kind == receiving {
		e.received(i, c, current, atNs, h)
		return
	}
	if !current {
		return
	}
	switch kind {
	case connecting:
		e.connected(i, c.res, h)
	case sending:
		e.sent(s, c.res)
	case sendingParts:
		e.sentPart(i, c.res)
	case draining:
		s.full = false // the next push reports errors
		h.(engine.Drained).Drained(i, clock.Mono())
	}
}

// connected handles the outcome of a connect. If a firewall refuses while the SYN is being sent,
// the kernel (observed with 6.18) reports the error to poll and SO_ERROR, but success to the ring,
// so connected also checks SO_ERROR.
func (e *Engine) connected(i int, res int32, h engine.Handler) {
	var err error
	if res < 0 {
		err = syscall.Errno(-res)
	} else {
		err = socket.Error(int(e.slots[i].fd))
	}
	if err != nil {
		e.Close(i)
		h.Closed(i, clock.Mono(), engine.Connecting, err)
		return
	}
	e.slots[i].opening = false
	e.arm(i, recvPollFirst) // nothing was requested, so nothing can be available
	h.Opened(i, clock.Mono())
}

// sent handles the outcome of a small request, which exists only if it failed: the connection broke
// before or during it.
func (e *Engine) sent(s *slot, res int32) {
	s.unsent = len(s.out) - int(max(res, 0))
	switch {
	case res < 0:
		spoil(s, syscall.Errno(-res))
	case e.sendBy&sqeSkipSuccess != 0:
		spoil(s, unix.EPIPE)
	}
}

func (e *Engine) sentPart(i int, res int32) {
	s := &e.slots[i]
	if res < 0 {
		spoil(s, syscall.Errno(-res))
		return
	}
	s.out = s.out[res:]
	if s.unsent = len(s.out); s.unsent == 0 {
		s.parts = false
	} else {
		e.sendPart(i)
	}
}

// spoil ends a connection after a failed write. Shutting it down ends the multishot receive, after
// delivery of what the peer had sent.
func spoil(s *slot, err error) {
	s.err = err
	// It fails on a connection that the peer has reset, which has ended the receive already.
	_ = unix.Shutdown(int(s.fd), unix.SHUT_RDWR)
}

// received handles an outcome of the multishot receive: bytes, an end, or that the receive has
// stopped.
func (e *Engine) received(i int, c cqe, current bool, atNs int64, h engine.Handler) {
	s := &e.slots[i]
	gen, over := s.gen, c.flags&cqeMore == 0
	if current && over {
		s.armed = false
	}
	if c.res <= 0 && c.flags&cqeBuffer != 0 {
		e.bufs.take(0, c.flags) // should not happen, but a buffer must not be lost
	}
	for remaining := max(c.res, 0); remaining > 0; {
		var b []byte
		b, c.flags = e.bufs.take(remaining, c.flags)
		remaining -= int32(len(b))
		if !current || s.gen != gen || s.err == socket.ErrEarly {
			continue // bytes of a predecessor, or of a response that already ended
		}
		s.requested = false
		if atNs == 0 || !e.opt.StampOnce {
			atNs = clock.Mono()
		}
		h.Received(i, atNs, b)
	}
	if !over || !current || s.gen != gen || s.err == socket.ErrEarly {
		return
	}
	switch errno := syscall.Errno(-c.res); {
	case c.res > 0 || errno == unix.EAGAIN || errno == unix.EINTR:
		e.arm(i, 0) // for example, the queue had no room for the outcome
	case errno == unix.ENOBUFS:
		if !s.hungry {
			s.hungry = true
			e.hungry = append(e.hungry, int32(i))
		}
	case errno == 0:
		e.ended(i, nil, h)
	default:
		e.ended(i, errno, h)
	}
}

// ended closes a connection that has ended and reports the interrupted operation: writing if a
// write failed or is incomplete, otherwise reading.
func (e *Engine) ended(i int, err error, h engine.Handler) {
	s := &e.slots[i]
	op := engine.Reading
	if s.err != nil {
		op, err = engine.Writing, s.err
	} else if err != nil && (s.parts || s.full) {
		op = engine.Writing
	}
	e.Close(i)
	h.Closed(i, clock.Mono(), op, err)
}

var errStuck = errors.New("io_uring_enter: the kernel takes no more requests")
