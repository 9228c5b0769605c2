package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
)

// Ratio compares two targets over the blocks in which both were measured. 1.1 means that b's value
// is 10 % above a's.
//
// Lo and Hi are both numbers or both NaN; then Warning says what would give them. A Warning beside
// an interval is a doubt about it. encoding/json refuses NaN: ask HasInterval before writing.
type Ratio struct {
	N int `json:"n"` // pairs
	// Center is the geometric mean of b/a; NaN when N is 0 or a value has no logarithm.
	Center     float64 `json:"center"`
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"-"`
	P          float64 `json:"p"` // two-sided, of "the ratio is 1"; 1 when nothing can be said
	// SDLog is the SD of the paired log ratios, for Resolves; NaN without an interval.
	SDLog float64 `json:"sdLog"`
	// Free is the degrees of freedom behind SDLog: N - 1, or more where others lend theirs.
	Free       float64 `json:"-"`
	Assumption string  `json:"assumption,omitempty"` // LogNormal; "" when there is no interval
	Warning    string  `json:"warning,omitempty"`
}

// HasInterval tells whether Lo and Hi are numbers.
func (r Ratio) HasInterval() bool { return !math.IsNaN(r.Lo) }

// PairedRatio compares b with a, paired by index: a[i] and b[i] come from the same block, so that
// what slows the whole machine in that block cancels. Align makes such slices. It panics when the
// lengths differ, because then the pairing is lost.
//
// Method, for every n >= 2: Student's one-sample t on log(b[i]/a[i]), taken back by exp. Center is
// the geometric mean of the ratios, and P < 1 - confidence exactly when the interval leaves out 1
// (except when all ratios are equal: then P is the more careful one, and Warning says so). A ratio
// with an interval instead of a bare test is what Kalibera & Jones (ISMM 2013) ask for.
//
// What it rests on: log ratios of different blocks are independent and roughly normal (Assumption
// says LogNormal). Pairing helps: the log ratio of two targets that are in truth alike is symmetric
// about 0, whatever the shape of their noise, and skew is what harms a t test most. Heavy tails
// make it miss differences rather than invent them (Cressie, "Relaxing assumptions in the one
// sample t-test", Australian Journal of Statistics 22, 1980, pp. 143-153).
//
// Refused: Wilcoxon's signed rank with the Hodges-Lehmann interval (Hollander, Wolfe & Chicken,
// "Nonparametric Statistical Methods", 3rd ed., 2014, ch. 3). Its least P is 2/2^n: 1/32 with six
// blocks, never below 0.05/15 (six targets, Holm) with fewer than ten. One method at every n also
// means that adding a block never changes what is estimated.
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

// unknownRatio is one of which nothing can be said.
func unknownRatio(n int, confidence float64) Ratio {
	nan := math.NaN()
	return Ratio{N: n, Center: nan, Lo: nan, Hi: nan, Confidence: confidence, P: 1, SDLog: nan}
}

// unloggable says which value has no logarithm; empty: all have.
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

// fill computes what two or more log ratios give.
func (r Ratio) fill(ds []float64) Ratio {
	r.Assumption = LogNormal
	if slices.Min(ds) == slices.Max(ds) {
		// No spread, so no t. If the targets were alike, the sign of each log ratio would be a
		// coin's, and all signs agree with probability 2/2^n: rounding to a coarse step must not
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

// Align lays two targets' values side by side over the blocks that both have, in block order, as
// PairedRatio wants them, and tells which those blocks are.
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

// Unresolvable is the answer of Resolves when no number of blocks would do. It is large, not 0 or
// -1, so that a caller who forgets to ask cannot print a promise.
const Unresolvable = math.MaxInt

// maxBlocks bounds the search: a run of so many blocks will not be made.
const maxBlocks = 10_000

// each is how many degrees of freedom a block adds to what is known of the noise, whole ones of all
// blocks together: one, where nothing else is said.
func (r Ratio) each() float64 {
	if r.N < 2 {
		return 1
	}
	return max(1, math.Floor(r.Free)/float64(r.N-1))
}

// Resolves is the least number of blocks, all of them and not the further ones, with which
// PairedRatio gives P < alpha with probability power when b is in truth (1 + effect) times a:
// effect 0.03 is 3 % more, -0.03 is 3 % less. Of the ratio it takes SDLog, the SD of the paired log
// ratios, and the degrees of freedom that so many blocks will have: where targets lend each other
// theirs, few blocks know their noise better than one pair does. For one pair among k targets give
// the alpha that Holm leaves in the worst case, alpha / (k(k-1)/2).
//
// The answer is Unresolvable for effect 0, effect <= -1, an SD that is no number, or more than
// 10,000 blocks. It is as good as the SD: from three blocks the 95 % interval of an SD reaches from
// half to six times it, so call the answer an estimate.
//
// Method: the exact power of the two-sided t test (noncentral t; Cohen, "Statistical Power
// Analysis", 2nd ed., 1988, ch. 2), its integral over the chi-squared distribution of the sample
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
		return powerOfT(i+2, r.each(), alpha)(shift/r.SDLog) >= power
	})
	if n > maxBlocks {
		return Unresolvable
	}
	return n
}

// Detects is the smallest relative difference (0.03 is 3 %) that the blocks of this ratio tell from
// none with this power: Resolves the other way round. NaN when there are fewer than two or the SD
// is no number. It is the difference upwards; downwards a slightly smaller one does, 2.9 % for 3 %.
func (r Ratio) Detects(alpha, power float64) float64 { return r.DetectsWith(0, alpha, power) }

// DetectsWith is Detects once there are so many more blocks.
func (r Ratio) DetectsWith(more int, alpha, power float64) float64 {
	mustBeShare("alpha", alpha)
	mustBeShare("power", power)
	n := r.N + more
	if n < 2 || notFinite(r.SDLog) || r.SDLog < 0 {
		return math.NaN()
	}
	if r.SDLog == 0 || power <= alpha { // chance alone finds as much
		return 0
	}
	// The power rises with the distance. Forty halvings leave twelve digits.
	lo, hi, powerAt := 0.0, 1.0, powerOfT(n, r.each(), alpha)
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

// powerOfT is the probability that |t| of n values exceeds its critical value, by how many standard
// deviations d their mean lies from 0, where each value but the first adds so many degrees of
// freedom. Given the sample variance, t is normal; that is averaged over the variance's
// distribution, whose probabilities run from 0 to 1 and are the same for every d.
func powerOfT(n int, perItem, alpha float64) func(d float64) float64 {
	const points = 256 // within 1e-3 of 4000 points at n = 2, within 1e-4 from n = 3 on
	free := perItem * float64(n-1)
	critical := student(free).Quantile(1 - alpha/2)
	edges, weights := make([]float64, points), make([]float64, points)
	quad.Legendre{}.FixedLocations(edges, weights, 0, 1)
	for i, u := range edges {
		edges[i] = critical * math.Sqrt(quantileOfChiSquared(free, u)/free)
	}
	return func(d float64) (sum float64) {
		delta := d * math.Sqrt(float64(n))
		for i, edge := range edges {
			sum += weights[i] * (normal(delta-edge) + normal(-delta-edge))
		}
		return sum
	}
}

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
	avs, bs := logs(a), logs(b)
	shift := mean(bs) - mean(avs)
	r.Center = math.Exp(shift)
	if r.N == 1 {
		r.Warning = "needs n >= 2 of each"
		return r
	}
	return r.welch(avs, bs, shift)
}

// welch computes what two or more logs of each side give.
func (r Ratio) welch(avs, bs []float64, shift float64) Ratio {
	r.Assumption = LogNormal
	na, nb := float64(len(avs)), float64(len(bs))
	if slices.Min(avs) == slices.Max(avs) && slices.Min(bs) == slices.Max(bs) {
		// As in PairedRatio: without a spread only the order speaks. Were the sides alike, one
		// would lie wholly above the other with 2 in as many cases as there are orders.
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

// about sets the interval and P of a log ratio whose own variance is known so well.
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
