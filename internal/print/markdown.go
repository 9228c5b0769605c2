package print

import (
	"strings"
)

// Markdown keeps text text: names and messages come from files that others wrote, and must not
// become markup.
func Markdown(text string) string { return markup.Replace(text) }

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`,
	"`", "\\`", "](", `]\(`, "~", `\~`, "#", `\#`, "\n", " ", "\r", " ",
)

// Pipes is a table in Markdown. The cells are text, and no markup.
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
