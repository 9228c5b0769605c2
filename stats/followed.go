package stats

import "slices"

// followed are response times that are known, or of which only is known that they are longer,
// because a stall began before the answer.
type followed struct {
	// ns are the known times and the times until a stall, doubled; odd: the answer came later. So
	// they sort by time, answers first.
	ns []int64
}

// follow returns the response times of the arrivals that were not due while a stall or its backlog
// lasted, each until the next stall begins. Arrivals and intervals are in order.
func follow(arrivals []Arrival, intervals []Interval) (f followed) {
	f.ns = make([]int64, 0, len(arrivals))
	next := 0
	for _, a := range arrivals {
		for next < len(intervals) && a.DueNs >= intervals[next].ToNs {
			next++
		}
		switch {
		case next == len(intervals) || a.DueNs+a.ResponseNs <= intervals[next].FromNs:
			f.ns = append(f.ns, 2*a.ResponseNs)
		case a.DueNs < intervals[next].FromNs:
			f.ns = append(f.ns, 2*(intervals[next].FromNs-a.DueNs)+1)
		}
	}
	return f
}

// until returns how many response times are known, or are known to be longer than ns.
func (f followed) until(ns int64) (n int64) {
	for _, x := range f.ns {
		if x%2 == 0 || x/2 >= ns {
			n++
		}
	}
	return n
}

// distribution returns how response times are distributed: times in ascending order, and for each
// the probability of an answer until then. It estimates what answers that a stall overtook would
// have taken by those of the arrivals that had more time until the next stall (Kaplan & Meier,
// "Nonparametric estimation from incomplete observations", Journal of the American Statistical
// Association 53, 1958, pp. 457-481). This is right if stalls begin independently of what the
// service does, which findStrikes tests.
func (f followed) distribution() (d distribution) {
	slices.Sort(f.ns)
	later := 1.0 // the probability of an answer after all times so far
	for i, ns := range f.ns {
		if ns%2 == 1 {
			continue
		}
		later *= 1 - 1/float64(len(f.ns)-i)
		if n := len(d.ns); n > 0 && d.ns[n-1] == ns/2 {
			d.until[n-1] = 1 - later
			continue
		}
		d.ns, d.until = append(d.ns, ns/2), append(d.until, 1-later)
	}
	return d
}

type distribution struct {
	ns    []int64
	until []float64
}

// rounding is more than what the sum of so many floating-point errors can be.
const rounding = 1e-9

// quantile returns the first time until which at least a share q of the answers came. If stalls
// overtook so many of the slow answers that there is none, reached is false, and the quantile is
// above the last known time; 0 without any.
func (d distribution) quantile(q float64) (ns int64, reached bool) {
	if len(d.ns) == 0 {
		return 0, false
	}
	i, _ := slices.BinarySearch(d.until, q-rounding)
	return d.ns[min(i, len(d.ns)-1)], i < len(d.ns)
}
