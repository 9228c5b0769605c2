package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// Side is one side of a comparison: the records of a run, and a selection of its rows.
type Side struct {
	Dir       string // the run's folder, as the caller named it; equal for both sides of one run
	Head      record.Run
	Records   []*record.Record
	Target    string // a row, or a target that has one row; empty: every row that both sides have
	Reproduce string // the command that makes the run again
	// Study is the result of table.Analyze for Records, for several comparisons of one run; nil:
	// Compare computes it.
	Study *table.Study
	// Slices reads the raw slices of the run's starts; nil: not available.
	Slices table.SlicesReader
	// Missing and Unfinished have the meaning of table.Options: the run ended before its planned
	// end.
	Missing    []record.Planned
	Bad        []*record.BadRecord // lines that were left out
	Unfinished bool
}

// NoTargetError reports that a run has no row of that name.
type NoTargetError struct {
	Name, Dir string
	Rows      []string
}

func (e *NoTargetError) Error() string {
	return fmt.Sprintf("find %q in %s: no row has this name; the rows are %s", e.Name, e.Dir,
		strings.Join(e.Rows, ", "))
}

// side is a Side with its analysis.
type side struct {
	Side
	study table.Study
}

func analyse(s Side, with Options) *side {
	if s.Study != nil && s.Study.Options.Confidence == with.Confidence &&
		s.Study.Options.Stalls == with.Stalls {
		return &side{s, *s.Study}
	}
	o := table.Options{Baseline: s.Head.Baseline, Confidence: with.Confidence, Slices: s.Slices,
		Stalls: with.Stalls, Missing: s.Missing, Unfinished: s.Unfinished}
	return &side{s, table.Analyze(s.Records, o)}
}

// rows returns the names of all rows of a side, sorted.
func (s *side) rows() []string {
	var names []string
	for _, sc := range s.study.Scenarios {
		for _, t := range sc.Targets {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// row returns the name of the row that name identifies: a row's name, or that of a target with one
// row. The error is a *NoTargetError.
func (s *side) row(name string) (string, error) {
	rows := s.rows()
	if name == "" || slices.Contains(rows, name) {
		return name, nil
	}
	var matches []string
	for _, sc := range s.study.Scenarios {
		if t := sc.Find(name); t != nil {
			matches = table.AddNew(matches, t.Name)
		}
	}
	if len(matches) != 1 {
		return "", &NoTargetError{name, s.Dir, rows}
	}
	return matches[0], nil
}

// method returns how a row was measured.
func (s *side) method(scenario string, t *table.Target) table.Method {
	return table.MethodOf(measured(t), s.Head.Requests[scenario])
}

// measured returns the trials that count, or all if none does.
func measured(t *table.Target) []*record.Record {
	if len(t.Used) > 0 {
		return t.Used
	}
	return t.Trials
}

// pairing has two rows to compare.
type pairing struct {
	scenario string
	a, b     *table.Target
}

// pair finds the rows to compare. Within one run and without names these are the rows whose ratios
// the run's own report has; between runs, those of the same name.
func pair(a, b *side, same bool) (pairs []pairing, missing []string, err error) {
	for _, s := range []*side{a, b} {
		if s.Target, err = s.row(s.Target); err != nil {
			return nil, nil, err
		}
	}
	nameA, nameB := a.Target, b.Target
	if !same {
		nameA, nameB = cmp.Or(nameA, nameB), cmp.Or(nameB, nameA)
	}
	for _, sc := range b.study.Scenarios {
		theirs := a.study.Scenario(sc.Name)
		if theirs == nil {
			missing = append(missing, fmt.Sprintf("scenario %q is only in B", sc.Name))
			continue
		}
		for _, t := range sc.Targets {
			if nameB != "" && t.Name != nameB {
				continue
			}
			against := cmp.Or(nameA, t.Name)
			if nameA == "" && same {
				against = t.Reference
			}
			if second := theirs.Target(against); second != nil && second != t {
				pairs = append(pairs, pairing{sc.Name, second, t})
			} else if !same {
				missing = append(missing, fmt.Sprintf("%s is only in B", t.Name))
			}
		}
	}
	missing = append(missing, only(a, b, nameA, same)...)
	if len(pairs) == 0 {
		return nil, nil, noPairs(a, b, same)
	}
	return pairs, missing, nil
}

// copies reports whether two folders have the same run.
func copies(a, b Side) bool {
	if len(a.Records) == 0 || len(b.Records) == 0 {
		return false
	}
	x, y := a.Records[0], b.Records[0] // heads have the names of folders on a server or a site
	return x.Run == y.Run && x.Trial == y.Trial && x.Time.Equal(y.Time)
}

// only names the scenarios and rows that only side a has.
func only(a, b *side, name string, same bool) (out []string) {
	if same || name != "" {
		return nil
	}
	for _, sc := range a.study.Scenarios {
		theirs := b.study.Scenario(sc.Name)
		if theirs == nil {
			out = append(out, fmt.Sprintf("scenario %q is only in A", sc.Name))
			continue
		}
		for _, t := range sc.Targets {
			if theirs.Target(t.Name) == nil {
				out = append(out, fmt.Sprintf("%s is only in A", t.Name))
			}
		}
	}
	return out
}

func noPairs(a, b *side, same bool) error {
	if same {
		return fmt.Errorf("compare rows of %s: name two rows, such as %s:%s %s:%s", a.Dir, a.Dir,
			example(a, 0), a.Dir, example(a, 1))
	}
	return fmt.Errorf("compare %s with %s: no row is in both runs; name one row of each, such as "+
		"%s:%s %s:%s", a.Dir, b.Dir, a.Dir, example(a, 0), b.Dir, example(b, 0))
}

func example(s *side, i int) string {
	if rows := s.rows(); i < len(rows) {
		return rows[i]
	}
	return "TARGET"
}

// subject describes the origin of a row.
func (s *side) subject(scenario string, t *table.Target) Subject {
	x := Subject{
		Run: s.Head.ID, Dir: s.Dir, Suite: s.Head.Suite, Target: t.Name, Counts: t.Counts,
		ConfigHash: s.method(scenario, t).Fingerprint(), Excluded: excluded(t),
		repeat: s.study.Scenario(scenario).Starts.Repeat(), blockTime: blockTime(s.Records),
	}
	blocks := map[int]bool{}
	for _, r := range t.Used {
		blocks[r.Block] = true
	}
	x.Blocks = len(blocks)
	if len(t.Trials) == 0 {
		return x
	}
	r := measured(t)[0]
	p := r.Provenance
	x.Time, x.Prony = r.Time.UTC().Format(time.RFC3339), p.Prony
	x.Commit, x.Artifact = p.Commit, units.Hash(r.Artifact.SHA256)
	x.ran = fmt.Sprintf("%q", []any{p.ServiceArgs, p.VariantEnv, r.Target.Mode, r.Target.Variant,
		r.Target.Launcher, r.Target.Runtime})
	if p.Dirty {
		x.Commit += " (modified)"
	}
	x.Machine = fmt.Sprintf("%s, %d cores, %s %s", p.CPUModel, p.Cores, p.OS, p.Kernel)
	return x
}

// blockTime returns the median time of a run's blocks or starts, from the begin of the first trial
// to the end of the last one.
func blockTime(records []*record.Record) time.Duration {
	type span struct{ first, last int64 }
	spans := map[int]span{}
	for _, r := range records {
		began := r.Time.UnixNano()
		x, known := spans[r.Block]
		if !known {
			x.first = began
		}
		spans[r.Block] = span{min(x.first, began), max(x.last, r.End().UnixNano())}
	}
	var all []float64
	for _, x := range spans {
		all = append(all, float64(x.last-x.first))
	}
	if len(all) == 0 {
		return 0
	}
	return time.Duration(stats.Median(all))
}

// excluded names the trials that are not in all numbers of a row, with the reasons.
func excluded(t *table.Target) (out []string) {
	for _, r := range t.Trials {
		switch table.Grade(r) {
		case table.FailedGrade:
			_, why := table.Failure(r)
			out = append(out, fmt.Sprintf("%s failed: %s", r.Trial, why))
		case table.StoppedGrade:
			out = append(out, r.Trial+" was stopped with the run")
		case record.Invalid:
			out = append(out, fmt.Sprintf("%s is INVALID: %s", r.Trial, reasons(r)))
		}
	}
	return out
}

func reasons(r *record.Record) string {
	var out []string
	for _, f := range r.Verdict.Findings {
		if f.Grade == record.Invalid {
			location := f.Rule
			if f.Load != "" {
				location = f.Load + ": " + location
			}
			out = append(out, fmt.Sprintf("%s (%s, %s)", location, wording.Finding(f).Observed,
				wording.Against(f)))
		}
	}
	if len(out) == 0 {
		return "no finding has the reason"
	}
	return strings.Join(out, "; ")
}
