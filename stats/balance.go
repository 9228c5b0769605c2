package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Balance is the result of testing whether other processes disturbed all targets equally.
type Balance struct {
	Rounds int // rounds with slices of two or more targets
	// Difference is the largest one between the mean covariates of two targets, over the rounds
	// that have both.
	Difference float64
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
// different targets differ in length. A round counts with the targets that have a slice: targets of
// different groups share no round. It panics if there are fewer than two targets.
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
	b := Balance{P: 1}
	var rounds []balanceRound
	for _, start := range starts {
		for _, all := range start.rounds {
			if round := covariates(all, covariate, targets); len(round.targets) > 1 {
				rounds = append(rounds, round)
			}
		}
	}
	b.Rounds = len(rounds)
	if b.Rounds == 0 {
		return b
	}
	b.Difference = largestDifference(rounds, targets)
	for _, round := range rounds {
		center := mean(round.values)
		for i := range round.values {
			round.values[i] -= center
		}
	}
	real, farther := apartness(rounds, targets), 0
	r := rand.New(rand.NewPCG(39, uint64(b.Rounds)))
	for range permutations {
		for _, round := range rounds {
			values := round.values
			r.Shuffle(len(values), func(i, j int) {
				values[i], values[j] = values[j], values[i]
			})
		}
		// Sums in another order differ by rounding.
		if apartness(rounds, targets) >= real*(1-1e-9) {
			farther++
		}
	}
	b.P = float64(1+farther) / (1 + permutations)
	return b
}

// balanceRound has the covariates of the targets that have a slice in a round.
type balanceRound struct {
	targets []int
	values  []float64 // of the targets, in this order
}

func covariates(round []SliceRow, covariate, targets int) (out balanceRound) {
	for target := range targets {
		if row, ok := slice(round, []int{target}); ok && covariate < len(row.Covariates) {
			out.targets = append(out.targets, target)
			out.values = append(out.values, row.Covariates[covariate])
		}
	}
	return out
}

// largestDifference returns the largest difference between the means of two targets, over the
// rounds that have both.
func largestDifference(rounds []balanceRound, targets int) (largest float64) {
	sums, counts := make([]float64, targets*targets), make([]float64, targets*targets)
	for _, round := range rounds {
		for i, a := range round.targets {
			for k, b := range round.targets[:i] {
				sums[a*targets+b] += round.values[i] - round.values[k]
				counts[a*targets+b]++
			}
		}
	}
	for i, sum := range sums {
		largest = max(largest, math.Abs(sum)/max(counts[i], 1))
	}
	return largest
}

// apartness returns the sum of the squares of the targets' sums.
func apartness(rounds []balanceRound, targets int) float64 {
	sums := make([]float64, targets)
	for _, round := range rounds {
		for i, target := range round.targets {
			sums[target] += round.values[i]
		}
	}
	squares := 0.0
	for _, sum := range sums {
		squares += sum * sum
	}
	return squares
}
