package report

import (
	"fmt"
	"io"
	"strings"

	"prony/internal/table"
)

// Markdown prints the sheet as GitHub-flavoured Markdown: all columns, footnotes as a list of
// paragraphs. Pipe tables have no headings that span, so each column carries its load's name.
func Markdown(w io.Writer, s table.Sheet) error {
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
		p.markdownTable(tab)
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

func (p *printer) markdownTable(tab table.Table) {
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
	for i, note := range tab.Footnotes {
		p.line()
		p.line(superscript(i+1), " ", escapeMarkdown(note))
	}
	for _, note := range tab.Notes {
		p.line()
		p.line(escapeMarkdown(note))
	}
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
