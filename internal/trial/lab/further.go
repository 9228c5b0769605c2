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

// further chooses the starts that a run has beyond its planned ones. A start that lost a target is
// repeated, at most once for each five planned starts. A start that lost only targets which fail
// too often to be compared is not repeated: further starts would measure the lucky ones.
type further struct {
	planned int // starts of each scenario
	reserve []trial.Spec
	report  func(string)
}

// lostStart is a start in which targets failed.
type lostStart struct {
	block   int
	targets []string // that failed by themselves
}

// next gives the trials of the next start by the records so far; none: the run ends. If the program
// ended while the records of such a start were saved, it gives the trials that lack one.
func (f *further) next(done []*record.Record) []trial.Spec {
	recorded := map[string]*record.Record{}
	for _, r := range done {
		recorded[r.Trial] = r
	}
	begun := map[string]int{} // further starts, by scenario
	for _, start := range f.starts() {
		scenario := start[0].Scenario
		remaining := slices.DeleteFunc(slices.Clone(start), func(t trial.Spec) bool {
			return recorded[t.ID] != nil
		})
		switch {
		case len(remaining) < len(start) && len(remaining) > 0:
			return repeats(remaining)
		case len(remaining) == 0:
			begun[scenario]++
			continue
		}
		lost := f.worthRepeating(lostStarts(done, scenario))
		most := suite.Repetitions(f.planned)
		if n := begun[scenario]; n < min(len(lost), most) {
			f.report(fmt.Sprintf("start %d lost %s: it is repeated (repetition %d of at most %d)",
				lost[n].block, units.Few(lost[n].targets, 3), n+1, most))
			return repeats(remaining)
		}
	}
	return nil
}

// starts are the reserve's, in order.
func (f *further) starts() (out [][]trial.Spec) {
	for i, t := range f.reserve {
		if i == 0 || f.reserve[i-1].Start != t.Start {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], t)
	}
	return out
}

// repeats marks trials as those of a start that repeats another one.
func repeats(trials []trial.Spec) []trial.Spec {
	for i := range trials {
		trials[i].Repeats = true
	}
	return trials
}

// lostStarts are the starts of a scenario in which a target failed, in order. A target that could
// not be built fails in all of them, and a start that somebody ended lost nothing.
func lostStarts(done []*record.Record, scenario string) (out []lostStart) {
	for _, r := range done {
		f := r.Failure
		if r.Scenario != scenario || r.SideBySide == nil || f == nil || f.Interrupted ||
			f.Step == record.StepPeer || f.Step == "build" {
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
func (f *further) worthRepeating(lost []lostStart) []lostStart {
	fails := map[string]int{}
	for _, s := range lost {
		for _, name := range s.targets {
			fails[name]++
		}
	}
	most := (f.planned + suite.Repetitions(f.planned)) / 5
	return slices.DeleteFunc(slices.Clone(lost), func(s lostStart) bool {
		return !slices.ContainsFunc(s.targets, func(name string) bool {
			return fails[name] <= most
		})
	})
}
