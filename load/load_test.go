package load_test

import (
	"context"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/epoll"
	"prony.example/load/pace"
	"prony.example/record"
)

func epollEngine(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) }

func get(path, want string) load.Scenario {
	return load.Scenario{
		Requests: []load.Request{{Method: "GET", Path: path, Want: want, HasWant: true}},
		KeyLo:    1, KeyHi: 1,
	}
}

// offer runs a load against a truth server, with plain defaults for what the spec leaves out.
func offer(t *testing.T, p truth.Plan, s load.Spec) *load.Result {
	t.Helper()
	addr, stop, err := truth.Start(p)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	return offerTo(t, addr, s)
}

func offerTo(t *testing.T, addr netip.AddrPort, s load.Spec) *load.Result {
	t.Helper()
	s.Address = addr
	if s.Engine == nil {
		s.Engine = epollEngine
	}
	if s.Scenario.Requests == nil {
		s.Scenario = get("/", "ok")
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Drain == 0 {
		s.Drain = 10 * time.Second
	}
	r, err := load.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// says is another answer than that of the plan, and what becomes of the connection then.
func says(text string, then truth.End) func(*truth.Reply) {
	return func(r *truth.Reply) { r.Text, r.Then = []byte(text), then }
}

func body(text string) func(*truth.Reply) {
	return says(string(truth.Answer("200 OK", "", text)), truth.Keep)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %g, want %g ± %g", what, got, want, tolerance)
	}
}

const ms = 1e6

// Eight connections, each answered after 20 ms: 8/0.02 = 400 requests a second, never more.
func TestClosedThroughputIsConnectionsOverServiceTime(t *testing.T) {
	testsets.Cores(t)
	r := offer(t, truth.Fixed(20*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 8, Window: time.Second, Lead: 100 * time.Millisecond,
	})
	if r.ThroughputPerS > 400+8 || r.ThroughputPerS < 300 {
		t.Errorf("throughput is %g/s, want just under 400", r.ThroughputPerS)
	}
	if r.ServiceTime.MinNs < 20*ms {
		t.Errorf("shortest service time is %d ns, under the server's 20 ms", r.ServiceTime.MinNs)
	}
	near(t, "requests under way", r.InFlightMean, 8, 0.1)
	if n := r.Errors.Total(); n != 0 {
		t.Errorf("%d errors: %s", n, r.Errors.Example)
	}
	if r.Scheduled != r.Answered || r.Censored != 0 {
		t.Errorf("scheduled %d, answered %d, censored %d", r.Scheduled, r.Answered, r.Censored)
	}
}

// A server that freezes for 400 ms of 1 s at 500/s constant arrivals holds up 200 requests,
// uniformly spread over (0, 400 ms): mean response 0.4²/(2·1) s = 80 ms over all, maximum 400 ms. A
// generator with coordinated omission would see one slow request per connection.
func TestStallIsSeenByEveryRequestThatItHeldUp(t *testing.T) {
	testsets.Cores(t)
	r := offer(t, truth.Stall(300*time.Millisecond, 400*time.Millisecond, truth.Fixed(0)),
		load.Spec{
			Model: record.Open, Schedule: even(500), Connections: 4, Window: time.Second,
		})
	if r.Scheduled != 500 || r.Answered != 500 {
		t.Fatalf("scheduled %d, answered %d, want 500 of both", r.Scheduled, r.Answered)
	}
	near(t, "mean response in ms", r.ResponseTime.MeanNs/ms, 80, 12)
	near(t, "longest response in ms", float64(r.ResponseTime.MaxNs)/ms, 400, 40)
	// 200 of 500 were held up, so the 60th percentile is where waiting begins: p90 is
	// 0.4·(1-0.1/0.4).
	near(t, "p90 response in ms", float64(r.ResponseTime.P90Ns)/ms, 300, 40)
	// Only the four requests on the wire were slow for the server itself.
	if r.ServiceTime.P90Ns > 100*ms {
		t.Errorf("p90 service time is %d ns: the queue has leaked into it", r.ServiceTime.P90Ns)
	}
}

// A server of capacity 100/s is offered 200/s for a second: a backlog that grows by 100/s, and what
// is not answered by the end of the drain is censored, not forgotten.
func TestOverloadShowsAsBacklogAndCensoring(t *testing.T) {
	testsets.Cores(t)
	r := offer(t, truth.Cap(1, 10*time.Millisecond), load.Spec{
		Model: record.Open, Schedule: even(200), Connections: 4, Window: time.Second,
		Drain: 200 * time.Millisecond,
	})
	if r.Scheduled != 200 {
		t.Errorf("scheduled %d, want 200", r.Scheduled)
	}
	near(t, "backlog per second", r.BacklogPerS, 102, 15)
	// 1.2 s at 100/s answers at most 120; the other 80 and more are censored.
	if r.Censored < 80 || r.Censored+r.Answered != r.Scheduled {
		t.Errorf("answered %d, censored %d of %d", r.Answered, r.Censored, r.Scheduled)
	}
	if r.Sent >= r.Scheduled {
		t.Errorf("sent %d of %d within the window, though the server was too slow", r.Sent,
			r.Scheduled)
	}
}

func TestErrorsByClass(t *testing.T) {
	check := func(name string, change func(*truth.Reply), count func(*load.Result) int64,
		want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			timeout := 10 * time.Second
			if name == "silent" {
				timeout = 200 * time.Millisecond
			}
			r := offer(t, truth.Every(10, change, truth.Fixed(0)), load.Spec{
				Model: record.Open, Schedule: even(500), Connections: 4,
				Window: 400 * time.Millisecond, Timeout: timeout,
			})
			// 200 arrivals, each tenth request of the server goes wrong: 20, no other.
			if got := count(r); got != 20 || r.Errors.Total() != 20 {
				t.Errorf("%d of this class, %+v in all; want 20", got, r.Errors)
			}
			if r.Answered != 180 || r.Censored != 0 {
				t.Errorf("answered %d, censored %d; want 180 and 0", r.Answered, r.Censored)
			}
			if !strings.Contains(r.Errors.Example, want) {
				t.Errorf("example %q does not say %q", r.Errors.Example, want)
			}
			if r.ErrorTime.Count != 20 {
				t.Errorf("error histogram has %d entries, want 20", r.ErrorTime.Count)
			}
		})
	}
	status := says(string(truth.Answer("500 X", "", "ok")), truth.Keep)
	check("status", status, func(r *load.Result) int64 { return r.Errors.Status },
		"status 500, want 200")
	check("body", truth.Wrong, func(r *load.Result) int64 { return r.Errors.Body },
		"GET / HTTP/1.1")
	check("short body", body("o"), func(r *load.Result) int64 { return r.Errors.Body },
		"1 bytes")
	check("long body", body("okay"), func(r *load.Result) int64 { return r.Errors.Body },
		"4 bytes")
	check("no HTTP", says("hello there, this is no HTTP\r\n\r\n", truth.Keep),
		func(r *load.Result) int64 { return r.Errors.Parse }, "not HTTP")
	check("closed early", says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", truth.Close),
		func(r *load.Result) int64 { return r.Errors.Read }, "closed the connection")
	check("reset", truth.Torn, func(r *load.Result) int64 { return r.Errors.Read }, "reset")
	check("silent", truth.Silent, func(r *load.Result) int64 { return r.Errors.Timeout },
		"timeout")
}

// Ways to end an answer that are all good HTTP.
func TestFramings(t *testing.T) {
	check := func(name, raw string, keep bool) {
		t.Run(name, func(t *testing.T) {
			then := truth.Close
			if keep {
				then = truth.Keep
			}
			r := offer(t, truth.Every(1, says(raw, then), truth.Fixed(0)), load.Spec{
				Model: record.Open, Schedule: even(200), Connections: 4,
				Window: 200 * time.Millisecond,
			})
			if r.Answered != 40 || r.Errors.Total() != 0 {
				t.Errorf("answered %d of 40; %+v", r.Answered, r.Errors)
			}
			if renewed := r.Reconnects > 0; renewed == keep {
				t.Errorf("%d reconnects with keep-alive %v", r.Reconnects, keep)
			}
		})
	}
	check("length", "HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok", true)
	check("chunked",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n", true)
	check("interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		true)
	check("until close", "HTTP/1.1 200 OK\r\n\r\nok", false)
	check("close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false)
	check("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false)
}

func TestNobodyListens(t *testing.T) {
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	_, err = load.Run(context.Background(), load.Spec{
		Address: addr, Scenario: get("/", "ok"), Model: record.Closed, Connections: 2,
		Window: time.Second, Timeout: time.Second, Engine: epollEngine,
	})
	if err == nil || !strings.Contains(err.Error(), "refused") ||
		!strings.Contains(err.Error(), "is the service running?") {
		t.Errorf("error is %v", err)
	}
}

// The same seed asks the same keys in the same order; the server checks that the answer fits the
// key.
func TestKeysAreDrawnAndChecked(t *testing.T) {
	seen := make(chan string, 1000)
	echo := func(now int64, r truth.Request) truth.Reply {
		path := string(r.Path)
		seen <- path
		return truth.Reply{At: now,
			Text: truth.Answer("200 OK", "", "value-"+strings.TrimPrefix(path, "/k?key="))}
	}
	s := get("/k?key={key}", "value-{key}")
	s.KeyLo, s.KeyHi = 1, 50000
	r := offer(t, echo, load.Spec{
		Model: record.Open, Schedule: even(500), Connections: 1, Window: 400 * time.Millisecond,
		Scenario: s, Seed: 7,
	})
	if r.Errors.Total() != 0 || r.Answered != 200 {
		t.Fatalf("answered %d, %+v", r.Answered, r.Errors)
	}
	distinct := map[string]bool{}
	close(seen)
	for p := range seen {
		distinct[p] = true
	}
	// 200 draws of 50,000: 200²/(2·50000) = 0.4 collisions expected.
	if len(distinct) < 195 {
		t.Errorf("only %d distinct keys in 200 requests", len(distinct))
	}
}

// at is a schedule of one rate.
func at(arrivals string, perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: arrivals, Rate: pace.Flat(perS)}
}

// even is a schedule of equal gaps.
func even(perS float64) pace.Schedule { return at("constant", perS) }
