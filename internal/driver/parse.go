package driver

import (
	"math"
	"strconv"
	"strings"
	"time"

	"prony/internal/result"
)

// binary are the units of tools that count bytes in powers of 1024.
var binary = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// Numbers in a tool's text have been found by a pattern. What does not fit into our types all the
// same, or makes no sense, is 0, which is unknown.

// countMax bounds a count: no tool sends more in its life, and sums of them do not overflow.
const countMax = 1e15

func integer(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > countMax || n < 0 {
		return 0
	}
	return n
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// nanoseconds reads 1.23ms.
func nanoseconds(s string) int64 {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0
	}
	return int64(d)
}

func millis(s string) int64 { return scaled(number(s), 1e6) }

// secondsOf reads a number of seconds, as hey and oha print them.
func secondsOf(f float64) int64 { return scaled(f, 1e9) }

// scaled turns a value of some unit into nanoseconds; what is beyond a century is no time.
func scaled(f, unit float64) int64 {
	ns := math.Round(f * unit)
	if !(ns > 0 && ns < 100*365*24*float64(time.Hour)) {
		return 0
	}
	return int64(ns)
}

// put fills in a time under the name that a tool has for it, a percentage for one of the record's
// percentiles; others are left out.
func put(d *result.Dist, name string, ns int64) {
	switch strings.ToLower(name) {
	case "min", "fastest":
		d.MinNs = ns
	case "avg", "mean", "average":
		d.MeanNs = float64(ns)
	case "max", "slowest":
		d.MaxNs = ns
	case "med", "median":
		d.P50Ns = ns
	}
	switch number(strings.Trim(name, "p()%")) {
	case 50:
		d.P50Ns = ns
	case 90:
		d.P90Ns = ns
	case 99:
		d.P99Ns = ns
	case 99.9:
		d.P999Ns = ns
	}
}
