package stats

import "math"

// PlanSD returns the SD of a start's log ratio for planning the number of starts of a further run.
// Pair and control are the starts of a finished run. NaN: rounds predict no standard error, or
// there are fewer than two starts of either.
//
// It adds the variance that rounds predict, which is precise because of many rounds, and the mean
// of the excess scatter of pair and control. With 4 to 8 starts, the SD of the pair alone has an
// error of 25 % to 40 %. PlanSD is closer to the truth by a quarter or more if the control scatters
// as the pair does, and about as close if it scatters by half as much (TestPlanSD).
//
// Do not use it for intervals: the scatter of the control alone, or a mean of both, gives intervals
// that cover too little if one target is noisier than the control; see CompareStarts.
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

// betweenStarts returns the variance of starts beyond what their rounds predict.
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
