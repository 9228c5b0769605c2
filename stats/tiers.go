package stats

import (
	"cmp"
	"slices"
)

// Item is one target's values, block -> value, in any unit where higher is better. For times give
// the reciprocal: the logarithms only change sign, so every P stays the same.
type Item struct {
	Name   string
	Values map[int]float64
}

// Comparison is one pair of targets among all pairs of an experiment.
type Comparison struct {
	A, B  string
	Ratio Ratio   // B/A over common blocks, at confidence 1 - alpha for this pair alone
	PHolm float64 // P corrected for the number of pairs
	Apart bool    // PHolm <= alpha: the two were told apart
}

// Compare compares every pair of items by Blocks' Ratio, in the order given, and corrects for the
// number of pairs by Holm's step-down procedure ("A simple sequentially rejective multiple test
// procedure", Scandinavian Journal of Statistics 6, 1979, pp. 65-70): the probability that even one
// pair of targets that are in truth alike is told apart is at most alpha, however the pairs depend
// on each other. Benjamini-Hochberg was refused: it controls the share of false claims, not whether
// there is one, and a table is read claim by claim. One variance pooled over all targets was
// refused, too: it lends a quiet target's precision to a noisy one. What Blocks lends has a limit;
// three blocks of targets of which some are five times as noisy give up to 6 % instead of 5 %.
//
// Pairs that have fewer than two common blocks, or a value without logarithm, are never apart and
// do not count among the pairs. It panics when two items share a name.
func Compare(items []Item, alpha float64) []Comparison {
	mustBeShare("alpha", alpha)
	return CompareBy(items, alpha, NewBlocks(items, 1-alpha).Ratio)
}

// CompareBy is Compare with another way to a pair's ratio, b over a, at confidence 1 - alpha.
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

// Holm is Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979), with weights as
// its section 4 has them: if nothing differs in truth, one test says that it does with probability
// alpha at most, however the tests depend on each other and however the error was dealt out
// beforehand. The P values, each over its weight, are taken from the smallest on; each is
// multiplied by the weights that are left, and none may fall below one before it. With equal
// weights the i-th smallest of m is multiplied by m - i. Weights are positive, of any sum. It sorts
// the tests, and sets what each comes to.
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

// Tiers orders the items, best first, and cuts the order into tiers: names of targets that this run
// cannot tell apart.
//
// A tier promises: no two of its members were told apart by Compare at this alpha; and the first
// member of each further tier was told apart from at least one member of the tier above. If all
// targets are in truth alike, there is more than one tier with probability at most alpha.
//
// A tier does not promise: that its members are equal (too few blocks put everything into one tier;
// Ratio.Resolves says how many would not); nor that any two targets of different tiers differ.
// "Cannot be told apart" is not transitive: with a like b, b like c, but a above c, the tiers are
// {a, b} and {c}, although b and c cannot be told apart. Ask Compare about a given pair. The
// order inside a tier means nothing.
//
// The order is by each item's mean log ratio to the other items over common blocks, so a target
// that missed the slow blocks does not gain by it; equal ones go by name. An item without values,
// or with one that is not positive and finite, is in no tier: the caller says why it is missing.
func Tiers(items []Item, alpha float64) [][]string {
	return tiersOf(ranking(items), func(ranked []Item) []Comparison {
		return Compare(ranked, alpha)
	})
}

// TiersBy is Tiers with another way to a pair's ratio, as CompareBy has it.
func TiersBy(items []Item, alpha float64, ratio func(a, b Item) Ratio) [][]string {
	return tiersOf(ranking(items), func(ranked []Item) []Comparison {
		return CompareBy(ranked, alpha, ratio)
	})
}

func tiersOf(ranked []Item, compare func([]Item) []Comparison) [][]string {
	separate := make(map[[2]string]bool)
	for _, c := range compare(ranked) {
		separate[[2]string{c.A, c.B}] = c.Apart // A stands before B in ranked
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

// ranking is the usable items, best first.
func ranking(items []Item) []Item {
	var usable []Item
	for _, item := range items {
		if len(item.Values) > 0 && !slices.ContainsFunc(values(item), notPositive) {
			usable = append(usable, item)
		}
	}
	// By name first: sums must not depend, in the last digit, on the order in which items came.
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

// meanLogLead is the mean of log(a/b) over common blocks. Without one it compares all of a's blocks
// with all of b's: that only orders them, since Compare never tells such a pair apart.
func meanLogLead(a, b Item) float64 {
	avs, bs, _ := Align(a, b)
	if len(avs) == 0 {
		avs, bs = values(a), values(b)
	}
	return mean(logs(avs)) - mean(logs(bs))
}

// values is an item's values in block order, so that sums are the same in every process.
func values(item Item) []float64 {
	vs, _, _ := Align(item, item)
	return vs
}
