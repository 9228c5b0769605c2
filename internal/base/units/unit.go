// Package units prints numbers as people read them: with the digits that matter, in the unit that
// suits the value. Inside the program values are in base units, and only what prints scales them.
//
// Non-goals: it reads no number, and sets none in columns (package print does).
package units

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Base units of values.
const (
	PerS  = "1/s"
	Ns    = "ns"
	Octet = "B"
	J     = "J"
	One   = "1" // a share or a number of things
)

// Absent is what stands where a number cannot be had.
const Absent = "–"

// Known tells whether x is a number, neither NaN nor infinite.
func Known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Quantity prints a value in its base unit; Absent where it is no number.
func Quantity(x float64, base string) string {
	if !Known(x) {
		return Absent
	}
	if base == PerS {
		return Rate(x) + "/s"
	}
	return Printer(base)(x)
}

// Printer is what prints values of a base unit where a heading says of what they are: rates lack
// their "/s".
func Printer(base string) func(float64) string {
	switch base {
	case PerS:
		return Rate
	case Ns:
		return Duration
	case Octet:
		return Bytes
	case J:
		return Joules
	}
	return Percent
}

// Rate prints requests per second with three significant digits: 48.2k, 1.21M, 320.
func Rate(perS float64) string {
	return rate(perS, 3, func(x float64) string { return Digits(x, 3) })
}

// FineRate prints one with four digits, for the ends of an interval often agree in three, and
// without zeros at the end.
func FineRate(perS float64) string {
	return rate(perS, 4, func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) })
}

func rate(perS float64, digits int, print func(float64) string) string {
	switch {
	case perS >= 1e6-0.5*math.Pow10(6-digits):
		return print(perS/1e6) + "M"
	case perS >= math.Pow10(digits)-0.5:
		return print(perS/1e3) + "k"
	}
	return print(perS)
}

// Duration prints nanoseconds with three significant digits in the unit that suits the value.
func Duration(ns float64) string {
	if ns == 0 {
		return "0 s" // exactly: no unit is better than another
	}
	u := timeOf(ns)
	return Digits(ns/u.ns, 3) + " " + u.name
}

// KnownDuration is Duration of a time that is 0 where it is not known: a dash then.
func KnownDuration[N int64 | float64](ns N) string {
	if !(ns > 0) {
		return Absent
	}
	return Duration(float64(ns))
}

// Ends prints an interval in the unit of its centre, which is said there: "[11.8, 12.6]".
func Ends(centerNs, lo, hi float64) string {
	u := timeOf(centerNs)
	return "[" + Digits(lo/u.ns, 3) + ", " + Digits(hi/u.ns, 3) + "]"
}

// Bytes prints a size in binary units, one decimal below ten.
func Bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	k := 0
	for math.Abs(n) >= 1023.5 && k < len(units)-1 {
		n /= 1024
		k++
	}
	if k > 0 && math.Abs(n) < 9.95 {
		return fmt.Sprintf("%.1f %s", n, units[k])
	}
	return fmt.Sprintf("%.0f %s", n, units[k])
}

// Joules prints an energy with three significant digits: 1.20 mJ, 38.1 µJ.
func Joules(x float64) string {
	if !Known(x) {
		return Absent
	}
	u := timeOf(x * 1e9) // both are thousandths
	return Digits(x*1e9/u.ns, 3) + " " + strings.TrimSuffix(u.name, "s") + "J"
}

// Percent prints a share: 1.9 %, 12 %, 0.04 %.
func Percent(share float64) string {
	switch a := math.Abs(100 * share); {
	case a == 0 || a >= 9.95:
		return PercentTo(share, 0)
	case a >= 0.095:
		return PercentTo(share, 1)
	}
	return PercentTo(share, 2)
}

// PercentTo prints a share with so many decimals, whatever its size.
func PercentTo(share float64, decimals int) string {
	if !Known(share) {
		return Absent
	}
	return fmt.Sprintf("%.*f %%", decimals, 100*share)
}

// Processors prints how many are used as containers count them: 100 % is one.
func Processors(x float64) string { return PercentTo(x, 0) }

// Change prints a ratio as a difference, with its sign: "+5.0 %", "−0.31 %", "+0.0 %". Absent where
// it is no number. Below ten times three digits are enough; above, "×14".
func Change(ratio float64) string {
	const large = 10
	switch {
	case !Known(ratio):
		return Absent
	case ratio >= large:
		return "×" + Digits(ratio, 3)
	case ratio >= 1:
		return "+" + Percent(ratio-1)
	}
	return "−" + Percent(1-ratio)
}

// P prints a probability under the null hypothesis; nothing where there was no test.
func P(p float64) string {
	const least = 0.001
	switch {
	case math.IsNaN(p):
		return ""
	case p < least:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
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

// Hundredths prints a number of things to two decimals.
func Hundredths(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// Whole is Count of what is nearest to x, and x itself where that is beyond what is counted.
func Whole(x float64) string {
	if !(math.Abs(x) < math.MaxInt64) {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return Count(int64(math.Round(x)))
}

// Few lists at most n names and counts the rest: "a, b and 3 more".
func Few(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// First are at most n sentences, and one that counts the rest: "and 3 more".
func First(sentences []string, n int) []string {
	if len(sentences) <= n {
		return sentences
	}
	return append(sentences[:n:n], fmt.Sprintf("and %d more", len(sentences)-n))
}

// Plural counts things: "1 core", "2 cores", "1,000 cores".
func Plural[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(int64(n)) + " " + thing
}

// Raw prints the shortest text that reads back as x; nothing when x is no number.
func Raw(x float64) string {
	if !Known(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Hash is enough of a hash to tell two apart.
func Hash(hash string) string {
	const enough = 12
	return hash[:min(enough, len(hash))]
}

// Digits prints so many significant digits, never with an exponent: of what is below 1 as many
// decimals as that leaves the digits after a zero, and one more below 0.1.
func Digits(x float64, digits int) string {
	a, decimals := math.Abs(x), 0
	for a > 0 && decimals < digits-1 &&
		a < math.Pow10(digits-1-decimals)-0.5*math.Pow10(-decimals-1) {
		decimals++
	}
	if a > 0 && a < 0.1 {
		decimals++
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

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
	number, unit, ok := strings.Cut(lo, " ")
	if ok && strings.HasSuffix(hi, " "+unit) {
		lo = number
	}
	return lo + " – " + hi
}

// Capital is a sentence with a capital letter at its beginning.
func Capital(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToUpper(sentence[:1]) + sentence[1:]
}
