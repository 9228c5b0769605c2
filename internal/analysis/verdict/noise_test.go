package verdict_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/load/pace"
	"prony.example/record"
)

// moments is the number of intervals of a window.
const moments = 40

// objections counts the findings of a rule over the loads of 200 seeds.
func objections(t *testing.T, rule string, load func(seed uint64, l *record.Load)) (n int) {
	t.Helper()
	for seed := range uint64(200) {
		r := healthy()
		r.Loads = r.Loads[:1]
		load(seed, &r.Loads[0])
		for _, f := range verdict.Judge(r).Findings {
			if f.Rule == rule {
				n++
			}
		}
	}
	return n
}

// A service with the same time for each request, whatever their number (M/D/∞), is in a steady
// state at any rate, and its backlog still varies. In 200 windows with different seeds, three
// standard deviations let 199 of 200 pass if samples are many, and at least about 195 if a window
// has only a few independent ones. If the rate changes, the backlog changes too.
func TestSteadyQueueHasCapacity(t *testing.T) {
	check := func(rate pace.Profile, service, window time.Duration) {
		t.Helper()
		invalid := objections(t, "capacity", func(seed uint64, l *record.Load) {
			mean := rate.Mean(0, int64(window))
			l.WindowNs, l.RatePerS = int64(window), mean
			if !rate.IsFlat() {
				l.Shape = rate.String()
			}
			l.InFlightMean = mean * service.Seconds()
			l.Series = record.Series{IntervalNs: int64(window) / moments,
				Scheduled: make([]int64, moments), P50Ns: every(int64(service))}
			l.BacklogPerS = steadySlope(t, seed, rate, service, window, l.Series.Scheduled)
			l.Series.Sent = l.Series.Scheduled
		})
		if invalid > 5 {
			t.Errorf("%v/s of %v for %v: capacity objects to %d of 200 steady windows "+
				"(seeds 0-199)", rate, service, window, invalid)
		}
	}
	check(pace.Flat(640), 50*time.Millisecond, time.Second)     // 32 under way
	check(pace.Flat(100), time.Second, 10*time.Second)          // 100, few independent
	check(pace.Flat(50), 500*time.Millisecond, 10*time.Second)  // 25
	check(pace.Flat(2000), 500*time.Microsecond, 2*time.Second) // 1
	check(pace.Flat(5000), 200*time.Microsecond, 4*time.Second) // 1, many samples
	check(pace.Flat(20000), 10*time.Millisecond, time.Second)   // 200
	pieces := func(p ...pace.Piece) pace.Profile { return pace.Profile{Pieces: p} }
	check(pieces(pace.Piece{ForNs: 10 * sec, From: 100, To: 4000}), 100*time.Millisecond,
		10*time.Second) // from 10 to 400
	check(pieces(pace.Piece{ForNs: 10 * sec, From: 4000, To: 100}), 100*time.Millisecond,
		10*time.Second)
	check(pieces(pace.Piece{ForNs: sec, From: 100, To: 100}, pace.Piece{From: 2000, To: 2000}),
		100*time.Millisecond, 2*time.Second) // from 10 to 200 in the middle
}

// steadySlope returns the least-squares slope of the requests under way at equidistant moments,
// which is that of arrivals due but not answered. It waits for the first responses before the
// window. It adds the arrivals due in each interval to scheduled.
func steadySlope(t *testing.T, seed uint64, rate pace.Profile, service, window time.Duration,
	scheduled []int64) float64 {
	t.Helper()
	p, err := pace.Schedule{Arrivals: pace.Poisson, Rate: rate}.Process(seed)
	if err != nil {
		t.Fatal(err)
	}
	var level [moments]float64
	step := int64(window) / moments
	lead := int64(0)
	if rate.IsFlat() {
		lead = int64(service)
	}
	for at := p.Next() - lead; at < int64(window); at = p.Next() - lead {
		if at >= 0 {
			scheduled[at/step]++
		}
		// Moment i is at (i+1)·step; the first at or after the arrival is the first to include it.
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

// A single server with exponential service times (M/M/1) has random busy and quiet times. If a
// window has many of them its halves are alike; if it has a few they differ, and a finding is right
// because the window is too short.
func TestQueuesSettle(t *testing.T) {
	check := func(load float64, service, window time.Duration, most int) {
		t.Helper()
		unsettled := objections(t, "settled", func(seed uint64, l *record.Load) {
			l.WindowNs = int64(window)
			l.Series.P50Ns = queue(seed, load, int64(service), int64(window))
		})
		if unsettled > most {
			t.Errorf("a server of %v, busy for %v of %v: settled objects to %d of 200 windows "+
				"(seeds 0-199)", service, load, window, unsettled)
		}
	}
	check(0.5, time.Millisecond, 10*time.Second, 0)
	check(0.8, time.Millisecond, 10*time.Second, 0)
	check(0.8, 10*time.Millisecond, 60*time.Second, 1)
	check(0.9, time.Millisecond, 10*time.Second, 4)
}

// queue returns the median response time in each interval of a window, by completion.
func queue(seed uint64, load float64, service, window int64) []int64 {
	r := rand.New(rand.NewPCG(seed, 2))
	var came [moments][]int64
	at, free := 0.0, 0.0
	lead := 20 * float64(window) / moments // half a window to get going
	for at < lead+float64(window) {
		at += r.ExpFloat64() * float64(service) / load
		free = max(free, at) + r.ExpFloat64()*float64(service)
		if i := int((free - lead) * moments / float64(window)); free >= lead && i < moments {
			came[i] = append(came[i], int64(free-at))
		}
	}
	var p50 []int64
	for _, times := range came {
		slices.Sort(times)
		p50 = append(p50, append(times, 0)[len(times)/2])
	}
	return p50
}

// TestResolutionIsTheSuites checks that a bound is reported from a tenth of the suite's resolution:
// a stolen share of 0.2 % is reported at a resolution of half a percent, and not at 3 %.
func TestResolutionIsTheSuites(t *testing.T) {
	check := func(resolution float64, want bool) {
		t.Helper()
		r := healthy()
		r.Loads[1].Host.StealShare = 0.002
		r.Verdict.Resolution = resolution
		if got := slices.ContainsFunc(verdict.Judge(r).Findings, func(f record.Finding) bool {
			return f.Rule == "steal" && f.Load == peak
		}); got != want {
			t.Errorf("resolution %v: steal is told: %v, want %v", resolution, got, want)
		}
	}
	check(0, false) // 3 %
	check(0.005, true)
	check(0.05, false)
}
