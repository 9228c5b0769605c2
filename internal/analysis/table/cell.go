package table

import (
	"fmt"
	"math"

	"prony.example/internal/base/units"
)

// State says whether a cell, or an interval, has a value, and if not, why not.
type State int

// States of cells and intervals.
const (
	Absent   State = iota // no value belongs here, for example no p99 at a closed load
	Known                 // the value is there
	Unknown               // it was measured, and its interval is Wide
	Withheld              // a value belongs here and cannot be had; the notes say why
)

func (s State) String() string {
	return [...]string{"absent", "known", "unknown", "withheld"}[s]
}

// Interval is that of a value: Known, Unknown where it is Wide, or Absent. Lo and Hi are in the
// unit of the value and NaN where it is Absent.
type Interval struct {
	State  State
	Lo, Hi float64
}

// intervalOf is that of a ratio or a level: has tells whether there is one.
func intervalOf(ok bool, lo, hi float64) Interval {
	switch {
	case !ok:
		return Interval{Absent, lo, hi}
	case Wide(lo, hi):
		return Interval{Unknown, lo, hi}
	}
	return Interval{Known, lo, hi}
}

// Cell is a value with its doubts: a number, or a Name of a row, a load or a metric.
type Cell struct {
	State    State
	Name     string   // of what is no number; the others are then without meaning
	Value    float64  // in the column's unit, NaN unless Known or Unknown
	Interval Interval // of Value
	AtLeast  float64  // a lower bound of what is Withheld; 0: none is known
	N        int      // trials or blocks
	Grade    string   // VALID, SUSPECT or UnknownGrade; empty: no measured number
	Refs     []int    // footnotes, ascending
	// Notes are what is said of this number in the row's footnote, each for itself.
	Notes []Note

	form      form
	load      string // under which off holds
	deviation *Off   // how far it may be off; nil: unknown
}

// Text is what a terminal shows: the number, with its interval behind it in columns whose numbers
// mean nothing without theirs.
func (c Cell) Text() string {
	if ends := c.ends(); ends != "" {
		return c.Number() + " " + ends
	}
	return c.Number()
}

// Number is the cell's text without an interval.
func (c Cell) Number() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.State == Known:
		return c.form.number(c)
	case c.State == Unknown:
		return unknownWord
	case c.AtLeast > 0:
		return "at least " + units.Rate(c.AtLeast)
	}
	return units.Absent
}

// Range is the interval in words, for renderers that have room for it; empty where there is none.
func (c Cell) Range() string {
	switch {
	case c.State != Known || c.form.between == nil:
		return ""
	case c.Interval.State == Known:
		return c.form.between(c.Interval.Lo, c.Interval.Hi)
	case c.Interval.State == Unknown:
		return notKnown
	}
	return ""
}

// ends is the interval as it stands behind the number: "[1.50, 2.50]".
func (c Cell) ends() string {
	if c.State != Known || c.Interval.State != Known || c.form.ends == nil {
		return ""
	}
	lo, hi := c.form.ends(c.Interval.Lo), c.form.ends(c.Interval.Hi)
	return fmt.Sprintf("[%s, %s]", lo, hi)
}

// form is how a cell prints.
type form struct {
	value   func(float64) string
	single  string                      // behind a value that has no interval
	ends    func(float64) string        // of an interval behind its value; nil: none stands there
	between func(lo, hi float64) string // of an interval by itself; nil: none is printed
}

func (f form) number(c Cell) string {
	if c.Interval.State == Absent {
		return f.value(c.Value) + f.single
	}
	return f.value(c.Value)
}

// levelForm prints levels, whose intervals stand in a column of their own or nowhere.
func levelForm(p printer) form {
	return form{value: p.value, between: func(lo, hi float64) string {
		return units.Between(p.ends(lo), p.ends(hi))
	}}
}

// ratioForm prints ratios with their intervals.
func ratioForm(decimals int) form {
	print := func(x float64) string { return fmt.Sprintf("%.*f", decimals, x) }
	return form{value: print, ends: print, between: func(lo, hi float64) string {
		return print(lo) + " – " + print(hi)
	}}
}

// changeForm prints ratios less 1 as changes in per cent with their intervals.
var changeForm = form{value: change, single: " (one trial)", ends: points,
	between: func(lo, hi float64) string { return change(lo) + " to " + change(hi) }}

// plainForm prints what has no interval.
func plainForm(print func(float64) string) form { return form{value: print} }

// named is a cell that is no number.
func named(name string) Cell {
	c := noValue(Known)
	c.Name = name
	return c
}

// noValue is a cell without a number.
func noValue(s State) Cell {
	nan := math.NaN()
	return Cell{State: s, Value: nan, Interval: Interval{Lo: nan, Hi: nan}}
}

// withheld is a cell without a number, with the reason as a footnote.
func withheld(why Note) Cell {
	c := noValue(Withheld)
	c.Notes = []Note{why}
	return c
}

// valued is a cell with a number that has no interval.
func valued(x float64, print func(float64) string) Cell {
	c := noValue(Known)
	c.Value, c.form = x, plainForm(print)
	return c
}

// printer prints a value, ends those of its interval.
type printer struct{ value, ends func(float64) string }

func same(print func(float64) string) printer { return printer{print, print} }

func scaled(s units.Scale) printer { return printer{s.Print, s.Finer().Print} }

// missing tells whether nothing is known of what belongs here.
func (c Cell) missing() bool { return c.State == Withheld && c.AtLeast == 0 }
