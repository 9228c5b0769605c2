package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Filter selects entries; empty fields match all.
type Filter struct {
	Suite   string
	Target  string // among the run's rows: the name, or its beginning before a slash or a space
	Verdict string // a run with a trial of this grade: valid, suspect, invalid, failed or missing
	Label   string // NAME, or NAME=VALUE
	From    time.Time
	To      time.Time // of its start, inclusive
	Machine string    // its key
	Text    string    // part of any of its words, in any case
}

// Verdicts lists the values of Filter.Verdict.
var Verdicts = []string{"valid", "suspect", "invalid", "failed", "missing"}

// Wants reports whether an entry matches.
func (f Filter) Wants(e Entry) bool {
	name, value, valued := strings.Cut(f.Label, "=")
	verb, labelled := e.Labels[name]
	t := e.Trials
	counts := []int{t.Valid, t.Suspect, t.Invalid, t.Failed, t.Missing}
	index := slices.Index(Verdicts, strings.ToLower(f.Verdict))
	return cmp.Or(f.Suite, e.Suite) == e.Suite &&
		(f.Target == "" || slices.ContainsFunc(e.Targets, func(row string) bool {
			tail, ok := strings.CutPrefix(row, f.Target)
			return ok && (tail == "" || strings.ContainsAny(tail[:1], "/ @"))
		})) &&
		(f.Verdict == "" || index >= 0 && counts[index] > 0) &&
		(f.Label == "" || labelled && (!valued || verb == value)) &&
		(f.Machine == "" || e.Machine.Key == f.Machine) &&
		(f.Text == "" || e.contains(strings.ToLower(f.Text))) &&
		(f.From.IsZero() || !e.Time.Before(f.From)) &&
		(f.To.IsZero() || !e.Time.After(f.To))
}

// contains reports whether one of an entry's words has a part, which is in lower case.
func (e Entry) contains(part string) bool {
	match := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return strings.Contains(strings.ToLower(word), part)
		})
	}
	if match(e.ID, e.Suite, e.Question, e.Machine.CPUModel, e.Machine.Kernel) ||
		match(e.Targets...) {
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
		if match(name + "=" + e.Labels[name]) {
			return true
		}
	}
	return false
}
