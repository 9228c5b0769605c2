package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/pace"
	"prony.example/record"
)

// descriptors returns the descriptors of this process, by what they refer to.
func descriptors(t *testing.T) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count descriptors: %v", err)
	}
	out := map[string]int{}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			out[to]++
		}
	}
	return out
}

// However a load ends, the process is as before: the garbage collector on, GOMAXPROCS, and no
// additional descriptor.
func TestRunLeavesNothingBehind(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	procs := runtime.GOMAXPROCS(0)
	check := func(name string, w *world, s Spec, wantError string) {
		t.Helper()
		before := descriptors(t)
		_, err := simulate(t, w, s)
		if got := fmt.Sprint(err); !strings.Contains(got, wantError) {
			t.Errorf("%s: error %v, want %q", name, err, wantError)
		}
		if got := debug.SetGCPercent(123); got != 123 {
			t.Errorf("%s: the collector's percentage is %d, was 123", name, got)
		}
		if got := runtime.GOMAXPROCS(0); got != procs {
			t.Errorf("%s: GOMAXPROCS is %d, was %d", name, got, procs)
		}
		for to, n := range descriptors(t) {
			if n > before[to] && strings.Contains(to, "schedstat") {
				t.Errorf("%s: %d descriptors of %s are left open", name, n-before[to], to)
			}
		}
	}
	two := Spec{Model: record.Closed, Connections: 4, Cores: []int{0, 0}}
	check("good", &world{serve: after(time.Millisecond)}, two, "<nil>")
	check("nobody listens", &world{connect: refuse}, two, "is the service running?")
	check("engine breaks", &world{serve: after(time.Millisecond), broken: errors.New("broken")},
		two, "broken")
	bad := two
	bad.Cores = []int{0, 99_999}
	check("no such core", &world{serve: after(time.Millisecond)}, bad,
		"pin load thread to core 99999")
	check("bad spec", &world{}, Spec{Model: "half", Connections: 1}, `model "half"`)
	// A nil pointer inside the interface, as from an adapter that returns another type's error.
	typed := two
	typed.Engine = func(netip.AddrPort, int) (Engine, error) {
		var e *fake
		return e, errors.New("create epoll instance: too many open files")
	}
	check("no engine", &world{}, typed, "too many open files")
}

// The second of two threads fails to begin: the first one's engine is released.
func TestOneThreadFails(t *testing.T) {
	w := &world{serve: after(time.Millisecond)}
	n := 0
	_, err := simulate(t, w, Spec{Name: "x", Model: record.Closed, Connections: 4, Cores: []int{0,
		0},
		Engine: func(a netip.AddrPort, slots int) (Engine, error) {
			w.mu.Lock()
			n++
			second := n == 2
			w.mu.Unlock()
			if second {
				return nil, errors.New("no more epoll instances")
			}
			return w.engine(a, slots)
		}})
	if err == nil || !strings.Contains(err.Error(), "load x: no more epoll instances") {
		t.Errorf("error is %v", err)
	}
	if len(w.engines) != 1 || len(w.calls) != 0 {
		t.Errorf("%d engines, %d requests sent", len(w.engines), len(w.calls))
	}
}

// Window is called a little before the window, under the same load, and just after it.
func TestWindow(t *testing.T) {
	check := func(lead, before time.Duration) {
		t.Helper()
		type edge struct {
			open bool
			at   time.Duration
		}
		var edges []edge
		w := &world{serve: after(time.Millisecond)}
		good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 2, Lead: lead,
			Drain: time.Second,
			Observer: WindowFunc(func(open bool) {
				at := clock.Mono() - w.opened[0] - int64(settle)
				edges = append(edges, edge{open, time.Duration(at)})
			})})
		want := []edge{{true, lead - before}, {false, lead + time.Second}}
		if !slices.Equal(edges, want) {
			t.Errorf("lead %v: %v, want %v", lead, edges, want)
		}
	}
	check(time.Second, lookAhead)
	check(60*time.Millisecond, 30*time.Millisecond) // half of a short lead-in
	check(0, 0)
}

// If the load ends before its window does, both calls are still made, in order.
func TestWindowOfABrokenLoad(t *testing.T) {
	var edges []bool
	w := &world{serve: after(time.Millisecond), broken: errors.New("broken")}
	_, err := simulate(t, w, Spec{Model: record.Closed, Connections: 1, Lead: time.Second,
		Observer: WindowFunc(func(open bool) { edges = append(edges, open) })})
	if err == nil || !slices.Equal(edges, []bool{true, false}) {
		t.Errorf("error %v, calls %v", err, edges)
	}
}

// An observer gets the number of good responses so far and can end the load: the counts so far are
// returned, and the generator's cost is for the time that it ran.
func TestObserverEndsTheLoad(t *testing.T) {
	var seen []int64
	var at []time.Duration
	w := &world{serve: after(10 * time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 2, Window: 10 * time.Second,
		Drain: time.Second,
		Every: 100 * time.Millisecond,
		Observer: ProgressFunc(func(p Progress) bool {
			seen, at = append(seen, p.Done), append(at, p.Elapsed)
			return len(seen) < 3
		})})
	// A report can come a turn before a response of the same moment is published. It started
	// 2 ms before the load did.
	for k, n := range seen {
		want := int64(20 * (k + 1))
		if n < want-4 || n > want {
			t.Errorf("watched %d, want just under 20, 40, 60", seen)
		}
		if want := time.Duration(k+1)*100*time.Millisecond - settle; at[k] != want {
			t.Errorf("watch %d at %v, want %v", k, at[k], want)
		}
	}
	// 298 ms and up to a tick more at 2 requests in 10 ms.
	if len(seen) != 3 || r.Done < 58 || r.Done > 64 || r.Scheduled < r.Done {
		t.Errorf("%d calls; %d done of %d", len(seen), r.Done, r.Scheduled)
	}
	if g := r.Generator; g.CPUNs < 0 || g.RunDelayNs < 0 || g.CPUShare < 0 ||
		g.SwitchesForced < 0 || g.Priority == "" {
		t.Errorf("the generator used %+v", g)
	}
}

func TestCancel(t *testing.T) {
	w := &world{serve: after(time.Millisecond)}
	synctest.Test(t, func(*testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		before := clock.Mono()
		res, err := Run(ctx, Spec{
			Address: netip.MustParseAddrPort("127.0.0.1:1"), Engine: w.engine, Model: record.Open,
			Schedule: at(pace.Poisson, 100), Connections: 2, Window: time.Hour,
			Timeout:  time.Second,
			Scenario: hello,
		})
		if res != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result %v, error %v", res, err)
		}
		if took := clock.Mono() - before; took < 100*ms || took > 100*ms+tickNs {
			t.Errorf("it took %d ns to end", took)
		}
	})
	if w.engines[0].released != 1 {
		t.Error("the engine was not released")
	}
}

// Windows that are not a multiple of the interval, and windows shorter than one.
func TestOddWindows(t *testing.T) {
	check := func(window time.Duration, columns int, stepNs, scheduled int64) {
		t.Helper()
		w := &world{serve: func(call) reply { return answer(100*time.Microsecond, "ok") }}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(1000), Connections: 2,
			Window: window, Drain: time.Second})
		s := r.Series
		if len(s.Scheduled) != columns || len(s.Done) != columns || s.IntervalNs != stepNs {
			t.Errorf("window %v: %d columns of %d ns, want %d of %d", window, len(s.Scheduled),
				s.IntervalNs, columns, stepNs)
		}
		if r.Scheduled != window.Milliseconds() || sum(s.Scheduled) != scheduled ||
			!slices.Equal(s.Scheduled, s.Done) {
			t.Errorf("window %v: %d scheduled; series %d scheduled, %d done", window, r.Scheduled,
				s.Scheduled, s.Done)
		}
		exactly(t, fmt.Sprintf("backlog of window %v", window), r.BacklogPerS, 0)
		var whole int64
		for _, iv := range r.Intervals {
			whole += iv.Response.TotalCount()
		}
		if whole != r.Done {
			t.Errorf("window %v: intervals hold %d answers of %d", window, whole, r.Done)
		}
	}
	check(time.Second, 10, 100*ms, 1000)
	check(40*time.Millisecond, 1, 40*ms, 40) // shorter than half an interval
	check(99*time.Millisecond, 1, 99*ms, 99)
	check(150*time.Millisecond, 2, 100*ms, 150)
	check(1040*time.Millisecond, 11, 100*ms, 1040)
	check(1050*time.Millisecond, 11, 100*ms, 1050)
	check(5080*time.Millisecond, 26, 200*ms, 5080)
}

func TestBadSpecs(t *testing.T) {
	check := func(want string, change func(*Spec)) {
		t.Helper()
		s := Spec{Name: "peak", Address: netip.MustParseAddrPort("127.0.0.1:1"), Scenario: hello,
			Model: record.Open, Schedule: at(pace.Poisson, 10), Connections: 1, Window: time.Second,
			Timeout: time.Second, Engine: (&world{}).engine}
		change(&s)
		if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(`load peak: model "half"`, func(s *Spec) { s.Model = "half" })
	check("0 connections", func(s *Spec) { s.Connections = 0 })
	check("window 0s", func(s *Spec) { s.Window = 0 })
	check("timeout -1s", func(s *Spec) { s.Timeout = -time.Second })
	check("lead -1ns", func(s *Spec) { s.Lead = -1 })
	check("drain -1ns", func(s *Spec) { s.Drain = -1 })
	check("no address", func(s *Spec) { s.Address = netip.AddrPort{} })
	check("rate 0/s", func(s *Spec) { s.Schedule.Rate = pace.Flat(0) })
	check(`no arrival process "bursts"`, func(s *Spec) { s.Schedule.Arrivals = "bursts" })
	check("between reports, -1ns, is negative", func(s *Spec) { s.Every = -1 })
	check("detail 3 is none of", func(s *Spec) { s.Detail = Pieces + 1 })
	check("it has no requests", func(s *Spec) { s.Scenario.Requests = nil })
	check("at most 1 connections, and it begins with 2", func(s *Spec) {
		s.Connections, s.Most = 2, 1
	})
	check(`pacing "slow"`, func(s *Spec) { s.Pacing = "slow" })
	check("churn and requests cannot be negative", func(s *Spec) { s.Churn = -1 })
	check("churn and requests cannot be negative", func(s *Spec) { s.Requests = -1 })
	check("virtual users are a closed model", func(s *Spec) { s.Users = &Users{} })
	thinking := func(number float64, think Think) func(*Spec) {
		return func(s *Spec) {
			s.Model, s.Users = record.Closed, users(pace.Flat(number), think)
		}
	}
	check("up to 2 users over 1 connections", thinking(2, Think{}))
	check("think time from -1ns", thinking(1, Think{Kind: "constant", Lo: -1}))
	check("think time from 2ns to 1ns", thinking(1, Think{Kind: "uniform", Lo: 2, Hi: 1}))
	check(`think time "often"`, thinking(1, Think{Kind: "often"}))
}

// TestSpecsAtTheirBounds checks that the least and greatest valid values are accepted.
func TestSpecsAtTheirBounds(t *testing.T) {
	check := func(change func(*Spec)) {
		t.Helper()
		s := Spec{Address: netip.MustParseAddrPort("127.0.0.1:1"), Scenario: hello,
			Model: record.Closed, Connections: 1, Window: 1, Timeout: 1}
		change(&s)
		if err := s.check(); err != nil {
			t.Error(err)
		}
	}
	check(func(*Spec) {})
	check(func(s *Spec) { s.Detail = Pieces })
	check(func(s *Spec) {
		s.Model, s.Schedule, s.Most = record.Open, at(pace.Poisson, 10), 1
	})
	check(func(s *Spec) { s.Users = users(pace.Flat(1), Think{Kind: "uniform"}) })
	check(func(s *Spec) { s.Users = users(pace.Flat(1), Think{Kind: "exponential"}) })
}

func TestPriorityHasWords(t *testing.T) {
	if got := priority(); !strings.Contains(got, " ") && got != "deadline" {
		t.Errorf("priority is %q, want a policy and its number", got)
	}
}

// No more threads than connections, each with its share of them.
func TestConnectionsAreSharedOut(t *testing.T) {
	check := func(threads, connections int, want ...int) {
		t.Helper()
		w := &world{serve: after(time.Millisecond)}
		r := good(t, w, Spec{Model: record.Closed, Connections: connections, Cores: make([]int,
			threads),
			Window: 50 * time.Millisecond, Drain: time.Second})
		var got []int
		for _, e := range w.engines {
			got = append(got, len(e.slots))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || r.Threads != len(want) || r.Connections != connections {
			t.Errorf("%d threads, %d connections: %d", threads, connections, got)
		}
	}
	check(0, 3, 3)
	check(1, 3, 3)
	check(2, 5, 2, 3)
	check(3, 3, 1, 1, 1)
	check(4, 2, 1, 1)
}
