package stats

import (
	"math"
	"slices"
)

// Variance says where the noise of a level comes from. Its SDs are of logarithms, so 0.02 is 2 %.
type Variance struct {
	Between float64 // SD of log values between trials, beyond what Within explains; 0 when none
	Within  float64 // SD of a trial's mean from its own intervals, autocorrelation accounted for
	Share   float64 // Between² / (Between² + Within²); NaN when unknown
}

const (
	batches      = 10 // 10 to 30 do (Schmeiser, Operations Research 30, 1982, pp. 556-568)
	leastBatches = 4  // below that a variance says nothing
)

// Components splits the variance of trials' means: one series of interval values a trial.
//
// Longer trials make Within smaller and leave Between as it is; more trials make both smaller. So a
// Share near 1 asks for more blocks, one near 0 for longer windows: the question of Kalibera &
// Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, §6-7.
//
// Method: the variance of each trial's mean by batch means, ten stretches or more, because
// neighbouring intervals are alike and single values would promise too little (Law, "Simulation
// Modeling and Analysis", 5th ed., 2015, §9.5.3); their mean over trials is Within². Between² is
// what the variance of the trials' log means has beyond it, as in a one-way analysis of variance,
// and 0 when nothing is left. A slow drift over the whole trial counts as Within. Batches are
// not quite independent: Within² comes out an eighth too small where neighbours correlate by 0.5
// and there are 100 values.
//
// Trials with fewer than four values, or with a mean that is not positive and finite, are left out.
// With none all three are NaN; with one Between and Share are. With few trials Between is a rough
// estimate: from ten its interval still reaches from 0.7 to 1.8 times it.
func Components(trials [][]float64) Variance {
	nan := math.NaN()
	var means, variances []float64
	for _, xs := range trials {
		if mean := mean(xs); len(xs) >= leastBatches && !notPositive(mean) {
			means = append(means, mean)
			variances = append(variances, varianceOfMean(xs)/(mean*mean))
		}
	}
	if len(means) == 0 {
		return Variance{nan, nan, nan}
	}
	within := mean(variances)
	v := Variance{Between: nan, Within: math.Sqrt(within), Share: nan}
	if len(means) < 2 {
		return v
	}
	between := max(0, variance(logs(means))-within)
	v.Between = math.Sqrt(between)
	if between+within > 0 {
		v.Share = between / (between + within)
	}
	return v
}

// varianceOfMean is that of the mean of a correlated series: batches of equal length, long enough
// that their means are nearly independent. What does not fill the last batch is left out.
func varianceOfMean(xs []float64) float64 {
	size := max(1, len(xs)/batches)
	var means []float64
	for batch := range slices.Chunk(xs[:len(xs)/size*size], size) {
		means = append(means, mean(batch))
	}
	return variance(means) / float64(len(means))
}
