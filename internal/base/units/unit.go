// Package units prints numbers for people: with significant digits, in the unit that suits the
// value. Elsewhere in the program values are in base units; only output scales them.
//
// Non-goals: it parses no numbers and aligns none in columns (package format does).
package units

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Base units of values.
const (
	PerS  = "1/s"
	Ns    = "ns"
	Octet = "B"
	J     = "J"
	One   = "1" // a share or a number of things
)

// Absent is printed in place of a missing number.
const Absent = "–"

// Known reports whether x is neither NaN nor infinite.
func Known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Quantity prints a value in its base unit; Absent if it is NaN or infinite.
func Quantity(x float64, base string) string {
	if !Known(x) {
		return Absent
	}
	if base == PerS {
		return Rate(x) + "/s"
	}
	return Printer(base)(x)
}

// Printer returns a function that prints values of a base unit below a heading that names the
// quantity: rates lack their "/s".
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

// FineRate prints a rate with four digits and without zeros at the end, because the ends of an
// interval often agree in three digits.
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
		return "0 s" // exactly 0 suits all units
	}
	u := timeOf(ns)
	return Digits(ns/u.ns, 3) + " " + u.name
}

// Roughly prints a duration for a reader who waits or plans: 45 s, 12 min, 7.5 h, 3.2 days.
func Roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.2g h", d.Hours())
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// KnownDuration prints a duration whose 0 means unknown: Absent then.
func KnownDuration[N int64 | float64](ns N) string {
	if !(ns > 0) {
		return Absent
	}
	return Duration(float64(ns))
}

// Ends prints an interval in the unit of its center, without the unit: "[11.8, 12.6]".
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
	u := timeOf(x * 1e9) // s, ms, µs and ns scale as J, mJ, µJ and nJ
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

// AtMost prints an upper bound as Percent does, but rounds it up.
func AtMost(share float64) string {
	step := 1e-4 // 0.01 %
	switch a := 100 * share; {
	case a >= 9.95:
		step = 1e-2
	case a >= 0.095:
		step = 1e-3
	}
	return Percent(step * max(math.Ceil(share/step-1e-6), 0))
}

// PercentTo prints a share with a fixed number of decimals.
func PercentTo(share float64, decimals int) string {
	if !Known(share) {
		return Absent
	}
	return fmt.Sprintf("%.*f %%", decimals, 100*share)
}

// Processors prints a number of cores as container tools do: 100 % is one core.
func Processors(x float64) string { return PercentTo(x, 0) }

// Change prints a ratio as a difference with its sign, "+5.0 %", "−0.31 %", "+0.0 %", and a ratio
// of 10 or more as "×14". It prints Absent for NaN and infinite ratios.
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

// P prints a p-value; nothing for NaN, which means no test.
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

// Hundredths prints a number with two decimals.
func Hundredths(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// Whole prints the integer that is nearest to x as Count does, or x itself if it exceeds int64.
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

// First returns at most n sentences, and one that counts the others: "and 3 more".
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

// Raw prints the shortest text that reads back as x; nothing for NaN and infinite values.
func Raw(x float64) string {
	if !Known(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Hash shortens a hash to 12 characters, which are enough to distinguish hashes.
func Hash(hash string) string {
	const enough = 12
	return hash[:min(enough, len(hash))]
}

// Digits prints x with a number of significant digits, never with an exponent. Below 1 the zero
// before the point counts as a digit; below 0.1 it prints one more decimal.
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

// timeUnit is a unit of printed durations.
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

// Scale is one unit of time and one number of decimals for a group of columns, so that readers can
// compare the numbers without reading units.
type Scale struct {
	timeUnit
	decimals int
}

// ScaleFor chooses the unit from the median, ms from 0.1 ms on and s from 1 s on, and the decimals
// so that the smallest value has two digits. It ignores NaN and infinite values.
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

// DecimalsFor returns the decimals that show x with a number of significant digits, at most three.
func DecimalsFor(x float64, significant int) int {
	lead := int(math.Floor(math.Log10(max(x, 1e-9))))
	return min(max(significant-1-lead, 0), 3)
}

// Print prints a duration.
func (s Scale) Print(ns float64) string {
	return strconv.FormatFloat(ns/s.ns, 'f', s.decimals, 64) + " " + s.name
}

// Finer returns a scale for intervals: with one more decimal, because otherwise their ends often
// look equal.
func (s Scale) Finer() Scale { return Scale{s.timeUnit, s.decimals + 1} }

// Between prints an interval, with the unit once if both ends have the same unit.
func Between(lo, hi string) string {
	number, unit, ok := strings.Cut(lo, " ")
	if ok && strings.HasSuffix(hi, " "+unit) {
		lo = number
	}
	return lo + " – " + hi
}

// Capital capitalizes the first letter of a sentence.
func Capital(sentence string) string {
	_, size := utf8.DecodeRuneInString(sentence)
	return strings.ToUpper(sentence[:size]) + sentence[size:]
}
