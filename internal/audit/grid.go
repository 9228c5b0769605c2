package audit

import (
	"cmp"
	"encoding/csv"
	"fmt"
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
	for _, r := range g.rows {
		out.heads = append(out.heads, first(r.cells))
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
	out.lines(g)
	return out
}

// lines keeps, for a turned grid, the line that each head came from in its text.
func (g *grid) lines(from *grid) {
	for i, r := range from.rows {
		g.heads[i+1] = fmt.Sprintf("%s\x00%d", g.heads[i+1], r.line)
	}
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func (g *grid) upright(cols *Columns) *Table {
	heads, at := make([]head, len(g.heads)), make([]int, len(g.heads))
	found := false
	for i, text := range g.heads {
		text, line, turned := strings.Cut(text, "\x00")
		if turned {
			at[i] = int(number(line))
		}
		g.heads[i] = text
		h, ok := cols.headOf(text, g.sample(i))
		if !ok || h.quantity == "name" {
			continue
		}
		heads[i] = h
		found = found || slices.Contains(measured, h.quantity)
	}
	if !found {
		return nil
	}
	t := &Table{Line: g.line}
	for _, r := range g.rows {
		if row := g.row(r, heads, at, t); row != nil {
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
func (g *grid) row(r gridRow, heads []head, at []int, t *Table) *Row {
	if why := g.shifted(r); why != "" {
		t.Unread = append(t.Unread, Unread{Line: r.line, Why: why})
		return nil
	}
	row := &Row{Line: r.line, Values: map[Quantity]Value{}}
	var names, key []string
	numbers := 0
	for i, cell := range r.cells[:min(len(r.cells), len(heads))] {
		q := heads[i].quantity
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
		v, ok := parseValue(cell, heads[i].unit, q)
		if !ok {
			continue
		}
		v.Line = cmp.Or(at[i], r.line)
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
	g.unread(r, heads, at, t, numbers > 0)
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

// readSeparated reads CSV or TSV with a line of heads.
func readSeparated(text string, cols *Columns) (*Table, error) {
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
			break
		}
		if err != nil {
			return nil, err
		}
		at, _ := r.FieldPos(0)
		if g.heads == nil {
			g.heads, g.line = cells, at
			continue
		}
		g.rows = append(g.rows, gridRow{at, cells})
	}
	return g.table(cols), nil
}
