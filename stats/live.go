package stats

import (
	"fmt"
	"math"
)

// liveMix is the precision of the mixture behind LiveRatio: it weighs effects of about
// 1/sqrt(liveMix) = 3 SDs of a start, which makes the interval of 4 to 12 starts the narrowest.
// From a tenth to three times this value, the half width of 8 starts changes by a fifth at most.
const liveMix = 0.1

// LiveRatio compares two targets over the starts so far, for a reader who watches and may stop
// after any start: its intervals are a confidence sequence. With the given probability, the
// intervals of all numbers of starts together hold the true ratio, so stopping at the first
// interval that leaves out 1, or at one that looks narrow enough, costs nothing of the confidence.
// P is valid at any time, too: the least so far.
//
// Method: the t test by a Gaussian mixture (Wang & Ramdas, "Anytime-valid t-tests and confidence
// sequences for Gaussian means with unknown variance", arXiv:2310.03722, section 4; Lai, "On
// confidence sequences", Annals of Statistics 4, 1976, pp. 265-280). For log ratios x with sum S
// and sum of squares V about a supposed true value, and c = liveMix, the ratio of likelihoods
//
//	e = sqrt(c / (n + c)) (1 - S² / ((n + c) V))^(-n/2)
//
// is a martingale of the scale-free values with mean 1, so it ever exceeds 1/α with probability α
// at most (Ville's inequality). The interval has all values whose e is smaller. It is exact for
// normal log ratios whatever their SD is, for any number of starts, and has no planned end.
//
// The price, against PairedRatio at a planned end: half widths are 2.1 times as long at 4 starts,
// 1.9 times at 8 and 1.8 times from 12 on (LivePrice). In return, looking after each start at
// PairedRatio's interval would report a difference between equal targets in 16 % of runs of 12
// starts, and in 27 % of runs of 40.
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
			r.Warning = startsNeeded(r.N)
		}
	}
	return r
}

// mixture is e of the hypothesis that the true value is 0.
func mixture(n int, sum, squares float64) float64 {
	count := float64(n)
	if squares == 0 {
		return math.Sqrt(liveMix / (count + liveMix))
	}
	return math.Sqrt(liveMix/(count+liveMix)) *
		math.Pow(1-sum*sum/((count+liveMix)*squares), -count/2)
}

// liveLimit is the S²/V at which e of n values reaches 1/alpha.
func liveLimit(n int, alpha float64) float64 {
	count := float64(n)
	return (count + liveMix) * (1 - math.Pow(alpha*alpha*liveMix/(count+liveMix), 1/count))
}

// liveReach is half the interval's width in SDs of the values; infinite where no interval exists.
func liveReach(n int, alpha float64) float64 {
	count, limit := float64(n), liveLimit(n, alpha)
	if limit >= count {
		return math.Inf(1)
	}
	return math.Sqrt(limit * (count - 1) / (count * (count - limit)))
}

// LivePrice is how many times as long LiveRatio's interval is as PairedRatio's of as many starts.
func LivePrice(starts int, confidence float64) float64 {
	mustBeShare("confidence", confidence)
	t := student(starts - 1).Quantile((1 + confidence) / 2)
	return liveReach(starts, 1-confidence) * math.Sqrt(float64(starts)) / t
}
