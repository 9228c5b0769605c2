package audit

import (
	"slices"

	"prony/internal/unit"
)

// Fact is what a document says of how a result was made, in its own words.
type Fact struct {
	Name, Value string
	// Binds: results that differ in it were not measured in the same way.
	Binds bool
}

// untold are members of a document's head that say nothing of how it measured: words of its author,
// and which of its tools were chosen (each result names its own).
var untold = []string{"description", "label", "selected", "note", "notes"}

// facts are the plain members of an object.
func (n *node) facts(before string, binds bool) (out []Fact) {
	if n == nil {
		return nil
	}
	for _, f := range n.inside {
		if f.text != "" && !slices.Contains(untold, f.key) {
			out = append(out, Fact{before + f.key, f.text, binds && f.key != "javaVersion"})
		}
	}
	return out
}

// asked are the quantities of a load that somebody chose, in the order in which they are told.
var asked = []Quantity{Connections, Streams, Users, Threads, Think, Offered, AskedDuration,
	AskedRequests}

// Method is how a result was made, as far as it is said. What its values say of the load is told
// once: config has the same in its publisher's words.
func (r *Row) Method() []Fact {
	out := []Fact{{"tool", r.Tool, true}, {"model", r.Model, true}}
	for _, q := range asked {
		f := Fact{string(q), "", true}
		if v, ok := r.get(q); ok && kinds[q] == aTime {
			f.Value = unit.Duration(v.V)
		} else if ok {
			f.Value = unit.Raw(v.V)
		}
		out = append(out, f)
	}
	if d, ok := durationOf(r); ok {
		out = append(out, Fact{"lasted", unit.Duration(d), false})
	}
	return append(out, r.facts...)
}

// CountedFailures are those that the result has in its rate.
func (r *Row) CountedFailures() float64 { return r.counted }
