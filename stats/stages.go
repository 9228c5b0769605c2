package stats

import "math"

// StagesNeed returns the number of starts that make half the interval of CompareStages at most half
// (0.01: 1 %), given the first starts of a comparison. It is at least their number. Unresolvable:
// there are too few starts, a start without a ratio, no scatter between starts, or more than 10,000
// starts would be needed.
//
// Method: Stein's two-stage procedure ("A two-sample test for a linear hypothesis whose power is
// independent of the variance", Annals of Mathematical Statistics 16, 1945, pp. 243-258): with the
// variance s² of n0 first starts, n = max(n0, t² s² / d²) for t with n0 - 1 degrees of freedom.
func StagesNeed(first []StartRatio, half, confidence float64) int {
	mustBeShare("half", half)
	r := ratioOfStarts(first, confidence)
	if !r.HasInterval() || r.SDLog == 0 {
		return Unresolvable
	}
	t, reach := student(r.N-1).Quantile((1+confidence)/2), math.Log1p(half)
	need := math.Ceil(t * t * r.SDLog * r.SDLog / (reach * reach) * (1 - 1e-9))
	if need > maxBlocks {
		return Unresolvable
	}
	return max(r.N, int(need))
}

// CompareStages compares the targets of a pair over starts whose number was planned by the first of
// them (StagesNeed).
//
// The center is the mean of all starts. The error term is the variance of the first starts, with
// their degrees of freedom: the mean of all starts is independent of this variance, although it
// determines the number of starts. So the interval has its stated coverage for normal log ratios,
// whichever pair or metric determined the number, and also if a bound or a time limit lowered it.
//
// Refused, by simulation (TestStagesCover): the variance of all starts. If a small variance led to
// few starts, it has full weight, and a large one is diluted: 95 % intervals cover the truth in 91
// to 95 % of comparisons. Also refused: the variance of the control if it is larger. It makes
// intervals too wide (96 to 97 %), and planning by the control gives 60 % too few starts if the
// pair scatters more than the control.
func CompareStages(pair []StartRatio, first int, confidence float64) StartsRatio {
	all := CompareStarts(pair, nil, confidence)
	if first >= len(pair) || !all.HasInterval() {
		return all
	}
	stage := CompareStarts(pair[:max(first, 0)], nil, confidence)
	switch {
	case !stage.HasInterval():
		center := all.Center
		all.Ratio, all.Source = unknownRatio(all.N, confidence), ""
		all.Center, all.Warning = center, stage.Warning
	case stage.SDLog > 0:
		all.SDLog, all.Warning = stage.SDLog, stage.Warning
		all.Ratio = all.about(math.Log(all.Center),
			spread{stage.SDLog * stage.SDLog / float64(all.N), float64(stage.N - 1)})
	}
	return all
}
