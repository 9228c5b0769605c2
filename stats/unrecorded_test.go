package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// short are stalls of which none is recorded: shorter than longestNs, in a share of the time.
func short(r *rand.Rand, share float64, longestNs, endNs int64) (all []Stall) {
	last := int64(0)
	for _, at := range poisson(r, share/(float64(longestNs)/2)*1e9, endNs) {
		begin := max(at, last+1)
		last = begin + 1 + r.Int64N(longestNs)
		all = append(all, Stall{BeginNs: begin, EndNs: last})
	}
	return all
}

// The true quantile lies between the bound and the value, whatever the service does, if all stalls
// are too short to be recorded.
func TestLowestBoundsTheQuantile(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const longest = stallTickNs + stallSlack
	const end = int64(40e9)
	for _, q := range []queue{plainQueue, longQueue, shortQueue} {
		for _, share := range []float64{0.003, 0.01, 0.03} {
			r := rand.New(rand.NewPCG(71, uint64(q.every)))
			due := poisson(r, stallRate, end)
			stalls := short(r, share, longest, end)
			truth, all := q.serve(due, nil), q.serve(due, stalls)
			took := int64(0)
			for _, s := range stalls {
				took += s.EndNs - s.BeginNs
			}
			times := follow(all, nil).distribution()
			for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
				want, value := quantileOf(truth, p), quantileOf(all, p)
				u := unrecorded{times: times, q: p, idle: 1 - q.utilization(),
					meanNs: meanResponse(all), longestNs: longest, valueNs: value}
				lowest := u.lowest(float64(took) / float64(end))
				if lowest > want || value < want {
					t.Errorf("%s, stalls %g: p%g is %d, bounds %d and %d", q.name, share, 100*p,
						want, lowest, value)
				}
			}
		}
	}
}

// The service pauses for 20 ms, which 1.3 % of responses take. A lower rank is below the pauses.
// But few stalls of 1.2 ms or less strike a response, so p99 is too high by few such lengths.
func TestLowestOfLongTimes(t *testing.T) {
	d := distribution{ns: []int64{100_000, 20_000_000}, until: []float64{0.987, 1}}
	u := unrecorded{times: d, q: 0.99, idle: 0.7, meanNs: 400_000, valueNs: 20_000_000}
	if got := u.lowest(0.01); got != 100_000 {
		t.Errorf("by rank alone, p99 is at least %d", got)
	}
	u.longestNs = 1_200_000
	// 0.238 stalls on average; more than 2 with a probability of 0.0019.
	if got := u.lowest(0.01); got != 20_000_000-2*1_200_000 {
		t.Errorf("p99 is at least %d", got)
	}
}

// A quantile is lower by a step exactly from the share of the time on that LowerFrom has.
func TestLowerFrom(t *testing.T) {
	var all []Arrival
	for i := range 10_000 {
		all = append(all, Arrival{DueNs: int64(i) * 1e6,
			ResponseNs: int64(1000 * math.Exp(float64(i%1000)/200))})
	}
	withUnseen := func(share float64) OpenLoad {
		// A stall that is too short to matter says how much was not recorded.
		return OpenLoad{Arrivals: all, TimeNs: 1e10,
			Stalls: []Stall{{BeginNs: 5, EndNs: 6, UnseenNs: int64(share * 1e10 / 3)}}}
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		from := withUnseen(0).WithoutStalls(q).LowerFrom
		for i, step := range LowerSteps {
			for _, above := range []bool{false, true} {
				share := from[i] - 0.0002
				if above {
					share = from[i] + 0.0002
				}
				f := withUnseen(share).WithoutStalls(q)
				lower := float64(f.LowestNs) < (1-step)*float64(f.ValueNs)
				unknown := lower && step >= mostLower || step > mostLower
				if lower != above || (f.Unknown == UnrecordedStalls) != unknown {
					t.Errorf("p%v, step %v, %v of the time: %+v", 100*q, step, share, f)
				}
			}
		}
	}
}

func TestLower(t *testing.T) {
	from := []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07}
	for _, x := range []struct {
		from  []float64
		share float64
		step  float64
		known bool
	}{
		{from, 0, 0, true}, {from, 0.001, 0.02, true}, {from, 0.01, 0.05, true},
		{from, 0.069, 0.5, true}, {from, 0.07, 0, false}, {nil, 0, 0, false},
	} {
		if step, known := Lower(x.from, x.share); step != x.step || known != x.known {
			t.Errorf("%v of the time is %v, %v, want %v, %v", x.share, step, known, x.step, x.known)
		}
	}
}

// With many stalls that are short beside the quantile, most arrivals of a slow service are due near
// one. The shortest are then ignored, and the true quantile lies between the bounds.
func TestIgnoredStalls(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	q := queue{serviceNs: 300_000, pauseNs: 8_000_000, every: 100}
	const rate, end = 1_600.0, int64(30e9)
	check := func(perS float64, longest int64, least float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(91, uint64(perS)))
		due := poisson(r, rate, end)
		var stalls []Stall
		for _, at := range poisson(r, perS, end) {
			if n := len(stalls); n == 0 || at > stalls[n-1].EndNs {
				stalls = append(stalls, Stall{BeginNs: at, EndNs: at + 200_000 +
					r.Int64N(longest-200_000)})
			}
		}
		truth := q.serve(due, nil)
		l := OpenLoad{Arrivals: q.serve(due, stalls), Stalls: stalls, TimeNs: end,
			Utilization: rate / 1e9 * (300_000 + 8_000_000/100), ShortestNs: 200_000}
		for _, p := range []float64{0.9, 0.99} {
			f, want := l.WithoutStalls(p), quantileOf(truth, p)
			if f.IgnoredStalls == 0 || f.Share < least || f.Unknown != "" ||
				f.Stalls+f.Negligible+f.IgnoredStalls != len(stalls) {
				t.Errorf("%g/s, p%g: %+v", perS, 100*p, f)
			}
			if f.LowestNs > want || float64(f.ValueNs) < 0.98*float64(want) {
				t.Errorf("%g/s: p%g is %d, bounds %d and %d", perS, 100*p, want, f.LowestNs,
					f.ValueNs)
			}
			if from := f.LowerFrom[0]; (f.LowestNs < f.ValueNs*98/100) != (from == 0) {
				t.Errorf("%g/s: p%g is lower by 2 %% from %g of the time on", perS, 100*p, from)
			}
		}
	}
	check(30, 1_700_000, LeastShare)
	check(12, 700_000, 0.9)
	// Long stalls are not ignored.
	l := play(longQueue, 0.15, 5, 45)
	f := l.load(longQueue).WithoutStalls(0.99)
	if f.IgnoredStalls != 0 || f.Unknown != TooMuchExcluded {
		t.Errorf("%+v", f)
	}
}
