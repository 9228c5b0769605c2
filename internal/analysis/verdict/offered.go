package verdict

import (
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

const (
	unsentMax     = 0.01                   // of the arrivals due
	backlogMax    = 0.01                   // of the rate
	backlogNoise  = 5                      // arrivals that may wait at any moment of a steady state
	backlogSigmas = 3                      // standard deviations of the requests under way
	stepSlope     = 1.5                    // least-squares slope of a step, see capacity
	pauseMoments  = 8                      // intervals; with fewer there is no result
	adMax         = 2 * 1.957              // twice the 1 % point of A², as in Lancet
	adShare       = 0.02                   // of the gaps of a test: A² grows with them
	adGaps        = 1000                   // of a test, of which the median counts
	evenMax       = 0.25                   // of the variance of Poisson arrivals, below it
	gapFloor      = 100 * time.Microsecond // two lags that are just good enough
	gapShare      = 0.10                   // of the mean gap
	allUsed       = 0.95                   // of the service's processor time; below it is room
	burstSigmas   = 4                      // standard errors of the index of dispersion
)

// delivered lets a few arrivals be unsent regardless of their share: in a steady state too some of
// them wait when the window closes, and if arrivals are few, the share is large.
func delivered(_ *record.Record, l *load) *record.Finding {
	if l.Model != record.Open || l.Scheduled == 0 {
		return nil
	}
	unsent := float64(l.Scheduled - l.Sent)
	if unsent <= max(unsentMax*float64(l.Scheduled), backlogNoise) {
		return nil
	}
	f := record.Finding{Value: float64(l.Sent) / float64(l.Scheduled), Limit: 1 - unsentMax,
		Unit: record.UnitShare, Side: record.Below}
	if float64(l.Waited) > unsentMax*float64(l.Scheduled) {
		f.Case = "waited"
	}
	return invalid(f)
}

// capacity allows for the backlog's own randomness: with L requests under way on average, their
// number has a standard deviation of about sqrt(L) in a steady state (a Poisson number, if there is
// no queue), so a short window may begin low and end high by a few standard deviations. If the rate
// changes, more requests are under way at the higher rate: a step in the middle of the window has a
// slope of 3/2 of its height, and no other rise has more.
func capacity(_ *record.Record, l *load) *record.Finding {
	if l.Model != record.Open || l.WindowNs <= 0 {
		return nil
	}
	noise := backlogNoise + backlogSigmas*math.Sqrt(max(l.InFlightMean, 0))
	limit := max(backlogMax*l.RatePerS, (noise+stepSlope*swell(l.Load))/(float64(l.WindowNs)/1e9))
	if l.BacklogPerS <= limit || paused(l.Load, limit) {
		return nil
	}
	return invalid(record.Finding{Value: l.BacklogPerS, Limit: limit, Unit: record.UnitPerS,
		Side: record.Above})
}

// paused distinguishes a service that stood still for a while, which open loads are made to show,
// from a service that cannot keep up: between most moments of the window the backlog does not grow.
// The median of the slopes between all pairs (Theil 1950, Sen 1968) ignores an event that covers
// less than 29 % of the moments.
func paused(l *record.Load, limit float64) bool {
	s := &l.Series
	n := min(len(s.Scheduled), len(s.Done))
	if n < pauseMoments || s.IntervalNs <= 0 {
		return false
	}
	var slopes []float64
	backlog := make([]float64, n)
	level := 0.0
	for i := range n {
		level += float64(s.Scheduled[i] - s.Done[i])
		if i < len(s.Failed) {
			level -= float64(s.Failed[i])
		}
		backlog[i] = level
		for k := range i {
			slopes = append(slopes, (level-backlog[k])/float64(i-k))
		}
	}
	return stats.Median(slopes)*1e9/float64(s.IntervalNs) <= limit/2
}

// swell returns how many more requests are under way at the highest rate of a changing load than at
// its lowest, by Little's law. It uses the smallest median of an interval as the time, because a
// backlog stretches the others.
func swell(l *record.Load) float64 {
	counts := l.Series.Scheduled
	if len(counts) == 0 { // users make their own rate
		counts = l.Series.Sent
	}
	if l.Series.IntervalNs <= 0 {
		return 0
	}
	// A shorter last interval has fewer requests at the same rate.
	counts = counts[:min(len(counts), int(l.WindowNs/l.Series.IntervalNs))]
	if steady(l) || len(counts) == 0 {
		return 0
	}
	elapsed := int64(math.MaxInt64)
	for _, ns := range l.Series.P50Ns {
		if ns > 0 {
			elapsed = min(elapsed, ns)
		}
	}
	if elapsed == math.MaxInt64 {
		return 0
	}
	rise := slices.Max(counts) - slices.Min(counts)
	return float64(rise) * float64(elapsed) / float64(l.Series.IntervalNs)
}

// steady reports whether the record describes a load that stays the same all the time.
func steady(l *record.Load) bool {
	changing := strings.Contains(l.Users, "..") || strings.Contains(l.Users, ",")
	return l.Shape == "" && l.Arrivals != "replay" && !changing
}

// waited bounds the effect of waits for a connection, or for a stream that the server permits, as
// the least of three bounds. Without the waiting requests, a percentile has a lower rank, whatever
// their times would have been. If the waits were short, the requests' lateness is smaller. If the
// generator recorded the delays that it caused itself, only the time that more connections would
// have saved remains.
func waited(r *record.Record, l *load) *record.Finding {
	if l.Model != record.Open || l.Waited <= 0 || l.Scheduled == 0 {
		return nil
	}
	share := float64(l.Waited) / float64(l.Scheduled)
	times, late := l.times(), func(float64) float64 { return most }
	if l.Lag.Count > 0 {
		late = lateBy(l.times(), l.late(), 0)
	}
	sooner := 1.0
	if l.heldUpKnown() {
		sooner = withMore(r, l.Load)
	}
	f := record.Finding{Value: share, Unit: record.UnitShare}
	if l.StreamsPermitted != nil {
		f.Case = "streams"
	}
	return bounded(f,
		moves(l.Load, 0, func(q float64) float64 {
			retained := (1 - sooner) * times.at(q-2*sooner*share)
			return min(times.below(q, share), late(q), times.above(q, retained))
		}))
}

// withMore bounds the share by which times would be shorter with more connections. If a closed load
// with no more connections than l used nearly all of the service's processor time, more
// connections would only have moved the queue from before the connections to behind them: the
// service was as fast as possible while anything waited, except for the time that it left unused.
// With this time it would have worked off the queue sooner, by as much of its rate as the arrivals
// left. Waits would end as much earlier, and an equal share of the waiting requests, and of as many
// behind them, would not have waited. A result of 1 means unknown.
func withMore(r *record.Record, l *record.Load) float64 {
	amount := 1.0
	for i := range r.Loads {
		c := &r.Loads[i]
		used := min(c.Service.CPUShare, 1)
		if c.Model != record.Closed || c.Users != "" || used < allUsed || c.ThroughputPerS <= 0 ||
			c.Connections*max(c.Streams, 1) > l.Connections*max(l.Streams, 1) {
			continue
		}
		if requested := l.RatePerS / c.ThroughputPerS; requested < 1 {
			amount = min(amount, 1-(1-requested)/(1/used-requested))
		}
	}
	return amount
}

// rate finds a second in which too few requests left although others make up for it in the total.
// An arrival that waited for a connection may have left in any second after its own.
func rate(_ *record.Record, l *load) *record.Finding {
	s := &l.Series
	if l.Model != record.Open || s.IntervalNs <= 0 || l.FlowTime.Count > 0 {
		return nil // a flow is one arrival and many requests
	}
	n := min(len(s.Scheduled), len(s.Sent))
	second := max(int(1e9/s.IntervalNs), 1)
	for from := 0; from < n; from += second {
		var due, unsent int64
		for i := from; i < min(from+second, n); i++ {
			due += s.Scheduled[i]
			unsent += s.Scheduled[i] - s.Sent[i]
		}
		if float64(unsent) > max(unsentMax*float64(due), backlogNoise)+float64(l.Waited) {
			return suspect(record.Finding{Value: float64(due-unsent) / float64(due),
				Limit: 1 - unsentMax, Unit: record.UnitShare, Side: record.Below,
				Facts: record.Facts{Count: due - unsent, Total: due,
					AtNs: int64(from) * s.IntervalNs}})
		}
	}
	return nil
}

// arrivals distinguishes a different arrival process from gaps that are off by the generator's lag:
// the rule lag bounds the effect of the latter, and the effect of the former is unknown. A² grows
// with the number of gaps, so with many gaps it would show differences that are too small to
// matter.
func arrivals(_ *record.Record, l *load) *record.Finding {
	p := &l.ArrivalProcess
	if l.FlowTime.Count > 0 || l.RatePerS <= 0 {
		return nil // a flow's steps are not arrivals
	}
	switch l.Arrivals {
	case pace.Poisson:
		limit := max(adMax, adShare*float64(min(p.Samples, adGaps)))
		if p.AndersonDarling > limit {
			return suspect(in("poisson", record.Finding{Value: p.AndersonDarling, Limit: limit,
				Unit: record.UnitCount, Side: record.Above}))
		}
	case pace.Constant:
		limit := max(gapFloor, time.Duration(gapShare*1e9/l.RatePerS)).Round(time.Microsecond)
		deviation := time.Duration(p.GapDeviationNs)
		switch {
		case deviation <= limit:
		case deviation <= 2*time.Duration(l.OwnLag.MaxNs): // each gap has a lag at either end
			return cause(in("constant", nanoseconds(deviation, limit)))
		default:
			return suspect(in("constant", nanoseconds(deviation, limit)))
		}
	}
	return nil
}

// bursts allows for the index of dispersion's own randomness: with n bins, its standard error is
// sqrt(2/(n − 1)). Evenly spaced arrivals have an index below 1 in bins of any length. Waiting time
// is proportional to the sum of two indices, that of arrivals and that of service times (Kingman
// 1961), so an excess adds at most half of itself to the part of a time above the shortest. If
// Poisson arrivals come too evenly, the missing share is the bound, up to a quarter; beyond it
// queues may be missing altogether.
func bursts(_ *record.Record, l *load) *record.Finding {
	p := &l.ArrivalProcess
	if l.FlowTime.Count > 0 || l.RatePerS <= 0 || l.Arrivals == "replay" {
		return nil
	}
	var match *record.Finding
	worst := 0.0
	for _, item := range []struct {
		width time.Duration
		index float64
	}{{time.Millisecond, p.Dispersion1ms}, {10 * time.Millisecond, p.Dispersion10ms},
		{100 * time.Millisecond, p.Dispersion100ms}} {
		bins := float64(p.Samples) / l.RatePerS / item.width.Seconds()
		excess, chance := item.index-1, burstSigmas*math.Sqrt(2/max(bins-1, 1))
		f := record.Finding{Value: item.index, Unit: record.UnitCount,
			Facts: record.Facts{BinNs: int64(item.width)}}
		switch even := -excess; {
		case excess > max(worst, chance):
			worst = excess
			times := l.times()
			match = bounded(in("bunches", f),
				moves(l.Load, 0, func(q float64) float64 { return excess / 2 * times.below(q, 1) }))
		case l.Arrivals != pace.Poisson:
		case even > max(evenMax, chance):
			f.Limit, f.Side = 1, record.Below
			return suspect(in("even", f))
		case even > max(worst, chance):
			worst = even
			match = bounded(in("even", f), moves(l.Load, 0, func(float64) float64 { return even }))
		}
	}
	return match
}
