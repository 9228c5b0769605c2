package truth

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
)

// spin is how long before a moment the thread stops sleeping and polls: more than a timer is late
// on an idle virtual machine, and so little that a thousand answers a second cost a tenth of a
// core.
const spin = 100 * time.Microsecond

// idleMs bounds a wait: who stops all threads for a moment, as Go's collector does, waits for one
// whose wait Go does not know of.
const idleMs = 100

// Bounds of what a client may send.
const (
	headMax  = 64 << 10
	bodyBits = 24 // of the length of a body
)

// Times are those of one request, by CLOCK_MONOTONIC in ns.
type Times struct {
	CameNs      int64 // its last byte was read
	LeftNs      int64 // its answer, or the first part of it, was written; 0: never
	ServiceNs   int64 // from when the server took it up until LeftNs
	ProcessorNs int64 // processor time of the server's thread in ServiceNs; 0: it burns none
}

// maxTimes bounds how many requests have their Times recorded: the first ones.
const maxTimes = 1 << 20

// Options are how Serve serves.
type Options struct {
	// Ahead puts the server's thread ahead of ordinary ones on its core, where this is permitted.
	Ahead bool
	// Times has the times of the first million requests recorded.
	Times bool
}

// Report says how true a server was to its Plan.
type Report struct {
	Requests   int64   `json:"requests"`   // that came
	Delayed    int64   `json:"delayed"`    // answers, or parts of one, not to leave at once
	LateMeanNs float64 `json:"lateMeanNs"` // of those: how much after their moment they left
	LateMaxNs  int64   `json:"lateMaxNs"`
	RunDelayNs int64   `json:"runDelayNs"` // its thread was ready to run and had to wait
	Ahead      bool    `json:"ahead"`      // its thread ran ahead of ordinary ones

	Times []Times `json:"-"` // in the order in which requests came, if Options.Times
}

// Serve runs a Plan on a listener until ctx ends, which shuts the listener down; it is the caller's
// to close. It locks one thread, which does everything. That thread is woken for a moment by a
// timerfd, the kernel's high-resolution timer, set shortly before it, and polls the rest: Go's own
// timers wait in epoll_wait, whose grain is a millisecond, and are up to that late when nothing
// else runs.
//
// A client that does not take its answers is dropped.
func Serve(ctx context.Context, l *net.TCPListener, p Plan, o Options) (Report, error) {
	// The thread never gives its processor of the Go scheduler back; what ends ctx needs another.
	processors(+1)
	defer processors(-1)
	return serve(ctx, l, &server{plan: p, options: o})
}

// Start serves a Plan on a free port of 127.0.0.1, beside a load that the same process offers. The
// waits of its thread are known to Go's runtime: a load stops all threads for a moment when it
// begins, and one that waits unknown would hold up the others until it wakes. Stop ends it.
func Start(p Plan) (addr netip.AddrPort, stop func() (Report, error), err error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return addr, nil, fmt.Errorf("serve truth: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var report Report
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, failed = serve(ctx, l, &server{plan: p, poller: poller{known: true}})
		l.Close()
	}()
	return l.Addr().(*net.TCPAddr).AddrPort(), func() (Report, error) {
		cancel()
		<-done
		return report, failed
	}, nil
}

func serve(ctx context.Context, l *net.TCPListener, s *server) (Report, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	raw, err := l.SyscallConn()
	if err != nil {
		return Report{}, fmt.Errorf("serve truth: %w", err)
	}
	defer context.AfterFunc(ctx, func() { // wakes the thread
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	})()
	s.conns, s.in, s.timer = map[int32]*conn{}, make([]byte, headMax), -1
	defer s.close()
	if err := s.open(l); err != nil {
		return Report{}, fmt.Errorf("serve truth: %w", err)
	}
	s.burn.calibrate()
	if s.options.Ahead {
		var back func()
		if back, s.reported.Ahead = rtsched.Ahead(rtsched.Load); s.reported.Ahead {
			defer back()
		}
	}
	before := runDelay()
	for ctx.Err() == nil {
		if s.reported.Ahead {
			s.breath.Take(clock.Mono())
		}
		if err := s.turn(); err != nil {
			return s.report(before), fmt.Errorf("serve truth: %w", err)
		}
	}
	return s.report(before), nil
}

var processing sync.Mutex

// processors changes the number of the Go scheduler's processors. It is relative, so that servers
// may end in any order.
func processors(change int) {
	processing.Lock()
	defer processing.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + change)
}

type server struct {
	poller
	plan  Plan
	timer int
	conns map[int32]*conn
	in    []byte

	options Options
	burn    burner
	breath  rtsched.Breath // that a thread ahead of others leaves them
	times   []Times

	due      []*action // the next one first
	armed    int64     // what the timer is set to, 0 for not at all
	seq      int64
	lateNs   float64 // in all
	reported Report  // but for the mean and the thread's own wait
}

// conn is a connection. Answers leave in the order of their requests, pipelined ones too.
type conn struct {
	fd   int32
	part []byte // of a request that has not come whole
	n    int64
	last int64 // the moment of the latest answer
	gone bool
}

// action is a part of an answer that is to leave at a moment.
type action struct {
	atNs int64
	seq  int64 // actions of one moment leave in the order of their requests
	c    *conn
	r    Reply
	sent int // bytes of it that have left

	delayed bool  // its moment was still to come when it was known
	n       int64 // the request's number, from 1
}

// push puts an action behind all that are due before it or with it.
func (s *server) push(a *action) {
	index, _ := slices.BinarySearchFunc(s.due, a, func(x, y *action) int {
		return cmp.Or(cmp.Compare(x.atNs, y.atNs), cmp.Compare(x.seq, y.seq))
	})
	s.due = slices.Insert(s.due, index, a)
}

func (s *server) open(l *net.TCPListener) (err error) {
	if err = s.poller.open(l); err != nil {
		return err
	}
	s.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return err
	}
	return s.watch(int32(s.timer), unix.EPOLLIN|unix.EPOLLET)
}

func (s *server) close() {
	for _, c := range s.conns {
		unix.Close(int(c.fd))
	}
	if s.timer >= 0 {
		unix.Close(s.timer)
	}
	s.poller.close()
}

// turn sends what is due and then waits for whichever comes first, a request or the next moment.
func (s *server) turn() error {
	for len(s.due) > 0 && s.due[0].atNs <= clock.Mono() {
		a := s.due[0]
		s.due[0], s.due = nil, s.due[1:]
		s.act(a)
	}
	timeout := idleMs
	if len(s.due) > 0 {
		wait := time.Duration(s.due[0].atNs-clock.Mono()) - spin
		if wait <= 0 {
			timeout = 0
		} else if err := s.arm(wait); err != nil {
			return err
		}
	}
	events, err := s.wait(timeout)
	for _, ev := range events {
		switch ev.Fd {
		case int32(s.timer):
			s.armed = 0
		case s.listener:
			s.accept(unix.EPOLLIN, func(fd int32) { s.conns[fd] = &conn{fd: fd} })
			// Who has started the server may have put it ahead, where it may not do so itself.
			s.reported.Ahead = s.options.Ahead && rtsched.IsAhead()
		default:
			if c := s.conns[ev.Fd]; c != nil {
				s.read(c)
			}
		}
	}
	return err
}

// arm sets the timer for the head of the queue, unless it is.
func (s *server) arm(wait time.Duration) error {
	if s.armed == s.due[0].atNs {
		return nil
	}
	s.armed = s.due[0].atNs
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
	return unix.TimerfdSettime(s.timer, 0, &spec, nil)
}

// drop ends a connection; what is still due on it will find it gone.
func (s *server) drop(c *conn, how End) {
	if c.gone {
		return
	}
	if how == Reset {
		// It fails on a connection that the peer has reset already, which is as well.
		_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER,
			&unix.Linger{Onoff: 1, Linger: 0})
	}
	c.gone = true
	delete(s.conns, c.fd)
	unix.Close(int(c.fd))
}

// read takes up what has come. The moment at which a request came is the one at which its last byte
// was read.
func (s *server) read(c *conn) {
	k, err := s.receive(c.fd, s.in)
	if err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	if k <= 0 || err != nil {
		s.drop(c, Close)
		return
	}
	b := s.in[:k]
	if len(c.part) > 0 {
		c.part = append(c.part, b...)
		b = c.part
	}
	now := clock.Mono()
	for !c.gone {
		m, ok := parse(b)
		if !ok {
			s.drop(c, Close)
			return
		}
		if m.size == 0 || m.size > len(b) {
			break
		}
		s.request(c, b[:m.size], m, now)
		b = b[m.size:]
	}
	c.part = append(c.part[:0], b...)
}

// message is what is understood of a request.
type message struct {
	size int  // with its body; 0: the head has not come whole
	head int  // without it
	last bool // the client wants the connection closed after the answer

	method, path []byte
}

// parse reads the request that b begins with; it is not ok when it is too long, or no request.
func parse(b []byte) (m message, ok bool) {
	end := bytes.Index(b, emptyLine)
	if end < 0 {
		return m, len(b) <= headMax
	}
	line, tail, _ := bytes.Cut(b[:end], emptyLine[:2])
	m.head = end + len(emptyLine)
	m.size = m.head
	m.method, m.path, _ = bytes.Cut(line, []byte(" "))
	m.path, _, _ = bytes.Cut(m.path, []byte(" "))
	m.last = bytes.HasSuffix(line, []byte("HTTP/1.0")) // a request to keep it is not heard
	for len(tail) > 0 {
		line, tail, _ = bytes.Cut(tail, emptyLine[:2])
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(value), 10, bodyBits)
			if err != nil {
				return m, false
			}
			m.size += int(n)
		case bytes.EqualFold(name, []byte("Connection")):
			m.last = m.last || bytes.EqualFold(value, []byte("close"))
		}
	}
	return m, true
}

// Parse returns what a Plan knows of a whole request, but for its numbers, and whether the client
// wants the connection closed after the answer. The fields are parts of the text.
func Parse(text []byte) (r Request, last bool) {
	m, ok := parse(text)
	if !ok || m.size == 0 {
		return Request{}, true
	}
	return Request{Method: m.method, Path: m.path, Body: text[m.head:]}, m.last
}

func (s *server) request(c *conn, text []byte, m message, now int64) {
	s.reported.Requests++
	c.n++
	r := s.plan(now, Request{N: s.reported.Requests, OnConn: c.n, Method: m.method, Path: m.path,
		Body: text[m.head:]})
	if s.options.Times && len(s.times) < maxTimes {
		s.times = append(s.times, Times{CameNs: now})
	}
	if r.At == Never {
		return
	}
	if m.last && r.Then == Keep {
		r.Then = Close
	}
	if r.Step <= 0 {
		r.First = len(r.Text)
	}
	r.At = max(r.At, c.last)
	c.last = r.At + int64(len(r.Text)-r.First)*int64(r.Step)
	s.seq++
	a := &action{atNs: r.At, seq: s.seq, c: c, r: r, delayed: r.At > now, n: s.reported.Requests}
	if a.delayed {
		s.push(a)
		return
	}
	s.act(a)
}

// act sends the part of an answer whose moment has come and puts the next one in the queue.
func (s *server) act(a *action) {
	if a.c.gone {
		return
	}
	first, began, processor := a.sent == 0, int64(0), int64(0)
	if a.r.Burn > 0 {
		began, processor = clock.Mono(), threadTime()
		s.burn.spend(a.r.Burn)
		processor = threadTime() - processor
		a.r.Burn = 0
	}
	text := a.r.Text[a.sent:]
	if a.sent == 0 {
		text = text[:a.r.First]
	} else {
		text = text[:1]
	}
	if a.delayed {
		late := clock.Mono() - a.atNs
		s.reported.Delayed++
		s.lateNs += float64(late)
		s.reported.LateMaxNs = max(s.reported.LateMaxNs, late)
	}
	if len(text) > 0 {
		if k, err := s.send(a.c.fd, text); err != nil || k < len(text) {
			s.drop(a.c, Close)
			return
		}
	}
	if first {
		s.noteTimes(a.n, began, processor)
	}
	a.sent += len(text)
	if a.sent < len(a.r.Text) {
		a.atNs += int64(a.r.Step)
		a.delayed = true
		s.push(a)
		return
	}
	if a.r.Then != Keep {
		s.drop(a.c, a.r.Then)
	}
}

// noteTimes records that the first part of an answer was written. Without a moment at which the
// server began to burn processor time for the request, the service began when the request came.
func (s *server) noteTimes(n, began, processor int64) {
	if n > int64(len(s.times)) {
		return
	}
	t := &s.times[n-1]
	t.LeftNs = clock.Mono()
	t.ServiceNs, t.ProcessorNs = t.LeftNs-cmp.Or(began, t.CameNs), processor
}

// burner spends processor time in a loop that does nothing but read the clock. Two readings are
// some 25 ns apart. If they are much further apart, the core did something else meanwhile, and this
// time does not count: an interrupt, another process, or another guest of the hypervisor, which not
// every kernel leaves out of a thread's processor time. The thread's own clock is also twenty times
// as expensive to read.
type burner struct{ interruptedNs int64 }

// calibrate finds the distance of two readings that shows an interruption: twenty times the usual
// distance, and at least a microsecond.
func (b *burner) calibrate() {
	gaps := make([]int64, 1000)
	last := clock.Mono()
	for i := range gaps {
		now := clock.Mono()
		gaps[i], last = now-last, now
	}
	slices.Sort(gaps)
	b.interruptedNs = max(20*gaps[len(gaps)/2], int64(time.Microsecond))
}

func (b *burner) spend(d time.Duration) {
	for last, spent := clock.Mono(), int64(0); spent < int64(d); {
		now := clock.Mono()
		if gap := now - last; gap < b.interruptedNs {
			spent += gap
		}
		last = now
	}
}

func threadTime() int64 {
	var t unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID,
		uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		panic("exact: Linux without a thread's CPU clock: " + errno.Error())
	}
	return t.Nano()
}

// runDelay is the second number of the thread's schedstat (Linux, scheduler/sched-stats.rst), 0
// where the kernel keeps none.
func runDelay() (ns int64) {
	text, _ := os.ReadFile("/proc/thread-self/schedstat")
	_, _ = fmt.Sscanf(string(text), "%d %d", new(int64), &ns) // nothing from nothing
	return ns
}

func (s *server) report(delayBefore int64) Report {
	out := s.reported
	if offset, err := clock.Kernel(); err == nil {
		out.Times = s.times
		Shift(out.Times, offset)
	}
	out.RunDelayNs = runDelay() - delayBefore
	if out.Delayed > 0 {
		out.LateMeanNs = s.lateNs / float64(out.Delayed)
	}
	return out
}
