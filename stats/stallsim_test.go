package stats

import "math/rand/v2"

// queue is a server with one core that handles requests in order, one after the other.
type queue struct {
	name      string
	serviceNs int64 // of each request
	pauseNs   int64 // extra time of each request whose number is divisible by every; 0: none
	every     int
}

const (
	stallRate   = 20_000.0    // requests/s
	stallMeanNs = 2_500_000.0 // mean length of stalls, which is exponential
	stallTickNs = 1_000_000   // of the clock that records them
	stallSlack  = 200_000     // maximum delay of that clock
)

var (
	plainQueue = queue{name: "15 µs", serviceNs: 15_000}
	longQueue  = queue{name: "15 µs, 8 ms each 2,000th", serviceNs: 15_000, pauseNs: 8_000_000,
		every: 2000}
	shortQueue = queue{name: "15 µs, 1 ms each 300th", serviceNs: 15_000, pauseNs: 1_000_000,
		every: 300}
)

func (q queue) utilization() float64 {
	ns := float64(q.serviceNs)
	if q.every > 0 {
		ns += float64(q.pauseNs) / float64(q.every)
	}
	return ns * stallRate / 1e9
}

// poisson returns moments of this rate per second until an end.
func poisson(r *rand.Rand, rate float64, endNs int64) (all []int64) {
	for at := 0.0; ; {
		at += r.ExpFloat64() / rate * 1e9
		if int64(at) >= endNs {
			return all
		}
		all = append(all, int64(at))
	}
}

// serve returns the response times of requests while stalls, as sorted, disjoint intervals, take
// the core.
func (q queue) serve(due []int64, stalls []Stall) []Arrival {
	all := make([]Arrival, len(due))
	now, next := int64(0), 0
	for i, at := range due {
		now = max(now, at)
		work := q.serviceNs
		if q.every > 0 && i%q.every == q.every/2 {
			work += q.pauseNs
		}
		for next < len(stalls) && now+work > stalls[next].BeginNs {
			s := stalls[next]
			next++
			if s.EndNs <= now {
				continue
			}
			work -= max(s.BeginNs-now, 0)
			now = s.EndNs
		}
		now += work
		all[i] = Arrival{at, now - at}
	}
	return all
}

// hypervisor returns random stalls that take a share of the time.
func hypervisor(r *rand.Rand, share float64, endNs int64) (all []Stall) {
	last := int64(0)
	for _, at := range poisson(r, share/stallMeanNs*1e9/(1-share), endNs) {
		begin := max(at, last+1000)
		last = begin + 1 + int64(r.ExpFloat64()*stallMeanNs)
		all = append(all, Stall{BeginNs: begin, EndNs: last})
	}
	return all
}

// ticking returns the stalls that a ticking clock shows, and its estimate of those it misses, as in
// internal/observe/stalls.
func ticking(stalls []Stall) (all []Stall) {
	const period, slack = int64(stallTickNs), int64(stallSlack)
	for _, s := range stalls {
		due := (s.BeginNs/period + 1) * period
		late := s.EndNs - due
		if late < slack {
			continue // no tick was late
		}
		r := (late - slack) % period
		unseen := period - slack - 2*r
		if r < period/4 {
			unseen += 4 * slack
		}
		all = append(all, Stall{BeginNs: due - period, EndNs: s.EndNs, UnseenNs: unseen})
	}
	return all
}
