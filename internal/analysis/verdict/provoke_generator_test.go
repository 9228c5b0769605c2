package verdict_test

import (
	"slices"
	"testing"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// These loads come from a generator with a known fault, to a server without one.

// At 2,000/s and a tick of 5 ms, 10 requests leave at once, and an arrival just after a tick is 5
// ms late. Lag may be 5 % of p99, about two ticks: 0.5 ms. Gaps are 0 or 5 ms and not exponential;
// 1 of 5 bins of 1 ms has 10 arrivals, the others none: the variance divided by the mean is 8.
func TestTimerProvoked(t *testing.T) {
	provokeBy(t, faulty(quick, virtual.Ticking(5*time.Millisecond)), load.Spec{
		Model: record.Open, Schedule: poisson(2000), Connections: 256, Window: time.Second,
		Lead: 50 * time.Millisecond,
	}, "lag SUSPECT", "timer VALID", "arrivals SUSPECT", "bursts SUSPECT")
}

// 10 of the constant arrivals leave at each tick: no gap is the requested 0.5 ms, because all are
// late.
func TestArrivalsProvokedByConstantOnes(t *testing.T) {
	provokeBy(t, faulty(quick, virtual.Ticking(5*time.Millisecond)), load.Spec{
		Model: record.Open, Schedule: constant(2000), Connections: 256,
		Window: 600 * time.Millisecond,
	}, "lag SUSPECT", "timer VALID", "arrivals VALID", "bursts SUSPECT")
}

// TestArrivalsOfARamp checks that Poisson arrivals with a changing rate, from 200/s to 3,000/s,
// count as Poisson arrivals.
func TestArrivalsOfARamp(t *testing.T) {
	const window = 600 * time.Millisecond
	r := offered(t, virtual.Serve(truth.Fixed(quick)), load.Spec{
		Model: record.Open, Connections: 256, Window: window, Schedule: pace.Schedule{
			Arrivals: pace.Poisson, Rate: ramping(200, 3000, window)},
	})
	found := verdict.Judge(r).Findings
	if len(found) > 0 || r.Loads[0].ArrivalProcess.AndersonDarling <= 0 {
		t.Errorf("%+v, found %+v", r.Loads[0].ArrivalProcess, found)
	}
}

// From 0.85 to 1.15 s nothing leaves: 150 of the first second's 1,000 go in the second one,
// together with its own. The whole is right. The 300 that leave late are answered in one turn.
func TestRateProvoked(t *testing.T) {
	w := faulty(quick, virtual.Sleeping(850*time.Millisecond, 300*time.Millisecond))
	provokeBy(t, w, load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 512, Window: 2 * time.Second,
	}, "lag VALID", "rate SUSPECT", "arrivals VALID", "bursts VALID", "batch SUSPECT",
		"samples VALID")
}

// At 1,000/s 60 responses of 60 ms are on their way. All come while the generator sleeps for 80 ms,
// and it takes them in one turn: a tenth of all.
func TestBatchProvoked(t *testing.T) {
	w := faulty(60*time.Millisecond, virtual.Sleeping(350*time.Millisecond, 80*time.Millisecond))
	provokeBy(t, w, load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 256,
		Window: 600 * time.Millisecond, Lead: 100 * time.Millisecond,
	}, "lag VALID", "arrivals VALID", "bursts VALID", "batch SUSPECT", "samples VALID")
}

// Waits are caused by the service: 4 connections and a freeze of 60 ms at 800/s. 48 arrivals are
// due in it, of which 44 find no connection, and more while the service works off the backlog:
// without them p99 would be a fraction. Whether that counts depends on whether such pauses
// determine p99.
func TestWaitedProvoked(t *testing.T) {
	server := truth.Stall(300*time.Millisecond, 60*time.Millisecond, truth.Fixed(quick))
	f := provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(800), Connections: 4, Window: 800 * time.Millisecond,
	}, "waited VALID", "samples VALID")
	if !slices.ContainsFunc(f[0].PossibleBias, func(m record.Bias) bool {
		return m.Metric == "p99" && m.Share > 0.5
	}) {
		t.Errorf("bounds are %+v, want most of p99", f[0].PossibleBias)
	}
}

// With 128 connections no request waits, but the 50 requests of a freeze of 50 ms at 1,000/s are
// the slowest: all 10 beyond p99 are neighbors, while independent ones would be spread over the
// window. In 32 batches of 31, 10²·(1 − 1/32)/31 = 3.1 instead of 10/32 = 0.31: 1,000 count as 100.
func TestSamplesProvokedByCompany(t *testing.T) {
	server := truth.Stall(400*time.Millisecond, 50*time.Millisecond, truth.Cap(1, quick))
	provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 128, Window: time.Second,
	}, "samples VALID")
}

// From the middle of the window on, responses take three times as long: 20 ms, then 60. At 100/s 2
// and then 6 are under way, which is not a backlog. The change comes 50 ms before the middle, so
// that fast responses come in the first half and slow ones in the second.
func TestSettledProvoked(t *testing.T) {
	server := change(950*time.Millisecond, truth.Fixed(20*time.Millisecond),
		truth.Fixed(60*time.Millisecond))
	provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(100), Connections: 64, Window: 2 * time.Second,
	}, "samples VALID", "settled SUSPECT")
}

// A rate that climbs from 500/s to 3,000/s passes the capacity of 1,200/s after 0.17 s. There are
// connections for all of the 390 that are under way in the end, and at most 2,500/s × 1 ms of them
// are explained by the rate.
func TestCapacityProvokedByARamp(t *testing.T) {
	const window = 600 * time.Millisecond
	r := offered(t, virtual.Serve(truth.Cap(1, time.Second/1200)), load.Spec{
		Name: "ramp", Model: record.Open, Connections: 1024, Window: window,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: ramping(500, 3000, window)},
	})
	v := verdict.Judge(r)
	if f := verdict.Withheld(v, "ramp"); f == nil || f.Rule != "capacity" {
		t.Errorf("want no latency because of capacity, found %+v", v.Findings)
	}
}

// A generator stands still for 0.6 s of a window of 1.5 s, as one that was stopped with Ctrl-Z
// does. The cause comes first, then its effects.
func TestStoodStillProvoked(t *testing.T) {
	check := func(s load.Spec, want ...string) {
		t.Helper()
		s.Connections, s.Window = 256, 1500*time.Millisecond
		pause := virtual.Sleeping(500*time.Millisecond, 600*time.Millisecond)
		provokeBy(t, faulty(5*time.Millisecond, pause), s, want...)
	}
	check(load.Spec{Model: record.Closed}, "stalled INVALID", "drift SUSPECT")
	check(load.Spec{Model: record.Open, Schedule: constant(500)}, "stalled INVALID")
}
