package table

import (
	"fmt"
	"math"
	"slices"

	"prony/internal/metric"
	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/unit"
)

// leastIntervals is how many intervals a trial's series must have for its own noise to be known: of
// fewer, how alike neighbours are is a guess.
const leastIntervals = 8

// splitNoise tells, of every target, how much of the noise of the throughput that ranks is between
// trials and how much a trial's own intervals explain. Where to spend an hour follows from it: more
// trials lessen both, longer ones only what is within (Kalibera and Jones, ISMM 2013: repeat at the
// level where the variance is).
func (sc *Scenario) splitNoise() {
	for _, t := range sc.Targets {
		t.Variance = stats.Components(nil) // unknown
		m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		if !ok || m.Withheld != "" || m.Name != metric.Throughput {
			continue // what an open load serves is what was offered: it ranks by response time
		}
		var trials [][]float64
		for _, p := range m.Points {
			at := slices.IndexFunc(t.Used, func(r *result.Record) bool {
				return r.Trial == p.Trial && t.blocks(r) == p.Block
			})
			trials = append(trials, answersPerInterval(loadOf(t.Used[at], m.Load)))
		}
		if enough(trials) {
			t.Variance = stats.Components(trials)
		}
	}
}

// answersPerInterval leaves a shorter last interval out.
func answersPerInterval(l *result.Load) []float64 {
	n := len(l.Series.Done)
	if l.Series.IntervalNs > 0 {
		n = min(n, int(l.WindowNs/l.Series.IntervalNs))
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(l.Series.Done[i])
	}
	return out
}

// enough tells whether the parts of the noise can be told apart: a variance needs two trials, and
// an interval without an answer is a stall, not noise about a mean.
func enough(trials [][]float64) bool {
	return len(trials) > 1 && !slices.ContainsFunc(trials, func(xs []float64) bool {
		return len(xs) < leastIntervals || slices.Min(xs) <= 0
	})
}

// Shares of the noise from which a longer window would hardly help, and up to which it would help
// as much as a further block: it divides what is within trials only.
const (
	mostlyBetween = 0.7
	mostlyWithin  = 0.3
)

// noiseNote says for the usual target where the noise of what ranks comes from, and what to do.
func (sc *Scenario) noiseNote() []string {
	var shares []float64
	for _, t := range sc.Targets {
		if v := t.Variance.Share; !math.IsNaN(v) && len(t.Used) > 0 {
			shares = append(shares, v)
		}
	}
	if len(shares) == 0 {
		return nil
	}
	share := stats.Median(shares)
	note := fmt.Sprintf("Of the noise in %s req/s, %s is between trials: ", sc.Ranking.Load,
		unit.Percent(share))
	switch {
	case share >= mostlyBetween:
		note += "longer windows would not help, more blocks would."
	case share > mostlyWithin:
		note += "more blocks would help most, longer windows somewhat."
	default:
		note += "longer windows would help as much as more blocks."
	}
	return []string{note}
}
