package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const msNs = int64(1_000_000)

// At a utilization of a third, the backlog of a stall takes half of its length if nothing varies.
func TestAfter(t *testing.T) {
	check := func(m Margins, length, want int64) {
		t.Helper()
		if got := m.After(length); got < want-1 || got > want+1 {
			t.Errorf("%+v: %d ns after %d, want %d", m, got, length, want)
		}
	}
	check(Margins{}, 3*msNs, 0)
	check(Margins{Utilization: 1.0 / 3}, 3*msNs, 3*msNs/2)
	check(Margins{Utilization: 1.0 / 3, Factor: 2}, 3*msNs, 3*msNs)
	check(Margins{Utilization: 2}, 1*msNs, 19*msNs)  // as 0.95
	check(Margins{Utilization: -1}, 1*msNs, 19*msNs) // unknown: as long as it can be
	check(Margins{}, 1*msNs, 0)
	check(Margins{AfterNs: 7}, 3*msNs, 7)
	check(Margins{AfterNs: 7, Factor: 0.5}, 3*msNs, 4)
	check(Margins{Utilization: 0.3, WaitNs: 1e6}, 0, 0)
	a, b := Margins{WaitNs: 1e5}.After(msNs), Margins{WaitNs: 1e6}.After(msNs)
	if a <= 0 || b <= a {
		t.Errorf("waits of 0.1 and 1 ms give %d and %d ns", a, b)
	}
}

// The distribution has the requested mean and variance: both are sums over its quantiles.
func TestInverseGaussian(t *testing.T) {
	check := func(mean, variance float64) {
		t.Helper()
		const n = 5000
		sum, squares := 0.0, 0.0
		for i := range n {
			x := inverseGaussian(mean, variance, (float64(i)+0.5)/n)
			sum, squares = sum+x, squares+x*x
		}
		m := sum / n
		v := squares/n - m*m
		if math.Abs(m/mean-1) > 0.01 || math.Abs(v/variance-1) > 0.05 {
			t.Errorf("mean %g and variance %g, want %g and %g", m, v, mean, variance)
		}
	}
	check(1, 0.01)
	check(1, 1)
	check(3e6, 5e12)
	check(2e6, 1e9) // shape/mean is 4,000: exp of it overflows
	// Schrödinger 1915: with mean and shape 1, P(X ≤ 1) is Φ(0) + e²Φ(-2) = 0.5 + 0.1681.
	if x := inverseGaussian(1, 1, 0.5+math.Exp(2)*normal(-2)); math.Abs(x-1) > 1e-9 {
		t.Errorf("the quantile of P(X ≤ 1) is %g", x)
	}
	for _, z := range []float64{-19.9, -20.1, -30} {
		want := math.Log(normal(z))
		if got := logNormalCDF(z); math.Abs(got/want-1) > 1e-4 {
			t.Errorf("log Φ(%g) is %g, want %g", z, got, want)
		}
	}
}

func TestExclude(t *testing.T) {
	check := func(m Margins, stalls []Stall, want ...Interval) {
		t.Helper()
		before := slices.Clone(stalls)
		if got := Exclude(stalls, m); !slices.Equal(got, want) {
			t.Errorf("%+v, %v: %v, want %v", m, stalls, got, want)
		}
		if !slices.Equal(stalls, before) {
			t.Errorf("the stalls became %v", stalls)
		}
	}
	fixed := Margins{BeforeNs: 10, AfterNs: 20}
	check(fixed, nil)
	check(fixed, []Stall{{BeginNs: 100, EndNs: 105}}, Interval{90, 125})
	check(Margins{BeforeNs: 10, AfterNs: 20, Factor: 2}, []Stall{{BeginNs: 100, EndNs: 105}},
		Interval{80, 145})
	check(fixed, []Stall{{BeginNs: 200, EndNs: 210}, {BeginNs: 100, EndNs: 105}},
		Interval{90, 125}, Interval{190, 230})
	// The second begins after the backlog of the first is gone, but requests in flight then were
	// due before.
	check(fixed, []Stall{{BeginNs: 100, EndNs: 105}, {BeginNs: 130, EndNs: 140}}, Interval{90, 160})
	// Two cores at the same time.
	check(fixed, []Stall{{BeginNs: 100, EndNs: 105}, {BeginNs: 103, EndNs: 104},
		{BeginNs: 104, EndNs: 107}},
		Interval{90, 127})
	// At a utilization of one half, a backlog takes as long as its stall: 100 to 120, 200 to 220. A
	// second stall within that time adds 10 and its own backlog: 100 + 20 + 20.
	half := Margins{Utilization: 0.5}
	check(half, []Stall{{BeginNs: 100, EndNs: 110}, {BeginNs: 200, EndNs: 210}},
		Interval{100, 120}, Interval{200, 220})
	check(half, []Stall{{BeginNs: 100, EndNs: 110}, {BeginNs: 115, EndNs: 125}}, Interval{100, 140})
	// The first is nearly over: the backlog of only the second one takes longer.
	check(half, []Stall{{BeginNs: 100, EndNs: 110}, {BeginNs: 120, EndNs: 150}}, Interval{100, 180})

	defer func() {
		if recover() == nil {
			t.Error("a stall that ends before it begins is accepted")
		}
	}()
	Exclude([]Stall{{BeginNs: 2, EndNs: 1}}, fixed)
}

func TestOutside(t *testing.T) {
	var all []Arrival
	for due := range int64(10) {
		all = append(all, Arrival{due, 100 * due})
	}
	check := func(intervals []Interval, want ...int64) {
		t.Helper()
		var got []int64
		for _, a := range outside(all, intervals) {
			got = append(got, a.DueNs)
			if a.ResponseNs != 100*a.DueNs {
				t.Errorf("%+v is another arrival", a)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", intervals, got, want)
		}
	}
	check(nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	check([]Interval{{-5, 2}, {4, 5}, {8, 100}}, 2, 3, 5, 6, 7)
	check([]Interval{{0, 10}})
}

func TestSmallest(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 0))
	for range 300 {
		values := make([]int64, 1+r.IntN(40))
		for i := range values {
			values[i] = r.Int64N(20)
		}
		sorted := slices.Sorted(slices.Values(values))
		for i := range sorted {
			if got := smallest(values, i); got != sorted[i] {
				t.Fatalf("%v: index %d is %d, want %d", sorted, i, got, sorted[i])
			}
		}
	}
}

// The backlog of a stall is gone after the margin in at least 98.5 % of the stalls if service times
// are constant, in 97.5 % with own pauses of 1 ms, and in 91 % with own pauses of 8 ms: stalls that
// begin in a pause need more.
func TestAfterCovers(t *testing.T) {
	check := func(q queue, atLeast float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(42, uint64(q.every)))
		const every = 50 * msNs // the longest busy period takes less
		due := poisson(r, stallRate, 20e9)
		truth := q.serve(due, nil)
		m := Margins{Utilization: q.utilization(), WaitNs: meanResponse(truth)}
		for _, length := range []int64{msNs, 4 * msNs, 15 * msNs} {
			var stalls []Stall
			for at := every; at < due[len(due)-1]-2*every; at += every + r.Int64N(msNs) {
				stalls = append(stalls, Stall{BeginNs: at, EndNs: at + length})
			}
			with := q.serve(due, stalls)
			gone := 0
			for _, s := range stalls {
				next := rank(with, s.EndNs+m.After(length))
				if with[next].ResponseNs == truth[next].ResponseNs {
					gone++
				}
			}
			if share := float64(gone) / float64(len(stalls)); share < atLeast {
				t.Errorf("%s, stalls of %d ns: %.3f of %d backlogs are gone", q.name, length, share,
					len(stalls))
			}
		}
	}
	check(plainQueue, 0.985)
	check(shortQueue, 0.975)
	check(longQueue, 0.91)
}

func TestStrikesP(t *testing.T) {
	check := func(inside, pauses int, expected, want float64) {
		t.Helper()
		if got := strikesP(inside, pauses, expected); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d inside, %d pauses, %g expected: %g, want %g", inside, pauses, expected,
				got, want)
		}
	}
	check(5, 5, 5, 1) // in the middle
	// All or none of the events are inside, each with a probability of 1/2.
	check(10, 0, 1, 2*12*math.Pow(0.5, 11)) // a pause at least is assumed: 10 or 11 of 11
	check(0, 10, 10, 2*math.Pow(0.5, 10))
	check(3, 1, 1, 2*5.0/16) // 3 or 4 of 4
	check(0, 0, 0.1, 1)
}

func ExampleExclude() {
	// A core was unavailable for 2 ms. Requests take up to 0.5 ms, and use a third of the core.
	stalls := []Stall{{BeginNs: 10_000_000, EndNs: 12_000_000}}
	fmt.Println(Exclude(stalls, Margins{BeforeNs: 500_000, Utilization: 1.0 / 3}))
	// Output: [{9500000 13000000}]
}

// TestFindStrikes counts the stalls that begin while a request waits for longer than the limit.
func TestFindStrikes(t *testing.T) {
	arrivals := []Arrival{{DueNs: 0, ResponseNs: 10 * msNs}, {DueNs: 20 * msNs, ResponseNs: msNs},
		{DueNs: 60 * msNs, ResponseNs: msNs}}
	check := func(inside int, begins ...int64) {
		t.Helper()
		var stalls []Stall
		for _, at := range begins {
			stalls = append(stalls, Stall{BeginNs: at * msNs, EndNs: (at + 1) * msNs})
		}
		got := findStrikes(arrivals, stalls, Margins{}, 5*msNs)
		if int(got.Stalls) != len(begins) || int(got.Inside) != inside {
			t.Errorf("stalls from %v ms: %+v, want %d inside", begins, got, inside)
		}
	}
	check(0)
	check(1, 7)
	check(0, 3) // the request waits for 3 ms
	check(0, 12, 30, 50)
	check(1, 7, 30)
}
