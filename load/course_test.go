package load

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

// matches checks that a result's series is what ran: its lines cover the window without a gap, each
// has a length, and their counts add up to those of the load.
func matches(t *testing.T, what string, r *Result) {
	t.Helper()
	s := &r.Series
	var length, done, failed int64
	for i, iv := range r.Intervals {
		if int64(iv.Offset) != length || iv.Length <= 0 ||
			int64(iv.Offset) != int64(i)*s.IntervalNs {
			t.Errorf("%s: interval %d begins at %v and takes %v, the one before ends at %v",
				what, i, iv.Offset, iv.Length, time.Duration(length))
			return
		}
		length += int64(iv.Length)
		if n := iv.Response.TotalCount(); n != s.Done[i] {
			t.Errorf("%s: interval %d has %d response times of %d responses", what, i, n, s.Done[i])
		}
		done, failed = done+s.Done[i], failed+s.Failed[i]
	}
	if length != r.WindowNs || len(s.Done) != len(r.Intervals) || len(s.Sent) != len(s.Done) {
		t.Errorf("%s: %d lines of %v, %d columns; the window is %v", what, len(r.Intervals),
			time.Duration(length), len(s.Done), time.Duration(r.WindowNs))
	}
	if done != r.Done || failed != r.Errors.Requests() || sum(s.Sent) != r.Sent ||
		r.Model == record.Open && sum(s.Scheduled) != r.Scheduled {
		t.Errorf("%s: lines have %d scheduled, %d sent, %d done, %d failed; the load %d, %d, "+
			"%d, %d", what, sum(s.Scheduled), sum(s.Sent), done, failed, r.Scheduled, r.Sent,
			r.Done, r.Errors.Requests())
	}
	// A ledger that has given its result still has its own intervals.
	again := r.Ledger.Result()
	if !reflect.DeepEqual(again.Series, r.Series) {
		t.Errorf("%s: a second result has another series", what)
	}
}

// drawn returns a random load that ends after n requests, or earlier by a stop.
func drawn(rng *rand.Rand) (s Spec, w *world, stopped *bool) {
	stopped = new(bool)
	threads := 1 + rng.IntN(5)/4
	s = Spec{Model: record.Closed, Connections: threads + rng.IntN(4), Window: 24 * time.Hour,
		Cores: make([]int, threads), Requests: int64(1 + rng.IntN(100)), Seed: rng.Uint64()}
	service := time.Duration(1+rng.IntN(2000)) * time.Microsecond << rng.IntN(8)
	if rng.IntN(2) == 0 {
		s.Model, s.Schedule = record.Open, at([]string{pace.Constant, pace.Poisson}[rng.IntN(2)],
			10+float64(rng.IntN(1000)))
	}
	bad := 1 + rng.IntN(5)
	w = &world{serve: func(c call) reply {
		if c.n%bad == 1 {
			return answer(service, "no")
		}
		return answer(service, "ok")
	}}
	if rng.IntN(3) == 0 {
		after := time.Duration(1+rng.IntN(1000)) * time.Millisecond << rng.IntN(3)
		s.Every, s.Observer = 10*time.Millisecond, ProgressFunc(func(p Progress) bool {
			*stopped = *stopped || p.Elapsed > after
			return !*stopped
		})
	}
	return s, w, stopped
}

// A load that ends after a number of requests, or before, has a series of what ran.
func TestCourseOfANumber(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	for seed := range uint64(24) {
		s, w, stopped := drawn(rand.New(rand.NewPCG(seed, 5)))
		r := good(t, w, s)
		what := fmt.Sprintf("seed %d: %s load of %d requests over %v, stopped %v", seed, s.Model,
			s.Requests, time.Duration(r.WindowNs), *stopped)
		matches(t, what, r)
		lines := int64(len(r.Series.Done))
		if n := r.WindowNs / int64(finestStep); lines > fineSteps || lines < min(n, coarseSteps) {
			t.Errorf("%s: %d lines", what, lines)
		}
		if got := r.Done + r.Errors.Requests(); !*stopped && got != s.Requests {
			t.Errorf("%s: %d requests ended", what, got)
		}
	}
}

// A load of a known length that is stopped has a series of what ran, too.
func TestCourseOfAStoppedLoad(t *testing.T) {
	for _, after := range []time.Duration{40, 1500, 4010, 19990} {
		w := &world{serve: after1ms}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 2,
			Window: 20 * time.Second, Every: time.Millisecond,
			Observer: ProgressFunc(func(p Progress) bool {
				return p.Elapsed < after*time.Millisecond
			})})
		matches(t, fmt.Sprintf("stopped after %d ms", after), r)
	}
}

func after1ms(call) reply { return answer(time.Millisecond, "ok") }

// Many generators share the intervals of a load by number, of which those that have ended are
// streamed before its end.
func TestCourseOfManyGenerators(t *testing.T) {
	s := shared(record.Open)
	s.Window, s.Lead, s.Requests = time.Hour, 0, 550
	s.Schedule = at(pace.Poisson, 50)
	w := &world{serve: numbered}
	one := s
	one.Engine = w.engine
	want := good(t, w, one)
	got := added(t, s, 2, 1)
	matches(t, "one", want)
	matches(t, "two", got)
	if got.Done+got.Errors.Requests() != s.Requests || len(got.Series.Done) < coarseSteps {
		t.Errorf("%d requests ended in %d lines", got.Done, len(got.Series.Done))
	}
	alike(t, "two", got, want, 2)
}

// The first N arrivals of the window are due, and those of the lead-in count in no interval.
func TestNumberWithLeadIn(t *testing.T) {
	r := good(t, &world{serve: after1ms}, Spec{Model: record.Open, Schedule: even(100),
		Connections: 2, Lead: time.Second, Window: time.Hour, Requests: 250})
	counts{scheduled: 250, sent: 250, done: 250, answered: 250}.check(t, r)
	matches(t, "lead-in", r)
}

// Intervals of a growing grid meet without gaps, and each step of a course is a multiple of them.
func TestGrid(t *testing.T) {
	check := func(g grid, count int, ends map[int]int64) {
		t.Helper()
		if n := g.count(); n != count {
			t.Errorf("%+v has %d intervals, want %d", g, n, count)
		}
		for i, want := range ends {
			if got := g.end(i); got != want {
				t.Errorf("%+v: interval %d ends at %d, want %d", g, i, got, want)
			}
		}
	}
	check(grid{100, 1050, false}, 11, map[int]int64{0: 100, 10: 1100})
	check(grid{}, 0, nil)
	check(grid{1, 100, true}, 100, map[int]int64{0: 1, 99: 100})
	check(grid{1, 101, true}, 101, map[int]int64{99: 100, 100: 102})
	check(grid{1, 800, true}, 250, map[int]int64{149: 200, 150: 204, 199: 400, 200: 408, 249: 800})
	day := Spec{Window: 24 * time.Hour, Requests: 1}
	check(day.grid(), 753, map[int]int64{99: int64(10 * time.Second)})
}
