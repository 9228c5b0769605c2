package stats

import (
	"fmt"
	"math/rand/v2"
)

// Balance is the result of testing whether other processes disturbed all targets equally.
type Balance struct {
	Rounds int       // rounds with a slice of every target
	Means  []float64 // mean covariate by target
	// P is the P value of "the covariate is independent of the target"; 1 if it never varies.
	P float64
}

// Unbalanced reports whether the covariate differs between targets beyond chance. It errs in one of
// 100 comparisons.
func (b Balance) Unbalanced() bool { return b.Rounds > 0 && b.P < balanceChance }

const (
	balanceChance = 0.01
	// permutations is the number of permutations of the test: with 999, P has steps of 1/1000.
	permutations = 999
)

// CheckBalance tests one covariate, by its index in SliceRow.Covariates, over all rounds of these
// starts. Covariates must be rates, such as ns of steal per ns of slice, because slices of
// different targets differ in length. It panics if there are fewer than two targets.
//
// Method: a randomization test (Fisher, "The Design of Experiments", 1935, section 21; Ernst,
// "Permutation methods: a basis for exact inference", Statistical Science 19, 2004, pp. 676-685).
// The order of the targets is drawn in each round, so a covariate that is independent of them would
// be as likely with the targets permuted within each round, for any distribution and any dependence
// on time. P is the share of permutations, including the real order, in which the targets' sums are
// at least as far apart: it errs in no more than the stated share of runs. Permutations are drawn
// from a fixed seed.
//
// An unbalanced covariate is a finding: one target caused it, for example by helpers outside of its
// control group, or it is chance. Nothing is ever adjusted for it. Simulation (TestAdjustment)
// shows the effect of a regression on the time that other processes took: it is unbiased as long as
// no target causes that time, and lowers the SD of throughput by a factor of 1.4 to 2.4 (1.3 if the
// time is read in ticks, as steal is). CPU per request is more precise without it. But if a
// target's helpers take 2 % of the core, adjusted throughput hides these 2 %, and on a busy machine
// this test misses them in 9 of 10 comparisons.
func CheckBalance(starts []*Rounds, covariate, targets int) Balance {
	if targets < 2 {
		panic(fmt.Sprintf("stats: balance needs two targets, not %d", targets))
	}
	b := Balance{P: 1, Means: make([]float64, targets)}
	var rounds [][]float64
	for _, start := range starts {
		for _, round := range start.rounds {
			if values := covariates(round, covariate, targets); values != nil {
				rounds = append(rounds, values)
			}
		}
	}
	b.Rounds = len(rounds)
	if b.Rounds == 0 {
		return b
	}
	for _, values := range rounds {
		for target, v := range values {
			b.Means[target] += v / float64(b.Rounds)
		}
		center := mean(values)
		for target := range values {
			values[target] -= center
		}
	}
	real, farther := apartness(rounds, targets), 0
	r := rand.New(rand.NewPCG(39, uint64(b.Rounds)))
	for range permutations {
		for _, values := range rounds {
			r.Shuffle(targets, func(i, j int) { values[i], values[j] = values[j], values[i] })
		}
		// Sums in another order differ by rounding.
		if apartness(rounds, targets) >= real*(1-1e-9) {
			farther++
		}
	}
	b.P = float64(1+farther) / (1 + permutations)
	return b
}

// covariates returns the covariate of a round by target; nil if a target has none.
func covariates(round []SliceRow, covariate, targets int) []float64 {
	values := make([]float64, targets)
	for target := range values {
		row, ok := slice(round, target)
		if !ok || covariate >= len(row.Covariates) {
			return nil
		}
		values[target] = row.Covariates[covariate]
	}
	return values
}

// apartness returns the sum of the squares of the targets' sums.
func apartness(rounds [][]float64, targets int) float64 {
	sums := make([]float64, targets)
	for _, values := range rounds {
		for target, v := range values {
			sums[target] += v
		}
	}
	squares := 0.0
	for _, sum := range sums {
		squares += sum * sum
	}
	return squares
}
