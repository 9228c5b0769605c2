package stallfree

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/internal/observe/stalls"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// A closed load of the real generator to a service that needs 50 µs for a request, and whose core
// is stalled for 3 ms at random times, has 20,000 requests/s in the time that stalls leave. Stalls
// that only begin in the pauses of 8 ms of a service make it unknown.
func TestClosedLoadInVirtualTime(t *testing.T) {
	check := func(name string, pause time.Duration, begins []int64, perS float64, unknown string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			watch := &fake{}
			began := clock.Mono()
			for _, ns := range begins {
				watch.all = append(watch.all, stalls.Stall{BeginNs: began + ns,
					EndNs: began + ns + 3e6, LeastNs: 3e6, MeanNs: 3e6, Core: 1,
					Cause: stalls.Hypervisor})
			}
			w := New(Setup{Open: watch.open, Service: []int{1}, Load: []int{0},
				PIDs: func() []int { return nil }})
			log := w.Log()
			log.Begin()
			res := offerStalled(t, pause, watch.all)
			log.End()
			log.Keep(Window{Load: &res.Load, Sample: res.Sample, Room: closedSample,
				FromNs: res.FromNs, Utilization: 0.97, Cores: 1})
			x := res.Load.WithoutStalls
			stalled := float64(len(begins)) * 3e6 / 2e9
			if x == nil || x.Unknown != unknown || res.Load.Stalls.Unseen != nil ||
				math.Abs(res.ThroughputPerS/perS-(1-stalled)) > 0.003 {
				t.Fatalf("%s: %.0f/s with stalls; %+v", name, res.ThroughputPerS, x)
			}
			if unknown == "" && (math.Abs(x.PerS/perS-1) > 0.003 || x.LowestPerS > perS*1.003 ||
				x.LowestPerS < perS*0.9985 ||
				x.HighestPerS < perS*0.997 || math.Abs(1-x.RanShare-stalled) > 1e-3) {
				t.Errorf("%s: %+v, want %.0f/s", name, x, perS)
			}
		})
	}
	check("no stall", 0, nil, 20e3, "")
	check("stalls", 0, []int64{31e6, 207e6, 214e6, 500e6, 803e6, 811e6, 1203e6, 1606e6, 1909e6},
		20e3, "")
	// 2,000 requests of 50 µs and a pause of 8 ms take 108 ms.
	var inPauses []int64
	for i := range int64(18) {
		if i%7 != 3 { // not after equal times
			inPauses = append(inPauses, 50e6+108e6*i+3e6*int64(len(inPauses))+5e6)
		}
	}
	check("in pauses", 8*time.Millisecond, inPauses, 2000/0.108, stats.StallsDepend)
}

// offerStalled offers a closed load of 2 s to a service that handles one request after the other,
// and pauses in the middle of each 2,000 requests.
func offerStalled(t *testing.T, pause time.Duration, all []stalls.Stall) *load.Result {
	t.Helper()
	free := int64(math.MinInt64) // when the service is idle
	world := &virtual.World{Serve: func(c virtual.Call) virtual.Reply {
		work := int64(50 * time.Microsecond)
		if c.N%2000 == 1000 {
			work += int64(pause)
		}
		free = max(free, c.At)
		for _, s := range all {
			if s.EndNs > free && s.BeginNs < free+work {
				work -= max(s.BeginNs-free, 0)
				free = s.EndNs
			}
		}
		free += work
		return virtual.Answer(time.Duration(free-c.At), "ok")
	}}
	res, err := world.Offer(t.Context(), load.Spec{Model: record.Closed, Connections: 16,
		Window: 2 * time.Second, Sample: closedSample})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
