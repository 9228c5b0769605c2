package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"prony/internal/table"
	"prony/internal/unit"
)

// MarkdownOptions fit the tables to where they go.
type MarkdownOptions struct {
	Essential bool   // only the columns that a reader comes for, and the footnotes that they need
	Fold      bool   // footnotes and notes below the table are opened by a click
	Method    string // a line on how the numbers were made; MethodLine has one
}

// Markdown prints the sheet as GitHub-flavoured Markdown, footnotes as a list of paragraphs. Pipe
// tables have no headings that span, so each column carries its load's name.
func Markdown(w io.Writer, s table.Sheet, o MarkdownOptions) error {
	p := &printer{w: w}
	p.line(escapeMarkdown(s.Head))
	if s.Tools != "" {
		p.line()
		p.line(escapeMarkdown(s.Tools))
	}
	for _, tab := range s.Tables {
		p.line()
		if tab.Title != "" {
			p.line("### ", escapeMarkdown(tab.Title))
			p.line()
		}
		if o.Essential {
			tab = essential(tab)
		}
		p.markdownTable(tab, o.Fold)
	}
	if o.Method != "" {
		p.line()
		p.line(o.Method)
	}
	p.line()
	plain := func(_, text string) string { return text }
	p.line(escapeMarkdown(verdictLine(s.Verdicts, plain)))
	if s.Reproduce != "" {
		p.line()
		p.line("```")
		p.line("$ ", s.Reproduce)
		p.line("```")
	}
	return p.err
}

// MethodLine says in one line how a run's numbers were made, with a link to the page that says it
// at length. Records alone say so much: their blocks are shuffled, and what ranks has tiers.
func MethodLine(s table.Study, link string) string {
	var targets []string
	blocks := map[string]bool{}
	for i := range s.Records {
		r := &s.Records[i]
		targets = appendNew(targets, table.RowName(r.Target))
		blocks[fmt.Sprint(r.Run, " ", r.Block)] = true
	}
	if len(targets) == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%s × %s in random order", unit.Plural(len(targets), "target"),
		unit.Plural(len(blocks), "block"))}
	level := fmt.Sprintf("%g %%", 100*s.Options.Confidence)
	if len(blocks) > 1 {
		parts = append(parts, "medians of trials with "+level+" intervals")
	} else {
		parts = append(parts, "a trial each, so no intervals")
	}
	for i := range s.Scenarios {
		if len(s.Scenarios[i].Ranking.Tiers) > 0 && len(targets) > 1 && len(blocks) > 1 {
			parts = append(parts, "tiers by Holm-corrected paired ratios")
			break
		}
	}
	line := escapeMarkdown(strings.Join(parts, ", "))
	if link != "" {
		line += "; [how the numbers are made](" + link + ")"
	}
	return line + "."
}

// essential is a table without the columns that can give way, its footnotes numbered anew.
func essential(tab table.Table) table.Table {
	kept := []int{}
	for i, c := range tab.Columns {
		if c.Weight == table.Essential {
			kept = append(kept, i)
		}
	}
	out := tab
	out.Columns, out.Rows, out.Footnotes = nil, nil, nil
	for _, i := range kept {
		out.Columns = append(out.Columns, tab.Columns[i])
	}
	ratios := func(c table.Column) bool { return strings.HasSuffix(c.Key, "ratio") }
	if !slices.ContainsFunc(out.Columns, ratios) {
		out.Notes = slices.DeleteFunc(slices.Clone(tab.Notes), func(note string) bool {
			return strings.HasPrefix(note, "Ratios are ")
		})
	}
	number := map[int]int{} // old to new, in reading order
	for _, row := range tab.Rows {
		cells := []table.Cell{}
		for _, i := range kept {
			if i >= len(row.Cells) {
				break // a row that is said in words
			}
			c := row.Cells[i]
			var refs []int
			for _, ref := range c.Refs {
				if number[ref] == 0 {
					out.Footnotes = append(out.Footnotes, tab.Footnotes[ref-1])
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
	return out
}

func (p *printer) markdownTable(tab table.Table, fold bool) {
	if len(tab.Columns) == 0 {
		return
	}
	var heads, rules []string
	for _, c := range tab.Columns {
		heads = append(heads, escapeMarkdown(strings.TrimSpace(c.Short+" "+c.Heading)))
		rules = append(rules, map[table.Align]string{
			table.Left: ":--", table.Right: "--:", table.Center: ":-:",
		}[c.Align])
	}
	p.line("| ", strings.Join(heads, " | "), " |")
	p.line("| ", strings.Join(rules, " | "), " |")
	for _, row := range tab.Rows {
		p.line(markdownRow(row))
	}
	for _, text := range loadLegend(tab) {
		p.line()
		p.line(escapeMarkdown(text))
	}
	p.footnotes(tab, fold)
}

func (p *printer) footnotes(tab table.Table, fold bool) {
	fold = fold && len(tab.Footnotes)+len(tab.Notes) > 0
	if fold { // the blank line after it lets Markdown go on inside
		p.line()
		p.line("<details><summary>", foldedWords(tab), "</summary>")
	}
	for i, note := range tab.Footnotes {
		p.line()
		p.line(superscript(i+1), " ", escapeMarkdown(note))
	}
	for _, note := range tab.Notes {
		p.line()
		p.line(escapeMarkdown(note))
	}
	if fold {
		p.line()
		p.line("</details>")
	}
}

// foldedWords say what is below: doubts that nobody sees are none.
func foldedWords(tab table.Table) string {
	if n := len(tab.Footnotes); n > 0 {
		return unit.Plural(n, "footnote") + ": what is in doubt, and what is not in the numbers"
	}
	return "Notes"
}

func markdownRow(row table.Row) string {
	var cells []string
	for _, c := range row.Cells {
		cells = append(cells, escapeMarkdown(c.Text)+superscripts(c.Refs))
	}
	if row.Span != "" {
		cells = append(cells, escapeMarkdown(row.Span))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// loadLegend says in a sentence what the short names in the headings stand for.
func loadLegend(tab table.Table) []string {
	var groups []string
	last := ""
	for _, c := range tab.Columns {
		if c.Group != last && strings.HasPrefix(c.Group, c.Short+" (") {
			groups = append(groups, c.Group)
		}
		last = c.Group
	}
	if len(groups) == 0 {
		return nil
	}
	return []string{"Loads: " + strings.Join(groups, "; ") + "."}
}

// escapeMarkdown keeps text text: a service's error message must not become markup.
func escapeMarkdown(text string) string {
	return markdownEscapes.Replace(text)
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`,
	"`", "\\`", "](", `]\(`, "~", `\~`, "#", `\#`, "\n", " ", "\r", " ",
)

// Update replaces what stands between the lines `<!-- prony:begin NAME -->` and
// `<!-- prony:end NAME -->` in a Markdown file by section, and leaves every other byte as it is.
// The marks must be there, once each and in this order; it fails otherwise, because a guess could
// eat the file.
func Update(markdown []byte, name string, section []byte) ([]byte, error) {
	begin, end := "<!-- prony:begin "+name+" -->", "<!-- prony:end "+name+" -->"
	text := string(markdown)
	for _, mark := range []string{begin, end} {
		switch n := strings.Count(text, mark); {
		case n == 0:
			return nil, fmt.Errorf("update section %q: the mark %s is missing: put both marks "+
				"where the table shall stand", name, mark)
		case n > 1:
			return nil, fmt.Errorf("update section %q: the mark %s stands %d times: leave one",
				name, mark, n)
		}
	}
	from, to := strings.Index(text, begin)+len(begin), strings.Index(text, end)
	if to < from {
		return nil, fmt.Errorf("update section %q: its end mark stands before its begin", name)
	}
	inside := strings.Trim(string(section), "\n")
	return []byte(text[:from] + "\n" + inside + "\n" + text[to:]), nil
}
