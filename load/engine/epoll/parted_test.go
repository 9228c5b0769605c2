package epoll

import (
	"io"
	"net"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// last is a Handler that sends a request as soon as it has received bytes.
type last struct {
	*Engine
	opened bool
	unsent int
	closed int
	op     engine.Op
	err    error
}

const late = "request"

func (l *last) Opened(int, int64) { l.opened = true }

func (l *last) Received(i int, _ int64, _ []byte) {
	l.Send(i, []byte(late))
	l.unsent = l.Unsent(i)
}

func (l *last) Closed(_ int, _ int64, op engine.Op, err error) {
	l.closed++
	l.op, l.err = op, err
}

// Bytes and the end of the server's direction come at once. A request that the bytes cause does not
// leave, because nobody would answer it, so it may be sent again whatever its method.
func TestRequestsAfterTheEndDoNotLeave(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	begin, ended, got := make(chan bool), make(chan bool), make(chan string, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		<-begin
		_, _ = io.WriteString(c, "bytes") // lost ones fail the test anyway
		_ = c.(*net.TCPConn).CloseWrite()
		close(ended)
		b, _ := io.ReadAll(c)
		got <- string(b)
	}()
	e, err := New(listener.Addr().(*net.TCPAddr).AddrPort(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	h := &last{Engine: e}
	wait := func(done func() bool) {
		for end := clock.Mono() + int64(20*time.Second); !done(); {
			if err := e.Wait(clock.Mono()+int64(time.Second), h); err != nil {
				t.Fatal(err)
			}
			if clock.Mono() > end {
				t.Fatalf("%+v", h)
			}
		}
	}
	e.Open(0)
	wait(func() bool { return h.opened })
	close(begin)
	<-ended
	wait(func() bool { return h.closed > 0 })
	if h.unsent != len(late) || h.op != engine.Reading || h.err != nil {
		t.Errorf("%d of %d bytes are unsent, ended in %v by %v", h.unsent, len(late), h.op, h.err)
	}
	if text := <-got; text != "" {
		t.Errorf("the server received %q", text)
	}
}
