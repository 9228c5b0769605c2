package audit

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strings"

	"prony/internal/pattern"
)

// grid is a table as it is printed: heads, then rows of cells.
type grid struct {
	heads []string
	line  int // of the heads
	rows  []gridRow

	lines []int  // of each column in the text, where the grid was turned; 0: its row's
	of    []head // what each column holds
}

type gridRow struct {
	line  int
	cells []string
}

// A column of ratios to one of the rows: "vs java-http", with 97.3% or 1.02x in its cells.
var (
	against   = pattern.New(`(?i)^(vs\.?|versus|relative to|compared (to|with)) .+`)
	ratioCell = pattern.New(`^[\d.,]+\s*[%x×]$`)
)

// keyHead names what must be equal for rows to be compared.
var keyHead = pattern.New(
	`(?i)^(scenario|test|endpoint|benchmark|route|url|path|workload|payload|protocol|profile|` +
		`case)s?$`)

var (
	failuresBeside = pattern.New(`\(\+?\s*([\d.,]+)\s*(?:failures|errors|failed)/s(?:ec)?\)`)
	measured       = []Quantity{Rate, Mean, P50, P90, P95, P99, P999, Max, IterationRate, ByteRate}
)

// table makes rows of a grid, whichever way it lies; nil when it holds no results. A table without
// rows has heads of results, and lines of which none could be read.
func (g *grid) table(cols *Columns) *Table {
	cols.meet(g.heads...)
	t := g.upright(cols)
	if t != nil && len(t.Rows) > 0 {
		return t
	}
	turned := g.turned()
	if other := turned.upright(cols); other != nil && len(other.Rows) > 0 {
		cols.meet(turned.heads...)
		return other
	}
	return t
}

// turned is the grid with rows for columns, for tables that list metrics downwards.
func (g *grid) turned() *grid {
	out := &grid{line: g.line, heads: []string{cmp.Or(first(g.heads), "name")}}
	out.lines = []int{0}
	for _, r := range g.rows {
		out.heads, out.lines = append(out.heads, first(r.cells)), append(out.lines, r.line)
	}
	for i := 1; i < len(g.heads); i++ {
		row := gridRow{line: g.line, cells: []string{g.heads[i]}}
		for _, r := range g.rows {
			cell := ""
			if i < len(r.cells) {
				cell = r.cells[i]
			}
			row.cells = append(row.cells, cell)
		}
		out.rows = append(out.rows, row)
	}
	return out
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func (g *grid) upright(cols *Columns) *Table {
	g.of = make([]head, len(g.heads))
	if g.lines == nil {
		g.lines = make([]int, len(g.heads))
	}
	found := false
	for i, text := range g.heads {
		if h, ok := cols.headOf(text, g.sample(i)); ok && h.quantity != "name" {
			g.of[i] = h
			found = found || slices.Contains(measured, h.quantity)
		}
	}
	if !found {
		return nil
	}
	t := &Table{Line: g.line}
	for _, r := range g.rows {
		if row := g.row(r, t); row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// sample is the first cell of a column that holds a number.
func (g *grid) sample(i int) string {
	for _, r := range g.rows {
		if i < len(r.cells) && numberHead.MatchString(plain(r.cells[i])) {
			return r.cells[i]
		}
	}
	return ""
}

// row reads one row; nil when no cell of it is a measured number. What it cannot read it notes
// with the table.
func (g *grid) row(r gridRow, t *Table) *Row {
	if why := g.shifted(r); why != "" {
		t.Unread = append(t.Unread, Unread{Line: r.line, Why: why})
		return nil
	}
	row := &Row{Line: r.line, Values: map[Quantity]Value{}}
	var names, key []string
	numbers := 0
	for i, cell := range r.cells[:min(len(r.cells), len(g.of))] {
		q := g.of[i].quantity
		if q == "" {
			_, isNumber := parseValue(cell, "", Requests)
			if keyHead.MatchString(strings.TrimSpace(g.heads[i])) {
				key = append(key, plain(cell))
			}
			if text := plain(cell); text != "" && !isNumber && len(names) < 4 {
				names = append(names, text)
			}
			continue
		}
		v, ok := parseValue(cell, g.of[i].unit, q)
		if !ok {
			continue
		}
		v.Line = cmp.Or(g.lines[i], r.line)
		row.Values[q] = v
		if slices.Contains(measured, q) {
			numbers++
		}
		t.spread = t.spread || strings.Contains(cell, "±") || q == Runs || q == rateWithSpread
		if m := failuresBeside.FindStringSubmatch(cell); m != nil {
			if f, ok := parseValue(m[1], "", ErrorRate); ok {
				f.Line = v.Line
				row.Values[ErrorRate] = f
			}
		}
	}
	g.unread(r, t, numbers > 0)
	if numbers == 0 {
		return nil
	}
	for _, q := range []Quantity{Connections, Users, Offered} {
		if v, ok := row.Values[q]; ok {
			key = append(key, string(q)+" "+v.Text)
		}
	}
	row.Name, row.Key = strings.Join(names, " "), strings.Join(key, ", ")
	return row
}

// readSeparated reads CSV or TSV with a line of heads; nil when it is none.
func readSeparated(text string, cols *Columns) *Table {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace = -1, true, true
	line, _, _ := strings.Cut(text, "\n")
	for _, mark := range []rune{'\t', ';'} {
		if strings.Count(line, string(mark)) > strings.Count(line, ",") {
			r.Comma, r.TrimLeadingSpace = mark, false
		}
	}
	g := &grid{}
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return g.table(cols)
		}
		if err != nil {
			return nil
		}
		at, _ := r.FieldPos(0)
		if g.heads == nil {
			g.heads, g.line = cells, at
			continue
		}
		g.rows = append(g.rows, gridRow{at, cells})
	}
}
