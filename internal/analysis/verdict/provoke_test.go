package verdict_test

import (
	"slices"
	"testing"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// provoke offers the load to a server in virtual time and requires exactly these findings of all
// rules, each as "RULE GRADE".
func provoke(t *testing.T, p truth.Plan, s load.Spec, want ...string) []record.Finding {
	t.Helper()
	return provokeBy(t, virtual.Serve(p), s, want...)
}

// provokeBy does the same in a world that may be faulty.
func provokeBy(t *testing.T, w *virtual.World, s load.Spec, want ...string) []record.Finding {
	t.Helper()
	all := verdict.Judge(offered(t, w, s)).Findings
	var got []string
	for _, f := range all {
		got = append(got, f.Rule+" "+f.Grade)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q: %+v", got, want, all)
	}
	return all
}

// offered returns a record like a trial's whose only load was s.
func offered(t *testing.T, w *virtual.World, s load.Spec) *record.Record {
	t.Helper()
	if s.Timeout == 0 {
		s.Timeout = 5 * time.Second
	}
	if s.Drain == 0 {
		s.Drain = 2 * time.Second
	}
	return recordOf(w.Good(t, s).Load)
}

// recordOf returns a record like a trial's with only this load.
func recordOf(l record.Load) *record.Record {
	return &record.Record{Outcome: record.Measured, Warmup: record.Warmup{Steady: true},
		Loads: []record.Load{l}}
}

// faulty is a server that responds after d, under load by an engine with a fault.
func faulty(d time.Duration, fault func(load.Engine) load.Engine) *virtual.World {
	return &virtual.World{Serve: virtual.Plan(truth.Fixed(d)), Wrap: fault}
}

// quick is the service time of a server that responds immediately.
const quick = 100 * time.Microsecond

// constant and poisson are steady schedules.
func constant(perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(perS)}
}

func poisson(perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perS)}
}

// ramping returns a rate that goes from one value to another.
func ramping(from, to float64, in time.Duration) pace.Profile {
	return pace.Profile{Pieces: []pace.Piece{{ForNs: int64(in), From: from, To: to}}}
}

// TestGoodServersProvokeNothing offers servers without faults a load below capacity, in every
// model.
func TestGoodServersProvokeNothing(t *testing.T) {
	// 800/s for 0.5 s make 400 answers, of 2 ms and more.
	for _, s := range []pace.Schedule{constant(800), poisson(800)} {
		provoke(t, truth.Fixed(2*time.Millisecond), load.Spec{
			Model: record.Open, Schedule: s, Connections: 64, Window: 500 * time.Millisecond,
			Lead: 50 * time.Millisecond,
		})
	}
	// 8 connections and 10 ms make just under 800/s, and 8 intervals of 100 ms to check for drift.
	// Every 20th response is followed by a new connection, as requested.
	provoke(t, truth.Fixed(10*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 8, Window: 800 * time.Millisecond, Churn: 20,
		Lead: 50 * time.Millisecond,
	})
	// From 4 to 60 users, who think for 40 ms of 50: from 80/s to 1,200/s. Only the tenth that
	// waits for a response is under way; otherwise Little's law would fail.
	provoke(t, truth.Fixed(10*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 60, Window: 800 * time.Millisecond, Users: &load.Users{
			Number: ramping(4, 60, 800*time.Millisecond),
			Think:  load.Think{Kind: "constant", Lo: 40 * time.Millisecond},
		},
	})
	// From 100/s to 2,000/s: a tenth of a second each, so that 10 are under way first and 200 last.
	provoke(t, truth.Fixed(100*time.Millisecond), load.Spec{
		Model: record.Open, Connections: 400, Window: 800 * time.Millisecond,
		Schedule: pace.Schedule{
			Arrivals: pace.Poisson, Rate: ramping(100, 2000, 800*time.Millisecond)},
	})
}

// Every response comes 5 ms after the window of 600 ms closes: all 400 are good and none is inside.
func TestAnswersProvoked(t *testing.T) {
	server := truth.Fixed(605 * time.Millisecond)
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 400, Window: 600 * time.Millisecond,
	}, "answers "+invalid)
}

// A freeze in the lead-in delays 0.3 s × 800/s = 240 requests. A queue with a capacity of 820/s
// works off 10 of them in the window's 0.5 s: the backlog does not grow, but more than 200 of the
// window's 400 arrivals are not sent in it. The same number comes from before, so that Little's law
// holds.
func TestDeliveredProvoked(t *testing.T) {
	server := truth.Stall(50*time.Millisecond, 300*time.Millisecond, truth.Cap(1, time.Second/820))
	f := provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(800), Connections: 8, Window: 500 * time.Millisecond,
		Lead: 350 * time.Millisecond,
	}, "delivered "+invalid)
	if f[0].Case != "waited" {
		t.Errorf("found %+v, want that all connections were busy", f[0])
	}
}

// A queue with a capacity of 1,940/s is offered 2,000/s: its backlog grows by 60/s, while at most
// 60 of the 128 connections are busy, so that all is sent. The limit is (5 + 3·√30)/1 s = 21/s.
// Little's law is off by 2,000/1,940 - 1 = 3 %, since later requests wait longer.
func TestCapacityProvoked(t *testing.T) {
	provoke(t, truth.Cap(1, time.Second/1940), load.Spec{
		Model: record.Open, Schedule: constant(2000), Connections: 128, Window: time.Second,
	}, "capacity "+invalid)
}

// 100 connections with responses after 140 ms send at 0, 140, 280 and 420 ms of a window of 500 ms:
// the requests take 4 × 140 = 560 ms of each connection's 500, 12 % more than available. The record
// has the requests without a response after the window.
func TestLittleKnowsTheEdges(t *testing.T) {
	server := truth.Fixed(140 * time.Millisecond)
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 100, Window: 500 * time.Millisecond,
	})
}

// Half of the connections hang from the lead-in on. Nothing was due on them in the window, so every
// count is right; only the 8 requests under way, of which responses explain 4, show the fault.
func TestLittleProvokedByHangingConnections(t *testing.T) {
	server := first(4, truth.Silent, truth.Fixed(2*time.Millisecond))
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 8, Window: 500 * time.Millisecond,
		Lead: 50 * time.Millisecond, Drain: 50 * time.Millisecond,
	}, "little "+invalid)
}

// first changes the responses to the first n requests of the server.
func first(n int64, change func(*truth.Reply), p truth.Plan) truth.Plan {
	return func(now int64, r truth.Request) truth.Reply {
		out := p(now, r)
		if r.N <= n {
			change(&out)
		}
		return out
	}
}

// change gives requests within at of the first one to before, and later ones to after.
func change(at time.Duration, before, after truth.Plan) truth.Plan {
	var began int64
	return func(now int64, r truth.Request) truth.Reply {
		if r.N == 1 {
			began = now
		}
		if now-began < int64(at) {
			return before(now, r)
		}
		return after(now, r)
	}
}

// 3,000/s for 0.4 s are 1,200 requests: one wrong one of them is 0.08 %, two are 0.17 %.
func TestErrorsProvoked(t *testing.T) {
	check := func(every int64, wrong func(*truth.Reply), grade string) {
		t.Helper()
		provoke(t, truth.Every(every, wrong, truth.Fixed(quick)), load.Spec{
			Model: record.Open, Schedule: constant(3000), Connections: 256,
			Window: 400 * time.Millisecond,
		}, "errors "+grade)
	}
	check(1000, truth.Wrong, valid) // no number hangs on it
	check(500, func(r *truth.Reply) {
		r.Text = truth.Answer("503 X", "", "ok")
	}, invalid)
	check(500, func(r *truth.Reply) { r.Text = append(slices.Clone(r.Text), '!') }, invalid)
}

// 1,000/s for 0.4 s are 400 requests. The first ones hang: the backlog exists from the start and
// does not grow. One request does not affect p99, and 8 are 2 %.
func TestCensoredProvoked(t *testing.T) {
	check := func(n int64, grade string) {
		t.Helper()
		provoke(t, first(n, truth.Silent, truth.Fixed(quick)), load.Spec{
			Model: record.Open, Schedule: constant(1000), Connections: 64,
			Window: 400 * time.Millisecond, Drain: 50 * time.Millisecond,
		}, "censored "+grade)
	}
	check(1, valid)
	check(8, invalid)
}

// Closing after 50 answers costs 2 % of the requests a connection.
func TestConnectionsProvoked(t *testing.T) {
	provoke(t, truth.Renew(50, truth.Fixed(quick)), load.Spec{
		Model: record.Closed, Connections: 4, Window: 300 * time.Millisecond,
	}, "connections "+suspect)
}

// 500/s for 0.3 s are 150 responses.
func TestSamplesProvoked(t *testing.T) {
	provoke(t, truth.Fixed(quick), load.Spec{
		Model: record.Open, Schedule: constant(500), Connections: 16,
		Window: 300 * time.Millisecond,
	}, "samples "+valid)
}

// 8 connections with responses after 5 ms and, from the middle of the window on, after 10: 1,600/s
// become 800/s, or the other way round.
func TestDriftProvoked(t *testing.T) {
	check := func(before, after time.Duration) {
		t.Helper()
		server := change(400*time.Millisecond, truth.Fixed(before), truth.Fixed(after))
		provoke(t, server, load.Spec{
			Model: record.Closed, Connections: 8, Window: 800 * time.Millisecond,
		}, "drift "+suspect, "samples "+valid)
	}
	check(5*time.Millisecond, 10*time.Millisecond)
	check(10*time.Millisecond, 5*time.Millisecond)
}

type finding = record.Finding
