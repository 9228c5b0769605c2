package stalls

import "slices"

// tick is one tick of a core's clock.
type tick struct {
	ns  int64 // clock.Mono
	pid int32 // the process that ran; 0 if the core was idle or the process is unknown
	gap bool  // ticks between the previous tick and this one were lost
}

// span is a time in which the clock ticked, by clock.Mono.
type span struct {
	from  int64 // all ticks of this span are later
	begin int64 // the clock certainly ticked from here on
	end   int64 // up to here; ticks before the next span's from may follow
}

// judge finds the stalls of a span in which the clock ticked each period. Ticks are in order; only
// a tick after a gap may be some microseconds out of order. Function cause returns the stall's
// cause if a process ran, or "". No stall ends before it begins.
func judge(ticks []tick, s span, period int64,
	cause func(pid int32) (cause, name string)) []Stall {
	return append(lateTicks(ticks, s, period), strangers(ticks, s, period, cause)...)
}

// judgeBoth finds the stalls of a span from two clocks: all ticks each period, busy ticks each
// busyPeriod while the core is not idle.
func judgeBoth(all, busy []tick, s span, period, busyPeriod int64,
	cause func(pid int32) (cause, name string)) []Stall {
	late := slices.DeleteFunc(lateTicks(all, s, period), func(x Stall) bool {
		return x.Cause == Unknown && x.LeastNs > busyPeriod+slack && ticked(busy, x, busyPeriod)
	})
	list := gaps(busy, s)
	for _, x := range strangers(busy, s, busyPeriod, cause) {
		if i := slices.IndexFunc(late, func(y Stall) bool { return explains(x, y) }); i >= 0 {
			late[i].Cause, late[i].Name = x.Cause, x.Name
		} else {
			list = append(list, x)
		}
	}
	return append(late, list...)
}

// explains reports whether a process that ran at some ticks explains why the other clock was late:
// all of these ticks are within the late clock's bounds, which are then also the process's bounds.
// The process has a higher priority, and the clock was on time before and after.
func explains(process, late Stall) bool {
	first := process.sinceNs
	return late.Cause == Unknown && late.BeginNs <= first && first+process.LeastNs <= late.EndNs
}

// ticked reports whether a clock ticked throughout a stall that the other clock found. In that case
// the core ran: a process was in the kernel and could not be preempted.
func ticked(ticks []tick, x Stall, period int64) bool {
	last := x.BeginNs
	for _, t := range ticks[before(ticks, x.BeginNs):] {
		if t.ns-last > period+slack {
			return false
		}
		last = t.ns
		if last >= x.EndNs {
			return true
		}
	}
	return x.EndNs-last <= period+slack
}

// gaps returns the times in which ticks were lost.
func gaps(ticks []tick, s span) (list []Stall) {
	last := s.begin
	for _, t := range ticks {
		if end := min(t.ns, s.end); t.gap && end > last {
			list = append(list, Stall{BeginNs: last, EndNs: end, MeanNs: end - last,
				Cause: Unrecorded})
		}
		last = max(last, t.ns)
	}
	return list
}

// early is the largest time before the grid, which is a median, at which a tick on time may come.
const early = slack / 4

// lateTicks finds stalls in which the clock itself was delayed. A clock ticks on a grid: the tick
// after one at time t is due at the first point of the grid after t.
func lateTicks(ticks []tick, s span, period int64) (list []Stall) {
	if len(ticks) == 0 {
		if s.end-s.begin > period+slack {
			list = []Stall{{BeginNs: s.begin, EndNs: s.end, MeanNs: s.end - s.begin,
				Cause: Unrecorded}}
		}
		return list
	}
	phase := phase(ticks, period)
	// next is the first point of the grid after a moment, unless that is a tick at this very point.
	next := func(ns int64) int64 { return phase + (floor(ns-phase+early, period)+1)*period }
	last := s.begin
	due := next(s.begin + early) // a point just after the begin may be the timer's start
	look := func(ns int64, gap bool) {
		late, end := ns-due, min(ns, s.end) // ticks may come after the end of the span
		switch {
		case gap && end > last:
			list = append(list, Stall{BeginNs: last, EndNs: end, MeanNs: end - last,
				Cause: Unrecorded})
		case !gap && late > slack:
			list = append(list, Stall{BeginNs: last, EndNs: ns, LeastNs: late, Cause: Unknown,
				UnseenNs: unseen(late, period), MeanNs: mean(late, period)})
		}
	}
	for _, t := range ticks {
		if t.ns >= s.begin {
			look(t.ns, t.gap)
		}
		last, due = max(t.ns, last), next(t.ns)
	}
	look(s.end, false)
	return list
}

// unseen returns a late tick's part in the estimate of the time of stalls that delayed no tick.
//
// A stall of length L begins at random between two points of the grid, which are a period P apart.
// A tick is more than the slack s late if a point lies in the first L-s of the stall. If L is
// between s and P+s, this has the probability (L-s)/P, and the delay has equal probabilities
// between s and L. Unseen stalls of this length take L(1-(L-s)/P) on average. The sum over late
// ticks has this mean if each counts P+s-2r, and ticks just above the slack count 4s more each
// within a quarter of a period, for stalls as short as the slack. Stalls shorter than s+P/4 are
// underestimated. For longer stalls, which are always seen, the mean is 0 if r is the delay modulo
// P, from s to P+s.
func unseen(late, period int64) int64 {
	r := slack + (late-slack)%period
	ns := period + slack - 2*r
	if r < slack+period/4 {
		ns += 4 * slack
	}
	return ns
}

// mean returns a late tick's part in the estimate of the time of all stalls, recorded or not. With
// the probabilities of unseen, a stall of length L > s takes L on average if each late tick counts
// the points of the grid that a delay less s covers, P each, and 4s more if the rest of this delay
// is within a quarter of a period.
func mean(late, period int64) int64 {
	r := (late - slack) % period
	ns := late - slack - r + period
	if r < period/4 {
		ns += 4 * slack
	}
	return ns
}

// floor divides and rounds towards minus infinity.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// phase returns a point of the grid. Most ticks come on time, within some microseconds of each
// other modulo the period, so it is the median of the densest part.
func phase(ticks []tick, period int64) int64 {
	first := ticks[0].ns
	residues := make([]int64, 0, 2*len(ticks))
	for _, t := range ticks {
		residues = append(residues, (t.ns-first)%period)
	}
	slices.Sort(residues)
	for _, r := range residues[:len(ticks)] { // again, because residues are circular
		residues = append(residues, r+period)
	}
	best, most, j := 0, 0, 0
	for i := range ticks {
		for j < len(residues) && residues[j]-residues[i] <= early {
			j++
		}
		if n := j - i; n > most {
			best, most = i, n
		}
	}
	return first + residues[best+(most-1)/2]
}

// strangers finds stalls in which another process ran at ticks. A process at only one tick may have
// run for any time below two periods; on average, each such tick stands for a period of such runs.
// The process did not run at the ticks before and after. If these are further away than a period,
// the core was idle, or they came late, which lateTicks reports.
func strangers(ticks []tick, s span, period int64,
	cause func(pid int32) (cause, name string)) (list []Stall) {
	last := s.begin // last moment before the process
	var now Stall   // of the process that runs; without a cause it is not a stall
	var since int64
	finish := func(ns int64) {
		if now.Cause != "" {
			now.EndNs = min(ns, since+now.LeastNs+period+slack)
			now.MeanNs = min(now.LeastNs+period, now.EndNs-now.BeginNs)
			if now.LeastNs == 0 {
				now.UnseenNs = period
			}
			list = append(list, now)
		}
		now = Stall{}
	}
	for _, t := range ticks {
		ns := max(t.ns, last)
		reason, name := "", ""
		if t.pid != 0 {
			reason, name = cause(t.pid)
		}
		if t.gap || reason != now.Cause || name != now.Name || t.ns-last > period+slack {
			finish(ns)
			now = Stall{BeginNs: max(last, ns-period-slack), Cause: reason, Name: name}
			since = ns
			now.sinceNs = ns
		}
		now.LeastNs = ns - since
		last = ns
	}
	finish(max(s.end, last))
	return list
}
