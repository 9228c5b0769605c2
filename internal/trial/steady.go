package trial

import (
	"prony/internal/driver"
	"prony/internal/probe"
	"prony/internal/result"
	"prony/internal/runtimes"
	"prony/internal/stats"
)

// compilers are what a runtime's compilers have done, at the end of each interval of a warm-up.
type compilers struct {
	seen []heard
	from int // of seen: the last one that is SilentFor old
	at   int64
}

type heard struct {
	probe.Roles
	ns int64
}

// hear says from when on they have been silent, as result.Warmup has it.
func (c *compilers) hear(r probe.Roles, ns int64) (silentAtNs int64) {
	if r.CompilerNs == 0 {
		return 0
	}
	c.seen = append(c.seen, heard{r, ns})
	for c.from+1 < len(c.seen) && ns-c.seen[c.from+1].ns >= int64(runtimes.SilentFor) {
		c.from++
	}
	a := c.seen[c.from]
	over := ns - a.ns
	if over < int64(runtimes.SilentFor) || !runtimes.Silent(r.CompilerNs-a.CompilerNs,
		r.CompilerWaitNs-a.CompilerWaitNs, over) {
		c.at = -1
	} else if c.at <= 0 {
		c.at = max(a.ns, 1) // 0 would say that nobody knows
	}
	return c.at
}

// settle says of a trial that was measured what its warm-up and its first closed window, one series
// in one state of the service, say of its steady state together: the warm-up alone decides when it
// ends, and the window shows whether it was right. A steady state must hold for at least half of
// the window. SteadyAtNs may then lie in the window, in time of load.
func settle(rec *result.Record) {
	w := &rec.Warmup
	series, step, scale, origin := []float64(w.RatePerS), w.IntervalNs, 1, w.NarrowedAtNs
	if origin > 0 { // what it did on other cores is no part of the series
		series = series[origin/step:]
	}
	rule := driver.WarmRule
	if l := continued(rec); l != nil && l.Series.IntervalNs%w.IntervalNs == 0 {
		scale = int(l.Series.IntervalNs / w.IntervalNs)
		step = l.Series.IntervalNs
		origin += int64(len(series)%scale) * w.IntervalNs
		window := windowRates(l)
		series = append(merged(series, scale), window...)
		rule.Tail = max(driver.WarmRule.Tail/scale, len(window)/2, leastTail)
	}
	s := stats.SteadyState(series, rule)
	w.Kind, w.Levels = s.Kind, nil
	for _, level := range s.Levels {
		w.Levels = append(w.Levels, result.Level{
			FromNs: origin + int64(level.From)*step, ToNs: origin + int64(level.To)*step,
			MeanPerS: level.Mean,
		})
	}
	w.SteadyAtNs, w.PeakAtNs, w.CostNs = 0, 0, 0
	if s.At > 0 || s.At == 0 && w.NarrowedAtNs > 0 {
		w.SteadyAtNs = origin + int64(s.At)*step
	}
	if s.At >= 0 && w.NarrowedAtNs == 0 {
		w.PeakAtNs, w.CostNs = origin+int64(s.PeakAt)*step, int64(s.Lost*float64(step))
	}
}

// leastTail is of values that make a level, however long each is.
const leastTail = 4

// continued is the first load, where it goes on as the warm-up did.
func continued(rec *result.Record) *result.Load {
	if len(rec.Loads) == 0 {
		return nil
	}
	l := &rec.Loads[0]
	plain := l.Model == result.Closed && l.Users == "" && l.Driver == "" && l.Churn == 0 &&
		l.Connections == rec.Warmup.Connections && l.Slow.Clients == 0
	if !plain || l.Series.IntervalNs == 0 {
		return nil
	}
	return l
}

// merged takes several intervals as one; what is left over at the beginning, where everything is
// warm-up in any case, is left out.
func merged(rates []float64, several int) []float64 {
	var out []float64
	for at := len(rates) % several; at < len(rates); at += several {
		sum := 0.0
		for _, r := range rates[at : at+several] {
			sum += r
		}
		out = append(out, sum/float64(several))
	}
	return out
}

// windowRates are the window's whole intervals.
func windowRates(l *result.Load) (out []float64) {
	whole := min(len(l.Series.Done), int(l.WindowNs/l.Series.IntervalNs))
	for _, n := range l.Series.Done[:whole] {
		out = append(out, float64(n)/(float64(l.Series.IntervalNs)/1e9))
	}
	return out
}
