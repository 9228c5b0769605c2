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
// by the first search's capacity, or, without that, by the first open load's p99 (p50 where p99 is
// withheld from some target), and sorts the rows.
func (sc *Scenario) rank(o Options) {
	load, metric := sc.rankingMetric()
	sc.Ranking = Ranking{Load: load, Metric: metric}
	var items []stats.Item
	for _, t := range sc.Targets {
		if m, ok := t.Metric(load, metric); ok && m.Withheld == "" {
			items = append(items, stats.Item{Name: t.Name, Values: goodness(m)})
		}
	}
	if len(items) > 0 {
		sc.Typical = typical(stats.Compare(items, 1-o.Confidence))
		sc.Ranking.Tiers = stats.Tiers(items, 1-o.Confidence)
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

// center is the ranking metric's centre, larger is better; -1 without one.
func (sc *Scenario) center(t *Target) float64 {
	m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
	if !ok || m.Withheld != "" {
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
		if ok && m.Withheld != "" && len(m.Points) > 0 {
			return l.Name, "p50"
		}
	}
	return l.Name, "p99"
}

// anchor is the load that ranks, whose cost the table shows, and with which the metrics of the
// whole trial stand and fall: the first closed one, else the first search, else the first; without
// fields when there is none.
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

// goodness is a metric's values by block, larger is better: stats.Tiers ranks that way, and the
// paired ratio of reciprocals is the reciprocal of the paired ratio.
func goodness(m Metric) map[int]float64 {
	values := ByBlock(m.Points)
	if m.Unit != units.Ns {
		return values
	}
	for block, v := range values {
		values[block] = 1 / v
	}
	return values
}

// typical is the pair of targets whose ratios vary as usual across blocks: what one more block is
// worth for telling a usual pair apart.
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

// blocksUsed is how many different blocks the used trials of a scenario lie in.
func (sc *Scenario) blocksUsed() int {
	seen := map[int]bool{}
	for _, t := range sc.Targets {
		if m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric); ok {
			for _, p := range m.Points {
				seen[p.Block] = true
			}
		}
	}
	return len(seen)
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

// versus finds for every row the one that its ratios refer to: arm a for arm b of an A/A run, the
// same target bare for one that something rides along with, the same of another checkout for ours,
// else the baseline. It says what to call them together.
func (sc *Scenario) versus(o Options) {
	sc.Versus = ""
	for _, t := range sc.Targets {
		for _, k := range twins {
			twin := firstOf(sc.Targets, func(x *Target) bool { return k.of(t.Info, x.Info) })
			if twin == nil {
				continue
			}
			t.Reference = twin.Name
			called := cmp.Or(k.called, twin.Info.Origin)
			if sc.Versus != "" && sc.Versus != called {
				called = mixedTwins
			}
			sc.Versus = called
			break
		}
	}
	base := sc.Find(o.Baseline)
	if sc.Versus != "" || base == nil || len(sc.Targets) < 2 {
		return
	}
	sc.Versus = base.Name
	for _, t := range sc.Targets {
		if t != base {
			t.Reference = base.Name
		}
	}
}

// mixedTwins is what references of several kinds are called together.
const mixedTwins = "its own"

// twins are the ways in which two rows may be of the same target, the closest first: whether b is
// the one that a refers to, and what to call it (empty: by its origin).
var twins = []struct {
	called string
	of     func(a, b record.Target) bool
}{
	{"itself", func(a, b record.Target) bool {
		arms := a.Arm == "b" && b.Arm == "a"
		b.Arm = a.Arm
		return arms && RowName(a) == RowName(b)
	}},
	{"bare", func(a, b record.Target) bool {
		bare := a.Variant != b.Variant && (b.Variant == "" || b.Variant == "none")
		b.Variant = a.Variant
		return bare && RowName(a) == RowName(b)
	}},
	{"process", func(a, b record.Target) bool {
		contained := a.Launcher != "" && b.Launcher == ""
		b.Launcher = a.Launcher
		return contained && RowName(a) == RowName(b)
	}},
	{"", func(a, b record.Target) bool {
		other := a.Origin == "" && b.Origin != ""
		a.Name += "@" + b.Origin
		return other && RowName(a) == RowName(b)
	}},
}

// ratioNote says what is over what.
func (sc *Scenario) ratioNote() []string {
	switch sc.Versus {
	case "":
		return nil
	case "itself":
		return []string{"Ratios are arm b over arm a of the same target, paired within blocks: " +
			"what is not 1 is noise."}
	case mixedTwins:
		return []string{"Ratios are target over the same target: arm a for arm b, else bare for " +
			"what rides along, else the plain process for a container, else the other " +
			"checkout's; paired within blocks."}
	case "process":
		return []string{"Ratios are target in a container over the same target as a plain " +
			"process, paired within blocks."}
	case "bare":
		return []string{"Ratios are target with what rides along over the same target bare, " +
			"paired within blocks."}
	}
	return []string{"Ratios are target over " + sc.Versus + ", paired within blocks."}
}
