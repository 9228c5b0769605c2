package capacity

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/record"
)

// capacityMD1 returns the rate of Poisson arrivals per second up to which an M/D/1 queue with a
// service time of serviceS keeps p99 within a number of service times. It uses Crommelin's series
// for the waiting time (Post Office Electrical Engineers' Journal 25, 1932). For an integer number
// n of service times the series has no significant cancellation: P(W <= n) = (1-rho) * sum over k
// to n of (rho(k-n))^k / k! * exp(-rho(k-n)).
func capacityMD1(serviceS float64, times int) float64 {
	n := float64(times - 1) // permitted wait
	within := func(rho float64) (p float64) {
		factorial := 1.0
		for k := 0.0; k <= n; k++ {
			factorial *= max(k, 1)
			p += math.Pow(rho*(k-n), k) / factorial * math.Exp(-rho*(k-n))
		}
		return (1 - rho) * p
	}
	return highest(1, 60, func(rho float64) bool { return within(rho) >= 0.99 }) / serviceS
}

// highest finds by bisection between 0 and most the largest value that keep accepts.
func highest(most float64, times int, keep func(float64) bool) float64 {
	lo, hi := 0.0, most
	for range times {
		if m := (lo + hi) / 2; keep(m) {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// capacityMM1 returns the same for exponential service: p99 is ln(100)·s/(1−ρ).
func capacityMM1(serviceS, limitS float64) float64 {
	return (1 - math.Log(100)*serviceS/limitS) / serviceS
}

// inSteps returns the capacity that a search finds: the rate at which half of the steps, of stepS
// seconds, keep p99 below a limit, for a queue with one server. If a queue's memory is longer than
// a step, that is above the rate for an infinite time, as for M/M/1 here.
func inSteps(work func(*rand.Rand) float64, most, stepS, limitS float64) float64 {
	leadS, steps := stepS/4, int(500/stepS)
	return highest(most, 12, func(rate float64) bool {
		r, held := rand.New(rand.NewPCG(1, 2)), 0
		for range steps {
			free, took := 0.0, []float64(nil)
			for at := r.ExpFloat64() / rate; at < leadS+stepS; at += r.ExpFloat64() / rate {
				free = max(free, at) + work(r)
				if at > leadS {
					took = append(took, free-at)
				}
			}
			slices.Sort(took)
			if len(took) == 0 || took[len(took)*99/100] < limitS {
				held++
			}
		}
		return held > steps/2
	})
}

// TestFindTruths compares searches with queues of computable capacity, with the real generator in
// virtual time, in steps as long as the search makes them. Of three 95 % intervals, at least two
// must include the capacity.
func TestFindTruths(t *testing.T) {
	testsets.Whole(t, "many simulated searches")
	const limitS, ms = 0.020, time.Millisecond
	check := func(name string, exact, most float64, work func(*rand.Rand) float64,
		server func(seed uint64) truth.Plan) {
		t.Helper()
		if long := inSteps(work, most, 10, limitS); math.Abs(long/exact-1) > 0.03 {
			t.Errorf("%s: in long steps %.1f/s, by arithmetic %.1f/s", name, long, exact)
		}
		const n = 3
		covered := 0
		for seed := range uint64(n) {
			f := findVirtual(t, server(seed), seed)
			want := inSteps(work, most, float64(f.WindowNs)/1e9, limitS)
			t.Logf("%s, seed %d: %.1f in %.1f to %.1f/s, want %.1f in steps of %v", name, seed,
				f.RatePerS, f.LoPerS, f.HiPerS, want, time.Duration(f.WindowNs))
			if !f.Found || math.Abs(f.RatePerS/want-1) > 0.07 {
				t.Errorf("%s, seed %d: %.1f/s, want %.1f: %s", name, seed, f.RatePerS, want,
					f.Reason)
			}
			if f.LoPerS <= want && want <= f.HiPerS {
				covered++
			}
		}
		if covered < n-1 {
			t.Errorf("%s: %d of %d intervals hold the capacity", name, covered, n)
		}
	}
	check("M/D/1", capacityMD1(0.002, 10), 500, func(*rand.Rand) float64 { return 0.002 },
		func(uint64) truth.Plan { return truth.Cap(1, 2*ms) })
	check("M/M/1", capacityMM1(0.001, limitS), 1000,
		func(r *rand.Rand) float64 { return 0.001 * r.ExpFloat64() },
		func(seed uint64) truth.Plan { return truth.Queue(truth.Exponential(ms, seed)) })
}

// findVirtual searches a plan's capacity with p99<20ms in virtual time.
func findVirtual(t *testing.T, p truth.Plan, seed uint64) (f *Found) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := virtual.Serve(p)
		like := load.Spec{Connections: 64, Drain: 5 * time.Second}
		o := newServer(0, 1, 0).options("p99<20ms", seed)
		o.Now, o.Window, o.Budget = nil, time.Second, 40*time.Second
		o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
			w.Calls = nil // not needed
			res, err := w.Offer(ctx, step.Load(like))
			if err != nil {
				return nil, fmt.Errorf("step at %g/s: %w", step.RatePerS, err)
			}
			return &res.Load, nil
		}
		var err error
		if f, err = Find(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	return f
}
