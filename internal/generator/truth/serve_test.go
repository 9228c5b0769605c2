package truth_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
)

// server is a running plan.
type server struct {
	t    *testing.T
	addr string
	stop func() truth.Report
}

func serve(t *testing.T, p truth.Plan) *server {
	t.Helper()
	return serveWith(t, p, truth.Options{})
}

func serveWith(t *testing.T, p truth.Plan, o truth.Options) *server {
	t.Helper()
	testsets.Measured(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var report truth.Report
	done := make(chan error)
	go func() {
		r, err := truth.Serve(ctx, l.(*net.TCPListener), p, o)
		report = r
		done <- err
		close(done)
	}()
	stop := func() truth.Report {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
		return report
	}
	t.Cleanup(func() { stop() })
	return &server{t, l.Addr().String(), stop}
}

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (s *server) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	// A server that does not respond must fail the test, not block it.
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	return &client{s.t, c, bufio.NewReader(c)}
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// want reads one response and checks status 200 and the body.
func (c *client) want(body string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatalf("want %q: %v", body, err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 || string(b) != body {
		c.t.Fatalf("answer is %d %q, %v; want 200 %q", r.StatusCode, b, err, body)
	}
}

// ended checks that the connection ends without further data.
func (c *client) ended(want error) {
	c.t.Helper()
	b, err := io.ReadAll(c.in)
	if len(b) > 0 || !errors.Is(err, want) {
		c.t.Errorf("%q, then %v; want the end with %v", b, err, want)
	}
}

// TestRequestsAreTakenApart checks that a request is answered once, however it is split.
func TestRequestsAreTakenApart(t *testing.T) {
	s := serve(t, truth.Fixed(0))
	check := func(name string, answers int, pieces ...string) {
		t.Helper()
		c := s.dial()
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(3 * ms) // so that the pieces are probably read separately
			}
			c.send(p)
		}
		for range answers {
			c.want("ok")
		}
		if err := c.SetReadDeadline(time.Now().Add(5 * ms)); err != nil {
			t.Fatal(err)
		}
		if b, err := c.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: after %d answers came %q, %v", name, answers, b, err)
		}
	}
	post := "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n"
	check("one", 1, request)
	check("pipelined", 5, strings.Repeat(request, 5))
	check("cut in the head", 1, request[:9], request[9:])
	check("cut in the empty line", 1, request[:len(request)-1], request[len(request)-1:])
	check("with a body", 1, post+"\r\n\r\n\r")
	check("cut in the body", 1, post+"ab", "cde")
	check("not before its body", 0, post+"abcd")
	check("a body and another", 2, post+"abc", "de"+request)
	if n := s.stop().Requests; n != 12 {
		t.Errorf("%d requests, want 12", n) // 1 + 5 + 1 + 1 + 1 + 1 + 0 + 2
	}
}

// TestPlanKnowsRequest checks the request that a plan gets, with a server that runs beside its
// client.
func TestPlanKnowsRequest(t *testing.T) {
	testsets.Measured(t)
	var seen []string
	addr, stop, err := truth.Start(func(now int64, r truth.Request) truth.Reply {
		seen = append(seen, fmt.Sprintf("%d %d %s %s %s", r.N, r.OnConn, r.Method, r.Path, r.Body))
		return truth.Reply{At: now + int64(ms), Text: truth.Answer("200 OK", "A: b\r\n", "made")}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: addr.String()}
	a, b := s.dial(), s.dial()
	for _, of := range []struct {
		c    *client
		text string
	}{
		{a, request}, {a, "POST /p?q=1 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc" + request},
		{b, request},
	} {
		of.c.send(of.text)
		of.c.want("made")
	}
	a.want("made")
	for _, length := range []string{"-1", "1e3", "16777216"} { // the last is 2^24, too long
		c := s.dial()
		c.send("POST / HTTP/1.1\r\nContent-Length: " + length + "\r\n\r\n")
		c.ended(nil)
	}
	r, err := stop()
	if err != nil || r.Requests != 4 || r.Delayed != 4 {
		t.Errorf("the server says %+v, %v", r, err)
	}
	want := []string{"1 1 GET / ", "2 2 POST /p?q=1 abc", "3 3 GET / ", "4 1 GET / "}
	if !slices.Equal(seen, want) {
		t.Errorf("seen is %q, want %q", seen, want)
	}
	if c, err := net.Dial("tcp", addr.String()); err == nil {
		c.Close()
		t.Error("something still listens")
	}
}

func TestConnectionsEndAsAsked(t *testing.T) {
	s := serve(t, truth.Every(3, truth.Torn, truth.Fixed(0)))
	c := s.dial()
	c.send("GET / HTTP/1.0\r\n\r\n")
	c.want("ok")
	c.ended(nil)
	c = s.dial()
	c.send("GET / HTTP/1.1\r\nconnection: Close\r\n\r\n")
	c.want("ok")
	c.ended(nil)
	c = s.dial()
	c.send(request) // the third
	if b, err := io.ReadAll(c.in); string(b) != "HTTP/1.1 2" ||
		!errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, then %v; want a piece of a head, then a reset", b, err)
	}

	s = serve(t, truth.Renew(2, truth.Fixed(0)))
	c = s.dial()
	c.send(request)
	c.want("ok")
	c.send(request)
	c.want("ok")
	c.ended(nil)

	s = serve(t, truth.Fixed(0))
	for _, bad := range []string{"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 16777216\r\n\r\n"} {
		c = s.dial()
		c.send(bad)
		c.ended(nil)
	}
	c = s.dial()
	c.send("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 65<<10))
	if _, err := c.in.Peek(1); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a head of 65 KiB is read on: %v", err)
	}
}

// TestNothingIsEarly checks that a response is never sent before it is due. Its delay depends on
// the machine, and is in the report.
func TestNothingIsEarly(t *testing.T) {
	s := serve(t, truth.Fixed(10*ms))
	c := s.dial()
	for range 5 {
		began := clock.Mono()
		c.send(request)
		c.want("ok")
		if took := time.Duration(clock.Mono() - began); took < 10*ms {
			t.Errorf("answered after %v, want at least 10 ms", took)
		}
	}
	// Concurrently on many connections, each at its own time.
	var all []*client
	began := clock.Mono()
	for range 20 {
		c := s.dial()
		c.send(request)
		all = append(all, c)
	}
	for _, c := range all {
		c.want("ok")
	}
	if took := time.Duration(clock.Mono() - began); took < 10*ms {
		t.Errorf("twenty are answered after %v, want at least 10 ms", took)
	}
	r := s.stop()
	if r.Requests != 25 || r.Delayed != 25 || r.LateMeanNs < 0 ||
		float64(r.LateMaxNs) < r.LateMeanNs || r.LateMeanNs > 10e9 {
		t.Errorf("report is %+v", r)
	}
}

// TestOrder sends six requests at once to a queue of 5 ms: the last is answered after 30 ms.
// Pipelined responses keep the order of their requests, whatever their due times.
func TestOrder(t *testing.T) {
	s := serve(t, truth.Queue(func(int64) time.Duration { return 5 * ms }))
	c := s.dial()
	began := clock.Mono()
	c.send(strings.Repeat(request, 6))
	for range 6 {
		c.want("ok")
	}
	if took := time.Duration(clock.Mono() - began); took < 30*ms {
		t.Errorf("six take %v, want at least 30 ms", took)
	}

	// The first is due after 20 ms, the second after 1 ms.
	n := 0
	s = serve(t, func(now int64, r truth.Request) truth.Reply {
		n++
		text := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", r.N)
		return truth.Reply{At: now + []int64{20e6, 1e6}[r.N-1], Text: []byte(text)}
	})
	c = s.dial()
	c.send(request + request)
	c.want("1")
	c.want("2")
}

// TestDrip checks that bytes are sent one by one, never before they are due.
func TestDrip(t *testing.T) {
	s := serve(t, truth.Drip(10*ms, 4, 10*ms))
	c := s.dial()
	began := clock.Mono()
	c.send(request + request)
	for n := range 2 {
		for at := range 4 {
			if at == 0 {
				for line := ""; line != "\r\n"; {
					var err error
					if line, err = c.in.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b, err := c.in.ReadByte(); err != nil || b != '.' {
				t.Fatalf("byte is %q, %v", b, err)
			}
			// The second waits for the first one's end, at 40 ms.
			least := time.Duration(10+10*at) * ms
			if n == 1 {
				least = max(least, 40*ms)
			}
			if took := time.Duration(clock.Mono() - began); took < least {
				t.Errorf("answer %d, byte %d after %v, want at least %v", n+1, at+1, took, least)
			}
		}
	}
	if r := s.stop(); r.Requests != 2 || r.Delayed != 8 {
		t.Errorf("report is %+v, want 2 requests and 8 parts", r)
	}
}

// TestBurn checks that a request burns processor time, not wall time.
func TestBurn(t *testing.T) {
	s := serve(t, truth.Burn(20*ms))
	c := s.dial()
	before := processTime(t)
	for range 3 {
		c.send(request)
		c.want("ok")
	}
	if used := processTime(t) - before; used < 60*ms {
		t.Errorf("three requests use %v, want at least 60 ms", used)
	}
}

func processTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// TestSurvivesClients checks that a client that leaves, or reads no responses, affects no other
// client.
func TestSurvivesClients(t *testing.T) {
	s := serve(t, truth.Fixed(5*ms))
	steady := s.dial()
	for range 10 {
		gone := s.dial()
		gone.send(strings.Repeat(request, 3))
		if err := gone.Conn.(*net.TCPConn).SetLinger(0); err != nil { // closing sends a reset
			t.Fatal(err)
		}
		gone.Close()
		half := s.dial()
		half.send(request[:7])
		half.Close()
	}
	deaf := s.dial()
	many := strings.Repeat(request, 1000)
	for {
		if _, err := io.WriteString(deaf, many); err != nil {
			break // it was disconnected: its responses exceeded the sockets' buffers
		}
	}
	steady.send(request)
	steady.want("ok")
}

// TestServeLeavesNothing checks that Serve closes all descriptors and restores the scheduler,
// whichever of two servers ends first.
func TestServeLeavesNothing(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	once := func() {
		s := serve(t, truth.Every(2, truth.Silent, truth.Fixed(time.Hour)))
		for range 20 {
			c := s.dial()
			c.send(request)
			defer c.Close()
		}
		s.stop()
	}
	once() // opens what stays open
	before, processors := open(), runtime.GOMAXPROCS(0)
	first, second := serve(t, truth.Fixed(0)), serve(t, truth.Fixed(0))
	first.stop()
	second.stop()
	if n := runtime.GOMAXPROCS(0); n != processors {
		t.Errorf("%d processors before, %d after", processors, n)
	}
	once()
	if after := open(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestAnswersDieWithTheirConnection checks that a response to a client that has left does not go to
// the next one, whose connection has the same descriptor.
func TestAnswersDieWithTheirConnection(t *testing.T) {
	s := serve(t, truth.Fixed(40*ms))
	a := s.dial()
	a.send(request)
	time.Sleep(5 * ms)
	a.Close()
	time.Sleep(5 * ms)
	b := s.dial()
	if err := b.SetReadDeadline(time.Now().Add(80 * ms)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client that asked nothing got %q, %v", got, err)
	}
}

// TestTimes checks the times of a queue: each request's service begins after the previous response,
// whatever the machine does, and a service's processor time is part of its duration.
func TestTimes(t *testing.T) {
	s := serveWith(t, truth.Burn(5*ms), truth.Options{Times: true})
	c := s.dial()
	c.send(strings.Repeat(request, 3))
	for range 3 {
		c.want("ok")
	}
	times := s.stop().Times
	if len(times) != 3 {
		t.Fatalf("%d requests have times, want 3", len(times))
	}
	for i, x := range times {
		begun := x.LeftNs - x.ServiceNs
		if begun < x.CameNs || i > 0 && begun < times[i-1].LeftNs {
			t.Errorf("request %d was taken up too early: %+v", i, times)
		}
		// An interruption counts as processor time of the thread, or not at all.
		if x.ProcessorNs < int64(4*ms) || x.ServiceNs < x.ProcessorNs-int64(ms) {
			t.Errorf("request %d burns 5 ms: %+v", i, x)
		}
	}

	s = serveWith(t, truth.Every(2, truth.Silent, truth.Fixed(5*ms)), truth.Options{Times: true})
	c = s.dial()
	c.send(request + request)
	c.want("ok")
	times = s.stop().Times
	if len(times) != 2 || times[0].ServiceNs < int64(5*ms) || times[0].ProcessorNs != 0 ||
		times[1].LeftNs != 0 || times[1].CameNs < times[0].CameNs {
		t.Errorf("the times are %+v", times)
	}
	if r := serve(t, truth.Fixed(0)).stop(); r.Times != nil || r.Ahead {
		t.Errorf("nobody wants times: %+v", r)
	}
}

func TestTimesAreWritten(t *testing.T) {
	for _, want := range [][]truth.Times{nil, {{1, 2, 3, 4}, {5, 0, 0, 0}}} {
		var file bytes.Buffer
		if err := truth.WriteTimes(&file, want); err != nil {
			t.Fatal(err)
		}
		if got, err := truth.ReadTimes(&file); err != nil || !slices.Equal(got, want) {
			t.Errorf("read %+v, %v; want %+v", got, err, want)
		}
	}
	const head = "came_ns,left_ns,service_ns,processor_ns\n"
	for _, bad := range []string{"", head + "1,2,3\n", head + "1,2,3,x\n"} {
		if _, err := truth.ReadTimes(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestAhead checks that a server with priority responds as others do, also if it lacks permission.
func TestAhead(t *testing.T) {
	s := serveWith(t, truth.Burn(ms), truth.Options{Ahead: true})
	c := s.dial()
	for range 5 {
		c.send(request)
		c.want("ok")
	}
	permitted := make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		_, ok := rtsched.Ahead(rtsched.Load)
		permitted <- ok
	}()
	if r := s.stop(); r.Requests != 5 || r.Ahead != <-permitted {
		t.Errorf("report is %+v", r)
	}
}
