package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"prony/internal/result"
)

// Limits of the rules. Changing one changes what Prony calls valid, so it belongs in the changelog's
// first section.
const (
	deliveredMin  = 0.99                  // of the arrivals due
	backlogMax    = 0.01                  // of the rate
	backlogNoise  = 5                     // arrivals: the randomness of arrivals alone grows that much
	lagFloor      = 50 * time.Microsecond // p99
	lagShare      = 0.05                  // of the response time's p99
	generatorMax  = 0.80                  // of a core
	runDelayMax   = 0.02                  // of the window
	ceilingMax    = 0.70                  // of the generator's rate against a null server
	littleMax     = 0.05                  // suspect above
	littleWrong   = 0.20                  // invalid above
	littleAnswers = 100                   // fewer say nothing about a mean
	errorsMax     = 0.001                 // of the requests; invalid above
	censoredMax   = 0.01                  // likewise
	reconnectsMax = 0.01                  // of the requests
	p99Needs      = 381                   // samples
	driftMax      = 0.05                  // between the halves of a window
	stealMax      = 0.01                  // suspect above
	stealWrong    = 0.10                  // invalid above
	throttledMax  = 0.01                  // of the window
	othersMax     = 0.05                  // of the machine
	memoryMax     = 0.01                  // of the window
)

func warmup(r *result.Record, _ *result.Load) *result.Finding {
	if r.Warmup.Steady {
		return nil
	}
	took := time.Duration(r.Warmup.DurationNs).Round(100 * time.Millisecond)
	return suspect(fmt.Sprintf("not steady after %v", took), "steady", "raise warmup.max")
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
	return invalid("no good answer", "at least 1", "see the errors: "+l.Errors.Example)
}

func delivered(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != "open" || l.Scheduled == 0 {
		return nil
	}
	share := float64(l.Sent) / float64(l.Scheduled)
	if share >= deliveredMin {
		return nil
	}
	hint := "the generator was late: give it a quieter core"
	if float64(l.Waited) > float64(l.Scheduled)*(1-deliveredMin) {
		hint = "all connections were busy: the service cannot keep up; lower the rate"
	}
	return invalid(percent(share)+" sent", percent(deliveredMin), hint)
}

func capacity(_ *result.Record, l *result.Load) *result.Finding {
	if l.Model != "open" || l.WindowNs <= 0 {
		return nil
	}
	limit := max(backlogMax*l.RatePerS, backlogNoise/(float64(l.WindowNs)/1e9))
	if l.BacklogPerS <= limit {
		return nil
	}
	return invalid(fmt.Sprintf("backlog grows by %.0f/s", l.BacklogPerS), fmt.Sprintf("%.0f/s", limit),
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
		limit.Round(time.Microsecond).String(), "something else ran on the generator's core")
}

func generator(_ *result.Record, l *result.Load) *result.Finding {
	if l.Generator.CPUShare <= generatorMax {
		return nil
	}
	return suspect(percent(l.Generator.CPUShare)+" of a core", percent(generatorMax),
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
	return suspect(percent(share)+" of the window", percent(runDelayMax),
		"something else ran on the load's cores")
}

func ceiling(_ *result.Record, l *result.Load) *result.Finding {
	if l.CeilingPerS <= 0 || l.ThroughputPerS <= ceilingMax*l.CeilingPerS {
		return nil
	}
	return suspect(percent(l.ThroughputPerS/l.CeilingPerS)+" of the null server's",
		percent(ceilingMax), "the service may be faster than this: give the load more cores")
}

func little(_ *result.Record, l *result.Load) *result.Finding {
	requests := l.ServiceTime.Count + l.ErrorTime.Count
	if requests < littleAnswers || l.WindowNs <= 0 || l.InFlightMean <= 0 {
		return nil
	}
	// Timeouts stand in both histograms; the errors' share of them is left out.
	failed := float64(l.ErrorTime.Count - l.Errors.Timeout)
	spent := l.ServiceTime.MeanNs*float64(l.ServiceTime.Count) + l.ErrorTime.MeanNs*max(failed, 0)
	want := spent / float64(l.WindowNs)
	off := math.Abs(l.InFlightMean-want) / l.InFlightMean
	observed := fmt.Sprintf("%.2f under way, rate × time gives %.2f", l.InFlightMean, want)
	hint := "the window is short against the answers, or requests are lost in the books"
	switch {
	case off > littleWrong:
		return invalid(observed, percent(littleMax), hint)
	case off > littleMax:
		return suspect(observed, percent(littleMax), hint)
	}
	return nil
}

func order(_ *result.Record, l *result.Load) *result.Finding {
	for _, d := range []result.Dist{l.ResponseTime, l.ServiceTime, l.FirstByte} {
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
	observed := fmt.Sprintf("%d of %d went wrong (%s)", n, l.Answered+n, l.Errors.Example)
	if float64(n) > errorsMax*float64(l.Answered+n) {
		return invalid(observed, percent(errorsMax), "an error is not an answer; read the service's log")
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

// drift allows for the counts' own randomness: two halves of n each have a ratio whose standard
// deviation is sqrt(2/n) even in a steady state, and three of those are let pass.
func drift(_ *result.Record, l *result.Load) *result.Finding {
	n := len(l.Series.Done) / 2
	if l.Model != "closed" || n < 4 {
		return nil
	}
	var first, second float64
	for i := range n {
		first += float64(l.Series.Done[i])
		second += float64(l.Series.Done[len(l.Series.Done)-n+i])
	}
	if first == 0 {
		return nil
	}
	change := second/first - 1
	if math.Abs(change) <= driftMax+3*math.Sqrt(2/first) {
		return nil
	}
	way := "faster"
	if change < 0 {
		way = "slower"
	}
	return suspect(fmt.Sprintf("got %s by %s", way, percent(math.Abs(change))), percent(driftMax),
		"not in a steady state: raise warmup.max and measure")
}

func steal(_ *result.Record, l *result.Load) *result.Finding {
	observed := percent(l.Host.StealShare) + " stolen by the hypervisor"
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
	share := float64(l.Service.ThrottledNs) / float64(max(l.WindowNs, 1))
	if share <= throttledMax {
		return nil
	}
	return suspect(percent(share)+" of the window", percent(throttledMax),
		"its quota cut the service off: give it whole cores")
}

func neighbours(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.OtherCPUShare <= othersMax {
		return nil
	}
	return suspect(percent(l.Host.OtherCPUShare)+" of the machine", percent(othersMax),
		"end what else is running")
}

func memory(_ *result.Record, l *result.Load) *result.Finding {
	if l.Host.PressureMemory <= memoryMax {
		return nil
	}
	return suspect(percent(l.Host.PressureMemory)+" of the window", percent(memoryMax),
		"memory is short: raise limits.memory, or free some")
}
