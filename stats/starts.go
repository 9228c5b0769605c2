package stats

import (
	"fmt"
	"math"
	"slices"
)

// LeastStarts is the number of starts that a live interval needs, and from which on others are not
// wide: Student's t has its stated coverage from two starts on, but its quantile is 12.7 with one
// degree of freedom, 4.3 with two and 3.2 with three.
const LeastStarts = 4

// Sources of the error term of a StartsRatio.
const (
	ErrorStarts  = "starts"  // the scatter of the starts
	ErrorControl = "control" // the scatter of the control, if it is larger beyond chance
)

// errorChance is the probability with which chance alone lets the control replace the scatter of
// the starts: in one of 200 comparisons.
const errorChance = 0.005

// StartsRatio compares two targets over starts, in each of which both ran side by side.
type StartsRatio struct {
	Ratio // its interval uses the error term, whose SD is SDLog
	// Starts is PairedRatio of the starts; equal to Ratio if Source is ErrorStarts.
	Starts Ratio
	Source string // of the error term; empty without an interval

	// Variance components, as SDs of logarithms: 0.02 is 2 %. NaN: unknown.
	Within               float64 // of a start's log ratio, as predicted by its rounds
	Between              float64 // beyond Within, from start to start; 0: none
	BetweenLo, BetweenHi float64 // interval of Between at the ratio's confidence

	Control Ratio // of the control; N is 0 if there is none
}

// CompareStarts compares the targets of a pair over starts. Control is the comparison of a target
// with itself (NAME-again) over the same starts, or nil. Confidence is in (0, 1). It panics if
// control has another number of starts.
//
// The start is the unit of inference, and the interval is PairedRatio's: Student's t over the log
// ratios of starts with equal weights. Weights by 1/SE² would be narrower, but would reduce the
// weight of starts with rare events. Equal weights also allow starts with different numbers of
// rounds: for values of unequal variances the t interval has at least its stated coverage, at
// confidences from 0.917 up (Ibragimov & Müller, "t-statistic based correlation and heterogeneity
// robust inference", Journal of Business & Economic Statistics 28, 2010, pp. 453-468).
//
// The error term is the variance of the starts. The control's variance replaces it only if it is
// larger beyond chance, by an F test that errs in 0.5 % of comparisons. Degrees of freedom stay n -
// 1. So a few starts that agree by accident do not give a narrow interval beside a control that
// scatters.
//
// Refused, because simulation shows wrong coverage of 95 % intervals (TestErrorTermCovers): the
// larger of the two variances in any case (97 to 99 %), and their mean by Satterthwaite (86 to 92 %
// if one target of the pair is noisier than the control). Blocks.Ratio also shares variances
// between targets (91 to 98 %), so it is not for starts. Also refused: raising the variance to what
// rounds predict. If events come at regular intervals, starts scatter less than their rounds do,
// because every start has its share of them.
func CompareStarts(pair, control []StartRatio, confidence float64) StartsRatio {
	mustBeShare("confidence", confidence)
	if control != nil && len(control) != len(pair) {
		panic(fmt.Sprintf("stats: a control of %d starts for %d", len(control), len(pair)))
	}
	nan := math.NaN()
	out := StartsRatio{Starts: ratioOfStarts(pair, confidence), Within: nan, Between: nan,
		BetweenLo: nan, BetweenHi: nan}
	if control != nil {
		out.Control = ratioOfStarts(control, confidence)
	}
	out.Ratio = out.Starts
	if !out.HasInterval() || out.SDLog == 0 {
		return out
	}
	out.Source = ErrorStarts
	out.components(pair)
	out.raise()
	return out
}

// ControlOfMean scales the log ratios of a control, target a measured twice, so that they scatter
// as the ratio of b to the mean of both instances of a does if all three scatter alike: by the root
// of 3/4, because the variances are 2 for the control and 1 + 1/2 for the ratio. With equal
// scatter, this ratio and the control do not correlate.
func ControlOfMean(control []StartRatio) []StartRatio {
	out := slices.Clone(control)
	for i := range out {
		out[i].LogRatio *= math.Sqrt(3. / 4)
		out[i].SE *= math.Sqrt(3. / 4)
	}
	return out
}

// ratioOfStarts is PairedRatio from log ratios.
func ratioOfStarts(starts []StartRatio, confidence float64) Ratio {
	units, ratios := make([]float64, len(starts)), make([]float64, len(starts))
	for i, s := range starts {
		units[i], ratios[i] = 1, math.Exp(s.LogRatio)
		if math.IsNaN(s.LogRatio) {
			r := unknownRatio(len(starts), confidence)
			r.Warning = fmt.Sprintf("start %d has no ratio: %s", i+1, s.Warning)
			return r
		}
	}
	return PairedRatio(units, ratios, confidence)
}

// components sets Within and Between. The interval of Between is that of the total variance, by its
// chi-squared distribution, minus what rounds predict, which many rounds determine precisely: the
// Q-profile method for equal weights (Viechtbauer, "Confidence intervals for the amount of
// heterogeneity in meta-analysis", Statistics in Medicine 26, 2007, pp. 37-52).
func (r *StartsRatio) components(pair []StartRatio) {
	within := 0.0
	for _, s := range pair {
		within += s.SE * s.SE / float64(len(pair))
	}
	if math.IsNaN(within) {
		return
	}
	total, free := r.Starts.SDLog*r.Starts.SDLog, float64(r.N-1)
	beyond := func(total float64) float64 { return math.Sqrt(max(0, total-within)) }
	r.Within, r.Between = math.Sqrt(within), beyond(total)
	tail := (1 - r.Confidence) / 2
	r.BetweenLo = beyond(total * free / quantileOfChiSquared(free, 1-tail))
	r.BetweenHi = beyond(total * free / quantileOfChiSquared(free, tail))
}

// raise replaces the error term if the control's is larger beyond chance.
func (r *StartsRatio) raise() {
	if r.Control.N != r.N || !r.Control.HasInterval() {
		return
	}
	free := float64(r.N - 1)
	scatter, control := r.Starts.SDLog*r.Starts.SDLog, r.Control.SDLog*r.Control.SDLog
	if control > scatter*quantileOfF(free, free, 1-errorChance) {
		r.Source, r.SDLog = ErrorControl, r.Control.SDLog
		r.Ratio = r.about(math.Log(r.Center), spread{control / float64(r.N), free})
	}
}

// RareEvents compares the typical round with the totals over starts.
type RareEvents struct {
	N int // starts that have both
	// Difference is the mean of LogRatio - Typical, with its interval; NaN: unknown.
	Difference, Lo, Hi float64
	P                  float64 // of "typical round and totals agree"
	// Significant: they differ beyond chance (P below 1 %) and by half a percent or more, and at
	// least one round was far slower. Smaller differences can result from noise that is wider for
	// one target than for the other: the mean of log-normal values is above their median by half
	// their variance, 0.5 % for slices that scatter by 10 %.
	Significant      bool
	EventsA, EventsB float64 // mean number of rounds per start in which a or b was far slower
	// Few: the side that loses by its events has fewer than LeastEvents per start. Their cost is
	// then as imprecise as their number.
	Few bool
}

const (
	rareChance = 0.01
	rareLeast  = 0.005
)

// FindRareEvents tests whether the totals differ from the typical round: by Student's t over starts
// of LogRatio - Typical, so its error rate holds for any distribution of rounds.
func FindRareEvents(starts []StartRatio, confidence float64) RareEvents {
	mustBeShare("confidence", confidence)
	nan := math.NaN()
	out := RareEvents{Difference: nan, Lo: nan, Hi: nan, P: 1}
	var ds []float64
	for _, s := range starts {
		if notFinite(s.LogRatio) || notFinite(s.Typical) {
			continue
		}
		ds = append(ds, s.LogRatio-s.Typical)
		out.EventsA += float64(s.EventsA)
		out.EventsB += float64(s.EventsB)
	}
	if out.N = len(ds); out.N == 0 {
		return out
	}
	out.EventsA, out.EventsB = out.EventsA/float64(out.N), out.EventsB/float64(out.N)
	if out.Difference = mean(ds); out.N < 2 || variance(ds) == 0 {
		return out
	}
	_, out.Lo, out.Hi = logInterval(ds, confidence)
	t := out.Difference / (sd(ds) / math.Sqrt(float64(out.N)))
	out.P = 2 * student(out.N-1).CDF(-math.Abs(t))
	out.Significant = out.P < rareChance && math.Abs(out.Difference) >= rareLeast &&
		max(out.EventsA, out.EventsB) > 0
	out.Few = out.Significant && max(out.EventsA, out.EventsB) < LeastEvents
	return out
}
