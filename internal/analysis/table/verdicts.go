package table

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Grade returns the grade of a record: VALID, SUSPECT, INVALID, failed or stopped. A measured
// record without a verdict is SUSPECT.
func Grade(r *record.Record) string {
	switch {
	case r.Failure != nil && r.Failure.Interrupted:
		return StoppedGrade
	case r.Outcome != record.Measured:
		return FailedGrade
	case r.Verdict.Grade == record.Valid, r.Verdict.Grade == record.Invalid:
		return r.Verdict.Grade
	}
	return record.Suspect
}

// LoadGrade returns the grade of one load of a record: the worst of the findings that apply to it.
// A grade of the record that no finding explains applies to every load.
func LoadGrade(r *record.Record, load string) string {
	grade := wholeGrade(r)
	if unmeasured(grade) {
		return grade
	}
	for _, f := range FindingsOn(r, load) {
		if f.Phase != record.PhaseSlices {
			grade = worse(grade, findingGrade(r, f))
		}
	}
	return grade
}

// FindingsOn returns the findings that apply to a load of a record: findings on the whole trial, on
// the load, and, if its rate is a share of a closed load, those that make that load INVALID,
// because then the rate has no meaning either.
func FindingsOn(r *record.Record, load string) []record.Finding {
	base := baseOf(r, load)
	var out []record.Finding
	for _, f := range r.Verdict.Findings {
		inherited := base != "" && f.Load == base && findingGrade(r, f) == record.Invalid
		if f.Load == load || inherited || ofWhole(r, f) {
			out = append(out, f)
		}
	}
	return out
}

// baseOf returns the closed load that an open load's rate is a share of; empty without one.
func baseOf(r *record.Record, load string) string {
	l := loadOf(r, load)
	if l == nil || l.Model != record.Open {
		return ""
	}
	if base := loadOf(r, l.RateBase); base == nil || base.Model != record.Closed {
		return ""
	}
	return l.RateBase
}

// ofWhole reports whether a finding is on the whole trial. This includes a finding on a load that
// the record does not have, because the affected loads are unknown.
func ofWhole(r *record.Record, f record.Finding) bool {
	return f.Load == "" || loadOf(r, f.Load) == nil
}

// wholeGrade returns the grade of a record by its findings on the whole trial, or its own grade if
// no finding explains it.
func wholeGrade(r *record.Record) string {
	ownText := Grade(r)
	if unmeasured(ownText) || unexplained(r) {
		return ownText
	}
	grade := record.Valid
	for _, f := range r.Verdict.Findings {
		if ofWhole(r, f) {
			grade = worse(grade, findingGrade(r, f))
		}
	}
	return grade
}

// unexplained reports whether a record has a grade that none of its findings gives.
func unexplained(r *record.Record) bool {
	ownText := Grade(r)
	return ownText != record.Valid && !slices.ContainsFunc(r.Verdict.Findings,
		func(f record.Finding) bool { return findingGrade(r, f) == ownText })
}

// findingGrade returns a finding's own grade, or the record's if it has none.
func findingGrade(r *record.Record, f record.Finding) string {
	if f.Grade == "" {
		return Grade(r)
	}
	return f.Grade
}

func worse(a, b string) string {
	order := []string{record.Valid, record.Suspect, record.Invalid}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// good reports whether results of this grade count.
func good(grade string) bool { return grade == record.Valid || grade == record.Suspect }

// usable reports whether a record has a load that counts. A record that offered no load has at
// least its startup.
func usable(r *record.Record) bool {
	if len(r.Loads) == 0 {
		return good(wholeGrade(r))
	}
	return slices.ContainsFunc(r.Loads, func(l record.Load) bool {
		return good(LoadGrade(r, l.Name)) || l.Slices != nil && good(slicedGrade(r, l.Name))
	})
}

// tallies counts how trials ended, best first. It always includes VALID, SUSPECT and INVALID, and
// failed and stopped only if there are some.
func tallies(records []*record.Record) []Tally {
	var out []Tally
	for _, grade := range []string{record.Valid, record.Suspect, record.Invalid, FailedGrade,
		StoppedGrade} {
		item := those(records, func(r *record.Record) bool { return Grade(r) == grade })
		if unmeasured(grade) && len(item) == 0 {
			continue
		}
		out = append(out, Tally{Grade: grade, Trials: len(item), Reason: reasons(grade, item)})
	}
	return out
}

// reasons returns in how many trials of a grade each rule was violated, the most frequent first:
// "run delay in 5, drift in 4". The footnotes of the rows have the values.
func reasons(grade string, records []*record.Record) string {
	if grade == record.Valid {
		return ""
	}
	var rules []string
	trials := map[string]int{}
	for _, r := range records {
		for _, rule := range broken(grade, r) {
			if trials[rule] == 0 {
				rules = append(rules, rule)
			}
			trials[rule]++
		}
	}
	slices.SortStableFunc(rules, func(a, b string) int { return trials[b] - trials[a] })
	if len(records) > 1 {
		for i, rule := range rules {
			rules[i] = fmt.Sprintf("%s in %d", rule, trials[rule])
		}
	}
	return strings.Join(rules, ", ")
}

// broken returns the rules that gave a record its grade, each once; for a failed one, the step.
func broken(grade string, r *record.Record) []string {
	if unmeasured(grade) {
		step, _ := Failure(r)
		return []string{step}
	}
	if unexplained(r) {
		return []string{noFinding}
	}
	var rules []string
	for _, f := range r.Verdict.Findings {
		if findingGrade(r, f) == grade {
			rules = AddNew(rules, f.Rule)
		}
	}
	return rules
}

// noFinding replaces the rule if a record has a grade without a finding that explains it.
const noFinding = "no finding recorded"

// Failure returns the step that failed and a one-line description of the error.
func Failure(r *record.Record) (step, subject string) {
	if r.Failure == nil {
		return "failed", "the record has no reason for the failure"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(r.Failure.Error), "\n")
	return r.Failure.Step, line
}

// mostMissing bounds how many missing trials, or damaged lines, a sentence names.
const mostMissing = 6

// missing returns the tally of trials without a record and of lines that were left out; nil if
// every trial has its line.
func (s *Study) missing() []Tally {
	var why []string
	ids := Distinct(s.Options.Missing, func(p record.Planned) string { return p.Trial })
	if len(ids) > 0 {
		why = append(why, "trials planned, but without a record: "+units.Few(ids, mostMissing))
	}
	if lost := s.Options.Damaged; len(lost) > 0 {
		why = append(why, units.Plural(len(lost), "line")+" of the records left out: "+
			units.Few(lost, mostMissing))
	}
	if len(why) == 0 {
		return nil
	}
	return []Tally{{MissingGrade, len(ids), strings.Join(why, "; ")}}
}

// missingOf names the trials of a row without a record; nil if all have one.
func (sc *Scenario) missingOf(o Options, row string) []Note {
	blocks := Blocks{Repeat: sc.Starts.Repeat()}
	for _, p := range o.Missing {
		if p.Scenario == sc.Name && p.Row == row && p.Role == "" {
			blocks.Numbers = append(blocks.Numbers, p.Block)
		}
	}
	if len(blocks.Numbers) == 0 {
		return nil
	}
	return []Note{NoteOf(NoteTrialsMissing, blocks)}
}

// unseen returns the rows of targets that were planned but have no record.
func (sc *Scenario) unseen(o Options) (rows []Row) {
	for _, p := range o.Missing {
		known := sc.Target(p.Row) != nil ||
			slices.ContainsFunc(rows, func(r Row) bool { return r.Name == p.Row })
		if !known && p.Row != "" && p.Scenario == sc.Name && p.Role == "" {
			rows = append(rows, spanRow(p.Row, sc.missingOf(o, p.Row)[0]))
		}
	}
	return rows
}

// Extent counts rows and blocks, including those without a record.
func (s *Study) Extent() (targets, blocks int) {
	type block struct {
		run    string
		number int
	}
	rows, passes := map[string]bool{}, map[block]bool{}
	run := ""
	for _, r := range s.Records {
		run = r.Run
		rows[RowName(r.Target)], passes[block{run, r.Block}] = true, true
	}
	for _, p := range s.Options.Missing { // all records are then of the same run
		if p.Row != "" && p.Role == "" {
			rows[p.Row], passes[block{run, p.Block}] = true, true
		}
	}
	return len(rows), len(passes)
}
