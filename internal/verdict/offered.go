package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony/internal/result"
)

const (
	unsentMax     = 0.01                   // of the arrivals due
	backlogMax    = 0.01                   // of the rate
	backlogNoise  = 5                      // arrivals that may wait at any moment of a steady state
	backlogSigmas = 3                      // standard deviations of the requests under way
	stepSlope     = 1.5                    // least squares' of a step, see capacity
	waitedMax     = 0.01                   // of the arrivals
	adMax         = 2 * 1.957              // twice the 1 % point of A², as in Lancet
	gapFloor      = 100 * time.Microsecond // two lags that are just good enough
	gapShare      = 0.10                   // of the mean gap
	burstMax      = 1.25                   // of the variance of Poisson arrivals
	burstSigmas   = 4                      // standard errors of the index of dispersion
)

// delivered lets a few arrivals be unsent whatever their share: in a steady state too some of them
// wait at the moment at which the window closes, and of few arrivals they are many.
func delivered(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != result.Open || l.Scheduled == 0 {
		return nil
	}
	unsent := float64(l.Scheduled - l.Sent)
	if unsent <= max(unsentMax*float64(l.Scheduled), backlogNoise) {
		return nil
	}
	hint := "the generator was late: give it a quieter core"
	if float64(l.Waited) > unsentMax*float64(l.Scheduled) {
		hint = "all connections were busy: the service cannot keep up; lower the rate"
	}
	share := float64(l.Sent) / float64(l.Scheduled)
	return invalid(beside(share, 1-unsentMax)+" sent", percent(1-unsentMax), hint)
}

// capacity allows for the backlog's own randomness: where L requests are under way on average,
// their number has a standard deviation of about sqrt(L) in a steady state (a Poisson number, where
// there is no queue), so that a short window may begin low and end high by a few of those. And
// where the rate changes, as many more are under way as the higher rate needs: a step in the middle
// of the window has 3/2 of its height for a slope, and no other rise has more.
func capacity(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != result.Open || l.WindowNs <= 0 {
		return nil
	}
	noise := backlogNoise + backlogSigmas*math.Sqrt(max(l.InFlightMean, 0))
	limit := max(backlogMax*l.RatePerS, (noise+stepSlope*swell(l))/(float64(l.WindowNs)/1e9))
	if l.BacklogPerS <= limit {
		return nil
	}
	observed := fmt.Sprintf("backlog grows by %.1f/s", l.BacklogPerS)
	return invalid(observed, fmt.Sprintf("%.1f/s", limit),
		"above capacity, latency says only how long the test was: lower the rate")
}

// swell is how many more requests are under way at the highest rate of a load whose rate changes
// than at its lowest, by Little's law. The time is the best interval's median, since a backlog
// stretches the others.
func swell(l *result.Load) float64 {
	counts := l.Series.Scheduled
	if len(counts) == 0 { // users make their own rate
		counts = l.Series.Sent
	}
	if steady(l) || len(counts) == 0 || l.Series.IntervalNs <= 0 {
		return 0
	}
	took := int64(math.MaxInt64)
	for _, ns := range l.Series.P50Ns {
		if ns > 0 {
			took = min(took, ns)
		}
	}
	if took == math.MaxInt64 {
		return 0
	}
	rise := slices.Max(counts) - slices.Min(counts)
	return float64(rise) * float64(took) / float64(l.Series.IntervalNs)
}

// steady tells whether the load is to be the same all the time, as far as the record says.
func steady(l *result.Load) bool {
	changing := strings.Contains(l.Users, "..") || strings.Contains(l.Users, ",")
	return l.Shape == "" && l.Arrivals != "replay" && !changing
}

func waited(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != result.Open || float64(l.Waited) <= max(waitedMax*float64(l.Scheduled),
		backlogNoise) {
		return nil
	}
	share := float64(l.Waited) / float64(l.Scheduled)
	return suspect(beside(share, waitedMax)+" of the arrivals", percent(waitedMax),
		"the tail holds waits for a connection: raise connections, or lower the rate")
}

// rate looks for a second in which too few left, made up for in another so that the whole is right.
// An arrival that waited for a connection may have left in any second after its own.
func rate(_ *result.Record, l *result.Load) *result.Finding {
	s := &l.Series
	if l.Model != result.Open || s.IntervalNs <= 0 || l.FlowTime.Count > 0 {
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
			at := time.Duration(int64(from) * s.IntervalNs)
			return suspect(fmt.Sprintf("%d of %d left in the interval from %v on", due-unsent, due,
				at), percent(1-unsentMax), "the generator was late: give it a quieter core")
		}
	}
	return nil
}

func arrivals(_ *result.Record, l *result.Load) *result.Finding {
	p := &l.Process
	hint := "the generator sends in another rhythm than it says: use --pacing precise, or a core " +
		"of its own"
	if l.FlowTime.Count > 0 || l.RatePerS <= 0 {
		return nil // the steps of a flow are no arrivals
	}
	switch l.Arrivals {
	case "poisson":
		if p.AndersonDarling > adMax {
			return suspect("A² = "+apart(p.AndersonDarling, adMax, 3),
				fmt.Sprintf("%.3f", adMax), hint)
		}
	case "constant":
		limit := max(gapFloor, time.Duration(gapShare*1e9/l.RatePerS)).Round(time.Microsecond)
		if off := time.Duration(p.GapDeviationNs); off > limit {
			return suspect(fmt.Sprintf("p99 of the gaps is off by %v", off), limit.String(), hint)
		}
	}
	return nil
}

// bursts allows for the index of dispersion's own randomness: of n bins, its standard error is
// sqrt(2/(n − 1)). Of evenly spaced arrivals it is below 1 in bins of any length.
func bursts(_ *result.Record, l *result.Load) *result.Finding {
	p := &l.Process
	if l.FlowTime.Count > 0 || l.RatePerS <= 0 || l.Arrivals == "replay" {
		return nil
	}
	for _, in := range []struct {
		width time.Duration
		index float64
	}{{time.Millisecond, p.Dispersion1ms}, {10 * time.Millisecond, p.Dispersion10ms},
		{100 * time.Millisecond, p.Dispersion100ms}} {
		bins := float64(p.Samples) / l.RatePerS / in.width.Seconds()
		limit := burstMax + burstSigmas*math.Sqrt(2/max(bins-1, 1))
		if in.index > limit {
			return suspect(fmt.Sprintf("variance is %s of the mean in bins of %v",
				apart(in.index, limit, 2), in.width),
				fmt.Sprintf("%.2f of the mean", limit),
				"the generator sends in bunches: give it a quieter core")
		}
	}
	return nil
}
