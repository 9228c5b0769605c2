package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"prony.example/internal/base/format"
	"prony.example/record"
)

// TextOptions fit the text to its output.
type TextOptions struct {
	Width int  // columns of the terminal; 0 is 100
	Color bool // ANSI colors; no information is in colors alone
	All   bool // prints also the fit checks in full, and why each check matters
}

const (
	widthDefault = 100
	widthMin     = 40 // on narrower terminals, lines are longer than the terminal
)

// marks are the signs and colors (ECMA-48 §8.3.117, SGR) of the grades.
var marks = map[string]struct{ sign, sgr string }{
	record.Fit:      {"OK", "32"},
	record.Doubtful: {"!", "33"},
	record.Unfit:    {"✗", "31"},
	record.Unknown:  {"?", "2"},
}

// Text prints a grading for a terminal: a line for each check with its observed and required
// values, the worst first, then the fixes.
func Text(w io.Writer, g record.Grading, o TextOptions) error {
	o.Width = cmp.Or(o.Width, widthDefault)
	o.Width = max(o.Width, widthMin)
	t := texter{o: o}
	for _, c := range g.Checks {
		t.name = max(t.name, format.Columns(c.Name))
	}
	t.head(g)
	var fine []string
	for _, grade := range []string{record.Unfit, record.Doubtful, record.Unknown, record.Fit} {
		for _, c := range g.Checks {
			switch {
			case c.Grade != grade:
			case grade == record.Fit && !o.All:
				fine = append(fine, c.Name)
			default:
				t.check(c)
			}
		}
	}
	if len(fine) > 0 {
		t.wrapped("  "+t.mark(record.Fit), 5, "fine: "+strings.Join(fine, ", "))
	}
	t.fixes(g.Checks)
	return t.To(w)
}

type texter struct {
	format.Page
	o    TextOptions
	name int // columns of the longest name
}

func (t *texter) paint(sgr, text string) string { return format.Paint(t.o.Color, sgr, text) }

// mark returns a grade's sign in two columns.
func (t *texter) mark(grade string) string {
	m := marks[grade]
	return t.paint(m.sgr, fmt.Sprintf("%-2s", m.sign))
}

func (t *texter) head(g record.Grading) {
	n := map[string]int{}
	for _, c := range g.Checks {
		n[c.Grade]++
	}
	var counts []string
	for _, grade := range []string{record.Unfit, record.Doubtful, record.Unknown, record.Fit} {
		if n[grade] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n[grade], grade))
		}
	}
	t.wrapped("This host is", 0, fmt.Sprintf("%s for measurements: %s.",
		t.paint("1;"+marks[g.Grade].sgr, g.Grade), strings.Join(counts, ", ")))
	t.WriteString("\n")
}

// check prints a line of sign, name, observed and required value, and with All also its reason and
// source.
func (t *texter) check(c record.Check) {
	indent := 2 + 2 + 1 + t.name + 2
	text := c.Observed
	objects := c.Grade == record.Doubtful || c.Grade == record.Unfit
	if objects {
		text += "; expected: " + c.Expected
	}
	name := c.Name + strings.Repeat(" ", t.name-format.Columns(c.Name)+1)
	t.wrapped("  "+t.mark(c.Grade)+" "+name, indent, text)
	if t.o.All {
		blank := strings.Repeat(" ", indent-1)
		if !objects {
			t.wrapped(blank, indent, "expected: "+c.Expected)
		}
		t.wrapped(blank, indent, c.Impact+" ("+c.Source+")")
	}
}

// fixes lists what to do, the worst first.
func (t *texter) fixes(checks []record.Check) {
	begun := false
	for _, grade := range []string{record.Unfit, record.Doubtful} {
		for _, c := range checks {
			if c.Grade != grade || c.Fix == "" {
				continue
			}
			if !begun {
				t.WriteString("\nWhat to do:\n")
				begun = true
			}
			t.wrapped("  "+t.mark(grade)+" "+t.paint("1", c.Name+":"), 7, c.Fix)
			if !t.o.All {
				t.wrapped("      ", 7, "why: "+c.Impact)
			}
		}
	}
}

// wrapped prints a text after the beginning of its line, and indents further lines.
func (t *texter) wrapped(begin string, indent int, text string) {
	t.Line("%s", format.Wrap(begin+" ", text, t.o.Width, indent))
}
