package distributed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// In these tests labs and generators run in a bubble, where waiting takes no time, connect without
// a network, and get responses without a service. Only admission is tested on sockets.

// hall is a lab's listener in a bubble.
type hall struct {
	come chan net.Conn
	shut chan struct{}
	once sync.Once
}

func (h *hall) Accept() (net.Conn, error) {
	select {
	case c := <-h.come:
		return c, nil
	case <-h.shut:
		return nil, net.ErrClosed
	}
}

func (h *hall) Close() error   { h.once.Do(func() { close(h.shut) }); return nil }
func (h *hall) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// enter connects to the lab.
func (h *hall) enter() net.Conn {
	a, b := net.Pipe()
	select {
	case h.come <- piped{a}:
	case <-h.shut:
		a.Close() //nolint:errcheck // a pipe
	}
	return b
}

// piped is a pipe that, like a socket, accepts a deadline after the other side has closed it; the
// next read reports the end.
type piped struct{ net.Conn }

func (c piped) SetReadDeadline(at time.Time) error {
	if err := c.Conn.SetReadDeadline(at); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// stage is a lab in a bubble with its generators.
type stage struct {
	t    *testing.T
	hall *hall
	lab  *Lab
	all  []*Generator
	ends []error // of the generators
	stop []context.CancelFunc
	line []net.Conn
}

const token = "0123456789"

// inBubble creates a lab and generators that have not connected yet.
func inBubble(t *testing.T, n int, do func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hall{come: make(chan net.Conn), shut: make(chan struct{})}
		s := &stage{t: t, hall: h, lab: open(h, Key{Token: token}, n, "v1")}
		defer s.lab.Close() //nolint:errcheck // a pipe
		for i := range n {
			s.all = append(s.all, &Generator{Lab: "lab", Key: Key{Token: token}, Index: i,
				Name: fmt.Sprint("g", i), Version: "v1", Offer: pretend})
		}
		do(s)
	})
}

// offer runs a load with the generators; nil generators are missing.
func (s *stage) offer(o Order) (*load.Result, error) {
	s.t.Helper()
	s.ends, s.stop = make([]error, len(s.all)), make([]context.CancelFunc, len(s.all))
	s.line = make([]net.Conn, len(s.all))
	var group sync.WaitGroup
	for i, g := range s.all {
		ctx, stop := context.WithCancel(s.t.Context())
		defer stop()
		s.stop[i] = stop
		if g != nil {
			s.line[i] = s.hall.enter()
			group.Go(func() {
				c, err := g.greet(ctx, s.line[i])
				if err == nil {
					err = g.serve(ctx, c)
				}
				s.ends[i] = err
			})
		}
	}
	res, err := s.lab.Offer(s.t.Context(), o)
	s.lab.Close() //nolint:errcheck // a pipe
	group.Wait()
	return res, err
}

// scored returns a load of two seconds in which each request's number determines its sample.
func scored(perS float64) Order {
	s := load.Spec{Name: "load", Model: record.Open, Connections: 64, Seed: 3,
		Lead: 200 * time.Millisecond, Window: 2 * time.Second, Drain: time.Second,
		Timeout: time.Second, Every: time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perS)},
		Address:  netip.MustParseAddrPort("127.0.0.1:1")}
	s.Scenario.Requests = []load.Request{{Method: "GET", Path: "/{seq}", WantSize: 2}}
	return Order{Spec: s}
}

// pretend runs a load without a service: the response time of request k is a function of k.
func pretend(ctx context.Context, o Order) (*load.Result, error) {
	s := o.Spec
	w := &virtual.World{Serve: func(c virtual.Call) virtual.Reply {
		var k uint64
		if _, err := fmt.Sscanf(c.Text, "GET /%d ", &k); err != nil {
			panic(c.Text)
		}
		return virtual.Answer(time.Duration(100e3+pace.Below(7, k, 3e6)), "ok")
	}}
	s.Describe = load.EngineInfo{Name: "made up", Pacing: "none"}
	return w.Offer(ctx, s)
}

func judged(res *load.Result) record.Verdict {
	return verdict.Judge(&record.Record{Outcome: record.Measured, Loads: []record.Load{res.Load},
		Warmup: record.Warmup{Steady: true}})
}

// finding returns a rule's finding in words.
func finding(v record.Verdict, rule string) (grade, observed string) {
	for _, f := range v.Findings {
		if f.Rule == rule {
			return f.Grade, wording.Finding(f).Observed
		}
	}
	return "", ""
}
