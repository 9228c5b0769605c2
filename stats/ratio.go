package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
)

// Ratio compares two targets over the blocks in which both were measured. 1.1 means that b's value
// is 10 % above a's.
//
// Lo and Hi are both numbers or both NaN; if NaN, Warning says what would give them. A Warning
// together with an interval is a doubt about it. encoding/json rejects NaN: call HasInterval before
// writing.
type Ratio struct {
	N int `json:"n"` // pairs
	// Center is the geometric mean of b/a; NaN if N is 0 or a value has no logarithm.
	Center     float64 `json:"center"`
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"-"`
	P          float64 `json:"p"` // two-sided, of "the ratio is 1"; 1 if unknown
	// SDLog is the SD of the paired log ratios, for Resolves; NaN without an interval.
	SDLog float64 `json:"sdLog"`
	// Free is the degrees of freedom of SDLog: N - 1, more if targets share noise estimates, or
	// fewer if SDLog is that of the first starts (CompareStages).
	Free       float64 `json:"-"`
	Assumption string  `json:"assumption,omitempty"` // LogNormal; "" without an interval
	Warning    string  `json:"warning,omitempty"`
}

// HasInterval reports whether Lo and Hi are numbers.
func (r Ratio) HasInterval() bool { return !math.IsNaN(r.Lo) }

// PairedRatio compares b with a, paired by index: a[i] and b[i] come from the same block, so that a
// slowdown of the whole machine in that block cancels. Align returns such slices. It panics if the
// lengths differ, because then the pairing is lost.
//
// Method, for every n >= 2: Student's one-sample t on log(b[i]/a[i]), transformed back by exp.
// Center is the geometric mean of the ratios, and P < 1 - confidence exactly if the interval
// excludes 1 (except if all ratios are equal: then P is the more careful one, and Warning says so).
// Kalibera & Jones (ISMM 2013) recommend a ratio with an interval instead of a bare test.
//
// Assumptions: log ratios of different blocks are independent and roughly normal (Assumption is
// LogNormal). Pairing helps: the log ratio of two equal targets is symmetric about 0 for any shape
// of noise, and skew harms a t test most. Heavy tails make it miss differences rather than report
// false ones (Cressie, "Relaxing assumptions in the one sample t-test", Australian Journal of
// Statistics 22, 1980, pp. 143-153).
//
// Refused: Wilcoxon's signed rank with the Hodges-Lehmann interval (Hollander, Wolfe & Chicken,
// "Nonparametric Statistical Methods", 3rd ed., 2014, ch. 3). Its least P is 2/2^n: 1/32 with six
// blocks, and never below 0.05/15 (six targets, Holm) with fewer than ten. One method for every n
// also means that adding a block never changes what is estimated.
func PairedRatio(a, b []float64, confidence float64) Ratio {
	mustBeShare("confidence", confidence)
	if len(a) != len(b) {
		panic(fmt.Sprintf("stats: pairs need equal lengths, not %d and %d", len(a), len(b)))
	}
	r := unknownRatio(len(a), confidence)
	if r.N == 0 {
		r.Warning = "no block has both: needs n >= 2"
		return r
	}
	if r.Warning = unloggable("pair", a, b); r.Warning != "" {
		return r
	}
	ds := logs(b)
	for i, l := range logs(a) {
		ds[i] -= l
	}
	if r.N == 1 {
		r.Center = math.Exp(ds[0])
		r.Warning = "needs n >= 2"
		return r
	}
	return r.fill(ds)
}

// unknownRatio returns a ratio without center and interval.
func unknownRatio(n int, confidence float64) Ratio {
	nan := math.NaN()
	return Ratio{N: n, Center: nan, Lo: nan, Hi: nan, Confidence: confidence, P: 1, SDLog: nan}
}

// unloggable names the first value without a logarithm; empty: all have one.
func unloggable(subject string, a, b []float64) string {
	for side, xs := range [][]float64{a, b} {
		if i := slices.IndexFunc(xs, notPositive); i >= 0 {
			return fmt.Sprintf(
				"%s %d: %c is %v and has no logarithm: needs positive values",
				subject,
				i+1,
				'a'+rune(side),
				xs[i],
			)
		}
	}
	return ""
}

// fill computes the ratio from two or more log ratios.
func (r Ratio) fill(ds []float64) Ratio {
	r.Assumption = LogNormal
	if slices.Min(ds) == slices.Max(ds) {
		// Without spread there is no t. If the targets were equal, the sign of each log ratio would
		// be random, and all signs agree with probability 2/2^n: rounding to a coarse step must not
		// pass for certainty.
		r.exactly(ds[0])
		if ds[0] != 0 {
			r.P = math.Exp2(float64(1 - r.N))
		}
		r.Warning = "all ratios are equal: a spread below the resolution is unknown"
		return r
	}
	mean, lo, hi := logInterval(ds, r.Confidence)
	r.Center, r.Lo, r.Hi = math.Exp(mean), math.Exp(lo), math.Exp(hi)
	r.SDLog, r.Free = sd(ds), float64(r.N-1)
	t := mean / (r.SDLog / math.Sqrt(float64(r.N)))
	r.P = 2 * student(r.N-1).CDF(-math.Abs(t))
	return r
}

// Align returns two targets' values over their common blocks, in block order, for PairedRatio, and
// these blocks.
func Align(a, b Item) (avs, bs []float64, blocks []int) {
	for block := range a.Values {
		if _, ok := b.Values[block]; ok {
			blocks = append(blocks, block)
		}
	}
	slices.Sort(blocks)
	for _, block := range blocks {
		avs = append(avs, a.Values[block])
		bs = append(bs, b.Values[block])
	}
	return avs, bs, blocks
}

// Unresolvable is the result of Resolves if no number of blocks suffices. It is large rather than 0
// or -1, so that a caller who forgets the check cannot print a promise.
const Unresolvable = math.MaxInt

// maxBlocks bounds the search, because longer runs are unrealistic.
const maxBlocks = 10_000

// freeAt returns the degrees of freedom that the noise estimate of n blocks will have. Each block
// adds one, or more if targets share noise estimates, but none if the estimate is that of the first
// starts.
func (r Ratio) freeAt(n int) float64 {
	known := math.Floor(r.Free)
	if 0 < known && known < float64(r.N-1) {
		return known
	}
	each := 1.0
	if r.N >= 2 {
		each = max(1, known/float64(r.N-1))
	}
	return each * float64(n-1)
}

// Resolves returns the least total number of blocks with which PairedRatio gives P < alpha with
// probability power if b is really (1 + effect) times a: effect 0.03 is 3 % more, -0.03 is 3 %
// less. It uses SDLog, the SD of the paired log ratios, and the degrees of freedom that this number
// of blocks will have: if targets share noise estimates, few blocks give a better estimate than one
// pair. For one pair among k targets use the alpha that Holm leaves in the worst case, alpha /
// (k(k-1)/2).
//
// It returns Unresolvable for effect 0, effect <= -1, an SD that is not a number, or more than
// 10,000 blocks. It is as precise as the SD: from three blocks the 95 % interval of an SD reaches
// from half to six times it, so call the result an estimate.
//
// Method: the exact power of the two-sided t test (noncentral t; Cohen, "Statistical Power
// Analysis", 2nd ed., 1988, ch. 2), integrated over the chi-squared distribution of the sample
// variance by Gauss-Legendre quadrature.
func (r Ratio) Resolves(effect, alpha, power float64) int {
	mustBeShare("alpha", alpha)
	mustBeShare("power", power)
	shift := math.Abs(math.Log1p(effect))
	if shift == 0 || notFinite(shift) || notFinite(r.SDLog) || r.SDLog < 0 {
		return Unresolvable
	}
	if r.SDLog == 0 {
		return 2
	}
	n := 2 + sort.Search(maxBlocks-1, func(i int) bool {
		return powerOfT(i+2, r.freeAt(i+2), alpha)(shift/r.SDLog) >= power
	})
	if n > maxBlocks {
		return Unresolvable
	}
	return n
}

// Detects returns the smallest relative difference (0.03 is 3 %) that the blocks of this ratio
// detect with this power: the inverse of Resolves. NaN if there are fewer than two blocks or the SD
// is not a number. It is an increase; as a decrease, a slightly smaller one suffices, 2.9 % for 3
// %.
func (r Ratio) Detects(alpha, power float64) float64 { return r.DetectsWith(0, alpha, power) }

// DetectsWith is Detects after more further blocks.
func (r Ratio) DetectsWith(more int, alpha, power float64) float64 {
	mustBeShare("alpha", alpha)
	mustBeShare("power", power)
	n := r.N + more
	if n < 2 || notFinite(r.SDLog) || r.SDLog < 0 {
		return math.NaN()
	}
	if r.SDLog == 0 || power <= alpha { // chance alone detects as much
		return 0
	}
	// The power rises with the distance. Forty halvings leave twelve digits.
	lo, hi, powerAt := 0.0, 1.0, powerOfT(n, r.freeAt(n), alpha)
	for powerAt(hi) < power {
		lo, hi = hi, 2*hi
	}
	for range 40 {
		if mid := (lo + hi) / 2; powerAt(mid) < power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Expm1(hi * r.SDLog)
}

// powerOfT returns a function for the probability that |t| of n values exceeds its critical value,
// if their mean is d standard deviations from 0 and their variance has free degrees of freedom.
// Given the sample variance, t is normal; the function averages over the distribution of the
// variance, whose quadrature points are the same for every d.
func powerOfT(n int, free, alpha float64) func(d float64) float64 {
	critical := student(free).Quantile(1 - alpha/2)
	points := quadratureOf(free)
	return func(d float64) (sum float64) {
		delta := d * math.Sqrt(float64(n))
		for i, share := range points.shares {
			edge := critical * share
			sum += points.weights[i] * (normal(delta-edge) + normal(-delta-edge))
		}
		return sum
	}
}

// quadrature has points of the distribution of a sample's standard deviation, as shares of the true
// one, and their weights.
type quadrature struct{ shares, weights []float64 }

// quadratures caches them by degrees of freedom, because computing the quantiles takes as long as
// the rest of a report. mostQuadratures bounds them, at 4 KiB each.
var quadratures struct {
	sync.Mutex
	known map[float64]quadrature
}

const mostQuadratures = 4096

func quadratureOf(free float64) quadrature {
	quadratures.Lock()
	s, ok := quadratures.known[free]
	quadratures.Unlock()
	if ok {
		return s
	}
	s = newQuadrature(free)
	quadratures.Lock()
	defer quadratures.Unlock()
	if quadratures.known == nil {
		quadratures.known = map[float64]quadrature{}
	}
	if len(quadratures.known) < mostQuadratures {
		quadratures.known[free] = s
	}
	return s
}

func newQuadrature(free float64) quadrature {
	const points = 256 // within 1e-3 of 4000 points at n = 2, within 1e-4 from n = 3 on
	s := quadrature{make([]float64, points), make([]float64, points)}
	quad.Legendre{}.FixedLocations(s.shares, s.weights, 0, 1)
	for i, u := range s.shares {
		s.shares[i] = math.Sqrt(quantileOfChiSquared(free, u) / free)
	}
	return s
}

// UnpairedRatio compares trials without pairs, for example of two runs: b to a, as in PairedRatio.
// N is the smaller number of trials.
//
// Method: Welch's t on logs with Satterthwaite's degrees of freedom (Welch, "The generalization of
// Student's problem when several different population variances are involved", Biometrika 34, 1947,
// pp. 28-35). SDLog is the root of the sum of the two variances, which is the scatter of pairs of
// such trials, so that Resolves and Decide return the number of trials of each side.
//
// It assumes more than PairedRatio: that the machine was the same in both runs. Changes between
// them (a neighbor, a temperature, a kernel) are part of the ratio, and the trials cannot show
// them. Pair if you can.
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
	avs, bs := logs(a), logs(b)
	shift := mean(bs) - mean(avs)
	r.Center = math.Exp(shift)
	if r.N == 1 {
		r.Warning = "needs n >= 2 of each"
		return r
	}
	return r.welch(avs, bs, shift)
}

// welch computes the ratio from two or more logs of each side.
func (r Ratio) welch(avs, bs []float64, shift float64) Ratio {
	r.Assumption = LogNormal
	na, nb := float64(len(avs)), float64(len(bs))
	if slices.Min(avs) == slices.Max(avs) && slices.Min(bs) == slices.Max(bs) {
		// As in PairedRatio: without a spread only the order counts. If the sides were equal, one
		// would be completely above the other in 2 of all possible orders.
		r.exactly(bs[0] - avs[0])
		if avs[0] != bs[0] {
			r.P = min(1, 2/orders(na+nb, na))
		}
		r.Warning = "all values of a side are equal: a spread below the resolution is unknown"
		return r
	}
	va, vb := variance(avs), variance(bs)
	r.SDLog = math.Sqrt(va + vb)
	va, vb = va/na, vb/nb
	return r.about(shift, spread{va + vb, freedom(spread{va, na - 1}, spread{vb, nb - 1})})
}

// about sets interval and P of a log ratio with this variance.
func (r Ratio) about(shift float64, item spread) Ratio {
	se := math.Sqrt(item.variance)
	half := item.quantile(r.Confidence) * se
	r.Lo, r.Hi = math.Exp(shift-half), math.Exp(shift+half)
	r.P = 2 * student(item.free).CDF(-math.Abs(shift)/se)
	r.Free = item.free
	return r
}

// exactly sets a log ratio without spread.
func (r *Ratio) exactly(shift float64) {
	r.Center, r.SDLog = math.Exp(shift), 0
	r.Lo, r.Hi = r.Center, r.Center
}
