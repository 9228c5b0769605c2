package verdict

import (
	"fmt"
	"strings"
	"time"

	"prony/internal/result"
)

const (
	lagFloor     = 50 * time.Microsecond // p99
	lagShare     = 0.05                  // of the response time's p99
	generatorMax = 0.80                  // of a core
	runDelayMax  = 0.05                  // of the window
	ceilingMax   = 0.70                  // of the generator's rate against a null server
	batchMax     = 32                    // answers
	batchShare   = 0.01                  // of all answers
)

// lagLimit is how late a load may leave: what neither a person nor p99 would notice.
func lagLimit(l *result.Load) time.Duration {
	return max(lagFloor, time.Duration(lagShare*float64(l.ResponseTime.P99Ns)))
}

func late(p99Ns int64, l *result.Load) *result.Finding {
	limit := lagLimit(l)
	if time.Duration(p99Ns) <= limit {
		return nil
	}
	return suspect(fmt.Sprintf("p99 %v", time.Duration(p99Ns).Round(time.Microsecond)),
		limit.Round(time.Microsecond).String(), "")
}

// lag is about every load that has moments to send at: the arrivals of an open one, and the ends of
// users' pauses.
func lag(_ *result.Record, l *result.Load) *result.Finding {
	f := late(l.OwnLag.P99Ns, l)
	if f != nil {
		f.Hint = "the generator's core was not its own, or is slow to wake: quiet the machine"
	}
	return f
}

// timer tells a timer that is coarse from a core that was disturbed. Lag is what counts: a machine
// that sleeps deeply when nothing runs wakes late before the load, and need not during it.
func timer(r *result.Record, l *result.Load) *result.Finding {
	if lag(r, l) == nil {
		return nil
	}
	f := late(l.Generator.Wakeup.P99Ns, l)
	if f != nil {
		f.Hint = "its timer was as late before the load: use --pacing precise, or another machine"
	}
	return f
}

// generator leaves out the time that a thread polls because nothing is due yet: it would have been
// free to work.
func generator(_ *result.Record, l *result.Load) *result.Finding {
	busy := l.Generator.CPUShare
	if l.WindowNs > 0 {
		busy -= float64(l.Generator.SpinNs) / float64(l.WindowNs) / float64(max(l.Threads, 1))
	}
	if busy <= generatorMax {
		return nil
	}
	return suspect(beside(busy, generatorMax)+" of a core", percent(generatorMax),
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

// batch looks for answers that lay in their sockets while the thread took others: the time of each
// is read when its turn comes. Turns in which nothing came make the average small, so that one
// large batch counts too, where it is enough to move p99.
func batch(_ *result.Record, l *result.Load) *result.Finding {
	g := &l.Generator
	if l.Model != result.Open || g.Turns == 0 {
		return nil
	}
	mean := float64(l.Done) / float64(g.Turns)
	hint := "answers wait in line and look slower than they are: give the load more cores"
	if mean > batchMax {
		return suspect(apart(mean, batchMax, 1)+" answers a turn",
			fmt.Sprintf("%.1f", float64(batchMax)), hint)
	}
	if g.BatchMax > batchMax && float64(g.BatchMax) > batchShare*float64(l.Done) {
		return suspect(fmt.Sprintf("a turn took %d of %d answers", g.BatchMax, l.Done),
			fmt.Sprint(batchMax), hint)
	}
	return nil
}

// foreign caps what was measured by a tool that does not say how late it sends: a pause of the
// service, or of the tool, may have hidden requests from it (coordinated omission), and nothing in
// its output would tell. In the closed model there is nothing to be late for, and throughput is a
// plain count. Where there is a histogram of wrk's, its invented samples have been taken out.
func foreign(_ *result.Record, l *result.Load) *result.Finding {
	if l.Driver == "" || !timed(&l.ResponseTime) && !timed(&l.ServiceTime) {
		return nil
	}
	hint := ": for latency use Prony's own generator"
	if strings.HasPrefix(l.Driver, "wrk ") && l.ServiceTime.HDR == "" {
		return suspect(l.Driver+" adds invented samples to its percentiles", "measured ones only",
			"it takes the mean latency for the time between requests"+hint)
	}
	if l.Model != result.Open || l.OwnLag.Count > 0 {
		return nil
	}
	why := "its own lateness is in its times"
	if !timed(&l.ResponseTime) {
		why = "its clock starts when a request leaves: what waited before that is in no time"
	}
	return suspect(l.Driver+" does not say how late it sends", "lag is measured", why+hint)
}

// timed tells whether there is anything in a distribution; tools print percentiles of they do not
// say how many.
func timed(d *result.Dist) bool { return d.Count > 0 || d.P99Ns > 0 }
