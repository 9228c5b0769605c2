package verdict_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/epoll"
	"prony.example/load/pace"
	"prony.example/record"
)

// machine are the rules about the machine, the generator's share of it, and what both do to single
// requests. Tests run beside others, so that these may object to any load here, but where one of
// them is provoked.
var machine = []string{"lag", "timer", "rate", "arrivals", "bursts", "batch", "samples", "settled",
	"generator", "run delay", "ceiling", "steal", "throttled", "neighbours", "memory"}

// attempts bounds how often a load is offered until the machine disturbs it so little that the
// rules object that are provoked, and no other. A machine that is busy elsewhere makes an answer of
// 140 ms one of 150, and so another grade; a rule that is broken fails each time.
const attempts = 4

// provoke offers the load to a server and wants the findings, each as "RULE GRADE", and no other,
// leaving the machine's aside. The server is made anew for each attempt: some have a past.
func provoke(t *testing.T, server func() truth.Plan, s load.Spec, want ...string,
) []record.Finding {
	t.Helper()
	for range attempts {
		v := verdict.Judge(offered(t, server(), s))
		var others []record.Finding
		found := make([]record.Finding, len(want))
		for _, f := range v.Findings {
			if i := slices.Index(want, f.Rule+" "+f.Grade); i >= 0 {
				found[i] = f
			} else if f.Grade != valid && !slices.Contains(machine, f.Rule) {
				others = append(others, f)
			}
		}
		missing := slices.IndexFunc(found, func(f record.Finding) bool { return f.Rule == "" })
		if len(others) == 0 && missing < 0 {
			return found
		}
		t.Logf("want %q and no other, found %+v", want, v.Findings)
	}
	t.Fatalf("in %d attempts never %q and no other", attempts, want)
	return nil
}

// offered is a record as of a trial whose only load was s.
func offered(t *testing.T, p truth.Plan, s load.Spec) *record.Record {
	t.Helper()
	testsets.Cores(t)
	addr, stop, err := truth.Start(p)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	return offeredTo(t, addr, s)
}

// offeredTo is the same of a server that runs already.
func offeredTo(t *testing.T, addr netip.AddrPort, s load.Spec) *record.Record {
	t.Helper()
	s.Address = addr
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	if s.Timeout == 0 {
		s.Timeout = 5 * time.Second
	}
	if s.Drain == 0 {
		s.Drain = 2 * time.Second
	}
	if s.Engine == nil {
		s.Engine = newEngine
	}
	r, err := load.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return &record.Record{
		Outcome: record.Measured, Warmup: record.Warmup{Steady: true},
		Loads: []record.Load{r.Load},
	}
}

func newEngine(a netip.AddrPort, slots int) (load.Engine, error) { return epoll.New(a, slots) }

// hello answers at once, after a known time.
func hello() truth.Plan { return truth.Fixed(0) }

func after(d time.Duration) func() truth.Plan {
	return func() truth.Plan { return truth.Fixed(d) }
}

// constant and poisson are steady schedules.
func constant(perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(perS)}
}

func poisson(perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perS)}
}

// ramp goes from one value to another.
func ramping(from, to float64, in time.Duration) pace.Profile {
	return pace.Profile{Pieces: []pace.Piece{{ForNs: int64(in), From: from, To: to}}}
}

// Servers that do what they should, offered what they can bear, in every model.
func TestGoodServersProvokeNothing(t *testing.T) {
	// 800/s for 0.5 s make 400 answers, of 2 ms and more.
	for _, s := range []pace.Schedule{constant(800), poisson(800)} {
		provoke(t, after(2*time.Millisecond), load.Spec{
			Model: record.Open, Schedule: s, Connections: 64, Window: 500 * time.Millisecond,
			Lead: 50 * time.Millisecond,
		})
	}
	// 8 connections and 10 ms make just under 800/s, and 8 intervals of 100 ms to look for drift
	// in. Every 20th answer is followed by a new connection, as was asked for.
	provoke(t, after(10*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 8, Window: 800 * time.Millisecond, Churn: 20,
		Lead: 50 * time.Millisecond,
	})
	// From 4 to 60 users, who think for 40 ms of 50: from 80/s to 1,200/s. Only the tenth that
	// waits for an answer is under way, or Little's law would be off by far.
	provoke(t, after(10*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 60, Window: 800 * time.Millisecond, Users: &load.Users{
			Number: ramping(4, 60, 800*time.Millisecond),
			Think:  load.Think{Kind: "constant", Lo: 40 * time.Millisecond},
		},
	})
	// From 100/s to 2,000/s: a tenth of a second each, so that 10 are under way first and 200 last.
	provoke(t, after(100*time.Millisecond), load.Spec{
		Model: record.Open, Connections: 400, Window: 800 * time.Millisecond,
		Schedule: pace.Schedule{
			Arrivals: pace.Poisson, Rate: ramping(100, 2000, 800*time.Millisecond)},
	})
}

// Every answer comes 5 ms after the window of 600 ms closes: all 400 are good and none is inside.
func TestAnswersProvoked(t *testing.T) {
	server := func() truth.Plan { return truth.Fixed(605 * time.Millisecond) }
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 400, Window: 600 * time.Millisecond,
	}, "answers "+invalid)
}

// A freeze in the lead-in holds up 0.3 s × 800/s = 240 requests. A queue with a capacity of 820/s
// works off 10 of them in the window's 0.5 s: the backlog does not grow, but more than 200 of the
// window's 400 arrivals are not sent in it. As many come over from before, so that Little's law
// holds.
func TestDeliveredProvoked(t *testing.T) {
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	server := func() truth.Plan {
		return truth.Stall(50*time.Millisecond, 300*time.Millisecond,
			truth.Cap(1, time.Second/820))
	}
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
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	server := func() truth.Plan {
		return truth.Cap(1, time.Second/1940)
	}
	provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(2000), Connections: 128, Window: time.Second,
	}, "capacity "+invalid)
}

// 100 connections with answers after 140 ms send at 0, 140, 280 and 420 ms of a window of 500 ms:
// the requests take 4 × 140 = 560 ms of each connection's 500, 12 % more than there is. What is
// left to be answered after the window is told.
func TestLittleKnowsTheEdges(t *testing.T) {
	server := func() truth.Plan { return truth.Fixed(140 * time.Millisecond) }
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 100, Window: 500 * time.Millisecond,
	})
}

// Half of the connections hang from the lead-in on. Nothing was due on them in the window, so that
// no count is wrong; only that 8 are under way where the answers account for 4 gives them away.
func TestLittleProvokedByHangingConnections(t *testing.T) {
	server := func() truth.Plan {
		return first(4, truth.Silent, truth.Fixed(2*time.Millisecond))
	}
	provoke(t, server, load.Spec{
		Model: record.Closed, Connections: 8, Window: 500 * time.Millisecond,
		Lead: 50 * time.Millisecond, Drain: 50 * time.Millisecond,
	}, "little "+invalid)
}

// first changes the answers of the first n requests of the server.
func first(n int64, change func(*truth.Reply), p truth.Plan) truth.Plan {
	return func(now int64, r truth.Request) truth.Reply {
		out := p(now, r)
		if r.N <= n {
			change(&out)
		}
		return out
	}
}

// change gives requests that come within at of the first one to before, later ones to after.
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
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	check := func(every int64, wrong func(*truth.Reply), grade string) {
		t.Helper()
		provoke(t, func() truth.Plan { return truth.Every(every, wrong, truth.Fixed(0)) },
			load.Spec{
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

// 1,000/s for 0.4 s are 400 requests. The first ones hang: the backlog is there from the start and
// does not grow. One is less than what p99 hangs on, 8 are 2 %.
func TestCensoredProvoked(t *testing.T) {
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	check := func(n int64, grade string) {
		t.Helper()
		server := func() truth.Plan { return first(n, truth.Silent, truth.Fixed(0)) }
		provoke(t, server, load.Spec{
			Model: record.Open, Schedule: constant(1000), Connections: 64,
			Window: 400 * time.Millisecond, Drain: 50 * time.Millisecond,
		}, "censored "+grade)
	}
	check(1, valid)
	check(8, invalid)
}

// Closing after 50 answers costs 2 % of the requests a connection.
func TestConnectionsProvoked(t *testing.T) {
	provoke(t, func() truth.Plan { return truth.Renew(50, truth.Fixed(0)) }, load.Spec{
		Model: record.Closed, Connections: 4, Window: 300 * time.Millisecond,
	}, "connections "+suspect)
}

// 500/s for 0.3 s are 150 answers.
func TestSamplesProvoked(t *testing.T) {
	provoke(t, func() truth.Plan { return truth.Fixed(0) }, load.Spec{
		Model: record.Open, Schedule: constant(500), Connections: 16,
		Window: 300 * time.Millisecond,
	}, "samples "+valid)
}

// 8 connections answered after 5 ms and, from the middle of the window on, after 10: 1,600/s become
// 800/s, or the other way round.
func TestDriftProvoked(t *testing.T) {
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	check := func(before, after time.Duration) {
		t.Helper()
		server := func() truth.Plan {
			return change(400*time.Millisecond, truth.Fixed(before),
				truth.Fixed(after))
		}
		provoke(t, server, load.Spec{
			Model: record.Closed, Connections: 8, Window: 800 * time.Millisecond,
		}, "drift "+suspect)
	}
	check(5*time.Millisecond, 10*time.Millisecond)
	check(10*time.Millisecond, 5*time.Millisecond)
}

type finding = record.Finding
