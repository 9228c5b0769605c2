package record

import (
	"reflect"
	"slices"
)

// Prove makes a record INVALID if its numbers contradict each other, with a finding for each
// violation that has none. The cause is a defect of the program, or of a tool that offered the
// load. What was measured stays in the record, except for numbers that a file cannot represent.
func (r *Record) Prove() {
	for _, v := range append(r.represent(), r.Violations()...) {
		r.doubt(v)
	}
}

// doubt makes a record INVALID because of a violation, unless it is already.
func (r *Record) doubt(v Violation) {
	r.Verdict.Grade = Invalid
	if !slices.ContainsFunc(r.Verdict.Findings, func(f Finding) bool {
		return f.Rule == Identities && f.Load == v.Load
	}) {
		r.Verdict.Findings = append(r.Verdict.Findings, Finding{Rule: Identities, Load: v.Load,
			Grade: Invalid, Facts: Facts{Messages: []string{v.Err.Error()}}})
	}
}

// represent sets numbers to 0 that a record cannot have: not a number, infinities, and those that
// Read refuses. It returns the first of the trial and of each load.
func (r *Record) represent() (out []Violation) {
	replace := func(load string, v reflect.Value) {
		if err := measurable(v); err != nil {
			out = append(out, Violation{load, err})
			zero(v)
		}
	}
	for i := range r.Loads {
		replace(r.Loads[i].Name, reflect.ValueOf(&r.Loads[i]).Elem())
	}
	replace("", reflect.ValueOf(r).Elem())
	return out
}

// zero sets each number that is not measurable to 0.
func zero(v reflect.Value) {
	walk(v, "", func(number reflect.Value, _ string) bool {
		number.SetZero()
		return true
	})
}
