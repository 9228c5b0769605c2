package stats

import (
	"fmt"
	"math"
)

// liveMix is the precision of the mixture behind LiveRatio. It emphasizes effects of about
// 1/sqrt(liveMix) = 3 SDs of a start, which makes the interval of 4 to 12 starts the narrowest.
// From a tenth to three times this value, the half width of 8 starts changes by at most a fifth.
const liveMix = 0.1

// LiveRatio compares two targets over the starts so far, for a reader who follows the run and may
// stop after any start. Its intervals are a confidence sequence: with the given probability, the
// intervals for all numbers of starts together contain the true ratio. So stopping at the first
// interval without 1, or at one that is narrow enough, does not reduce the confidence. P is also
// valid at any time: it is the least so far.
//
// Method: the t test by a Gaussian mixture (Wang & Ramdas, "Anytime-valid t-tests and confidence
// sequences for Gaussian means with unknown variance", arXiv:2310.03722, section 4; Lai, "On
// confidence sequences", Annals of Statistics 4, 1976, pp. 265-280). For log ratios x with sum S
// and sum of squares V about a supposed true value, and c = liveMix, the ratio of likelihoods
//
//	e = sqrt(c / (n + c)) (1 - S² / ((n + c) V))^(-n/2)
//
// is a martingale of the scale-free values with mean 1, so the probability that it ever exceeds 1/α
// is at most α (Ville's inequality). The interval has all values with a smaller e. It is exact for
// normal log ratios with any SD, for any number of starts, and without a planned end.
//
// The price, against PairedRatio at a planned end: half widths are 2.1 times as long at 4 starts,
// 1.9 times at 8 and 1.8 times from 12 on (LivePrice). In return, a look at PairedRatio's interval
// after each start would report a difference between equal targets in 16 % of runs of 12 starts,
// and in 27 % of runs of 40.
func LiveRatio(starts []StartRatio, confidence float64) Ratio {
	mustBeShare("confidence", confidence)
	r := ratioOfStarts(starts, confidence)
	if !r.HasInterval() || r.SDLog == 0 {
		return r
	}
	r.P = 1
	var sum, squares float64
	for i, s := range starts {
		sum, squares = sum+s.LogRatio, squares+s.LogRatio*s.LogRatio
		r.P = min(r.P, 1/mixture(i+1, sum, squares))
	}
	center, half := math.Log(r.Center), r.SDLog*liveReach(r.N, 1-confidence)
	r.Lo, r.Hi = math.Exp(center-half), math.Exp(center+half)
	if r.N < LeastStarts || math.IsInf(half, 1) {
		nan := math.NaN()
		r.Lo, r.Hi, r.Assumption = nan, nan, ""
		r.Warning = fmt.Sprintf("a live interval at this confidence needs more than %d starts", r.N)
		if r.N < LeastStarts {
			r.Warning = fmt.Sprintf("needs at least %d starts, has %d", LeastStarts, r.N)
		}
	}
	return r
}

// mixture returns e for the hypothesis that the true value is 0.
func mixture(n int, sum, squares float64) float64 {
	count := float64(n)
	if squares == 0 {
		return math.Sqrt(liveMix / (count + liveMix))
	}
	return math.Sqrt(liveMix/(count+liveMix)) *
		math.Pow(1-sum*sum/((count+liveMix)*squares), -count/2)
}

// liveLimit returns the S²/V at which e of n values reaches 1/alpha.
func liveLimit(n int, alpha float64) float64 {
	count := float64(n)
	return (count + liveMix) * (1 - math.Pow(alpha*alpha*liveMix/(count+liveMix), 1/count))
}

// liveReach returns half the interval's width in SDs of the values; infinite if no interval exists.
func liveReach(n int, alpha float64) float64 {
	count, limit := float64(n), liveLimit(n, alpha)
	if limit >= count {
		return math.Inf(1)
	}
	return math.Sqrt(limit * (count - 1) / (count * (count - limit)))
}

// LivePrice returns the length of LiveRatio's interval as a multiple of PairedRatio's, for this
// number of starts.
func LivePrice(starts int, confidence float64) float64 {
	mustBeShare("confidence", confidence)
	t := student(starts - 1).Quantile((1 + confidence) / 2)
	return liveReach(starts, 1-confidence) * math.Sqrt(float64(starts)) / t
}
