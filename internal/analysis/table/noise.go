package table

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Floor is the noise in one metric from a target against itself (A/A): every difference between the
// two arms is random, and any two targets may differ as much at random.
type Floor struct {
	Target, Load, Metric, Unit string
	Ratio                      stats.Ratio // arm b over arm a, paired within blocks
	// Detects is the smallest relative difference that the same number of blocks detects in four of
	// five runs, at this confidence; NaN if it is not known.
	Detects float64
}

// The noise of a pair grows with its distance in time. A/A arms lie as far apart as any two targets
// of the same shuffled block, so their noise is that of any pair.

// floors returns the noise of the main metrics of a table: the ranking metric, response times of
// open loads, and cost.
func (sc *Scenario) floors(o Options) []Floor {
	var out []Floor
	for _, t := range sc.Targets {
		if t.Info.Arm != "b" || t.Reference == "" {
			continue
		}
		for _, m := range t.Metrics {
			if m.Ratio == nil || !sc.headline(m) {
				continue
			}
			out = append(out, Floor{
				Target: t.Info.Name, Load: m.Load, Metric: m.Name, Unit: m.Unit, Ratio: *m.Ratio,
				Detects: m.Ratio.Detects(1-o.Confidence, planPower),
			})
		}
	}
	return out
}

func (sc *Scenario) headline(m Metric) bool {
	if m.Load == sc.Ranking.Load && (m.Name == sc.Ranking.Metric || m.Name == metric.CPU) {
		return true
	}
	return m.Model == record.Open && (m.Name == "p50" || m.Name == "p99")
}

// floorTable returns the table of floors, a row each.
func (sc *Scenario) floorTable(o Options) Table {
	column, repeats := columnOf("floor"), sc.Starts.Repeat()+"s"
	needed := column("needed", repeats, units.One, RoleBlocks)
	needed.Effect = o.Effect
	t := Table{Kind: FloorKind, Columns: []Column{
		column("target", "", "", RoleName), column("metric", "metric", "", RoleWord),
		column("ratio", "", units.One, RoleArms),
		column("blocks", repeats, units.One, RoleNumber),
		column("sd", "SD of a pair", units.One, RoleNumber),
		column("detects", "resolves", units.One, RoleNumber),
		needed,
	}}
	var notes noteBook
	for _, f := range sc.Floors {
		r := f.Ratio
		needed := r.Resolves(o.Effect, 1-o.Confidence, planPower)
		ratio := Cell{State: Known, Value: r.Center, N: r.N, form: ratioForm(3),
			Interval: RatioInterval(r)}
		switch ratio.Interval.State {
		case Absent:
			ratio.State, ratio.Refs = Withheld, notes.refs(noInterval(r.N, r.Warning))
		case Unknown:
			ratio.State, ratio.Refs = Unknown, notes.refs(NoteOf(NoteIntervalWide))
		}
		detects := valued(f.Detects, units.Percent)
		detects.State = resolutionState(f.Detects)
		if detects.State == Unknown {
			detects.Refs = notes.refs(NoteOf(NoteDifferenceWide))
		}
		if r.HasInterval() && (r.Lo > 1 || r.Hi < 1) {
			alarm := NoteOf(NoteFalseAlarm, Odds(1/(1-o.Confidence)))
			ratio.Refs = append(ratio.Refs, notes.refs(alarm)...)
		}
		row := Row{Name: f.Target, Cells: []Cell{
			named(f.Target), named(metricWords(f)), ratio, valued(float64(r.N), units.Whole),
			valued(r.SDLog, units.Percent), detects, valued(float64(needed), neededText),
		}}
		t.Rows = append(t.Rows, row)
	}
	t.Footnotes = notes
	t.Notes = []Note{NoteOf(NoteResolves, sc.Starts.Repeat(), Percent(planPower),
		Confidence(o.Confidence))}
	return t
}

func metricWords(f Floor) string {
	return f.Load + " " + shortName(f.Metric, f.Unit)
}

func neededText(n float64) string {
	if n > planBlocks {
		return fmt.Sprintf("over %d", planBlocks)
	}
	return units.Whole(n)
}

// leastIntervals is the minimum number of intervals of a trial's series from which its own noise is
// estimated: with fewer, the correlation of neighbors is a guess.
const leastIntervals = 8

// splitNoise computes for every target which share of the noise in the ranking throughput is
// between trials and which share a trial's own intervals explain. More trials reduce both parts,
// longer trials only the part within (Kalibera and Jones, ISMM 2013: repeat at the level with the
// variance).
func (sc *Scenario) splitNoise() {
	for _, t := range sc.Targets {
		t.Variance = stats.Components(nil) // unknown
		m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		if !ok || !m.Known() || m.Name != metric.Throughput {
			continue // an open load's throughput is the offered rate: it ranks by response time
		}
		var trials [][]float64
		for _, p := range m.Points {
			trials = append(trials, answersPerInterval(loadOf(t.trial(p), m.Load)))
		}
		if enough(trials) {
			t.Variance = stats.Components(trials)
		}
	}
}

// answersPerInterval returns the responses of each interval without a shorter last one.
func answersPerInterval(l *record.Load) []float64 {
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

// enough reports whether both parts of the noise can be estimated: a variance needs two trials, and
// an interval without a response is a stall, not noise about a mean.
func enough(trials [][]float64) bool {
	return len(trials) > 1 && !slices.ContainsFunc(trials, func(xs []float64) bool {
		return len(xs) < leastIntervals || slices.Min(xs) <= 0
	})
}

// noiseNote names the source of the ranking metric's noise for the median target, and what to do.
func (sc *Scenario) noiseNote() []Note {
	var shares []float64
	if sc.Ranking.Source == FromSlices {
		return nil // tiers do not depend on the noise between windows
	}
	for _, t := range sc.Targets {
		if v := t.Variance.Share; !math.IsNaN(v) && len(t.Used) > 0 {
			shares = append(shares, v)
		}
	}
	if len(shares) == 0 {
		return nil
	}
	share := stats.Median(shares)
	return []Note{NoteOf(NoteNoiseBetween, sc.Ranking.Load, Percent(share), Advice(share))}
}

// A ratio that varies between starts or blocks by more than highScatter (SD of its logarithms) has
// a cause that is worth finding. An SD of fewer than leastScattered values is too uncertain to
// warn.
const (
	highScatter    = 0.1
	leastScattered = 3
)

// scatterNote names the targets whose ratios in the ranking metric vary by more than highScatter.
func (sc *Scenario) scatterNote() []Note {
	load, name, unit := sc.Ranking.Load, sc.Ranking.Metric, ""
	var high Names
	for _, t := range sc.Targets {
		m, ok := t.Metric(load, name)
		if ok && m.Ratio != nil && m.Ratio.N >= leastScattered && m.Ratio.SDLog > highScatter {
			high, unit = append(high, t.Name), m.Unit
		}
	}
	if len(high) == 0 {
		return nil
	}
	return []Note{NoteOf(NoteHighScatter, LoadOf(load), shortName(name, unit),
		sc.Starts.Repeat(), high)}
}

// quantity names a metric under a load, for any target.
type quantity struct{ load, name string }

// shareNoise estimates the noise from all targets together: levels get the intervals that all
// trials of a scenario give together (stats.Blocks). It returns the fits, for ratios.
func (sc *Scenario) shareNoise(confidence float64) map[quantity]*stats.Blocks {
	items := map[quantity][]stats.Item{}
	for t, m := range sc.Metrics() {
		if m.Known() {
			key := quantity{m.Load, m.Name}
			items[key] = append(items[key], stats.Item{Name: t.Name, Values: ByBlock(m.Points)})
		}
	}
	fits := make(map[quantity]*stats.Blocks, len(items))
	for key, item := range items {
		fits[key] = stats.NewBlocks(item, confidence)
	}
	for t, m := range sc.Metrics() {
		values := ByBlock(m.Points)
		// A target that was measured twice in a block keeps its own summary.
		if m.Known() && m.Summary.Assumption != Exact && len(values) == len(m.Points) {
			item := stats.Item{Name: t.Name, Values: values}
			m.Summary = fits[quantity{m.Load, m.Name}].Level(item)
		}
	}
	for _, l := range sc.Loads {
		sc.shareCurves(l.Name, confidence)
	}
	return fits
}

// Metrics iterates over the metrics of all targets.
func (sc *Scenario) Metrics() iter.Seq2[*Target, *Metric] {
	return func(yield func(*Target, *Metric) bool) {
		for _, t := range sc.Targets {
			for k := range t.Metrics {
				if !yield(t, &t.Metrics[k]) {
					return
				}
			}
		}
	}
}

// shareCurves does the same as shareNoise for all quantiles of a load, so that curves and table
// agree.
func (sc *Scenario) shareCurves(load string, confidence float64) {
	curves := map[string]*Curve{}
	longest := 0
	for _, t := range sc.Targets {
		if c := t.Curve(load); c.once {
			curves[t.Name] = c
			longest = max(longest, len(c.byBlock))
		}
	}
	for q := range longest {
		var items []stats.Item
		for name, c := range curves {
			if q < len(c.byBlock) {
				items = append(items, stats.Item{Name: name, Values: c.byBlock[q]})
			}
		}
		fit := stats.NewBlocks(items, confidence)
		for _, item := range items {
			s := fit.Level(item)
			curves[item.Name].Lo[q], curves[item.Name].Hi[q] = s.Lo, s.Hi
		}
	}
}

// positives returns a metric's positive values by block, as ratios need them.
func positives(name string, m Metric) stats.Item {
	values := ByBlock(m.Points)
	maps.DeleteFunc(values, func(_ int, v float64) bool { return !(v > 0) })
	return stats.Item{Name: name, Values: values}
}
