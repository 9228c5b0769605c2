package load_test

import (
	"context"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
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

// offer runs a load against a truth server in virtual time.
func offer(t *testing.T, p truth.Plan, s load.Spec) *load.Result {
	t.Helper()
	return offerIn(t, virtual.Serve(p), s)
}

// offerIn is offer in a given world.
func offerIn(t *testing.T, w *virtual.World, s load.Spec) *load.Result {
	t.Helper()
	if s.Drain == 0 {
		s.Drain = 10 * time.Second
	}
	return w.Good(t, s)
}

// offerReal runs a load against a truth server on a real socket.
func offerReal(t *testing.T, p truth.Plan, s load.Spec) *load.Result {
	t.Helper()
	addr, stop, err := truth.Start(p)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	return offerTo(t, addr, s)
}

// offerTo runs a load against a real address, with defaults for missing fields of the spec.
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

// says is a response different from the plan's, and what happens to the connection then.
func says(text string, then truth.End) func(*truth.Reply) {
	return func(r *truth.Reply) { r.Text, r.Then = []byte(text), then }
}

func body(text string) func(*truth.Reply) {
	return says(string(truth.Answer("200 OK", "", text)), truth.Keep)
}

const ms = 1e6

// binned compares a time from a histogram, which keeps three digits.
func binned(t *testing.T, what string, got int64, want time.Duration) {
	t.Helper()
	if off := math.Abs(float64(got) - float64(want)); off > float64(want)/1000 {
		t.Errorf("%s is %v, want %v", what, time.Duration(got), want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Eight connections, each with a response after 20 ms: 8/0.02 = 400 requests per second. The
// lead-in of 100 ms is five of them, so the window opens and closes with responses.
func TestClosedThroughputIsConnectionsOverServiceTime(t *testing.T) {
	r := offer(t, truth.Fixed(20*time.Millisecond), load.Spec{
		Model: record.Closed, Connections: 8, Window: time.Second, Lead: 100 * time.Millisecond,
	})
	equal(t, "throughput", r.ThroughputPerS, 400)
	binned(t, "shortest service time", r.ServiceTime.MinNs, 20*time.Millisecond)
	binned(t, "longest service time", r.ServiceTime.MaxNs, 20*time.Millisecond)
	equal(t, "requests under way", r.InFlightMean, 8)
	equal(t, "errors", r.Errors.Total(), 0)
	equal(t, "scheduled", r.Scheduled, 400)
	equal(t, "answered", r.Answered, 400)
	equal(t, "censored", r.Censored, 0)
}

// A server that freezes for 400 ms of 1 s at 500/s constant arrivals delays the 200 requests due at
// 300, 302, …, 698 ms, by 400, 398, …, 2 ms: their mean is 201 ms, that of all 500 is 80.4 ms. A
// generator with coordinated omission would report one slow request per connection.
func TestStallIsSeenByEveryRequestThatItHeldUp(t *testing.T) {
	const freeze = 400 * time.Millisecond
	r := offer(t, truth.Stall(300*time.Millisecond, freeze, truth.Fixed(0)), load.Spec{
		Model: record.Open, Schedule: even(500), Connections: 4, Window: time.Second,
	})
	equal(t, "scheduled", r.Scheduled, 500)
	equal(t, "answered", r.Answered, 500)
	binned(t, "mean response", int64(r.ResponseTime.MeanNs), 80_400*time.Microsecond)
	binned(t, "longest response", r.ResponseTime.MaxNs, freeze)
	// The 450th of 500 is the 150th of the 200 delayed ones.
	binned(t, "p90 response", r.ResponseTime.P90Ns, 300*time.Millisecond)
	// For the server itself, only the four requests on the wire were slow.
	binned(t, "longest service time", r.ServiceTime.MaxNs, freeze)
	if r.ServiceTime.P99Ns > 1 {
		t.Errorf("p99 service time is %d ns: the queue has leaked into it", r.ServiceTime.P99Ns)
	}
	equal(t, "waited", r.Waited, 196)
}

// A server with a capacity of 100/s gets 200/s for a second: the backlog grows by 100/s, and
// requests without a response by the end of the drain are counted as censored.
func TestOverloadShowsAsBacklogAndCensoring(t *testing.T) {
	r := offer(t, truth.Cap(1, 10*time.Millisecond), load.Spec{
		Model: record.Open, Schedule: even(200), Connections: 4, Window: time.Second,
		Drain: 205 * time.Millisecond,
	})
	equal(t, "scheduled", r.Scheduled, 200)
	equal(t, "backlog per second", r.BacklogPerS, 100)
	// Answers come at 10, 20, …, 1,200 ms.
	equal(t, "answered", r.Answered, 120)
	equal(t, "censored", r.Censored, 80)
	equal(t, "sent in the window", r.Sent, 103)
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
			// 200 arrivals, every tenth request of the server fails: 20, no others.
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
	check("no HTTP", says("hello there, this is not HTTP\r\n\r\n", truth.Keep),
		func(r *load.Result) int64 { return r.Errors.Parse }, "not HTTP")
	check("closed early", says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", truth.Close),
		func(r *load.Result) int64 { return r.Errors.Read }, "closed the connection")
	check("reset", truth.Torn, func(r *load.Result) int64 { return r.Errors.Read }, "reset")
	check("silent", truth.Silent, func(r *load.Result) int64 { return r.Errors.Timeout },
		"timeout")
}

// Ways to end a response that are all valid HTTP.
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
			want := int64(40)
			if keep {
				want = 0
			}
			equal(t, "reconnects", r.Reconnects, want)
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

// The same seed requests the same keys in the same order; the server checks that the response fits
// the key.
func TestKeysAreDrawnAndChecked(t *testing.T) {
	distinct := map[string]bool{}
	echo := func(now int64, r truth.Request) truth.Reply {
		path := string(r.Path)
		distinct[path] = true
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
	// 200 draws of 50,000: 200²/(2·50000) = 0.4 collisions expected; this seed has none.
	equal(t, "distinct keys", len(distinct), 200)
}

// at returns a schedule with a constant rate.
func at(arrivals string, perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: arrivals, Rate: pace.Flat(perS)}
}

// even returns a schedule with equal gaps.
func even(perS float64) pace.Schedule { return at("constant", perS) }
