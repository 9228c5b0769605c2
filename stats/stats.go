// Package stats computes estimates with intervals and warnings from the trials of a run.
//
// The unit of inference is the trial, never the request: a million requests of one trial share one
// start of the service, one heap and one placement, and contain no information about the next start
// (Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, pp. 63-74). The flow
// is: values of one target, one per trial -> Summarize; values of two targets in the same blocks ->
// PairedRatio; all targets of a run -> Blocks, which shares noise estimates, Compare and Tiers;
// blocks needed for a decision -> Ratio.Resolves. QuantileRanks and QuantileNeeds are an exception:
// they describe how precisely one trial determines its own percentile from its requests.
//
// Targets that run side by side have a second flow, in which the unit of inference is the start:
// slices of a start -> NewRounds; two of its targets -> Rounds.Compare; all starts ->
// CompareStarts, and additionally FindRareEvents and CheckBalance. PlanSD is the scatter for
// planning further starts, and LiveRatio is for a reader who may stop at any start.
//
// OpenLoad.WithoutStalls returns quantiles of response times without the machine's stalls, and
// Exclude the time that it excludes.
//
// Non-goals: reading records, choosing which trials count, rounding, texts for tables. The package
// has no clock, no network and no state, and it never changes its input slices.
//
// Why these methods and libraries: docs/decisions/0003-statistics-libraries.md.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Assumptions of a Summary's interval.
const (
	// Nothing: the values are independent draws from one distribution, of whatever shape.
	Nothing = "nothing"
	// LogNormal: the values' logarithms are normal. Three trials cannot check that.
	LogNormal = "log-normal"
	// Moderated: log-normal, with noise estimates shared between targets (see Blocks).
	Moderated = "moderated"
)

// Summary is a level (requests/s, ns, bytes) over trials, in the unit of its values.
//
// Lo and Hi are both numbers or both NaN. If NaN, no interval exists and Warning says what would
// give one, for example "needs n >= 2". A Warning together with an interval is a doubt about it.
// encoding/json rejects NaN: call HasInterval before writing.
type Summary struct {
	N int `json:"n"`
	// Center is the median; NaN only if N is 0 or a value is not finite.
	Center float64 `json:"center"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	// Confidence of the interval: as requested, or higher if ranks only allow steps.
	Confidence float64 `json:"-"`
	Assumption string  `json:"assumption,omitempty"` // one of the above; "" without interval
	Warning    string  `json:"warning,omitempty"`
}

// HasInterval reports whether Lo and Hi are numbers.
func (s Summary) HasInterval() bool { return !math.IsNaN(s.Lo) }

// Summarize returns the median of xs, one value per trial, and an interval for the median of the
// population of trials, with confidence in (0, 1).
//
// If n allows it at this confidence (n >= 6 at 0.95), the interval lies between two order
// statistics and assumes nothing about the shape (benchmath.AssumeNothing; David & Nagaraja, "Order
// Statistics", 3rd ed., 2003, §7.1). Its confidence is the exact one, for example 0.96875 for six
// trials.
//
// With two or more but fewer trials, no such interval exists: the range of three values contains
// the median in only 75 % of runs. Then the interval is Student's t on logarithms, about the
// geometric mean. It ASSUMES that trials are log-normal, for which geometric mean and median of the
// population are the same number. The canonical suite has three blocks, so its levels usually
// depend on this assumption; Assumption records it. Logarithms are used because the noise of rates
// and times is proportional to them and neither can be negative. The interval always contains
// Center.
//
// Refused: the percentile bootstrap, whose nominal 95 % is 75 % at n = 3 and 86 % at n = 6 (its
// interval cannot leave the range of the values), and any best-of-n.
func Summarize(xs []float64, confidence float64) Summary {
	mustBeShare("confidence", confidence)
	nan := math.NaN()
	s := Summary{N: len(xs), Center: nan, Lo: nan, Hi: nan, Confidence: confidence}
	if i := slices.IndexFunc(xs, notFinite); i >= 0 {
		s.Warning = fmt.Sprintf("value %d is %v: needs finite values", i+1, xs[i])
		return s
	}
	s.Center = Median(xs)
	if s.N < 2 {
		s.Warning = "needs n >= 2"
		return s
	}
	// NewSample sorts the slice that it is given.
	sample := benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds)
	free := benchmath.AssumeNothing.Summary(sample, confidence)
	bad := slices.IndexFunc(xs, notPositive)
	switch {
	case !math.IsInf(free.Lo, 0) && !math.IsInf(free.Hi, 0):
		s.Lo, s.Hi = free.Lo, free.Hi
		s.Confidence, s.Assumption = free.Confidence, Nothing
	case bad < 0:
		_, lo, hi := logInterval(logs(xs), confidence)
		s.Lo, s.Hi = math.Exp(lo), math.Exp(hi)
		s.Assumption = LogNormal
	default:
		s.Warning = fmt.Sprintf("value %d is %v and has no logarithm: needs n >= %d, "+
			"where none is taken", bad+1, xs[bad], ranksNeed(confidence))
		return s
	}
	s.Lo, s.Hi = min(s.Lo, s.Center), max(s.Hi, s.Center)
	if slices.Min(xs) == slices.Max(xs) {
		s.Lo, s.Hi = s.Center, s.Center
		s.Warning = "all values are equal: a spread below the resolution is unknown"
	}
	return s
}

// Median returns the middle value of xs, or the mean of the two middle ones; NaN if xs is empty or
// contains a NaN. It does not change xs.
func Median(xs []float64) float64 {
	if len(xs) == 0 || slices.ContainsFunc(xs, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return sorted[mid-1]/2 + sorted[mid]/2 // halves first: a sum could overflow
}

// ranksNeed returns the least n at which the range of n values contains the median with this
// confidence: 1 - 2 * 0.5^n >= confidence.
func ranksNeed(confidence float64) int {
	return max(2, int(math.Ceil(math.Log2(2/(1-confidence)))))
}

// logInterval returns Student's t interval about the mean of ls, which needs two values or more.
func logInterval(ls []float64, confidence float64) (center, lo, hi float64) {
	half := student(len(ls)-1).Quantile((1+confidence)/2) * sd(ls) / math.Sqrt(float64(len(ls)))
	return mean(ls), mean(ls) - half, mean(ls) + half
}

func logs(xs []float64) []float64 {
	ls := make([]float64, len(xs))
	for i, x := range xs {
		ls[i] = math.Log(x)
	}
	return ls
}

func notFinite(x float64) bool   { return math.IsNaN(x) || math.IsInf(x, 0) }
func notPositive(x float64) bool { return !(x > 0) || math.IsInf(x, 1) }

// mustBeShare panics unless 0 < x < 1, because confidences and error rates are constants or were
// validated.
func mustBeShare(name string, x float64) {
	if !(x > 0 && x < 1) {
		panic(fmt.Sprintf("stats: %s must lie between 0 and 1, not %v", name, x))
	}
}
