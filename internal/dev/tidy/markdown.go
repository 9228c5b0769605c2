package tidy

import (
	"regexp"
	"strings"
)

// mdLine is a line of a Markdown text. Lines of a fenced block are without the fence's indentation.
// The fences themselves are not code, so adjacent blocks stay separate.
type mdLine struct {
	number int // from 1
	text   string
	code   bool
}

// fence matches a fence. An info string after backquotes contains no backquotes; otherwise the line
// is an inline span.
var fence = regexp.MustCompile("^([ \t]*)(`{3,}[^`]*|~{3,}.*)$")

// markdown splits a text into lines and marks the lines inside fences (CommonMark 0.31, section
// 4.5, but at any indentation, because blocks occur in lists).
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

// fenceLength counts the marks at the start of a fence, before its info string.
func fenceLength(fence string) int {
	return len(fence) - len(strings.TrimLeft(fence, fence[:1]))
}

// closes reports whether a fence ends a block: the same mark, at least as long, and nothing after
// it.
func closes(fence, open string) bool {
	fence = strings.TrimRight(fence, " \t")
	return strings.HasPrefix(fence, open) && fenceLength(fence) == len(fence)
}
