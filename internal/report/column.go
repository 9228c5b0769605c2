package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"prony/internal/flat"
)

// column is one of a flat table for programs: CSV prints its values, Flat hands them on. A value
// that cannot be had is nil: an empty field, a null.
type column[R any] struct {
	name string
	kind flat.Kind
	of   func(*R) any // nil, or a value of that kind
}

// label is a column of text; the empty text is none.
func label[R any](name string, of func(*R) string) column[R] {
	return column[R]{name, flat.Text, func(r *R) any {
		if v := of(r); v != "" {
			return v
		}
		return nil
	}}
}

// whole is a column of integers.
func whole[R any](name string, of func(*R) int64) column[R] {
	return column[R]{name, flat.Count, func(r *R) any { return of(r) }}
}

// decimal is a column of numbers; what is none is nil.
func decimal[R any](name string, of func(*R) float64) column[R] {
	return column[R]{name, flat.Real, func(r *R) any {
		if v := of(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
		return nil
	}}
}

// where leaves a column empty in rows that it says nothing about.
func where[R any](holds func(*R) bool, c column[R]) column[R] {
	of := c.of
	c.of = func(r *R) any {
		if !holds(r) {
			return nil
		}
		return of(r)
	}
	return c
}

// printed is a value as CSV has it: numbers are the shortest text that reads back as the same.
func printed(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}
