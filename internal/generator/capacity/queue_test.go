package capacity

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// queue simulates an M/M/1 queue by events: every step begins with an empty queue, and each request
// waits for earlier ones. Its percentiles use no formula.
type queue struct {
	*server
	worth float64 // share of independent responses, as in a record
}

func newQueue(seed uint64, perS float64) *queue {
	s := newServer(seed, perS, 0)
	s.rng = rand.New(rand.NewPCG(seed, 2))
	return &queue{server: s}
}

func (q *queue) offer(ctx context.Context, step Step) (*record.Load, error) {
	if step.RatePerS == 0 {
		return q.server.offer(ctx, step)
	}
	from, to := step.Lead.Seconds(), (step.Lead + step.Window).Seconds()
	var times []int64
	var at, free, sum float64
	done := int64(0)
	for {
		if at += q.rng.ExpFloat64() / step.RatePerS; at >= to {
			break
		}
		free = max(free, at) + q.rng.ExpFloat64()/q.perS
		if free >= from && free < to {
			done++
		}
		if at >= from {
			times = append(times, int64((free-at)*1e9)+1)
			sum += free - at
		}
	}
	q.nowNs += int64(max(free, to) * 1e9)
	slices.Sort(times)
	n := len(times)
	rank := func(share float64) int64 { return times[min(int(share*float64(n)), n-1)] }
	l := &record.Load{
		Model: "open", RatePerS: step.RatePerS, WindowNs: int64(step.Window), DrainNs: 5e9,
		Threads: 1, Connections: 64, OwnLag: exponential(1000, 1e3),
		Scheduled: int64(n), Sent: int64(n), Answered: int64(n), Done: done,
		ThroughputPerS: float64(done) / step.Window.Seconds(),
		InFlightMean:   sum / step.Window.Seconds(),
		ResponseTime: record.Dist{
			Count: int64(n), MinNs: times[0], MeanNs: sum / float64(n) * 1e9, P50Ns: rank(0.5),
			P90Ns: rank(0.9), P99Ns: rank(0.99), P999Ns: rank(0.999), MaxNs: times[n-1],
		},
		Autocorrelation: record.Autocorrelation{Samples: int64(n), EffectiveShare: q.worth},
	}
	l.ServiceTime = l.ResponseTime
	return l, nil
}

// TestFindQueue searches the capacity of simulated queues in two minutes, and in ten for a queue
// with a long memory: an M/M/1 queue needs about 1/(mu (1-sqrt(rho))²) to forget its beginning, 45
// ms at 10,000/s and rho = 0.908, 450 ms at 1000/s.
func TestFindQueue(t *testing.T) {
	testsets.Whole(t, "many simulated searches")
	check := func(perS float64, objective string, limit, budget time.Duration, within float64) {
		t.Helper()
		const n = 9
		var offs []float64
		covered := 0
		for seed := range uint64(n) {
			q := newQueue(seed, perS)
			o := q.options(objective, seed)
			o.Offer, o.Budget = q.offer, budget
			f := find(t, q.server, o)
			if !f.Found {
				t.Fatalf("seed %d: %s", seed, f.Reason)
			}
			truth := q.capacity(limit)
			offs = append(offs, math.Abs(f.RatePerS/truth-1))
			if f.LoPerS <= truth && truth <= f.HiPerS {
				covered++
			}
		}
		slices.Sort(offs)
		t.Logf("%v/s in %v: off by %.4f, at most %.4f; %d of %d covered", perS, budget, offs[n/2],
			offs[n-1], covered, n)
		if offs[n/2] > within || covered < n-2 {
			t.Errorf("%v/s in %v: off by %.4f, want %v; %d of %d covered", perS, budget, offs[n/2],
				within, covered, n)
		}
	}
	check(10_000, "p99<5ms", 5*time.Millisecond, 2*time.Minute, 0.015)
	check(1000, "p99<50ms", 50*time.Millisecond, 10*time.Minute, 0.03)
}

// TestFindStretches checks that windows use the budget, and that windows that are still too short
// give a warning.
func TestFindStretches(t *testing.T) {
	windows := func(budget time.Duration, worth float64) (ns int64, warned bool) {
		q := newQueue(1, 1000)
		q.worth = worth
		o := q.options("p99<50ms", 1)
		o.Offer, o.Budget = q.offer, budget
		f := find(t, q.server, o)
		phase := ""
		for _, step := range about(f.Steps) {
			// The step far from the boundary may have a short window.
			want := time.Duration(f.WindowNs)
			if step.Phase != phase && step.Phase != Shuffled {
				want = o.Window
			}
			phase = step.Phase
			if step.Window != want || step.Lead != step.Window/4 {
				t.Errorf("a window of %v after a lead of %v, want %v", step.Window, step.Lead,
					want)
			}
		}
		return f.WindowNs, slices.ContainsFunc(f.Warnings, func(w string) bool {
			return len(w) > 9 && w[:9] == "responses"
		})
	}
	// Five minutes less some 20 s for the bracket, by 22 steps of 5/4 of a window: about 10 s.
	short, warned := windows(2*time.Minute, 0)
	long, _ := windows(5*time.Minute, 0)
	if short < 2e9 || long < 9e9 || long > 11e9 || warned {
		t.Errorf("windows of %d and %d ns, warned %v", short, long, warned)
	}
	if _, warned := windows(2*time.Minute, 0.01); !warned {
		t.Error("answers that are worth a hundredth of their number went without a warning")
	}
}
