// Package audit checks anybody's published results for numbers that cannot be true together, or
// that do not say what they seem to.
//
//	JSON, a run's folder, a tool's output, Markdown, CSV ─► Document: tables of rows
//	                                                            │ rules, pure
//	                       text, JSON ◄─ Result: findings ◄─────┘
//
// A row is one result as its publisher states it: values of known quantities, each with the line
// where it stands and with what its rounding leaves open. Rules are pure functions of a row, a
// table or a document. A rule that lacks what it needs says so, so that silence is not approval.
// Sums are held against the digits that are printed: what rounding may explain is no finding.
//
// Non-goals: it measures nothing, corrects nothing, and does not know whether a result is good. It
// imports what reads the saved output of tools, the record, and how values are printed.
package audit

import (
	"cmp"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Severity says how sure a finding is.
type Severity string

// Severities, the worst first.
const (
	Contradiction Severity = "contradiction" // these numbers cannot all be true
	Doubt         Severity = "doubt"         // they can, but do not say what they seem to
	Note          Severity = "note"          // what a reader should know beside them
)

var severities = []Severity{Contradiction, Doubt, Note}

// Row is one result.
type Row struct {
	Name   string
	Of     string // what was measured, where Name says more than that; else empty
	Line   int    // from 1, in its file
	Tool   string // what measured it, where that is known
	Model  string // "closed", "open" or unknown: empty
	Key    string // rows of one table are compared where their keys are equal
	Values map[Quantity]Value
	Notes  []string // what the reader of a tool's output had to leave out
	// Counted are failures that the tool has in its rate.
	Counted float64
	ownLoad *record.Load // as Prony recorded it; nil: another tool did
	verdict record.Verdict
	facts   []Fact // of its method, beside its values
}

func (r *Row) get(q Quantity) (Value, bool) {
	v, ok := r.Values[q]
	return v, ok
}

// all returns values when every one of them is known.
func (r *Row) all(qs ...Quantity) (out []Value, ok bool) {
	for _, q := range qs {
		v, known := r.Values[q]
		if !known {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// Table is rows that their publisher put side by side.
type Table struct {
	Title   string
	Line    int
	Rows    []*Row
	Unread  []Unread
	Command *command // that is said to have made it
	context string   // headings above it and the text before it
	spread  bool     // it tells of repetitions or a spread
}

// Document is a file and the results in it.
type Document struct {
	File     string
	Kind     string // in words: "Markdown", "wrk: its text"
	Tables   []*Table
	commands []*command
	Unread   []Unread // of tables without any row that could be read
	Notes    []string // what else could not be read
}

// Case is where a finding shows.
type Case struct {
	Line       int    `json:"line"`
	Table      string `json:"table,omitempty"` // the heading above it, or the file's name
	Row        string `json:"row,omitempty"`
	Arithmetic string `json:"arithmetic"`
}

// Finding is one thing that a rule found, with each place that shows it.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`
	Cases    []Case   `json:"cases"`
	Meaning  string   `json:"meaning"`
	Action   string   `json:"action"`
	Source   string   `json:"source"`
}

// Unchecked is a rule that had nothing to work on.
type Unchecked struct {
	Rule  string `json:"rule"`
	Needs string `json:"needs"`
}

// Result is what was found in one file.
type Result struct {
	File      string      `json:"file"`
	Kind      string      `json:"kind"`
	Tables    int         `json:"tables"`
	Rows      int         `json:"rows"`
	Rules     int         `json:"rules"`   // that there are
	Checked   int         `json:"checked"` // of them, that had what they need in some row
	Findings  []Finding   `json:"findings"`
	Unchecked []Unchecked `json:"unchecked"`
	Unread    []Unread    `json:"unread,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
}

// Count is the number of places with a finding of a severity.
func (r *Result) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n += len(f.Cases)
		}
	}
	return n
}

// Audit applies every rule to a document.
func Audit(d *Document) *Result {
	out := &Result{File: d.File, Kind: d.Kind, Tables: len(d.Tables), Rules: len(rules),
		Findings: []Finding{}, Unchecked: []Unchecked{}, Unread: d.unread(), Notes: d.Notes}
	for _, t := range d.Tables {
		out.Rows += len(t.Rows)
	}
	for _, r := range rules {
		matches, checked := r.apply(d)
		if checked {
			out.Checked++
		} else {
			out.Unchecked = append(out.Unchecked, Unchecked{r.name, r.needs})
		}
		for i := range matches {
			matches[i].Rule, matches[i].Source = r.name, r.source
		}
		out.Findings = append(out.Findings, matches...)
	}
	slices.SortStableFunc(out.Findings, func(a, b Finding) int {
		bySeverity := slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
		return cmp.Or(bySeverity, a.Cases[0].Line-b.Cases[0].Line)
	})
	return out
}

// rule is one check. It looks at each row, each table or the document: one of the three is set.
type rule struct {
	name   string
	needs  string // in words
	source string

	quantities []Quantity // that a row must have; their values are given
	row        func(r *Row, v []Value) (hit, bool)
	table      func(*Table) ([]hit, bool)
	document   func(*Document) ([]hit, bool)
}

// hit is what a rule found in one place. One without arithmetic is none.
type hit struct {
	severity   Severity
	line       int
	row        string
	arithmetic string
	means, do  string
}

// apply returns the findings, hits of one meaning as one, and whether the rule had
// what it needs anywhere.
func (r *rule) apply(d *Document) (out []Finding, checked bool) {
	if r.document != nil {
		hits, ok := r.document(d)
		return merge(nil, "", hits), ok
	}
	for _, t := range d.Tables {
		var hits []hit
		if r.table != nil {
			matches, ok := r.table(t)
			hits, checked = matches, checked || ok
		} else {
			for _, row := range t.Rows {
				v, ok := row.all(r.quantities...)
				if !ok {
					continue
				}
				h, ok := r.row(row, v)
				checked = checked || ok
				h.row, h.line = row.Name, cmp.Or(h.line, row.Line)
				hits = append(hits, h)
			}
		}
		out = merge(out, t.Title, hits)
	}
	return out, checked
}

func merge(out []Finding, title string, hits []hit) []Finding {
	for _, h := range hits {
		if h.arithmetic == "" {
			continue
		}
		c := Case{h.line, title, h.row, h.arithmetic}
		i := slices.IndexFunc(out, func(f Finding) bool {
			return f.Severity == h.severity && f.Meaning == h.means && f.Action == h.do
		})
		if i >= 0 {
			out[i].Cases = append(out[i].Cases, c)
			continue
		}
		out = append(out, Finding{Severity: h.severity, Cases: []Case{c}, Meaning: h.means,
			Action: h.do})
	}
	return out
}

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
			f.Value = units.Duration(v.V)
		} else if ok {
			f.Value = units.Raw(v.V)
		}
		out = append(out, f)
	}
	if d, ok := durationOf(r); ok {
		out = append(out, Fact{"lasted", units.Duration(d), false})
	}
	return append(out, r.facts...)
}
