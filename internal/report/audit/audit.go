// Package audit checks published results for numbers that contradict each other, or whose meaning
// differs from what it seems.
//
//	JSON, a run's folder, a tool's output, Markdown, CSV ─► Document: tables of rows
//	                                                            │ rules, pure
//	                       text, JSON ◄─ Result: findings ◄─────┘
//
// A row is one result as its publisher states it: values of known quantities, each with its line
// and its rounding error. Rules are pure functions of a row, a table or a document. A rule without
// the values that it needs reports this, so that a missing finding is not approval. Rules compare
// with the printed digits: a difference within rounding is not a finding.
//
// Non-goals: it measures nothing, corrects nothing, and does not judge whether a result is good. It
// imports only packages that read saved output of tools and records, and that format values.
package audit

import (
	"cmp"
	"slices"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/units"
	"prony.example/internal/generator"
	"prony.example/record"
)

// Severity is the certainty of a finding.
type Severity string

// Severities, the worst first.
const (
	Contradiction Severity = "contradiction" // these numbers cannot all be true
	Doubt         Severity = "doubt"         // they can, but do not mean what they seem to
	Note          Severity = "note"          // additional facts for the reader
)

var severities = []Severity{Contradiction, Doubt, Note}

// Row is one result.
type Row struct {
	Name   string
	Of     string // what was measured, if Name has more than that; else empty
	Line   int    // from 1, in its file
	Tool   string // the tool that measured it, if known
	Model  string // "closed", "open" or unknown: empty
	Key    string // rows of one table are compared if their keys are equal
	Values map[Quantity]Value
	Notes  []generator.Note // what the reader of a tool's output says about its numbers
	// Counted are failures that are part of the tool's rate.
	Counted float64
	// Aborted are requests without a response at the end that are part of the tool's rate, but not
	// of its requests.
	Aborted float64
	ownLoad *record.Load // as Prony recorded it; nil: another tool did
	verdict record.Verdict
	facts   []Fact // of its method, in addition to its values
}

func (r *Row) get(q Quantity) (Value, bool) {
	v, ok := r.Values[q]
	return v, ok
}

// all returns the values of quantities, and false unless every one is known.
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

// Table has rows that their publisher compares.
type Table struct {
	Title   string
	Line    int
	Rows    []*Row
	Unread  []Unread
	Command *command // the command that supposedly made it
	context string   // headings above it and the text before it
	spread  bool     // whether it has repetitions or a spread
}

// Document is a file and the results in it.
type Document struct {
	File     string
	Kind     string // in words: "Markdown", "wrk: its text"
	Tables   []*Table
	commands []*command
	Unread   []Unread // of tables without any row that could be read
	Notes    []string // other parts that could not be read
	violated []violation
}

// violation is a record of a run that contradicts itself.
type violation struct {
	line  int
	trial string
	err   error
}

// Case is the place of a finding.
type Case struct {
	Line       int    `json:"line"`
	Table      string `json:"table,omitempty"` // the heading above it, or the file's name
	Row        string `json:"row,omitempty"`
	Arithmetic string `json:"arithmetic"`
}

// Finding is a finding of a rule, with each place that shows it.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`
	Cases    []Case   `json:"cases"`
	Meaning  string   `json:"meaning"`
	Action   string   `json:"action"`
	Source   string   `json:"source"`
}

// Unchecked is a rule that no row had the values for.
type Unchecked struct {
	Rule  string `json:"rule"`
	Needs string `json:"needs"`
}

// Result has the findings in one file.
type Result struct {
	File      string      `json:"file"`
	Kind      string      `json:"kind"`
	Tables    int         `json:"tables"`
	Rows      int         `json:"rows"`
	Rules     int         `json:"rules"`   // the number of rules
	Checked   int         `json:"checked"` // rules that had the values they need
	Findings  []Finding   `json:"findings"`
	Unchecked []Unchecked `json:"unchecked"`
	Unread    []Unread    `json:"unread,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
}

// Count returns the number of places with a finding of a severity.
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

// rule is one check of each row, each table or the document: one of the three functions is set.
type rule struct {
	name   string
	needs  string // in words
	source string

	quantities []Quantity // that a row must have; the check gets their values
	row        func(r *Row, v []Value) (hit, bool)
	table      func(*Table) ([]hit, bool)
	document   func(*Document) ([]hit, bool)
}

// hit is a finding of a rule in one place. Without arithmetic there is no finding.
type hit struct {
	severity   Severity
	line       int
	row        string
	arithmetic string
	means, do  string
}

// apply returns the findings, with hits of the same meaning merged, and whether the rule had the
// values that it needs anywhere.
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

// Fact is a statement of a document on how a result was made, in its own words.
type Fact struct {
	Name, Value string
	// Binds: results with different values were not measured in the same way.
	Binds bool
}

// untold lists members of a document's head that are not about its method: the author's words, and
// the selection of tools (each result names its own).
var untold = []string{"description", "label", "selected", "note", "notes"}

// factsOf returns the plain members of an object.
func factsOf(n *jsontree.Node, before string, binds bool) (out []Fact) {
	if n == nil {
		return nil
	}
	for _, f := range n.Inside {
		if f.Text != "" && !slices.Contains(untold, f.Key) {
			out = append(out, Fact{before + f.Key, f.Text, binds && f.Key != "javaVersion"})
		}
	}
	return out
}

// asked lists the chosen quantities of a load, in their printed order.
var asked = []Quantity{Connections, Streams, Users, Threads, Think, Offered, AskedDuration,
	AskedRequests}

// Method returns how a result was made, as far as the document states it. It uses the values of the
// load only once, because config repeats them in its publisher's words.
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
