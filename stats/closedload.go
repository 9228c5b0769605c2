package stats

import (
	"math"
	"slices"
)

const (
	// longGap separates a pause of a service under a closed load from the time between two
	// responses: a multiple of the mean, and a least duration, because of the clock of stalls.
	longGap, leastGapNs = 20, 1e6

	// Stalls are regular if the times between this many of them scatter less than this share of
	// their mean. By chance, fewer than one in 1,000 series of independent stalls are.
	regularStalls  = 12
	regularScatter = 0.35
)

// ClosedLoad is what a target did under a closed load in one window.
type ClosedLoad struct {
	FromNs, ToNs int64 // the window
	Good         int64 // good responses in it
	// EndsNs are the moments of responses in the window, in order. Later ones may be missing.
	EndsNs []int64
	// Service and Load are the stalls of the service's cores and of the load's, in any order.
	Service, Load []Stall
	// Saturated: the service has one core, and ran whenever this core did.
	Saturated   bool
	Connections int
}

// Running is the throughput of a closed load per time in which all cores in use ran, per second.
type Running struct {
	PerS float64 // if it is unknown, only to show
	// LowestPerS and HighestPerS are the ends of a 95 % interval: of the error of the time in
	// stalls, and of what a stall costs a closed load, which is its duration at most.
	LowestPerS, HighestPerS float64
	Share                   float64 // of the window in which all cores ran
	Unknown                 string  // TooMuchExcluded, StallsDepend, or "" if the value is known
	Strikes                 Strikes // how stalls depend on the service
}

// WithoutStalls returns the throughput per time in which all cores ran: the time in which any core
// was stalled does not count, and all responses do.
//
// A stall of a service that is always busy costs its whole duration. During a stall of the load,
// the service continues with the requests that it has, one of each connection at most. A service
// that waits, for example for a database, may wait during a stall in any case. So a stall costs
// nothing at least, unless the service is saturated.
//
// The value is unknown if stalls depend on the service, because a machine on which they do not
// occur does not exist then: they begin in its pauses more often, or less often, than by chance, or
// after nearly equal times, as with a hypervisor that has a CPU quota.
func (l ClosedLoad) WithoutStalls() Running {
	stalledNs, errNs := l.stalled(slices.Concat(l.Service, l.Load))
	const z = 1.96 // of a normal distribution: 95 % are within
	window := float64(l.ToNs - l.FromNs)
	rate := func(ns float64) float64 {
		const leastRan = 0.01 // an error larger than the window must not divide by zero
		ran := window - min(max(ns, 0), (1-leastRan)*window)
		return float64(l.Good) / ran * 1e9
	}
	r := Running{PerS: rate(stalledNs), LowestPerS: rate(0), HighestPerS: rate(stalledNs + z*errNs),
		Share: max(1-stalledNs/window, 0), Strikes: l.strikes()}
	if l.Saturated {
		service, _ := l.stalled(l.Service)
		turnNs := float64(l.Connections) / rate(stalledNs) * 1e9
		least := service + max(stalledNs-service-turnNs*float64(len(l.Load)), 0)
		r.LowestPerS = rate(least - z*errNs)
	}
	switch {
	case r.Share < LeastShare:
		r.Unknown = TooMuchExcluded
	case r.Strikes.P < dependentP || l.regular():
		r.Unknown = StallsDepend
	}
	return r
}

// stalled estimates for how long any core was stalled in the window, with the standard error. A
// stall is at the end of its bounds, where its late tick came.
func (l ClosedLoad) stalled(all []Stall) (ns, errNs float64) {
	var placed []Stall
	sum, placedNs, variance := 0.0, 0.0, 0.0
	for _, s := range all {
		outer := s.EndNs - s.BeginNs
		length := min(max(s.MeanNs, s.LeastNs), outer)
		x := Stall{BeginNs: max(s.EndNs-length, l.FromNs), EndNs: min(s.EndNs, l.ToNs)}
		inside := x.EndNs - x.BeginNs
		if inside <= 0 {
			continue
		}
		placed = append(placed, x)
		placedNs += float64(inside)
		sum += float64(s.MeanNs) * float64(inside) / float64(length)
		// A tick sees a short stall by chance, and the ends of a long one. The less the tick is
		// late, the more stalls of this length it missed.
		open := float64(outer - s.LeastNs)
		variance += open * open * max(1-float64(s.LeastNs)/max(open, 1), 0.25)
	}
	unionNs := 0.0
	for _, x := range union(placed) {
		unionNs += float64(x.EndNs - x.BeginNs)
	}
	if placedNs > 0 {
		sum *= unionNs / placedNs
	}
	return sum, math.Sqrt(variance)
}

// strikes compares how many stalls began while no response had come for long with the share of the
// time in which none did, as findStrikes does for open loads.
func (l ClosedLoad) strikes() Strikes {
	s := Strikes{P: 1}
	if len(l.EndsNs) < 2 {
		return s
	}
	from, to := l.EndsNs[0], l.EndsNs[len(l.EndsNs)-1]
	limit := int64(max(longGap*float64(to-from)/float64(len(l.EndsNs)-1), leastGapNs))
	var pauses []Interval
	for i, end := range l.EndsNs[1:] {
		if last := l.EndsNs[i]; end-last > limit {
			pauses = append(pauses, Interval{last + limit, end})
		}
	}
	stalls := union(slices.Concat(l.Service, l.Load))
	// The state is unknown from the begin of a stall until the first response, unless it was a
	// pause.
	var excluded []Interval
	for _, x := range stalls {
		if x.BeginNs < from || x.BeginNs >= to {
			continue
		}
		i, _ := slices.BinarySearch(l.EndsNs, x.EndNs)
		until := max(l.EndsNs[min(i, len(l.EndsNs)-1)], x.EndNs)
		if n := len(excluded); n > 0 && x.BeginNs <= excluded[n-1].ToNs {
			excluded[n-1].ToNs = max(excluded[n-1].ToNs, until)
			continue
		}
		s.Stalls++
		if contains(pauses, x.BeginNs) {
			s.Inside++
			until = x.EndNs
		}
		excluded = append(excluded, Interval{x.BeginNs, until})
	}
	if s.Stalls == 0 {
		return s
	}
	for _, p := range pauses {
		if !contains(excluded, p.FromNs) {
			s.Pauses++
		}
	}
	paused := lengthOf(pauses) - overlap(pauses, excluded)
	ran := max(to-from-lengthOf(excluded), 1)
	s.Expected = float64(s.Stalls) * min(float64(max(paused, limit))/float64(ran), 1)
	s.P = strikesP(s.Inside, s.Pauses, s.Expected)
	return s
}

// regular reports whether the service's cores stall after nearly equal times.
func (l ClosedLoad) regular() bool {
	all := union(l.Service)
	if len(all) <= regularStalls {
		return false
	}
	var ran []float64
	for i, s := range all[1:] {
		ran = append(ran, float64(s.BeginNs-all[i].EndNs))
	}
	return sd(ran) < regularScatter*mean(ran)
}

func lengthOf(all []Interval) (ns int64) {
	for _, x := range all {
		ns += x.ToNs - x.FromNs
	}
	return ns
}

// overlap returns how long both of two lists of sorted, disjoint intervals last.
func overlap(a, b []Interval) (ns int64) {
	for len(a) > 0 && len(b) > 0 {
		ns += max(min(a[0].ToNs, b[0].ToNs)-max(a[0].FromNs, b[0].FromNs), 0)
		if a[0].ToNs < b[0].ToNs {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return ns
}
