package stats

import "fmt"

// Outcomes of a gate.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// Decision is the result of a gate for one metric.
type Decision struct {
	Outcome string
	More    int // inconclusive: further blocks that would decide with 80 % probability; otherwise 0
}

const (
	decidingPower = 0.8 // probability with which More blocks would decide
	leastToPlan   = 3   // minimum number of blocks for an SD to plan with
)

// Decide tests whether the true ratio (new/old, higher is better) is a loss of more than most
// (0.05: new below 0.95 of old). Fail: the whole interval is below the margin; pass: none of it is.
// Most is a share below 1; 0 allows no loss. It panics if most is out of range.
//
// It is two one-sided tests with the ends of one interval. At confidence 0.95 each errs in at most
// 2.5 % of gates: a loss of most or less fails, or a loss of more than most passes. Exactly at the
// margin 95 % are inconclusive, with any number of blocks. Significance is a different question: a
// loss of 1 % can be certain, and passes.
//
// More is the number of blocks for which this decision has the power of 80 %, by a two-sided t test
// at 1 - confidence about the margin, if the observed ratio is the true one. It is an estimate,
// because the observed ratio is uncertain. It is Unresolvable if the observed ratio is exactly at
// the margin, or if a value has no logarithm. With fewer than two blocks the noise is unknown, and
// More makes it three.
//
// Ratios that are all equal leave no spread for a t test. Then each block is a coin that fell on
// the same side of the margin, and the decision needs enough of them that 2/2^n is at most 1 -
// confidence: six at 0.95.
func Decide(r Ratio, most float64) Decision {
	if !(most >= 0 && most < 1) {
		panic(fmt.Sprintf("stats: a loss to allow must lie between 0 and 1, not %v", most))
	}
	d := Decision{Outcome: outcome(r, 1-most)}
	if d.Outcome == Inconclusive {
		d.More = more(r, 1-most)
	}
	return d
}

func outcome(r Ratio, margin float64) string {
	switch {
	case !r.HasInterval(), r.SDLog == 0 && r.N < ranksNeed(r.Confidence):
		return Inconclusive
	case r.Hi < margin:
		return Fail
	case r.Lo >= margin:
		return Pass
	}
	return Inconclusive
}

func more(r Ratio, margin float64) int {
	switch {
	case !r.HasInterval() && r.N < 2:
		return leastToPlan - r.N
	case !r.HasInterval():
		return Unresolvable
	case r.SDLog == 0:
		return ranksNeed(r.Confidence) - r.N
	}
	n := r.Resolves(r.Center/margin-1, 1-r.Confidence, decidingPower)
	if n == Unresolvable {
		return Unresolvable
	}
	return max(1, n-r.N)
}
