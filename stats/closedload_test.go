package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// shifted returns when work that begins at a moment ends, while sorted, disjoint stalls take the
// core.
func shifted(now, work int64, stalls []Stall) int64 {
	for _, s := range stalls {
		switch {
		case s.EndNs <= now:
			continue
		case s.BeginNs >= now+work && s.BeginNs > now:
			return now + work
		}
		work -= max(s.BeginNs-now, 0)
		now = s.EndNs
	}
	return now + work
}

// loop returns a closed load of some connections to a service with one core: the moments at which
// responses arrive at a load that is itself stalled at times.
func (q queue) loop(connections int, service, load []Stall, toNs int64) ClosedLoad {
	sent := make([]int64, connections) // when waiting requests were sent, in order
	l := ClosedLoad{ToNs: toNs, Service: service, Load: load, Connections: connections,
		Saturated: true}
	for now, n := int64(0), 0; ; n++ {
		now = max(now, sent[0])
		work := q.serviceNs
		if q.every > 0 && n%q.every == q.every/2 {
			work += q.pauseNs
		}
		for len(service) > 0 && service[0].EndNs <= now {
			service = service[1:]
		}
		now = shifted(now, work, service)
		for len(load) > 0 && load[0].EndNs <= now {
			load = load[1:]
		}
		arrived := shifted(now, 0, load)
		if arrived >= toNs {
			return l
		}
		l.EndsNs = append(l.EndsNs, arrived)
		l.Good++
		sent = append(sent[1:], arrived)
	}
}

// exact are stalls whose bounds are the stalls themselves.
func exact(all []Stall) (out []Stall) {
	for _, s := range all {
		s.LeastNs = s.EndNs - s.BeginNs
		s.MeanNs = s.LeastNs
		out = append(out, s)
	}
	return out
}

// coarse are stalls as the clock of closed loads shows them (internal/observe/stalls).
func coarse(r *rand.Rand, all []Stall) (out []Stall) {
	const period, slack = 4_000_000, int64(stallSlack)
	phase := r.Int64N(period)
	for _, s := range all {
		due := phase + (s.BeginNs-phase+period)/period*period
		late := s.EndNs - due
		if late <= slack {
			continue
		}
		mean := (late-slack)/period*period + period
		if (late-slack)%period < period/4 {
			mean += 4 * slack
		}
		out = append(out, Stall{BeginNs: due - period, EndNs: s.EndNs, LeastNs: late, MeanNs: mean})
	}
	return out
}

const closedWindow = 3_000_000_000

// A service that needs 15 µs for a request answers 66,667 requests/s of a closed load, and so it
// does in the time that stalls leave.
func TestClosedLoadWithoutStalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	truth := 1e9 / float64(plainQueue.serviceNs)
	for _, share := range []float64{0, 0.01, 0.04, 0.2} {
		var all []Stall
		if share > 0 {
			all = hypervisor(r, share, closedWindow)
		}
		l := plainQueue.loop(64, all, nil, closedWindow)
		l.Service = exact(all)
		got := l.WithoutStalls()
		if math.Abs(got.PerS/truth-1) > 0.001 || got.Unknown != "" ||
			got.LowestPerS > truth*1.0001 || got.HighestPerS < truth*0.9999 {
			t.Errorf("%v stalled: %+v, want %.0f/s", share, got, truth)
		}
	}
}

// The clock of closed loads ticks every 4 ms: it misses short stalls, which its estimate includes.
// Of 100 intervals at least 95 % contain the truth, because their error is an upper bound.
func TestClosedLoadByCoarseClock(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	r := rand.New(rand.NewPCG(3, 4))
	truth, sum, covered, width := 1e9/float64(plainQueue.serviceNs), 0.0, 0, 0.0
	const n = 100
	for range n {
		all := hypervisor(r, 0.04, closedWindow)
		l := plainQueue.loop(64, all, nil, closedWindow)
		l.Service = coarse(r, all)
		got := l.WithoutStalls()
		sum += got.PerS / truth / n
		width += (got.HighestPerS - got.LowestPerS) / truth / 2 / n
		if got.LowestPerS <= truth && truth <= got.HighestPerS {
			covered++
		}
	}
	t.Logf("mean %.4f, covered %d of %d, ± %.4f", sum, covered, n, width)
	if math.Abs(sum-1) > 0.002 || covered < n*95/100 || width > 0.025 {
		t.Errorf("mean %.4f, covered %d of %d, ± %.4f", sum, covered, n, width)
	}
}

// While the load is stalled, the service goes on with the requests that it has. Stalls of both
// cores at once count once.
func TestStallsOfTheLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	truth := 1e9 / float64(plainQueue.serviceNs)
	all := hypervisor(r, 0.04, closedWindow)
	for _, service := range [][]Stall{nil, all} {
		l := plainQueue.loop(64, service, all, closedWindow)
		l.Service, l.Load = exact(service), exact(all)
		got := l.WithoutStalls()
		if got.LowestPerS > truth*1.0001 || got.HighestPerS < truth*0.9999 ||
			math.Abs(1-got.Share-0.04) > 0.02 {
			t.Errorf("%d stalls of the service: %+v, want %.0f/s", len(service), got, truth)
		}
	}
	// A service that waits may wait during a stall: without stalls it need not be any faster.
	l := plainQueue.loop(64, nil, nil, closedWindow)
	l.Service, l.Saturated = exact(all), false
	if got := l.WithoutStalls(); got.LowestPerS > truth || got.HighestPerS < 1.03*truth {
		t.Errorf("not saturated: %+v, want from %.0f/s", got, truth)
	}
}

// Stalls that begin in the service's pauses, or after equal times as a quota does, raise no rate.
func TestStallsDependOnClosedLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const n = 40
	unknown := func(strike bool) (count int) {
		for range n {
			all := hypervisor(r, 0.03, closedWindow)
			if strike { // 3 ms, 5 ms after half of the pauses began, at random
				all = nil
				half := longQueue.serviceNs * int64(longQueue.every) / 2
				for at := half; at < closedWindow; at += longQueue.pauseNs + 2*half {
					if r.IntN(2) == 0 {
						all = append(all, Stall{BeginNs: at + 5e6, EndNs: at + 8e6})
						at += 3e6
					}
				}
			}
			l := longQueue.loop(64, all, nil, closedWindow)
			l.Service = exact(all)
			switch got := l.WithoutStalls(); got.Unknown {
			case "":
				if truth := 2000 / (2000*15e-6 + 8e-3); math.Abs(got.PerS/truth-1) > 0.005 {
					t.Errorf("%+v, want %.0f/s", got, truth)
				}
			case StallsDepend:
				count++
			default:
				t.Errorf("unknown: %s", got.Unknown)
			}
		}
		return count
	}
	if got := unknown(false); got > 1 {
		t.Errorf("independent stalls: %d of %d unknown", got, n)
	}
	if got := unknown(true); got < n-1 {
		t.Errorf("stalls in pauses: %d of %d unknown", got, n)
	}
	var quota []Stall // 20 ms of each 100 ms
	for begin := int64(80e6); begin < closedWindow; begin += 100e6 {
		quota = append(quota, Stall{BeginNs: begin, EndNs: begin + 20e6})
	}
	l := plainQueue.loop(64, quota, nil, closedWindow)
	l.Service = coarse(r, quota)
	if got := l.WithoutStalls(); got.Unknown != StallsDepend {
		t.Errorf("a quota: %+v", got)
	}
}

// Independent stalls are regular in fewer than one in 1,000 windows.
func TestRegularStalls(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	count := 0
	const n = 20_000
	for range n {
		l := ClosedLoad{}
		for begin := int64(0); len(l.Service) <= regularStalls; {
			begin += int64(r.ExpFloat64() * 1e9)
			l.Service = append(l.Service, Stall{BeginNs: begin, EndNs: begin})
		}
		if l.regular() {
			count++
		}
	}
	if count > n/1000 {
		t.Errorf("%d of %d are regular", count, n)
	}
}

// Half of the time is too much.
func TestClosedLoadStalledLong(t *testing.T) {
	all := hypervisor(rand.New(rand.NewPCG(11, 12)), 0.5, closedWindow)
	l := plainQueue.loop(64, all, nil, closedWindow)
	l.Service = exact(all)
	if got := l.WithoutStalls(); got.Unknown != TooMuchExcluded {
		t.Errorf("%+v", got)
	}
}

// A window without a response, and one with an unrecorded time that covers it, divide by no zero.
func TestClosedLoadWithoutResponses(t *testing.T) {
	for _, l := range []ClosedLoad{
		{ToNs: 1e9},
		{ToNs: 1e9, Good: 1, EndsNs: []int64{5}, Service: []Stall{{EndNs: 2e9, MeanNs: 2e9}}},
		{ToNs: 1e9, Good: 2, EndsNs: []int64{5, 6}, Saturated: true, Connections: 1,
			Load: []Stall{{BeginNs: 5, EndNs: 5}}},
	} {
		got := l.WithoutStalls()
		for _, x := range []float64{got.PerS, got.LowestPerS, got.HighestPerS, got.Share} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Errorf("%+v: %+v", l, got)
			}
		}
	}
}
