package stats

import "fmt"

// Outcomes of a gate.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// Decision is a gate's answer about one metric.
type Decision struct {
	Outcome string
	More    int // inconclusive: blocks, beside those there are, that would decide with 80 %; else 0
}

const (
	decidingPower = 0.8 // with which More blocks would decide
	leastToPlan   = 3   // blocks from which an SD is worth planning with
)

// Decide asks whether the true ratio (new/old, higher is better) is a loss of more than most
// (0.05: new below 0.95 of old). Fail: the whole interval lies beyond; pass: none of it does. Most
// is a share below 1; 0 asks for no loss at all.
//
// It is two one-sided tests with the ends of one interval. At confidence 0.95 each errs in at most
// 2.5 % of gates: a loss of most or less fails, or one of more than most passes. Just at the
// margin 95 % are inconclusive, however many blocks there are. "The difference is significant" is
// another question: a loss of 1 % can be certain, and passes.
//
// More is the power of this very decision, two-sided t at 1 - confidence about the margin, were the
// truth what was observed: the observed ratio is itself uncertain, so call it an estimate. It is
// Unresolvable when the observed ratio lies on the margin, or a value has no logarithm. Where there
// are fewer than two blocks nothing is known of the noise; More then makes it three.
//
// Ratios that are all equal leave no spread for a t test. Then each block is a coin that fell to
// the same side of the margin, and as many are needed as make 2/2^n at most 1 - confidence: six at
// 0.95.
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
