package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// readObjects finds lists of results in a JSON text: objects with metrics, or flat ones with known
// keys. Line numbers start after line. Its error is about a text that is not JSON.
func readObjects(text string, line int, cols *Columns) (out []*Table, err error) {
	root, err := jsontree.Parse([]byte(text), line+1)
	if err != nil {
		return nil, err
	}
	var walk func(*jsontree.Node)
	walk = func(n *jsontree.Node) {
		if t := objects(n, cols); t != nil {
			out = append(out, t)
			return
		}
		for _, item := range n.Inside {
			walk(item)
		}
	}
	walk(root)
	about := slices.Concat(factsOf(root.Field("system"), "system ", true),
		factsOf(root.Field("tools"), "", true))
	for _, t := range out {
		for _, r := range t.Rows {
			r.facts = append(r.facts, about...)
		}
	}
	return out, nil
}

// objects returns a table for a list of results, or nil for other values.
func objects(n *jsontree.Node, cols *Columns) *Table {
	list := n.Inside
	if n.Field("metrics") != nil {
		list = []*jsontree.Node{n}
	} else if n.Kind == jsontree.Object {
		return nil
	}
	t := &Table{Line: n.Line, Title: "results"}
	for _, item := range list {
		r, bad := object(item, cols)
		if r != nil {
			t.Rows = append(t.Rows, r)
		} else if item.Kind == jsontree.Object {
			bad = []Unread{{Line: item.Line,
				Reason: "this object has neither a rate nor a mean latency"}}
		}
		t.Unread = append(t.Unread, bad...)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// object reads one result, and returns the values of it that cannot be read. A time in its config
// was requested, not measured.
func object(n *jsontree.Node, cols *Columns) (*Row, []Unread) {
	r := &Row{Line: n.Line, Values: map[Quantity]Value{}}
	bad := r.fields(n, cols, false)
	if c := n.Field("config"); c != nil {
		bad = append(bad, r.fields(c, cols, true)...)
	}
	if m := n.Field("metrics"); m != nil {
		bad = append(bad, r.fields(m, cols, false)...)
		bad = append(bad, r.failed(m)...)
	}
	if _, ok := r.Values[Rate]; !ok {
		if _, ok := r.Values[Mean]; !ok {
			return nil, nil
		}
	}
	word := func(key string) string {
		if f := n.Field(key); f != nil {
			return f.Text
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
	for _, f := range factsOf(n.Field("config"), "", true) {
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
	return r, bad
}

// fields reads the members with known keys. Of a key that occurs twice it is unknown which value
// counts, so it has none.
func (r *Row) fields(n *jsontree.Node, cols *Columns, requested bool) (bad []Unread) {
	keys := map[string]int{}
	for _, f := range n.Inside {
		keys[f.Key]++
	}
	for _, f := range n.Inside {
		if f.Text != "" {
			cols.meet(f.Key)
		}
		h, ok := cols.headOf(f.Key, f.Text)
		if !ok || f.Text == "" || h.quantity == "name" {
			continue
		}
		if requested {
			h.quantity = cmp.Or(askedFor[h.quantity], h.quantity)
		}
		v, ok := parseValue(f.Text, h.unit, h.quantity)
		switch {
		case keys[f.Key] > 1:
			bad = append(bad, Unread{Line: f.Line, Partial: true,
				Reason: fmt.Sprintf("the key %q occurs %d times in one object", f.Key,
					keys[f.Key])})
		case !ok && nothing.MatchString(plain(f.Text)):
		case !ok:
			bad = append(bad, Unread{Line: f.Line, Partial: true,
				Reason: fmt.Sprintf("the value has no number, or a number without a unit: %s %q",
					f.Key, short(f.Text))})
		default:
			v.Line = f.Line
			if requested {
				v.Slack = 0
			}
			r.Values[h.quantity] = v
		}
	}
	return bad
}

// askedFor has the quantities that a config states before the measurement.
var askedFor = map[Quantity]Quantity{Duration: AskedDuration, Requests: AskedRequests,
	Rate: Offered}

// failed sums the classes of errors.
func (r *Row) failed(n *jsontree.Node) (bad []Unread) {
	sum, line := 0.0, 0
	for _, f := range n.Inside {
		if !strings.HasPrefix(f.Key, "errors_") {
			continue
		}
		v, err := strconv.ParseFloat(f.Text, 64)
		if err != nil || !(v >= 0) || v > hugest {
			return []Unread{{Line: f.Line, Partial: true, Reason: fmt.Sprintf(
				"the value is not a count, so errors are unknown: %s %q", f.Key, short(f.Text))}}
		}
		sum, line = sum+v, f.Line
	}
	if line > 0 {
		r.Values[Errors] = Value{V: sum, Text: units.Whole(sum), Line: line}
	}
	return nil
}
