package table

import (
	"iter"
	"maps"

	"prony/internal/stats"
)

// quantity is a metric under a load, of whatever target.
type quantity struct{ load, name string }

// shareNoise lets the targets lend each other precision: levels get the intervals that all trials
// of a scenario give together (stats.Blocks). It returns the fits, for ratios.
func (sc *Scenario) shareNoise(confidence float64) map[quantity]*stats.Blocks {
	items := map[quantity][]stats.Item{}
	for t, m := range sc.Metrics() {
		if m.Withheld == "" {
			key := quantity{m.Load, m.Name}
			items[key] = append(items[key], stats.Item{Name: t.Name, Values: ByBlock(m.Points)})
		}
	}
	fits := make(map[quantity]*stats.Blocks, len(items))
	for key, of := range items {
		fits[key] = stats.NewBlocks(of, confidence)
	}
	for t, m := range sc.Metrics() {
		values := ByBlock(m.Points)
		// A target that was measured twice in a block, as in duets, speaks for itself.
		if m.Withheld == "" && m.Summary.Assumption != Exact && len(values) == len(m.Points) {
			item := stats.Item{Name: t.Name, Values: values}
			m.Summary = fits[quantity{m.Load, m.Name}].Level(item)
		}
	}
	for _, l := range sc.Loads {
		sc.shareCurves(l.Name, confidence)
	}
	return fits
}

// Metrics are those of all targets.
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

// shareCurves does the same for all quantiles of a load, so that curves and table agree.
func (sc *Scenario) shareCurves(load string, confidence float64) {
	curves := map[string]*Curve{}
	longest := 0
	for _, t := range sc.Targets {
		for k := range t.Curves {
			if c := &t.Curves[k]; c.Load == load && c.once {
				curves[t.Name] = c
				longest = max(longest, len(c.at))
			}
		}
	}
	for q := range longest {
		var items []stats.Item
		for name, c := range curves {
			if q < len(c.at) {
				items = append(items, stats.Item{Name: name, Values: c.at[q]})
			}
		}
		fit := stats.NewBlocks(items, confidence)
		for _, item := range items {
			s := fit.Level(item)
			curves[item.Name].Lo[q], curves[item.Name].Hi[q] = s.Lo, s.Hi
		}
	}
}

// positives is a metric's values by block as ratios want them.
func positives(name string, m Metric) stats.Item {
	values := ByBlock(m.Points)
	maps.DeleteFunc(values, func(_ int, v float64) bool { return !(v > 0) })
	return stats.Item{Name: name, Values: values}
}
