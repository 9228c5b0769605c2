package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// scalar is a text of a file that may also be a number, a boolean or nothing; whatever else is
// there is its JSON.
type scalar string

// UnmarshalJSON implements json.Unmarshaler. It takes any value.
func (s *scalar) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(s))
	case 'n':
		*s = ""
		return nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, data)
	*s = scalar(b.String())
	return err
}

// exactJSON reads one value of JSON, whose numbers keep all of their digits.
func exactJSON(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &json.SyntaxError{Offset: int64(len(data))}
	} else if err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &json.SyntaxError{Offset: dec.InputOffset()}
	}
	return nil
}

// marshal is a value as JSON, with its characters as they are. A value that has no JSON, such as
// one of infinity, is "".
func marshal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// broken is what is wrong with a text that is to be JSON. What it holds is not repeated: it may be
// a secret.
func broken(err error) error {
	if s, is := errors.AsType[*json.SyntaxError](err); is {
		return fmt.Errorf("it is not JSON from byte %d on; save it again", s.Offset)
	}
	if u, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("%s is of type %s, which is not expected; is it the file that you meant?",
			cmp.Or(strings.ToLower(u.Field), "it"), u.Value)
	}
	return errors.New("it is not JSON; save it again")
}

// jsonToken matches a string or a comment in a text of JSON.
var jsonToken = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/`)

// withoutComments returns a text of JSON without comments.
func withoutComments(text string) string {
	return jsonToken.ReplaceAllStringFunc(text, func(token string) string {
		if token[0] == '"' {
			return token
		}
		return ""
	})
}
