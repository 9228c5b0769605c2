package audit

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"prony.example/internal/base/lazyregexp"
)

// Quantity is the kind of a value; the names are those of --column and of the documentation.
type Quantity string

// Quantities. Times are ns, rates per second, sizes bytes, shares of 1, CPU in cores.
const (
	Rate           Quantity = "rate"
	Requests       Quantity = "requests"
	Duration       Quantity = "duration"
	Mean           Quantity = "mean"
	Min            Quantity = "min"
	P50            Quantity = "p50"
	P75            Quantity = "p75"
	P90            Quantity = "p90"
	P95            Quantity = "p95"
	P99            Quantity = "p99"
	P999           Quantity = "p99.9"
	P9999          Quantity = "p99.99"
	Max            Quantity = "max"
	Deviation      Quantity = "stdev"
	Errors         Quantity = "errors"
	ErrorRate      Quantity = "errors/s"
	ErrorShare     Quantity = "error share"
	Good           Quantity = "good"
	Connections    Quantity = "connections"
	Streams        Quantity = "streams"
	Users          Quantity = "users"
	Threads        Quantity = "threads"
	Offered        Quantity = "offered"
	Think          Quantity = "think"
	Iterations     Quantity = "iterations"
	IterationRate  Quantity = "iterations/s"
	IterationMean  Quantity = "iteration mean"
	IterationMin   Quantity = "iteration min"
	Bytes          Quantity = "bytes"
	ByteRate       Quantity = "bytes/s"
	Size           Quantity = "size"
	CPU            Quantity = "cpu"
	Cores          Quantity = "cores"
	Memory         Quantity = "memory"
	Relative       Quantity = "relative"
	Rank           Quantity = "rank"
	Runs           Quantity = "runs"
	AskedRequests  Quantity = "asked requests"
	AskedDuration  Quantity = "asked duration"
	InFlight       Quantity = "in flight"
	rateWithSpread Quantity = "rate stdev"
)

type kind int

const (
	aCount kind = iota
	aRate
	aTime
	aShare
	aSize
	aSizeRate
	aCPU
)

var kinds = map[Quantity]kind{
	Rate: aRate, ErrorRate: aRate, Offered: aRate, IterationRate: aRate, rateWithSpread: aRate,
	Duration: aTime, Mean: aTime, Min: aTime, P50: aTime, P75: aTime, P90: aTime, P95: aTime,
	P99: aTime, P999: aTime, P9999: aTime, Max: aTime, Deviation: aTime, Think: aTime,
	IterationMean: aTime, IterationMin: aTime, AskedDuration: aTime,
	ErrorShare: aShare, Relative: aShare, Bytes: aSize, Size: aSize, Memory: aSize,
	ByteRate: aSizeRate, CPU: aCPU,
	Requests: aCount, Errors: aCount, Good: aCount, Connections: aCount, Streams: aCount,
	Users: aCount, Threads: aCount, Iterations: aCount, Cores: aCount, Rank: aCount, Runs: aCount,
	AskedRequests: aCount, InFlight: aCount,
}

// Value is a printed number.
type Value struct {
	V       float64 // in base units
	Slack   float64 // the largest rounding error, one unit of its last digit
	Text    string  // as printed, with its unit
	Line    int
	derived bool // computed from other values of the same source, so that it cannot contradict them
}

// span is the range of the true value.
type span struct{ lo, hi float64 }

func (v Value) span() span { return span{max(v.V-v.Slack, 0), v.V + v.Slack} }

func (s span) times(o span) span { return span{s.lo * o.lo, s.hi * o.hi} }

// per divides; if the divisor may be 0, the result is unbounded.
func (s span) per(o span) span {
	if o.lo <= 0 {
		return span{0, math.Inf(1)}
	}
	return span{s.lo / o.hi, s.hi / o.lo}
}

func (s span) by(f float64) span { return span{s.lo * f, s.hi * f} }

// meets reports whether two spans overlap, with an additional error of a share.
func (s span) meets(o span, share float64) bool {
	return s.lo <= o.hi*(1+share) && o.lo <= s.hi*(1+share)
}

// second is one second in the unit of times, ns.
const second = float64(time.Second)

var unitFactors = map[kind]map[string]float64{
	aTime: {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "msec": 1e6, "s": second,
		"sec": second, "secs": second, "second": second, "seconds": second, "m": 60 * second,
		"min": 60 * second, "minutes": 60 * second, "h": 3600 * second,
		"milliseconds": 1e6, "microseconds": 1e3},
	aSize: {"b": 1, "bytes": 1, "byte": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10,
		"mib": 1 << 20, "gib": 1 << 30, "tb": 1e12},
	aShare: {"%": 0.01, "x": 1, "×": 1},
	aCPU: {"%": 0.01, "cores": 1, "core": 1, "cpus": 1, "cpu": 1, "vcpu": 1, "vcpus": 1,
		"m": 1e-3, "mcpu": 1e-3},
	aCount: {"": 1, "k": 1e3, "m": 1e6},
	aRate:  {"": 1, "k": 1e3, "m": 1e6},
}

// perSecond matches the unit after the number of a rate.
var perSecond = lazyregexp.New(
	`(?i)\s*(reqs?|requests?|ops|queries|failures|errors|iters|it)?\s*` +
		`((/\s*|per )(s|sec|second|min|minute)|rps|qps|tps)?\.?$`)

var (
	numberHead = lazyregexp.New(
		`^([~≈]?)\s*\+?(\d(?:[\d.,'’_\x{00a0}\x{202f} ]*\d)?)(e[+-]?\d+)?\s*(.*)$`)
	marks = strings.NewReplacer("*", "", "`", "", "__", "", "~~", "", "&nbsp;", " ", "<br>",
		" ")
	brackets  = lazyregexp.New(`\s*[\[(][^\])]*[\])]\s*$`)
	clockTime = lazyregexp.New(`^(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)$`)
)

// plain removes Markdown marks, footnotes and medals from a cell.
func plain(cell string) string {
	cell = strings.TrimSpace(marks.Replace(cell))
	return strings.TrimSpace(strings.TrimFunc(cell, func(r rune) bool {
		return unicode.In(r, unicode.So, unicode.No) || r == '\ufe0f'
	}))
}

// parseValue parses a cell with a quantity; unit is the head's and may be empty. A time without a
// unit is not a value, because its scale is unknown.
func parseValue(cell, unit string, q Quantity) (Value, bool) {
	text := plain(cell)
	text, _, _ = strings.Cut(text, "±")
	text, _, _ = strings.Cut(text, "+/-")
	text = strings.TrimSpace(text)
	k := kinds[q]
	if k == aTime {
		if v, ok := compound(text); ok {
			return v, true
		}
	}
	m := numberHead.FindStringSubmatch(text)
	if m == nil {
		return Value{}, false
	}
	v, step, ok := digits(m[2])
	if !ok {
		return Value{}, false
	}
	if m[3] != "" {
		e, err := strconv.Atoi(m[3][1:])
		if err != nil {
			return Value{}, false
		}
		v, step = v*math.Pow10(e), step*math.Pow10(e)
	}
	output := strings.TrimSpace(brackets.ReplaceAllString(m[4], ""))
	scale, ok := scaleOf(k, output, unit)
	if unit == unsaid {
		unit, ok = "", ok || v == 0
	}
	if !ok || v*scale > hugest || step*scale > hugest {
		return Value{}, false
	}
	out := Value{V: v * scale, Slack: step * scale, Text: shown(m[1]+m[2]+m[3], output, unit, k)}
	if k == aCount && scale == 1 && step <= 100 || q == Connections || q == Users {
		out.Slack = 0 // counts are printed in full
	}
	if m[1] != "" {
		out.Slack = max(out.Slack, out.V/10) // "about"
	}
	return out, true
}

// isNumber reports whether a cell begins with a number.
func isNumber(cell string) bool {
	m := numberHead.FindStringSubmatch(plain(cell))
	if m == nil {
		return false
	}
	_, _, ok := digits(m[2])
	return ok
}

func shown(number, text, unit string, k kind) string {
	switch {
	case k == aRate && !strings.Contains(text, "/"):
		if strings.EqualFold(text, "k") || strings.EqualFold(text, "m") {
			number += text
		}
		if perMinute(text, unit) {
			return number + "/min"
		}
		return number + "/s"
	case k == aSize:
		return number + " " + sizeNames.Replace(cmp.Or(text, unit))
	case text != "":
		if strings.EqualFold(text, "k") || text == "%" || strings.HasSuffix(text, "s") {
			return number + text
		}
		return number + " " + text
	case unit == "%":
		return number + "%"
	case unit != "" && k != aRate:
		return number + " " + unit
	}
	return number
}

var sizeNames = strings.NewReplacer("kb", "kB", "mb", "MB", "gb", "GB", "kib", "KiB", "mib", "MiB")

// scaleOf returns the scale of the cell's unit, or else of the head's.
func scaleOf(k kind, text, unit string) (float64, bool) {
	per := 1.0
	switch k {
	case aRate:
		if perMinute(text, unit) {
			per = 1.0 / 60
		}
		text, unit = perSecond.ReplaceAllString(text, ""), perSecond.ReplaceAllString(unit, "")
	case aSizeRate:
		if bits.MatchString(cmp.Or(text, unit)) {
			return 0, false
		}
		k = aSize
		for _, end := range []string{"/s", "/sec", "ps"} {
			text, unit = strings.TrimSuffix(text, end), strings.TrimSuffix(unit, end)
		}
	case aCount:
		if strings.IndexAny(text, "%-–—") == 0 { // a share, or a range
			return 0, false
		}
		if f := strings.Fields(text); len(f) > 0 &&
			unitFactors[aCount][strings.ToLower(f[0])] == 0 {
			text = "" // "100 connections"
		} else if len(f) > 1 {
			text = f[0]
		}
		unit = strings.TrimPrefix(unit, "count")
	}
	text = cmp.Or(text, unit)
	if text == "" && (k == aShare || k == aRate || k == aCount) {
		return per, true
	}
	scale, ok := unitFactors[k][strings.ToLower(text)]
	return scale * per, ok
}

var (
	minutely = lazyregexp.New(`(?i)(/\s*|per )min(ute)?\.?$`)
	timed    = lazyregexp.New(`(?i)/|per |[rqt]ps`)
	// bits are units of bits per second. Heads are in small letters, in which MBps is the same.
	bits = lazyregexp.New(`(^|\s)([kKmMgGtT]?bps|[KMGT]b/s(ec)?)$`)
)

// perMinute reports whether a rate is one per minute: by the cell, or by the head if the cell has
// no unit of time.
func perMinute(text, unit string) bool {
	if timed.MatchString(text) {
		unit = text
	}
	return minutely.MatchString(unit)
}

// hugest bounds values so that no sum of them overflows: 10 million years in ns.
const hugest = 1e24

// roundedShare is the largest assumed rounding of a whole number that ends in zeros.
const roundedShare = 0.05

// digits parses a number with thousands separators; step is one unit of its last printed digit.
// Trailing zeros of a whole number may be rounding, so they do not count as printed, within bounds.
func digits(s string) (v, step float64, ok bool) {
	s = groupMarks.Replace(s)
	comma, dot := strings.LastIndex(s, ","), strings.LastIndex(s, ".")
	switch {
	case comma >= 0 && dot >= 0 && comma > dot, comma >= 0 && dot < 0 && !grouped(s, ","):
		s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
	case strings.Count(s, ".") > 1 && grouped(s, "."):
		s = strings.ReplaceAll(s, ".", "")
	default:
		s = strings.ReplaceAll(s, ",", "")
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, 0, false
	}
	if _, after, present := strings.Cut(s, "."); present {
		return v, math.Pow10(-len(after)), true
	}
	dir := strings.TrimRight(s, "0")
	if dir == "" {
		return v, 1, true
	}
	step = min(math.Pow10(len(s)-len(dir)), max(1, roundedShare*v))
	return v, step, true
}

var groupMarks = strings.NewReplacer("'", "", "’", "", "_", "", " ", "", "\u00a0", "",
	"\u202f", "")

// grouped reports whether a mark separates a number into thousands.
func grouped(s, mark string) bool {
	parts := strings.Split(s, mark)
	for _, p := range parts[1:] {
		if len(p) != 3 {
			return false
		}
	}
	return len(parts[0]) <= 3 && len(parts[0]) > 0 && parts[0] != "0"
}

// compound parses 1m30s and 00:01:30.
func compound(text string) (Value, bool) {
	if m := clockTime.FindStringSubmatch(text); m != nil {
		v, err := strconv.ParseFloat(cmp.Or(m[1], "0"), 64)
		for _, part := range m[2:] { // minutes and seconds of at most two digits
			p, _ := strconv.ParseFloat(part, 64)
			v = v*60 + p
		}
		return Value{V: v * second, Slack: second, Text: text}, err == nil && v*second <= hugest
	}
	if strings.Count(text, "m") == 1 && strings.HasSuffix(text, "s") &&
		!strings.HasSuffix(text, "ms") || strings.Contains(text, "h") {
		d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			return Value{}, false
		}
		slack := second
		if strings.Contains(text, ".") {
			slack /= 10
		}
		return Value{V: float64(d), Slack: slack, Text: text}, true
	}
	return Value{}, false
}
