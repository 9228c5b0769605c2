// Package format lays out text: words in lines, cells in columns, marks of footnotes, and Markdown.
// It also writes documents in JSON and CSV for programs.
//
// Non-goals: it is independent of values (package units prints them) and of a table's meaning
// (package table).
package format

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is the number of columns at which sentences wrap if the terminal's width is unknown.
const Width = 100

// Page collects output, so that only the final write can fail.
type Page struct{ strings.Builder }

// Line adds a line.
func (p *Page) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// To writes the page.
func (p *Page) To(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// Columns returns the number of columns that a text takes, without color codes.
func Columns(text string) int { return ansi.StringWidth(text) }

// Wrap returns a text after the head of its first line, broken between words into lines of at most
// width columns. Further lines are indented by indent columns. Longer words stay whole, and a
// percent sign stays with its number.
func Wrap(head, text string, width, indent int) string {
	var b strings.Builder
	line, used, gap := head, Columns(head), ""
	for _, word := range words(text) {
		n := Columns(word)
		if used > indent && used+len(gap)+n > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, used, gap = strings.Repeat(" ", indent), indent, ""
		}
		line += gap + word
		used += len(gap) + n
		gap = " "
	}
	return b.String() + line
}

// words splits at spaces, but leaves a percent sign with its number.
func words(text string) []string {
	var all []string
	for w := range strings.FieldsSeq(text) {
		if len(all) > 0 && strings.HasPrefix(w, "%") {
			all[len(all)-1] += " " + w
			continue
		}
		all = append(all, w)
	}
	return all
}

// Align is the alignment of a column's text.
type Align int

// Alignments.
const (
	Left Align = iota
	Right
	Center
)

// Pad fills a text to a width with spaces; a longer text stays whole.
func Pad(text string, width int, a Align) string {
	lack := max(width-Columns(text), 0)
	before := map[Align]int{Right: lack, Center: lack / 2}[a]
	return strings.Repeat(" ", before) + text + strings.Repeat(" ", lack-before)
}

// PadAll pads a column's texts to equal widths.
func PadAll(texts []string, a Align) []string {
	width := 0
	for _, t := range texts {
		width = max(width, Columns(t))
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = Pad(t, width, a)
	}
	return out
}

// Grid sets rows in columns, two spaces apart. aligns has the columns' alignments, the last of them
// for all further columns. A row of one cell stays as it is and widens no column.
func Grid(indent string, rows [][]string, aligns ...Align) string {
	var columns [][]string // padded
	for _, row := range rows {
		for len(row) > max(len(columns), 1) {
			columns = append(columns, nil)
		}
	}
	for i := range columns {
		cells := make([]string, len(rows))
		for k, row := range rows {
			if len(row) > 1 && i < len(row) {
				cells[k] = row[i]
			}
		}
		columns[i] = PadAll(cells, aligns[min(i, len(aligns)-1)])
	}
	var b strings.Builder
	for k, row := range rows {
		line := indent + strings.Join(row, "")
		if len(row) > 1 {
			cells := make([]string, len(row))
			for i := range row {
				cells[i] = columns[i][k]
			}
			line = indent + strings.Join(cells, "  ")
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Mark returns the mark of a footnote, by its number.
func Mark(number int) string {
	raised := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var b strings.Builder
	for _, d := range fmt.Sprint(number) {
		b.WriteRune(raised[d-'0'])
	}
	return b.String()
}

// Marks returns the marks of several footnotes: ¹˒¹².
func Marks(numbers []int) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = Mark(n)
	}
	return strings.Join(all, "˒")
}

// Paint wraps a text in parameters of Select Graphic Rendition (ECMA-48 §8.3.117), with a mark of
// this process, which only a Screen or Visible removes.
func Paint(color bool, sgr, text string) string {
	if !color || text == "" {
		return text
	}
	return marked(sgr) + text + marked("0")
}

// CSV writes rows for programs.
func CSV(w io.Writer, rows [][]string) error { return csv.NewWriter(w).WriteAll(rows) }

// Markdown escapes text, because names and messages from files of others must not become markup.
func Markdown(text string) string { return markup.Replace(text) }

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`,
	"`", "\\`", "](", `]\(`, "~", `\~`, "#", `\#`, "\n", " ", "\r", " ",
)

// Pipes returns a table in Markdown. It escapes the cells as text.
func Pipes(headings []string, rows [][]string, aligns ...Align) string {
	rules := make([]string, len(headings))
	for i := range rules {
		rules[i] = map[Align]string{Left: ":--", Right: "--:", Center: ":-:"}[aligns[min(i,
			len(aligns)-1)]]
	}
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(escaped(headings))
	line(rules)
	for _, row := range rows {
		line(escaped(row))
	}
	return b.String()
}

func escaped(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = Markdown(c)
	}
	return out
}
