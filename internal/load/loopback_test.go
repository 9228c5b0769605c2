package load_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/load"
	"prony/internal/pace"
	"prony/internal/result"
	"prony/internal/tests"
	"prony/internal/truth"
)

// diary is what a server saw: the paths in their order, and how many requests it had at once.
type diary struct {
	mu    sync.Mutex
	paths []string
	under int
	most  int
}

func (d *diary) keep(h truth.Handler) truth.Handler {
	return func(c *truth.Conn, r *truth.Request) bool {
		d.mu.Lock()
		d.under++
		d.most = max(d.most, d.under)
		d.paths = append(d.paths, r.Path)
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			d.under--
			d.mu.Unlock()
		}()
		return h(c, r)
	}
}

// A closed loop has exactly as many requests under way as connections: never more, and all of them
// while the server takes its time.
func TestClosedLoopKeepsAllConnectionsBusy(t *testing.T) {
	tests.Cores(t)
	const connections = 12
	var d diary
	r := offer(t, d.keep(truth.After(20*time.Millisecond, truth.Hello("ok"))), load.Spec{
		Model: result.Closed, Connections: connections, Window: 300 * time.Millisecond,
	})
	if d.most != connections {
		t.Errorf("%d requests at once, want %d", d.most, connections)
	}
	near(t, "requests under way", r.InFlightMean, connections, 0.5)
	if int64(len(d.paths)) != r.Scheduled || r.Errors.Total() != 0 {
		t.Errorf("the server saw %d requests, %d were sent; %+v", len(d.paths), r.Scheduled,
			r.Errors)
	}
}

// cores are n processors of this thread, the last one repeated when there are not so many.
func cores(t *testing.T, n int) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Skipf("cannot tell the processors: %v", err)
	}
	var out []int
	for c := 0; c < 1024 && len(out) < n; c++ {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	for len(out) < n {
		out = append(out, out[len(out)-1])
	}
	return out
}

// Two threads on their own processors send one schedule: what the server sees is the whole of it,
// each arrival's key once.
func TestTwoThreadsSendOneSchedule(t *testing.T) {
	tests.Cores(t)
	const ratePerS, seed = 3000, 5
	const lead, window = 50 * time.Millisecond, 250 * time.Millisecond
	var d diary
	s := get("/k?key={key}", "ok")
	s.KeyLo, s.KeyHi = 1, 1<<60 // so many that none is drawn twice
	r := offer(t, d.keep(truth.Hello("ok")), load.Spec{
		Model: result.Open, Schedule: at(pace.Poisson, ratePerS), Seed: seed, Connections: 16,
		Lead: lead, Window: window, Drain: 5 * time.Second, Scenario: s, Cores: cores(t, 2),
	})
	if r.Threads != 2 || r.Errors.Total() != 0 || r.Answered != r.Scheduled {
		t.Fatalf("%d threads, answered %d of %d, %+v", r.Threads, r.Answered, r.Scheduled, r.Errors)
	}
	p, err := at(pace.Poisson, ratePerS).Process(seed)
	if err != nil {
		t.Fatal(err)
	}
	if want := pace.Count(p, 0, int64(lead+window)); int64(len(d.paths)) != want {
		t.Errorf("the server saw %d requests, the schedule has %d", len(d.paths), want)
	}
	slices.Sort(d.paths)
	if n := len(slices.Compact(slices.Clone(d.paths))); n != len(d.paths) {
		t.Errorf("of %d keys only %d differ: one was sent twice", len(d.paths), n)
	}
	// One thread alone asks for the very same keys.
	var alone diary
	offer(t, alone.keep(truth.Hello("ok")), load.Spec{
		Model: result.Open, Schedule: at(pace.Poisson, ratePerS), Seed: seed, Connections: 16,
		Lead: lead, Window: window, Drain: 5 * time.Second, Scenario: s,
	})
	slices.Sort(alone.paths)
	if !slices.Equal(alone.paths, d.paths) {
		t.Errorf("one thread asked %d keys, two asked %d others", len(alone.paths), len(d.paths))
	}
}

// With one connection a seed decides what is asked, in which order, however fast the server is.
func TestOneSeedOneOrder(t *testing.T) {
	ask := func(seed uint64, h truth.Handler) []string {
		var d diary
		s := get("/a?k={key}", "ok")
		s.Requests = append(s.Requests, load.Request{Method: "GET", Path: "/b?k={key}",
			WantSize: -1})
		s.KeyLo, s.KeyHi = 1, 50_000
		offer(t, d.keep(h), load.Spec{
			Model: result.Closed, Connections: 1, Window: 100 * time.Millisecond, Seed: seed,
			Scenario: s,
		})
		return d.paths
	}
	fast := ask(7, truth.Hello("ok"))
	slow := ask(7, truth.After(time.Millisecond, truth.Hello("ok")))
	n := min(len(fast), len(slow))
	if n < 10 || !slices.Equal(fast[:n], slow[:n]) {
		t.Errorf("one seed asked\n%q and\n%q", fast[:n], slow[:n])
	}
	if other := ask(8, truth.Hello("ok")); slices.Equal(fast[:10], other[:10]) {
		t.Errorf("two seeds asked the same: %q", other[:10])
	}
}

// Large bodies go out in parts and come back in parts, and are compared to the last byte.
func TestLargeBodies(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	mirror := func(c *truth.Conn, r *truth.Request) bool { return c.Answer(200, string(r.Body)) }
	s := load.Scenario{Requests: []load.Request{{
		Method: "POST", Path: "/", Body: body, Want: body, HasWant: true}}}
	r := offer(t, mirror, load.Spec{
		Model: result.Open, Schedule: even(20), Connections: 2, Window: 200 * time.Millisecond,
		Scenario: s,
		Drain:    10 * time.Second, Timeout: 10 * time.Second,
	})
	if r.Answered != 4 || r.Errors.Total() != 0 {
		t.Errorf("answered %d of 4, %+v", r.Answered, r.Errors)
	}
}

// The kernel itself refuses this connect, without an event to tell it.
func TestUnreachable(t *testing.T) {
	_, err := load.Run(context.Background(), load.Spec{
		Address:  netip.MustParseAddrPort("127.255.255.255:80"),
		Scenario: get("/", "ok"), Model: result.Closed, Connections: 2, Window: time.Second,
		Timeout: time.Second, Engine: epollEngine,
	})
	if err == nil || !strings.Contains(err.Error(), "could be opened: connect: ") {
		t.Errorf("error is %v", err)
	}
}
