package own

import (
	"errors"
	"regexp"
	"strings"
)

// assignment is a variable in front of a command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// special are the characters outside of quotes for which a command needs a shell.
const special = "|&;<>()$`*?[#~\n"

// Words splits a command as a shell would, by POSIX' rules of quoting (Shell Command Language,
// 2.2). Variables in front of it are set by env, so that no shell stands between the lab and the
// service; one that does more than name a program and its arguments is handed to sh.
func Words(command string) ([]string, error) {
	words, plain, err := split(command)
	switch {
	case err != nil:
		return nil, err
	case len(words) == 0:
		return nil, errors.New("the command is empty")
	case !plain:
		return []string{"sh", "-c", command}, nil
	case assignment.MatchString(words[0]):
		return append([]string{"env"}, words...), nil
	}
	return words, nil
}

// split gives the words, and whether a shell would have made no more of them.
func split(command string) (words []string, plain bool, err error) {
	var word strings.Builder
	var quote byte // 0: outside
	begun, escaped := false, false
	plain = true
	for _, c := range []byte(command) { // bytes: the name of a file may be no UTF-8
		switch {
		case escaped && c == '\n': // the command goes on in the next line
			escaped = false
		case escaped:
			if quote == '"' && strings.IndexByte("\"\\$`", c) < 0 {
				word.WriteByte('\\')
			}
			word.WriteByte(c)
			escaped, begun = false, true
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			literal := quote == '\'' || quote == '"' && c != '$' && c != '`'
			plain = plain && (literal || strings.IndexByte(special, c) < 0)
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, false, errors.New("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, plain, nil
}
