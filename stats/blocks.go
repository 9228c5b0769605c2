package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Blocks is a run as a randomized block design: a trial's log value is its target's level plus its
// block's effect plus noise. Three blocks of seven targets leave 12 degrees of freedom for the
// noise, but a single target has only two, too few for a standard deviation: in a tenth of runs it
// shows a third of the true one, or less. So targets share their estimates of the noise.
//
// Method: residuals of the additive model, then moderated variances (Smyth, "Linear models and
// empirical Bayes methods for assessing differential expression in microarray experiments",
// Statistical Applications in Genetics and Molecular Biology 3(1), 2004, article 3). The targets'
// own variances s² with d degrees of freedom are draws about s0², whose own spread corresponds to
// d0 degrees. Mean and variance of log s² give s0² and d0, and a target's variance becomes (d0 s0²
// + d s²) / (d0 + d). The more similar the variances look, the more they are pooled.
//
// Smyth has thousands of genes. Seven variances hardly show how similar they are, so this method is
// more careful:
//   - the others at most double a target's degrees of freedom, for any d0;
//   - a variance is raised fully to the moderated one, and lowered to it only in part (keepLoud):
//     a quiet target may have been lucky, a noisy one may be noisy;
//   - a block's effect is estimated only from the other targets, the quieter ones with more
//     weight, so that neither a target itself nor a noisy neighbor passes for the effect.
//
// Coverage holds on average over the intervals of a table (Morris, "Parametric empirical Bayes
// inference: theory and applications", JASA 78, 1983, pp. 47-55). Intervals of a target that is far
// noisier than all others cover less often, those of the others more often; docs/proof.md has the
// numbers.
//
// The fit excludes targets with one value, with a value without a logarithm, or without any spread,
// and blocks of fewer than three targets. At least three targets must be left, because the noise of
// two cannot be separated. For excluded targets Level and Ratio return the results of Summarize and
// PairedRatio.
type Blocks struct {
	confidence float64
	rows       map[string]*row
	mood       spread // of the block effects, including the noise of their estimates
}

// spread is a variance of log values with its degrees of freedom.
type spread struct{ variance, free float64 }

// row is a target in the fit.
type row struct {
	name      string
	logs      map[int]float64 // by block
	level     float64
	ownSpread spread  // of its residuals
	shared    spread  // moderated
	weight    float64 // in the block effects; weights sum to 1
}

const (
	leastTargets = 3     // in a fit, and in each block of it
	keepLoud     = 0.25  // share kept of a target's variance above the moderated one
	leastOwn     = 1e-5  // of the median: a variance of 0 has no logarithm (as in limma's fitFDist)
	pairFreedom  = 3     // bound of degrees of freedom: times those of the pairs
	noNoise      = 1e-20 // smaller variances are rounding errors
	plainlyLoud  = 0.999
	fitPasses    = 50 // of a fit with gaps; without gaps the first pass is exact
)

// NewBlocks fits items in any positive unit; their order does not matter. Confidence is the level
// of all intervals. It panics if two items share a name.
func NewBlocks(items []Item, confidence float64) *Blocks {
	mustBeShare("confidence", confidence)
	mustDiffer(items)
	b := &Blocks{confidence: confidence}
	rows, blocks := designed(items)
	if len(rows) < leastTargets {
		return b
	}
	for i := range rows {
		rows[i].weight = 1 / float64(len(rows))
	}
	for pass := range 2 { // first with equal weights, then with weights by noise
		if pass > 0 {
			weigh(rows)
		}
		moods := fit(rows, blocks)
		b.mood = spread{variance(moods), float64(len(moods) - 1)}
		if !moderate(rows) {
			return b
		}
	}
	b.rows = make(map[string]*row, len(rows))
	for _, r := range rows {
		b.rows[r.name] = r
	}
	return b
}

// designed returns the targets of the fit, by name, and its blocks, ascending.
func designed(items []Item) (rows []*row, blocks []int) {
	for _, item := range items {
		vs := values(item)
		if len(vs) < 2 || slices.ContainsFunc(vs, notPositive) || slices.Min(vs) == slices.Max(vs) {
			continue
		}
		r := &row{name: item.Name, logs: make(map[int]float64, len(vs))}
		for block, v := range item.Values {
			r.logs[block] = math.Log(v)
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.name, b.name) })
	for { // removing a block can exclude a target, and vice versa
		targets := make(map[int]int)
		for _, r := range rows {
			for block := range r.logs {
				targets[block]++
			}
		}
		before := len(rows)
		lost := false
		for _, r := range rows {
			maps.DeleteFunc(r.logs, func(block int, _ float64) bool {
				lost = lost || targets[block] < leastTargets
				return targets[block] < leastTargets
			})
		}
		rows = slices.DeleteFunc(rows, func(r *row) bool { return len(r.logs) < 2 })
		if !lost && len(rows) == before {
			return rows, slices.Sorted(maps.Keys(targets))
		}
	}
}

// fit estimates levels and block effects alternately until they converge, and each target's own
// variance from its residuals, with block effects estimated from the other targets. It returns the
// effects in the order of the blocks.
func fit(rows []*row, blocks []int) []float64 {
	moods := make(map[int]float64, len(blocks))
	present := make(map[int]float64, len(blocks)) // weight of a block's targets
	for _, r := range rows {
		for block := range r.logs {
			present[block] += r.weight
		}
	}
	for pass := range fitPasses {
		moved := 0.0
		for _, r := range rows {
			level := 0.0
			for _, block := range blocks {
				if x, ok := r.logs[block]; ok {
					level += (x - moods[block]) / float64(len(r.logs))
				}
			}
			moved = max(moved, math.Abs(level-r.level))
			r.level = level
		}
		if pass > 0 && moved < 1e-12 {
			break
		}
		clear(moods)
		for _, r := range rows {
			for block, x := range r.logs {
				moods[block] += r.weight / present[block] * (x - r.level)
			}
		}
	}
	for _, r := range rows {
		squares := 0.0
		for _, block := range blocks {
			if x, ok := r.logs[block]; ok {
				remaining := (x - r.level - moods[block]) / (1 - r.weight/present[block])
				squares += remaining * remaining
			}
		}
		free := float64(len(r.logs) - 1)
		r.ownSpread = spread{squares / free, free}
	}
	out := make([]float64, len(blocks))
	for i, block := range blocks {
		out[i] = moods[block]
	}
	return out
}

// moderate sets the shared variances; false if there is no noise to share.
func moderate(rows []*row) bool {
	k := float64(len(rows))
	var all []float64
	pooled := spread{}
	for _, r := range rows {
		all = append(all, r.ownSpread.variance)
		pooled.variance += r.ownSpread.variance * r.ownSpread.free
		pooled.free += r.ownSpread.free
	}
	if Median(all) < noNoise {
		return false
	}
	least := leastOwn * Median(all)
	var es []float64
	chance := 0.0 // the variance of log s² if all targets had equal noise
	for _, r := range rows {
		half := r.ownSpread.free / 2
		es = append(
			es,
			math.Log(max(r.ownSpread.variance, least))-mathext.Digamma(half)+math.Log(half),
		)
		chance += mathext.Zeta(2, half) / k
	}
	prior := spread{pooled.variance / pooled.free, math.Inf(1)}
	if excess := variance(es) - chance; excess > 0 {
		half := trigammaInverse(excess)
		prior = spread{math.Exp(mean(es) + mathext.Digamma(half) - math.Log(half)), 2 * half}
	}
	for _, r := range rows {
		s := spread{prior.variance, r.ownSpread.free + min(prior.free, r.ownSpread.free)}
		if !math.IsInf(prior.free, 1) {
			s.variance = (prior.free*prior.variance + r.ownSpread.free*r.ownSpread.variance) /
				(prior.free + r.ownSpread.free)
		}
		s.variance += keepLoud * max(0, r.ownSpread.variance-s.variance)
		r.shared = s
	}
	return true
}

// weigh gives quieter targets more weight in a block's effect: by 1/SD rather than 1/variance, and
// at most twice an equal share, because a target's noise is itself an estimate.
//
// If few targets are quiet, all of them look noisy beside a noisy one. So a target's variance is
// bounded by its difference from any other target: by chance an F of this size occurs in one of a
// thousand cases (plainlyLoud).
func weigh(rows []*row) {
	most := 2 / float64(len(rows))
	remaining, sum := 1.0, 0.0
	limits := make(map[float64]float64) // of F, by degrees of freedom
	for _, r := range rows {
		for _, candidate := range rows {
			pair := difference(r, candidate)
			if candidate == r || pair.free < 1 {
				continue
			}
			if limits[pair.free] == 0 {
				limits[pair.free] = quantileOfF(pair.free, pair.free, plainlyLoud)
			}
			quietest := limits[pair.free] * max(pair.variance, noNoise)
			r.shared.variance = min(r.shared.variance, quietest)
		}
		sum += 1 / math.Sqrt(r.shared.variance)
	}
	byNoise := slices.SortedFunc(slices.Values(rows), func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.shared.variance, b.shared.variance),
			cmp.Compare(a.name, b.name))
	})
	for _, r := range byNoise { // quietest first: the excess over most goes to the others
		share := 1 / math.Sqrt(r.shared.variance)
		r.weight = min(most, remaining*share/sum)
		remaining, sum = remaining-r.weight, sum-share
	}
}

// difference returns the noise of a pair's log ratios; without degrees of freedom if they share
// fewer than two blocks.
func difference(a, b *row) spread {
	var ds []float64
	for _, block := range slices.Sorted(maps.Keys(a.logs)) {
		if y, ok := b.logs[block]; ok {
			ds = append(ds, a.logs[block]-y)
		}
	}
	if len(ds) < 2 {
		return spread{}
	}
	return spread{variance(ds), float64(len(ds) - 1)}
}

// trigammaInverse solves trigamma(y) = x > 0 by Newton's method, as in Smyth's appendix.
func trigammaInverse(x float64) float64 {
	switch {
	case x > 1e7:
		return 1 / math.Sqrt(x)
	case x < 1e-6:
		return 1 / x
	}
	y := 0.5 + 1/x
	for range 50 {
		trigamma := mathext.Zeta(2, y)
		step := trigamma * (1 - trigamma/x) / (-2 * mathext.Zeta(3, y))
		y += step
		if -step/y < 1e-8 {
			break
		}
	}
	return y
}

// Level is Summarize with the noise estimate of all targets, for two to five trials. For more
// trials, and for targets outside the fit, it equals Summarize.
//
// The mean of n trials varies with the mean block effect and with the target's own distance from
// it. Both variances add up to V, and the interval is t sqrt(V/n) about the geometric mean, with
// Satterthwaite's degrees of freedom, at least those of the blocks: block effects cannot be pooled,
// because all targets share them. If blocks differ much more than targets within them, the result
// equals that of one target alone. With two blocks, Satterthwaite's degrees of freedom cover only
// 90 %, so the quantiles are weighted by the variances instead (Cochran, "Approximate significance
// levels of the Behrens-Fisher test", Biometrics 20, 1964, pp. 191-195).
func (b *Blocks) Level(item Item) Summary {
	xs := values(item)
	s := Summarize(xs, b.confidence)
	r := b.rows[item.Name]
	if r == nil || s.Assumption != LogNormal || s.Warning != "" {
		return s
	}
	ownSpread, sum := b.level(r)
	t := sum.quantile(b.confidence)
	if b.mood.free == 1 {
		t = (b.mood.variance*b.mood.quantile(b.confidence) +
			ownSpread.variance*ownSpread.quantile(b.confidence)) / sum.variance
	}
	mean, half := mean(logs(xs)), t*math.Sqrt(sum.variance/float64(s.N))
	s.Lo, s.Hi = min(math.Exp(mean-half), s.Center), max(math.Exp(mean+half), s.Center)
	s.Assumption = Moderated
	return s
}

// level returns the variance of a target's trials, within block effects and in total.
func (b *Blocks) level(r *row) (ownSpread, sum spread) {
	ownSpread = r.shared
	ownSpread.variance *= (1 - r.weight) * (1 - r.weight) // its distance from its block's effect
	sum = spread{b.mood.variance + ownSpread.variance, max(b.mood.free, freedom(b.mood, ownSpread))}
	return ownSpread, sum
}

// Unpaired is UnpairedRatio of x, one of these targets, to y of another run, with the noise
// estimates of all targets of both runs: Welch's t with the variances of Level and Satterthwaite's
// degrees of freedom, at most three times those of one target. With two blocks it equals
// UnpairedRatio, because two block effects are too few for a variance.
func (b *Blocks) Unpaired(x Item, second *Blocks, y Item) Ratio {
	avs, bs := values(x), values(y)
	r := UnpairedRatio(avs, bs, b.confidence)
	rx, ry := b.rows[x.Name], second.rows[y.Name]
	if rx == nil || ry == nil || !r.HasInterval() || r.Warning != "" || b.mood.free < 2 ||
		second.mood.free < 2 {
		return r
	}
	_, sx := b.level(rx)
	_, sy := second.level(ry)
	r.SDLog = math.Sqrt(sx.variance + sy.variance)
	sx.variance, sy.variance = sx.variance/float64(len(avs)), sy.variance/float64(len(bs))
	r.Assumption = Moderated
	return r.about(math.Log(r.Center), spread{sx.variance + sy.variance,
		min(freedom(sx, sy), pairFreedom*float64(r.N-1))})
}

// Ratio is PairedRatio with the noise estimates of all targets: Welch's t with both variances and
// Satterthwaite's degrees of freedom, at most three times those of the pairs. SDLog is the root of
// the sum of variances, which is the SD of pairs.
func (b *Blocks) Ratio(x, y Item) Ratio {
	avs, bs, _ := Align(x, y)
	r := PairedRatio(avs, bs, b.confidence)
	rx, ry := b.rows[x.Name], b.rows[y.Name]
	if rx == nil || ry == nil || !r.HasInterval() || r.Warning != "" {
		return r
	}
	sum := spread{rx.shared.variance + ry.shared.variance, 0}
	sum.free = min(freedom(rx.shared, ry.shared), pairFreedom*float64(r.N-1))
	r.SDLog = math.Sqrt(sum.variance)
	r.Assumption = Moderated
	return r.about(math.Log(r.Center), spread{sum.variance / float64(r.N), sum.free})
}

// freedom returns Satterthwaite's degrees of freedom for the sum of two variances. They are never
// below the smaller one of both, also not by rounding.
func freedom(a, b spread) float64 {
	sum := a.variance + b.variance
	return max(min(a.free, b.free),
		sum*sum/(a.variance*a.variance/a.free+b.variance*b.variance/b.free))
}

func (s spread) quantile(confidence float64) float64 {
	return student(s.free).Quantile((1 + confidence) / 2)
}

// mustDiffer panics if two items share a name, because names identify items.
func mustDiffer(items []Item) {
	visited := make(map[string]bool)
	for _, item := range items {
		if visited[item.Name] {
			panic(fmt.Sprintf("stats: two items are named %q", item.Name))
		}
		visited[item.Name] = true
	}
}
