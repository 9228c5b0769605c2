package stats

import (
	"fmt"
	"math"
	"slices"
)

// SliceRow is what one target did within the counted window of one slice.
type SliceRow struct {
	Round    int // from any number on; rounds of a start differ
	Target   int // from 0
	Requests int64
	TimeNs   int64 // length of the window
	CPUNs    int64 // processor time of the target within the window; -1: unknown
	// Covariates are what others did to the machine during the slice, such as steal: the same
	// number of values in each row of a start.
	Covariates []float64
}

// Quantity is what a comparison by slices is about.
type Quantity int

// Quantities. A value of a target is a ratio of sums over a start's windows.
const (
	Throughput    Quantity = iota // requests by time
	CPUPerRequest                 // processor time by requests
)

// Rounds are the slices of one start: in each round, each target has one slice.
type Rounds struct {
	rounds [][]SliceRow // by target; a missing one has no time
}

// NewRounds groups rows by round. Two rows of the same round and target become their sum. A row
// without time is as good as missing. It panics where a target is negative.
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

// slice is a target's in a round; false: it is missing.
func slice(round []SliceRow, target int) (SliceRow, bool) {
	if target >= len(round) {
		return SliceRow{}, false
	}
	return round[target], round[target].TimeNs > 0
}

// plus adds what another slice counted.
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

// parts are the numerator and the denominator of a quantity; false: unknown.
func (q Quantity) parts(row SliceRow) (top, bottom float64, known bool) {
	if q == CPUPerRequest {
		return float64(row.CPUNs), float64(row.Requests), row.CPUNs >= 0
	}
	return float64(row.Requests), float64(row.TimeNs), true
}

// StartRatio is what one start reports about b over a, in natural logarithms: 0.02 is 2 %.
type StartRatio struct {
	Rounds  int // in which both targets have a slice
	Skipped int // in which only one target has
	// LogRatio is of totals: all work over all time, so that rare events count in full. NaN if a
	// total has no logarithm.
	LogRatio float64
	// SE is the standard error of LogRatio that the scatter between rounds predicts; NaN below
	// leastRounds rounds.
	SE float64
	// Typical is the median over rounds of a round's log ratio, which rare events do not move.
	Typical float64
	// EventsA and EventsB count rounds in which a or b was far slower than in the typical round
	// (for CPUPerRequest: used far more processor time for a request).
	EventsA, EventsB int
	WindowNs         int64 // counted time of the target with less of it, in all rounds together
	Warning          string
}

const (
	leastRounds = 8 // of a jackknife: below it an SE is not worth printing
	// eventSDs is how many robust standard deviations from the median make a round an event. Normal
	// noise exceeds it in one of 1.7 million rounds.
	eventSDs = 5
	// madToSD makes a median absolute deviation an SD for normal values: 1 / the normal quartile.
	madToSD = 1.4826
	// LeastEvents is how often an event must happen in a start, on average, for starts to tell its
	// cost: of five, a start misses all in 0.7 % of cases (Poisson).
	LeastEvents = 5
)

// RarestNs is the mean distance, in ns of loaded time, of the rarest events that a start can
// report: those that happen LeastEvents times in its windows. The cost of rarer events is outside
// of what can be seen. 0 without a window.
func (s StartRatio) RarestNs() int64 { return s.WindowNs / LeastEvents }

// Compare compares target b with target a over the rounds in which both have a slice.
//
// LogRatio is a ratio of totals, and no round is dropped or weakened for its value: the median of
// rounds, a trimmed mean, or weights by a round's own variance would leave out what a service does
// rarely, such as a collector's pause, which is part of the answer.
//
// SE is the jackknife's over rounds (Miller, "The jackknife: a review", Biometrika 61, 1974,
// pp. 1-15, with ratios of totals in section 3): the log ratio is computed without each round in
// turn. Rounds may be taken for independent because the order of targets is drawn at random in
// each: a drift of the machine changes its sign between targets with the order.
//
// SE knows nothing of what differs between starts. It is for planning and for the components of
// CompareStarts, never an interval by itself.
func (r *Rounds) Compare(a, b int, q Quantity) StartRatio {
	nan := math.NaN()
	s := StartRatio{LogRatio: nan, SE: nan, Typical: nan}
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
	var total [4]float64 // numerators and denominators of a, then of b
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
	return s
}

// pair are the parts of a, then of b.
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

// logOfParts is the log ratio of b's quotient to a's; NaN or infinite where there is none.
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

// typical sets Typical and counts the rounds that are far from it.
func (s *StartRatio) typical(pairs [][2]SliceRow, q Quantity) {
	var ds []float64
	for _, pair := range pairs {
		// A round without any request of one target is infinitely far away, and counts as such.
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
