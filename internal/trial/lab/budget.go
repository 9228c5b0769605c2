package lab

import (
	"maps"
	"slices"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/stats"
)

// Error rates of a run with a time budget, as stats.Sequence defines them.
const (
	earlyError = 0.01
	lateError  = 0.05 // of the final table, as of any other
	power      = 0.8  // probability of finding a difference that a run resolves
)

// nextTime is the further time for which the last line of a run predicts results.
const nextTime = 5 * time.Minute

// budget ends a run when its time is over, and spends the time on open comparisons. Targets are
// compared within a scenario, by the throughput of their first closed load, or by the mean response
// time if there is none.
type budget struct {
	most     time.Duration
	same     float64
	save     func(record.Schedule) error
	began    int64
	specs    map[string]trial.Spec // by trial
	block    []trial.Spec          // the first block, with all contenders
	scenes   map[string]*scene
	reported record.Schedule
	err      error // why the schedule could not be saved
}

// scene is the comparisons of a scenario.
type scene struct {
	stats.Sequence
	names []string // contenders, in the order of their first trials
}

func newBudget(most time.Duration, same float64, save func(record.Schedule) error) *budget {
	return &budget{most: most, same: same, save: save, specs: map[string]trial.Spec{},
		scenes: map[string]*scene{}, reported: record.Schedule{ForNs: int64(most),
			Early: earlyError,
			Late:  lateError, Same: same}}
}

// contender returns the name under which a trial is compared within its scenario.
func contender(t trial.Spec) string {
	name := t.Target
	for _, part := range []string{t.Variant, t.Driver, t.Launcher} {
		if part != "" && part != "none" && part != "prony" {
			name += " " + part
		}
	}
	return name
}

// next returns the remaining trials that still run, in order. It decides between blocks only: a
// block that has begun is completed.
func (b *budget) next(done []*record.Record, remaining []trial.Spec) []trial.Spec {
	switch {
	case len(done) == 0:
		b.begin(remaining)
		return remaining
	case b.reported.Ended != "": // the rest is not part of the comparison
		return remaining
	}
	b.reported.SpentNs = clock.Mono() - b.began
	last := b.specs[done[len(done)-1].Trial]
	isExtra := func(t trial.Spec) bool { return t.Role != "" }
	compared := slices.DeleteFunc(slices.Clone(remaining), isExtra)
	if last.Role != "" || len(compared) > 0 && compared[0].Block == last.Block {
		return remaining
	}
	b.look(done, last.Block)
	want := b.wanted(compared)
	if last.Start != "" && last.Block < stats.LeastStarts { // else no ratio would have an interval
		want = compared
	}
	switch {
	case len(compared) == 0:
		b.reported.Ended = "all blocks"
	case len(want) == 0:
		b.reported.Ended = "decided"
	case b.reported.SpentNs+b.cost(done, firstBlock(want)) > int64(b.most):
		b.reported.Ended = "time"
	}
	if b.reported.Ended != "" {
		want = nil
		b.reported.Next = b.further(done)
	}
	b.err = b.save(b.reported)
	for _, t := range remaining {
		if isExtra(t) {
			want = append(want, t)
		}
	}
	return want
}

func (b *budget) begin(all []trial.Spec) {
	b.began = clock.Mono()
	for _, t := range all {
		b.specs[t.ID] = t
		if t.Role != "" {
			continue
		}
		if len(b.block) == 0 || b.block[0].Block == t.Block {
			b.block = append(b.block, t)
		}
		s := b.scenes[t.Scenario]
		if s == nil {
			s = &scene{Sequence: stats.Sequence{Early: earlyError, Late: lateError, Same: b.same}}
			b.scenes[t.Scenario] = s
		}
		if name := contender(t); !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
}

// look decides the comparisons that can be decided, and records the look.
func (b *budget) look(done []*record.Record, block int) {
	l := record.Look{Block: block, AtNs: b.reported.SpentNs,
		Fraction: float64(b.reported.SpentNs) / float64(b.most)}
	for _, name := range slices.Sorted(maps.Keys(b.scenes)) {
		s := b.scenes[name]
		before := s.Open(s.names)
		l.Level = max(l.Level, s.Look(b.items(done, name), min(l.Fraction, 1)))
		for _, pair := range before {
			if form := s.Decided(pair[0], pair[1]); form != "" {
				l.Decided = append(l.Decided, record.Decided{Scenario: name, A: pair[0], B: pair[1],
					As: form})
			}
		}
		l.Open += len(s.Open(s.names))
	}
	b.reported.Looks = append(b.reported.Looks, l)
}

// items returns the values of a scenario's contenders by block; higher is better.
func (b *budget) items(done []*record.Record, scenario string) (out []stats.Item) {
	for _, name := range b.scenes[scenario].names {
		item := stats.Item{Name: name, Values: map[int]float64{}}
		for _, r := range done {
			t := b.specs[r.Trial]
			if t.Role != "" || t.Scenario != scenario || contender(t) != name ||
				r.Outcome != record.Measured ||
				r.Verdict.Grade == record.Invalid && t.Start == "" { // slices may be valid
				continue
			}
			if v := worth(r); v > 0 {
				item.Values[r.Block] = v
			}
		}
		out = append(out, item)
	}
	return out
}

// worth returns the value by which a trial is compared; 0: none, or its slices do not count.
func worth(r *record.Record) float64 {
	for i := range r.Loads {
		switch l := &r.Loads[i]; {
		case l.Model != record.Closed:
		case l.Slices == nil:
			return l.ThroughputPerS
		case table.CountedSlices(r, l) == nil:
			return 0
		default:
			return l.Slices.ThroughputPerS()
		}
	}
	if len(r.Loads) > 0 && r.Loads[0].ResponseTime.MeanNs > 0 {
		return 1 / r.Loads[0].ResponseTime.MeanNs
	}
	return 0
}

// wanted returns the trials that open comparisons need.
func (b *budget) wanted(remaining []trial.Spec) []trial.Spec {
	names := map[string][]string{}
	for scenario, s := range b.scenes {
		if names[scenario] = s.names; len(s.names) > 1 { // one alone has no comparison
			names[scenario] = stats.Needed(s.names, s.Open(s.names))
		}
	}
	return slices.DeleteFunc(slices.Clone(remaining), func(t trial.Spec) bool {
		return !slices.Contains(names[t.Scenario], contender(t))
	})
}

// firstBlock returns the trials of the first block.
func firstBlock(specs []trial.Spec) []trial.Spec {
	for i, t := range specs {
		if t.Block != specs[0].Block {
			return specs[:i]
		}
	}
	return specs
}

// cost estimates how long trials take in ns, by earlier trials of the same contenders and the time
// between trials.
func (b *budget) cost(done []*record.Record, next []trial.Spec) (ns int64) {
	type who struct{ scenario, name string }
	value := func(t trial.Spec) who { return who{t.Scenario, contender(t)} }
	sum, count := map[who]int64{}, map[who]int64{}
	all := int64(0)
	for _, r := range done {
		w := value(b.specs[r.Trial])
		sum[w] += r.DurationNs
		count[w]++
		all += r.DurationNs
	}
	for _, t := range next {
		w := value(t)
		ns += sum[w] / max(count[w], 1)
	}
	return int64(float64(ns) * max(1, float64(b.reported.SpentNs)/float64(max(all, 1))))
}

// further predicts the result of the next minutes: blocks of the open comparisons, or of all if
// none is open.
func (b *budget) further(done []*record.Record) *record.Next {
	trials := b.wanted(b.block)
	if len(trials) == 0 {
		trials = b.block
	}
	cost := max(b.cost(done, trials), 1)
	next := &record.Next{ForNs: int64(nextTime), Blocks: int(int64(nextTime) / cost), BlockNs: cost}
	for _, t := range trials {
		if name := contender(t); !slices.Contains(next.Targets, name) {
			next.Targets = append(next.Targets, name)
		}
	}
	var now, later []float64
	for scenario, s := range b.scenes {
		items := b.items(done, scenario)
		design := stats.NewBlocks(items, 1-lateError)
		open := s.Open(s.names)
		next.Open += len(open)
		pairs := len(s.names) * (len(s.names) - 1) / 2
		for i, x := range items {
			for _, y := range items[i+1:] {
				r := design.Ratio(x, y)
				if len(open) > 0 && s.Decided(x.Name, y.Name) != "" || !r.HasInterval() {
					continue
				}
				alpha := lateError / float64(pairs)
				now = append(now, r.Detects(alpha, power))
				later = append(later, r.DetectsWith(next.Blocks, alpha, power))
			}
		}
	}
	if len(now) > 0 {
		next.Resolves, next.Would = stats.Median(now), stats.Median(later)
	}
	return next
}
