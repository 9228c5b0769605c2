package audit

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
)

// few formats a number of requests under way, which may be fractional.
func few(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(n, 'g', 2, 64)
	}
	return units.Whole(n)
}

func rateText(perS float64) string { return strconv.FormatFloat(perS, 'g', 6, 64) + "/s" }

// percent formats a share with two digits, three from 10 % on.
func percent(share float64) string {
	digits := 2
	switch a := math.Abs(share); {
	case a >= 1:
		return fmt.Sprintf("%.0f %%", share*100)
	case a >= 0.1:
		digits = 3
	}
	return strconv.FormatFloat(share*100, 'g', digits, 64) + " %"
}

// said returns a time as printed if that is short, else with three digits.
func said(v Value) string {
	if strings.ContainsFunc(v.Text, unicode.IsLetter) && len(v.Text) < 9 &&
		!strings.Contains(v.Text, " us") && !strings.Contains(v.Text, " ns") {
		return v.Text
	}
	return units.Duration(v.V)
}

// wide is the width of lines.
const wide = 96

// Write prints a result for people.
func (r *Result) Write(w io.Writer) error {
	p := &format.Page{}
	p.Line("%s: %s, %s in %s", r.File, r.Kind, units.Plural(r.Rows, "result"),
		units.Plural(r.Tables, "table"))
	r.writeUnread(p)
	for _, n := range r.Notes {
		p.Line("  left out: %s", n)
	}
	for i := range r.Findings {
		r.Findings[i].write(p, r)
	}
	if len(r.Unchecked) > 0 {
		p.Line("\nNot checked, because numbers are missing:")
		for _, u := range r.Unchecked {
			fill(p, "  "+u.Rule+": needs ", u.Needs)
		}
	}
	p.Line("\n%s", r.summary())
	return p.To(w)
}

// fill wraps a text after its head.
func fill(p *format.Page, head, text string) { p.Line("%s", format.Wrap(head, text, wide, 4)) }

func (r *Result) summary() string {
	var parts []string
	for _, s := range severities {
		parts = append(parts, units.Plural(r.Count(s), string(s)))
	}
	return fmt.Sprintf("%s; checked %d of %d rules on %s", strings.Join(parts, ", "), r.Checked,
		r.Rules, units.Plural(r.Rows, "result"))
}

// casesMax bounds the printed places of one finding; JSON has them all.
const casesMax = 8

func (f *Finding) write(p *format.Page, r *Result) {
	p.Line("\n%s: %s", strings.ToUpper(string(f.Severity)), f.Rule)
	for i, c := range f.Cases {
		if i == casesMax {
			p.Line("  and %d more", len(f.Cases)-i)
			break
		}
		location := fmt.Sprintf("  %s:%d: ", r.File, c.Line)
		if r.Tables > 1 && c.Table != "" {
			location += c.Table + ": "
		}
		if c.Row != "" && (r.Rows > 1 || c.Row != c.Table) {
			location += c.Row + ": "
		}
		fill(p, location, c.Arithmetic)
	}
	fill(p, "  means: ", f.Meaning+".")
	fill(p, "  do: ", f.Action+".")
}
