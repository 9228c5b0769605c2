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

// spin is the time before a due time at which the thread stops sleeping and polls: more than the
// delay of a timer on an idle virtual machine, but small enough that a thousand responses a second
// cost a tenth of a core.
const spin = 100 * time.Microsecond

// idleMs limits a wait, because Go's collector, which stops all threads for a moment, must wait for
// threads in raw system calls.
const idleMs = 100

// Limits of a client's data.
const (
	headMax  = 64 << 10
	bodyBits = 24 // in the length of a body
)

// Times are the times of one request, by CLOCK_MONOTONIC in ns.
type Times struct {
	CameNs      int64 // its last byte was read
	LeftNs      int64 // its response, or the first part of it, was written; 0: never
	ServiceNs   int64 // from the begin of its service to LeftNs
	ProcessorNs int64 // processor time of the server's thread in ServiceNs; 0: none burned
}

// maxTimes limits the number of requests with recorded Times: the first ones.
const maxTimes = 1 << 20

// Options configure Serve.
type Options struct {
	// Ahead gives the server's thread real-time priority if permitted.
	Ahead bool
	// Times records the times of the first million requests.
	Times bool
}

// Report describes how exactly a server followed its Plan.
type Report struct {
	Requests   int64   `json:"requests"`   // number of requests
	Delayed    int64   `json:"delayed"`    // responses, or parts of them, that were due later
	LateMeanNs float64 `json:"lateMeanNs"` // mean delay of these after their due time
	LateMaxNs  int64   `json:"lateMaxNs"`
	RunDelayNs int64   `json:"runDelayNs"` // its thread was runnable but had to wait
	Ahead      bool    `json:"ahead"`      // its thread had real-time priority

	Times []Times `json:"-"` // in order of arrival, if Options.Times is set
}

// Serve runs a Plan on a listener until ctx ends, and then shuts the listener down; the caller
// closes it. One locked thread does everything. A timerfd, the kernel's high-resolution timer,
// wakes it shortly before each due time, and it polls for the rest. Go's timers wait in epoll_wait,
// whose resolution is a millisecond, and are up to that late on an idle machine.
//
// Clients that do not read their responses are disconnected.
func Serve(ctx context.Context, l *net.TCPListener, p Plan, o Options) (Report, error) {
	// The thread never yields its processor of the Go scheduler; ending ctx needs another one.
	processors(+1)
	defer processors(-1)
	return serve(ctx, l, &server{plan: p, options: o})
}

// Start runs a Plan on a free port of 127.0.0.1, in the process that sends the load. Its thread
// waits through Go's runtime: a load stops all threads for a moment when it starts, and a thread in
// a raw wait would delay it. stop ends the server.
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

// processors changes the number of the Go scheduler's processors by a difference, so that servers
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
	breath  rtsched.Breath // for threads with lower priority
	times   []Times

	due      []*action // next one first
	armed    int64     // time of the timer; 0: not set
	seq      int64
	lateNs   float64 // sum
	reported Report  // without the mean and the thread's run delay
}

// conn is a connection. Responses leave in the order of their requests, also pipelined ones.
type conn struct {
	fd   int32
	part []byte // of an incomplete request
	n    int64
	last int64 // time of the latest response
	gone bool
}

// action is a part of a response that is due at a time.
type action struct {
	atNs int64
	seq  int64 // keeps the order of requests at equal times
	c    *conn
	r    Reply
	sent int // number of sent bytes

	delayed bool  // it was due later when it was planned
	n       int64 // the request's number, from 1
}

// push inserts an action after all that are due at the same time or earlier.
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

// turn sends what is due and then waits for a request or the next due time.
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
			// The starter of the server may have set the priority, even if this process lacks the
			// right.
			s.reported.Ahead = s.options.Ahead && rtsched.IsAhead()
		default:
			if c := s.conns[ev.Fd]; c != nil {
				s.read(c)
			}
		}
	}
	return err
}

// arm sets the timer for the head of the queue, unless it is already set.
func (s *server) arm(wait time.Duration) error {
	if s.armed == s.due[0].atNs {
		return nil
	}
	s.armed = s.due[0].atNs
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
	return unix.TimerfdSettime(s.timer, 0, &spec, nil)
}

// drop ends a connection; its pending actions are skipped.
func (s *server) drop(c *conn, how End) {
	if c.gone {
		return
	}
	if how == Reset {
		// This fails if the peer has already reset the connection, which is fine.
		_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER,
			&unix.Linger{Onoff: 1, Linger: 0})
	}
	c.gone = true
	delete(s.conns, c.fd)
	unix.Close(int(c.fd))
}

// read processes received data. A request arrives when its last byte is read.
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

// message is a parsed request.
type message struct {
	size int  // with its body; 0: incomplete head
	head int  // size of the head
	last bool // the client wants the connection closed after the response

	method, path []byte
}

// parse parses the request at the begin of b; ok is false if it is too long or malformed.
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
	m.last = bytes.HasSuffix(line, []byte("HTTP/1.0")) // Connection: keep-alive is ignored
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

// Parse returns a complete request for a Plan, without its numbers, and whether the client wants
// the connection closed after the response. The fields refer to text.
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

// act sends the due part of a response and queues the next one.
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

// noteTimes records that the first part of a response was written. Unless the server burned
// processor time for the request, the service began when the request arrived.
func (s *server) noteTimes(n, began, processor int64) {
	if n > int64(len(s.times)) {
		return
	}
	t := &s.times[n-1]
	t.LeftNs = clock.Mono()
	t.ServiceNs, t.ProcessorNs = t.LeftNs-cmp.Or(began, t.CameNs), processor
}

// burner spends processor time in a loop that only reads the clock. Two readings are about 25 ns
// apart. A much longer gap means that the core did something else, and does not count: an
// interrupt, another process, or another guest of the hypervisor, which not every kernel excludes
// from a thread's processor time. The thread's own clock is also twenty times as expensive to read.
type burner struct{ interruptedNs int64 }

// calibrate sets the gap that counts as an interruption: twenty times the usual gap, at least a
// microsecond.
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

// runDelay returns the second number of the thread's schedstat (Linux, scheduler/sched-stats.rst),
// or 0 if the kernel lacks it.
func runDelay() (ns int64) {
	text, _ := os.ReadFile("/proc/thread-self/schedstat")
	_, _ = fmt.Sscanf(string(text), "%d %d", new(int64), &ns) // 0 if it is unreadable
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
