package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"prony/internal/stats"
)

// Absent is what stands where a number cannot be had; a footnote says why.
const Absent = "–"

// Rate prints requests per second with three significant digits: 48.2k, 1.21M, 320.
func Rate(perS float64) string {
	switch {
	case perS >= 999_500:
		return digits(perS/1e6) + "M"
	case perS >= 999.5:
		return digits(perS/1e3) + "k"
	}
	return digits(perS)
}

// Duration prints nanoseconds with three significant digits in the unit that suits the value.
func Duration(ns float64) string {
	if ns == 0 {
		return "0 s" // exactly: no unit is better than another
	}
	u := unitOf(ns)
	return digits(ns/u.ns) + " " + u.name
}

// Bytes prints a size in binary units, one decimal below ten.
func Bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	k := 0
	for n >= 1023.5 && k < len(units)-1 {
		n /= 1024
		k++
	}
	if k > 0 && n < 9.95 {
		return fmt.Sprintf("%.1f %s", n, units[k])
	}
	return fmt.Sprintf("%.0f %s", n, units[k])
}

// Percent prints a share: 1.9 %, 12 %, 0.04 %.
func Percent(share float64) string {
	p := share * 100
	switch a := math.Abs(p); {
	case a == 0 || a >= 9.95:
		return fmt.Sprintf("%.0f %%", p)
	case a >= 0.095:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.2f %%", p)
}

// Count prints an integer with commas between thousands.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// digits prints three significant digits, never with an exponent.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a == 0 || a >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case a >= 0.1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// timeUnit is a unit that durations are printed in.
type timeUnit struct {
	name string
	ns   float64
}

var timeUnits = []timeUnit{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}

func unitOf(ns float64) timeUnit {
	u := timeUnits[0]
	for _, next := range timeUnits[1:] {
		if ns >= 0.9995*next.ns {
			u = next
		}
	}
	return u
}

// scale is one unit and one number of decimals for a whole group of columns, so that the eye can
// compare down and across without reading units.
type scale struct {
	timeUnit
	decimals int
}

// scaleFor chooses the unit from the median: latency is told in ms from 0.1 ms on, in s from 1 s.
// The decimals leave the smallest value two digits.
func scaleFor(ns []float64) scale {
	values := present(ns)
	if len(values) == 0 {
		return scale{timeUnits[2], 2}
	}
	var u timeUnit
	switch m := stats.Median(values); {
	case m >= 1e9:
		u = timeUnits[3]
	case m >= 1e5:
		u = timeUnits[2]
	case m >= 1e2:
		u = timeUnits[1]
	default:
		u = timeUnits[0]
	}
	return scale{u, decimalsFor(slices.Min(values)/u.ns, 2)}
}

// decimalsFor is how many decimals show x with so many significant digits, three at most.
func decimalsFor(x float64, significant int) int {
	lead := int(math.Floor(math.Log10(max(x, 1e-9))))
	return min(max(significant-1-lead, 0), 3)
}

func (s scale) print(ns float64) string {
	return strconv.FormatFloat(ns/s.ns, 'f', s.decimals, 64) + " " + s.name
}

// finer is the scale for an interval: one more decimal, or its ends would often look the same.
func (s scale) finer() scale { return scale{s.timeUnit, s.decimals + 1} }

// between prints an interval, the unit once where both ends have the same.
func between(lo, hi string) string {
	number, unit, found := strings.Cut(lo, " ")
	if found && strings.HasSuffix(hi, " "+unit) {
		lo = number
	}
	return lo + " – " + hi
}

// present leaves out what is not a finite number.
func present(xs []float64) []float64 {
	var out []float64
	for _, x := range xs {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, x)
		}
	}
	return out
}

// halfWidth is the larger arm of an interval relative to its centre.
func halfWidth(center, lo, hi float64) float64 {
	return max(hi-center, center-lo) / math.Abs(center)
}
