package capacity

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
	"prony.example/record/slo"
)

const limit = 50 * time.Millisecond // of the objective p99<50ms

// find runs a search and fails the test at an error.
func find(t *testing.T, s *server, o Options) *Found {
	t.Helper()
	f, err := Find(context.Background(), o)
	if err != nil {
		t.Fatalf("seed %d: %v", o.Seed, err)
	}
	return f
}

// TestFindCovers checks the coverage of intervals over many seeds. In n searches the share of
// intervals with the true value scatters by sqrt(p(1-p)/n); the tolerance is four times that, and
// two percentage points because a queue's curve is not exactly probit.
//
// The boundary's width is the error's deviation by the slope of ln p99 over ln rate, which is
// lambda/(mu - lambda): for mu = 1000/s, lambda = 907.9, slope 9.9, 0.1/9.9 = 1.0 %; for
// mu = 400/s, lambda = 307.9, slope 3.3, 3.0 %.
func TestFindCovers(t *testing.T) {
	testsets.Whole(t, "many simulated searches")
	check := func(perS, noise, confidence, rmsMax, worstMax float64) {
		t.Helper()
		const n = 100
		covered, squares, worst := 0, 0.0, 0.0
		for seed := range uint64(n) {
			s := newServer(seed, perS, noise)
			truth, o := s.capacity(limit), s.options("p99<50ms", seed)
			o.Confidence = confidence
			f := find(t, s, o)
			if !f.Found {
				t.Fatalf("seed %d: %s", seed, f.Reason)
			}
			if f.LoPerS <= truth && truth <= f.HiPerS {
				covered++
			}
			off := f.RatePerS/truth - 1
			squares += off * off
			worst = max(worst, math.Abs(off))
			if f.LoPerS > f.RatePerS || f.HiPerS < f.RatePerS || f.ReliablePerS > f.RatePerS {
				t.Errorf("seed %d: %v in %v - %v, sure %v", seed, f.RatePerS, f.LoPerS, f.HiPerS,
					f.ReliablePerS)
			}
			if time.Duration(f.ElapsedNs) > o.Budget || len(f.Steps) > 100 {
				t.Errorf("seed %d: %d steps in %v", seed, len(f.Steps), time.Duration(f.ElapsedNs))
			}
		}
		share, rms := float64(covered)/n, math.Sqrt(squares/n)
		slack := 0.02 + 4*math.Sqrt(confidence*(1-confidence)/n)
		t.Logf("mu %v, noise %v: %.3f covered at %v, rms %.4f, worst %.4f", perS, noise, share,
			confidence, rms, worst)
		if share < confidence-slack || rms > rmsMax || worst > worstMax {
			t.Errorf("mu %v, noise %v: %.3f covered, want %v - %.3f; rms %.4f, want %v; "+
				"worst %.4f, want %v", perS, noise, share, confidence, slack, rms, rmsMax, worst,
				worstMax)
		}
	}
	check(1000, 0.1, 0.95, 0.008, 0.03)
	check(1000, 0.1, 0.8, 0.008, 0.03)
	check(400, 0.1, 0.95, 0.015, 0.05)
	check(400, 0.1, 0.8, 0.015, 0.05)
	check(1000, 0, 0.95, 0.005, 0.01) // no randomness: the prior of the width decides
}

// TestFindIsNotTooWide checks that intervals miss sometimes: at 50 % confidence, half of them.
func TestFindIsNotTooWide(t *testing.T) {
	const n = 100
	covered := 0
	for seed := range uint64(n) {
		s := newServer(seed, 400, 0.1)
		o := s.options("p99<50ms", seed)
		o.Confidence = 0.5
		if f := find(t, s, o); f.LoPerS <= s.capacity(limit) && s.capacity(limit) <= f.HiPerS {
			covered++
		}
	}
	// 4 sqrt(0.25/100) = 0.2
	if share := float64(covered) / n; share < 0.5-0.2 || share > 0.5+0.2 {
		t.Errorf("%.3f covered, want 0.5", share)
	}
}

// TestFindForgivesAccidents has one in 20 steps fail whatever its rate, as in a pause of the
// machine. The capacity is the rate at which half of the other steps hold.
func TestFindForgivesAccidents(t *testing.T) {
	const n = 30
	off := 0
	for seed := range uint64(n) {
		s := newServer(seed, 1000, 0.1)
		s.accident = 0.05
		f := find(t, s, s.options("p99<50ms", seed))
		if !f.Found || math.Abs(f.RatePerS/s.capacity(limit)-1) > 0.03 {
			off++
		}
	}
	if off > 1 {
		t.Errorf("%d of %d searches are off by more than 3 %%", off, n)
	}
}

// TestFindHysteresis has a server that an overload makes slower by a tenth until it has rested at a
// low rate: from above, the boundary is at 900 - 92.1 = 807.9/s instead of 907.9, 11 % lower.
func TestFindHysteresis(t *testing.T) {
	const n = 30
	count := func(sticky float64) (seen, wrong int) {
		for seed := range uint64(n) {
			s := newServer(seed, 1000, 0.05)
			s.sticky = sticky
			o := s.options("p99<50ms", seed)
			o.Budget = 3 * time.Minute
			f := find(t, s, o)
			if !f.Hysteresis.Checked {
				t.Fatalf("seed %d: not checked: %s", seed, f.Reason)
			}
			if f.Hysteresis.Differs {
				seen++
			}
			if f.Hysteresis.Differs && f.Hysteresis.BelowPerS < f.Hysteresis.AbovePerS {
				wrong++
			}
		}
		return seen, wrong
	}
	if seen, wrong := count(0.1); seen < 0.8*n || wrong > 0 {
		t.Errorf("hysteresis seen in %d of %d, the wrong way round in %d", seen, n, wrong)
	}
	// Without hysteresis, the 95 % interval excludes 0 in 5 %: 1.5 + 4 sqrt(1.5*0.95) = 6.3.
	if seen, _ := count(0); seen > 6 {
		t.Errorf("hysteresis seen in %d of %d where there is none", seen, n)
	}
}

func TestFindReasons(t *testing.T) {
	check := func(text, want string, change func(*server, *Options)) {
		t.Helper()
		s := newServer(1, 1000, 0.05)
		o := s.options(text, 1)
		if change != nil {
			change(s, &o)
		}
		f := find(t, s, o)
		if f.Found || !strings.Contains(f.Reason, want) {
			t.Errorf("%s: found %v, reason %q, want %q", text, f.Found, f.Reason, want)
		}
		if time.Duration(f.ElapsedNs) > o.Budget {
			t.Errorf("%s: took %v of %v", text, time.Duration(f.ElapsedNs), o.Budget)
		}
		var b strings.Builder
		if err := f.Text(&b); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: text %q, %v", text, b.String(), err)
		}
	}
	endless := func(s *server, o *Options) {
		o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
			s.perS = 1000
			if step.RatePerS > 0 {
				s.perS = 100 * step.RatePerS // whatever the rate
			}
			return s.offer(ctx, step)
		}
	}
	// An idle M/M/1 of 1000/s has a p99 of 4.6 ms. The lowest rate gives 1.3 * 381 answers in a
	// twelfth of 120 s: 49.5/s.
	check("p99<4ms", "missed at the lowest rate, 49.5 requests/s: p99<4ms: ", nil)
	check("p99<4ms", "of the required 381 responses are too long for the budget", nil)
	check("p99<50ms", "met at every rate up to 4000 requests/s", endless)
	check("p99<50ms", "generator itself is the limit: the objectives were met at the generator "+
		"limit against a null server, 1500 requests/s", func(s *server, o *Options) {
		endless(s, o)
		o.CeilingPerS = 1500
	})
	check("p99<50ms", "the generator itself is the limit at 800 requests/s: lag: ", func(s *server,
		o *Options) {
		s.lateFrom, o.CeilingPerS = 700, 2000
	})
	check("p99<50ms", "other processes run on the generator's cores, at 800 requests/s: lag",
		func(s *server, o *Options) { s.lateFrom, s.delayed = 700, true })
	check("p99<50ms", "is 2000 requests/s; the objectives were met up to 533 requests/s",
		func(s *server, o *Options) { s.lateFrom, o.CeilingPerS = 700, 2000 })
	check("p99<50ms", "the generator itself is the limit at ", func(s *server, o *Options) {
		o.Budget = time.Hour // near the boundary it is late in all but one of five steps
		o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
			s.lateFrom = 0
			if step.Phase != Bracket && len(s.steps)%5 != 0 {
				s.lateFrom = 1
			}
			return s.offer(ctx, step)
		}
	})
	check("p99<50ms", "did not recover within", func(s *server, o *Options) { s.stuck = true })
	check("p99<50ms",
		"before the search found a rate that meets the objectives and a rate that misses them",
		func(s *server, o *Options) { o.Budget = 8 * time.Second })
	check("p99<50ms", "the budget ended when only the range was known: the objectives were met "+
		"at 800 requests/s and missed at 1000 requests/s",
		func(s *server, o *Options) { o.Budget = 20 * time.Second })
	check("p99<5s", "need 381 responses in each step, which takes too long for the budget at 8 ",
		func(s *server, o *Options) { s.perS = 10 })
	check("route x p99<1s",
		"at 50 requests/s gave a valid result: route x p99<1s: the load has no route x", nil)
}

// TestFindLooksAgainAtTheLowest checks that one stall of the machine at the lowest rate does not
// end the search.
func TestFindLooksAgainAtTheLowest(t *testing.T) {
	s := newServer(1, 1000, 0.001)
	o, low := s.options("p99<4900us", 1), 0
	o.Budget = 4 * time.Minute // with steps down to 24.8/s
	o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
		s.accident = 0
		if step.Phase == Bracket && step.RatePerS < 25 {
			if low++; low == 1 {
				s.accident = 1
			}
		}
		return s.offer(ctx, step)
	}
	f, truth := find(t, s, o), s.capacity(4900*time.Microsecond)
	if low != 2 || !f.Found || f.LoPerS > truth || f.HiPerS < truth {
		t.Errorf("looked %d times at the lowest: %s%v to %v/s, want %.1f/s", low, f.Reason,
			f.LoPerS, f.HiPerS, truth)
	}
}

func TestFindRefuses(t *testing.T) {
	check := func(want string, change func(*Options)) {
		t.Helper()
		o := newServer(1, 1000, 0.1).options("p99<50ms", 1)
		change(&o)
		f, err := Find(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", f, err, want)
		}
	}
	check("objectives are missing", func(o *Options) { o.SLO = nil })
	check("the window must be greater than 0, got 0s", func(o *Options) { o.Window = 0 })
	check("the lead-in must not be negative, got -1ns", func(o *Options) { o.Lead = -1 })
	check("the budget must be greater than 0, got 0s", func(o *Options) { o.Budget = 0 })
	check("must be between 0 and 1, got 1", func(o *Options) { o.Confidence = 1 })
	check("must be between 0 and 1, got 0", func(o *Options) { o.Confidence = 0 })
	check("an objective limits the throughput", func(o *Options) {
		o.SLO = append(o.SLO, must(slo.Parse("throughput>1/s"))...)
	})
	check("run step 4 (bracket) of the search: refused", func(o *Options) {
		offer := o.Offer
		o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
			if step.Phase == Bracket {
				return nil, errors.New("refused")
			}
			return offer(ctx, step)
		}
	})
	check("no good response within 2s: status 500", func(o *Options) {
		o.Offer = func(context.Context, Step) (*record.Load, error) {
			return &record.Load{Errors: record.Errors{Status: 9, Example: "status 500"}}, nil
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("the test itself is wrong: " + err.Error())
	}
	return v
}

// TestFindRepeats checks that equal seeds give equal steps, different seeds different ones, and
// that no two steps have the same arrivals.
func TestFindRepeats(t *testing.T) {
	steps := func(seed uint64) []Step {
		s := newServer(7, 1000, 0.1)
		find(t, s, s.options("p99<50ms", seed))
		return s.steps
	}
	one, again, other := steps(1), steps(1), steps(2)
	if !slices.Equal(one, again) {
		t.Error("the same seed made other steps")
	}
	if slices.Equal(one, other) {
		t.Error("another seed made the same steps")
	}
	seeds := map[uint64]bool{}
	for _, step := range one {
		if seeds[step.Seed] {
			t.Errorf("seed %d is used twice", step.Seed)
		}
		seeds[step.Seed] = true
	}
}

// TestFindBlocks checks the sequence of a search's phases.
func TestFindBlocks(t *testing.T) {
	s := newServer(3, 1000, 0.1)
	f := find(t, s, s.options("p99<50ms", 3))
	var phases []string
	byPhase := map[string][]Tried{}
	for i, step := range f.Steps {
		if step.Phase == Quiet {
			continue
		}
		if n := len(phases); n == 0 || phases[n-1] != step.Phase {
			phases = append(phases, step.Phase)
			byPhase[step.Phase] = nil
		}
		byPhase[step.Phase] = append(byPhase[step.Phase], step)
		broke := step.Outcome == Missed
		if broke && (i+1 == len(f.Steps) || f.Steps[i+1].Phase != Quiet) {
			t.Errorf("step %d broke and nobody waited for quiet", step.N)
		}
	}
	if len(phases) < 5 || phases[0] != Warmup || phases[1] != Bracket {
		t.Errorf("phases %v", phases)
	}
	for _, kind := range []string{Rising, Falling} {
		var rates []float64
		for _, step := range byPhase[kind] {
			rates = append(rates, step.RatePerS)
		}
		if kind == Falling {
			slices.Reverse(rates)
		}
		if !slices.IsSorted(rates) || len(rates) < 5 {
			t.Errorf("%s: %v", kind, rates)
			continue
		}
		// The boundary is narrow, so that the first step is a tenth beyond the nearest level.
		first, want := rates[0]/rates[1], 0.9
		if kind == Falling {
			n := len(rates)
			first, want = rates[n-1]/rates[n-2], 1.1
		}
		if math.Abs(first-want) > 1e-9 {
			t.Errorf("%s: the first step is at %.3f of the next one, want %g", kind, first, want)
		}
	}
}

// TestFindNeedsAnswers checks that windows are long enough for p99 at low rates: 1.3 × 381
// responses.
func TestFindNeedsAnswers(t *testing.T) {
	s := newServer(1, 50, 0.1)
	o := s.options("p99<1s", 1)
	o.Budget = time.Hour
	f := find(t, s, o)
	// 50 - 4.605/1 = 45.4/s
	if !f.Found || math.Abs(f.RatePerS/45.4-1) > 0.03 {
		t.Errorf("%v/s (%s), want 45.4", f.RatePerS, f.Reason)
	}
	for _, step := range f.Steps {
		if n := step.RatePerS * step.Window.Seconds(); step.RatePerS > 0 && n < 495 {
			t.Errorf("step %d has %.0f arrivals", step.N, n)
		}
	}
}
