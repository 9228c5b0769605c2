// Package enginetest is the conformance test suite for engines of the load generator. It uses only
// the interface engine.Engine; the servers are goroutines of the same process.
package enginetest

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// bound ends a test that would otherwise hang; it does not affect results.
const bound = int64(20 * time.Second)

// Make returns an engine for a number of slots, all for one address.
type Make func(netip.AddrPort, int) (engine.Engine, error)

// Run runs the suite against engines that make returns.
func Run(t *testing.T, make Make) { (&suite{make: make}).run(t, nil) }

// RunDelayed runs the suite against engines that hold bytes and events for a time.
func RunDelayed(t *testing.T, make Make) {
	(&suite{make: make}).run(t, delayedWithout)
}

// delayedWithout are the tests that do not fit engines that hold bytes and events.
var delayedWithout = []string{
	"answer before the request is whole", // both parts of the response are held
	"past deadlines poll",                // what is held is not due
}

// run runs the suite without the named tests.
func (s *suite) run(t *testing.T, without []string) {
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"large requests arrive whole", s.largeRequests},
		{"answers of all sizes", s.answersOfAllSizes},
		{"bytes stay with their connection", s.bytesStayApart},
		{"many connects at once", s.manyConnects},
		{"version 6 of IP", s.version6},
		{"round trips do not allocate", s.noAllocations},
		{"reset while writing", s.reset(32<<20, engine.Writing)},
		{"reset while reading", s.reset(5, engine.Reading)},
		{"answer and close", s.answerAndClose},
		{"half closed", s.halfClosed},
		{"answer before the request is whole", s.earlyAnswer},
		{"failed connects", s.failedConnects},
		{"connects that a firewall refuses", s.rejectedConnects},
		{"closed slots are silent", s.closedSlotsAreSilent},
		{"closed while it sends", s.closedWhileSending},
		{"closed while it connects", s.closedWhileConnecting},
		{"reopened from within", s.reopenedFromWithin},
		{"events of a reused slot", s.reusedSlot},
		{"out of descriptors", s.outOfDescriptors},
		{"release closes everything", s.releaseCloses},
		{"release with requests under way", s.releaseUnderWay},
		{"past deadlines poll", s.pastDeadlines},
		{"never early", s.neverEarly},
		{"no wake-up is missed", s.noWakeUpIsMissed},
		{"no deadline", s.noDeadline},
	} {
		if !slices.Contains(without, row.name) {
			t.Run(row.name, func(t *testing.T) { s.alone(t, row.test) })
		}
	}
}

type suite struct {
	make   Make
	server *tls.Config // nil: no TLS
	built  []engine.Engine

	// stream serves a peer as an HTTP/2 stream or a gRPC call; nil: a peer is a connection.
	stream func(w http.ResponseWriter, r *http.Request, tcp *net.TCPConn, f func(c *peer))

	allocates uint64 // tolerated allocations per round trip
}

// alone runs a test on a thread of its own, because an engine can be bound to a thread. It blocks
// the signal by which the runtime preempts goroutines; otherwise the signal would end every wait
// eventually and hide a missed wake-up. Without the signal, the garbage collector must not run
// either, because it would wait for this thread.
//
// t.Fatal ends the goroutine that calls it, here the wrong one; the test's goroutine waits for its
// end and returns, which has the same effect.
func (s *suite) alone(t *testing.T, test func(*testing.T)) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	procs := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) // a raw system call blocks one
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.release()      // an engine belongs to the thread that made it
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		var set unix.Sigset_t
		set.Val[0] = 1 << (unix.SIGURG - 1)
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
			t.Errorf("block SIGURG: %v", err)
		}
		test(t)
	}()
	select {
	case <-done:
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	case <-time.After(time.Duration(2 * bound)):
		t.Fatal("the wait does not end") // leave GOMAXPROCS: changing it stops all threads
	}
}

// told records the events of one slot.
type told struct {
	opened int
	got    []byte
	closed []ending
}

type ending struct {
	op  engine.Op
	err error
}

// ear is an engine and a Handler that records events.
type ear struct {
	engine.Engine
	t          *testing.T
	slots      []told
	began      int64 // start of the Wait under way
	onOpened   func(i int)
	onReceived func(i int)
	onClosed   func(i int)
}

// release releases the engines of a test.
func (s *suite) release() {
	for _, e := range s.built {
		e.Release()
	}
	s.built = nil
}

// engine returns an engine that is released with the test.
func (s *suite) engine(t *testing.T, addr netip.AddrPort, slots int) *ear {
	t.Helper()
	h := s.ear(t, addr, slots)
	s.built = append(s.built, h.Engine)
	return h
}

// ear returns an engine that the test must release.
func (s *suite) ear(t *testing.T, addr netip.AddrPort, slots int) *ear {
	t.Helper()
	e, err := s.make(addr, slots)
	if err != nil {
		t.Fatal(err)
	}
	none := func(int) {}
	return &ear{Engine: e, t: t, slots: make([]told, slots), onOpened: none, onReceived: none,
		onClosed: none}
}

// Opened implements engine.Handler.
func (h *ear) Opened(i int, atNs int64) {
	h.stamp(atNs)
	h.slots[i].opened++
	h.onOpened(i)
}

// Received implements engine.Handler.
func (h *ear) Received(i int, atNs int64, b []byte) {
	h.stamp(atNs)
	if len(b) == 0 {
		h.t.Errorf("slot %d: received nothing", i)
	}
	h.slots[i].got = append(h.slots[i].got, b...)
	h.onReceived(i)
}

// Closed implements engine.Handler.
func (h *ear) Closed(i int, atNs int64, op engine.Op, err error) {
	h.stamp(atNs)
	h.slots[i].closed = append(h.slots[i].closed, ending{op, err})
	h.onClosed(i)
}

// stamp checks that the moment of an event lies within the current Wait.
func (h *ear) stamp(atNs int64) {
	if now := clock.Mono(); atNs < h.began || atNs > now {
		h.t.Errorf("told at %d in a wait from %d to %d", atNs, h.began, now)
	}
}

func (h *ear) wait(deadline int64) {
	h.t.Helper()
	h.began = clock.Mono()
	if err := h.Wait(deadline, h); err != nil {
		h.t.Fatal(err)
	}
}

// pump waits until the condition holds.
func (h *ear) pump(subject string, until func() bool) {
	h.t.Helper()
	for end := clock.Mono() + bound; !until(); {
		if clock.Mono() > end {
			h.t.Fatalf("%s: still not so; heard %v", subject, h)
		}
		h.wait(clock.Mono() + int64(10*time.Millisecond))
	}
}

// all pumps until the condition holds for each slot.
func (h *ear) all(subject string, ok func(s *told) bool) {
	h.t.Helper()
	h.pump(subject, func() bool {
		return !slices.ContainsFunc(h.slots, func(s told) bool { return !ok(&s) })
	})
}

// begin opens all slots. Method open also waits until they are open.
func (h *ear) begin() {
	for i := range h.slots {
		h.Open(i)
	}
}

func (h *ear) open() {
	h.t.Helper()
	h.begin()
	h.all("open", func(s *told) bool { return s.opened > 0 })
}

// end pumps until slot i has ended and returns how.
func (h *ear) end(i int) ending {
	h.t.Helper()
	h.pump("end", func() bool { return h.slots[i].closed != nil })
	return h.slots[i].closed[0]
}

// quiet polls a few times and reports unexpected events.
func (h *ear) quiet() {
	h.t.Helper()
	before := h.String()
	for range 5 {
		h.wait(clock.Mono() + int64(time.Millisecond))
	}
	if after := h.String(); after != before {
		h.t.Errorf("heard more than was to be: %s, before %s", after, before)
	}
}

// idle reads one byte and writes nothing.
func idle(c *peer) { _, _ = c.Read(make([]byte, 1)) }

// echo sends back what it reads.
func echo(c *peer) {
	_, _ = io.Copy(c, c) // ends with the connection, however that ends
}

// say writes and waits until the other side's kernel has the bytes, so that they can be read there.
func say(t *testing.T, c *peer, text string) {
	if _, err := io.WriteString(c, text); err != nil {
		t.Errorf("write: %v", err)
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	end := clock.Mono() + bound
	for remaining := 1; remaining > 0; time.Sleep(100 * time.Microsecond) {
		var item error
		if clock.Mono() > end {
			t.Errorf("%q is not acknowledged", text)
			return
		}
		err = raw.Control(
			func(fd uintptr) { remaining, item = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) },
		)
		if err != nil || item != nil {
			t.Errorf("look for what is unacknowledged: %v, %v", err, item)
			return
		}
	}
}

// pattern returns n bytes that are unlike their neighbors.
func pattern(n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return b[:n]
}
