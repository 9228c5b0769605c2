package distributed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/extract"
)

// TestCannotBegin checks that a load that cannot start returns an error with a reason and a name.
func TestCannotBegin(t *testing.T) {
	check := func(want string, change func(*Order, []*Generator)) {
		t.Helper()
		inBubble(t, 3, func(s *stage) {
			o := scored(100)
			change(&o, s.all)
			if _, err := s.offer(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	check("wait for 3 generators: 2 did not connect within 30s; the first missing one is "+
		"generator 0",
		func(_ *Order, all []*Generator) { all[0], all[2] = nil, nil })
	check("generator 1 (g1): load: no way in", func(_ *Order, all []*Generator) {
		all[1].Offer = func(context.Context, Order) (*load.Result, error) {
			return nil, errors.New("load: no way in")
		}
	})
	check("generator 2 (g2): stopped responding before it was ready", func(_ *Order,
		all []*Generator) {
		all[2].Offer = func(ctx context.Context, _ Order) (*load.Result, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	})
	check("2 connections are too few for 3 generators", func(o *Order, _ []*Generator) {
		o.Spec.Connections = 2
	})
	check("4 cores cannot be divided among 3", func(o *Order, _ []*Generator) {
		o.Spec.Cores = make([]int, 4)
	})
	check("8 connections of 8 streams cannot be divided", func(o *Order, _ []*Generator) {
		o.By.Stack = &nethttp.Config{Streams: 8}
	})
	check("is not valid UTF-8", func(o *Order, _ []*Generator) {
		o.Spec.Scenario.Requests[0].Path = "/\xff"
	})
	check("is not UTF-8", func(o *Order, _ []*Generator) {
		is, err := extract.Is(extract.Body(), "\xff", nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Spec.Scenario.Requests[0].Checks = []extract.Check{is}
	})
	if _, err := Listen("127.0.0.1:0", numberMost+1, "v1"); err == nil {
		t.Error("more than the most generators are waited for")
	}
}

// socket returns a lab on a socket, for one generator, with a waiting load.
func socket(t *testing.T) *Lab {
	t.Helper()
	l, err := Listen(":0", 1, "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // the test is over
	if !strings.HasPrefix(l.Addr(), "127.0.0.1:") {
		t.Fatalf("it listens at %s, and nobody asked for others", l.Addr())
	}
	return l
}

// TestRefusals checks that invalid generators are refused with a reason, and that the lab
// continues.
func TestRefusals(t *testing.T) {
	l := socket(t)
	var mu sync.Mutex
	var said []string
	l.Say = func(line string) { mu.Lock(); said = append(said, line); mu.Unlock() }
	refuse := func(want string, change func(*Generator)) {
		t.Helper()
		g := &Generator{Lab: l.Addr(), Key: l.Key(), Name: "g", Version: "v1"}
		change(g)
		if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuse("token is not the token of this load", func(g *Generator) {
		g.Key.Token = "x" + g.Key.Token[1:]
	})
	refuse("is not the coordinator of this key", func(g *Generator) {
		g.Key.Certificate = strings.Repeat("0", 64)
	})
	refuse("outside of the range 0 to 0", func(g *Generator) { g.Index = 1 })
	refuse("outside of the range 0 to 0", func(g *Generator) { g.Index = -1 })
	refuse("version v2 of prony and the coordinator version v1",
		func(g *Generator) { g.Version = "v2" })
	for _, row := range []struct{ sent, want string }{
		{"GET / HTTP/1.1\r\n\r\n", "sent data that is not a message"},
		{"\x00\x00\x00\x01p", "at the wrong time"},
		{"\x7f\xff\xff\xffh", "the limit for this kind is 4096 bytes"},
		{"\x00\x00\x00\x03h{}", "token"},
		{"\x00\x00\x00\x08h{\"x\":1}", "not a message"},
		{"\x00\x00\x00\x05h{}{}", "not a message"},
	} {
		conn := dialled(t, l)
		conn.Write([]byte(row.sent)) //nolint:errcheck // the lab may refuse before
		kind, body, err := (&line{Conn: conn}).hear(5*time.Second, refused)
		if err != nil || kind != refused || !strings.Contains(string(body), row.want) {
			t.Errorf("%q: %s, %v; want %q", row.sent, body, err, row.want)
		}
	}
	// A valid generator is accepted nevertheless, and no second one in its place.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Generator{Lab: l.Addr(), Key: l.Key(), Name: "g", Version: "v1"}).Run(ctx)
	}()
	<-l.come
	refuse("generator 0 is already connected, from g", func(*Generator) {})
	cancel() // like a signal while it waits for its order
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	l.Close() //nolint:errcheck // the test is over
	refuse("connect to the coordinator at 127.0.0.1", func(*Generator) {})
	mu.Lock()
	defer mu.Unlock()
	// The others had the key; 6 connections sent no hello message, one another token, and one
	// accepted another certificate only.
	const summary = "refused 8 connections without the key of this load"
	for _, text := range said {
		if text == summary { // connections that end meanwhile may still be said after it
			continue
		}
		if !strings.HasPrefix(text, "refused a generator at 127.0.0.1:") ||
			strings.Contains(text, l.Key().Token) {
			t.Errorf("said: %q", text)
		}
	}
	if len(said) < 4 { // the end of the lab may come before the last line
		t.Errorf("said: %q", said)
	}
}

// TestComesAgain checks that a generator that left while others are missing can connect again.
func TestComesAgain(t *testing.T) {
	l, err := Listen(":0", 2, "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	join := func(index int) (leave func(), ended chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() {
			g := &Generator{Lab: l.Addr(), Key: l.Key(), Name: "g", Version: "v1", Index: index}
			ended <- g.Run(ctx)
		}()
		return cancel, ended
	}
	welcomed := func() *member {
		l.mu.Lock()
		defer l.mu.Unlock()
		if m := l.here[0]; m != nil && m.welcomed {
			return m
		}
		return nil
	}
	leave, ended := join(0)
	testsets.Eventually(t, "a generator", func() bool { return welcomed() != nil })
	first := welcomed()
	leave()
	<-ended
	leave, ended = join(0)
	defer leave()
	testsets.Eventually(t, "the generator again", func() bool {
		m := welcomed()
		return m != nil && m != first || len(ended) > 0
	})
	leaveOther, endedOther := join(1)
	defer leaveOther()
	select {
	case <-l.come:
	case err := <-endedOther:
		t.Fatal(err)
	}
	if len(ended) > 0 {
		t.Error(<-ended)
	}
}

// TestCrowd checks that connections without the key do not keep a generator out, and that they are
// reported in one line.
func TestCrowd(t *testing.T) {
	l := socket(t)
	said := make(chan string, 10)
	l.Say = func(line string) { said <- line }
	const others = 2 * greetings
	for i := range others {
		conn, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test is over
		if i%2 == 0 {                      // the beginning of a TLS record
			conn.Write([]byte("\x16\x03\x01\x02\x00\x01")) //nolint:errcheck // may be closed
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Generator{Lab: l.Addr(), Key: l.Key(), Name: "g", Version: "v1"}).Run(ctx)
	}()
	select {
	case <-l.come:
	case err := <-ended:
		t.Fatal(err)
	}
	for range 2 * greetings { // its connection stays
		dialled(t, l)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	l.Close() //nolint:errcheck // the test is over
	for lines := len(said); lines > 0; lines-- {
		if line := <-said; !strings.HasSuffix(line, " connections without the key of this load") ||
			lines > 2 { // two if the test took longer than the time until the first one
			t.Errorf("said %q, and %d more", line, lines)
		}
	}
}

// closing is a listener that closes the first connections at once, as one without room does.
type closing struct {
	net.Listener
	first int
}

func (l *closing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.first > 0 {
		l.first--
		c.Close() //nolint:errcheck // nobody was served
	}
	return c, err
}

// TestBusyMoment checks that a generator tries again if its connection is closed before its
// welcome, and not after a refusal.
func TestBusyMoment(t *testing.T) {
	id, err := certify()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := open(tls.NewListener(&closing{inner, 1}, &tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{id.certificate}}), id.key, 1, "v1")
	defer l.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Generator{Lab: l.Addr(), Key: l.Key(), Name: "g", Version: "v1"}).Run(ctx)
	}()
	select {
	case <-l.come:
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	<-ended
}

// TestIsBusy checks which failed attempts are repeated.
func TestIsBusy(t *testing.T) {
	for _, row := range []struct {
		err                  error
		busy, nothingListens bool
	}{
		{nil, false, false},
		{context.DeadlineExceeded, true, false}, // of the handshake
		{fmt.Errorf("read: %w", io.EOF), true, false},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true, false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false, true},
		{context.Canceled, false, false},
		{errors.New("the coordinator refused generator 0: the index 1"), false, false},
	} {
		if isBusy(row.err) != row.busy || nothingListens(row.err) != row.nothingListens {
			t.Errorf("%v: busy %v, nothing listens %v", row.err, isBusy(row.err),
				nothingListens(row.err))
		}
	}
}

// dialled connects to a lab as a client with its certificate.
func dialled(t *testing.T, l *Lab) net.Conn {
	t.Helper()
	conn, err := dial(t.Context(), l.Addr(), l.Key())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test is over
	return conn
}

// TestHostile checks that a generator that sends too much or invalid messages is disconnected, at
// any time.
func TestHostile(t *testing.T) {
	check := func(want string, send func(c *line)) {
		t.Helper()
		inBubble(t, 2, func(s *stage) {
			s.all[1] = nil
			go func() {
				c := &line{Conn: s.hall.enter()}
				defer c.Close() //nolint:errcheck // a pipe
				pose(c)
				send(c)
				for { // until the lab disconnects
					if _, _, err := c.hear(time.Hour, ask, stop, word, thanks); err != nil {
						return
					}
				}
			}()
			res, err := s.offer(scored(100))
			if err != nil {
				t.Fatal(err)
			}
			if g := res.Generators[1]; !strings.Contains(g.Fault, want) {
				t.Errorf("%q, want %q", g.Fault, want)
			}
			if res.Answered == 0 {
				t.Error("the other's numbers are lost")
			}
		})
	}
	write := func(text string) func(*line) {
		return func(c *line) { c.Write([]byte(text)) } //nolint:errcheck // the lab disconnects
	}
	check("a message of 268435455 bytes", write("\x10\x00\x00\x00p"))
	check("at the wrong time", write("\x00\x00\x00\x02b "))
	check("data that is not a message", write("GET / HTTP/1.1"))
	check("torn", write("\x00\x00\x00\x02p "))
	check("data that is not a message", write("\x00\x00\x00\x02e1"))
	check("disconnected", func(c *line) {
		write("\x00\x00\x10\x00p")(c)
		c.Close() //nolint:errcheck // a pipe
	})
	check("stopped responding", func(*line) {})
	check("stopped responding",
		func(c *line) { c.send(ended, []byte("{}")) }) //nolint:errcheck // likewise
}

// pose acts as a generator until the load begins.
func pose(c *line) {
	c.tell(hello, helloForm{"v1", token, 1, "bad"})            //nolint:errcheck // see send
	c.hear(time.Hour, welcome)                                 //nolint:errcheck // see send
	c.hear(time.Hour, order)                                   //nolint:errcheck // see send
	c.tell(ready, readyForm{load.EngineInfo{Name: "made up"}}) //nolint:errcheck // see send
	for {
		kind, _, err := c.hear(time.Hour, ask, start)
		if err != nil || kind == start {
			return
		}
		c.tell(told, clockForm{clock.Mono(), clock.Wall().UnixNano()}) //nolint:errcheck // see send
	}
}

// TestEnds checks that the end of a lab stops its generators, and that the loss of all generators
// stops the load.
func TestEnds(t *testing.T) {
	inBubble(t, 2, func(s *stage) {
		o := scored(100)
		o.Spec.Window = time.Hour
		o.Spec.Observer = load.ProgressFunc(func(load.Progress) bool {
			return s.lab.Close() == nil
		})
		if res, err := s.offer(o); err == nil {
			t.Errorf("a load that was ended has a result: %+v", res.Generators)
		}
		for _, err := range s.ends {
			if err == nil || !strings.Contains(err.Error(), "the coordinator disconnected") {
				t.Errorf("a generator ended with %v", err)
			}
		}
	})
	inBubble(t, 2, func(s *stage) { // as when a person interrupts it
		o := scored(100)
		o.Spec.Window = time.Hour
		o.Spec.Observer = load.ProgressFunc(func(p load.Progress) bool {
			return p.Elapsed < 10*time.Second
		})
		res, err := s.offer(o)
		if err = errors.Join(append(s.ends, err)...); err != nil {
			t.Fatal(err)
		}
		if w := time.Duration(res.WindowNs); w < 9*time.Second || w > 13*time.Second ||
			res.Answered == 0 || res.Scheduled != res.Answered {
			t.Errorf("a window of %v, %d of %d answered", w, res.Answered, res.Scheduled)
		}
	})
}

// broken is a listener that does not close.
type broken struct {
	net.Listener
	err error
}

func (b broken) Close() error { return b.err }

// TestClose checks that a lab disconnects its generators and reports a listener that stays open.
func TestClose(t *testing.T) {
	check := func(cause, want error) {
		t.Helper()
		a, b := net.Pipe()
		l := &Lab{listener: broken{err: cause}, here: map[int]*member{
			1: {line: &line{Conn: a}}}}
		if err := l.Close(); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: error %v, want %v", cause, err, want)
		}
		if _, err := b.Read(make([]byte, 1)); err == nil || !l.over {
			t.Errorf("%v: the generator is connected, %v", cause, err)
		}
	}
	check(nil, nil)
	check(fmt.Errorf("close: %w", net.ErrClosed), nil)
	check(io.ErrNoProgress, io.ErrNoProgress)
}
