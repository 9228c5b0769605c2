package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Decode is json.Unmarshal, except that a key that occurs twice in one object is an error with its
// line: readers of JSON disagree on which of the two values counts (RFC 8259, section 4).
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if key, line := Repeated(data); line > 0 {
		return fmt.Errorf("line %d: the key %q occurs twice in one object", line, key)
	}
	return nil
}

// Repeated returns the first key of valid JSON that occurs twice in one object, with its line in
// the text. The line is 0 if every key is unique.
func Repeated(data []byte) (key string, line int) {
	around := make([]names, 1, 16) // of the objects and arrays around a position
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			around = append(around, names{})
		case '}', ']':
			around = around[:max(len(around)-1, 1)]
		case '"':
			end := EndOfText(data, i)
			if IsKey(data, end) && !around[len(around)-1].add(data[i:end+1]) {
				return text(data[i : end+1]), 1 + bytes.Count(data[:i], []byte("\n"))
			}
			i = end
		}
	}
	return "", 0
}

// fewNames is the number of keys up to which names compares all of them.
const fewNames = 32

// names are the keys of one object, with their quotes.
type names struct {
	few  [][]byte
	many map[string]bool // of an object with more than fewNames keys; nil: it has fewer
}

// add adds a key, and reports whether it is new.
func (n *names) add(quoted []byte) bool {
	if bytes.IndexByte(quoted, '\\') >= 0 || !utf8.Valid(quoted) {
		quoted = []byte(`"` + text(quoted) + `"`)
	}
	switch {
	case n.many != nil && n.many[string(quoted)]:
		return false
	case n.many != nil:
		n.many[string(quoted)] = true
		return true
	}
	for _, earlier := range n.few {
		if bytes.Equal(earlier, quoted) {
			return false
		}
	}
	if n.few = append(n.few, quoted); len(n.few) > fewNames {
		n.many = make(map[string]bool, 2*len(n.few))
		for _, earlier := range n.few {
			n.many[string(earlier)] = true
		}
	}
	return true
}

// text returns the content of a quoted string.
func text(quoted []byte) (content string) {
	_ = json.Unmarshal(quoted, &content) // the text is valid JSON
	return content
}

// EndOfText returns the position of the quote that ends the string that begins at from, or the
// length of data.
func EndOfText(data []byte, from int) int {
	for i := from + 1; ; {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data)
		}
		i += n
		slashes := 0
		for data[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
}

// IsKey reports whether a colon follows the string that ends at end.
func IsKey(data []byte, end int) bool {
	for i := end + 1; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return data[i] == ':'
		}
	}
	return false
}
