package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The times of Freireich et al. (1963) for 21 patients with 6-MP, of which 12 are censored, have
// this estimate of the share that remains (Cox & Oakes, "Analysis of survival data", 1984, table
// 4.1, rounded).
func TestDistributionOfCensoredTimes(t *testing.T) {
	answered := []int64{6, 6, 6, 7, 10, 13, 16, 22, 23}
	stalled := []int64{6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35}
	var f followed
	for _, ns := range answered {
		f.ns = append(f.ns, 2*ns)
	}
	for _, ns := range stalled {
		f.ns = append(f.ns, 2*ns+1)
	}
	d := f.distribution()
	want := map[int64]float64{6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538,
		23: 0.448}
	if len(d.ns) != len(want) {
		t.Errorf("%d times: %v", len(d.ns), d.ns)
	}
	for i, ns := range d.ns {
		if math.Abs(1-d.until[i]-want[ns]) > 0.0006 {
			t.Errorf("after %d there are %.3f, want %.3f", ns, 1-d.until[i], want[ns])
		}
	}
	if x, reached := d.quantile(0.5); x != 23 || !reached {
		t.Errorf("the median is %d, %v", x, reached)
	}
	if x, reached := d.quantile(0.9); x != 23 || reached { // no answer is known that took longer
		t.Errorf("p90 is %d, %v", x, reached)
	}
	if x, reached := (distribution{}).quantile(0.5); x != 0 || reached {
		t.Errorf("without answers, the median is %d, %v", x, reached)
	}
	if x := d.before(10); math.Abs(1-x-want[7]) > 0.0006 {
		t.Errorf("before 10 there are %.3f", 1-x)
	}
	if f.until(20) != 9+6 {
		t.Errorf("%d are known until 20", f.until(20))
	}
}

// Where stalls overtake answers, the quantiles of the others alone are too low, and those of the
// distribution are right.
func TestFollowedUntilStalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var all []Arrival
	var stalls []Interval
	for at := int64(0); at < 400e9; at += int64(2e6 * rng.ExpFloat64()) {
		all = append(all, Arrival{at, int64(5e6 * rng.ExpFloat64())})
	}
	for at := int64(10e6); at < 400e9; at += int64(20e6*rng.ExpFloat64()) + 1e6 {
		stalls = append(stalls, Interval{at, at + 1e6})
	}
	f := follow(all, stalls)
	d := f.distribution()
	var answered []Arrival
	for _, x := range f.ns {
		if x%2 == 0 {
			answered = append(answered, Arrival{ResponseNs: x / 2})
		}
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		want := -5e6 * math.Log(1-q)
		if got, _ := d.quantile(q); math.Abs(float64(got)/want-1) > 0.03 {
			t.Errorf("p%v is %d, want %.0f", 100*q, got, want)
		}
		if naive := float64(quantileOf(answered, q)); naive > 0.9*want {
			t.Errorf("p%v of answers before stalls is %.0f of %.0f", 100*q, naive, want)
		}
	}
}

// before returns the share of the answers that came before a time.
func (d distribution) before(ns float64) float64 {
	i := 0
	for i < len(d.ns) && float64(d.ns[i]) < ns {
		i++
	}
	if i == 0 {
		return 0
	}
	return d.until[i-1]
}

// An arrival that a stall overtook had no answer until the stall began: an answer to another one
// after the same time was one of two.
func TestFollowUntilTheStall(t *testing.T) {
	check := func(responseNs int64, until ...float64) {
		t.Helper()
		d := follow([]Arrival{{DueNs: 0, ResponseNs: 10}, {DueNs: 2, ResponseNs: responseNs}},
			[]Interval{{FromNs: 12, ToNs: 20}}).distribution()
		if !slices.Equal(d.until, until) {
			t.Errorf("a response after %d ns: %v, want %v", responseNs, d.until, until)
		}
	}
	check(9, 0.5, 1)
	check(10, 1) // both at once, as the stall begins
	check(11, 0.5)
}
