package lab

import (
	"fmt"
	"slices"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

// further chooses the starts that a run has beyond its first ones. It repeats a start that lost a
// target, at most once for each five planned starts. It does not repeat a start if all targets that
// it lost fail too often to be compared: further starts would measure only the lucky ones. For a
// given precision, it plans further starts from the scatter of the first ones (stats.StagesNeed).
//
// The choice depends only on the records, so a resumed run continues as it would have.
type further struct {
	first, most int // starts of each series: at the beginning, and at most
	precision   suite.Precision
	baseline    string // row of a table; empty: all targets are compared with each other
	reserve     []trial.Spec
	report      func(string)
	reported    map[series]bool // series whose plan was reported
}

// series are the starts of a scenario, or of one of its groups of targets.
type series struct {
	scenario string
	group    int
}

// further returns the chooser of the run, which passes its decisions to report.
func (r *run) further(report func(string)) *further {
	s := r.plan.Suite
	return &further{first: s.Blocks, most: s.MostStarts(), precision: s.Precision,
		baseline: rowOf(r.plan.Trials, r.plan.Baseline), reserve: r.experiment.Reserve,
		report: report, reported: map[series]bool{}}
}

// lostStart is a start in which targets failed.
type lostStart struct {
	block   int
	targets []string // that failed by themselves
}

// next returns the trials of the next start by the records so far; none: the run ends. A start has
// the records of all its trials or of none: resume runs a start again if a record is missing.
func (f *further) next(done []*record.Record) []trial.Spec {
	recorded := map[string]bool{}
	for _, r := range done {
		recorded[r.Trial] = true
	}
	over := map[series]bool{}
	for _, start := range f.starts() {
		id := series{start[0].Scenario, start[0].Group}
		if recorded[start[0].ID] || over[id] {
			continue
		}
		if origin := f.due(done, id); origin != (trial.Origin{}) {
			return because(slices.Clone(start), origin)
		}
		over[id] = true
	}
	return nil
}

// due returns why a series needs a further start; the zero value: it needs none.
func (f *further) due(done []*record.Record, id series) trial.Origin {
	stage := 0
	if f.precision.Half > 0 {
		stage = 1
	}
	var all, first []*record.Record
	planned := 0
	for _, r := range done {
		if r.Scenario != id.scenario || r.SideBySide == nil || r.Role != "" ||
			r.SideBySide.Group != id.group {
			continue
		}
		if all = append(all, r); r.SideBySide.Stage < 2 {
			first = append(first, r)
		}
		planned = max(planned, r.SideBySide.Planned)
	}
	if f.repeat(first, f.first) {
		return trial.Origin{Repeats: true, Stage: stage}
	}
	if stage == 0 {
		return trial.Origin{}
	}
	if planned == 0 {
		planned = f.plan(done, first, id)
	}
	if planned == f.first {
		return trial.Origin{}
	}
	second := blocksOf(all, func(x *record.SideBySide) bool { return x.Stage == 2 && !x.Repeats })
	if f.first+second < planned {
		return trial.Origin{Stage: 2, Planned: planned}
	}
	if f.repeat(all, planned) {
		return trial.Origin{Repeats: true, Stage: 2, Planned: planned}
	}
	return trial.Origin{}
}

// repeat reports whether a lost start is to be repeated, for a number of planned starts.
func (f *further) repeat(done []*record.Record, planned int) bool {
	lost, most := worthRepeating(lostStarts(done), planned), suite.Repetitions(planned)
	n := blocksOf(done, func(x *record.SideBySide) bool { return x.Repeats })
	if n >= min(len(lost), most) {
		return false
	}
	f.report(fmt.Sprintf("start %d lost %s, so the start is repeated (repetition %d of at most "+
		"%d)",
		lost[n].block, units.Few(lost[n].targets, 3), n+1, most))
	return true
}

// blocksOf counts the starts of a kind.
func blocksOf(done []*record.Record, kind func(*record.SideBySide) bool) int {
	blocks := map[int]bool{}
	for _, r := range done {
		if kind(r.SideBySide) {
			blocks[r.Block] = true
		}
	}
	return len(blocks)
}

// starts returns the starts of the reserve, in order.
func (f *further) starts() (out [][]trial.Spec) {
	for i, t := range f.reserve {
		if i == 0 || f.reserve[i-1].Start != t.Start {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], t)
	}
	return out
}

// because sets the reason of a start in its trials.
func because(trials []trial.Spec, origin trial.Origin) []trial.Spec {
	for i := range trials {
		trials[i].Origin = origin
	}
	return trials
}

// lostStarts returns the starts in which a target failed, in order. It leaves out targets that
// could not be built, which fail in all starts, and starts that the user interrupted.
func lostStarts(done []*record.Record) (out []lostStart) {
	for _, r := range done {
		f := r.Failure
		if f == nil || f.Interrupted || f.Step == record.StepPeer || f.Step == "build" {
			continue
		}
		i := slices.IndexFunc(out, func(s lostStart) bool { return s.block == r.Block })
		if i < 0 {
			i, out = len(out), append(out, lostStart{block: r.Block})
		}
		out[i].targets = append(out[i].targets, table.RowName(r.Target))
	}
	return out
}

// worthRepeating leaves out the starts in which only targets failed that fail in more than one
// start in five.
func worthRepeating(lost []lostStart, planned int) []lostStart {
	fails := map[string]int{}
	for _, s := range lost {
		for _, name := range s.targets {
			fails[name]++
		}
	}
	most := (planned + suite.Repetitions(planned)) / 5
	return slices.DeleteFunc(slices.Clone(lost), func(s lostStart) bool {
		return !slices.ContainsFunc(s.targets, func(name string) bool {
			return fails[name] <= most
		})
	})
}
