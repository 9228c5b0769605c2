// Package report prints a run: Text for a terminal, Markdown for a README, CSV and JSON for
// programs, Flat for Parquet files, HTML for everybody. All are functions of records and
// options, so each output can be made again later or elsewhere, with the same bytes.
// docs/formats/report-csv.md, report-parquet.md and report-json.md describe the formats that
// programs read.
//
// Text, Markdown and HTML print the same table.Sheet, so they are consistent.
//
// Non-goals: it computes no statistics (table and stats do), reads no files except the embedded
// page, and opens no connection.
package report

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// verdictLine counts the numbers by their grade, and the trials that are excluded: "38 of 40
// numbers VALID · 2 SUSPECT; 21 trials: 0 INVALID · 1 failed (ready)".
func verdictLine(n table.Numbers, tallies []table.Tally, paint func(grade, text string) string,
) string {
	trials := 0
	for _, t := range tallies {
		trials += t.Trials
	}
	numbers := fmt.Sprintf("%d of %s VALID", n.Valid, units.Plural(n.All(), "number"))
	out := paint(record.Valid, numbers)
	if n.Suspect > 0 {
		out += " · " + paint(record.Suspect, fmt.Sprintf("%d SUSPECT", n.Suspect))
	}
	if n.Unknown > 0 {
		out += fmt.Sprintf(" · %d not known", n.Unknown)
	}
	var parts []string
	for _, t := range excluded(tallies) {
		count := fmt.Sprintf("%d %s", t.Trials, t.Grade)
		if t.Trials > 0 {
			count = paint(t.Grade, count)
		}
		if t.Reason != "" {
			count += " (" + t.Reason + ")"
		}
		parts = append(parts, count)
	}
	return out + "; " + units.Plural(trials, "trial") + ": " + strings.Join(parts, " · ")
}

// excluded returns the tallies of trials that are excluded from some or all numbers. The numbers
// themselves have the grades of the others.
func excluded(tallies []table.Tally) []table.Tally {
	return slices.DeleteFunc(slices.Clone(tallies), func(t table.Tally) bool {
		return t.Grade == record.Valid || t.Grade == record.Suspect
	})
}
