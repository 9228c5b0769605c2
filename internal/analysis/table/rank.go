package table

import (
	"cmp"
	"math"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// rank puts the targets in tiers by the first closed load's throughput, or, in a run without one,
// by the first search's capacity, or else by the first open load's p99 (p50 if p99 is withheld from
// some target), and sorts the rows.
func (sc *Scenario) rank(o Options) {
	load, metric := sc.rankingMetric()
	sc.Ranking = Ranking{Load: load, Metric: metric}
	var items []stats.Item
	sc.Ranking.Source = sc.rankingSource()
	for _, t := range sc.Targets {
		if m, ok := t.Metric(load, metric); ok && sc.Ranking.ranks(&m, t.Name, sc.Starts) {
			items = append(items, stats.Item{Name: t.Name, Values: goodness(m, sc.Ranking.Source)})
		}
	}
	if sc.Ranking.Source == FromSlices {
		sc.levelGroups(items)
	}
	if len(items) > 1 || len(items) > 0 && sc.Ranking.Source != FromSlices {
		alpha := 1 - o.Confidence
		if sc.Ranking.Source == FromSlices {
			ratio := func(a, b stats.Item) stats.Ratio {
				return sc.SlicedRatio(sc.Target(a.Name), sc.Target(b.Name), load, metric,
					o.Confidence)
			}
			sc.Typical = typical(stats.CompareBy(items, alpha, ratio))
			sc.Ranking.Tiers = stats.TiersBy(items, alpha, ratio)
		} else {
			sc.Typical = typical(stats.Compare(items, alpha))
			sc.Ranking.Tiers = stats.Tiers(items, alpha)
		}
	}
	for k, names := range sc.Ranking.Tiers {
		for _, name := range names {
			sc.Target(name).Tier = k + 1
		}
	}
	slices.SortStableFunc(sc.Targets, func(a, b *Target) int {
		return cmp.Or(
			cmp.Compare(tierOrLast(a), tierOrLast(b)),
			cmp.Compare(sc.center(b), sc.center(a)),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

func tierOrLast(t *Target) int {
	if t.Tier == 0 {
		return math.MaxInt
	}
	return t.Tier
}

// center returns the ranking metric's center so that larger is better; -1 without one.
func (sc *Scenario) center(t *Target) float64 {
	m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
	if !ok || !m.Known() {
		return -1
	}
	if m.Unit == units.Ns {
		return 1 / m.Summary.Center
	}
	return m.Summary.Center
}

func (sc *Scenario) rankingMetric() (load, name string) {
	l := sc.anchor()
	switch {
	case l.Model == record.Closed || l.Name == "":
		return l.Name, metric.Throughput
	case l.Model == record.Capacity:
		return l.Name, metric.Capacity
	}
	for _, t := range sc.Targets {
		// A target that lost the load has no points, and would have no p50 either.
		m, ok := t.Metric(l.Name, "p99")
		if ok && !m.Known() && len(m.Points) > 0 {
			return l.Name, "p50"
		}
	}
	return l.Name, "p99"
}

// anchor returns the load that ranks, whose cost the table shows and on which the metrics of the
// whole trial depend: the first closed load, else the first search, else the first load; an empty
// LoadInfo without loads.
func (sc *Scenario) anchor() LoadInfo {
	for _, model := range []string{record.Closed, record.Capacity} {
		for _, l := range sc.Loads {
			if l.Model == model {
				return l
			}
		}
	}
	if len(sc.Loads) == 0 {
		return LoadInfo{}
	}
	return sc.Loads[0]
}

// goodness returns a metric's values by block so that larger is better: stats.Tiers ranks that way,
// and the paired ratio of reciprocals is the reciprocal of the paired ratio.
func goodness(m Metric, source Source) map[int]float64 {
	values := ByBlock(m.Points)
	if source == FromSlices {
		values = ByBlock(m.Sliced)
	}
	if m.Unit != units.Ns {
		return values
	}
	for block, v := range values {
		values[block] = 1 / v
	}
	return values
}

// typical returns the ratio of the pair of targets with the median variation across blocks, to
// compute the value of one more block.
func typical(pairs []stats.Comparison) stats.Ratio {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(c stats.Comparison) bool {
		return !c.Ratio.HasInterval()
	})
	if len(pairs) == 0 {
		return stats.Ratio{}
	}
	slices.SortStableFunc(pairs, func(a, b stats.Comparison) int {
		return cmp.Compare(a.Ratio.SDLog, b.Ratio.SDLog)
	})
	return pairs[(len(pairs)-1)/2].Ratio
}

// Repetitions returns in how many different blocks the used trials of a scenario are.
func (sc *Scenario) Repetitions() int {
	visited := map[int]bool{}
	for _, t := range sc.Targets {
		if m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric); ok {
			for block := range goodness(m, sc.Ranking.Source) {
				visited[block] = true
			}
		}
	}
	return len(visited)
}

// loadOf finds a record's load by name.
func loadOf(r *record.Record, name string) *record.Load {
	for i := range r.Loads {
		if r.Loads[i].Name == name {
			return &r.Loads[i]
		}
	}
	return nil
}

// Versus describes the references of a scenario's ratios.
type Versus struct {
	Kind VersusKind
	Name string // of the baseline, or of the other checkout
}

// VersusKind is the kind of row that a row's ratio refers to.
type VersusKind int

// Kinds of references.
const (
	VersusNone     VersusKind = iota // there are no ratios
	VersusBaseline                   // all refer to one row
	VersusArm                        // arm b to arm a of an A/A run
	VersusBare                       // a target with a variant to the same target without it
	VersusProcess                    // a target in a container to the same one as a plain process
	VersusOrigin                     // this checkout's target to the same one of another checkout
	VersusMixed                      // several of these
)

// versus finds the reference of every row: arm a for arm b of an A/A run, the same target without
// its variant, the same target of another checkout, else the baseline. It also sets their common
// name.
func (sc *Scenario) versus(o Options) {
	sc.Versus = Versus{}
	for _, t := range sc.Targets {
		for _, k := range twins {
			twin := firstOf(sc.Targets, func(x *Target) bool { return k.value(t.Info, x.Info) })
			if twin == nil {
				continue
			}
			t.Reference = twin.Name
			to := Versus{Kind: k.kind}
			if k.kind == VersusOrigin {
				to.Name = twin.Info.Origin
			}
			if sc.Versus.Kind != VersusNone && sc.Versus != to {
				to = Versus{Kind: VersusMixed}
			}
			sc.Versus = to
			break
		}
	}
	base := sc.Find(o.Baseline)
	if sc.Versus.Kind != VersusNone || base == nil || len(sc.Targets) < 2 {
		return
	}
	sc.Versus = Versus{VersusBaseline, base.Name}
	for _, t := range sc.Targets {
		if t != base {
			t.Reference = base.Name
		}
	}
}

// twins lists the ways in which two rows may be of the same target, the closest first: whether a's
// ratios refer to b.
var twins = []struct {
	kind  VersusKind
	value func(a, b record.Target) bool
}{
	{VersusArm, func(a, b record.Target) bool {
		arms := a.Arm == "b" && b.Arm == "a"
		b.Arm = a.Arm
		return arms && RowName(a) == RowName(b)
	}},
	{VersusBare, func(a, b record.Target) bool {
		plain := a.Variant != b.Variant && (b.Variant == "" || b.Variant == "none")
		b.Variant = a.Variant
		return plain && RowName(a) == RowName(b)
	}},
	{VersusProcess, func(a, b record.Target) bool {
		contained := a.Launcher != "" && b.Launcher == ""
		b.Launcher = a.Launcher
		return contained && RowName(a) == RowName(b)
	}},
	{VersusOrigin, func(a, b record.Target) bool {
		second := a.Origin == "" && b.Origin != ""
		a.Name += "@" + b.Origin
		return second && RowName(a) == RowName(b)
	}},
}

// ratioNote names the numerator and denominator of the ratios.
func (sc *Scenario) ratioNote() []Note {
	if sc.Versus.Kind == VersusNone {
		return nil
	}
	return []Note{NoteOf(NoteRatios, Over{sc.Versus, sc.Starts.Repeat()})}
}
