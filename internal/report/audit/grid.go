package audit

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"prony.example/internal/base/format"
	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/units"
)

// grid is a table as printed: heads, then rows of cells.
type grid struct {
	heads []string
	line  int // of the heads
	rows  []gridRow

	lines   []int  // the line of each column, if the grid was turned; 0: its row's
	columns []head // the contents of each column
}

type gridRow struct {
	line  int
	cells []string
}

func (r gridRow) cell(i int) string {
	if i < len(r.cells) {
		return r.cells[i]
	}
	return ""
}

// A column of ratios to one of the rows: "vs java-http", with 97.3% or 1.02x in its cells.
var (
	against   = lazyregexp.New(`(?i)^(vs\.?|versus|relative to|compared (to|with)) .+`)
	ratioCell = lazyregexp.New(`^[\d.,]+\s*[%x×]$`)
)

// keyHead matches the heads of columns that must be equal for rows to be compared.
var keyHead = lazyregexp.New(
	`(?i)^(scenario|test|endpoint|benchmark|route|url|path|workload|payload|protocol|profile|` +
		`case)s?$`)

var (
	failuresBeside = lazyregexp.New(`\(\+?\s*([\d.,]+)\s*(?:failures|errors|failed)/s(?:ec)?\)`)
	measured       = []Quantity{Rate, Mean, P50, P90, P95, P99, P999, Max, IterationRate, ByteRate}
)

// table converts a grid to rows, in either orientation; nil if it has no results. A table without
// rows has heads of results, but none of its lines could be read.
func (g *grid) table(cols *Columns) *Table {
	cols.meet(g.heads...)
	t := g.upright(cols)
	if t != nil && len(t.Rows) > 0 {
		return t
	}
	turned := g.turned()
	if peer := turned.upright(cols); peer != nil && len(peer.Rows) > 0 {
		cols.meet(turned.heads...)
		return peer
	}
	return t
}

// turned returns the transposed grid, for tables that list metrics downwards.
func (g *grid) turned() *grid {
	corner := gridRow{cells: g.heads}.cell(0)
	out := &grid{line: g.line, heads: []string{cmp.Or(corner, "name")}}
	out.lines = []int{0}
	for _, r := range g.rows {
		out.heads, out.lines = append(out.heads, r.cell(0)), append(out.lines, r.line)
	}
	for i := 1; i < len(g.heads); i++ {
		row := gridRow{line: g.line, cells: []string{g.heads[i]}}
		for _, r := range g.rows {
			row.cells = append(row.cells, r.cell(i))
		}
		out.rows = append(out.rows, row)
	}
	return out
}

func (g *grid) upright(cols *Columns) *Table {
	g.columns = make([]head, len(g.heads))
	if g.lines == nil {
		g.lines = make([]int, len(g.heads))
	}
	present := false
	for i, text := range g.heads {
		if h, ok := cols.headOf(text, g.sample(i)); ok && h.quantity != "name" {
			g.columns[i] = h
			present = present || slices.Contains(measured, h.quantity)
		}
	}
	if !present {
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

// sample returns the first cell of a column with a number.
func (g *grid) sample(i int) string {
	for _, r := range g.rows {
		if cell := r.cell(i); numberHead.MatchString(plain(cell)) {
			return cell
		}
	}
	return ""
}

// row reads one row; nil if no cell of it is a measured number. It records unreadable cells with
// the table.
func (g *grid) row(r gridRow, t *Table) *Row {
	if why := g.shifted(r); why != "" {
		t.Unread = append(t.Unread, Unread{Line: r.line, Reason: why})
		return nil
	}
	row := &Row{Line: r.line, Values: map[Quantity]Value{}}
	var names, key []string
	numbers := 0
	for i, cell := range r.cells[:min(len(r.cells), len(g.columns))] {
		q := g.columns[i].quantity
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
		v, ok := parseValue(cell, g.columns[i].unit, q)
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

// readSeparated reads CSV or TSV with a line of heads; nil for other texts.
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
			return g.table(cols), nil
		}
		if err != nil {
			return nil, nil
		}
		pos, _ := r.FieldPos(0)
		if g.heads == nil {
			g.heads, g.line = cells, pos
			continue
		}
		g.rows = append(g.rows, gridRow{pos, cells})
	}
}

// Unread is a line of a table of results that was left out, or a value in it.
type Unread struct {
	Line    int    `json:"line"`
	Table   string `json:"table,omitempty"` // as in a Case
	Reason  string `json:"reason"`
	Partial bool   `json:"partial"` // only a value; the rest of the line was read
}

// nothing matches the text of cells without a value.
var nothing = lazyregexp.New(
	`(?i)^([-–—/?.*]*|n/?a|none|null|nil|nan|tb[ad]|not tested|skipped)$`)

// shifted returns why the cells of a row cannot be assigned to heads; "" if they can.
func (g *grid) shifted(r gridRow) string {
	n := len(r.cells)
	for n > len(g.heads) && strings.TrimSpace(r.cells[n-1]) == "" {
		n--
	}
	if n > len(g.heads) {
		return fmt.Sprintf("the row has %d cells, but the table has %d column heads",
			n, len(g.heads))
	}
	if n > 0 && n < len(g.heads) {
		// A quoted cell may have several lines, but does not replace other cells.
		if hidden := strings.Count(strings.TrimSpace(r.cells[n-1]), "\n"); hidden > 0 {
			return fmt.Sprintf("a quote is not closed and hides the text after it, %s",
				units.Plural(hidden, "line"))
		}
	}
	return ""
}

// unread records the unreadable measured values of a row; some is whether other values were read.
func (g *grid) unread(r gridRow, t *Table, some bool) {
	var want, bad []string
	line, empty := 0, true
	for i, h := range g.columns {
		cell := plain(r.cell(i))
		empty = empty && cell == ""
		if !slices.Contains(measured, h.quantity) {
			continue
		}
		want = append(want, plain(g.heads[i]))
		if _, ok := parseValue(cell, h.unit, h.quantity); !ok && !nothing.MatchString(cell) {
			line = cmp.Or(line, g.lines[i])
			bad = append(bad, fmt.Sprintf("%s %q", plain(g.heads[i]), short(cell)))
		}
	}
	if empty || some && bad == nil {
		return
	}
	why := "the row has no value of " + strings.Join(want, ", ")
	if bad != nil {
		why = "the cell has no number, or a number without a unit: " + units.Few(bad, 2)
	}
	if line > 0 { // a transposed table: its columns are the rows
		why = fmt.Sprintf("column %q: %s", short(plain(r.cell(0))), why)
	}
	t.Unread = append(t.Unread, Unread{Line: cmp.Or(line, r.line), Reason: why, Partial: some})
}

// short shortens the quoted text of a cell.
func short(text string) string {
	const most = 30
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// unreadShown is the number of unreadable lines that are printed; JSON has them all.
const unreadShown = 5

// none returns the error of tables without a readable line.
func none(unread []Unread) error {
	var lines []string
	for _, u := range unread {
		lines = append(lines, fmt.Sprintf("line %d: %s", u.Line, u.Reason))
	}
	return fmt.Errorf("the table has column heads of results, but no line that audit can read\n  "+
		"%s",
		strings.Join(units.First(lines, unreadShown), "\n  "))
}

// writeUnread prints the omissions before the findings.
func (r *Result) writeUnread(p *format.Page) {
	values := 0
	for _, u := range r.Unread {
		if u.Partial {
			values++
		}
	}
	var parts []string
	if lines := len(r.Unread) - values; lines > 0 {
		parts = append(parts, units.Plural(lines, "line"))
	}
	if values > 0 {
		parts = append(parts, "values in "+units.Plural(values, "other line"))
	}
	if parts == nil {
		return
	}
	p.Line("  could not read %s:", strings.Join(parts, " and "))
	for i, u := range r.Unread {
		if i == unreadShown {
			p.Line("    and %d more", len(r.Unread)-i)
			break
		}
		p.Line("%s", format.Wrap(fmt.Sprintf("    %s:%d: ", r.File, u.Line), u.Reason, wide, 6))
	}
}

// unread returns everything that could not be read, by line.
func (d *Document) unread() []Unread {
	out := slices.Clone(d.Unread)
	for _, t := range d.Tables {
		for _, u := range t.Unread {
			u.Table = t.Title
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b Unread) int { return cmp.Compare(a.Line, b.Line) })
	return out
}
