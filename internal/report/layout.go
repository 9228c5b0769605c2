package report

import (
	"cmp"
	"strings"

	"prony/internal/print"
	"prony/internal/table"
)

// layout is a choice of columns of a table with their widths. Beside right-aligned numbers the
// footnote marks hang in a gutter of their own, so that digits stay under digits.
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
		text, gutter := print.Columns(tab.Columns[c].Heading), 0
		for _, row := range tab.Rows {
			if c >= len(row.Cells) {
				continue // a row that is said in words
			}
			words, marks := l.cell(row, c)
			text = max(text, print.Columns(words))
			gutter = max(gutter, print.Columns(marks))
		}
		l.texts, l.gutters = append(l.texts, text), append(l.gutters, gutter)
	}
	l.widenForGroups()
	return l
}

// cell is a cell's text and what hangs beside it.
func (l *layout) cell(row table.Row, column int) (text, marks string) {
	c := row.Cells[column]
	if l.tab.Columns[column].Align == print.Right {
		return c.Text, print.Marks(c.Refs)
	}
	return c.Text + print.Marks(c.Refs), ""
}

// run is adjacent columns under one group heading.
type run struct{ first, last int }

// runsOf cuts columns where the group heading changes.
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

// widenForGroups lets a group's first column take the room that a long group heading needs.
func (l *layout) widenForGroups() {
	for _, r := range l.runs() {
		heading := print.Columns(l.tab.Columns[l.columns[r.first]].Group)
		if lack := heading - l.span(r); lack > 0 {
			l.texts[r.first] += lack
		}
	}
}

// span is the width of a run of columns.
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
		group := l.tab.Columns[l.columns[r.first]].Group
		groups.WriteString(print.Pad(group, l.span(r), print.Left))
	}
	if g := strings.TrimRight(groups.String(), " "); g != "" {
		t.Line("%s", t.paint(sgrFaint, g))
	}
	t.Line("%s", t.paint(sgrBold, l.row(func(column int) (heading, marks string) {
		return l.tab.Columns[column].Heading, ""
	})))
	for _, row := range l.tab.Rows {
		if row.Span == "" {
			t.Line("%s", l.row(func(column int) (string, string) { return l.cell(row, column) }))
		} else if l.spans {
			t.spanned(l, row)
		}
	}
}

// row is a line of what is in each column, a text and what hangs beside it.
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
			b.WriteString(print.Pad(text, l.texts[k], l.tab.Columns[l.columns[k]].Align))
			b.WriteString(print.Pad(marks, l.gutters[k], print.Left))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// spanned prints a row that has words in place of numbers.
func (t *texter) spanned(l layout, row table.Row) {
	var b strings.Builder
	indent := 0
	for k := range nameCount {
		cell := row.Cells[l.columns[k]]
		align := l.tab.Columns[l.columns[k]].Align
		b.WriteString(print.Pad(cell.Text, l.texts[k]+l.gutters[k], align))
		b.WriteString(gap)
		indent += l.texts[k] + l.gutters[k] + len(gap)
	}
	width := max(cmp.Or(t.o.Width, print.Width), indent+minSpan)
	t.Line("%s", print.Wrap(b.String(), row.Span, width, indent))
}

// minSpan is the least width that words beside a name are wrapped to.
const minSpan = 24
