package tidy

import (
	"regexp"
	"strings"
)

// mdLine is a line of a Markdown text. A line of a fenced block has its fence's indentation taken
// off; the fences themselves are not code, so two blocks never touch.
type mdLine struct {
	number int // from 1
	text   string
	code   bool
}

// An info string after backquotes has none itself; otherwise the line is an inline span.
var fence = regexp.MustCompile("^([ \t]*)(`{3,}[^`]*|~{3,}.*)$")

// markdown splits a text into lines and marks those inside fences (CommonMark 0.31, section 4.5,
// but at any indentation, since blocks stand in lists).
func markdown(text string) []mdLine {
	var lines []mdLine
	indent, open := "", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			indent, open = m[1], m[2][:fenceLength(m[2])]
		case open != "" && m != nil && closes(m[2], open):
			indent, open = "", ""
		case open != "":
			text := strings.TrimPrefix(line, indent)
			lines = append(lines, mdLine{number: i + 1, text: text, code: true})
			continue
		}
		lines = append(lines, mdLine{number: i + 1, text: line})
	}
	return lines
}

// fenceLength counts the marks at the start of a fence; the rest is its info string.
func fenceLength(fence string) int {
	return len(fence) - len(strings.TrimLeft(fence, fence[:1]))
}

// closes says whether a fence ends a block: of the same mark, no shorter, nothing after it.
func closes(fence, open string) bool {
	fence = strings.TrimRight(fence, " \t")
	return strings.HasPrefix(fence, open) && fenceLength(fence) == len(fence)
}
