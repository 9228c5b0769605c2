package stats

import (
	"math"
	"slices"
)

// UnpairedRatio compares trials that nothing pairs, such as those of two runs: b to a, as
// PairedRatio does. N is the smaller number of trials.
//
// Method: Welch's t on logs with Satterthwaite's degrees of freedom (Welch, "The generalization of
// Student's problem when several different population variances are involved", Biometrika 34, 1947,
// pp. 28-35). SDLog is the root of the two variances' sum: what pairs of such trials would scatter
// by, so that Resolves and Decide say how many trials of each side would do.
//
// It rests on more than PairedRatio does: that the machine was the same in both runs. What
// changed between them (a neighbour, a temperature, a kernel) is in the ratio, and nothing in the
// trials can show it. Pair where you can.
func UnpairedRatio(a, b []float64, confidence float64) Ratio {
	mustBeShare("confidence", confidence)
	r := unknownRatio(min(len(a), len(b)), confidence)
	if r.N == 0 {
		r.Warning = "one side has no trial: needs n >= 2 of each"
		return r
	}
	if r.Warning = unloggable("trial", a, b); r.Warning != "" {
		return r
	}
	as, bs := logs(a), logs(b)
	shift := mean(bs) - mean(as)
	r.Center = math.Exp(shift)
	if r.N == 1 {
		r.Warning = "needs n >= 2 of each"
		return r
	}
	return r.welch(as, bs, shift)
}

// welch computes what two or more logs of each side give.
func (r Ratio) welch(as, bs []float64, shift float64) Ratio {
	r.Assumption = LogNormal
	na, nb := float64(len(as)), float64(len(bs))
	if slices.Min(as) == slices.Max(as) && slices.Min(bs) == slices.Max(bs) {
		// As in PairedRatio: without a spread only the order speaks. Were the sides alike, one
		// would lie wholly above the other with 2 in as many cases as there are orders.
		r.exactly(bs[0] - as[0])
		if as[0] != bs[0] {
			r.P = min(1, 2/orders(na+nb, na))
		}
		r.Warning = "all values of a side are equal: a spread below the resolution is unknown"
		return r
	}
	va, vb := variance(as), variance(bs)
	r.SDLog = math.Sqrt(va + vb)
	va, vb = va/na, vb/nb
	return r.about(shift, spread{va + vb, freedom(spread{va, na - 1}, spread{vb, nb - 1})})
}

// about sets the interval and P of a log ratio whose own variance is known so well.
func (r Ratio) about(shift float64, of spread) Ratio {
	se := math.Sqrt(of.variance)
	half := of.quantile(r.Confidence) * se
	r.Lo, r.Hi = math.Exp(shift-half), math.Exp(shift+half)
	r.P = 2 * student(of.free).CDF(-math.Abs(shift)/se)
	r.Free = of.free
	return r
}

// exactly sets a log ratio without spread.
func (r *Ratio) exactly(shift float64) {
	r.Center, r.SDLog = math.Exp(shift), 0
	r.Lo, r.Hi = r.Center, r.Center
}
