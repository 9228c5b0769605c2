package generator

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/lazyregexp"
)

// Misread is a text in a tool's output that is not the value that its place requires.
type Misread struct {
	Line   int    // from 1; 0: unknown
	Column string // a quoted head or key, or the number of a character
	Text   string
	Reason string
}

// Error names the place, the text and the reason.
func (m *Misread) Error() string {
	place := ""
	if m.Line > 0 {
		place = fmt.Sprintf("line %d: ", m.Line)
	}
	if m.Line > 0 && m.Column != "" {
		place = fmt.Sprintf("line %d, column %s: ", m.Line, m.Column)
	}
	return fmt.Sprintf("%scannot read %q: %s", place, shortened(m.Text), m.Reason)
}

// shortened shortens a quoted text.
func shortened(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// countMax limits a count: no tool sends more, and sums of such counts do not overflow.
const countMax = 1e15

// spanMax limits a time, in ns: a century.
const spanMax = 100 * 365 * 24 * float64(time.Hour)

// integer parses a count. Its errors are reasons of a Misread, as those of the functions below.
func integer(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), n > countMax:
		return 0, errors.New("the number is too large for a count")
	case err != nil:
		return 0, errors.New("it is not a whole number")
	case n < 0:
		return 0, errors.New("a count cannot be negative")
	}
	return n, nil
}

// number parses a finite number that is not negative.
func number(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("the number is too large")
	case err != nil && strings.Contains(s, ","):
		return 0, errors.New("it has a comma; numbers need a decimal point and no separators")
	case err != nil, math.IsNaN(f), math.IsInf(f, 0):
		return 0, errors.New("it is not a number")
	case f < 0:
		return 0, errors.New("it is negative")
	}
	return f, nil
}

// scaled converts a value to nanoseconds.
func scaled(f, unit float64) (int64, error) {
	ns := math.Round(f * unit)
	switch {
	case math.IsNaN(ns):
		return 0, errors.New("it is not a number")
	case ns < 0:
		return 0, errors.New("a time cannot be negative")
	case ns > spanMax:
		return 0, errors.New("the time is longer than a century")
	}
	return int64(ns), nil
}

// span parses a time without a unit in its text.
func span(s string, unit float64) (int64, error) {
	f, err := number(s)
	if err != nil {
		return 0, err
	}
	return scaled(f, unit)
}

// without matches what tools print for a value of no requests.
var without = lazyregexp.New(`(?i)^-?nan(ns|us|µs|ms|s|m|h)?$`)

// nanoseconds parses durations such as 1.23ms. A mean of no requests, such as -nanus, is 0:
// unknown.
func nanoseconds(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if without.MatchString(s) {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("it is not a time such as 1.23ms")
	}
	return scaled(float64(d), 1)
}

// fields reads values of a JSON document, and keeps the first error.
type fields struct{ err error }

func (f *fields) fail(n *jsontree.Node, err error) {
	if err != nil && f.err == nil {
		text := n.Text
		if n.Kind != jsontree.Number && n.Kind != jsontree.String {
			text = map[jsontree.Kind]string{jsontree.Bool: "true or false", jsontree.List: "[…]",
				jsontree.Object: "{…}", jsontree.Null: "null"}[n.Kind]
		}
		f.err = &Misread{n.Line, strconv.Quote(n.Key), text, err.Error()}
	}
}

// number returns a number; 0 is unknown, as for null and for no member.
func (f *fields) number(n *jsontree.Node) float64 {
	if n == nil || n.Kind == jsontree.Null {
		return 0
	}
	if n.Kind != jsontree.Number {
		f.fail(n, errors.New("it is not a number"))
		return 0
	}
	v, err := number(n.Text)
	f.fail(n, err)
	return v
}

// count returns a count, with the same meaning of 0.
func (f *fields) count(n *jsontree.Node) int64 {
	v := f.number(n)
	switch {
	case v > countMax:
		f.fail(n, errors.New("the number is too large for a count"))
		return 0
	case v != math.Floor(v):
		f.fail(n, errors.New("it is not a whole number"))
	}
	return int64(v)
}

// span returns a time in nanoseconds, with the same meaning of 0.
func (f *fields) span(n *jsontree.Node, unit float64) int64 {
	if n == nil {
		return 0
	}
	ns, err := scaled(f.number(n), unit)
	f.fail(n, err)
	return ns
}

// need fails unless an object has a member that is not null.
func (f *fields) need(n *jsontree.Node, key string) {
	if m := n.Field(key); f.err == nil && (m == nil || m.Kind == jsontree.Null) {
		line := 1
		if n != nil {
			line = n.Line
		}
		f.err = fmt.Errorf("line %d: the JSON object has no %q", line, key)
	}
}

// document parses the JSON of a tool. Keys must be unique, because it is unknown which value
// counts.
func document(text string) (*jsontree.Node, error) {
	root, err := jsontree.Parse([]byte(text), 1)
	if err != nil {
		return nil, fmt.Errorf("the file begins like JSON but is not valid JSON: %w", err)
	}
	if problem, line := jsontree.BadKey([]byte(text), nil); line > 0 {
		return nil, fmt.Errorf("line %d: %s", line, problem)
	}
	return root, nil
}
