package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// node is a JSON value with its line.
type node struct {
	line   int
	key    string // in its object
	object bool
	inside []*node // an object or a list
	text   string  // of a leaf
}

// field returns a member of an object, or nil.
func (n *node) field(key string) *node {
	if n == nil || !n.object {
		return nil
	}
	for _, f := range slices.Backward(n.inside) {
		if f.key == key {
			return f
		}
	}
	return nil
}

// maxDepth bounds nesting; published results have less.
const maxDepth = 64

type parser struct {
	dec  *json.Decoder
	data []byte
	pos  int
	line int
}

func parseJSON(data []byte, line int) (*node, error) {
	p := &parser{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: line}
	p.dec.UseNumber()
	return p.value(0)
}

// here returns the line of the last token.
func (p *parser) here() int {
	to := int(p.dec.InputOffset())
	p.line += bytes.Count(p.data[p.pos:to], []byte("\n"))
	p.pos = to
	return p.line
}

func (p *parser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	tok, err := p.dec.Token()
	n := &node{line: p.here()}
	switch t := tok.(type) {
	case json.Number:
		n.text = t.String()
	case string:
		n.text = t
	case json.Delim:
		n.object = t == '{'
		for err == nil && p.dec.More() {
			var key json.Token
			if n.object {
				if key, err = p.dec.Token(); err != nil {
					break
				}
			}
			var v *node
			if v, err = p.value(depth + 1); err == nil {
				v.key, _ = key.(string)
				n.inside = append(n.inside, v)
			}
		}
		if err == nil {
			_, err = p.dec.Token()
		}
	}
	return n, err
}

// readObjects finds lists of results in a JSON text: objects with metrics, or flat ones with known
// keys. Line numbers start after line.
func readObjects(text string, line int, cols *Columns) (out []*Table) {
	root, err := parseJSON([]byte(text), line+1)
	if err != nil {
		return nil
	}
	var walk func(*node)
	walk = func(n *node) {
		if t := objects(n, cols); t != nil {
			out = append(out, t)
			return
		}
		for _, item := range n.inside {
			walk(item)
		}
	}
	walk(root)
	about := slices.Concat(root.field("system").facts("system ", true),
		root.field("tools").facts("", true))
	for _, t := range out {
		for _, r := range t.Rows {
			r.facts = append(r.facts, about...)
		}
	}
	return out
}

// objects returns a table for a list of results, or nil for other values.
func objects(n *node, cols *Columns) *Table {
	list := n.inside
	if n.field("metrics") != nil {
		list = []*node{n}
	} else if n.object {
		return nil
	}
	t := &Table{Line: n.line, Title: "results"}
	for _, item := range list {
		if r := object(item, cols); r != nil {
			t.Rows = append(t.Rows, r)
		} else if item.object {
			t.Unread = append(t.Unread, Unread{Line: item.line,
				Reason: "this object has neither a rate nor a mean latency"})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// object reads one result. A time in its config was requested, not measured.
func object(n *node, cols *Columns) *Row {
	r := &Row{Line: n.line, Values: map[Quantity]Value{}}
	r.fields(n, cols, false)
	if c := n.field("config"); c != nil {
		r.fields(c, cols, true)
	}
	if m := n.field("metrics"); m != nil {
		r.fields(m, cols, false)
		r.failed(m)
	}
	if _, ok := r.Values[Rate]; !ok {
		if _, ok := r.Values[Mean]; !ok {
			return nil
		}
	}
	word := func(key string) string {
		if f := n.field(key); f != nil {
			return f.text
		}
		return ""
	}
	var names []string
	for _, key := range []string{"server", "target", "name", "framework", "scenario", "load"} {
		if w := word(key); w != "" {
			names = append(names, w)
		}
	}
	r.Name, r.Key = strings.Join(names, " "), word("scenario")+" "+word("load")
	r.Of = cmp.Or(word("server"), word("target"), word("name"), word("framework"))
	if p := word("protocol"); p != "" {
		r.facts = append(r.facts, Fact{"protocol", p, true})
	}
	for _, f := range n.field("config").facts("", true) {
		if _, ok := cols.headOf(f.Name, f.Value); !ok { // otherwise it is among the values
			r.facts = append(r.facts, f)
		}
	}
	r.Tool, r.Model = word("tool"), word("model")
	if r.Model == "" && strings.Contains(" "+closed+" ", " "+r.Tool+" ") {
		r.Model = record.Closed
		if _, ok := r.Values[Offered]; ok {
			r.Model = record.Open
		}
	}
	return r
}

func (r *Row) fields(n *node, cols *Columns, requested bool) {
	for _, f := range n.inside {
		if f.text != "" {
			cols.meet(f.key)
		}
		h, ok := cols.headOf(f.key, f.text)
		if !ok || f.text == "" {
			continue
		}
		if requested {
			switch h.quantity {
			case Duration:
				h.quantity = AskedDuration
			case Requests:
				h.quantity = AskedRequests
			case Rate:
				h.quantity = Offered
			}
		}
		if v, ok := parseValue(f.text, h.unit, h.quantity); ok {
			v.Line = f.line
			if requested {
				v.Slack = 0
			}
			r.Values[h.quantity] = v
		}
	}
}

// failed sums the classes of errors.
func (r *Row) failed(n *node) {
	sum, line := 0.0, 0
	for _, f := range n.inside {
		if strings.HasPrefix(f.key, "errors_") {
			sum, line = sum+number(f.text), f.line
		}
	}
	if line > 0 {
		r.Values[Errors] = Value{V: sum, Text: units.Whole(sum), Line: line}
	}
}
