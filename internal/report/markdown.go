package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
)

// MarkdownOptions select the parts and the layout of the tables.
type MarkdownOptions struct {
	Essential bool     // only the main columns, and the footnotes that they need
	Columns   []string // if set: only columns with these keys, and the names of targets
	Fold      bool     // footnotes and notes below the table are collapsed
	Method    string   // a line on how the numbers were made; see MethodLine
}

// Markdown prints the sheet as GitHub-flavored Markdown, with footnotes as a list of paragraphs.
// Pipe tables have no spanning headings, so each column's heading has its load's name.
func Markdown(w io.Writer, s table.Sheet, o MarkdownOptions) error {
	p := &format.Page{}
	for _, answer := range s.Answers {
		p.Line("**%s**\n", format.Markdown(answer))
	}
	p.Line("%s", format.Markdown(s.Head.String()))
	if s.Tools != "" {
		p.Line("\n%s", format.Markdown(s.Tools))
	}
	var shown []table.Table
	for _, tab := range s.Tables {
		p.Line("")
		if title := tab.Title(); title != "" {
			p.Line("### %s\n", format.Markdown(title))
		}
		switch {
		case len(o.Columns) > 0:
			tab = narrow(tab, columnsNamed(tab, o.Columns))
		case o.Essential:
			tab = narrow(tab, columnsOf(tab, table.Essential))
		}
		shown = append(shown, tab)
		markdownTable(p, tab, o.Fold)
	}
	if o.Method != "" {
		p.Line("\n%s", o.Method)
	}
	plain := func(_, text string) string { return text }
	p.Line("\n%s", format.Markdown(verdictLine(table.CountNumbers(shown), s.Verdicts, plain)))
	if s.Reproduce != "" {
		p.Line("\n```\n$ %s\n```", s.Reproduce)
	}
	return p.To(w)
}

// MethodLine describes in one line how a run's numbers were made, with a link to the page with the
// details. It needs only records: blocks are shuffled, and the ranking metric has tiers.
func MethodLine(s table.Study, link string) string {
	targets, blocks := s.Extent()
	if len(s.Records) == 0 || len(s.Scenarios) == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%s × %s in random order", units.Plural(targets, "target"),
		units.Plural(blocks, s.Scenarios[0].Starts.Repeat()))}
	level := fmt.Sprintf("%g %%", 100*s.Options.Confidence)
	if blocks > 1 {
		parts = append(parts, "medians of trials with "+level+" intervals")
	} else {
		parts = append(parts, "one trial each, so no intervals")
	}
	for _, sc := range s.Scenarios {
		if len(sc.Ranking.Tiers) > 0 && targets > 1 && blocks > 1 {
			parts = append(parts, "tiers by Holm-corrected paired ratios")
			break
		}
	}
	line := format.Markdown(strings.Join(parts, ", "))
	if link != "" {
		line += "; [how the numbers are made](" + link + ")"
	}
	return line + "."
}

// ColumnKeys returns the keys of the columns of all tables, each once, except the names.
func ColumnKeys(s table.Sheet) (keys []string) {
	for _, tab := range s.Tables {
		for _, c := range tab.Columns {
			if c.Role != table.RoleName {
				keys = table.AddNew(keys, c.Key)
			}
		}
	}
	return keys
}

// columnsNamed returns the columns with these keys, in the table's order, and those of names.
func columnsNamed(tab table.Table, keys []string) (out []int) {
	for i, c := range tab.Columns {
		if c.Role == table.RoleName || slices.Contains(keys, c.Key) {
			out = append(out, i)
		}
	}
	return out
}

// narrow returns a table with some of its columns only, and its footnotes renumbered.
func narrow(tab table.Table, retained []int) table.Table {
	out := tab
	out.Columns, out.Rows, out.Footnotes = nil, nil, nil
	for _, i := range retained {
		out.Columns = append(out.Columns, tab.Columns[i])
	}
	out.Notes = slices.DeleteFunc(slices.Clone(tab.Notes), func(n table.Note) bool {
		return !concerns(n, out.Columns)
	})
	notes := make([]table.Footnote, len(tab.Footnotes))
	for i, f := range tab.Footnotes {
		notes[i] = aboutColumns(f, out.Columns)
	}
	number := map[int]int{} // old to new, in reading order
	for _, row := range tab.Rows {
		cells := []table.Cell{}
		for _, i := range retained {
			if i >= len(row.Cells) {
				break // a row with a text instead of cells
			}
			c := row.Cells[i]
			var refs []int
			for _, ref := range c.Refs {
				if len(notes[ref-1]) == 0 {
					continue
				}
				if number[ref] == 0 {
					out.Footnotes = append(out.Footnotes, notes[ref-1])
					number[ref] = len(out.Footnotes)
				}
				refs = append(refs, number[ref])
			}
			slices.Sort(refs)
			c.Refs = refs
			cells = append(cells, c)
		}
		row.Cells = cells
		out.Rows = append(out.Rows, row)
	}
	if table.CountNumbers([]table.Table{out}).Unknown == 0 {
		out.Notes = slices.DeleteFunc(out.Notes, func(n table.Note) bool {
			return n.Kind == table.NoteUnknowns
		})
	}
	return out
}

// concerns reports whether a table's note is about some of these columns, or about all of it.
func concerns(n table.Note, columns []table.Column) bool {
	shows := func(role table.Role) bool {
		return slices.ContainsFunc(columns, func(c table.Column) bool { return c.Role == role })
	}
	switch n.Kind {
	case table.NoteRatios:
		return shows(table.RoleRatio)
	case table.NoteStallsInSlices, table.NoteStallsInWindows, table.NoteStallsRemain,
		table.NoteStallsMissing, table.NoteDiscards, table.NoteStallsReason, table.NoteEqualRate:
		return slices.ContainsFunc(columns, table.Column.Percentile)
	case table.NoteTiers, table.NoteTiersOfOne, table.NoteTiersPlan:
		return shows(table.RoleTier)
	case table.NoteLackInSome, table.NoteNoneHeldInSome:
		about, _ := n.Args[0].(table.Columns)
		return slices.ContainsFunc(about, func(c table.Column) bool {
			return slices.Contains(columns, c)
		})
	}
	return true
}

// aboutColumns returns a footnote without what is only about other columns.
func aboutColumns(f table.Footnote, columns []table.Column) (out table.Footnote) {
	for _, note := range f {
		ofLoad := func(c table.Column) bool { return c.Group.Load == note.Load }
		if note.Load != "" && !slices.ContainsFunc(columns, ofLoad) {
			continue
		}
		if note.Kind == table.NoteMayBeOff {
			offs, _ := note.Args[1].(table.Offs)
			offs = slices.DeleteFunc(slices.Clone(offs), func(bound table.Off) bool {
				return !slices.ContainsFunc(columns, func(c table.Column) bool {
					return c.Key == bound.Key
				})
			})
			if len(offs) == 0 {
				continue
			}
			note.Args = []any{note.Args[0], offs}
		}
		shown := func(c table.Column) bool { return slices.Contains(columns, c) }
		if len(note.Columns) == 0 || slices.ContainsFunc(note.Columns, shown) {
			out = append(out, note)
		}
	}
	return out
}

func markdownTable(p *format.Page, tab table.Table, fold bool) {
	if len(tab.Columns) == 0 {
		return
	}
	var heads []string
	var aligns []format.Align
	for _, c := range tab.Columns {
		heads = append(heads, c.FullHeading())
		aligns = append(aligns, c.Align())
	}
	var rows [][]string
	for _, row := range tab.Rows {
		rows = append(rows, markdownRow(row))
	}
	p.WriteString(format.Pipes(heads, rows, aligns...))
	for _, text := range loadLegend(tab) {
		p.Line("\n%s", format.Markdown(text))
	}
	footnotes(p, tab, fold)
}

func footnotes(p *format.Page, tab table.Table, fold bool) {
	fold = fold && len(tab.Footnotes)+len(tab.Notes) > 0
	if fold { // Markdown continues inside after the blank line
		p.Line("\n<details><summary>%s</summary>", foldedWords(tab))
	}
	paragraph := "\n" // a paragraph each, or a list if folded
	if fold {
		paragraph = "- "
		p.Line("")
	}
	for i, note := range tab.Footnotes {
		p.Line("%s%s %s", paragraph, format.Mark(i+1), format.Markdown(note.String()))
	}
	for _, note := range tab.Notes {
		p.Line("%s%s", paragraph, format.Markdown(note.String()))
	}
	if fold {
		p.Line("\n</details>")
	}
}

// foldedWords names the contents of the collapsed part, so that readers know of findings.
func foldedWords(tab table.Table) string {
	if n := len(tab.Footnotes); n > 0 {
		return units.Plural(n, "footnote") + ": findings, and data excluded from results"
	}
	return "Notes"
}

func markdownRow(row table.Row) (cells []string) {
	for _, c := range row.Cells {
		cells = append(cells, c.Text()+format.Marks(c.Refs))
	}
	if row.Span.Is() {
		cells = append(cells, row.Span.String())
	}
	return cells
}

// loadLegend explains the short names of loads in the headings, in a sentence.
func loadLegend(tab table.Table) []string {
	var groups []table.Group
	for _, c := range tab.Columns {
		if c.Group.Kind == table.GroupLoad {
			groups = table.AddNew(groups, c.Group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	var headings []string
	for _, g := range groups {
		headings = append(headings, g.Heading())
	}
	return []string{"Loads: " + strings.Join(headings, "; ") + "."}
}

// Update replaces the text between the lines `<!-- prony:begin NAME -->` and `<!-- prony:end NAME
// -->` in a Markdown file with section, and keeps every other byte. It fails unless each mark
// occurs once, in this order, because a guess could destroy the file.
func Update(markdown []byte, name string, section []byte) ([]byte, error) {
	begin, end := "<!-- prony:begin "+name+" -->", "<!-- prony:end "+name+" -->"
	text := string(markdown)
	for _, mark := range []string{begin, end} {
		switch n := strings.Count(text, mark); {
		case n == 0:
			return nil, fmt.Errorf("update section %q: the mark %s is missing: add both marks at "+
				"the place for the table", name, mark)
		case n > 1:
			return nil, fmt.Errorf("update section %q: the mark %s occurs %d times: keep only "+
				"one of each mark",
				name, mark, n)
		}
	}
	from, to := strings.Index(text, begin)+len(begin), strings.Index(text, end)
	if to < from {
		return nil, fmt.Errorf("update section %q: its end mark is before its begin mark", name)
	}
	inside := strings.Trim(string(section), "\n")
	return []byte(text[:from] + "\n" + inside + "\n" + text[to:]), nil
}
