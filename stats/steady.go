package stats

import (
	"fmt"
	"math"
	"slices"
)

// Kinds of series, after Barrett et al. (OOPSLA 2017), as named in reports.
const (
	Flat     = "flat"        // steady from its first value on
	Warmed   = "warmed up"   // slower at first, then steady
	Slowed   = "slowed down" // faster at first, then steady
	Unsteady = "never"       // no steady state before the series ends
)

// Kinds are all kinds.
var Kinds = []string{Flat, Warmed, Slowed, Unsteady}

// Level is a stretch of a series between two change points: values From to To, without To. Mean and
// SD are those of its values after outliers were clipped; see SteadyState.
type Level struct {
	From, To int
	Mean, SD float64
}

// SteadyRule defines when a series counts as steady.
type SteadyRule struct {
	Tail int     // minimum number of values of the steady state, to the series' end; 1 or more
	Same float64 // levels whose means differ by less, relatively, are equal; 0 to 1
}

// Steady is the steady state of a series of rates (higher is better).
type Steady struct {
	Kind   string
	At     int     // index of the first steady value; -1 if there is none
	Levels []Level // between change points, in order, without gaps
	PeakAt int     // index of the first value at the steady level or above; -1 if none
	Lost   float64 // sum over values before At of 1 - value/steady mean, in intervals; 0 if none
}

// Parameters of SteadyState; docs/decisions/0013-steady-state.md has the reasons.
const (
	outlierReach = 3   // the most values that an outlier lasts for
	outlierSDs   = 2.0 // larger deviations from the neighbors' median are clipped to this
	levelPenalty = 3.0 // x log n: penalty of a further level
	linePenalty  = 5.0 // x log n: penalty of a further line
	levelPlaces  = 256 // initial number of places for cuts between levels
	linePlaces   = 128 // initial number of places for cuts between lines; lines are long
	driftSDs     = 3.0 // a drift is real if its slope exceeds this number of standard errors
	mostAR       = 0.7 // upper bound of the correlation of neighbors
	fewValues    = 30  // this many values halve the estimate of that correlation
	floorOfSame  = 0.2 // lower bound of the noise, as a share of Same
)

// SteadyState classifies a series of rates at equal intervals, such as requests/s.
//
// It clips values outside the noise about the median of their neighbors, so that a pause of the
// machine is no level. PELT then cuts the series into levels. From the last one backwards, levels
// belong to one steady state as long as their mean differs from that of the later ones by no more
// than rule.Same, except for interruptions of fewer than rule.Tail values. If a level before the
// steady state is faster, the series is Slowed, otherwise Warmed (Barrett, Bolz-Tereick, Killick,
// Mount & Tratt, "Virtual machine warmup blows hot and cold", OOPSLA 2017, §4). The series is
// Unsteady if that state has fewer than rule.Tail values, if its mean is 0, or if the series still
// drifts at its end: the last of the straight lines that PELT finds, and the latter half of it,
// rise or fall by more than rule.Same over the line's length.
//
// PeakAt is the first value at which the median of the neighborhood is within rule.Same of the
// steady mean or above. It can be before At, if a service was as fast once and became slower again.
// Lost is the shortfall of the values before At against the steady mean, in intervals of steady
// work; negative if the series began faster. It uses the values without clipping.
//
// The result depends only on the values. It takes half a millisecond for 250 values, one for 1000.
// A series that is empty or contains a value that is negative or not finite is Unsteady and has no
// levels. With fewer than two responses per interval it only detects great changes: use longer
// intervals.
func SteadyState(rates []float64, rule SteadyRule) Steady {
	mustBeShare("what counts as the same", rule.Same)
	if rule.Tail < 1 {
		panic(fmt.Sprintf("stats: a steady state must last a value, not %d", rule.Tail))
	}
	s := Steady{Kind: Unsteady, At: -1, PeakAt: -1}
	n := len(rates)
	if n == 0 || slices.ContainsFunc(rates, notRate) {
		return s
	}
	last := rates[max(0, n-rule.Tail):]
	floor := rule.Same * floorOfSame * mean(last)
	if floor == 0 { // the service stands still: only cuts between still and moving matter
		floor = rule.Same*floorOfSame*mean(rates) + math.SmallestNonzeroFloat64
	}
	sd, correlated := noiseOf(rates, floor)
	middle := neighbours(rates)
	calm := slices.Clone(rates)
	for i, m := range middle {
		calm[i] = min(max(rates[i], m-outlierSDs*sd), m+outlierSDs*sd)
	}
	cum := sum(calm)
	unit := sd * sd * correlated * math.Log(float64(n)+1)
	begins := segment(n, levelPlaces, levelPenalty*unit, cum.about)
	s.Levels = levelsOf(calm, begins)
	index, mean := steadyFrom(s.Levels, rule)
	if n-index < rule.Tail || mean <= 0 || drifts(cum, n, sd*sd*correlated, mean, rule) {
		return s
	}
	s.At, s.Kind = index, kindOf(s.Levels, index, mean*(1+rule.Same))
	s.PeakAt = slices.IndexFunc(middle, func(m float64) bool { return m >= mean*(1-rule.Same) })
	for _, x := range rates[:index] {
		s.Lost += 1 - x/mean
	}
	return s
}

func notRate(x float64) bool { return !(x >= 0) || math.IsInf(x, 1) }

// noiseOf estimates the SD of single values about their level, at least floor, and the factor by
// which the variance of a mean of many values exceeds that of independent values.
//
// Differences of neighbors do not contain levels, and the median of their absolute deviations
// ignores the few differences between levels, and outliers. Noise in which each value keeps a share
// c of the one before (AR(1)) has differences of variance 2 s^2 (1-c) at lag 1 and 2 s^2 (1-c^2) at
// lag 2: their quotient is 1+c. A mean's variance then grows by (1+c)/(1-c).
func noiseOf(xs []float64, floor float64) (sd, correlated float64) {
	item, two := spreadAt(xs, 1), spreadAt(xs, 2)
	if item == 0 { // small counts repeat; then outliers must count as noise
		return max(floor, changeRMS(xs)), 1
	}
	if item <= floor {
		return max(floor, two), 1
	}
	quotient := two / item
	n := float64(len(xs))
	c := min(max(0, quotient*quotient-1), mostAR) * n / (n + fewValues)
	return item / math.Sqrt(1-c), (1 + c) / (1 - c)
}

// spreadAt returns the SD of values from their differences at a lag, if they were independent.
func spreadAt(xs []float64, lag int) float64 {
	if len(xs) <= lag+1 {
		return 0
	}
	differences := make([]float64, len(xs)-lag)
	for i := range differences {
		differences[i] = xs[i+lag] - xs[i]
	}
	middle := Median(differences)
	for i, d := range differences {
		differences[i] = math.Abs(d - middle)
	}
	const normal = 0.6744897501960817 // the upper quartile of the standard normal
	return Median(differences) / (normal * math.Sqrt2)
}

// changeRMS is the estimate of spreadAt from all first differences, whatever their size.
func changeRMS(xs []float64) float64 {
	squares := 0.0
	for i := 1; i < len(xs); i++ {
		squares += (xs[i] - xs[i-1]) * (xs[i] - xs[i-1])
	}
	return math.Sqrt(squares / float64(2*max(1, len(xs)-1)))
}

// neighbours returns the median of each value's neighborhood, outlierReach to each side. A median
// keeps a step where it is. At the beginning both sides shrink, because slow first values are the
// target of the search; at the end only the right side does, because a change there cannot be
// distinguished from an outlier yet.
func neighbours(xs []float64) []float64 {
	middle := make([]float64, len(xs))
	window := make([]float64, 0, 2*outlierReach+1)
	for i := range xs {
		reach := min(outlierReach, i)
		from, to := i-reach, min(len(xs), i+reach+1)
		from = max(0, min(from, to-2*reach-1))
		window = append(window[:0], xs[from:to]...)
		slices.Sort(window)
		middle[i] = (window[(len(window)-1)/2] + window[len(window)/2]) / 2
	}
	return middle
}

func levelsOf(calm []float64, begins []int) []Level {
	levels := make([]Level, len(begins))
	for i, from := range begins {
		to := len(calm)
		if i+1 < len(begins) {
			to = begins[i+1]
		}
		levels[i] = Level{From: from, To: to, Mean: calm[from]}
		if to-from > 1 {
			levels[i].Mean, levels[i].SD = mean(calm[from:to]), sd(calm[from:to])
		}
	}
	return levels
}

// steadyFrom goes back from the last level as long as levels are equal. A stretch of others between
// two equal ones is an interruption if it is shorter than rule.Tail and the interrupted level is
// not.
func steadyFrom(levels []Level, rule SteadyRule) (index int, mean float64) {
	first := len(levels) - 1
	index, mean = levels[first].From, levels[first].Mean
	values := float64(levels[first].To - index)
	for i := first - 1; i >= 0; i-- {
		l := levels[i]
		n := float64(l.To - l.From)
		interrupted := index - l.To
		if math.Abs(l.Mean-mean) > rule.Same*mean ||
			interrupted > 0 && l.To-l.From < rule.Tail {
			continue
		}
		if interrupted >= rule.Tail {
			break
		}
		index, mean, values = l.From, (mean*values+l.Mean*n)/(values+n), values+n
	}
	return index, mean
}

// drifts reports whether the series ends in a straight line that is not level. Levels cannot show
// it, because they cut a slope into stairs, and the last step is flat.
func drifts(cum *sums, n int, variance, mean float64, rule SteadyRule) bool {
	penalty := linePenalty * variance * math.Log(float64(n)+1)
	begins := segment(n, linePlaces, penalty, cum.aboutLine)
	from := begins[len(begins)-1]
	total, tt := cum.slope(from, n)
	half, _ := cum.slope((from+n)/2, n)
	least := max(rule.Same*mean/float64(n-from), driftSDs*math.Sqrt(variance/tt))
	return math.Abs(total) > least && math.Abs(half) > rule.Same*mean/float64(n-from) &&
		(half > 0) == (total > 0)
}

func kindOf(levels []Level, pos int, faster float64) string {
	if pos == 0 {
		return Flat
	}
	for _, l := range levels {
		if l.From < pos && l.Mean > faster {
			return Slowed
		}
	}
	return Warmed
}
