package stats

import (
	"math"
	"slices"
)

// Variance splits the noise of a level by source. Its SDs are of logarithms, so 0.02 is 2 %.
type Variance struct {
	Between float64 // SD of log values between trials, beyond what Within explains; 0 if none
	Within  float64 // SD of a trial's mean from its own intervals, including autocorrelation
	Share   float64 // Between² / (Between² + Within²); NaN if unknown
}

const (
	batches      = 10 // 10 to 30 suffice (Schmeiser, Operations Research 30, 1982, pp. 556-568)
	leastBatches = 4  // minimum for a variance
)

// Components splits the variance of trials' means, given one series of interval values per trial.
//
// Longer trials make Within smaller and leave Between unchanged; more trials make both smaller. So
// a Share near 1 calls for more blocks, one near 0 for longer windows: the question of Kalibera &
// Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, §6-7.
//
// Method: the variance of each trial's mean by batch means, ten stretches or more, because
// neighboring intervals are correlated and single values would give too small a variance (Law,
// "Simulation Modeling and Analysis", 5th ed., 2015, §9.5.3); their mean over trials is Within².
// Between² is the variance of the trials' log means beyond it, as in a one-way analysis of
// variance, and 0 if nothing is left. A slow drift over the whole trial counts as Within. Batches
// are not quite independent: Within² is an eighth too small if neighbors correlate by 0.5 and there
// are 100 values.
//
// Trials with fewer than four values, or with a mean that is not positive and finite, are excluded.
// Without trials all three are NaN; with one, Between and Share are. With few trials Between is a
// rough estimate: from ten trials its interval still reaches from 0.7 to 1.8 times it.
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

// varianceOfMean returns the variance of the mean of a correlated series: by batches of equal
// length, long enough that their means are nearly independent. Values that do not fill the last
// batch are excluded.
func varianceOfMean(xs []float64) float64 {
	size := max(1, len(xs)/batches)
	var means []float64
	for batch := range slices.Chunk(xs[:len(xs)/size*size], size) {
		means = append(means, mean(batch))
	}
	return variance(means) / float64(len(means))
}
