package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"prony/internal/pattern"
	"prony/internal/print"
	"prony/internal/unit"
)

// Unread is a line of a table of results that was left out, or a value in it.
type Unread struct {
	Line    int    `json:"line"`
	Table   string `json:"table,omitempty"` // as of a Case
	Why     string `json:"why"`
	Partial bool   `json:"partial"` // only a value; the rest of the line was read
}

// nothing is what stands where there is no value, and says so.
var nothing = pattern.New(
	`(?i)^([-–—/?.*]*|n/?a|none|null|nil|nan|tb[ad]|not tested|skipped)$`)

// shifted says why nobody knows which cell of a row belongs to which head; empty: it is known.
func (g *grid) shifted(r gridRow) string {
	n := len(r.cells)
	for n > len(g.heads) && strings.TrimSpace(r.cells[n-1]) == "" {
		n--
	}
	if n > len(g.heads) {
		return fmt.Sprintf("it has %d cells below %d heads", n, len(g.heads))
	}
	if n > 0 && n < len(g.heads) {
		// A quoted cell may have lines of its own, but does not take the place of others.
		if hidden := strings.Count(strings.TrimSpace(r.cells[n-1]), "\n"); hidden > 0 {
			return fmt.Sprintf("a quote is not closed, and hides what follows, %s",
				unit.Plural(hidden, "line"))
		}
	}
	return ""
}

// unread notes the measured values of a row that are none; some says whether others are.
func (g *grid) unread(r gridRow, t *Table, some bool) {
	var wanted, bad []string
	line, empty := 0, true
	for i, h := range g.of {
		cell := ""
		if i < len(r.cells) {
			cell = plain(r.cells[i])
		}
		empty = empty && cell == ""
		if !slices.Contains(measured, h.quantity) {
			continue
		}
		wanted = append(wanted, plain(g.heads[i]))
		if _, ok := parseValue(cell, h.unit, h.quantity); !ok && !nothing.MatchString(cell) {
			line = cmp.Or(line, g.lines[i])
			bad = append(bad, fmt.Sprintf("%s %q", plain(g.heads[i]), short(cell)))
		}
	}
	if empty || some && bad == nil {
		return
	}
	why := "no value of " + strings.Join(wanted, ", ")
	if bad != nil {
		why = "no number, or one without a unit: " + unit.Few(bad, 2)
	}
	if line > 0 { // a table that lies on its side: its columns are the rows
		why = fmt.Sprintf("column %q: %s", short(plain(first(r.cells))), why)
	}
	t.Unread = append(t.Unread, Unread{Line: cmp.Or(line, r.line), Why: why, Partial: some})
}

// short cuts what is quoted from a cell.
func short(text string) string {
	const most = 30
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// unreadShown is how many lines are told of those that could not be read; JSON has them all.
const unreadShown = 5

// none is the error of tables of which no line could be read.
func none(unread []Unread) error {
	var lines []string
	for _, u := range unread {
		lines = append(lines, fmt.Sprintf("line %d: %s", u.Line, u.Why))
	}
	return fmt.Errorf("it has heads of results and no line that could be read\n  %s",
		strings.Join(unit.First(lines, unreadShown), "\n  "))
}

// writeUnread tells what was left out before anything is said of the rest.
func (r *Result) writeUnread(p *print.Page) {
	values := 0
	for _, u := range r.Unread {
		if u.Partial {
			values++
		}
	}
	var parts []string
	if lines := len(r.Unread) - values; lines > 0 {
		parts = append(parts, unit.Plural(lines, "line"))
	}
	if values > 0 {
		parts = append(parts, "values in "+unit.Plural(values, "other line"))
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
		p.Line("%s", print.Wrap(fmt.Sprintf("    %s:%d: ", r.File, u.Line), u.Why, wide, 6))
	}
}

// unread is all that could not be read, by line.
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
