package verdict_test

import (
	"testing"
	"time"

	"prony/internal/pace"
	"prony/internal/verdict"
)

// A service that takes serviceNs for each request, however many there are (M/D/∞), is in a steady
// state at any rate, and its backlog moves all the same. 200 windows of it, each of its own seed:
// three standard deviations let 199 of 200 pass where samples are many, and hardly fewer than 195
// where a window sees only a few independent ones.
func TestSteadyQueueHasCapacity(t *testing.T) {
	check := func(rate float64, service, window time.Duration) {
		t.Helper()
		invalid := 0
		for seed := range uint64(200) {
			r := healthy()
			r.Loads = r.Loads[:1]
			l := &r.Loads[0]
			l.WindowNs, l.RatePerS, l.InFlightMean = int64(window), rate, rate*service.Seconds()
			l.BacklogPerS = steadySlope(t, seed, rate, service, window)
			for _, f := range verdict.Judge(r).Findings {
				if f.Rule == "capacity" {
					invalid++
				}
			}
		}
		if invalid > 5 {
			t.Errorf("%g/s of %v for %v: capacity objects to %d of 200 steady windows "+
				"(seeds 0-199)", rate, service, window, invalid)
		}
	}
	check(640, 50*time.Millisecond, time.Second)       // 32 under way
	check(100, time.Second, 10*time.Second)            // 100 under way, few independent
	check(50, 500*time.Millisecond, 10*time.Second)    // 25 under way
	check(2000, 500*time.Microsecond, 2*time.Second)   // 1 under way
	check(5000, 200*time.Microsecond, 10*time.Second)  // 1 under way, many samples
	check(20000, 10*time.Millisecond, 5*time.Second/2) // 200 under way
}

// steadySlope is the least-squares slope of the requests under way at 40 equidistant moments, which
// is that of arrivals due but not answered. The first answers are waited for before the window.
func steadySlope(t *testing.T, seed uint64, rate float64, service, window time.Duration) float64 {
	t.Helper()
	p, err := pace.New(pace.Poisson, rate, seed)
	if err != nil {
		t.Fatal(err)
	}
	const moments = 40
	var level [moments]float64
	step := int64(window) / moments
	for at := p.Next() - int64(service); at < int64(window); at = p.Next() - int64(service) {
		// Moment i is at (i+1)·step; the first at or after the arrival is the first to see it.
		for i := max((at+step-1)/step-1, 0); i < moments && (i+1)*step < at+int64(service); i++ {
			level[i]++
		}
	}
	var sx, sy, sxx, sxy float64
	for i, y := range level {
		x := float64(int64(i+1)*step) / 1e9
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (moments*sxy - sx*sy) / (moments*sxx - sx*sx)
}
