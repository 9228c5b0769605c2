package truth_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony/internal/clock"
	"prony/internal/tests"
	"prony/internal/truth"
)

const ms = time.Millisecond

// client is a connection that does nothing of its own accord.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, to netip.AddrPort) *client {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	// A server that does not answer must fail the test, not hang it.
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// answer reads one answer as net/http understands it.
func (c *client) answer() (status int, body string, last bool, err error) {
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, "", false, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), r.Close, err
}

// want asks once, demands status 200 and the body, and returns how long that took.
func (c *client) want(body string) time.Duration {
	c.t.Helper()
	began := clock.Mono()
	c.send(request)
	status, got, _, err := c.answer()
	if err != nil || status != 200 || got != body {
		c.t.Fatalf("answer is %d %q, %v; want 200 %q", status, got, err, body)
	}
	return time.Duration(clock.Mono() - began)
}

// ended tells how the server ends the connection: nil for an orderly close.
func (c *client) ended() error {
	c.t.Helper()
	b, err := io.ReadAll(c.in)
	if len(b) > 0 {
		c.t.Errorf("%q came before the end", b)
	}
	return err
}

func serve(t *testing.T, h truth.Handler) *truth.Server {
	t.Helper()
	tests.Cores(t)
	s, err := truth.Serve(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// atOnce asks on n connections at the same time and returns when each had its answer, from the
// first one's sending.
func atOnce(t *testing.T, s *truth.Server, n int) []time.Duration {
	t.Helper()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial(t, s.Addr)
	}
	took := make([]time.Duration, n)
	began := clock.Mono()
	var wg sync.WaitGroup
	for i, c := range clients {
		c.send(request)
		wg.Go(func() {
			if _, _, _, err := c.answer(); err != nil {
				t.Error(err)
			}
			took[i] = time.Duration(clock.Mono() - began)
		})
	}
	wg.Wait()
	return took
}

func TestRequestIsUnderstood(t *testing.T) {
	seen := make(chan truth.Request, 4)
	s := serve(t, func(c *truth.Conn, r *truth.Request) bool {
		seen <- *r
		return c.Answer(201, "made")
	})
	check := func(c *client, text string, n, onConn int64, method, path, body string) {
		t.Helper()
		c.send(text)
		status, got, _, err := c.answer()
		if err != nil || status != 201 || got != "made" {
			t.Fatalf("answer is %d %q, %v", status, got, err)
		}
		r := <-seen
		if r.N != n || r.OnConn != onConn || r.Method != method || r.Path != path ||
			string(r.Body) != body {
			t.Errorf("request is %+v (body %q)", r, r.Body)
		}
	}
	a, b := dial(t, s.Addr), dial(t, s.Addr)
	check(a, request, 1, 1, "GET", "/", "")
	check(a, "POST /p?q=1 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc", 2, 2, "POST", "/p?q=1", "abc")
	check(b, request, 3, 1, "GET", "/", "")
	if s.Requests.Load() != 3 || s.Accepted.Load() != 2 {
		t.Errorf("%d requests on %d connections, want 3 on 2", s.Requests.Load(), s.Accepted.Load())
	}
	for _, length := range []string{"-1", "1e3", "16777216"} { // the last is 2^24, a byte too many
		c := dial(t, s.Addr)
		c.send("POST / HTTP/1.1\r\nContent-Length: " + length + "\r\n\r\n")
		if err := c.ended(); err != nil {
			t.Errorf("Content-Length %s: connection ends with %v", length, err)
		}
	}
}

// Delays have only a lower bound here: a timer may be late on a busy machine, never early.
func TestAfter(t *testing.T) {
	s := serve(t, truth.After(20*ms, truth.Hello("ok")))
	c := dial(t, s.Addr)
	for range 3 {
		if took := c.want("ok"); took < 20*ms {
			t.Errorf("answered after %v, want at least 20 ms", took)
		}
	}
	// There is no queue: the handlers of four requests are all in their delay before one ends it.
	var gate sync.WaitGroup
	gate.Add(4)
	s = serve(t, truth.After(20*ms, func(c *truth.Conn, _ *truth.Request) bool {
		gate.Done()
		gate.Wait()
		return c.Answer(200, "ok")
	}))
	for _, took := range atOnce(t, s, 4) {
		if took < 20*ms {
			t.Errorf("one of four is answered after %v, want at least 20 ms", took)
		}
	}
}

func TestOneAtATimeSerialises(t *testing.T) {
	var now, most int // of requests being served; a race, too, if two ever are
	s := serve(t, truth.OneAtATime(func(c *truth.Conn, _ *truth.Request) bool {
		now++
		most = max(most, now)
		time.Sleep(5 * ms)
		now--
		return c.Answer(200, "ok")
	}))
	took := atOnce(t, s, 6)
	if last := longest(took); most != 1 || last < 6*5*ms {
		t.Errorf("%d at a time, all six done after %v; want 1 and at least 6 × 5 ms", most, last)
	}
}

func longest(took []time.Duration) (d time.Duration) {
	for _, x := range took {
		d = max(d, x)
	}
	return d
}

// Of ten at once, request k is answered k·10 ms after they came: the last after 100 ms, and all
// together have waited for (1 + 2 + … + 10)·10 = 550 ms.
func TestQueue(t *testing.T) {
	s := serve(t, truth.Queue(10*ms, truth.Hello("ok")))
	took := atOnce(t, s, 10)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	if last := longest(took); last < 100*ms || sum < 550*ms {
		t.Errorf("the last took %v, all together %v; want at least 100 and 550 ms", last, sum)
	}
	// A queue that has run empty owes nothing: 10 ms after an idle time too.
	c := dial(t, s.Addr)
	c.want("ok")
	time.Sleep(15 * ms)
	if d := c.want("ok"); d < 10*ms {
		t.Errorf("answered after %v, want at least 10 ms", d)
	}
}

func TestEvery(t *testing.T) {
	s := serve(t, truth.Every(3, truth.Hello("third"), truth.Hello("ok")))
	a, b := dial(t, s.Addr), dial(t, s.Addr)
	for i, body := range []string{"ok", "ok", "third", "ok", "ok", "third", "ok"} {
		// The count is the server's, not the connection's.
		if i%2 == 0 {
			a.want(body)
		} else {
			b.want(body)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	s := serve(t, truth.KeepAlive(2, "ok"))
	for range 2 {
		c := dial(t, s.Addr)
		for n, last := range []bool{false, true} {
			c.send(request)
			status, body, announced, err := c.answer()
			if err != nil || status != 200 || body != "ok" || announced != last {
				t.Fatalf("answer %d is %d %q, close %v, %v", n+1, status, body, announced, err)
			}
		}
		if err := c.ended(); err != nil {
			t.Errorf("connection ends with %v, want an orderly close", err)
		}
	}
}

// The change comes 50 ms after the first request. Whether a second one comes before that depends on
// the machine, so it is only asked for after it.
func TestChange(t *testing.T) {
	s := serve(t, truth.Change(50*ms, truth.Hello("before"), truth.Hello("after")))
	time.Sleep(60 * ms) // the clock starts with the first request, not with the server
	c := dial(t, s.Addr)
	c.want("before")
	time.Sleep(50 * ms)
	c.want("after")
	c.want("after")
}

// Frozen from 50 to 150 ms after the first request. A request that comes in the freeze is answered
// at its end, and so is one that was being served when it began and would have been answered after
// 60 ms.
func TestStall(t *testing.T) {
	s := serve(t, truth.Stall(50*ms, 100*ms, truth.Hello("ok")))
	c := dial(t, s.Addr)
	began := clock.Mono()
	c.want("ok")
	time.Sleep(50 * ms) // the freeze has begun; the first request came at began or later
	c.want("ok")
	if at := time.Duration(clock.Mono() - began); at < 150*ms {
		t.Errorf("a request in the freeze is answered %v after the first, want at least 150 ms", at)
	}
	c.want("ok")

	s = serve(t, truth.Stall(50*ms, 100*ms, truth.After(60*ms, truth.Hello("ok"))))
	c = dial(t, s.Addr)
	if took := c.want("ok"); took < 150*ms {
		t.Errorf("due at 60 ms, the answer left after %v, want at least 150 ms", took)
	}
}

func TestRaw(t *testing.T) {
	c := dial(t, serve(t, truth.Raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true)).Addr)
	c.want("ok")
	c.want("ok")
	c = dial(t, serve(t, truth.Raw("nonsense", false)).Addr)
	c.send(request)
	if b, err := io.ReadAll(c.in); string(b) != "nonsense" || err != nil {
		t.Errorf("raw text is %q, %v", b, err)
	}
}

func TestReset(t *testing.T) {
	c := dial(t, serve(t, truth.Reset()).Addr)
	c.send(request)
	if err := c.ended(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("connection ends with %v, want a reset", err)
	}
}

// Two requests are read and the connection stays, since a third, which is answered, comes on it.
func TestSilent(t *testing.T) {
	s := serve(t, truth.Every(3, truth.Hello("ok"), truth.Silent()))
	c := dial(t, s.Addr)
	c.send(request)
	c.send(request)
	c.want("ok")
	if n := s.Requests.Load(); n != 3 || c.in.Buffered() != 0 {
		t.Errorf("%d requests read, %d bytes too many answered", n, c.in.Buffered())
	}
}

// Close ends idle connections, silent ones, requests under way and those just being accepted.
func TestCloseLeavesNothing(t *testing.T) {
	for range 20 {
		s, err := truth.Serve(truth.Every(2, truth.Silent(), truth.After(2*ms, truth.Hello("ok"))))
		if err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() { ask(s.Addr, 100) })
		}
		time.Sleep(5 * ms)
		closed := make(chan bool)
		go func() { s.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Fatal("Close waits for a connection that nobody ends")
		}
		clients.Wait()
		if c, err := net.Dial("tcp", s.Addr.String()); err == nil {
			c.Close()
			t.Fatal("something still listens")
		}
	}
	noGoroutines(t, "truth.(*Server)")
}

// ask sends a request on each of n new connections, or fewer when nobody listens any more, and
// holds them until the server has ended them all.
func ask(to netip.AddrPort, n int) {
	for range n {
		c, err := net.Dial("tcp", to.String())
		if err != nil {
			return
		}
		defer io.Copy(io.Discard, c) //nolint:errcheck // it ends in whatever way the server likes
		fmt.Fprint(c, request)
	}
}

// noGoroutines waits for the last instructions of goroutines that are already accounted for.
func noGoroutines(t *testing.T, of string) {
	t.Helper()
	buf := make([]byte, 1<<20)
	stacks := ""
	for range 100 {
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, of) {
			return
		}
		time.Sleep(10 * ms)
	}
	t.Errorf("goroutines are left of %s:\n%s", of, stacks)
}

const nothing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// null runs a null server until the test ends, and then wants it gone without an error.
func null(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- truth.Null(ctx, l.(*net.TCPListener), []byte(nothing)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Null owes one answer for each empty line, however the network cuts and glues the requests.
func TestNullAnswersEachOnce(t *testing.T) {
	addr := null(t)
	check := func(name string, n int, pieces ...string) {
		t.Helper()
		c := dial(t, addr)
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(5 * ms) // so that the pieces are read apart, most likely
			}
			c.send(p)
		}
		for i := range n {
			status, body, _, err := c.answer()
			if err != nil || status != 200 || body != "ok" {
				t.Fatalf("%s: answer %d of %d is %d %q, %v", name, i+1, n, status, body, err)
			}
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * ms)); err != nil {
			t.Fatal(err)
		}
		if b, err := c.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: after %d answers came %q, %v", name, n, b, err)
		}
	}
	check("one", 1, request)
	check("pipelined", 10, strings.Repeat(request, 10))
	check("cut in the head", 1, request[:9], request[9:])
	end := len(request)
	check("cut after CR", 1, request[:end-3], request[end-3:])
	check("cut between the lines", 1, request[:end-2], request[end-2:])
	check("cut before the last LF", 1, request[:end-1], request[end-1:])
	check("byte by byte at the end", 1, request[:end-4], "\r", "\n", "\r", "\n")
	// A counted end must not be counted again with what follows it.
	check("cut after one and a bit", 2, request+"G", request[1:])
	check("cut after one and a line", 2, request+"GET / HTTP/1.1\r\n", "\r\n")
	check("cut in a stray line", 2, request+"\r", "\n"+request) // RFC 9112, section 2.2
	// 27 bytes each, 65,536 + 3 of them in a read: 2,500 take two reads and cut one request.
	check("more than a read", 2500, strings.Repeat(request, 2500))
}

func TestNullSurvivesClients(t *testing.T) {
	addr := null(t)
	steady := dial(t, addr)
	steady.want("ok")
	for range 20 {
		c := dial(t, addr)
		c.send(strings.Repeat(request, 3))
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil { // a close is a reset
			t.Fatal(err)
		}
		c.Close()
		half := dial(t, addr)
		half.send(request[:7])
		half.Close()
	}
	steady.want("ok")
	dial(t, addr).want("ok")
}
