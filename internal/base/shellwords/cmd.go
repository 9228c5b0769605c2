package shellwords

import (
	"regexp"
	"strings"
)

var (
	// ofCmd is a line for cmd.exe: a caret before a quote, or at the end of a line.
	ofCmd = regexp.MustCompile(`(?m)^[^'\n]*[ \t]\^"|^[^'\n]*\^\r?$`)
	// doubled is a word between two double quotes each, within a quoted word of a line without
	// single quotes: cmd.exe reads two as one, and a POSIX shell as none.
	doubled = regexp.MustCompile(`(?m)^[^'\n\\]*"[^"'$\n\\]+""[^" '$\n\\]+""[^'\n\\]*$`)
	// backslash ends a line of a POSIX shell that the next line continues.
	backslash = regexp.MustCompile(`(?m)[ \t]\\\r?$`)
	// caret ends a line of cmd.exe that the next line continues.
	caret = regexp.MustCompile(`\^\r?\n`)
)

// cmdCommands returns the commands of lines for cmd.exe. It takes carets away and ends commands as
// cmd.exe does, then splits words as programs of Microsoft's C runtime do
// (https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments).
func cmdCommands(script string) (out []Command) {
	var line strings.Builder
	var c Command
	end := func() {
		if c.Words = arguments(line.String()); len(c.Words) > 0 {
			out = append(out, c)
		}
		line.Reset()
		c = Command{}
	}
	script = strings.ReplaceAll(script, "\r\n", "\n")
	quoted := false
	for i := 0; i < len(script); i++ {
		switch b := script[i]; {
		case b == '\n':
			quoted = false
			end()
		case b == '^' && !quoted && i+1 < len(script):
			if i++; script[i] != '\n' {
				line.WriteByte(script[i])
			} else if i+1 < len(script) { // what follows the line end is escaped
				i++
				line.WriteByte(script[i])
			}
		case b == '"':
			quoted = !quoted
			line.WriteByte(b)
		case quoted:
			line.WriteByte(b)
		case b == '&' && i > 0 && i+1 < len(script) && !blank(script[i-1]) && !blank(script[i+1]):
			c.Problem = inside
			end()
		case b == '&' || b == '|':
			end()
		case b == '<' || b == '>':
			c.Problem = "a redirection of cmd.exe: take it away"
			line.WriteByte(' ')
		default:
			line.WriteByte(b)
		}
	}
	end()
	return out
}

// arguments splits a command line into words. A quote that follows an odd number of backslashes, or
// a quote within quotes, is one of the word.
func arguments(line string) (out []string) {
	var word strings.Builder
	begun, quoted, slashes := false, false, 0
	for i := 0; i < len(line); i++ {
		b := line[i]
		if b == '\\' {
			slashes++
			begun = true
			continue
		}
		n := slashes
		if b == '"' {
			n /= 2
		}
		word.WriteString(strings.Repeat(`\`, n))
		odd := slashes%2 == 1
		slashes = 0
		switch {
		case b == '"' && odd:
			word.WriteByte(b)
		case b == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			word.WriteByte(b)
			i++
		case b == '"':
			quoted, begun = !quoted, true
		case !quoted && (b == ' ' || b == '\t'):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(b)
			begun = true
		}
	}
	word.WriteString(strings.Repeat(`\`, slashes))
	if begun {
		out = append(out, word.String())
	}
	return out
}
