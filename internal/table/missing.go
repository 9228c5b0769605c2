package table

import (
	"fmt"
	"slices"
	"strings"

	"prony/internal/result"
	"prony/internal/unit"
)

// lose adds to the tallies the planned trials that have no record, and to the notes the histograms
// that cannot be read, for which the record's own fields stand in.
func (s *Study) lose(tallies []Tally) []Tally {
	for i := range s.Records {
		r := &s.Records[i]
		for k := range r.Loads {
			if d := r.Loads[k].ResponseTime; d.HDR != "" && decode(d) == nil {
				s.Options.Notes = append(slices.Clip(s.Options.Notes), fmt.Sprintf(
					"The histogram of %s in %s is damaged: only the percentiles that the record "+
						"has beside it count.", r.Loads[k].Name, r.Trial))
			}
		}
	}
	if n := len(s.Options.Missing); n > 0 {
		names := strings.Join(s.Options.Missing[:min(n, missingShown)], ", ")
		if n > missingShown {
			names += fmt.Sprintf(" and %d more", n-missingShown)
		}
		tallies = append(tallies, Tally{Grade: MissingGrade, Trials: n,
			Reason: "planned, without a record: " + names})
	}
	return tallies
}

// missingShown is how many missing trials are named; run.json has all of them.
const missingShown = 6

// vanished are the targets of which no trial has a record, by what their trials are called behind
// block and place.
func (s *Study) vanished() (out []Skipped) {
	present := map[string]bool{}
	for _, all := range [][]result.Record{s.Records, s.Beside} {
		for i := range all {
			present[subjectOf(all[i].Trial)] = true
		}
	}
	trials := map[string]int{}
	for _, id := range s.Options.Missing {
		if name := subjectOf(id); !present[name] {
			trials[name]++
		}
	}
	for name, n := range trials {
		out = append(out, Skipped{strings.ReplaceAll(name, ".", "/"),
			"none of its " + unit.Plural(n, "planned trial") + " has a record"})
	}
	slices.SortFunc(out, func(a, b Skipped) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// subjectOf is what a trial is of, as package suite names trials: "b1-03-java-jdk.virtual".
func subjectOf(id string) string {
	parts := strings.SplitN(id, "-", 3)
	return parts[len(parts)-1]
}
