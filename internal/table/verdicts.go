package table

import (
	"fmt"
	"slices"
	"strings"

	"prony/internal/result"
)

// tallies counts how trials ended, best first. VALID, SUSPECT and INVALID are always said, failed
// only when there are some.
func tallies(records []result.Record) []Tally {
	var out []Tally
	for _, grade := range []string{result.Valid, result.Suspect, result.Invalid, FailedGrade} {
		var of []*result.Record
		for i := range records {
			if Grade(&records[i]) == grade {
				of = append(of, &records[i])
			}
		}
		if grade == FailedGrade && len(of) == 0 {
			continue
		}
		out = append(out, Tally{Grade: grade, Trials: len(of), Reason: reasons(grade, of)})
	}
	return out
}

// blame is one reason and a trial that it befell.
type blame struct {
	rule  string
	place string // "node-express, block 2"
	what  string // what was seen
}

// said is the reason in a line; a rule's load and limit are in what.
func (b blame) said() string {
	if b.what == "" {
		return b.rule
	}
	return b.rule + ": " + b.what
}

// reasons groups by rule: the trial and the observation when a rule was broken once, how often and
// the first of them otherwise.
func reasons(grade string, records []*result.Record) string {
	if grade == result.Valid {
		return ""
	}
	var rules []string
	byRule := map[string][]blame{}
	for _, r := range records {
		for _, b := range blames(grade, r) {
			if byRule[b.rule] == nil {
				rules = append(rules, b.rule)
			}
			byRule[b.rule] = append(byRule[b.rule], b)
		}
	}
	slices.SortStableFunc(rules, func(a, b string) int { return len(byRule[b]) - len(byRule[a]) })
	var parts []string
	for _, rule := range rules {
		all := byRule[rule]
		if len(all) == 1 {
			parts = append(parts, all[0].place+": "+all[0].said())
			continue
		}
		parts = append(parts, fmt.Sprintf("%s in %d trials, first %s: %s", rule, len(all),
			all[0].place, all[0].what))
	}
	return strings.Join(parts, "; ")
}

// blames are a record's reasons for its grade, one a rule.
func blames(grade string, r *result.Record) []blame {
	place := fmt.Sprintf("%s, block %d", RowName(r.Target), r.Block)
	if grade == FailedGrade {
		step, what := failure(r)
		return []blame{{step, place, what}}
	}
	var out []blame
	for _, f := range r.Verdict.Findings {
		if f.Grade != grade && f.Grade != "" {
			continue
		}
		known := func(b blame) bool { return b.rule == f.Rule }
		if !slices.ContainsFunc(out, known) {
			out = append(out, blame{f.Rule, place, observed(f)})
		}
	}
	if len(out) == 0 {
		out = append(out, blame{"no reason", place, "the record names no finding"})
	}
	return out
}

// observed is a finding without its rule: "1.3 % of CPU stolen at peak, limit 1 %".
func observed(f result.Finding) string {
	text := f.Observed
	if f.Load != "" {
		text = strings.TrimSpace(text + " at " + f.Load)
	}
	if f.Limit != "" {
		text += ", limit " + f.Limit
	}
	return text
}

// failure is the step and a one-line account of what went wrong.
func failure(r *result.Record) (step, what string) {
	if r.Failure == nil {
		return "failed", "the record does not say why"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(r.Failure.Error), "\n")
	return r.Failure.Step, line
}

// doubts are the footnotes on a target's name: what became of the trials that are not VALID.
func (t *Target) doubts() []string {
	notes := t.endings(", not in the numbers", ", kept")
	return append(notes, t.Method...)
}

// endings says for each way to end but VALID how many trials took it and why; excluded and kept
// are said of what became of them.
func (t *Target) endings(excluded, kept string) []string {
	var notes []string
	for _, way := range []struct{ grade, fate string }{
		{result.Invalid, "INVALID" + excluded}, {FailedGrade, FailedGrade + excluded},
		{result.Suspect, "SUSPECT" + kept},
	} {
		n := 0
		blocks := map[string][]int{}
		var said []string
		for _, r := range t.Trials {
			if Grade(r) != way.grade {
				continue
			}
			n++
			for _, b := range blames(way.grade, r) {
				if blocks[b.said()] == nil {
					said = append(said, b.said())
				}
				blocks[b.said()] = append(blocks[b.said()], r.Block)
			}
		}
		if n == 0 {
			continue
		}
		// A block is named again only where it changes.
		last := ""
		for i, text := range said {
			if place := blocksText(blocks[text]); place != last {
				said[i], last = place+": "+text, place
			}
		}
		notes = append(notes, fmt.Sprintf("%s %s: %s", ofTrials(n, len(t.Trials)), way.fate,
			fewJoined(said, 3)))
	}
	return notes
}

// blocksText lists blocks, with a dash where three or more follow each other: "blocks 1–3, 5".
func blocksText(blocks []int) string {
	sorted := slices.Clone(blocks)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return fmt.Sprintf("block %d", sorted[0])
	}
	var parts []string
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		if end-i < 2 {
			parts = append(parts, fmt.Sprint(sorted[i]))
			i++
			continue
		}
		parts = append(parts, fmt.Sprintf("%d–%d", sorted[i], sorted[end]))
		i = end + 1
	}
	return "blocks " + strings.Join(parts, ", ")
}

// fewJoined joins at most n parts and counts the rest.
func fewJoined(parts []string, n int) string {
	if len(parts) <= n {
		return strings.Join(parts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(parts[:n], "; "), len(parts)-n)
}
