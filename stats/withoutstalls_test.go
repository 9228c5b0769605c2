package stats

import (
	"math"
	"testing"
)

// TestClosedLoadExactly checks the interval of a closed load by arithmetic: a second with 8,500
// responses, of which the service was stalled for 100 ms and one of two load threads for 50 ms.
func TestClosedLoadExactly(t *testing.T) {
	stall := func(from, to int64) Stall {
		return Stall{BeginNs: from * 1e6, EndNs: to * 1e6, LeastNs: (to - from) * 1e6,
			MeanNs: (to - from) * 1e6}
	}
	check := func(name string, change func(*ClosedLoad), perS, lowest, highest float64) {
		t.Helper()
		l := ClosedLoad{ToNs: 1e9, Good: 8500, Connections: 100, Saturated: true,
			Service: []Stall{stall(0, 100)}, Load: []Stall{stall(300, 350)}}
		change(&l)
		r := l.WithoutStalls()
		for _, x := range [][2]float64{{r.PerS, perS}, {r.LowestPerS, lowest},
			{r.HighestPerS, highest}} {
			if math.Abs(x[0]/x[1]-1) > 1e-9 {
				t.Errorf("%s: %+v, want %v from %v to %v", name, r, perS, lowest, highest)
				break
			}
		}
	}
	// 8,500 in 850 ms. A hundred connections are a turn of 10 ms, so the load's stall cost 40 ms.
	check("saturated", func(*ClosedLoad) {}, 10_000, 8500/0.86, 10_000)
	// 200 ms more than the stall serve all requests that the service has.
	check("many connections", func(l *ClosedLoad) { l.Connections = 1000 }, 10_000, 8500/0.9,
		10_000)
	check("waiting", func(l *ClosedLoad) { l.Saturated = false }, 10_000, 8500, 10_000)
	check("the service alone", func(l *ClosedLoad) { l.Load = nil }, 8500/0.9, 8500/0.9, 8500/0.9)
}
