// Package report prints a run: Text for a terminal, Markdown for a README, CSV, Parquet and JSON
// for programs, HTML for everybody. All are functions of records and options, so each can be made
// again later, elsewhere, and made twice it is the same twice; docs/formats/report-csv.md,
// report-parquet.md and report-json.md describe the formats that programs read.
//
// Text, Markdown and HTML print the same table.Sheet, so they cannot disagree.
//
// Non-goals: it computes no statistics (table and stats do), reads no files but the page embedded
// in it, and opens no connection.
package report

import (
	"fmt"
	"io"
	"strings"

	"prony/internal/table"
)

// printer writes on and remembers the first error, so that the code between reads as text.
type printer struct {
	w   io.Writer
	err error
}

// line prints words and a line end; format verbs in the words are not read.
func (p *printer) line(words ...string) { p.text(strings.Join(words, "") + "\n") }

func (p *printer) text(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// verdictLine says how the trials ended: "VALID 16 trials · SUSPECT 2 (…) · INVALID 0".
func verdictLine(tallies []table.Tally, paint func(grade, text string) string) string {
	var parts []string
	for i, t := range tallies {
		count := fmt.Sprintf("%s %d", t.Grade, t.Trials)
		if i == 0 && t.Trials == 1 {
			count += " trial"
		} else if i == 0 {
			count += " trials"
		}
		if t.Trials > 0 {
			count = paint(t.Grade, count)
		}
		if t.Reason != "" {
			count += " (" + t.Reason + ")"
		}
		parts = append(parts, count)
	}
	return strings.Join(parts, " · ")
}
