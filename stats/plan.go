package stats

import "math"

// PlanSD is the SD of a start's log ratio from which the number of starts of a further run is
// planned. Pair and control are the starts of a run that has ended. NaN: rounds predict nothing, or
// there are fewer than two starts of either.
//
// It is the variance that rounds predict, which many rounds know well, and beyond it the mean of
// what the pair and the control scatter by. Of 4 to 8 starts, the SD of the pair alone is known to
// within a quarter to 40 %. PlanSD is closer to the truth by a quarter or more if the control
// scatters as the pair does, and about as close if it scatters by half as much (TestPlanSD).
//
// It is not for intervals: the scatter of the control alone, or a mean of both, gives intervals
// that cover too little where one target is noisier than the control shows; see CompareStarts.
func PlanSD(pair, control []StartRatio) float64 {
	if len(pair) < 2 || len(control) < 2 {
		return math.NaN()
	}
	within := 0.0
	for _, s := range pair {
		within += s.SE * s.SE / float64(len(pair))
	}
	return math.Sqrt(within + (betweenStarts(pair)+betweenStarts(control))/2)
}

// betweenStarts is the variance of starts beyond what their rounds predict.
func betweenStarts(starts []StartRatio) float64 {
	if len(starts) < 2 {
		return 0
	}
	within := 0.0
	ds := make([]float64, len(starts))
	for i, s := range starts {
		ds[i] = s.LogRatio
		within += s.SE * s.SE / float64(len(starts))
	}
	return max(0, variance(ds)-within)
}
