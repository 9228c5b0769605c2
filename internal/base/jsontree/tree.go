// Package jsontree parses JSON into a tree whose values have their lines, so that an error about a
// value can name its place. A number keeps its digits.
//
// Non-goals: it does not decode into types, and does not write JSON.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a value.
type Kind int

// Kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// Node is a JSON value with its line.
type Node struct {
	Kind   Kind
	Line   int
	Key    string  // in its object
	Inside []*Node // of an object or a list, in its order
	Text   string  // of a number or a string
}

// Field returns a member of an object; nil if there is none. Of several, it is the last.
func (n *Node) Field(key string) *Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	for i := len(n.Inside) - 1; i >= 0; i-- {
		if n.Inside[i].Key == key {
			return n.Inside[i]
		}
	}
	return nil
}

// Path returns the value below the keys; nil if there is none.
func (n *Node) Path(keys ...string) *Node {
	for _, k := range keys {
		n = n.Field(k)
	}
	return n
}

// maxDepth bounds nesting; results have less.
const maxDepth = 64

type parser struct {
	dec  *json.Decoder
	data []byte
	pos  int
	line int
}

// Parse parses a text that holds one JSON value. line is the line of the text's first byte. Its
// error names the line where the text stops being JSON.
func Parse(data []byte, line int) (*Node, error) {
	p := &parser{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: line}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err == nil {
		if _, err = p.dec.Token(); errors.Is(err, io.EOF) {
			return n, nil
		}
		err = errors.New("there is more text after the end of the JSON value")
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		p.move(int(syntax.Offset))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.move(len(bytes.TrimRight(data, " \t\r\n")))
		err = errors.New("the text ends before the JSON value does")
	default:
		p.here()
	}
	return nil, fmt.Errorf("line %d: %w", p.line, err)
}

func (p *parser) move(to int) {
	to = min(max(to, p.pos), len(p.data))
	p.line += bytes.Count(p.data[p.pos:to], []byte("\n"))
	p.pos = to
}

// here returns the line of the last token.
func (p *parser) here() int {
	p.move(int(p.dec.InputOffset()))
	return p.line
}

func (p *parser) value(depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	tok, err := p.dec.Token()
	n := &Node{Line: p.here()}
	switch t := tok.(type) {
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case string:
		n.Kind, n.Text = String, t
	case bool:
		n.Kind = Bool
	case json.Delim:
		n.Kind = List
		if t == '{' {
			n.Kind = Object
		}
		err = errors.Join(err, p.members(n, depth))
	}
	return n, err
}

// members parses the values of an object or a list to its end.
func (p *parser) members(n *Node, depth int) error {
	for p.dec.More() {
		var key json.Token
		var err error
		if n.Kind == Object {
			if key, err = p.dec.Token(); err != nil {
				return err
			}
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.Key, _ = key.(string)
		n.Inside = append(n.Inside, v)
	}
	_, err := p.dec.Token()
	return err
}
