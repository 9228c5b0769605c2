package trial

import (
	"prony/internal/result"
	"prony/internal/stats"
)

// warmRule is when a warm-up has done its work: its rate keeps one level for a second and a half,
// where levels within 3 % are one. A pause between two stages of a compiler is shorter than that
// tail on the machines that were tried; what is not, the window shows (the verdict's rule drift).
var warmRule = stats.SteadyRule{Tail: 12, Same: 0.03}

// rates turns a cumulative count per interval into requests a second.
func rates(cumulative []int64) []float64 {
	var out []float64
	var before int64
	for _, n := range cumulative {
		out = append(out, float64(n-before)/warmInterval.Seconds())
		before = n
	}
	return out
}

// settle says of a trial that was measured what its warm-up and its first closed window, one series
// in one state of the service, say of its steady state together. The warm-up alone decides when
// it ends; the window then shows whether it was right.
func settle(rec *result.Record) {
	w := &rec.Warmup
	series, step, scale, origin := []float64(w.RatePerS), w.IntervalNs, 1, int64(0)
	if l := continued(rec); l != nil && l.Series.IntervalNs%w.IntervalNs == 0 {
		scale = int(l.Series.IntervalNs / w.IntervalNs)
		step = l.Series.IntervalNs
		origin = int64(len(series)%scale) * w.IntervalNs
		series = append(merged(series, scale), windowRates(l)...)
	}
	rule := stats.SteadyRule{Tail: max(warmRule.Tail/scale, 3), Same: warmRule.Same}
	s := stats.SteadyState(series, rule)
	w.Kind, w.Levels = s.Kind, nil
	for _, level := range s.Levels {
		w.Levels = append(w.Levels, result.Level{
			FromNs: origin + int64(level.From)*step, ToNs: origin + int64(level.To)*step,
			MeanPerS: level.Mean,
		})
	}
	if s.At >= 0 {
		w.PeakAtNs, w.CostNs = origin+int64(s.PeakAt)*step, int64(s.Lost*float64(step))
	}
}

// continued is the first load, where it goes on as the warm-up did.
func continued(rec *result.Record) *result.Load {
	if len(rec.Loads) == 0 {
		return nil
	}
	l := &rec.Loads[0]
	plain := l.Model == closedModel && l.Users == "" && l.Driver == "" && l.Churn == 0 &&
		l.Connections == rec.Warmup.Connections && l.Slow.Clients == 0
	if !plain || l.Series.IntervalNs == 0 {
		return nil
	}
	return l
}

const closedModel = "closed"

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
