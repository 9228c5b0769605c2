package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony/internal/result"
)

// Limits of the rules. Changing one changes what Prony calls valid, so it belongs in the
// changelog's first section.
const (
	unsentMax     = 0.01                  // of the arrivals due
	backlogMax    = 0.01                  // of the rate
	backlogNoise  = 5                     // arrivals that may wait at any moment of a steady state
	backlogSigmas = 3                     // standard deviations of the requests under way
	lagFloor      = 50 * time.Microsecond // p99
	lagShare      = 0.05                  // of the response time's p99
	generatorMax  = 0.80                  // of a core
	runDelayMax   = 0.05                  // of the window
	ceilingMax    = 0.70                  // of the generator's rate against a null server
	littleMax     = 0.05                  // suspect above
	littleWrong   = 0.20                  // invalid above
	littleAnswers = 100                   // fewer say nothing about a mean
	errorsMax     = 0.001                 // of the requests; invalid above
	censoredMax   = 0.01                  // likewise
	reconnectsMax = 0.01                  // of the requests
	p99Needs      = 381                   // samples
	driftMax      = 0.05                  // between the halves of a window
	driftSigmas   = 3                     // of the counts' difference
	driftHalf     = 4                     // intervals; of fewer nothing is said
	stealMax      = 0.01                  // suspect above
	stealWrong    = 0.10                  // invalid above
	throttledMax  = 0.01                  // of the window
	othersMax     = 0.05                  // of the machine
	memoryMax     = 0.01                  // of the window
)

func failed(r *result.Record, _ *result.Load) *result.Finding {
	if r.Outcome == result.Measured {
		return nil
	}
	f := invalid("the record does not say why", "the trial ends well", "read the service's log")
	if r.Failure != nil {
		f.Observed = r.Failure.Step + ": " + r.Failure.Error
		f.Hint = r.Failure.Hint
	}
	return f
}

func warmup(r *result.Record, _ *result.Load) *result.Finding {
	if r.Warmup.Steady {
		return nil
	}
	took := time.Duration(r.Warmup.DurationNs).Round(100 * time.Millisecond)
	return suspect(fmt.Sprintf("not steady after %v", took), "steady", "raise warmup.max")
}

func limits(r *result.Record, _ *result.Load) *result.Finding {
	if len(r.Limits.Missing) == 0 {
		return nil
	}
	return suspect("not in force: "+strings.Join(r.Limits.Missing, ", "), "all in force",
		"run as root, or have cgroups delegated to you")
}

func cores(r *result.Record, _ *result.Load) *result.Finding {
	for _, c := range r.Limits.ServiceCores {
		if slices.Contains(r.Limits.LoadCores, c) {
			return suspect(fmt.Sprintf("both on core %d", c), "disjoint cores",
				"give the machine a second core")
		}
	}
	return nil
}

func answers(_ *result.Record, l *result.Load) *result.Finding {
	if l.Done > 0 {
		return nil
	}
	hint := "none came inside the window: raise measure, or read the service's log"
	if l.Errors.Example != "" {
		hint = "see the errors: " + l.Errors.Example
	}
	return invalid("no good answer", "at least 1", hint)
}

// delivered lets a few arrivals be unsent whatever their share: in a steady state too some of them
// wait at the moment at which the window closes, and of few arrivals they are many.
func delivered(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != "open" || l.Scheduled == 0 {
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
// there is no queue), so that a short window may begin low and end high by a few of those.
func capacity(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != "open" || l.WindowNs <= 0 {
		return nil
	}
	noise := backlogNoise + backlogSigmas*math.Sqrt(max(l.InFlightMean, 0))
	limit := max(backlogMax*l.RatePerS, noise/(float64(l.WindowNs)/1e9))
	if l.BacklogPerS <= limit {
		return nil
	}
	observed := fmt.Sprintf("backlog grows by %.1f/s", l.BacklogPerS)
	return invalid(observed, fmt.Sprintf("%.1f/s", limit),
		"above capacity, latency says only how long the test was: lower the rate")
}

func lag(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != "open" || l.OwnLag.Count == 0 {
		return nil
	}
	limit := max(lagFloor, time.Duration(lagShare*float64(l.ResponseTime.P99Ns)))
	if time.Duration(l.OwnLag.P99Ns) <= limit {
		return nil
	}
	return suspect(fmt.Sprintf("p99 %v", time.Duration(l.OwnLag.P99Ns).Round(time.Microsecond)),
		limit.Round(time.Microsecond).String(),
		"the generator's core was not its own, or is slow to wake: quiet the machine")
}

func generator(_ *result.Record, l *result.Load) *result.Finding {
	if l.Generator.CPUShare <= generatorMax {
		return nil
	}
	return suspect(beside(l.Generator.CPUShare, generatorMax)+" of a core", percent(generatorMax),
		"the generator may be what was measured: give the load more cores")
}

func runDelay(_ *result.Record, l *result.Load) *result.Finding {
	if l.WindowNs <= 0 || l.Threads < 1 {
		return nil
	}
	share := float64(l.Generator.RunDelayNs) / float64(l.WindowNs) / float64(l.Threads)
	if share <= runDelayMax {
		return nil
	}
	return suspect(beside(share, runDelayMax)+" of the window", percent(runDelayMax),
		"something else ran on the load's cores")
}

func ceiling(_ *result.Record, l *result.Load) *result.Finding {
	if l.CeilingPerS <= 0 || l.ThroughputPerS <= ceilingMax*l.CeilingPerS {
		return nil
	}
	share := l.ThroughputPerS / l.CeilingPerS
	return suspect(beside(share, ceilingMax)+" of the null server's", percent(ceilingMax),
		"the service may be faster than this: give the load more cores")
}

// little holds the requests under way against the time that requests took, over the window. Two
// kinds took a time that the record only bounds, so the law gives a range: failed ones, whose time
// is from when they were due and may hold a wait for a connection, and censored ones, each of which
// holds a connection for the whole window at most. Timeouts have their service time like good
// answers.
func little(_ *result.Record, l *result.Load) *result.Finding {
	requests := l.ServiceTime.Count + l.ErrorTime.Count
	if requests < littleAnswers || l.WindowNs <= 0 || l.InFlightMean <= 0 {
		return nil
	}
	wrong := float64(max(l.ErrorTime.Count-l.Errors.Timeout, 0))
	least := l.ServiceTime.MeanNs * float64(l.ServiceTime.Count) / float64(l.WindowNs)
	most := least + l.ErrorTime.MeanNs*wrong/float64(l.WindowNs) +
		float64(min(max(l.Censored, 0), int64(l.Connections)))
	want := min(max(l.InFlightMean, least), most)
	off := math.Abs(l.InFlightMean-want) / l.InFlightMean
	observed := fmt.Sprintf("%.2f under way, rate × time gives %.2f", l.InFlightMean, want)
	hint := "requests from before the window still wait: connections starve, or it is too short"
	switch {
	case off > littleWrong:
		return invalid(observed, percent(littleMax), hint)
	case off > littleMax:
		return suspect(observed, percent(littleMax), hint)
	}
	return nil
}

func order(_ *result.Record, l *result.Load) *result.Finding {
	for _, d := range []result.Dist{l.ResponseTime, l.ServiceTime, l.FirstByte, l.Lag, l.OwnLag,
		l.ErrorTime, l.ConnectTime} {
		v := []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs}
		if d.Count == 0 {
			continue
		}
		inside := d.MeanNs >= float64(d.MinNs) && d.MeanNs <= float64(d.MaxNs)
		if d.MinNs < 1 || !slices.IsSorted(v) || !inside {
			return invalid(fmt.Sprintf("%v ns, mean %.0f", v, d.MeanNs), "increasing",
				"this is a defect of Prony: please report it")
		}
	}
	return nil
}

func failures(_ *result.Record, l *result.Load) *result.Finding {
	n := l.Errors.Total()
	if n == 0 {
		return nil
	}
	observed := fmt.Sprintf("%d of %d went wrong", n, l.Answered+n)
	if l.Errors.Example != "" {
		observed += " (" + l.Errors.Example + ")"
	}
	if float64(n) > errorsMax*float64(l.Answered+n) {
		return invalid(observed, percent(errorsMax),
			"an error is not an answer; read the service's log")
	}
	return suspect(observed, "none", "read the service's log")
}

func censored(_ *result.Record, l *result.Load) *result.Finding {
	if l.Censored <= 0 || l.Scheduled == 0 {
		return nil
	}
	observed := fmt.Sprintf("%d of %d unanswered at the end", l.Censored, l.Scheduled)
	hint := "the tail is longer than it looks: raise drain, or lower the rate"
	if float64(l.Censored) > censoredMax*float64(l.Scheduled) {
		return invalid(observed, percent(censoredMax), hint)
	}
	return suspect(observed, "none", hint)
}

func reconnects(_ *result.Record, l *result.Load) *result.Finding {
	if l.Done == 0 || float64(l.Reconnects) <= reconnectsMax*float64(l.Done) {
		return nil
	}
	return suspect(fmt.Sprintf("%d for %d requests", l.Reconnects, l.Done), percent(reconnectsMax),
		"the service closes connections: this measures handshakes too")
}

func samples(_ *result.Record, l *result.Load) *result.Finding {
	if n := l.ResponseTime.Count; n < p99Needs {
		return suspect(fmt.Sprintf("%d answers", n), fmt.Sprint(p99Needs), "raise measure")
	}
	return nil
}

// drift allows for the counts' own randomness: the difference of two counts has a variance of at
// most their sum in a steady state, and three standard deviations are let pass. A shorter last
// interval is left out.
func drift(_ *result.Record, l *result.Load) *result.Finding {
	n := len(l.Series.Done)
	if l.Series.IntervalNs > 0 {
		n = min(n, int(l.WindowNs/l.Series.IntervalNs))
	}
	half := n / 2
	if l.Model != "closed" || half < driftHalf {
		return nil
	}
	var first, second float64
	for i := range half {
		first += float64(l.Series.Done[i])
		second += float64(l.Series.Done[n-half+i])
	}
	change := second - first
	if math.Abs(change) <= driftMax*first+driftSigmas*math.Sqrt(first+second) {
		return nil
	}
	observed := "no answer in the first half"
	switch {
	case first > 0 && change > 0:
		observed = "got faster by " + beside(change/first, driftMax)
	case first > 0:
		observed = "got slower by " + beside(-change/first, driftMax)
	}
	return suspect(observed, percent(driftMax),
		"not in a steady state: raise warmup.max and measure")
}

func steal(_ *result.Record, l *result.Load) *result.Finding {
	observed := beside(l.Host.StealShare, stealMax) + " stolen by the hypervisor"
	hint := "the machine's own host is busy: run again, or elsewhere"
	switch s := l.Host.StealShare; {
	case s > stealWrong:
		return invalid(observed, percent(stealMax), hint)
	case s > stealMax:
		return suspect(observed, percent(stealMax), hint)
	}
	return nil
}

func throttled(_ *result.Record, l *result.Load) *result.Finding {
	// The probe's window lies around the load's and is a little longer.
	share := float64(l.Service.ThrottledNs) / float64(max(l.Service.WindowNs, l.WindowNs, 1))
	if share <= throttledMax {
		return nil
	}
	return suspect(beside(share, throttledMax)+" of the window", percent(throttledMax),
		"its quota cut the service off: give it whole cores")
}

func neighbours(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.OtherCPUShare <= othersMax {
		return nil
	}
	return suspect(beside(l.Host.OtherCPUShare, othersMax)+" of the machine", percent(othersMax),
		"end what else is running")
}

func memory(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.PressureMemory <= memoryMax {
		return nil
	}
	return suspect(beside(l.Host.PressureMemory, memoryMax)+" of the window", percent(memoryMax),
		"memory is short: raise limits.memory, or free some")
}
