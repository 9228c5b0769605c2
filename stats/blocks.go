package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Blocks is a run seen as the randomised block design that it is: a trial's log value is its
// target's level plus its block's mood plus noise. Three blocks of seven targets leave 12 degrees
// of freedom for the noise where each target alone has two, of which a standard deviation is
// anybody's guess: a tenth of runs show a third of the true one, or less. So targets lend each
// other precision.
//
// Method: residuals of the additive model, then moderated variances (Smyth, "Linear models and
// empirical Bayes methods for assessing differential expression in microarray experiments",
// Statistical Applications in Genetics and Molecular Biology 3(1), 2004, article 3): the targets'
// own variances s² with d degrees of freedom are draws about s0², whose own spread is worth d0
// degrees; s0² and d0 come of the mean and the variance of log s², and a target's variance becomes
// (d0 s0² + d s²) / (d0 + d). How alike the variances look decides by how much they are pooled:
// wholly, or hardly.
//
// Smyth has thousands of genes. Seven variances hardly say how alike they are, so this is more
// careful:
//   - the others at most double a target's degrees of freedom, however great d0 is;
//   - a variance is raised to what the others say wholly, and lowered to it in part (keepLoud): a
//     quiet target may have been lucky, a noisy one may be noisy;
//   - a block's mood is asked of the other targets alone, the quieter ones first, so that neither
//     a target itself nor a noisy neighbour passes for the mood.
//
// The promise is kept on average over the intervals of a table (Morris, "Parametric empirical Bayes
// inference: theory and applications", JASA 78, 1983, pp. 47-55). A target that is far noisier than
// all others is covered less often, they more often; docs/proof.md has by how much.
//
// Targets with one value, or with one that has no logarithm, and targets without any spread have no
// part in it, nor have blocks of fewer than three targets. What is left must be three targets: of
// two, neither's noise can be told from the other's. For all others Level and Ratio answer as
// Summarize and PairedRatio do.
type Blocks struct {
	confidence float64
	rows       map[string]*row
	mood       spread // of the blocks, the noise of their estimates included
}

// spread is a variance of log values with the degrees of freedom behind it.
type spread struct{ variance, free float64 }

// row is a target in the fit.
type row struct {
	name      string
	logs      map[int]float64 // by block
	level     float64
	ownSpread spread  // of its residuals
	shared    spread  // moderated
	weight    float64 // in the blocks' moods; weights sum to 1
}

const (
	leastTargets = 3     // of a fit, and of each block in it
	keepLoud     = 0.25  // share kept of what a target's own variance has above the moderated one
	leastOwn     = 1e-5  // of the median: a variance of 0 has no logarithm (limma's fitFDist, too)
	pairFreedom  = 3     // a pair's degrees of freedom are at most so many times those of its pairs
	noNoise      = 1e-20 // a variance below it is rounding
	plainlyLoud  = 0.999
	fitPasses    = 50 // of a fit with gaps; without any the first is exact
)

// NewBlocks fits items, whose order does not matter, in any positive unit. Confidence is that of
// all intervals. It panics where two items share a name.
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
	for pass := range 2 { // with all targets alike, to learn whom to ask; then by those weights
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

// designed picks who takes part, by name, and in which blocks, ascending.
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
	for { // a target may leave with its block, and a block with its target
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

// fit finds levels and moods by turns, each given the other, and every target's own variance: of
// what is left when the mood is asked of the others. Moods are in the order of the blocks.
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

// moderate sets what targets share; false where there is no noise to share.
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
	chance := 0.0 // the variance that log s² would have if all targets were alike
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

// weigh gives quieter targets more to say about a block: by 1/SD and not by 1/variance, and at most
// twice an equal share, because who is quiet is itself a guess.
//
// Where few targets are quiet, all of them look noisy beside a noisy one. A target that is far
// noisier than its difference from another one is not: chance makes an F of that size in one of a
// thousand (plainlyLoud).
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
	for _, r := range byNoise { // the quietest first: what it may not have goes to the others
		share := 1 / math.Sqrt(r.shared.variance)
		r.weight = min(most, remaining*share/sum)
		remaining, sum = remaining-r.weight, sum-share
	}
}

// difference is the noise of a pair's log ratios; without freedom where they share no two blocks.
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

// Level is Summarize with what the other targets say of the noise, for two to five trials. From
// where ranks suffice, and where the fit has no part in a target, it is Summarize.
//
// The mean of n trials varies as the mean mood of the blocks and as the target's own distance from
// it; both variances add up to V, and the interval is t sqrt(V/n) about the geometric mean, with
// Satterthwaite's degrees of freedom, at least those of the blocks: moods are not to be pooled, for
// all targets share them. Where the blocks differ much more than targets do within them, that is
// what one target alone says. Of two blocks, Satterthwaite's keep only 90 %, so the quantiles are
// weighed by the variances instead (Cochran, "Approximate significance levels of the Behrens-Fisher
// test", Biometrics 20, 1964, pp. 191-195).
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

// level is what a trial of a target varies by: within the blocks' moods, and with them.
func (b *Blocks) level(r *row) (ownSpread, sum spread) {
	ownSpread = r.shared
	ownSpread.variance *= (1 - r.weight) * (1 - r.weight) // its distance from its mood
	sum = spread{b.mood.variance + ownSpread.variance, max(b.mood.free, freedom(b.mood, ownSpread))}
	return ownSpread, sum
}

// Unpaired is UnpairedRatio of x, one of these targets, to y of another run, with what all targets
// of both runs say of the noise: Welch's t with the variances that Level has, and Satterthwaite's
// degrees of freedom, at most three times those of one target. Of two blocks it is UnpairedRatio:
// the moods of two say nothing.
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

// Ratio is PairedRatio with what all targets say of the noise: Welch's t with both variances and
// Satterthwaite's degrees of freedom, at most three times those of the pairs. SDLog is the root of
// the variances' sum, what pairs scatter by.
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

// freedom is Satterthwaite's, of the sum of two variances.
func freedom(a, b spread) float64 {
	sum := a.variance + b.variance
	return sum * sum / (a.variance*a.variance/a.free + b.variance*b.variance/b.free)
}

func (s spread) quantile(confidence float64) float64 {
	return student(s.free).Quantile((1 + confidence) / 2)
}

// mustDiffer panics where two items share a name: they are told apart by it.
func mustDiffer(items []Item) {
	visited := make(map[string]bool)
	for _, item := range items {
		if visited[item.Name] {
			panic(fmt.Sprintf("stats: two items are named %q", item.Name))
		}
		visited[item.Name] = true
	}
}
