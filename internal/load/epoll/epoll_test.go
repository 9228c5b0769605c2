package epoll

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/clock"
	"prony/internal/load"
)

// told is what a Handler heard of one slot.
type told struct {
	opened int
	got    []byte
	closed []ending
}

type ending struct {
	op  load.Op
	err error
}

// ear is a Handler that remembers.
type ear struct {
	slots      []told
	onOpened   func(i int)
	onReceived func(i int, b []byte)
}

func (h *ear) Opened(i int, _ int64) {
	h.slots[i].opened++
	if h.onOpened != nil {
		h.onOpened(i)
	}
}

func (h *ear) Received(i int, _ int64, b []byte) {
	h.slots[i].got = append(h.slots[i].got, b...)
	if h.onReceived != nil {
		h.onReceived(i, b)
	}
}

func (h *ear) Closed(i int, _ int64, op load.Op, err error) {
	h.slots[i].closed = append(h.slots[i].closed, ending{op, err})
}

// bound ends a test that would otherwise hang; nothing is measured by it.
const bound = int64(20 * time.Second)

func engine(t *testing.T, addr netip.AddrPort, slots int) (*Engine, *ear) {
	t.Helper()
	e, err := New(addr, slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Release)
	return e, &ear{slots: make([]told, slots)}
}

// pump waits until the condition holds.
func pump(t *testing.T, e *Engine, h *ear, what string, until func() bool) {
	t.Helper()
	for end := clock.Mono() + bound; !until(); {
		if clock.Mono() > end {
			t.Fatalf("%s: still not so; heard %+v", what, summary(h))
		}
		if err := e.Wait(clock.Mono()+int64(10*time.Millisecond), h); err != nil {
			t.Fatal(err)
		}
	}
}

// readable waits until a slot's socket has something to read, behind the engine's back.
func readable(t *testing.T, e *Engine, slot int) {
	t.Helper()
	fds := []unix.PollFd{{Fd: e.slots[slot].fd, Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(bound/1e6))
		if err == nil && n == 1 {
			return
		}
		if err != unix.EINTR {
			t.Errorf("poll: %d, %v", n, err)
			return
		}
	}
}

func summary(h *ear) (out []any) {
	for _, s := range h.slots {
		out = append(out, s.opened, len(s.got), s.closed)
	}
	return out
}

// connected opens all slots.
func connected(t *testing.T, e *Engine, h *ear) {
	t.Helper()
	for i := range h.slots {
		e.Open(i)
	}
	pump(t, e, h, "open", func() bool {
		return !slices.ContainsFunc(h.slots, func(s told) bool { return s.opened == 0 })
	})
}

// listen serves each connection with f on a goroutine of its own.
func listen(t *testing.T, addr string, f func(c *net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// echo sends back what it reads.
func echo(c *net.TCPConn) {
	_, _ = io.Copy(c, c) // ends with the connection, however that ends
}

// pattern is n bytes of which none is like its neighbours.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return b
}

// Requests of 32 MiB to a server that reads them in pieces with pauses: the kernel takes them in
// parts, and they arrive whole, one after the other.
func TestPartialWrites(t *testing.T) {
	body := pattern(32 << 20)
	want := sha256.Sum256(body)
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		buf := make([]byte, 512<<10)
		for {
			h := sha256.New()
			for n := 0; n < len(body); {
				k, err := c.Read(buf)
				if err != nil {
					return
				}
				h.Write(buf[:k])
				n += k
				time.Sleep(time.Millisecond)
			}
			_, _ = c.Write(h.Sum(nil)) // a lost answer fails the test anyway
		}
	})
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	for range 2 {
		h.slots[0].got = nil
		e.Send(0, body)
		if e.slots[0].rest == nil {
			t.Skip("the kernel took 32 MiB at once: nothing to see")
		}
		pump(t, e, h, "answer", func() bool {
			return len(h.slots[0].got) == sha256.Size || h.slots[0].closed != nil
		})
		if !bytes.Equal(h.slots[0].got, want[:]) {
			t.Fatalf("the server read other bytes; heard %+v", summary(h))
		}
	}
}

// Answers of all sizes around the read buffer's arrive whole, and the connection is good for the
// next.
func TestLargeAnswers(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		for {
			var size [4]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			if _, err := c.Write(pattern(int(binary.LittleEndian.Uint32(size[:])))); err != nil {
				return
			}
		}
	})
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	for _, n := range []int{1, 1000, readSize - 1, readSize, readSize + 1, 2 * readSize,
		3*readSize + 7, 5 << 20, 1} {
		h.slots[0].got = nil
		e.Send(0, binary.LittleEndian.AppendUint32(nil, uint32(n)))
		pump(t, e, h, "answer", func() bool { return len(h.slots[0].got) >= n })
		if !bytes.Equal(h.slots[0].got, pattern(n)) || h.slots[0].closed != nil {
			t.Fatalf("answer of %d bytes: heard %+v", n, summary(h))
		}
	}
}

// The peer resets while a large request is half written: told once, as a write.
func TestResetWhileWriting(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1<<20)) // short or not, it is reset now
		_ = c.SetLinger(0)
	})
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	e.Send(0, pattern(32<<20))
	if e.slots[0].rest == nil {
		t.Skip("the kernel took 32 MiB at once: nothing to see")
	}
	pump(t, e, h, "end", func() bool { return h.slots[0].closed != nil })
	end := h.slots[0].closed[0]
	reset := errors.Is(end.err, syscall.ECONNRESET) || errors.Is(end.err, syscall.EPIPE)
	if end.op != load.Writing || !reset {
		t.Errorf("told %v, %v; want a failed write", end.op, end.err)
	}
	for range 3 {
		if err := e.Wait(clock.Mono(), h); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.slots[0].closed); n != 1 {
		t.Errorf("told %d times: %+v", n, summary(h))
	}
}

// The peer resets a connection that waits for an answer: a read.
func TestResetWhileReading(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 10))
		_ = c.SetLinger(0)
	})
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	e.Send(0, []byte("hello"))
	pump(t, e, h, "end", func() bool { return h.slots[0].closed != nil })
	end := h.slots[0].closed[0]
	if end.op != load.Reading || !errors.Is(end.err, syscall.ECONNRESET) {
		t.Errorf("told %v, %v; want a reset read", end.op, end.err)
	}
}

// An answer and the end of the connection, in one go: both are told, in order, and no error.
func TestAnswerAndClose(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 10))
		_, _ = c.Write(pattern(2*readSize + 5)) // a lost answer fails the test anyway
	})
	e, h := engine(t, addr, 3)
	connected(t, e, h)
	for i := range h.slots {
		e.Send(i, []byte("hello"))
	}
	pump(t, e, h, "ends", func() bool {
		return !slices.ContainsFunc(h.slots, func(s told) bool { return s.closed == nil })
	})
	for i, s := range h.slots {
		whole := bytes.Equal(s.got, pattern(2*readSize+5))
		if !whole || s.closed[0] != (ending{load.Reading, nil}) {
			t.Errorf("slot %d: %d bytes, %v", i, len(s.got), s.closed)
		}
	}
}

// A server that answers before it has taken the request leaves the connection unfit for the next:
// the rest of the first request would have to go out before it. That is told, and no byte is mixed
// up.
func TestAnswerBeforeTheRequestIsWhole(t *testing.T) {
	var seen bytes.Buffer
	taken, finished := make(chan bool, 9), make(chan bool)
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Write([]byte("early")) // a lost answer fails the test anyway
		<-taken
		_, _ = c.Write([]byte(" and the rest of it"))
		_, _ = io.Copy(&seen, c) // until the end, however it ends
		close(finished)
	})
	e, h := engine(t, addr, 1)
	first, second := pattern(32<<20), []byte("second request")
	h.onReceived = func(i int, _ []byte) {
		taken <- true
		// What belongs to the first request must not be taken for the second's answer.
		readable(t, e, i)
		e.Send(i, second)
	}
	h.onOpened = func(i int) { e.Send(i, first) }
	e.Open(0)
	pump(t, e, h, "end", func() bool { return h.slots[0].closed != nil })
	end := h.slots[0].closed[0]
	if end.op != load.Writing || end.err == nil || !strings.Contains(end.err.Error(), "before") {
		t.Errorf("told %v, %v; want a failed write in words", end.op, end.err)
	}
	if got := string(h.slots[0].got); got != "early" {
		t.Errorf("received %q", got)
	}
	e.Close(0)
	<-finished
	if n := seen.Len(); n >= len(first) || !bytes.Equal(seen.Bytes(), first[:n]) {
		t.Errorf("the server read %d bytes that are not the first request's beginning", n)
	}
}

// Connects that fail: later, by the peer, and at once, by the own kernel. None is ever told as
// opened.
func TestFailedConnects(t *testing.T) {
	check := func(addr netip.AddrPort, want ...error) {
		t.Helper()
		e, h := engine(t, addr, 3)
		for i := range h.slots {
			e.Open(i)
		}
		pump(t, e, h, "refusals", func() bool {
			return !slices.ContainsFunc(h.slots, func(s told) bool {
				return s.closed == nil && s.opened == 0
			})
		})
		for i, s := range h.slots {
			good := len(s.closed) == 1 && s.closed[0].op == load.Connecting &&
				slices.ContainsFunc(want, func(err error) bool {
					return errors.Is(s.closed[0].err, err)
				})
			if s.opened != 0 || !good || e.slots[i].fd != -1 {
				t.Errorf("%v, slot %d: opened %d times, told %v, want %v", addr, i, s.opened,
					s.closed, want)
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	check(free, syscall.ECONNREFUSED)
	// TCP to the loopback network's broadcast address fails inside connect(2).
	check(netip.MustParseAddrPort("127.255.255.255:80"), syscall.ENETUNREACH, syscall.EACCES)
}

// A slot whose failure was not told yet may be closed; then it never is.
func TestClosedSlotsAreSilent(t *testing.T) {
	e, h := engine(t, netip.MustParseAddrPort("127.255.255.255:80"), 2)
	e.Open(0)
	e.Open(1)
	e.Close(0)
	pump(t, e, h, "failure of the other", func() bool { return h.slots[1].closed != nil })
	if h.slots[0].closed != nil || h.slots[0].opened != 0 {
		t.Errorf("heard of a closed slot: %+v", summary(h))
	}
}

const child = "PRONY_TEST_CHILD"

// Out of descriptors, in a process of its own: the slots beyond the limit are told with what to do
// about it, the others work, and when the limit is lifted so do they.
func TestOutOfDescriptors(t *testing.T) {
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOutOfDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	// The kernel opens connections by itself; accepting them would take descriptors.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	e, h := engine(t, addr, 4)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	limit := func(n uint64) {
		t.Helper()
		l := unix.Rlimit{Cur: n, Max: old.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			t.Fatal(err)
		}
	}
	limit(256)
	for { // plug every hole
		if _, err := unix.Dup(0); err != nil {
			break
		}
	}
	e.Open(0)
	e.Open(1)
	if _, err := New(addr, 1); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("an engine without descriptors: %v", err)
	}
	pump(t, e, h, "failures", func() bool {
		return h.slots[0].closed != nil && h.slots[1].closed != nil
	})
	end := h.slots[1].closed[0]
	if end.op != load.Connecting || !strings.Contains(end.err.Error(), "ulimit -n") {
		t.Errorf("told %v, %v; want the limit on open files", end.op, end.err)
	}
	limit(old.Cur)
	connected(t, e, h)
	for i, s := range h.slots {
		if s.opened != 1 || len(s.closed) != max(0, 1-i/2) {
			t.Errorf("slot %d: opened %d times, told %v", i, s.opened, s.closed)
		}
	}
}

func TestIPv6(t *testing.T) {
	addr := listen(t, "[::1]:0", echo)
	e, h := engine(t, addr, 2)
	connected(t, e, h)
	e.Send(1, []byte("six"))
	pump(t, e, h, "echo", func() bool { return string(h.slots[1].got) == "six" })
	// An IPv4 address in IPv6's clothes is IPv4.
	mapped := listen(t, "127.0.0.1:0", echo)
	mapped = netip.AddrPortFrom(netip.AddrFrom16(mapped.Addr().As16()), mapped.Port())
	e, h = engine(t, mapped, 1)
	connected(t, e, h)
	e.Send(0, []byte("four"))
	pump(t, e, h, "echo", func() bool { return string(h.slots[0].got) == "four" })
}

// Two slots have something to read in one batch of events; the handler of the one that comes first
// renews the other. The other's event is of a connection that is gone, and its successor in the
// slot must not hear of it.
func TestEventsOfAReusedSlotAreIgnored(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		b := make([]byte, 1)
		if n, err := c.Read(b); n == 1 && err == nil {
			_, _ = c.Write([]byte("old")) // a lost answer fails the test anyway
		}
		echo(c)
	})
	e, h := engine(t, addr, 2)
	connected(t, e, h)
	var first, other int
	armed := false
	h.onReceived = func(i int, _ []byte) {
		if !armed {
			return
		}
		armed = false
		first, other = i, 1-i
		h.slots[other] = told{}
		e.Close(other)
		e.Open(other)
	}
	e.Send(0, []byte("?"))
	e.Send(1, []byte("?"))
	readable(t, e, 0) // both answers are there before the engine looks
	readable(t, e, 1)
	armed = true
	for armed { // a signal may end a Wait before it has looked
		if err := e.Wait(clock.Mono()+int64(time.Second), h); err != nil {
			t.Fatal(err)
		}
	}
	if s := h.slots[other]; s.opened != 0 || s.got != nil || s.closed != nil {
		t.Errorf("the successor heard of its predecessor's event: %+v", s)
	}
	if string(h.slots[first].got) != "old" {
		t.Errorf("the first heard %q", h.slots[first].got)
	}
	pump(t, e, h, "opening", func() bool { return h.slots[other].opened == 1 })
	e.Send(other, []byte("!"))
	pump(t, e, h, "answer", func() bool { return len(h.slots[other].got) == 3 })
	if s := h.slots[other]; s.opened != 1 || string(s.got) != "old" || s.closed != nil {
		t.Errorf("the successor: %+v", s)
	}
}

// From the write to the answer nothing is allocated.
func TestRoundTripsDoNotAllocate(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	})
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	h.slots[0].got = make([]byte, 0, 1<<20)
	request := []byte("hello")
	round := func(n int) {
		for range n {
			want := len(h.slots[0].got) + len(request)
			e.Send(0, request)
			for len(h.slots[0].got) < want {
				if err := e.Wait(clock.Mono()+int64(time.Second), h); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	round(100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	round(1000)
	runtime.ReadMemStats(&after)
	// The test's own server and the runtime may allocate now and then, not once a request.
	if n := after.Mallocs - before.Mallocs; n > 100 {
		t.Errorf("%d allocations for 1000 round trips", n)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count descriptors: %v", err)
	}
	return len(entries)
}

func TestReleaseClosesEverything(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1)) })
	before := descriptors(t)
	for range 50 {
		e, err := New(addr, 4)
		if err != nil {
			t.Fatal(err)
		}
		e.Open(0)
		e.Open(1)
		e.Close(1)
		e.Open(1)
		e.Release()
	}
	// The server's sides close when their goroutines have run; 50 leaks of 4 would be more than
	// that.
	for end := clock.Mono() + bound; descriptors(t) > before+20; time.Sleep(time.Millisecond) {
		if clock.Mono() > end {
			t.Fatalf("%d descriptors, before %d", descriptors(t), before)
		}
	}
}
