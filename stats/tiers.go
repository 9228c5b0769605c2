package stats

import (
	"cmp"
	"slices"
)

// Item is one target's values, block -> value, in any unit in which higher is better. For times use
// the reciprocal: the logarithms only change sign, so every P stays the same.
type Item struct {
	Name   string
	Values map[int]float64
}

// Comparison is one pair of targets among all pairs of an experiment.
type Comparison struct {
	A, B  string
	Ratio Ratio   // B/A over common blocks, at confidence 1 - alpha, not corrected
	PHolm float64 // P corrected for the number of pairs
	Apart bool    // PHolm <= alpha: the two differ significantly
}

// Compare compares every pair of items by Blocks' Ratio, in the order given, and corrects for the
// number of pairs by Holm's step-down procedure ("A simple sequentially rejective multiple test
// procedure", Scandinavian Journal of Statistics 6, 1979, pp. 65-70): the probability that any pair
// of equal targets is declared different is at most alpha, for any dependence between pairs.
// Benjamini-Hochberg was refused: it controls the share of false claims, not whether there is one,
// and a table is read claim by claim. One variance pooled over all targets was also refused,
// because it applies a quiet target's precision to a noisy one. Blocks limits the pooling; with
// three blocks of targets of which some are five times as noisy, the error is up to 6 % instead of
// 5 %.
//
// Pairs with fewer than two common blocks, or with a value without a logarithm, are never apart and
// do not count among the pairs. It panics if two items share a name.
func Compare(items []Item, alpha float64) []Comparison {
	mustBeShare("alpha", alpha)
	return CompareBy(items, alpha, NewBlocks(items, 1-alpha).Ratio)
}

// CompareBy is Compare with another function for a pair's ratio, b over a, at confidence 1 - alpha.
func CompareBy(items []Item, alpha float64, ratio func(a, b Item) Ratio) []Comparison {
	mustBeShare("alpha", alpha)
	mustDiffer(items)
	var pairs []Comparison
	for i, a := range items {
		for _, b := range items[i+1:] {
			r := ratio(a, b)
			pairs = append(pairs, Comparison{A: a.Name, B: b.Name, Ratio: r, PHolm: 1})
		}
	}
	holm(pairs, alpha)
	return pairs
}

// holm sets PHolm and Apart.
func holm(pairs []Comparison, alpha float64) {
	var tested []*Comparison
	for i := range pairs {
		if pairs[i].Ratio.HasInterval() {
			tested = append(tested, &pairs[i])
		}
	}
	alike := func(*Comparison) float64 { return 1 }
	Holm(tested, func(c *Comparison) float64 { return c.Ratio.P }, alike,
		func(c *Comparison, p float64) { c.PHolm, c.Apart = p, p <= alpha })
}

// Holm applies Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979), with
// weights as in its section 4: if nothing really differs, the probability that any test claims a
// difference is at most alpha, for any dependence between tests and any weights fixed beforehand.
// It takes the P values, each divided by its weight, in ascending order, multiplies each by the sum
// of remaining weights, and raises it to the previous result if that is larger. With equal weights
// the i-th smallest of m is multiplied by m - i. Weights are positive, with any sum. It sorts the
// tests, and sets the result of each.
func Holm[T any](tests []T, p, weight func(T) float64, set func(T, float64)) {
	slices.SortStableFunc(tests, func(a, b T) int {
		return cmp.Compare(p(a)/weight(a), p(b)/weight(b))
	})
	remaining := 0.0
	for _, t := range tests {
		remaining += weight(t)
	}
	before := 0.0
	for _, t := range tests {
		before = max(before, min(1, p(t)*remaining/weight(t)))
		set(t, before)
		remaining -= weight(t)
	}
}

// Tiers orders the items, best first, and cuts the order into tiers: names of targets that do not
// differ significantly in this run.
//
// A tier guarantees that no two of its members differ significantly by Compare at this alpha, and
// that the first member of each further tier differs significantly from at least one member of the
// tier above. If all targets are equal, the probability of more than one tier is at most alpha.
//
// A tier does not guarantee that its members are equal (too few blocks put everything into one
// tier; Ratio.Resolves returns a sufficient number), nor that any two targets of different tiers
// differ. Missing significance is not transitive: if a and b, and b and c, do not differ
// significantly, but a and c do, the tiers are {a, b} and {c}. Use Compare for a given pair. The
// order inside a tier has no meaning.
//
// The order is by each item's mean log ratio to the other items over common blocks, so a target
// that missed the slow blocks has no advantage; ties are ordered by name. An item without values,
// or with a value that is not positive and finite, is in no tier: the caller must explain why it is
// missing.
func Tiers(items []Item, alpha float64) [][]string {
	return tiersOf(ranking(items), func(ranked []Item) []Comparison {
		return Compare(ranked, alpha)
	})
}

// TiersBy is Tiers with another function for a pair's ratio, as in CompareBy.
func TiersBy(items []Item, alpha float64, ratio func(a, b Item) Ratio) [][]string {
	return tiersOf(ranking(items), func(ranked []Item) []Comparison {
		return CompareBy(ranked, alpha, ratio)
	})
}

func tiersOf(ranked []Item, compare func([]Item) []Comparison) [][]string {
	separate := make(map[[2]string]bool)
	for _, c := range compare(ranked) {
		separate[[2]string{c.A, c.B}] = c.Apart // A precedes B in ranked
	}
	var tiers [][]string
	for _, item := range ranked {
		last := len(tiers) - 1
		if last < 0 || slices.ContainsFunc(tiers[last], func(above string) bool {
			return separate[[2]string{above, item.Name}]
		}) {
			tiers = append(tiers, nil)
			last++
		}
		tiers[last] = append(tiers[last], item.Name)
	}
	return tiers
}

// ranking returns the usable items, best first.
func ranking(items []Item) []Item {
	var usable []Item
	for _, item := range items {
		if len(item.Values) > 0 && !slices.ContainsFunc(values(item), notPositive) {
			usable = append(usable, item)
		}
	}
	// By name first: sums must not depend, in the last digit, on the order of items.
	slices.SortFunc(usable, func(a, b Item) int { return cmp.Compare(a.Name, b.Name) })
	score := make(map[string]float64, len(usable))
	for i, a := range usable {
		for _, b := range usable[i+1:] {
			lead := meanLogLead(a, b)
			score[a.Name] += lead
			score[b.Name] -= lead
		}
	}
	slices.SortStableFunc(usable, func(a, b Item) int {
		return cmp.Compare(score[b.Name], score[a.Name])
	})
	return usable
}

// meanLogLead returns the mean of log(a/b) over common blocks. Without common blocks it compares
// all of a's blocks with all of b's: this only orders them, because Compare never declares such a
// pair different.
func meanLogLead(a, b Item) float64 {
	avs, bs, _ := Align(a, b)
	if len(avs) == 0 {
		avs, bs = values(a), values(b)
	}
	return mean(logs(avs)) - mean(logs(bs))
}

// values returns an item's values in block order, so that sums are the same in every process.
func values(item Item) []float64 {
	vs, _, _ := Align(item, item)
	return vs
}
