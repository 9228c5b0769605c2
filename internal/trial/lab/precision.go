package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// confidenceOfPlans is the confidence level of the intervals for which starts are planned.
const confidenceOfPlans = 0.95

// plan chooses the number of starts of a series by its first ones: the comparison that needs the
// most decides. Limits are the maximum number of starts and the run's time, by the time of past
// starts.
func (f *further) plan(done, first []*record.Record, id series) int {
	name := f.precision.Metric
	need := f.needed(first, name)
	if need == 0 && name == metric.CPU { // CPU time is unknown for a service on another machine
		name = metric.Throughput
		need = f.needed(first, name)
	}
	planned := max(f.first, min(need, f.most, f.inTime(done, first)))
	if f.reported[id] {
		return planned
	}
	f.reported[id] = true
	aim := fmt.Sprintf("± %s of %s", units.Percent(float64(f.precision.Half)),
		metric.Named(name, "").Label)
	starts := fmt.Sprintf("planned %d starts in total, %d more", planned, planned-f.first)
	switch {
	case need == 0:
		f.report("no further starts are planned: no comparison has an interval")
	case need <= f.first:
		f.report(fmt.Sprintf("the first %d starts are enough for %s", f.first, aim))
	case planned < need && need == stats.Unresolvable:
		f.report(fmt.Sprintf("%s, which is the maximum for this run: %s cannot be "+
			"reached", starts, aim))
	case planned < need:
		f.report(fmt.Sprintf("%s, which is the maximum for this run: %s would take %d "+
			"starts", starts, aim,
			need))
	default:
		f.report(fmt.Sprintf("%s: according to the scatter of the first %d starts, this is "+
			"needed for %s", starts,
			f.first, aim))
	}
	return planned
}

// needed returns how many starts the most demanding comparison needs; 0: no comparison is possible.
func (f *further) needed(first []*record.Record, name string) (need int) {
	starts := map[int][]*record.Record{}
	for _, r := range first {
		if r.Outcome == record.Measured {
			starts[r.Block] = append(starts[r.Block], r)
		}
	}
	value := func(x *record.Sliced) float64 { return valueOf(x, name) }
	values := map[string]map[int]float64{} // by row and block
	for _, r := range first {
		row := table.RowName(r.Target)
		if v := overInstances(starts[r.Block], row, value); v > 0 && r.Target.ControlOf == "" {
			if values[row] == nil {
				values[row] = map[int]float64{}
			}
			values[row][r.Block] = v
		}
	}
	rows := slices.Sorted(maps.Keys(values))
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			if values[f.baseline] != nil && a != f.baseline && b != f.baseline {
				continue
			}
			bases, items, _ := stats.Align(stats.Item{Values: values[a]},
				stats.Item{Values: values[b]})
			var pair []stats.StartRatio
			for k := range bases {
				pair = append(pair, stats.StartRatio{LogRatio: math.Log(items[k] / bases[k])})
			}
			if len(pair) > 1 {
				need = max(need, stats.StagesNeed(pair, float64(f.precision.Half),
					confidenceOfPlans))
			}
		}
	}
	return need
}

// valueOf returns a target's metric in slices; 0: unknown.
func valueOf(x *record.Sliced, name string) float64 {
	i := slices.IndexFunc(liveMetrics, func(m liveMetric) bool { return m.name == name })
	if i < 0 {
		return 0
	}
	return liveMetrics[i].value(x)
}

// inTime returns how many starts of a series end in time, if they take as long as its first ones.
// It divides the remaining time among the series that have no plan yet.
func (f *further) inTime(done, first []*record.Record) int {
	if f.precision.Within == 0 {
		return f.most
	}
	spent, perStart := int64(0), int64(0)
	open := map[series]bool{}
	for _, t := range f.reserve {
		open[series{t.Scenario, t.Group}] = true
	}
	for _, r := range done {
		if spent += r.DurationNs; r.SideBySide != nil && r.SideBySide.Stage == 2 {
			delete(open, series{r.Scenario, r.SideBySide.Group})
		}
	}
	for _, r := range first {
		perStart += r.DurationNs
	}
	starts := blocksOf(first, func(*record.SideBySide) bool { return true })
	if perStart /= int64(max(starts, 1)); perStart == 0 {
		return f.most
	}
	remaining := (int64(f.precision.Within) - spent) / int64(max(len(open), 1))
	return f.first + int(max(remaining, 0)/perStart)
}
