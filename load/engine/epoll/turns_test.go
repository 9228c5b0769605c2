package epoll

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load/engine"
)

// reads counts what a slot receives.
type reads struct{ opened, pieces, bytes, closed int }

func (r *reads) Opened(int, int64)                   { r.opened++ }
func (r *reads) Closed(int, int64, engine.Op, error) { r.closed++ }
func (r *reads) Received(_ int, _ int64, b []byte) {
	r.pieces, r.bytes = r.pieces+1, r.bytes+len(b)
}

// A connection with much to read leaves others their turn, and loses nothing: neither bytes nor
// the end behind them.
func TestReadsTakeTurns(t *testing.T) {
	testsets.Live(t)
	const size, all = 1 << 10, 64 << 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e, err := New(l.Addr().(*net.TCPAddr).AddrPort(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	e.buf = make([]byte, size)
	h := &reads{}
	e.Open(0)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for h.opened == 0 {
		if err := e.Wait(clock.Mono()+1e6, h); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write(make([]byte, all)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	testsets.Eventually(t, "all bytes are there", func() bool {
		n, err := unix.IoctlGetInt(int(e.slots[0].fd), unix.SIOCINQ)
		return err == nil && n >= all
	})
	for turn := 1; h.closed == 0; turn++ {
		if err := e.Wait(clock.Mono()+60e9, h); err != nil {
			t.Fatal(err)
		}
		if h.pieces > turn*readsMax || turn > 100 {
			t.Fatalf("%d reads in %d turns", h.pieces, turn)
		}
	}
	if h.bytes != all {
		t.Errorf("%d bytes came, want %d", h.bytes, all)
	}
}
