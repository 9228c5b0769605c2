package unit

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// timeUnit is a unit that durations are printed in.
type timeUnit struct {
	name string
	ns   float64
}

var timeUnits = []timeUnit{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}

func timeOf(ns float64) timeUnit {
	u := timeUnits[0]
	for _, next := range timeUnits[1:] {
		if math.Abs(ns) >= 0.9995*next.ns {
			u = next
		}
	}
	return u
}

// Scale is one unit of time and one number of decimals for a whole group of columns, so that the
// eye can compare down and across without reading units.
type Scale struct {
	timeUnit
	decimals int
}

// ScaleFor chooses the unit from the median: latency is told in ms from 0.1 ms on, in s from 1 s.
// The decimals leave the smallest value two digits. What is no number is passed over.
func ScaleFor(ns []float64) Scale {
	values := slices.DeleteFunc(slices.Clone(ns), func(x float64) bool { return !Known(x) })
	if len(values) == 0 {
		return Scale{timeUnits[2], 2}
	}
	slices.Sort(values)
	n := len(values)
	u := timeUnits[0]
	switch median := (values[(n-1)/2] + values[n/2]) / 2; {
	case median >= 1e9:
		u = timeUnits[3]
	case median >= 1e5:
		u = timeUnits[2]
	case median >= 1e2:
		u = timeUnits[1]
	}
	return Scale{u, DecimalsFor(values[0]/u.ns, 2)}
}

// DecimalsFor is how many decimals show x with so many significant digits, three at most.
func DecimalsFor(x float64, significant int) int {
	lead := int(math.Floor(math.Log10(max(x, 1e-9))))
	return min(max(significant-1-lead, 0), 3)
}

// Print prints a duration.
func (s Scale) Print(ns float64) string {
	return strconv.FormatFloat(ns/s.ns, 'f', s.decimals, 64) + " " + s.name
}

// Finer is the scale for an interval: one more decimal, or its ends would often look the same.
func (s Scale) Finer() Scale { return Scale{s.timeUnit, s.decimals + 1} }

// Between prints an interval, the unit once where both ends have the same.
func Between(lo, hi string) string {
	number, unit, found := strings.Cut(lo, " ")
	if found && strings.HasSuffix(hi, " "+unit) {
		lo = number
	}
	return lo + " – " + hi
}
