package stats

import (
	"fmt"
	"math"
	"slices"
)

// SliceRow has the measurements of one target in the counted window of one slice.
type SliceRow struct {
	Round    int // any number; rounds of a start differ
	Target   int // from 0
	Requests int64
	TimeNs   int64 // length of the window
	CPUNs    int64 // CPU time of the target in the window; -1: unknown
	// Covariates describe other activity on the machine during the slice, such as steal: the same
	// number of values in each row of a start.
	Covariates []float64
}

// Quantity is the quantity that slices are compared by.
type Quantity int

// Quantities. A target's value is a ratio of sums over a start's windows.
const (
	Throughput    Quantity = iota // requests per time
	CPUPerRequest                 // CPU time per request
)

// Rounds are the slices of one start: in each round, each target has one slice.
type Rounds struct {
	rounds [][]SliceRow // by target; a missing slice has no time
}

// NewRounds groups rows by round. It adds up rows of the same round and target, and ignores rows
// without time. It panics if a target is negative.
func NewRounds(rows []SliceRow) *Rounds {
	targets := 0
	var numbers []int
	indexes := map[int]int{}
	for _, row := range rows {
		if row.Target < 0 {
			panic(fmt.Sprintf("stats: target %d of round %d", row.Target, row.Round))
		}
		targets = max(targets, row.Target+1)
		if _, ok := indexes[row.Round]; !ok {
			indexes[row.Round] = 0
			numbers = append(numbers, row.Round)
		}
	}
	slices.Sort(numbers)
	r := &Rounds{rounds: make([][]SliceRow, len(numbers))}
	for i, number := range numbers {
		indexes[number], r.rounds[i] = i, make([]SliceRow, targets)
	}
	for _, row := range rows {
		sum := &r.rounds[indexes[row.Round]][row.Target]
		if row.TimeNs <= 0 {
			continue
		}
		if sum.TimeNs > 0 {
			row = sum.plus(row)
		}
		*sum = row
	}
	return r
}

// slice returns the sum of the slices of a side's targets in a round; false: one is missing.
func slice(round []SliceRow, side []int) (sum SliceRow, ok bool) {
	for i, target := range side {
		if target >= len(round) || round[target].TimeNs <= 0 {
			return SliceRow{}, false
		}
		if i == 0 {
			sum = round[target]
		} else {
			sum = sum.plus(round[target])
		}
	}
	return sum, len(side) > 0
}

// plus returns the sum of two slices.
func (s SliceRow) plus(row SliceRow) SliceRow {
	s.Requests += row.Requests
	s.TimeNs += row.TimeNs
	if s.CPUNs < 0 || row.CPUNs < 0 {
		s.CPUNs = -1
	} else {
		s.CPUNs += row.CPUNs
	}
	if len(row.Covariates) > 0 {
		sums := slices.Clone(row.Covariates)
		for i := range min(len(sums), len(s.Covariates)) {
			sums[i] += s.Covariates[i]
		}
		s.Covariates = sums
	}
	return s
}

// parts returns numerator and denominator of a quantity; false: unknown.
func (q Quantity) parts(row SliceRow) (top, bottom float64, known bool) {
	if q == CPUPerRequest {
		return float64(row.CPUNs), float64(row.Requests), row.CPUNs >= 0
	}
	return float64(row.Requests), float64(row.TimeNs), true
}

// StartRatio is the result of one start for b over a, in natural logarithms: 0.02 is 2 %.
type StartRatio struct {
	Rounds  int // rounds with the slices of both sides
	Skipped int // rounds with the slices of only one side
	// LogRatio is the ratio of totals: all work over all time, so rare events have full weight. NaN
	// if a total has no logarithm.
	LogRatio float64
	// SE is the standard error of LogRatio that the scatter between rounds predicts; NaN for fewer
	// than leastRounds rounds.
	SE float64
	// Typical is the median log ratio of rounds, which rare events do not change.
	Typical float64
	// Ending is the log ratio of the last quarter of the rounds minus LogRatio: how much the ratio
	// still changed during the start. A change of the machine, which affects both targets, cancels.
	// NaN for fewer than four rounds, or if the quarter has no ratio.
	Ending float64
	// EventsA and EventsB count rounds in which a or b was far slower than in the typical round
	// (for CPUPerRequest: used far more CPU time per request).
	EventsA, EventsB int
	WindowNs         int64 // total counted time over all rounds, of the target with less
	Warning          string
}

const (
	leastRounds = 8 // for a jackknife: with fewer, an SE is too imprecise
	// eventSDs is the number of robust standard deviations from the median that make a round an
	// event. Normal noise exceeds it in one of 1.7 million rounds.
	eventSDs = 5
	// madToSD converts a median absolute deviation to an SD for normal values: 1 / the normal
	// quartile.
	madToSD = 1.4826
	// LeastEvents is how often an event must happen per start, on average, for its cost to be
	// measurable: a start misses all of five expected events in 0.7 % of cases (Poisson).
	LeastEvents = 5
)

// RarestNs returns the mean distance, in ns of loaded time, between the rarest events that a start
// can detect: those that happen LeastEvents times in its windows. The cost of rarer events cannot
// be measured. 0 without a window.
func (s StartRatio) RarestNs() int64 { return s.WindowNs / LeastEvents }

// Compare compares side b with side a over the rounds in which both have their slices. A side is a
// target, or all instances of a target: their slices in a round count as one.
//
// LogRatio is a ratio of totals, and no round is dropped or weighted by its value: the median of
// rounds, a trimmed mean, or weights by a round's own variance would exclude rare events of a
// service, such as a garbage collector's pause, which are part of the result.
//
// SE is the jackknife's over rounds (Miller, "The jackknife: a review", Biometrika 61, 1974, pp.
// 1-15, with ratios of totals in section 3): the log ratio is computed without each round in turn.
// Rounds count as independent because the order of targets is random in each: a drift of the
// machine changes its sign between targets with the order.
//
// SE does not include differences between starts. Use it for planning and for the components of
// CompareStarts, never as an interval.
func (r *Rounds) Compare(a, b []int, q Quantity) StartRatio {
	nan := math.NaN()
	s := StartRatio{LogRatio: nan, SE: nan, Typical: nan, Ending: nan}
	var pairs [][2]SliceRow
	var times [2]int64
	for _, round := range r.rounds {
		x, okX := slice(round, a)
		y, okY := slice(round, b)
		switch {
		case okX && okY:
			pairs = append(pairs, [2]SliceRow{x, y})
			times[0], times[1] = times[0]+x.TimeNs, times[1]+y.TimeNs
		case okX || okY:
			s.Skipped++
		}
	}
	s.Rounds, s.WindowNs = len(pairs), min(times[0], times[1])
	var total [4]float64 // numerator and denominator of a, then of b
	for i, pair := range pairs {
		part, known := q.pair(pair)
		if !known {
			s.Warning = fmt.Sprintf("round %d of %d has no value: its processor time is unknown",
				i+1, len(pairs))
			return s
		}
		for j := range total {
			total[j] += part[j]
		}
	}
	s.LogRatio = logOfParts(total)
	if notFinite(s.LogRatio) {
		s.LogRatio = nan
		s.Warning = "a target has no request or no time in its windows: needs both"
		return s
	}
	s.jackknife(pairs, total, q)
	s.typical(pairs, q)
	s.ending(pairs, q)
	return s
}

// ending sets Ending.
func (s *StartRatio) ending(pairs [][2]SliceRow, q Quantity) {
	quarter := len(pairs) / 4
	if quarter == 0 {
		return
	}
	var last [4]float64
	for _, pair := range pairs[len(pairs)-quarter:] {
		part, _ := q.pair(pair)
		for j := range last {
			last[j] += part[j]
		}
	}
	if change := logOfParts(last) - s.LogRatio; !notFinite(change) {
		s.Ending = change
	}
}

// pair returns the parts of a, then of b.
func (q Quantity) pair(pair [2]SliceRow) (parts [4]float64, known bool) {
	for side, row := range pair {
		top, bottom, ok := q.parts(row)
		if !ok {
			return parts, false
		}
		parts[2*side], parts[2*side+1] = top, bottom
	}
	return parts, true
}

// logOfParts returns the log ratio of b's quotient to a's; NaN or infinite if it does not exist.
func logOfParts(p [4]float64) float64 {
	return math.Log(p[2]) - math.Log(p[3]) - math.Log(p[0]) + math.Log(p[1])
}

// jackknife sets SE.
func (s *StartRatio) jackknife(pairs [][2]SliceRow, total [4]float64, q Quantity) {
	if len(pairs) < leastRounds {
		s.Warning = fmt.Sprintf("needs %d rounds for a standard error, has %d", leastRounds,
			len(pairs))
		return
	}
	without := make([]float64, len(pairs))
	for i, pair := range pairs {
		part, _ := q.pair(pair)
		for j := range part {
			part[j] = total[j] - part[j]
		}
		without[i] = logOfParts(part)
		if notFinite(without[i]) {
			s.Warning = "one round has all requests of a target: no standard error"
			return
		}
	}
	n := float64(len(pairs))
	s.SE = math.Sqrt((n - 1) * (n - 1) / n * variance(without))
}

// typical sets Typical and counts events.
func (s *StartRatio) typical(pairs [][2]SliceRow, q Quantity) {
	var ds []float64
	for _, pair := range pairs {
		// A round without any request of one target is infinitely far away, and counts as an event.
		part, _ := q.pair(pair)
		if d := logOfParts(part); !math.IsNaN(d) {
			ds = append(ds, d)
		}
	}
	if s.Typical = Median(ds); notFinite(s.Typical) {
		s.Typical = math.NaN()
		return
	}
	distances := make([]float64, len(ds))
	for i, d := range ds {
		distances[i] = math.Abs(d - s.Typical)
	}
	limit := eventSDs * madToSD * Median(distances)
	for _, d := range ds {
		if math.Abs(d-s.Typical) <= limit {
			continue
		}
		if (d < s.Typical) == (q == Throughput) {
			s.EventsB++
		} else {
			s.EventsA++
		}
	}
}
