package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// loaded is a load of some seconds on a queue, with stalls and without.
type loaded struct {
	truth, all []Arrival
	stalls     []Stall
}

// load is what the program knows of it.
func (l loaded) load(q queue) OpenLoad {
	return OpenLoad{Arrivals: l.all, Stalls: l.stalls, TimeNs: l.all[len(l.all)-1].DueNs,
		Utilization: q.utilization(), ShortestNs: stallTickNs + stallSlack}
}

func play(q queue, share float64, seconds int64, seed uint64) loaded {
	end := seconds * 1e9
	r := rand.New(rand.NewPCG(seed, uint64(q.every)))
	due := poisson(r, stallRate, end)
	var stalls []Stall
	if share > 0 {
		stalls = hypervisor(r, share, end)
	}
	return loaded{q.serve(due, nil), q.serve(due, stalls), ticking(stalls)}
}

// off is how far a value is from the true one.
func off(value, want int64) float64 { return float64(value)/float64(want) - 1 }

// A service's own pauses stay, and stalls that are independent of them go.
func TestWithoutStalls(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	check := func(q queue, share float64, bounds map[float64]float64) {
		t.Helper()
		l := play(q, share, 20, 40)
		for p, bound := range bounds {
			want := quantileOf(l.truth, p)
			f := l.load(q).WithoutStalls(p)
			if math.Abs(off(f.ValueNs, want)) > bound || f.Unknown != "" {
				t.Errorf("%s, stalls %g: p%g is %d, want %d: %+v", q.name, share, 100*p, f.ValueNs,
					want, f)
			}
			if f.RawNs != quantileOf(l.all, p) || f.QuantileOf(l.all) != f.ValueNs {
				t.Errorf("raw p%g is %d, the same again %d", 100*p, f.RawNs, f.QuantileOf(l.all))
			}
		}
	}
	own := map[float64]float64{0.5: 0.02, 0.99: 0.03, 0.999: 0.03}
	check(longQueue, 0.01, own)
	check(longQueue, 0.04, own)
	check(shortQueue, 0.01, own)
	check(shortQueue, 0.04, own)
	check(plainQueue, 0.04, map[float64]float64{0.5: 0.02, 0.9: 0.03, 0.99: 0.1})
}

// Stalls of less than a tick remain, and are all of the p99.9 of a service without pauses. The
// answer says so, and the true value lies within its bounds.
func TestUnrecordedStalls(t *testing.T) {
	l := play(plainQueue, 0.04, 20, 40)
	f, want := l.load(plainQueue).WithoutStalls(0.999), quantileOf(l.truth, 0.999)
	if f.Unknown != UnrecordedStalls || f.LowestNs > want || f.ValueNs < 2*want {
		t.Errorf("%+v, want %d", f, want)
	}
}

// The estimate of what was not recorded is right on average.
func TestUnseenTime(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 0))
	stalls := hypervisor(r, 0.04, 600e9)
	all, seen, estimate := int64(0), int64(0), int64(0)
	for _, s := range stalls {
		all += s.EndNs - s.BeginNs
		if recorded := ticking([]Stall{s}); len(recorded) > 0 {
			seen += s.EndNs - s.BeginNs
			estimate += recorded[0].UnseenNs
		}
	}
	// Less what is shorter than the slack, which no tick shows: 0.3 % of the time.
	if unseen := all - seen; math.Abs(off(estimate, unseen)) > 0.15 {
		t.Errorf("%d ns are not recorded, the estimate is %d", unseen, estimate)
	}
}

// Without stalls, nothing changes.
func TestWithoutStallsIsRaw(t *testing.T) {
	for _, q := range []queue{plainQueue, longQueue} {
		l := play(q, 0, 2, 43)
		for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
			f, want := l.load(q).WithoutStalls(p), quantileOf(l.truth, p)
			if f.ValueNs != want || f.RawNs != want || f.HalfNs != want || f.DoubleNs != want ||
				f.LowestNs != want || f.Share != 1 || f.Unknown != "" || f.Stalls+f.Negligible > 0 {
				t.Errorf("%s: p%g is %+v, want %d", q.name, 100*p, f, want)
			}
		}
	}
}

// A stall in which no quantile moves leaves nothing out.
func TestNegligibleStalls(t *testing.T) {
	l := play(plainQueue, 0, 20, 44)
	one := []Stall{{BeginNs: 5e9, EndNs: 5e9 + msNs}}
	all := plainQueue.serve(dues(l.truth), one)
	check := func(p float64, stalls, negligible int) {
		t.Helper()
		f := OpenLoad{Arrivals: all, Stalls: one, TimeNs: 20e9,
			Utilization: plainQueue.utilization()}.WithoutStalls(p)
		if f.Stalls != stalls || f.Negligible != negligible || stalls == 0 && f.Share != 1 {
			t.Errorf("p%g: %+v, want %d stalls and %d that are negligible", 100*p, f, stalls,
				negligible)
		}
	}
	// 2 ms of 20 s are 0.01 % of the arrivals: less than a fiftieth of 1 %, more than one of 0.1 %.
	check(0.99, 0, 1)
	check(0.999, 1, 0)
	// A service that takes 100 ms does not mind 1 ms.
	slow := make([]Arrival, len(all))
	for i, a := range all {
		slow[i] = Arrival{a.DueNs, 100*msNs + a.ResponseNs}
	}
	f := OpenLoad{Arrivals: slow, Stalls: one, TimeNs: 20e9,
		Utilization: 0.1}.WithoutStalls(0.9999)
	if f.Stalls != 0 || f.Negligible != 1 {
		t.Errorf("a slow service: %+v", f)
	}
}

func dues(arrivals []Arrival) (all []int64) {
	for _, a := range arrivals {
		all = append(all, a.DueNs)
	}
	return all
}

func TestUnknown(t *testing.T) {
	check := func(f StallFree, want string) {
		t.Helper()
		if f.Unknown != want {
			t.Errorf("%q, want %q: %+v", f.Unknown, want, f)
		}
	}
	l := play(longQueue, 0.15, 5, 45)
	check(l.load(longQueue).WithoutStalls(0.99), TooMuchExcluded)
	check(OpenLoad{Arrivals: l.all[:300], TimeNs: 5e9}.WithoutStalls(0.99), TooFewArrivals)
	check(OpenLoad{}.WithoutStalls(0.5), TooFewArrivals)
}

// A stall overtakes every slow answer, so the answers that are known do not reach p99.
func TestUnknownBeyondLastAnswer(t *testing.T) {
	const slow, every = 500 * msNs, 750 * msNs
	l := OpenLoad{TimeNs: 50e9, Utilization: 0.05}
	for i := range l.TimeNs / msNs {
		a := Arrival{i * msNs, msNs}
		if i%50 == 25 {
			a.ResponseNs = slow
		}
		l.Arrivals = append(l.Arrivals, a)
	}
	for at := 400*msNs + msNs/3; at < 2*l.TimeNs; at += every {
		l.Stalls = append(l.Stalls, Stall{BeginNs: at, EndNs: at + 110*msNs})
	}
	f := l.WithoutStalls(0.99)
	if f.Unknown != TooFewArrivals || f.RawNs != slow || f.Share < LeastShare {
		t.Errorf("p99 %d, %q, %v of the arrivals remain", f.ValueNs, f.Unknown, f.Share)
	}
}

// With too few arrivals, no estimate of short stalls makes a quantile known.
func TestTooFewArrivalsRemain(t *testing.T) {
	l := OpenLoad{TimeNs: 5e9, Utilization: 0.05}
	for i := range l.TimeNs / msNs {
		l.Arrivals = append(l.Arrivals, Arrival{i * msNs, 1000 + i*7919%1000*1000})
	}
	for at := int64(50e6); at < l.TimeNs; at += 100e6 {
		l.Stalls = append(l.Stalls, Stall{BeginNs: at, EndNs: at + 20e6, UnseenNs: 30e6})
	}
	f := l.WithoutStalls(0.999)
	if f.Unknown != TooFewArrivals || f.Share < LeastShare || f.Share > 0.75 ||
		float64(f.LowestNs) > (1-mostLower)*float64(f.ValueNs) {
		t.Errorf("p99.9 from %d to %d, %q, %v of 5,000 arrivals remain", f.LowestNs, f.ValueNs,
			f.Unknown, f.Share)
	}
}

// informative adds stalls that strike a share of the service's pauses, 5 ms after their begin.
func informative(r *rand.Rand, q queue, l loaded, share float64) loaded {
	var hog []Stall
	for _, p := range pausesOf(l.truth, 5*msNs) {
		if n := len(hog); r.Float64() < share && (n == 0 || p.FromNs > hog[n-1].EndNs) {
			hog = append(hog, Stall{BeginNs: p.FromNs, EndNs: p.FromNs + 3*msNs})
		}
	}
	all := union(append(hog, l.stalls...))
	return loaded{l.truth, q.serve(dues(l.truth), all), ticking(all)}
}

// Stalls that strike when the service has been busy for 5 ms are found, also beside others. Without
// them, the answer is unknown in one of a thousand cases.
func TestInformativeStalls(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	check := func(share float64, atLeast, atMost int) {
		t.Helper()
		const loads = 6
		found := 0
		for seed := range uint64(loads) {
			r := rand.New(rand.NewPCG(46, seed))
			l := informative(r, longQueue, play(longQueue, 0.03, 20, seed), share)
			if l.load(longQueue).WithoutStalls(0.99).Unknown == StallsDepend {
				found++
			}
		}
		if found < atLeast || found > atMost {
			t.Errorf("%g of the pauses struck: found in %d of %d loads", share, found, loads)
		}
	}
	check(0, 0, 0)
	check(0.3, 6, 6)
}

// TestStallsTable compares the table of decision 52 with a simulation.
func TestStallsTable(t *testing.T) {
	testsets.Long(t, "response times without stalls, simulated",
		testsets.Needs{Files: []string{"docs/" + decisionStalls}})
	const seconds = 120
	percent := func(value, want int64) string {
		return fmt.Sprintf("%+.1f", 100*off(value, want))
	}
	rows := []string{
		"| service | stalls, % | quantile | true, ms | all arrivals | result | lowest " +
			"| half margins | double margins | 10 and 20 ms | arrivals that remain, % |",
		"|---|---|---|---|---|---|---|---|---|---|---|"}
	for _, q := range []queue{plainQueue, longQueue, shortQueue} {
		for _, share := range []float64{0.01, 0.04, 0.1} {
			l := play(q, share, seconds, 47)
			for _, p := range []float64{0.9, 0.99, 0.999} {
				want := quantileOf(l.truth, p)
				f := l.load(q).WithoutStalls(p)
				fixed := outside(l.all, Exclude(l.stalls, Margins{BeforeNs: firstBeforeNs,
					AfterNs: firstAfterNs}))
				result := percent(f.ValueNs, want)
				if f.Unknown != "" {
					result = "unknown (" + result + ")"
				}
				row := fmt.Sprintf("| %s | %.0f | p%g | %.3f | %s | %s |", q.name, 100*share,
					100*p, float64(want)/1e6, percent(f.RawNs, want), result)
				for _, ns := range []int64{f.LowestNs, f.HalfNs, f.DoubleNs} {
					row += " " + percent(ns, want) + " |"
				}
				rows = append(rows, row+fmt.Sprintf(" %s of %.0f | %.1f |",
					percent(quantileOf(fixed, p), want),
					100*float64(len(fixed))/float64(len(l.all)), 100*f.Share))
			}
		}
	}
	documentedIn(t, decisionStalls, "stalls", rows)
}

// TestStrikesTable holds how often stalls that depend on the service are found.
func TestStrikesTable(t *testing.T) {
	testsets.Once(t, "stalls that depend on the service, simulated",
		testsets.Needs{Files: []string{"docs/stalls.md"}})
	const loads = 50
	rows := []string{
		"| pauses that are struck | strikes a second | answer unknown | p99, if known |",
		"|---|---|---|---|"}
	for _, share := range []float64{0, 0.05, 0.1, 0.2, 0.5} {
		found, known, sum := 0, 0, 0.0
		for seed := range uint64(loads) {
			r := rand.New(rand.NewPCG(48, seed))
			l := informative(r, longQueue, play(longQueue, 0.03, 20, 1000+seed), share)
			f := l.load(longQueue).WithoutStalls(0.99)
			if f.Unknown == StallsDepend {
				found++
			} else {
				known++
				sum += off(f.ValueNs, quantileOf(l.truth, 0.99))
			}
		}
		value := "–"
		if known > 0 {
			value = fmt.Sprintf("%+.1f %%", 100*sum/float64(known))
		}
		rows = append(rows, fmt.Sprintf("| %.0f %% | %.1f | %d %% | %s |", 100*share,
			share*stallRate/float64(longQueue.every), 100*found/loads, value))
	}
	documentedIn(t, "stalls.md", "strikes", rows)
}

// TestQuantilesByMargins checks what the quantiles with half and double margins leave out. Every
// 100 ms there is a stall of 10 ms, and half of the core is idle. With a wait of 0.14 ms,
// Margins.After is 19 ms: the margins end 29 ms after the stall began, or 20 and 48 ms. Double
// margins still include the slow responses from 50 ms on; three times as long ones, until 66 ms,
// would not.
func TestQuantilesByMargins(t *testing.T) {
	l := OpenLoad{Utilization: 0.5, TimeNs: 20000 * msNs}
	for i := range int64(20000) {
		due, ns := i*msNs, int64(msNs/10)
		switch offset := i % 100; {
		case offset == 0:
			l.Stalls = append(l.Stalls, Stall{BeginNs: due, EndNs: due + 10*msNs})
		case offset >= 20 && offset < 28:
			ns = msNs
		case offset >= 50 && offset < 62:
			ns = 3 * msNs / 10
		}
		l.Arrivals = append(l.Arrivals, Arrival{DueNs: due, ResponseNs: ns})
	}
	f := l.WithoutStalls(0.95)
	if f.HalfNs != msNs || f.ValueNs != 3*msNs/10 || f.DoubleNs != 3*msNs/10 {
		t.Errorf("half margins %d, the margins %d, double margins %d ns", f.HalfNs, f.ValueNs,
			f.DoubleNs)
	}
}
