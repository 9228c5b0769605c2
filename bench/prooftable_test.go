package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"prony.example/record"
	"prony.example/stats"
)

// The records' conclusions against the known truth, as pure functions of both. Resampling shows how
// often a method errs: the blocks of one long run are cut into many short runs, in their order if
// time matters, otherwise drawn without replacement. Such runs share blocks, so their shares have
// fewer independent parts than runs.

const (
	proofConfidence = 0.95
	proofAlpha      = 0.05
	proofMargin     = 0.05 // of the gate
	proofDraws      = 2000
	proofGates      = 200 // undecided gates take long to compute
)

var proofSizes = []int{5, 10, 15, 20} // blocks of a resampled run

// resample draws runs of blocks.
type resample struct {
	*rand.Rand
	draws, gates int // runs drawn of each number of blocks, and of the gate
}

func newResample(seed uint64) resample {
	return resample{rand.New(rand.NewPCG(seed, 1)), proofDraws, proofGates}
}

// comparison is the result of the comparing trials.
type comparison struct {
	Trials, Unusable int
	Same             sameness
	Arms             []armResult
	Rules            []ruleResult
	Gates            []gateResult
}

// sameness is the first arm against itself.
type sameness struct {
	Ratio    stats.Ratio
	SingleSD float64 // of the logarithm of one trial
	Runs     []alarms
}

// alarms counts how often two equal servers differ significantly in runs of this many blocks.
type alarms struct {
	Blocks     int
	Neighbours share // of blocks in their order
	Flipped    share // drawn, with the two sides of each block swapped by a coin
	Detect80   float64
	Detect90   float64
}

// share is n of a total.
type share struct{ n, of int }

func (s *share) add(yes bool) {
	s.of++
	if yes {
		s.n++
	}
}

func (s share) String() string {
	if s.of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(s.n)/float64(s.of))
}

// armResult is a server of known loss against the first.
type armResult struct {
	Arm   proofArm
	Ratio stats.Ratio // of all blocks
	Found []share     // by proofSizes: detected as slower
	Holds []share     // by proofSizes: the interval contains the truth
}

// blocksOf lists the throughput of each arm, block by block, without INVALID and failed trials.
func blocksOf(records []*record.Record) (blocks []map[string]float64, unusable int) {
	for _, r := range records {
		for len(blocks) < r.Block {
			blocks = append(blocks, map[string]float64{})
		}
		if r.Outcome != record.Measured || r.Verdict.Grade == record.Invalid || len(r.Loads) == 0 {
			unusable++
			continue
		}
		blocks[r.Block-1][r.Target.Name] = r.Loads[0].ThroughputPerS
	}
	return blocks, unusable
}

// pairsOf returns the throughputs of two arms in the blocks that have both, in order.
func pairsOf(blocks []map[string]float64, x, y string) (xs, ys []float64) {
	for _, b := range blocks {
		if b[x] > 0 && b[y] > 0 {
			xs, ys = append(xs, b[x]), append(ys, b[y])
		}
	}
	return xs, ys
}

func analyzeComparison(records []*record.Record, known proofKnown, by resample) comparison {
	c := comparison{Trials: len(records)}
	blocks, unusable := blocksOf(records)
	c.Unusable = unusable
	first := known.Arms[0].Name
	for i, arm := range known.Arms[1:] {
		xs, ys := pairsOf(blocks, first, arm.Name)
		if i == 0 {
			c.Same = alike(by, xs, ys)
		}
		c.Arms = append(c.Arms, measured(by, arm, xs, ys))
		for k, r := range rules() {
			if i == 0 {
				c.Rules = append(c.Rules, ruleResult{Name: r.name})
			}
			c.Rules[k].Says = append(c.Rules[k].Says, r.over(xs, ys))
		}
		c.Gates = append(c.Gates, gated(by, arm, xs, ys)...)
	}
	return c
}

// neighbours returns all runs of n consecutive blocks.
func neighbours(n, all int) (runs [][]int) {
	for from := 0; from+n <= all; from++ {
		run := make([]int, n)
		for i := range run {
			run[i] = from + i
		}
		runs = append(runs, run)
	}
	return runs
}

// runs returns many runs of n blocks, without replacement; with n equal to all there is one.
func (by resample) runs(many, n, all int) [][]int {
	if n >= all {
		return neighbours(n, all)
	}
	runs := make([][]int, many)
	for i := range runs {
		runs[i] = by.Perm(all)[:n]
	}
	return runs
}

func pick(xs []float64, run []int) []float64 {
	out := make([]float64, len(run))
	for i, k := range run {
		out[i] = xs[k]
	}
	return out
}

// says returns the method's conclusion: -1 that y is slower, +1 that it is faster, 0 none.
func says(r stats.Ratio) int {
	switch {
	case !(r.P < proofAlpha):
		return 0
	case r.Center < 1:
		return -1
	}
	return +1
}

func paired(xs, ys []float64) stats.Ratio { return stats.PairedRatio(xs, ys, proofConfidence) }

// alike counts false alarms. If nothing differs, the two sides of a block can be swapped: each
// choice of swaps is as likely as the observed one (the randomization test; Fisher, "The Design of
// Experiments", 1935, §21), and gives thousands of runs with the same shape of noise.
func alike(by resample, xs, ys []float64) sameness {
	s := sameness{Ratio: paired(xs, ys)}
	var lx, ly []float64
	for i := range xs {
		lx, ly = append(lx, math.Log(xs[i])), append(ly, math.Log(ys[i]))
	}
	s.SingleSD = math.Sqrt((stat.Variance(lx, nil) + stat.Variance(ly, nil)) / 2)
	for _, n := range proofSizes {
		a := alarms{Blocks: n}
		for _, run := range neighbours(n, len(xs)) {
			a.Neighbours.add(says(paired(pick(xs, run), pick(ys, run))) != 0)
		}
		for range by.draws {
			if n > len(xs) {
				break
			}
			run := by.Perm(len(xs))[:n]
			x, y := pick(xs, run), pick(ys, run)
			for i := range x {
				if by.IntN(2) == 0 {
					x[i], y[i] = y[i], x[i]
				}
			}
			a.Flipped.add(says(paired(x, y)) != 0)
		}
		a.Detect80 = stats.Ratio{N: n, SDLog: s.Ratio.SDLog}.Detects(proofAlpha, 0.8)
		a.Detect90 = stats.Ratio{N: n, SDLog: s.Ratio.SDLog}.Detects(proofAlpha, 0.9)
		s.Runs = append(s.Runs, a)
	}
	return s
}

// measured returns the result of all blocks, and how often fewer detect the loss and contain the
// truth.
func measured(by resample, arm proofArm, xs, ys []float64) armResult {
	m := armResult{Arm: arm, Ratio: paired(xs, ys)}
	for _, n := range proofSizes {
		var found, holds share
		for _, run := range by.runs(by.draws, n, len(xs)) {
			r := paired(pick(xs, run), pick(ys, run))
			found.add(says(r) < 0)
			holds.add(r.Lo <= arm.Ratio && arm.Ratio <= r.Hi)
		}
		m.Found, m.Holds = append(m.Found, found), append(m.Holds, holds)
	}
	return m
}

// rule is a way to conclude from the runs of two servers, as in says.
type rule struct {
	name   string
	blocks int
	says   func(xs, ys []float64) int
}

// ruleResult is the conclusion of a rule for each arm but the first.
type ruleResult struct {
	Name string
	Says []verdicts
}

// verdicts counts how often a rule concluded that the arm was slower, and that it was faster.
type verdicts struct{ slower, faster share }

// over applies a rule to every sequence of consecutive blocks.
func (r rule) over(xs, ys []float64) (v verdicts) {
	for _, run := range neighbours(r.blocks, len(xs)) {
		said := r.says(pick(xs, run), pick(ys, run))
		v.slower.add(said < 0)
		v.faster.add(said > 0)
	}
	return v
}

// rules are Prony's and those in use elsewhere. Unpaired runs measure one server after the other,
// as users benchmark a change: the first half of the blocks is one, the second the other.
func rules() []rule {
	by := func(most float64, of func([]float64) float64) func(xs, ys []float64) int {
		return func(xs, ys []float64) int { return beyond(of(ys)/of(xs), most) }
	}
	one := func(xs []float64) float64 { return xs[0] }
	pairs := func(xs, ys []float64) int { return says(paired(xs, ys)) }
	halves := func(xs, ys []float64) int {
		half := len(xs) / 2
		return says(stats.UnpairedRatio(xs[:half], ys[half:], proofConfidence))
	}
	return []rule{
		{"Prony: paired t, 5 blocks", 5, pairs},
		{"Prony: paired t, 10 blocks", 10, pairs},
		{"Prony: paired t, 20 blocks", 20, pairs},
		{"best of three, the higher wins", 3, by(0, slices.Max[[]float64])},
		{"best of three, by 5 %", 3, by(0.05, slices.Max[[]float64])},
		{"one run each, by 5 %", 1, by(0.05, one)},
		{"one run each, by 10 %", 1, by(0.10, one)},
		{"5 of one, then 5 of the other, t test", 10, halves},
		{"10 of one, then 10 of the other, t test", 20, halves},
	}
}

// beyond reports whether a ratio is below or above one by more than most.
func beyond(ratio, most float64) int {
	switch {
	case ratio < 1-most:
		return -1
	case ratio > 1+most:
		return +1
	}
	return 0
}

// gateResult is the gate's result for an arm in runs of this many blocks.
type gateResult struct {
	Arm                      proofArm
	Blocks                   int
	Pass, Fail, Inconclusive share
	More                     float64 // the median of the further blocks when inconclusive
}

func gated(by resample, arm proofArm, xs, ys []float64) (out []gateResult) {
	for _, n := range proofSizes {
		if n > len(xs) {
			break
		}
		g := gateResult{Arm: arm, Blocks: n}
		var more []float64
		for _, run := range by.runs(by.gates, n, len(xs)) {
			d := stats.Decide(paired(pick(xs, run), pick(ys, run)), proofMargin)
			g.Pass.add(d.Outcome == stats.Pass)
			g.Fail.add(d.Outcome == stats.Fail)
			g.Inconclusive.add(d.Outcome == stats.Inconclusive)
			if d.Outcome == stats.Inconclusive {
				more = append(more, float64(d.More))
			}
		}
		g.More = stats.Median(more)
		out = append(out, g)
	}
	return out
}
