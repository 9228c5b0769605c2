package audit

import (
	"cmp"
	"encoding/csv"
	"errors"
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
	comma   rune   // between the cells of a row; 0: the grid is Markdown
	decimal []bool // the columns in which a comma is a decimal mark
}

type gridRow struct {
	line  int
	cells []string
	open  bool // its last cell has a quote that is not closed
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
	out := &grid{line: g.line, comma: g.comma, heads: []string{cmp.Or(corner, "name")}}
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
	inMs := slices.ContainsFunc(milliseconds, func(heads []string) bool {
		return !slices.ContainsFunc(heads, func(head string) bool {
			return !slices.Contains(g.heads, head)
		})
	})
	for i, text := range g.heads {
		h, ok := cols.headOf(text, g.sample(i))
		timed, is := headOf(text + " (ms)")
		if inMs && is && kinds[timed.quantity] == aTime && h.unit == "" {
			h, ok = timed, true
		}
		if ok && h.quantity != "name" {
			g.columns[i] = h
			present = present || slices.Contains(measured, h.quantity)
		}
	}
	t := &Table{Line: g.line}
	if !present {
		return nil
	}
	g.repeated(t)
	g.marks()
	for _, r := range g.rows {
		if row := g.row(r, t); row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// repeated drops columns of results that have the same head, because it is unknown which of them
// counts.
func (g *grid) repeated(t *Table) {
	columns := map[string][]int{}
	for i, text := range g.heads {
		if g.columns[i].quantity != "" {
			columns[plain(text)] = append(columns[plain(text)], i)
		}
	}
	for i, text := range g.heads {
		same := columns[plain(text)]
		if len(same) < 2 || same[0] != i {
			continue
		}
		for _, c := range same {
			g.columns[c].quantity = ignored
		}
		t.Unread = append(t.Unread, Unread{Line: cmp.Or(g.lines[i], g.line), Partial: true,
			Reason: fmt.Sprintf("%d columns have the head %q, so none of them is read", len(same),
				short(plain(text)))})
	}
}

// ignored is the quantity of columns that are not read.
const ignored Quantity = "ignored"

// marks finds the columns in which a comma is a decimal mark: the comma of one of its cells cannot
// separate thousands.
func (g *grid) marks() {
	g.decimal = make([]bool, len(g.heads))
	for i := range g.columns {
		for _, r := range g.rows {
			n := numberIn(r.cell(i))
			g.decimal[i] = g.decimal[i] || strings.Count(n, ",") == 1 &&
				(!grouped(n, ",") || strings.Contains(n, "."))
		}
		// 1,234.5 has a decimal point.
		for _, r := range g.rows {
			n := numberIn(r.cell(i))
			g.decimal[i] = g.decimal[i] && !(strings.Contains(n, ",") &&
				strings.LastIndex(n, ".") > strings.LastIndex(n, ","))
		}
	}
}

// numberIn returns the digits and marks at the begin of a cell.
func numberIn(cell string) string {
	m := numberHead.FindStringSubmatch(plain(cell))
	if m == nil {
		return ""
	}
	return groupMarks.Replace(m[2])
}

// noNumber is the usual reason for a cell that cannot be read.
const noNumber = "the cell has no number, or a number without a unit"

// value reads a cell of a column, or returns the reason why it cannot. A number with one comma or
// one point and three digits after it depends on the other cells of its column.
func (g *grid) value(cell string, i int) (Value, string) {
	n := numberIn(cell)
	switch {
	case strings.Contains(n, ".") && !strings.Contains(n, ",") && g.decimal[i] &&
		strings.Count(n, ".") == 1:
		return Value{}, "the cell has a point, but numbers of other cells have a decimal comma"
	case strings.Count(n, ",") != 1 || strings.Contains(n, ".") || !grouped(n, ","):
	case g.decimal[i]:
		cell = strings.Replace(cell, ",", ".", 1)
	case g.comma == ';' || slices.Contains(g.decimal, true):
		return Value{}, "the comma of the cell may be a decimal mark or separate thousands"
	}
	v, ok := parseValue(cell, g.columns[i].unit, g.columns[i].quantity)
	if !ok {
		return Value{}, noNumber
	}
	return v, ""
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
		if q == ignored {
			continue
		}
		if q == "" {
			if keyHead.MatchString(strings.TrimSpace(g.heads[i])) {
				key = append(key, plain(cell))
			}
			if text := plain(cell); text != "" && !isNumber(text) && len(names) < 4 {
				names = append(names, text)
			}
			continue
		}
		v, why := g.value(cell, i)
		if why != "" {
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
	g := &grid{comma: r.Comma}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read as CSV: %w", err)
		}
		pos, _ := r.FieldPos(0)
		if g.heads == nil {
			g.heads, g.line = cells, pos
			continue
		}
		g.rows = append(g.rows, gridRow{line: pos, cells: cells})
	}
	if n := len(g.rows); n > 0 {
		// A quote that is not closed takes everything to the end of the text.
		last := &g.rows[n-1]
		last.open = strings.Contains(last.cells[len(last.cells)-1], "\n") &&
			!strings.HasSuffix(strings.TrimSpace(text), `"`)
	}
	return g.table(cols), nil
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
	for i, cell := range r.cells[:n] {
		// A quoted cell may have several lines, but does not replace other cells, and does not have
		// the separators of further rows.
		hidden := strings.Count(strings.TrimSpace(cell), "\n")
		last := i == n-1 && (n < len(g.heads) || r.open)
		rows := len(g.heads) > 2 && g.comma != 0 &&
			strings.Count(cell, string(g.comma)) == hidden*(len(g.heads)-1)
		if hidden > 0 && (last || rows) {
			return fmt.Sprintf("a quote is not closed and hides the text after it, %s",
				units.Plural(hidden, "line"))
		}
	}
	return ""
}

// unread records the unreadable values of a row; some is whether measured values were read.
func (g *grid) unread(r gridRow, t *Table, some bool) {
	var want, reasons []string
	bad := map[string][]string{} // by reason
	line, empty := 0, true
	for i, h := range g.columns {
		cell := plain(r.cell(i))
		empty = empty && cell == ""
		isMeasured := slices.Contains(measured, h.quantity)
		if isMeasured {
			want = append(want, plain(g.heads[i]))
		}
		_, known := kinds[h.quantity]
		if !known || !isMeasured && !some || nothing.MatchString(cell) {
			continue
		}
		if _, why := g.value(r.cell(i), i); why != "" {
			line = cmp.Or(line, g.lines[i])
			if bad[why] == nil {
				reasons = append(reasons, why)
			}
			bad[why] = append(bad[why], fmt.Sprintf("%s %q", plain(g.heads[i]), short(cell)))
		}
	}
	if empty || some && len(bad) == 0 {
		return
	}
	var parts []string
	for _, why := range reasons {
		parts = append(parts, why+": "+units.Few(bad[why], 2))
	}
	why := strings.Join(parts, "; ")
	if why == "" {
		why = "the row has no value of " + strings.Join(want, ", ")
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
