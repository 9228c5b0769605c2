package tidy

import (
	"errors"
	"fmt"
	"strings"
)

// split cuts a simple command into words as a POSIX shell does (XCU 2.2 quoting, 2.3 comments).
// What only a shell can do (pipes, redirections, expansions) is an error, for then the line in the
// docs could not be executed as it stands.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	started := false // a quoted nothing is a word too
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for rest := line; rest != ""; {
		c := rest[0]
		if c == ' ' || c == '\t' {
			end()
			rest = rest[1:]
			continue
		}
		if c == '#' && !started {
			break
		}
		text, length, err := piece(rest)
		if err != nil {
			return nil, fmt.Errorf("split %q: %w", strings.TrimSpace(line), err)
		}
		word.WriteString(text)
		started = true
		rest = rest[length:]
	}
	end()
	return words, nil
}

// piece reads one quoted string, one escaped byte or one plain byte off the front of a line: what
// it stands for, and how many bytes it took.
func piece(line string) (text string, length int, err error) {
	switch c := line[0]; {
	case c == '\'':
		n := strings.IndexByte(line[1:], '\'')
		if n < 0 {
			return "", 0, errors.New("a single quote is not closed")
		}
		return line[1 : 1+n], n + 2, nil
	case c == '"':
		return doubleQuoted(line)
	case c == '\\' && len(line) > 1:
		return line[1:2], 2, nil
	case c == '\\':
		return "", 0, errors.New("a backslash ends the block")
	case strings.IndexByte("|&;<>()$`", c) >= 0:
		return "", 0, fmt.Errorf("%q needs a shell; show the command without it or quote it", c)
	}
	return line[:1], 1, nil
}

func doubleQuoted(line string) (text string, length int, err error) {
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return b.String(), i + 1, nil
		case c == '$' || c == '`':
			return "", 0, fmt.Errorf("%q needs a shell; use single quotes if it is meant so", c)
		case c == '\\' && i+1 < len(line) && strings.IndexByte("$`\"\\", line[i+1]) >= 0:
			i++
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, errors.New("a double quote is not closed")
}
