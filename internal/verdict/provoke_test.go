package verdict_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"prony/internal/load"
	"prony/internal/load/epoll"
	"prony/internal/result"
	"prony/internal/truth"
	"prony/internal/verdict"
)

// machine are the rules about the machine and the generator's share of it. Tests run beside others,
// so that these may object to any load here.
var machine = []string{"lag", "generator", "run delay", "ceiling", "steal", "throttled",
	"neighbours", "memory"}

// attempts bounds how often a load is offered until the machine disturbs it so little that no rule
// objects but the one that is provoked. That one must object each time.
const attempts = 4

// provoke offers the load to a server and wants one finding of the rule and grade, or none for no
// rule, leaving the machine's aside. The server is made anew for each attempt: some have a past.
func provoke(t *testing.T, server func() truth.Handler, s load.Spec, rule, grade string,
) result.Finding {
	t.Helper()
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	s.Engine = func(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) }
	s.Arrivals = "constant"
	var others []result.Finding
	for range attempts {
		v := verdict.Judge(offered(t, server(), s))
		others = slices.DeleteFunc(v.Findings, func(f result.Finding) bool {
			return slices.Contains(machine, f.Rule)
		})
		found := result.Finding{Rule: rule, Grade: grade}
		if rule != "" {
			n := slices.IndexFunc(others, func(f result.Finding) bool { return f.Rule == rule })
			if n < 0 || others[n].Grade != grade {
				t.Fatalf("want %s of %s, found %+v", grade, rule, others)
			}
			found = others[n]
			others = slices.Delete(others, n, n+1)
		}
		if len(others) == 0 {
			return found
		}
		t.Logf("other rules object too: %+v", others)
	}
	t.Errorf("in %d attempts rules other than %q objected, last %+v", attempts, rule, others)
	return result.Finding{}
}

// offered is a record as of a trial whose only load was s.
func offered(t *testing.T, h truth.Handler, s load.Spec) *result.Record {
	t.Helper()
	server, err := truth.Serve(h)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s.Address = server.Addr
	if s.Timeout == 0 {
		s.Timeout = 5 * time.Second
	}
	if s.Drain == 0 {
		s.Drain = 2 * time.Second
	}
	r, err := load.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return &result.Record{
		Outcome: result.Measured, Warmup: result.Warmup{Steady: true},
		Loads: []result.Load{r.Load},
	}
}

// A server that does what it should, offered what it can bear, in both models.
func TestGoodServersProvokeNothing(t *testing.T) {
	// 800/s for 0.5 s make 400 answers, of 2 ms and more.
	server := func() truth.Handler { return truth.After(2*time.Millisecond, truth.Hello("ok")) }
	provoke(t, server, load.Spec{
		Model: load.Open, RatePerS: 800, Connections: 32, Window: 500 * time.Millisecond,
		Lead: 50 * time.Millisecond,
	}, "", "")
	// 8 connections and 10 ms make just under 800/s, and 8 intervals of 100 ms to look for drift
	// in.
	server = func() truth.Handler { return truth.After(10*time.Millisecond, truth.Hello("ok")) }
	provoke(t, server, load.Spec{
		Model: load.Closed, Connections: 8, Window: 800 * time.Millisecond,
		Lead: 50 * time.Millisecond,
	}, "", "")
}

// Every answer comes 5 ms after the window of 600 ms closes: all 400 are good and none is inside.
func TestAnswersProvoked(t *testing.T) {
	server := func() truth.Handler { return truth.After(605*time.Millisecond, truth.Hello("ok")) }
	provoke(t, server, load.Spec{
		Model: load.Closed, Connections: 400, Window: 600 * time.Millisecond,
	}, "answers", invalid)
}

// A freeze in the lead-in holds up 0.3 s × 800/s = 240 requests. A queue with a capacity of 820/s
// works off 10 of them in the window's 0.5 s: the backlog does not grow, but more than 200 of the
// window's 400 arrivals are not sent in it. As many come over from before, so that Little's law
// holds.
func TestDeliveredProvoked(t *testing.T) {
	server := func() truth.Handler {
		return truth.Stall(50*time.Millisecond, 300*time.Millisecond,
			truth.Queue(time.Second/820, truth.Hello("ok")))
	}
	f := provoke(t, server, load.Spec{
		Model: load.Open, RatePerS: 800, Connections: 8, Window: 500 * time.Millisecond,
		Lead: 350 * time.Millisecond,
	}, "delivered", invalid)
	if want := "all connections were busy"; !strings.Contains(f.Hint, want) {
		t.Errorf("hint is %q, want %q", f.Hint, want)
	}
}

// A queue with a capacity of 1,940/s is offered 2,000/s: its backlog grows by 60/s, while at most
// 60 of the 128 connections are busy, so that all is sent. The limit is (5 + 3·√30)/1 s = 21/s.
// Little's law is off by 2,000/1,940 - 1 = 3 %, since later requests wait longer.
func TestCapacityProvoked(t *testing.T) {
	server := func() truth.Handler {
		return truth.Queue(time.Second/1940, truth.Hello("ok"))
	}
	provoke(t, server, load.Spec{
		Model: load.Open, RatePerS: 2000, Connections: 128, Window: time.Second,
	}, "capacity", invalid)
}

// 100 connections with answers after 140 ms send at 0, 140, 280 and 420 ms of a window of 500 ms:
// the requests take 4 × 140 = 560 ms of each connection's 500, 12 % more than there is.
func TestLittleProvokedByAShortWindow(t *testing.T) {
	server := func() truth.Handler { return truth.After(140*time.Millisecond, truth.Hello("ok")) }
	provoke(t, server, load.Spec{
		Model: load.Closed, Connections: 100, Window: 500 * time.Millisecond,
	}, "little", suspect)
}

// Half of the connections hang from the lead-in on. Nothing was due on them in the window, so that
// no count is wrong; only that 8 are under way where the answers account for 4 gives them away.
func TestLittleProvokedByHangingConnections(t *testing.T) {
	server := func() truth.Handler {
		return first(4, truth.Silent(), truth.After(2*time.Millisecond, truth.Hello("ok")))
	}
	provoke(t, server, load.Spec{
		Model: load.Closed, Connections: 8, Window: 500 * time.Millisecond,
		Lead: 50 * time.Millisecond, Drain: 50 * time.Millisecond,
	}, "little", invalid)
}

// first gives the first n requests of the server to other.
func first(n int64, other, h truth.Handler) truth.Handler {
	return func(c *truth.Conn, r *truth.Request) bool {
		if r.N <= n {
			return other(c, r)
		}
		return h(c, r)
	}
}

// 3,000/s for 0.4 s are 1,200 requests: one wrong one of them is 0.08 %, two are 0.17 %.
func TestErrorsProvoked(t *testing.T) {
	check := func(every int64, wrong truth.Handler, grade string) {
		t.Helper()
		provoke(t, func() truth.Handler { return truth.Every(every, wrong, truth.Hello("ok")) },
			load.Spec{
				Model: load.Open, RatePerS: 3000, Connections: 64, Window: 400 * time.Millisecond,
			}, "errors", grade)
	}
	check(1000, truth.Hello("no"), suspect)
	check(500, func(c *truth.Conn, _ *truth.Request) bool { return c.Answer(503, "ok") }, invalid)
}

// 1,000/s for 0.4 s are 400 requests. The first ones hang: the backlog is there from the start and
// does not grow. 4 are 1 %, 8 are 2 %; the rest are enough for an interval of p99.
func TestCensoredProvoked(t *testing.T) {
	check := func(n int64, grade string) {
		t.Helper()
		server := func() truth.Handler { return first(n, truth.Silent(), truth.Hello("ok")) }
		provoke(t, server, load.Spec{
			Model: load.Open, RatePerS: 1000, Connections: 32, Window: 400 * time.Millisecond,
			Drain: 50 * time.Millisecond,
		}, "censored", grade)
	}
	check(4, suspect)
	check(8, invalid)
}

// Closing after 50 answers costs 2 % of the requests a connection.
func TestConnectionsProvoked(t *testing.T) {
	provoke(t, func() truth.Handler { return truth.KeepAlive(50, "ok") }, load.Spec{
		Model: load.Open, RatePerS: 800, Connections: 4, Window: 500 * time.Millisecond,
	}, "connections", suspect)
}

// 500/s for 0.3 s are 150 answers.
func TestSamplesProvoked(t *testing.T) {
	provoke(t, func() truth.Handler { return truth.Hello("ok") }, load.Spec{
		Model: load.Open, RatePerS: 500, Connections: 16, Window: 300 * time.Millisecond,
	}, "samples", suspect)
}

// 8 connections answered after 5 ms and, from the middle of the window on, after 10: 1,600/s become
// 800/s, or the other way round.
func TestDriftProvoked(t *testing.T) {
	check := func(before, after time.Duration) {
		t.Helper()
		server := func() truth.Handler {
			return truth.Change(400*time.Millisecond, truth.After(before, truth.Hello("ok")),
				truth.After(after, truth.Hello("ok")))
		}
		provoke(t, server, load.Spec{
			Model: load.Closed, Connections: 8, Window: 800 * time.Millisecond,
		}, "drift", suspect)
	}
	check(5*time.Millisecond, 10*time.Millisecond)
	check(10*time.Millisecond, 5*time.Millisecond)
}
