package portguard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a listener of pipes.
type gate struct {
	come chan net.Conn
	errs chan error
	shut chan struct{}
	once sync.Once
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.come:
		return c, nil
	case err := <-g.errs:
		return nil, err
	case <-g.shut:
		return nil, net.ErrClosed
	}
}

func (g *gate) Close() error   { g.once.Do(func() { close(g.shut) }); return nil }
func (g *gate) Addr() net.Addr { return &net.TCPAddr{} }

// room is a guarded listener with the connections of its clients, by number.
type room struct {
	t      *testing.T
	gate   *gate
	guard  *Listener
	server []net.Conn
	client []net.Conn

	mu      sync.Mutex
	reports []Refused
}

// inRoom runs a test with a listener of at most most connections, in virtual time.
func inRoom(t *testing.T, most int, do func(*room)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &room{t: t, gate: &gate{come: make(chan net.Conn), errs: make(chan error),
			shut: make(chan struct{})}}
		r.guard = New(r.gate, Options{Most: most, Report: func(n Refused) {
			r.mu.Lock()
			r.reports = append(r.reports, n)
			r.mu.Unlock()
		}})
		do(r)
		for _, c := range r.client {
			c.Close() //nolint:errcheck // a pipe
		}
		r.guard.Close() //nolint:errcheck // a pipe
		synctest.Wait()
	})
}

// connect adds a client, and accepts its connection unless it has to wait.
func (r *room) connect() (accepted <-chan error) {
	accepted = r.accept()
	r.arrive()
	return accepted
}

func (r *room) arrive() {
	a, b := net.Pipe()
	r.client = append(r.client, b)
	r.gate.come <- a
	synctest.Wait()
}

// accept accepts one connection.
func (r *room) accept() (accepted <-chan error) {
	done := make(chan error, 1)
	go func() {
		c, err := r.guard.Accept()
		if err == nil {
			r.server = append(r.server, c)
		}
		done <- err
	}()
	return done
}

// closed returns the numbers of clients whose connection the server has closed.
func (r *room) closed() (out []int) {
	synctest.Wait()
	for i, c := range r.client {
		err := c.SetReadDeadline(time.Now()) // a pipe refuses it once the other end is closed
		if errors.Is(err, io.ErrClosedPipe) {
			out = append(out, i)
		} else if err != nil {
			r.t.Fatal(err)
		}
	}
	return out
}

func (r *room) expect(closed ...int) {
	r.t.Helper()
	if got := r.closed(); !slices.Equal(got, closed) {
		r.t.Fatalf("closed are %v, want %v", got, closed)
	}
}

// TestOldestFreshGoesFirst checks which connection a new one replaces.
func TestOldestFreshGoesFirst(t *testing.T) {
	inRoom(t, 3, func(r *room) {
		for range 3 {
			r.connect()
		}
		r.expect()
		AdmitConn(r.server[0])
		r.connect() // 3: 1 is the oldest fresh one
		r.expect(1)
		r.guard.setIdle(r.server[0], &r.guard.idle)
		r.connect() // 4: fresh ones go before the idle 0
		r.expect(1, 2)
		AdmitConn(r.server[3])
		AdmitConn(r.server[4])
		r.connect() // 5: only 0 is not busy
		r.expect(0, 1, 2)
		AdmitConn(r.server[0]) // closed: nothing changes
		r.guard.setIdle(r.server[0], &r.guard.idle)
		if r.guard.open != 3 || r.guard.fresh.Len() != 1 || r.guard.idle.Len() != 0 {
			t.Errorf("open %d, fresh %d, idle %d", r.guard.open, r.guard.fresh.Len(),
				r.guard.idle.Len())
		}
	})
}

// TestLongestIdleGoesFirst checks the order of idle connections: by their last request.
func TestLongestIdleGoesFirst(t *testing.T) {
	inRoom(t, 2, func(r *room) {
		for i := range 2 {
			r.connect()
			AdmitConn(r.server[i])
			r.guard.setIdle(r.server[i], &r.guard.idle)
		}
		r.guard.setIdle(r.server[0], nil) // another request of 0
		r.guard.setIdle(r.server[0], &r.guard.idle)
		r.connect()
		r.expect(1)
	})
}

// TestAllBusy checks that a new connection waits if all others are busy: until one of them closes,
// becomes idle, or the listener closes.
func TestAllBusy(t *testing.T) {
	for what, act := range map[string]func(r *room){
		"close":  func(r *room) { r.server[0].Close() }, //nolint:errcheck // a pipe
		"idle":   func(r *room) { r.guard.setIdle(r.server[0], &r.guard.idle) },
		"listen": func(r *room) { r.guard.Close() }, //nolint:errcheck // a pipe
	} {
		inRoom(t, 1, func(r *room) {
			r.connect()
			AdmitConn(r.server[0])
			accepted := r.connect()
			select {
			case err := <-accepted:
				t.Fatalf("%s: did not wait: %v", what, err)
			default:
			}
			act(r)
			synctest.Wait()
			if err := <-accepted; (what == "listen") != errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// TestProtect checks that a protected connection is busy, and afterwards fresh again, or idle if
// its client became known meanwhile; and that at most half of the connections are protected.
func TestProtect(t *testing.T) {
	inRoom(t, 4, func(r *room) {
		for range 4 {
			r.connect()
		}
		release := ProtectConn(r.server[0])
		again := ProtectConn(r.server[0])
		known := ProtectConn(r.server[1])
		AdmitConn(r.server[1])
		beyond := ProtectConn(r.server[2]) // two of four are protected
		r.connect()                        // 4
		r.expect(2)
		beyond()
		release()
		r.connect() // 5: 0 is still protected
		r.expect(2, 3)
		again() // 0 is the newest fresh one
		known()
		r.connect() // 6
		r.connect() // 7
		r.expect(2, 3, 4, 5)
		r.connect() // 8
		r.expect(0, 2, 3, 4, 5)
		if r.guard.busy != 0 || r.guard.idle.Len() != 1 {
			t.Errorf("busy %d, idle %d", r.guard.busy, r.guard.idle.Len())
		}
		r.server[6].Close() //nolint:errcheck // a pipe
		r.connect()         // 9
		beyond = ProtectConn(r.server[7])
		r.server[7].Close() //nolint:errcheck // a pipe
		beyond()
		if r.guard.busy != 0 || r.guard.open != 3 {
			t.Errorf("after closing: busy %d, open %d", r.guard.busy, r.guard.open)
		}
	})
}

// TestKnownUnprotected checks that a connection whose client becomes known, and which was not
// protected because too many others were, is idle after its request.
func TestKnownUnprotected(t *testing.T) {
	inRoom(t, 2, func(r *room) {
		r.connect()
		r.connect()
		ProtectConn(r.server[0])
		release := ProtectConn(r.server[1])
		AdmitConn(r.server[1])
		release()
		r.connect()
		r.expect(1)
	})
}

// TestTable checks a server that accepts connections itself: a connection beyond the bound takes
// the place of the oldest fresh one, or is refused if all are busy.
func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(Options{Most: 2})
		enter := func() (server net.Conn, err error) {
			a, b := net.Pipe()
			t.Cleanup(func() { a.Close(); b.Close() }) //nolint:errcheck // pipes
			return table.Enter(a)
		}
		gone := func(c net.Conn) bool {
			synctest.Wait()
			return errors.Is(c.SetReadDeadline(time.Now()), io.ErrClosedPipe)
		}
		var all []net.Conn
		for range 3 {
			c, err := enter()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		if !gone(all[0]) || gone(all[1]) || gone(all[2]) {
			t.Errorf("closed: %v %v %v", gone(all[0]), gone(all[1]), gone(all[2]))
		}
		AdmitConn(all[1])
		AdmitConn(all[2])
		if _, err := enter(); !errors.Is(err, errBusy) {
			t.Errorf("with all busy: %v", err)
		}
		if got := table.Refused(); got != (Refused{Closed: 1}) {
			t.Errorf("refused %+v", got)
		}
		all[1].Close() //nolint:errcheck // a pipe
		if _, err := enter(); err != nil {
			t.Error(err)
		}
		table.Close()
		if got := table.Refused(); got.Total() != 1 {
			t.Errorf("the end counts as refusals: %+v", got)
		}
	})
}

// TestClose checks that fresh connections are closed with the listener, uncounted, and others are
// not.
func TestClose(t *testing.T) {
	inRoom(t, 3, func(r *room) {
		for range 3 {
			r.connect()
		}
		AdmitConn(r.server[1])
		r.guard.Close() //nolint:errcheck // a pipe
		r.expect(0, 2)
		if len(r.reports) != 0 {
			t.Errorf("reported %v", r.reports)
		}
	})
}

// TestFloodPassesByOneKnownClient checks that a client that sends its token at once is served while
// 1000 others connect and stay silent, and that its connection then stays open.
func TestFloodPassesByOneKnownClient(t *testing.T) {
	inRoom(t, 16, func(r *room) {
		for i := range 1000 {
			r.connect()
			if i == 500 {
				AdmitConn(r.server[i])
			}
		}
		if slices.Contains(r.closed(), 500) {
			t.Error("the known client's connection was closed")
		}
		if n := len(r.closed()); n != 1000-16 {
			t.Errorf("%d connections were closed, want %d", n, 1000-16)
		}
	})
}

// TestScarceDescriptors checks that accepting goes on after file descriptors were used up, at the
// cost of a fresh connection, and that other errors end it.
func TestScarceDescriptors(t *testing.T) {
	inRoom(t, 10, func(r *room) {
		r.connect()
		accepted := r.accept()
		r.gate.errs <- fmt.Errorf("accept: %w", syscall.EMFILE)
		r.arrive()
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		r.expect(0)
		broken := errors.New("broken")
		go func() { r.gate.errs <- broken }()
		if _, err := r.guard.Accept(); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}

// TestReports checks that many refusals are one report: after 2 s, then after a minute, and at the
// end.
func TestReports(t *testing.T) {
	inRoom(t, 2, func(r *room) {
		want := func(want ...Refused) {
			t.Helper()
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Equal(r.reports, want) {
				t.Fatalf("reported %v, want %v", r.reports, want)
			}
		}
		for i := range 5 { // 3 are closed
			r.connect()
			if i == 0 {
				DenyConn(r.server[0]) // and counts once, though it is also closed
				DenyConn(r.server[0])
			}
		}
		want()
		time.Sleep(firstReport)
		first := Refused{Denied: 1, Closed: 2}
		want(first)
		DenyConn(r.server[4])
		time.Sleep(laterReport - 1)
		want(first)
		time.Sleep(1)
		want(first, Refused{Denied: 1})
		DenyConn(r.server[3])
		r.guard.Close() //nolint:errcheck // a pipe
		want(first, Refused{Denied: 1}, Refused{Denied: 1})
		DenyConn(r.server[2]) // not reported any more
		time.Sleep(laterReport)
		want(first, Refused{Denied: 1}, Refused{Denied: 1})
	})
}
