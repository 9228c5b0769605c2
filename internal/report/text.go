package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/record"
)

// TextOptions fit the text to its output.
type TextOptions struct {
	Width int  // columns of the terminal; 0: format.Width
	Color bool // ANSI colors; no information depends on color alone
	// Brief leaves out notes on the method, and ends with the command that prints them, if there
	// are any; empty: all notes.
	Brief string
}

// gap is the space between two columns; groups have one space more.
const gap = "  "

// Text prints the sheet for a terminal. A table that is too wide loses its Extra columns first,
// with a note; if that is not enough, its groups of columns are printed below each other, all of
// them.
func Text(w io.Writer, s table.Sheet, o TextOptions) error {
	t := texter{o: o}
	for _, answer := range s.Answers {
		t.prose(t.paint(sgrBold, answer), 0)
	}
	if len(s.Answers) > 0 {
		t.Line("")
	}
	t.prose(t.paint(sgrBold, s.Head.String()), 0)
	if s.Tools != "" {
		t.prose(t.paint(sgrFaint, s.Tools), 0)
	}
	for _, tab := range s.Tables {
		t.Line("")
		t.table(tab)
	}
	t.Line("")
	t.prose(verdictLine(s.Numbers, s.Verdicts, t.grade), 0)
	if s.Reproduce != "" {
		t.Line("reproduce  %s", s.Reproduce)
	}
	if s.Report != "" {
		t.Line("report     %s", s.Report)
	}
	if t.skipped {
		t.Line("method     %s", o.Brief)
	}
	return t.To(w)
}

type texter struct {
	format.Page
	o       TextOptions
	skipped bool // notes on the method
}

// Select Graphic Rendition parameters, ECMA-48 §8.3.117.
const (
	sgrBold   = "1"
	sgrFaint  = "2"
	sgrRed    = "31"
	sgrGreen  = "32"
	sgrYellow = "33"
)

func (t *texter) paint(sgr, text string) string { return format.Paint(t.o.Color, sgr, text) }

func (t *texter) grade(grade, text string) string {
	switch grade {
	case record.Valid:
		return t.paint(sgrGreen, text)
	case record.Suspect:
		return t.paint(sgrYellow, text)
	}
	return t.paint(sgrRed, text)
}

// prose prints a sentence, wrapped; continuation lines have this indent.
func (t *texter) prose(text string, indent int) {
	t.Line("%s", format.Wrap("", text, cmp.Or(t.o.Width, format.Width), indent))
}

func (t *texter) table(tab table.Table) {
	if title := tab.Title(); title != "" {
		t.Line("%s", t.paint(sgrBold, title))
		t.Line("")
	}
	parts := t.parts(tab)
	for i, part := range parts {
		if i > 0 {
			t.Line("")
		}
		t.grid(part)
	}
	if remaining := leftOut(tab, parts); len(remaining) > 0 {
		t.Line("")
		t.prose("Columns that do not fit: "+strings.Join(remaining, ", ")+".", 0)
	}
	if len(tab.Footnotes) > 0 {
		t.Line("")
	}
	for i, note := range tab.Footnotes {
		t.prose(format.Mark(i+1)+" "+note.String(), 2)
	}
	notes := tab.Notes
	if t.o.Brief != "" {
		notes = slices.DeleteFunc(slices.Clone(notes), table.Note.OnMethod)
	}
	t.skipped = t.skipped || len(notes) < len(tab.Notes)
	if len(notes) > 0 {
		t.Line("")
	}
	for _, note := range notes {
		t.prose(note.String(), 0)
	}
}

// parts fits the table to the terminal: complete, without its extra columns, or in groups.
func (t *texter) parts(tab table.Table) []layout {
	every, lean := columnsOf(tab, table.Extra), columnsOf(tab, table.Detail)
	for _, columns := range [][]int{every, lean} {
		if l := newLayout(tab, columns); t.fits(l) {
			return []layout{l}
		}
	}
	parts := t.stack(tab, every)
	if slices.ContainsFunc(parts, func(l layout) bool { return !t.fits(l) }) {
		parts = t.stack(tab, lean)
	}
	return parts
}

func (t *texter) fits(l layout) bool { return l.width() <= cmp.Or(t.o.Width, format.Width) }

// columnsOf returns the columns of a table up to a weight.
func columnsOf(tab table.Table, weight int) (out []int) {
	for i, c := range tab.Columns {
		if c.Weight <= weight {
			out = append(out, i)
		}
	}
	return out
}

// leftOut returns the names of the columns that do not fit the terminal.
func leftOut(tab table.Table, parts []layout) []string {
	var names []string
	for i, c := range tab.Columns {
		shown := func(l layout) bool { return slices.Contains(l.columns, i) }
		if !slices.ContainsFunc(parts, shown) {
			names = append(names, c.FullHeading())
		}
	}
	return names
}

// nameCount is the number of columns at the left that name the row, repeated in every part.
const nameCount = 2

// stack places as many groups side by side as fit, and the rest below, with the names repeated.
func (t *texter) stack(tab table.Table, columns []int) []layout {
	names := columns[:nameCount]
	var parts []layout
	current := newLayout(tab, names)
	remaining := columns[nameCount:]
	for _, r := range runsOf(tab, remaining) {
		group := remaining[r.first : r.last+1]
		wider := newLayout(tab, slices.Concat(current.columns, group))
		if len(current.columns) > nameCount && !t.fits(wider) {
			parts = append(parts, current)
			wider = newLayout(tab, slices.Concat(names, group))
		}
		current = wider
	}
	for i := range parts {
		parts[i].spans = false // rows without numbers are printed once, under the last part
	}
	return append(parts, current)
}

// layout is a selection of columns of a table with their widths. Right-aligned numbers have their
// footnote marks in a separate gutter, so that digits align.
type layout struct {
	tab     table.Table
	columns []int
	texts   []int // width of each column's text
	gutters []int // width of each column's footnote marks
	spans   bool  // whether rows without numbers are printed
}

func newLayout(tab table.Table, columns []int) layout {
	l := layout{tab: tab, columns: columns, spans: true}
	for _, c := range columns {
		text, gutter := format.Columns(tab.Columns[c].Heading()), 0
		for _, row := range tab.Rows {
			if c >= len(row.Cells) {
				continue // a row with a text instead of cells
			}
			words, marks := l.cell(row, c)
			text = max(text, format.Columns(words))
			gutter = max(gutter, format.Columns(marks))
		}
		l.texts, l.gutters = append(l.texts, text), append(l.gutters, gutter)
	}
	l.widenForGroups()
	return l
}

// cell returns a cell's text and the marks in its gutter.
func (l *layout) cell(row table.Row, column int) (text, marks string) {
	c := row.Cells[column]
	if l.tab.Columns[column].Align() == format.Right {
		return c.Text(), format.Marks(c.Refs)
	}
	return c.Text() + format.Marks(c.Refs), ""
}

// run is a range of adjacent columns under one group heading.
type run struct{ first, last int }

// runsOf splits columns at changes of the group heading.
func runsOf(tab table.Table, columns []int) (runs []run) {
	for i, c := range columns {
		if i > 0 && tab.Columns[columns[i-1]].Group == tab.Columns[c].Group {
			runs[len(runs)-1].last = i
			continue
		}
		runs = append(runs, run{i, i})
	}
	return runs
}

func (l *layout) runs() []run { return runsOf(l.tab, l.columns) }

// widenForGroups widens a group's first column to fit a long group heading.
func (l *layout) widenForGroups() {
	for _, r := range l.runs() {
		heading := format.Columns(l.tab.Columns[l.columns[r.first]].Group.Heading())
		if lack := heading - l.span(r); lack > 0 {
			l.texts[r.first] += lack
		}
	}
}

// span returns the width of a run of columns.
func (l *layout) span(r run) int {
	n := 0
	for i := r.first; i <= r.last; i++ {
		if i > r.first {
			n += len(gap)
		}
		n += l.texts[i] + l.gutters[i]
	}
	return n
}

func (l *layout) width() int {
	n := 0
	for i, r := range l.runs() {
		if i > 0 {
			n += len(gap) + 1
		}
		n += l.span(r)
	}
	return n
}

// grid prints headings and rows.
func (t *texter) grid(l layout) {
	var groups strings.Builder
	for i, r := range l.runs() {
		if i > 0 {
			groups.WriteString(gap + " ")
		}
		group := l.tab.Columns[l.columns[r.first]].Group.Heading()
		groups.WriteString(format.Pad(group, l.span(r), format.Left))
	}
	if g := strings.TrimRight(groups.String(), " "); g != "" {
		t.Line("%s", t.paint(sgrFaint, g))
	}
	t.Line("%s", t.paint(sgrBold, l.row(func(column int) (heading, marks string) {
		return l.tab.Columns[column].Heading(), ""
	})))
	for _, row := range l.tab.Rows {
		if !row.Span.Is() {
			t.Line("%s", l.row(func(column int) (string, string) { return l.cell(row, column) }))
		} else if l.spans {
			t.spanned(l, row)
		}
	}
}

// row returns a line of all columns, each with a text and the marks in its gutter.
func (l *layout) row(in func(column int) (text, marks string)) string {
	var b strings.Builder
	for i, r := range l.runs() {
		if i > 0 {
			b.WriteString(gap + " ")
		}
		for k := r.first; k <= r.last; k++ {
			if k > r.first {
				b.WriteString(gap)
			}
			text, marks := in(l.columns[k])
			b.WriteString(format.Pad(text, l.texts[k], l.tab.Columns[l.columns[k]].Align()))
			b.WriteString(format.Pad(marks, l.gutters[k], format.Left))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// spanned prints a row with a text instead of numbers.
func (t *texter) spanned(l layout, row table.Row) {
	var b strings.Builder
	indent := 0
	for k := range nameCount {
		cell := row.Cells[l.columns[k]]
		align := l.tab.Columns[l.columns[k]].Align()
		b.WriteString(format.Pad(cell.Text(), l.texts[k]+l.gutters[k], align))
		b.WriteString(gap)
		indent += l.texts[k] + l.gutters[k] + len(gap)
	}
	width := max(cmp.Or(t.o.Width, format.Width), indent+minSpan)
	t.Line("%s", format.Wrap(b.String(), row.Span.String(), width, indent))
}

// minSpan is the minimum width of a text next to a name.
const minSpan = 24
