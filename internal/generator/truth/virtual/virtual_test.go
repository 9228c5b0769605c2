package virtual_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

const ms = time.Millisecond

// open returns a load of constant arrivals for a second.
func open(perS float64, connections int) load.Spec {
	return load.Spec{Model: record.Open, Connections: connections, Drain: time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(perS)}}
}

// took checks that all responses are good, and the shortest and the longest service time within a
// histogram's bin of a thousandth.
func took(t *testing.T, r *load.Result, n int64, shortest, longest time.Duration) {
	t.Helper()
	same := func(got int64, want time.Duration) bool {
		off := time.Duration(got) - want
		return off >= -want/500 && off <= want/500
	}
	if r.Answered != n || r.Errors.Total() > 0 || !same(r.ServiceTime.MinNs, shortest) ||
		!same(r.ServiceTime.MaxNs, longest) {
		t.Errorf("%d answered, %d errors, %d to %d ns; want %d in %v to %v", r.Answered,
			r.Errors.Total(), r.ServiceTime.MinNs, r.ServiceTime.MaxNs, n, shortest, longest)
	}
}

// TestPlans checks that each response is sent when it is due, for all plans.
func TestPlans(t *testing.T) {
	took(t, virtual.Serve(truth.Fixed(7*ms)).Good(t, open(100, 8)), 100, 7*ms, 7*ms)
	// One server, 8 ms each, requests every 10 ms, on any connection.
	took(t, virtual.Serve(truth.Cap(1, 8*ms)).Good(t, open(100, 1)), 100, 8*ms, 8*ms)
	// A freeze from 300 to 400 ms delays the request at 300 the longest.
	stall := truth.Stall(300*ms, 100*ms, truth.Fixed(ms))
	took(t, virtual.Serve(stall).Good(t, open(100, 64)), 100, ms, 101*ms)
	// Ten bytes of body, 2 ms apart: the last comes 5 + 9·2 ms after the request.
	s := open(20, 4)
	s.Scenario.Requests = []load.Request{{Method: "GET", Path: "/", Want: "..........",
		HasWant: true}}
	r := virtual.Serve(truth.Drip(5*ms, 10, 2*ms)).Good(t, s)
	took(t, r, 20, 23*ms, 23*ms)
	if r.FirstByte.MaxNs/1e4 != 500 {
		t.Errorf("first bytes after up to %d ns, want 5 ms", r.FirstByte.MaxNs)
	}
	// A server that burns CPU time accepts one request at a time: 4 ms each, for closed connections
	// in turn.
	r = virtual.Serve(truth.Burn(4*ms)).Good(t, load.Spec{Model: record.Closed, Connections: 3})
	if r.Done != 249 && r.Done != 250 || r.ServiceTime.P50Ns/1e5 != 120 {
		t.Errorf("%d done in %d ns each, want 250 in 12 ms", r.Done, r.ServiceTime.P50Ns)
	}
}

// TestEnds checks that a plan determines the ends of connections.
func TestEnds(t *testing.T) {
	serve := func(change func(*truth.Reply), s load.Spec) *load.Result {
		return virtual.Serve(truth.Every(10, change, truth.Fixed(ms))).Good(t, s)
	}
	if r := serve(truth.Torn, open(100, 4)); r.Errors.Read != 10 || r.Answered != 90 ||
		!strings.Contains(r.Errors.Example, "reset") {
		t.Errorf("%+v", r.Errors)
	}
	s := open(100, 64)
	s.Timeout = 100 * ms
	if r := serve(truth.Silent, s); r.Errors.Timeout != 10 || r.Answered != 90 {
		t.Errorf("%+v", r.Errors)
	}
	w := virtual.Serve(truth.Renew(5, truth.Fixed(ms)))
	if r := w.Good(t, open(100, 1)); r.Answered != 100 || w.Attempts != 21 {
		t.Errorf("%d answered over %d connections, want 100 over 21", r.Answered, w.Attempts)
	}
	// A request on a connection that the server has just closed never arrives, and is sent again.
	end := func(r *truth.Reply) { r.Then = truth.Close }
	w = virtual.Serve(truth.Every(10, end, truth.Fixed(ms)))
	r := w.Good(t, load.Spec{Model: record.Closed, Connections: 1, Requests: 100})
	if len(w.Calls) != 100 || r.Answered != 100 || r.Retried != 9 || w.Attempts != 11 {
		t.Errorf("the server received %d over %d connections, %d answered, %d sent again",
			len(w.Calls), w.Attempts, r.Answered, r.Retried)
	}
}

// TestBrokenWorlds checks a network that refuses connections, and an engine that fails.
func TestBrokenWorlds(t *testing.T) {
	refused := errors.New("refused")
	w := &virtual.World{Connect: func(int) (time.Duration, error) { return ms, refused }}
	if _, err := w.Run(t, open(100, 4)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
	w = &virtual.World{Serve: virtual.After(ms), Broken: errors.New("broken")}
	if _, err := w.Run(t, open(100, 4)); !errors.Is(err, w.Broken) {
		t.Errorf("error %v", err)
	}
}

// TestRunsRepeat checks that runs are equal, to the bin.
func TestRunsRepeat(t *testing.T) {
	run := func() record.Load {
		draw := rand.New(rand.NewPCG(1, 2))
		p := truth.Queue(func(int64) time.Duration { return time.Duration(draw.Float64() * 5e6) })
		s := open(300, 16)
		s.Schedule.Arrivals = pace.Poisson
		return virtual.Serve(p).Good(t, s).Load
	}
	a, b := run(), run()
	if a.ResponseTime != b.ResponseTime || a.Generator != b.Generator ||
		!slices.Equal(a.Series.P99Ns, b.Series.P99Ns) || a.Answered == 0 {
		t.Errorf("%+v and %+v", a.ResponseTime, b.ResponseTime)
	}
}

// TestFaults checks that each fault has its effect. A thread sleeps from the end of its tick of 10
// ms on.
func TestFaults(t *testing.T) {
	by := func(fault func(load.Engine) load.Engine) *load.Result {
		w := &virtual.World{Serve: virtual.After(ms), Wrap: fault}
		return w.Good(t, open(1000, 512))
	}
	if r := by(nil); r.OwnLag.MaxNs > 1 || r.Generator.Wakeup.MaxNs > 1 {
		t.Errorf("late by %d ns without a fault", r.OwnLag.MaxNs)
	}
	if r := by(virtual.Ticking(10 * ms)); r.OwnLag.MaxNs < int64(8*ms) ||
		r.OwnLag.MaxNs > int64(10*ms) || r.Answered != 1000 {
		t.Errorf("late by %d ns with ticks of 10 ms", r.OwnLag.MaxNs)
	}
	if r := by(virtual.Sleeping(300*ms, 50*ms)); r.OwnLag.MaxNs/1e6 != 49 &&
		r.OwnLag.MaxNs/1e6 != 50 || r.Generator.StallMaxNs != int64(40*ms) {
		t.Errorf("late by %d ns, stood still for %d ns", r.OwnLag.MaxNs, r.Generator.StallMaxNs)
	}
	if r := by(virtual.Preempted(20*ms, 100*ms)); r.OwnLag.MaxNs/1e6 != 19 &&
		r.OwnLag.MaxNs/1e6 != 20 || r.Answered != 1000 || r.OwnLag.P50Ns > 1 {
		t.Errorf("late by %d ns, %d in the middle", r.OwnLag.MaxNs, r.OwnLag.P50Ns)
	}
	w := &virtual.World{Serve: virtual.After(ms), Wrap: virtual.Refusing(3)}
	r := w.Good(t, load.Spec{Model: record.Closed, Connections: 8})
	if r.Done != 3*999 || r.Errors.Connect == 0 {
		t.Errorf("%d done over 3 of 8 connections, %+v", r.Done, r.Errors)
	}
}
