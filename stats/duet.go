package stats

import (
	"fmt"
	"math"
	"slices"
)

// Windows is what two trials that ran at the same time say of each other, window by window: Bulej,
// Horký, Tůma, Farquet & Prokopec, "Duet Benchmarking: Improving Measurement Accuracy in the
// Cloud", ICPE 2020. Standard deviations are of natural logarithms: 0.03 is about 3 %.
type Windows struct {
	N       int // windows in which both have a value
	Skipped int // in which only one has, or none
	// LogRatio is the mean over windows of log(b/a): what the two trials as one pair say. Where
	// windows were skipped it is the logarithm of the ratio of the sums, since a window without an
	// answer has no logarithm and must not be forgotten. NaN when there is none.
	LogRatio float64
	SD       float64 // of log(b/a), window to window; NaN below two windows
	SDA, SDB float64 // of log a and log b alone, likewise
	// Correlation is Pearson's, of log a and log b; NaN where one of them does not vary. What
	// disturbs both alike makes it positive; what one takes from the other makes it negative, and
	// then pairing adds noise.
	Correlation float64
}

// Left is the share of the noise that pairing leaves: SD over what two trials with the same spreads
// and nothing in common would have. Below 1 pairing helps; NaN when unknown.
func (w Windows) Left() float64 {
	alone := math.Hypot(w.SDA, w.SDB)
	if alone == 0 {
		return math.NaN()
	}
	return w.SD / alone
}

// DuetWindows pairs a[i] with b[i], values of the same window, in the same unit. It panics when the
// lengths differ. Windows are not independent of each other: this SD says what pairing does, and
// nothing about the next trial.
func DuetWindows(a, b []float64) Windows {
	if len(a) != len(b) {
		panic(fmt.Sprintf("stats: windows need equal numbers, not %d and %d", len(a), len(b)))
	}
	nan := math.NaN()
	w := Windows{LogRatio: nan, SD: nan, SDA: nan, SDB: nan, Correlation: nan}
	var la, lb, ds []float64
	for i := range a {
		if notPositive(a[i]) || notPositive(b[i]) {
			w.Skipped++
			continue
		}
		x, y := math.Log(a[i]), math.Log(b[i])
		la, lb, ds = append(la, x), append(lb, y), append(ds, y-x)
	}
	w.N = len(ds)
	switch meanA, meanB := mean(a), mean(b); {
	case w.Skipped > 0 && !notPositive(meanA) && !notPositive(meanB):
		w.LogRatio = math.Log(meanB / meanA)
	case w.Skipped == 0 && w.N > 0:
		w.LogRatio = mean(ds)
	}
	if w.N < 2 {
		return w
	}
	w.SD, w.SDA, w.SDB = sd(ds), sd(la), sd(lb)
	if w.SDA > 0 && w.SDB > 0 {
		w.Correlation = correlation(la, lb)
	}
	return w
}

// Swapped is a ratio from duets whose sides were swapped, with the effect of the side taken out.
type Swapped struct {
	Ratio Ratio // b over a; N counts duets
	// Side is by how much the left side is above the right one, whoever is there: 1.02 is 2 %. With
	// the interval at the ratio's confidence; all NaN without one.
	Side, SideLo, SideHi float64
}

// SwappedRatio takes the log ratio b/a of each duet and whether b was on the left. Confidence is in
// (0, 1).
//
// Method, that of a cross-over trial (Hills & Armitage, "The two-period cross-over clinical trial",
// British Journal of Clinical Pharmacology 8, 1979, pp. 7-20): a log ratio is the targets'
// difference plus the sides', whose sign turns with the swap, plus noise. The mean of the two
// groups' means is the first, half of their difference the second; both rest on the noise within
// the groups, with n - 2 degrees of freedom (Student's t, variances of the groups taken for equal).
// It needs three duets and both groups; numbers of left and right that differ cost precision, not
// correctness. Assumption and Warning are as in PairedRatio, which leaves the sides' effect in the
// noise.
func SwappedRatio(logRatios []float64, onLeft []bool, confidence float64) Swapped {
	mustBeShare("confidence", confidence)
	if len(logRatios) != len(onLeft) {
		panic(fmt.Sprintf("stats: %d ratios and %d sides", len(logRatios), len(onLeft)))
	}
	nan := math.NaN()
	out := Swapped{unknownRatio(len(logRatios), confidence), nan, nan, nan}
	if i := slices.IndexFunc(logRatios, notFinite); i >= 0 {
		out.Ratio.Warning = fmt.Sprintf("duet %d has no log ratio: needs answers on both sides",
			i+1)
		return out
	}
	var left, right []float64
	for i, d := range logRatios {
		if onLeft[i] {
			left = append(left, d)
		} else {
			right = append(right, d)
		}
	}
	if len(left) == 0 || len(right) == 0 || out.Ratio.N < 3 {
		out.Ratio.Warning = "needs three duets, and each target on both sides"
		return out
	}
	out.fill(left, right)
	return out
}

// fill computes the two effects from the groups.
func (s *Swapped) fill(left, right []float64) {
	r := &s.Ratio
	l, t := mean(left), mean(right)
	nl, nr := float64(len(left)), float64(len(right))
	free := r.N - 2
	squares := 0.0
	for _, d := range left {
		squares += (d - l) * (d - l)
	}
	for _, d := range right {
		squares += (d - t) * (d - t)
	}
	r.SDLog = math.Sqrt(squares / float64(free))
	r.Assumption = LogNormal
	mean, side := (l+t)/2, (l-t)/2
	se := r.SDLog * math.Sqrt(1/nl+1/nr) / 2
	dist := student(free) // of free degrees of freedom
	half := dist.Quantile((1+r.Confidence)/2) * se
	r.Center, r.Lo, r.Hi = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half)
	s.Side, s.SideLo, s.SideHi = math.Exp(side), math.Exp(side-half), math.Exp(side+half)
	if se == 0 {
		r.P = math.Exp2(float64(1 - r.N)) // as in PairedRatio
		if mean == 0 {
			r.P = 1
		}
		r.Warning = "all ratios of a side are equal: a spread below the resolution is unknown"
		return
	}
	r.P = 2 * dist.CDF(-math.Abs(mean/se))
}
