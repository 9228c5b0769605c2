package generator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moments reads the times of a column. Its first cell decides their format, and each further cell
// must have it, because the same number has other meanings in other units.
type moments struct {
	layout string // of package time; empty: a number
	unit   float64
	coarse bool // whole seconds, so that a duration is up to a second off
}

// epochs are the units of numbers that count from 1970, by magnitude: from September 2001 to the
// year 2261, after which nanoseconds overflow, no two of them overlap.
var epochs = []struct {
	from, to int64
	unit     float64
}{
	{1e9, 92e8, 1e9}, {1e12, 92e11, 1e6}, {1e15, 92e14, 1e3}, {1e18, 92e17, 1},
}

// dates are the formats of dates whose parts have one meaning. A fraction of a second may follow.
var dates = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05",
	"2006/01/02 15:04:05", "02.01.2006 15:04:05",
}

// errMoment is the reason for a text that is no known time.
var errMoment = errors.New("it is not a time since 1970 in s, ms, µs or ns, and not a date such " +
	"as 2026-11-27T10:00:00.000Z or 2026/11/27 10:00:00.000")

// ns returns a time in nanoseconds. The times of one column can be compared; dates without a zone
// count as UTC.
func (m *moments) ns(cell string) (int64, error) {
	first := m.unit == 0 && m.layout == ""
	if first {
		m.decide(cell)
	}
	switch {
	case m.layout != "":
		t, err := time.Parse(m.layout, cell)
		if err != nil {
			return 0, fmt.Errorf("the times above it have the format of %s",
				time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC).Format(m.layout))
		}
		if t.Year() < 1970 || t.Year() > 2260 {
			return 0, errMoment
		}
		return t.UnixNano(), nil
	case m.unit == 0:
		return 0, errMoment
	}
	seconds, fraction, _ := strings.Cut(cell, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0, errMoment
	}
	for _, e := range epochs {
		if e.unit == m.unit && (n < e.from || n >= e.to) {
			return 0, fmt.Errorf("the times above it count units of %v since 1970",
				time.Duration(m.unit))
		}
	}
	part := 0.0
	if strings.Trim(fraction, "0123456789") != "" { // such as an exponent
		return 0, errMoment
	}
	if fraction != "" {
		part, _ = strconv.ParseFloat("0."+fraction, 64) // digits are always a number
	}
	return n*int64(m.unit) + int64(part*m.unit), nil
}

func (m *moments) decide(cell string) {
	digits, _, fraction := strings.Cut(cell, ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	for _, e := range epochs {
		if err == nil && n >= e.from && n < e.to {
			m.unit, m.coarse = e.unit, e.unit == 1e9 && !fraction
			return
		}
	}
	for _, layout := range dates {
		if _, err := time.Parse(layout, cell); err == nil {
			clock := cell[strings.IndexByte(cell, ':'):]
			m.layout, m.coarse = layout, !strings.ContainsAny(clock, ".,")
			return
		}
	}
}
