package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// reset tests a reset by the peer while a request of size bytes is half written, or while the
// response is pending. The engine must report it once, as the operation that it interrupts.
func (s *suite) reset(size int, op engine.Op) func(t *testing.T) {
	return func(t *testing.T) {
		h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
			_, _ = io.ReadFull(c, make([]byte, min(size, 1<<20))) // short or not, it is reset now
			c.reset()
		}), 1)
		h.open()
		h.Send(0, pattern(size))
		end := h.end(0)
		reset := errors.Is(end.err, syscall.ECONNRESET) ||
			op == engine.Writing && errors.Is(end.err, syscall.EPIPE)
		if end.op != op || !reset {
			t.Errorf("told %v, %v; want it reset in %v", end.op, end.err, op)
		}
		h.quiet()
	}
}

// answerAndClose tests a response and the end of the connection in one go. The engine must report
// both, in order, without an error.
func (s *suite) answerAndClose(t *testing.T) {
	const size = 512<<10 + 5
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		_, _ = c.Read(make([]byte, 10))
		_, _ = c.Write(pattern(size)) // a lost answer fails the test anyway
	}), 3)
	h.open()
	for i := range h.slots {
		h.Send(i, []byte("hello"))
	}
	h.all("end", func(s *told) bool { return s.closed != nil })
	for i, s := range h.slots {
		if !bytes.Equal(s.got, pattern(size)) || s.closed[0] != (ending{engine.Reading, nil}) {
			t.Errorf("slot %d: %d bytes, %v", i, len(s.got), s.closed)
		}
	}
	h.quiet()
}

// halfClosed tests a peer that ends only its own direction. No response can follow, so this equals
// a close.
func (s *suite) halfClosed(t *testing.T) {
	remaining := make(chan []byte, 1)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		_, _ = io.WriteString(c, "last words") // lost ones fail the test anyway
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c) // a reset by the other side ends it as well
		remaining <- b
	}), 1)
	h.open()
	if end := h.end(0); end != (ending{engine.Reading, nil}) {
		t.Errorf("told %v, %v", end.op, end.err)
	}
	if got := string(h.slots[0].got); got != "last words" {
		t.Errorf("received %q", got)
	}
	h.quiet()
	select {
	case <-remaining:
	case <-time.After(time.Duration(bound)):
		t.Error("the engine's side stays open")
	}
}

// earlyAnswer tests a server that responds before it has read the request. The engine must report
// how much has not left. The connection is unfit for the next request, because the rest of the
// first would have to go out before it. The engine must report this and mix up no bytes.
func (s *suite) earlyAnswer(t *testing.T) {
	var observed bytes.Buffer
	used, remaining, finished := make(chan bool, 9), make(chan bool), make(chan bool)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		begun := make([]byte, 1)
		_, _ = io.ReadFull(c, begun) // what is lost fails the test anyway
		observed.Write(begun)
		say(t, c, "early")
		<-used
		say(t, c, " and the rest of it")
		close(remaining)
		_, _ = io.Copy(&observed, c) // until the end, however it ends
		close(finished)
	}), 1)
	first, second := pattern(32<<20), []byte("second request")
	h.onReceived = func(i int) {
		if n := h.Unsent(i); n <= 0 || n >= len(first) {
			t.Errorf("%d of %d bytes are unsent", n, len(first))
		}
		used <- true
		<-remaining // bytes of the first request's response must not count for the second
		h.Send(i, second)
	}
	h.onOpened = func(i int) { h.Send(i, first) }
	h.Open(0)
	end := h.end(0)
	if end.op != engine.Writing || end.err == nil || !strings.Contains(end.err.Error(), "before") {
		t.Errorf("told %v, %v; want a failed write in words", end.op, end.err)
	}
	if got := string(h.slots[0].got); got != "early" {
		t.Errorf("received %q", got)
	}
	h.Close(0)
	h.quiet()
	<-finished
	if n := observed.Len(); n >= len(first) || !bytes.Equal(observed.Bytes(), first[:n]) {
		t.Errorf("the server read %d bytes that are not the first request's beginning", n)
	}
}

// failedConnects tests connects that the peer refuses later, and connects that the own kernel
// refuses at once. The engine must never report them as opened.
func (s *suite) failedConnects(t *testing.T) {
	s.fails(t, refusing(t), syscall.ECONNREFUSED)
	// TCP to the loopback network's broadcast address fails inside connect(2).
	s.fails(t, netip.MustParseAddrPort("127.255.255.255:80"), syscall.ENETUNREACH, syscall.EACCES)
}

// rejectedConnects tests a firewall that rejects a connect by ICMP while the SYN is on its way out,
// or on its way in. The firewall's rules are in a network namespace of this test.
func (s *suite) rejectedConnects(t *testing.T) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil { // the thread ends with the test
		t.Skipf("no network of its own: %v", err)
	}
	for _, line := range []string{"ip link set lo up",
		"iptables -A INPUT -p tcp --dport 81 -j REJECT",
		"iptables -A OUTPUT -p tcp --dport 82 -j REJECT"} {
		args := strings.Fields(line)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no firewall: %s: %v: %s", line, err, out)
		}
	}
	for _, location := range []string{"127.0.0.1:81", "127.0.0.1:82"} {
		s.fails(t, netip.MustParseAddrPort(location), syscall.ECONNREFUSED)
	}
}

// fails opens connections to an address that accepts none.
func (s *suite) fails(t *testing.T, addr netip.AddrPort, want ...error) {
	t.Helper()
	before := descriptors(t)
	h := s.engine(t, addr, 3)
	built := descriptors(t)
	h.begin()
	h.all("refusals", func(s *told) bool { return s.closed != nil || s.opened > 0 })
	for i, s := range h.slots {
		good := len(s.closed) == 1 && s.closed[0].op == engine.Connecting &&
			slices.ContainsFunc(want, func(err error) bool {
				return errors.Is(s.closed[0].err, err)
			})
		if s.opened != 0 || !good {
			t.Errorf("%v, slot %d: opened %d times, told %v, want %v", addr, i, s.opened,
				s.closed, want)
		}
	}
	h.quiet()
	if n := descriptors(t); n > built {
		t.Errorf("%v: %d descriptors, %d before, %d with the engine", addr, n, before, built)
	}
}

// refusing returns an address without a listener.
func refusing(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// closedSlotsAreSilent tests that a slot can be closed before its failure was reported, and that
// the failure is then never reported.
func (s *suite) closedSlotsAreSilent(t *testing.T) {
	check := func(addr netip.AddrPort, early bool) {
		t.Helper()
		h := s.engine(t, addr, 3)
		h.Open(0)
		h.Open(1)
		if !early {
			h.wait(clock.Mono()) // the connects are on their way
			if h.slots[0].opened+len(h.slots[0].closed) > 0 {
				return // the outcome came too early for this test
			}
		}
		h.Close(0)
		h.Close(0) // closing twice must be harmless, as must closing what was never opened
		h.Close(2)
		h.pump("outcome of the other", func() bool {
			return h.slots[1].closed != nil || h.slots[1].opened > 0
		})
		h.quiet()
		if s := h.slots[0]; s.closed != nil || s.opened != 0 {
			t.Errorf("%v: heard of a closed slot: %v", addr, h)
		}
		if s := h.slots[2]; s.closed != nil || s.opened != 0 {
			t.Errorf("%v: heard of a slot that was never opened: %v", addr, h)
		}
	}
	for _, addr := range []netip.AddrPort{netip.MustParseAddrPort("127.255.255.255:80"),
		refusing(t), s.listen(t, "127.0.0.1:0", idle)} {
		check(addr, true)
		check(addr, false)
	}
}

// closedWhileSending tests that closing a connection also ends it at the peer, during a request
// that the peer does not read, and during one without a response. The slot's next connection must
// get no event of the old one, and unsent bytes must never be sent.
func (s *suite) closedWhileSending(t *testing.T) {
	closed, ended := make(chan bool), make(chan int64, 2)
	addr := s.listen(t, "127.0.0.1:0", func(c *peer) {
		b := make([]byte, 1)
		if _, err := c.Read(b); err != nil {
			return
		}
		if b[0] == '!' {
			_, _ = c.Write(b) // a lost answer fails the test anyway
			echo(c)
			return
		}
		<-closed
		n, _ := io.Copy(io.Discard, c) // a reset is an end, too
		ended <- n
	})
	h := s.engine(t, addr, 2)
	h.open()
	body := pattern(32 << 20)
	h.Send(0, body)
	h.Send(1, []byte("small"))
	for range 3 {
		h.wait(clock.Mono() + int64(time.Millisecond))
	}
	for i := range h.slots {
		h.Close(i)
		h.slots[i] = told{}
	}
	h.pump("close", func() bool { return sockets(t, addr.Port(), "01") == 0 }) // established
	h.open()
	close(closed)
	for range 2 {
		h.pump("end of the old connections", func() bool { return len(ended) > 0 })
		if n := <-ended; n >= int64(len(body)-1) {
			t.Errorf("%d bytes of the request arrived after its connection was closed", n)
		}
	}
	h.Send(0, []byte("!"))
	h.Send(1, []byte("!"))
	h.all("answer", func(s *told) bool { return s.got != nil })
	h.quiet()
	for i, s := range h.slots {
		if s.opened != 1 || string(s.got) != "!" || s.closed != nil {
			t.Errorf("slot %d: %v", i, h)
		}
	}
}

// closedWhileConnecting tests that a connect without a reply ends with its slot: the kernel must
// not retry it.
func (s *suite) closedWhileConnecting(t *testing.T) {
	// A backlog of 0 accepts two connections; further connects wait.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	bound := unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(unix.Bind(fd, &bound), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(sa.(*unix.SockaddrInet4).Port)
	h := s.engine(t, netip.AddrPortFrom(netip.AddrFrom4(bound.Addr), port), 6)
	h.begin()
	for range 3 {
		h.wait(clock.Mono() + int64(time.Millisecond))
	}
	asking := func() int { return sockets(t, port, "02") } // in state SYN_SENT
	if asking() == 0 {
		t.Skip("skipped: all connects were answered; nothing to see")
	}
	for i := range h.slots {
		h.Close(i)
	}
	// Otherwise the kernel would retry for two minutes.
	h.pump("end of all connects", func() bool { return asking() == 0 })
}

// sockets counts the sockets with a remote port and a state of /proc/net/tcp.
func sockets(t *testing.T, port uint16, state string) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) && f[3] == state {
			n++
		}
	}
	return n
}

// reopenedFromWithin tests that a handler can reopen or close the slot of its event.
func (s *suite) reopenedFromWithin(t *testing.T) {
	const turns = 30
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		b := make([]byte, 1)
		if _, err := c.Read(b); err == nil {
			_, _ = c.Write(b) // a lost answer fails the test anyway
		}
	}), 3)
	h.onOpened = func(i int) {
		if i == 2 { // closed as soon as it is open
			if h.Close(i); h.slots[i].opened < turns {
				h.Open(i)
			}
			return
		}
		h.Send(i, []byte{'a' + byte(i)})
	}
	h.onReceived = func(i int) {
		if i == 1 && h.slots[i].opened < turns { // closed before the peer does
			h.Close(i)
			h.Open(i)
		}
	}
	h.onClosed = func(i int) {
		if h.slots[i].opened < turns {
			h.Open(i)
		}
	}
	h.begin()
	h.pump("turns", func() bool {
		return len(h.slots[0].got) == turns && len(h.slots[1].got) == turns &&
			len(h.slots[0].closed) == turns && len(h.slots[1].closed) == 1 &&
			h.slots[2].opened == turns
	})
	h.quiet()
	for i, s := range h.slots[:2] {
		for _, end := range s.closed {
			if end != (ending{engine.Reading, nil}) {
				t.Errorf("slot %d ended by %v, %v", i, end.op, end.err)
			}
		}
		if s.opened != turns || string(s.got) != strings.Repeat(string(rune('a'+i)), turns) {
			t.Errorf("slot %d: %v", i, h)
		}
	}
	if s := h.slots[2]; s.opened != turns || s.got != nil || s.closed != nil {
		t.Errorf("slot 2: %v", h)
	}
}

// reusedSlot tests two events in one batch: the handler of the first renews the slot of the second.
// The second event belongs to a closed connection, and its successor in the slot must not receive
// it.
func (s *suite) reusedSlot(t *testing.T) {
	speak, spoken := make(chan bool), make(chan bool)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		<-speak
		say(t, c, "old")
		spoken <- true
		echo(c)
	}), 2)
	h.open()
	h.wait(clock.Mono()) // whatever opening has left to do
	for range h.slots {
		speak <- true
		<-spoken
	}
	var first, second int
	armed := true
	h.onReceived = func(i int) {
		if !armed {
			return
		}
		armed = false
		first, second = i, 1-i
		h.slots[second] = told{}
		h.Close(second)
		h.Open(second)
	}
	for armed { // a signal can end a Wait before it has looked
		h.wait(clock.Mono() + int64(time.Second))
	}
	if s := h.slots[second]; s.opened != 0 || s.got != nil || s.closed != nil {
		t.Errorf("the successor heard of its predecessor's event: %+v", s)
	}
	if string(h.slots[first].got) != "old" {
		t.Errorf("the first heard %q", h.slots[first].got)
	}
	h.pump("opening", func() bool { return h.slots[second].opened == 1 })
	h.wait(clock.Mono()) // whatever opening has left to do
	speak <- true
	<-spoken
	h.pump("answer", func() bool { return len(h.slots[second].got) == 3 })
	if s := h.slots[second]; s.opened != 1 || string(s.got) != "old" || s.closed != nil {
		t.Errorf("the successor: %+v", s)
	}
}

const child = "PRONY_TEST_CHILD"

// outOfDescriptors tests the limit on open files, in a process of its own. Slots beyond the limit
// must fail with advice, other slots must work, and so must all slots when the limit is lifted.
func (s *suite) outOfDescriptors(t *testing.T) {
	if os.Getenv(child) == "" {
		name := strings.ReplaceAll(t.Name(), "/", "$/^")
		cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
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
	h := s.engine(t, addr, 4)
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
	for i := range 2 {
		for err := error(nil); err == nil; { // use up descriptors; the runtime closes files late
			_, err = unix.Dup(0)
		}
		h.Open(i)
	}
	if _, err := s.make(addr, 1); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("an engine without descriptors: %v", err)
	}
	h.end(0) // a delayed engine may report slot 1 first
	end := h.end(1)
	if end.op != engine.Connecting || !strings.Contains(end.err.Error(), "ulimit -n") {
		t.Errorf("told %v, %v; want the limit on open files", end.op, end.err)
	}
	limit(old.Cur)
	h.open()
	for i, s := range h.slots {
		if s.opened != 1 || len(s.closed) != max(0, 1-i/2) {
			t.Errorf("slot %d: opened %d times, told %v", i, s.opened, s.closed)
		}
	}
	// At the limit, a connection that is closed makes room for the next.
	limit(uint64(highest(t)) + 1)
	h.Close(0)
	h.slots[0] = told{}
	h.Open(0)
	h.pump("reopening", func() bool { return h.slots[0].opened+len(h.slots[0].closed) > 0 })
	limit(old.Cur)
	if h.slots[0].opened != 1 {
		t.Errorf("a closed connection makes no room: %v", h)
	}
}

// highest returns the largest descriptor in use.
func highest(t *testing.T) int {
	t.Helper()
	for fd := 4096; ; fd-- {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			return fd
		}
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

// drained waits until about as many descriptors are open as before. The tolerance is for the
// server's side, which closes when its goroutine has run.
func drained(t *testing.T, before int) {
	t.Helper()
	for end := clock.Mono() + bound; descriptors(t) > before+20; time.Sleep(time.Millisecond) {
		if clock.Mono() > end {
			t.Fatalf("%d descriptors, before %d", descriptors(t), before)
		}
	}
}

// releaseCloses tests that Release closes all sockets. If each of 50 engines leaked one descriptor,
// more than the tolerated 20 would be left.
func (s *suite) releaseCloses(t *testing.T) {
	addr := s.listen(t, "127.0.0.1:0", idle)
	before := descriptors(t)
	for range 50 {
		e := s.ear(t, addr, 4)
		e.Open(0)
		e.Open(1)
		e.Close(1)
		e.Open(1)
		e.Release()
	}
	drained(t, before)
}

// releaseUnderWay tests Release with all kinds of requests under way: the peers must receive the
// end of their connections, and no descriptor may stay open.
func (s *suite) releaseUnderWay(t *testing.T) {
	const times = 10
	ended := make(chan bool, 3*times)
	addr := s.listen(t, "127.0.0.1:0", func(c *peer) {
		b := make([]byte, 1)
		if _, err := c.Read(b); err == nil && b[0] == 'a' {
			_, _ = io.WriteString(c, "answer that nobody reads") // lost or not
		} else if err == nil {
			time.Sleep(20 * time.Millisecond) // read nothing, so that the send stays under way
		}
		_, _ = io.Copy(io.Discard, c) // a reset is an end, too
		ended <- true
	})
	before := descriptors(t)
	body := append([]byte("b"), pattern(8<<20)...)
	for range times {
		h := s.ear(t, addr, 4)
		for i := range 3 {
			h.Open(i)
		}
		h.pump("open", func() bool {
			return h.slots[0].opened+h.slots[1].opened+h.slots[2].opened == 3
		})
		h.Send(0, []byte("a"))
		h.Send(1, body)
		h.wait(clock.Mono())
		h.Open(3) // not submitted, or not answered
		h.Release()
	}
	for range 3 * times {
		select {
		case <-ended:
		case <-time.After(time.Duration(bound)):
			t.Fatal("a connection outlives its engine")
		}
	}
	drained(t, before)
}
