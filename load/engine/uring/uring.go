// Package uring is the completion engine of the generator: an io_uring ring of the thread's own,
// raw system calls, no library. A turn is one io_uring_enter, which hands over all requests that
// were asked for since the last, works off what has come meanwhile, and waits if nothing has:
//
//	Send, Open, Close ─► submission queue ─► io_uring_enter ─► completion queue ─► Handler
//
// Each connection has one standing receive (multishot), which ends only with the connection. The
// kernel takes a buffer for it when bytes have come; see buffers. A small request leaves without a
// completion of its own unless it fails, so that an answer is the only outcome of a request. The
// deadline of a wait is an argument of the call, an absolute time of the kernel's high-resolution
// clock: no timer is armed for it while there is something to do.
//
// A request names its connection by slot and generation, so that what comes late for a connection
// that is gone is told from what comes for its successor.
//
// The ring belongs to the thread that made it: New, everything else and Release are to be called on
// one locked thread. What the kernel is given by address stays where it is and is held on to: the
// address of the peer by the engine, a request's bytes by its slot, until the next is sent there.
// Cancelling is asked for before a descriptor is closed, and the kernel works for the ring only
// inside io_uring_enter, so no byte of a closed connection's request is read after the next turn.
//
// Non-goals: a polling thread in the kernel (SQPOLL), which costs more than it saves here, and
// zero-copy sends, which pay above sizes that requests have.
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

// sendAtOnce is what fits into the send buffer of a connection that has nothing under way
// (tcp_wmem's default): the kernel takes it at once.
const sendAtOnce = 16 << 10

// Kinds of requests, in the top byte of what they are known by; below it stand 24 bits of the
// slot's generation and the slot.
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

	closing []int32 // descriptors to be closed once the requests before that are submitted
	hungry  []int32 // slots whose receive found no buffer
	untold  []int32 // slots with a failure that the Handler is told of in the next Wait
	broken  error   // why the ring cannot go on

	waitBy   uintptr // flags of a wait
	absolute bool    // whether its deadline is
	toMono   int64   // kernel CLOCK_MONOTONIC minus clock.Mono
	recvBy   uint16
	sendBy   uint8
	fileBy   uint8 // sqeFixedFile with direct descriptors
}

type slot struct {
	fd        int32
	gen       uint32
	opening   bool
	armed     bool   // the standing receive is with the kernel
	requested bool   // bytes were sent and nothing has come since
	parts     bool   // a large request is with the kernel
	hungry    bool   // among the hungry
	full      bool   // it did not take all that was pushed, and room is waited for
	out       []byte // what the kernel may be reading; of a large request, the rest
	err       error  // why the connection is to end, if not by the peer's will
}

// New returns an engine for the number of slots, all to one address.
func New(addr netip.AddrPort, slots int) (*Engine, error) {
	return NewWith(addr, slots, Options{})
}

// NewWith returns an engine with some of its choices made otherwise, for experiments.
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

// equip gives the ring its buffers and finds out how it waits.
func (e *Engine) equip() error {
	var err error
	if e.toMono, err = clock.Kernel(); err != nil {
		return err
	}
	e.recvBy, e.sendBy, e.waitBy = recvMultishot, sqeSkipSuccess, enterGetEvents|enterExtArg
	if e.absolute = e.ring.features&featMinTimeout != 0 && !e.opt.Relative; e.absolute {
		e.waitBy |= enterAbsTimer
	} else if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		// Older kernels let a wait end late by as much, 50 µs unless told otherwise.
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

// Release closes everything. What is under way is cancelled; the peers see their connections end.
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
	e.bufs.close() // only now: nothing is left that could write there
}

// request queues one for slot i. The place of a request is not cleared by the kernel; all of it is
// written here, and the caller fills in what its kind needs.
func (e *Engine) request(op uint8, kind uint64, i int) *sqe {
	if e.ring.full() {
		if err := e.ring.flush(); err != nil {
			e.broken = err
			return &sqe{} // nobody will see it; the next Wait fails
		}
	}
	q := e.ring.next()
	*q = sqe{op: op, userData: name(kind, i, e.slots[i].gen)}
	return q
}

func name(kind uint64, i int, gen uint32) uint64 {
	return kind<<56 | uint64(gen%generations)<<32 | uint64(uint32(i))
}

// Open begins to connect. What the own kernel refuses at once (no descriptor) is kept and told in
// the next Wait.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	s.gen++
	s.opening, s.out, s.err = true, nil, nil
	fd, err := e.addr.New(0)
	if err == socket.ErrNone && len(e.closing) > 0 && e.drop() == nil {
		fd, err = e.addr.New(0) // there is room now
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

// file is what a request calls slot i's socket.
func (e *Engine) file(i int) int32 {
	if e.fileBy != 0 {
		return int32(i)
	}
	return e.slots[i].fd
}

// Send queues b. A large request goes out part by part, as the kernel takes them, so that it is
// known whether it is still under way when the answer comes.
func (e *Engine) Send(i int, b []byte) {
	s := &e.slots[i]
	if s.parts {
		e.fail(i, socket.ErrEarly)
		return
	}
	s.out, s.requested = b, true
	if len(b) > sendAtOnce {
		s.parts = true
		e.sendPart(i)
		return
	}
	q := e.request(opSend, sending, i)
	q.fd, q.flags, q.opFlags = e.file(i), e.sendBy|e.fileBy, unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	q.addr, q.len = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b))
}

func (e *Engine) sendPart(i int) {
	b := e.slots[i].out
	q := e.request(opSend, sendingParts, i)
	q.fd, q.flags, q.opFlags = e.file(i), e.fileBy, unix.MSG_NOSIGNAL
	q.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	q.len = uint32(min(len(b), math.MaxInt32))
}

// Push implements engine.Streamer. It enters the kernel at once: what has left cannot change places
// with what comes after it, as requests in the queue could, and no outcome is to be waited for.
// There is none with files of the ring's own.
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

// fail notes that slot i's connection is to end, told in the next Wait: the Handler is called from
// there only.
func (e *Engine) fail(i int, err error) {
	e.slots[i].err = err
	e.untold = append(e.untold, int32(i))
}

// arm hands the standing receive of slot i to the kernel.
func (e *Engine) arm(i int, filter uint16) {
	e.slots[i].armed = true
	q := e.request(opRecv, receiving, i)
	q.fd, q.flags, q.ioprio = e.file(i), sqeBufferSelect|e.fileBy, e.recvBy|filter
}

// Close ends slot i's connection. What the kernel has of it is cancelled, since each request keeps
// the socket open by itself; the descriptor is closed after the requests that name it have gone
// out, or they would meet whatever takes its number.
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
		} else if s.requested { // the kernel has said nothing, so it may have sent it or not
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

// cancel asks for the end of slot i's requests of a kind. That there is none is told and ignored.
func (e *Engine) cancel(i int, kind uint64) {
	q := e.request(opAsyncCancel, cancelling, i)
	q.fd, q.flags, q.opFlags = -1, sqeSkipSuccess, cancelAll
	q.addr = name(kind, i, e.slots[i].gen)
}

// drop closes what is to be closed.
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
		deadline = math.MinInt64 // something has happened: only look what else
	}
	if len(e.hungry) > 0 && e.ring.drained() { // all buffers are known to be back
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

// tell ends the connections that have failed without an outcome of the ring. What fails again
// meanwhile is left for the next time.
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

// turn enters the kernel, unless there is nothing to be had from that: outcomes that are there
// already come first, and before a deadline that has passed nothing is worth waiting for.
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
			atNs = math.MaxInt64 / 2 // never, or nearly so; the very last moment is a special case
		}
	}
	r.ts = unix.NsecToTimespec(atNs)
	r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.ts)))
	return r.enter(max(uint32(e.opt.Gather), 1), e.waitBy, unsafe.Pointer(&r.arg),
		unsafe.Sizeof(r.arg))
}

// deliver tells the Handler what is there, up to a number: what was sent on the way leaves in the
// next turn, and must not wait for too long.
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

// feed lets receives stand again that had ended for want of a buffer: no more of them at once than
// there are buffers, or each would be tried over and over while the others wait.
func (e *Engine) feed() {
	n := min(len(e.hungry), len(e.bufs.entries))
	for _, i := range e.hungry[:n] {
		s := &e.slots[i]
		if s.hungry = false; s.fd >= 0 && !s.opening && !s.armed { // it may have been renewed
			e.arm(int(i), 0)
		}
	}
	e.hungry = e.hungry[:copy(e.hungry, e.hungry[n:])]
}

// outcome handles one. The connection may be closed or reopened by the Handler on the way, which
// the generation tells.
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
		s.full = false // what an error is, the next push says
		h.(engine.Drained).Drained(i, clock.Mono())
	}
}

// connected hears of a connect. A refusal that came while the SYN was being sent, as a firewall on
// the way makes it, the kernel (seen with 6.18) tells to poll and to SO_ERROR, and not to the ring,
// which has waited by poll: it says that all is well.
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
	e.arm(i, recvPollFirst) // nothing has been asked, so nothing can be there
	h.Opened(i, clock.Mono())
}

// sent hears of a small request, which is to say that it failed: the connection broke before or
// amidst it.
func (e *Engine) sent(s *slot, res int32) {
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
	if s.parts = len(s.out) > 0; s.parts {
		e.sendPart(i)
	}
}

// spoil ends a connection that cannot be written to. Shutting it down ends the standing receive,
// after what the peer may have said before it broke.
func spoil(s *slot, err error) {
	s.err = err
	// It fails on a connection that the peer has reset, which has ended the receive itself.
	_ = unix.Shutdown(int(s.fd), unix.SHUT_RDWR)
}

// received hears of the standing receive: bytes, an end, or that it does not stand any more.
func (e *Engine) received(i int, c cqe, current bool, atNs int64, h engine.Handler) {
	s := &e.slots[i]
	gen, over := s.gen, c.flags&cqeMore == 0
	if current && over {
		s.armed = false
	}
	if c.res <= 0 && c.flags&cqeBuffer != 0 {
		e.bufs.take(0, c.flags) // no kernel should, but a buffer must not be lost
	}
	for remaining := max(c.res, 0); remaining > 0; {
		var b []byte
		b, c.flags = e.bufs.take(remaining, c.flags)
		remaining -= int32(len(b))
		if !current || s.gen != gen || s.err == socket.ErrEarly {
			continue // a predecessor's, or belongs to an answer that was taken already
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
		e.arm(i, 0) // there was no room for the outcome in the queue, say
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

// ended closes a connection that has come to its end and tells what it interrupted: the write, when
// that has failed or was not done.
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
