package stats

import "gonum.org/v1/gonum/mathext"

// LowerSteps are shares of a quantile by which it may be too high because of stalls that are too
// short to be recorded (StallFree.LowerFrom).
var LowerSteps = []float64{0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5}

// Lower returns the first of LowerSteps by which a quantile is not too high if unrecorded stalls
// take a share of the time; false if it may be too high by more than all steps, or without steps.
func Lower(from []float64, share float64) (step float64, known bool) {
	if share <= 0 && len(from) > 0 && from[0] > 0 {
		return 0, true
	}
	for i, least := range from {
		if share < least {
			return LowerSteps[i], true
		}
	}
	return 0, false
}

// unrecorded bounds what stalls that excluded no arrivals did to a quantile: those that were too
// short to be recorded, and those that were ignored.
type unrecorded struct {
	times     distribution
	q         float64
	idle      float64 // the share of the time in which a backlog becomes smaller
	meanNs    float64 // mean response time
	longestNs int64   // no such stall is longer; 0: not known
	valueNs   int64   // the quantile with such stalls
	least     float64 // the share of the time that ignored stalls took
}

// include adds ignored stalls.
func (u *unrecorded) include(stalls []Stall, timeNs int64) {
	for _, s := range stalls {
		u.least += float64(s.EndNs-s.BeginNs) / float64(max(timeNs, 1))
		u.longestNs = max(u.longestNs, s.EndNs-s.BeginNs)
	}
}

// mostCounted bounds the stalls of one response that are counted one by one.
const mostCounted = 16

// lowest bounds the quantile without such stalls, in ns, if unrecorded ones take a share of the
// time.
//
// A share p of the arrivals is delayed: those that are due in a stall or its backlog, and those
// that are unanswered when one begins. If they are all above the quantile, it is that of a lower
// rank, q (1 - p): the bound for contaminated data (Horowitz & Manski, "Identification and
// robustness with contaminated and corrupted data", Econometrica 63, 1995, pp. 281-302). The mean
// length of unrecorded stalls is assumed to be half of the longest one.
//
// A stall delays a response by its own length at most: without stalls, a queue that is served in
// order ends each request earlier by the stalls of the busy period before, or less. So if k stalls
// or fewer strike all arrivals but a share p, the bound is the quantile of rank q (1 - p), less k
// times the longest unrecorded stall. The number of stalls is that of a Poisson distribution: few
// long ones, because many short ones delay less. The best of all these bounds holds.
func (u unrecorded) lowest(share float64) int64 {
	share = max(share, 0) + u.least
	if share == 0 {
		return u.valueNs
	}
	delayed := share / u.idle
	if u.longestNs > 0 {
		delayed += share * u.meanNs / (float64(u.longestNs) / 2)
	}
	lowest, _ := u.times.quantile(u.q * (1 - min(delayed, 1)))
	if u.longestNs <= 0 {
		return lowest
	}
	mean := share * float64(u.valueNs) / u.idle / float64(u.longestNs)
	for k := int64(1); k <= mostCounted && k*u.longestNs < u.valueNs; k++ {
		more := mathext.GammaIncReg(float64(k+1), mean) // more than k stalls
		ns, _ := u.times.quantile(u.q * (1 - more))
		lowest = max(lowest, ns-k*u.longestNs)
	}
	return lowest
}

// lowerFrom returns, for each of LowerSteps, the least share of the time with which the quantile
// may be lower by more than this step; 1 if there is none, 0 if ignored stalls alone suffice.
func (u unrecorded) lowerFrom() []float64 {
	const halvings = 24
	out := make([]float64, len(LowerSteps))
	for i, step := range LowerSteps {
		limit := (1 - step) * float64(u.valueNs)
		if float64(u.lowest(0)) < limit {
			continue
		}
		low, high := 0.0, 1.0
		for range halvings {
			if middle := (low + high) / 2; float64(u.lowest(middle)) < limit {
				high = middle
			} else {
				low = middle
			}
		}
		out[i] = high
	}
	return out
}
