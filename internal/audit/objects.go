package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"prony/internal/result"
	"prony/internal/unit"
)

// node is a value of a JSON text that knows its line.
type node struct {
	line   int
	fields map[string]*node
	order  []string
	items  []*node
	text   string // of a leaf
	number bool
}

// maxDepth bounds nesting: nobody's results go deeper.
const maxDepth = 64

type parser struct {
	dec  *json.Decoder
	data []byte
	at   int
	line int
}

func parseJSON(data []byte, line int) (*node, error) {
	p := &parser{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: line}
	p.dec.UseNumber()
	return p.value(0)
}

// here is the line of the token that was read last.
func (p *parser) here() int {
	to := int(p.dec.InputOffset())
	p.line += bytes.Count(p.data[p.at:to], []byte("\n"))
	p.at = to
	return p.line
}

func (p *parser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.here()}
	switch t := tok.(type) {
	case json.Delim:
		return n, p.inside(n, t, depth)
	case json.Number:
		n.text, n.number = t.String(), true
	case string:
		n.text = t
	}
	return n, nil
}

func (p *parser) inside(n *node, open json.Delim, depth int) error {
	if open == '{' {
		n.fields = map[string]*node{}
	}
	for p.dec.More() {
		key := ""
		if open == '{' {
			tok, err := p.dec.Token()
			if err != nil {
				return err
			}
			key = fmt.Sprint(tok)
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if open == '{' {
			n.fields[key], n.order = v, append(n.order, key)
		} else {
			n.items = append(n.items, v)
		}
	}
	_, err := p.dec.Token()
	return err
}

// readObjects finds lists of results in a JSON text: objects with metrics, or flat ones whose keys
// are understood. Lines are counted from after line.
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
		for _, key := range n.order {
			walk(n.fields[key])
		}
		for _, item := range n.items {
			walk(item)
		}
	}
	walk(root)
	return out
}

// objects is a table of a list of results; nil when it is none.
func objects(n *node, cols *Columns) *Table {
	list := n.items
	if _, ok := n.fields["metrics"]; ok {
		list = []*node{n}
	}
	t := &Table{Line: n.line, Title: "results"}
	for _, item := range list {
		if r := object(item, cols); r != nil {
			t.Rows = append(t.Rows, r)
		} else if item.fields != nil {
			t.Unread = append(t.Unread, Unread{Line: item.line,
				Why: "this object has neither a rate nor a mean latency"})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// object reads one result. What its config says of the time was asked for, not measured.
func object(n *node, cols *Columns) *Row {
	r := &Row{Line: n.line, Values: map[Quantity]Value{}}
	r.fields(n, cols, false)
	if c := n.fields["config"]; c != nil {
		r.fields(c, cols, true)
	}
	if m := n.fields["metrics"]; m != nil {
		r.fields(m, cols, false)
		r.failed(m)
	}
	if _, ok := r.Values[Rate]; !ok {
		if _, ok := r.Values[Mean]; !ok {
			return nil
		}
	}
	word := func(key string) string {
		if f := n.fields[key]; f != nil {
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
	r.Tool, r.Model = word("tool"), word("model")
	if r.Model == "" && strings.Contains(" "+closed+" ", " "+r.Tool+" ") {
		r.Model = result.Closed
		if _, ok := r.Values[Offered]; ok {
			r.Model = result.Open
		}
	}
	return r
}

func (r *Row) fields(n *node, cols *Columns, asked bool) {
	for _, key := range n.order {
		f := n.fields[key]
		if f.text != "" {
			cols.meet(key)
		}
		h, ok := cols.headOf(key, f.text)
		if !ok || f.text == "" {
			continue
		}
		if asked {
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
			if asked {
				v.Slack = 0
			}
			r.Values[h.quantity] = v
		}
	}
}

// failed sums the classes of errors.
func (r *Row) failed(n *node) {
	sum, line := 0.0, 0
	for _, key := range n.order {
		if strings.HasPrefix(key, "errors_") {
			sum, line = sum+number(n.fields[key].text), n.fields[key].line
		}
	}
	if line > 0 {
		r.Values[Errors] = Value{V: sum, Text: unit.Whole(sum), Line: line}
	}
}
