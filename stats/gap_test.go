package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"prony.example/internal/dev/testsets"
)

// gapMs is the time in which a thread measures the core's speed between two slices, while all
// targets are stopped.
const gapMs = 4.0

// gapRound is a round of two targets: log costs, as CPU time per work, of the slices in their
// order, and of fixed work in the gaps before each slice and after the last one.
type gapRound struct {
	slices [2]float64
	gaps   [3]float64
}

// cost returns the log cost between two moments; NaN if the core did not run.
func (h host) cost(from, to float64) float64 {
	busy, work := read(h.busy, to)-read(h.busy, from), read(h.work, to)-read(h.work, from)
	if busy <= 0 || work <= 0 {
		return math.NaN()
	}
	return math.Log(busy / work)
}

// playGaps simulates rounds of equal targets. It leaves out rounds in which the core did not run.
func playGaps(r *rand.Rand, m machine, rounds int) (all []gapRound) {
	d := usual(m)
	h := newHost(r, m, float64(2*rounds+1)*(gapMs+d.lead+d.window*(1+d.vary)))
	now := 0.0
	for range rounds {
		var x gapRound
		for i := range x.slices {
			x.gaps[i] = h.cost(now, now+gapMs)
			opened := now + gapMs + d.lead
			now = opened + d.window*(1+d.vary*r.Float64())
			x.slices[i] = h.cost(opened, now)
		}
		x.gaps[2] = h.cost(now, now+gapMs)
		if sum := x.gaps[0] + x.gaps[1] + x.gaps[2] + x.slices[0] + x.slices[1]; sum == sum {
			all = append(all, x)
		}
	}
	return all
}

// column returns a value of each round.
func column(all []gapRound, of func(gapRound) float64) (out []float64) {
	for _, x := range all {
		out = append(out, of(x))
	}
	return out
}

// remaining returns the share of the variance of y that a linear regression on xs leaves.
func remaining(y []float64, xs ...[]float64) float64 {
	center := func(v []float64) (out []float64) {
		middle := mean(v)
		for _, x := range v {
			out = append(out, x-middle)
		}
		return out
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	rest := center(y)
	whole := dot(rest, rest)
	var basis [][]float64
	for _, x := range xs {
		v := center(x)
		for _, b := range basis {
			slope := dot(v, b) / dot(b, b)
			for i := range v {
				v[i] -= slope * b[i]
			}
		}
		basis = append(basis, v)
		slope := dot(rest, v) / dot(v, v)
		for i := range rest {
			rest[i] -= slope * v[i]
		}
	}
	return dot(rest, rest) / whole
}

// Ways to adjust the log ratio of a start by the gaps.
const (
	unadjusted = iota
	bothGaps   // by the difference between the gaps before both slices
	firstGap   // by the gap before the round, which is measured before the order is drawn
	adjustments
)

// adjustedStart returns the log ratio of a start by each way. Targets are equal, and the order of
// each round is random. The first target leaves caches in which the work of the next gap costs more
// by a share.
func adjustedStart(r *rand.Rand, all []gapRound, after float64) (out [adjustments]float64) {
	var ys, both, first []float64
	for _, x := range all {
		sign := 1.0
		if r.IntN(2) == 0 {
			sign = -1
		} else {
			x.gaps[1] += after
		}
		ys = append(ys, sign*(x.slices[1]-x.slices[0]))
		both = append(both, sign*(x.gaps[1]-x.gaps[0]))
		first = append(first, sign*x.gaps[0])
	}
	by := func(xs []float64) float64 {
		middle, sum, squares := mean(xs), 0.0, 0.0
		for i, x := range xs {
			sum += (x - middle) * ys[i]
			squares += (x - middle) * (x - middle)
		}
		return mean(ys) - sum/squares*middle
	}
	return [adjustments]float64{mean(ys), by(both), by(first)}
}

// TestMarkovGap compares what the gap before a round explains with arithmetic. If the log speed is
// an Ornstein-Uhlenbeck process with SD 1, and x is the length of a slice by its correlation time,
// slices are means with the variance V = 2(x − 1 + e^-x)/x² and the covariance C = (1 − e^-x)²/x².
// The gap predicts a = (1 − e^-x)/x of the first slice and a·e^-x of the second one, so it explains
// a²(1 − e^-x)² of 2(V − C). This is 24 % at most.
func TestMarkovGap(t *testing.T) {
	const steps, rounds = 20, 8_000
	r := rand.New(rand.NewPCG(63, 1))
	for _, x := range []float64{0.3, 1, 3} {
		decay := math.Exp(-x / steps)
		last := r.NormFloat64()
		slice := func() (mean float64) {
			for range steps {
				mean += last / steps
				last = decay*last + math.Sqrt(1-decay*decay)*r.NormFloat64()
			}
			return mean
		}
		var all []gapRound
		for range rounds {
			round := gapRound{gaps: [3]float64{last}}
			round.slices[0], round.slices[1] = slice(), slice()
			all = append(all, round)
		}
		_, _, got := explained(all)
		e := math.Exp(-x)
		v, c, a := 2*(x-1+e)/x/x, (1-e)*(1-e)/x/x, (1-e)/x
		want := 1 - a*a*(1-e)*(1-e)/2/(v-c)
		if math.Abs(got-want) > 0.03 || want < 0.76 {
			t.Errorf("x is %.1f: the gap leaves %.3f, want %.3f", x, got, want)
		}
	}
}

// explained returns the share of the variance of the difference between both slices that remains
// after a regression on the gaps before both slices, on all three gaps, and on the first gap.
func explained(all []gapRound) (two, three, one float64) {
	y := column(all, func(x gapRound) float64 { return x.slices[1] - x.slices[0] })
	var gaps [3][]float64
	for i := range gaps {
		gaps[i] = column(all, func(x gapRound) float64 { return x.gaps[i] })
	}
	return remaining(y, gaps[0], gaps[1]), remaining(y, gaps[:]...), remaining(y, gaps[0])
}

// TestGaps shows why ratios are not adjusted by the core's speed between slices: on recorded
// machines, gaps leave nearly all of the variance, and a target that changes caches biases the
// adjustment by gaps after it.
func TestGaps(t *testing.T) {
	testsets.Long(t, "adjustment by gaps", testsets.Needs{Files: []string{"stats/testdata",
		"docs/decisions"}})
	lines := []string{"| machine | noise of a round | gap before the round | gaps before both " +
		"slices | three gaps | bias | covers: not adjusted, by the gap before the round, by both " +
		"gaps |", "|---|---|---|---|---|---|---|"}
	for _, name := range machines {
		r, m := rand.New(rand.NewPCG(63, 2)), machineOf(t, name)
		all := playGaps(r, m, 20_000)
		two, three, one := explained(all)
		noise := sd(column(all, func(x gapRound) float64 { return x.slices[1] - x.slices[0] }))
		bias, covers := playGapComparisons(r, m)
		lines = append(lines, fmt.Sprintf("| %s | %.3f | %.0f %% | %.0f %% | %.0f %% | %+.2f %% | "+
			"%.1f, %.1f, %.1f |", name, noise, 100*one, 100*two, 100*three, 100*bias[bothGaps],
			covers[unadjusted], covers[firstGap], covers[bothGaps]))
		if one < 0.75 || math.Abs(covers[firstGap]-95) > 2.5 || math.Abs(bias[firstGap]) > 0.002 {
			t.Errorf("%s, bias by the first gap %.4f", lines[len(lines)-1], bias[firstGap])
		}
	}
	documentedIn(t, filepath.Join("decisions", "0064-core-speed.md"), "gaps", lines)
}

// playGapComparisons simulates comparisons of equal targets, one of which raises the cost of work
// in the gap after it by 2 %. It returns, for each way, the mean log ratio of a start, and the
// percentage of 95 % intervals that cover 1.
func playGapComparisons(r *rand.Rand, m machine) (bias, covers [adjustments]float64) {
	const comparisons, starts, rounds, leastRounds = 2000, 5, 40, 10
	for range comparisons {
		var values [adjustments][]StartRatio
		for len(values[0]) < starts {
			all := playGaps(r, m, rounds)
			if len(all) < leastRounds { // the core did not run in the gaps
				continue
			}
			for way, x := range adjustedStart(r, all, 0.02) {
				values[way] = append(values[way], StartRatio{LogRatio: x})
				bias[way] += x / comparisons / starts
			}
		}
		for way := range values {
			if x := ratioOfStarts(values[way], 0.95); x.Lo <= 1 && x.Hi >= 1 {
				covers[way] += 100.0 / comparisons
			}
		}
	}
	return bias, covers
}
