package stats

import (
	"math"
	"slices"
)

// Change is a point where a history changes its level.
type Change struct {
	At            int // index of the first value of the new level
	Before, After float64
	P             float64
}

const (
	leastLevel = 3   // values of a level: two could be one outlier and its neighbor
	mostValues = 500 // of a history; older ones are ignored, because time grows with the cube
)

// Changes finds the change points of a history of values, one per run, oldest first. Before and
// After are the means of the levels on both sides, up to the next change points. P is Student's,
// times the number of possible places of a change: if a history has no change, the probability that
// Changes returns any is at most alpha, provided that its runs are independent and roughly normal.
//
// Method: E-divisive means (Matteson & James, "A nonparametric approach for multiple change point
// analysis of multivariate data", JASA 109, 2014, pp. 334-345): cut at the greatest energy distance
// between two neighboring stretches, and repeat within them. Then, instead of random permutations,
// whose result varies and which are weak near the end, Student's t between neighboring levels as in
// Hunter (Fleming et al., "Hunter: using change point detection to hunt for performance
// regressions", ICPE 2023): the least significant cut is undone until all that are left are
// significant. Hunter does not correct P; here it is corrected, because the place was chosen to
// minimize it.
//
// Changes misses changes in the last two runs, because a level needs three values (it finds a great
// one, but one or two runs early), changes that are undone within two runs, small changes near
// either end, where the short side decides (three runs after a change detect a shift of about four
// SDs), slow drifts, which appear as stairs or not at all, and changes of the spread only. It
// returns none for fewer than six values, or if a value is not finite. Of more than 500 values only
// the latest count; indices refer to all.
func Changes(xs []float64, alpha float64) []Change {
	mustBeShare("alpha", alpha)
	skipped := max(0, len(xs)-mostValues)
	xs = xs[skipped:]
	places := len(xs) - 2*leastLevel + 1
	if places < 1 || slices.ContainsFunc(xs, notFinite) {
		return nil
	}
	cuts := append([]int{0}, cutAll(distancesOf(xs), 0, len(xs), nil)...)
	cuts = append(cuts, len(xs))
	slices.Sort(cuts)
	var ps []float64
	for {
		ps = ps[:0]
		for i := 1; i+1 < len(cuts); i++ {
			p := differ(xs[cuts[i-1]:cuts[i]], xs[cuts[i]:cuts[i+1]])
			ps = append(ps, min(1, p*float64(places)))
		}
		if len(ps) == 0 || slices.Max(ps) <= alpha {
			break
		}
		worst := slices.Index(ps, slices.Max(ps))
		cuts = slices.Delete(cuts, worst+1, worst+2)
	}
	var changes []Change
	for i, p := range ps {
		changes = append(changes, Change{At: skipped + cuts[i+1], P: p,
			Before: mean(xs[cuts[i]:cuts[i+1]]),
			After:  mean(xs[cuts[i+1]:cuts[i+2]])})
	}
	return changes
}

// distances has at [i][j] the sum of |x-y| over the first i values x and the first j values y.
type distances [][]float64

func distancesOf(xs []float64) distances {
	d := make(distances, len(xs)+1)
	d[0] = make([]float64, len(xs)+1)
	for i, x := range xs {
		d[i+1] = make([]float64, len(xs)+1)
		row := 0.0
		for j, y := range xs {
			row += math.Abs(x - y)
			d[i+1][j+1] = d[i][j+1] + row
		}
	}
	return d
}

// between returns the sum of |x-y| over x in [a, b) and y in [c, e).
func (d distances) between(a, b, c, e int) float64 {
	return d[b][e] - d[a][e] - d[b][c] + d[a][c]
}

// energy is the statistic of Matteson & James, eq. 5: n m / (n+m) times twice the mean distance
// between the two stretches, minus the mean distances within them.
func (d distances) energy(from, pos, to int) float64 {
	n, m := float64(pos-from), float64(to-pos)
	distance := 2 * d.between(from, pos, pos, to) / (n * m)
	within := d.between(from, pos, from, pos) / (n * (n - 1))
	within += d.between(pos, to, pos, to) / (m * (m - 1))
	return n * m / (n + m) * (distance - within)
}

// cutAll cuts at the greatest energy, then both sides, until levels have the minimum length. The
// right stretch may end before to, which also detects a level that comes and goes.
func cutAll(d distances, from, to int, cuts []int) []int {
	if to-from < 2*leastLevel {
		return cuts
	}
	best, cut := math.Inf(-1), 0
	for pos := from + leastLevel; pos+leastLevel <= to; pos++ {
		for end := pos + leastLevel; end <= to; end++ {
			if e := d.energy(from, pos, end); e > best {
				best, cut = e, pos
			}
		}
	}
	cuts = append(cuts, cut)
	return cutAll(d, cut, to, cutAll(d, from, cut, cuts))
}

// differ returns the two-sided P of Student's t with a pooled variance, because the variance of
// only three values would too often be small by chance.
func differ(avs, bs []float64) float64 {
	n, m := float64(len(avs)), float64(len(bs))
	meanA, varianceA := mean(avs), variance(avs)
	meanB, varianceB := mean(bs), variance(bs)
	pooled := ((n-1)*varianceA + (m-1)*varianceB) / (n + m - 2)
	switch {
	case slices.Min(avs) == slices.Max(bs) && slices.Max(avs) == slices.Min(bs):
		return 1 // only one value; means may differ in the last digit
	case meanA == meanB:
		return 1
	case pooled == 0: // only the order counts, as in UnpairedRatio
		return min(1, 2/orders(n+m, n))
	}
	t := math.Abs(meanA-meanB) / math.Sqrt(pooled*(1/n+1/m))
	return 2 * student(n+m-2).CDF(-t)
}
