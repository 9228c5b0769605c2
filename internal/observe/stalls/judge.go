package stalls

import "slices"

// tick is one wake of a core's clock.
type tick struct {
	at  int64 // clock.Mono
	pid int32 // the process that ran; 0 is none, or not known
	gap bool  // what was between the tick before and this one is not known
}

// span is time in which the clock ticked, by clock.Mono.
type span struct {
	from  int64 // no tick of this span came before
	begin int64 // the clock certainly ticked from here on
	end   int64 // until here; ticks up to the next span's from may follow
}

// judge finds the stalls of a span. A clock ticks on a grid: the tick after one at time t is due at the
// first point of the grid after t. Function cause returns why a process that ran is a stall, or "".
func judge(ticks []tick, s span, cause func(pid int32) (cause, name string)) []Stall {
	if len(ticks) == 0 {
		if s.end-s.begin <= period+slack {
			return nil
		}
		return []Stall{{BeginNs: s.begin, EndNs: s.end, Cause: Unrecorded}}
	}
	return slices.Concat(lateTicks(ticks, s), strangers(ticks, s, cause))
}

// early is how much earlier than the grid, which is a median, a tick on time may come.
const early = slack / 4

// lateTicks finds stalls in which the clock itself was delayed.
func lateTicks(ticks []tick, s span) (found []Stall) {
	phase := phase(ticks)
	// next is the first point of the grid after a moment, unless that is a tick at this very point.
	next := func(at int64) int64 { return phase + (floor(at-phase+early, period)+1)*period }
	last, due := s.begin, next(s.begin+early) // a point just after the begin may be the timer's start
	look := func(at int64, gap bool) {
		switch late := at - due; {
		case gap:
			found = append(found, Stall{BeginNs: last, EndNs: at, Cause: Unrecorded})
		case late > slack:
			found = append(found, Stall{BeginNs: last, EndNs: at, LeastNs: late, Cause: Unknown})
		}
	}
	for _, t := range ticks {
		if t.at >= s.begin {
			look(t.at, t.gap)
		}
		last, due = max(t.at, s.begin), next(t.at)
	}
	look(s.end, false)
	return found
}

// floor divides towards minus infinity.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// phase is a moment of the grid: most ticks come on time, within some microseconds of each other when
// taken modulo the period, so it is the median of the densest part.
func phase(ticks []tick) int64 {
	first := ticks[0].at
	residues := make([]int64, 0, 2*len(ticks))
	for _, t := range ticks {
		residues = append(residues, (t.at-first)%period)
	}
	slices.Sort(residues)
	for _, r := range residues[:len(ticks)] { // once more: the circle goes on
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

// strangers finds stalls in which another process ran at ticks.
func strangers(ticks []tick, s span, cause func(pid int32) (cause, name string)) (found []Stall) {
	last := s.begin // the last moment before the process
	var now Stall   // the process that runs; without cause there is none
	var since int64
	close := func(at int64) {
		if now.Cause != "" {
			now.EndNs = at
			found = append(found, now)
		}
		now = Stall{}
	}
	for _, t := range ticks {
		reason, name := "", ""
		if t.pid != 0 {
			reason, name = cause(t.pid)
		}
		if t.gap || reason != now.Cause || name != now.Name {
			close(max(t.at, s.begin))
			now, since = Stall{BeginNs: last, Cause: reason, Name: name}, t.at
		}
		now.LeastNs = t.at - since
		last = max(t.at, s.begin)
	}
	close(max(s.end, last))
	return found
}
