package table

import (
	"fmt"
	"math"

	"prony.example/internal/base/units"
	"prony.example/stats"
)

// State describes whether a cell, or an interval, has a value, and if not, why not.
type State int

// States of cells and intervals.
const (
	Absent   State = iota // no value belongs here, for example no p99 at a closed load
	Known                 // the value is there
	Unknown               // it was measured, but its interval is too wide
	Withheld              // a value belongs here but is not available; the notes explain why
)

func (s State) String() string {
	return [...]string{"absent", "known", "unknown", "withheld"}[s]
}

// Interval is the interval of a value: Known, Unknown if it is too wide, or Absent. Lo and Hi are
// in the unit of the value, and NaN if the interval is Absent.
type Interval struct {
	State  State
	Lo, Hi float64
}

// RatioInterval returns the interval of a ratio: Unknown if it is Wide and includes 1. An interval
// that excludes 1 shows a difference, however wide it is. Tables, answers, gates and pages all use
// this rule.
func RatioInterval(r stats.Ratio) Interval {
	return intervalOf(r.HasInterval(), Wide(r.Lo, r.Hi) && r.Lo <= 1 && r.Hi >= 1, r.Lo, r.Hi)
}

func intervalOf(exists, unknown bool, lo, hi float64) Interval {
	switch {
	case !exists:
		return Interval{Absent, lo, hi}
	case unknown:
		return Interval{Unknown, lo, hi}
	}
	return Interval{Known, lo, hi}
}

// Cell is a number with its interval and doubts, or the Name of a row, a load or a metric.
type Cell struct {
	State    State
	Name     string   // set for text; the other fields then have no meaning
	Value    float64  // in the column's unit, NaN unless Known or Unknown
	Interval Interval // of Value
	AtLeast  float64  // a lower bound of a Withheld value; 0: unknown
	N        int      // trials or blocks
	Grade    string   // VALID, SUSPECT or UnknownGrade; empty: no measured number
	Refs     []int    // footnotes, ascending
	// Notes are the remarks on this number for the row's footnote.
	Notes []Note

	form      form
	load      string // the load that deviation refers to
	deviation *Off   // how far it may be off; nil: unknown
}

// Text returns the text for a terminal: the number, followed by its interval in columns whose
// numbers mean nothing without it.
func (c Cell) Text() string {
	if ends := c.ends(); ends != "" {
		return c.Number() + " " + ends
	}
	return c.Number()
}

// Number returns the cell's text without an interval.
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

// Range returns the interval in words, for renderers that have room for it; "" without one.
func (c Cell) Range() string {
	switch {
	case c.State != Known || c.form.between == nil:
		return ""
	case c.Interval.State == Known:
		return c.form.between(c.Interval.Lo, c.Interval.Hi)
	case c.Interval.State == Unknown:
		return unknownWord
	}
	return ""
}

// ends returns the interval for printing after the number: "[1.50, 2.50]".
func (c Cell) ends() string {
	if c.State != Known || c.Interval.State != Known || c.form.ends == nil {
		return ""
	}
	lo, hi := c.form.ends(c.Interval.Lo), c.form.ends(c.Interval.Hi)
	return fmt.Sprintf("[%s, %s]", lo, hi)
}

// form describes how a cell prints.
type form struct {
	value   func(float64) string
	single  string                      // printed after a value that has no interval
	ends    func(float64) string        // of an interval after its value; nil: none is printed
	between func(lo, hi float64) string // of a separate interval; nil: none is printed
}

func (f form) number(c Cell) string {
	if c.Interval.State == Absent {
		return f.value(c.Value) + f.single
	}
	return f.value(c.Value)
}

// finerBelow is the relative width below which the ends of an interval have one more decimal than
// the value.
const finerBelow = 0.1

// levelForm prints levels, whose intervals have their own column or none.
func levelForm(p printer) form {
	return form{value: p.value, between: func(lo, hi float64) string {
		print := p.value
		if hi-lo < finerBelow*hi {
			print = p.ends
		}
		return units.Between(print(lo), print(hi))
	}}
}

// ratioForm prints ratios with their intervals.
func ratioForm(decimals int) form {
	print := func(x float64) string { return fmt.Sprintf("%.*f", decimals, x) }
	return form{value: print, ends: print, between: func(lo, hi float64) string {
		return print(lo) + " – " + print(hi)
	}}
}

// changeForm prints ratios less 1 as changes in percent with their intervals.
var changeForm = form{value: change, single: " (one trial)", ends: points,
	between: func(lo, hi float64) string { return change(lo) + " to " + change(hi) }}

// plainForm prints values without an interval.
func plainForm(print func(float64) string) form { return form{value: print} }

// named returns a cell with text instead of a number.
func named(name string) Cell {
	c := noValue(Known)
	c.Name = name
	return c
}

// noValue returns a cell without a number.
func noValue(s State) Cell {
	nan := math.NaN()
	return Cell{State: s, Value: nan, Interval: Interval{Lo: nan, Hi: nan}}
}

// withheld returns a cell without a number, with the reason as a footnote.
func withheld(why Note) Cell {
	c := noValue(Withheld)
	c.Notes = []Note{why}
	return c
}

// valued returns a cell with a number that has no interval.
func valued(x float64, print func(float64) string) Cell {
	c := noValue(Known)
	c.Value, c.form = x, plainForm(print)
	return c
}

// printer formats values, and the ends of their intervals.
type printer struct{ value, ends func(float64) string }

func same(print func(float64) string) printer { return printer{print, print} }

func scaled(s units.Scale) printer { return printer{s.Print, s.Finer().Print} }

// missing reports whether a value belongs here and nothing is known of it.
func (c Cell) missing() bool { return c.State == Withheld && c.AtLeast == 0 }
