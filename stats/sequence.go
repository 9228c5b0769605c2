package stats

import (
	"math"
	"slices"
)

// Decisions on a pair.
const (
	Apart = "apart" // they differ significantly
	Alike = "alike" // they differ by less than Sequence.Same
)

// Sequence decides the comparisons of a run block by block while it runs, so that further blocks go
// to undecided comparisons.
//
// It is a group-sequential design: each look may report differences with the part of the error that
// is spent there, and the parts add up to Early by the spending function of O'Brien and Fleming's
// type (Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70(3), 1983,
// pp. 659-663): 2 - 2 Φ(z/√t) at the fraction t of the planned maximum. Little is spent early, when
// little is known. The parts are added as in Bonferroni's method instead of integrating over the
// dependence between looks: this needs no joint distribution, for which t tests with moderated
// variances have no closed form, and costs some blocks. Within a look all pairs are tested by
// Holm's procedure (see Compare). So the probability that any pair of equal targets is declared
// different before the end is at most Early, for any number of looks.
//
// Pairs are Alike once their interval at 1 - Late is within Same of one. This is no claim; it only
// ends their blocks. The final table is separate, at Late: the run as a whole errs in at most Early
// + Late of runs, which the simulation tests.
type Sequence struct {
	Early float64 // error probability of all looks together
	Late  float64 // error probability of the final table
	Same  float64 // an irrelevant relative difference

	spent   float64
	decided map[[2]string]string
}

const (
	// leastLook is the error below which a look is not taken, because t quantiles lose their
	// precision there.
	leastLook = 1e-9
	// leastAlike is the number of common blocks that a pair needs to be called alike. With fewer,
	// the SD is too imprecise, and stopping when it looks small would select lucky pairs.
	leastAlike = 5
)

// Look tests all undecided pairs of items at a fraction of the planned maximum, 0 to 1, which must
// not decrease from look to look. It returns the error probability of this look.
func (s *Sequence) Look(items []Item, fraction float64) (level float64) {
	mustBeShare("the early error", s.Early)
	mustBeShare("the late error", s.Late)
	if s.decided == nil {
		s.decided = map[[2]string]string{}
	}
	due := spending(s.Early, fraction)
	if level = due - s.spent; level >= leastLook {
		s.spent = due
		for _, c := range Compare(items, level) {
			if c.Apart {
				s.decide(c.A, c.B, Apart)
			}
		}
	} else {
		level = 0
	}
	design := NewBlocks(items, 1-s.Late)
	for i, a := range items {
		for _, b := range items[i+1:] {
			r := design.Ratio(a, b)
			if r.N >= leastAlike && r.HasInterval() && r.Hi <= 1+s.Same && r.Lo >= 1/(1+s.Same) {
				s.decide(a.Name, b.Name, Alike)
			}
		}
	}
	return level
}

// spending returns the error that may be spent up to a fraction of the planned maximum.
func spending(alpha, fraction float64) float64 {
	if fraction <= 0 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(1-alpha)
	return math.Erfc(z / math.Sqrt(2*min(fraction, 1)))
}

// decide stores the first decision on a pair.
func (s *Sequence) decide(a, b, subject string) {
	if s.Decided(a, b) == "" {
		s.decided[ordered(a, b)] = subject
	}
}

// Decided returns the decision on a pair, in any order: Apart, Alike, or "" if it is undecided.
func (s *Sequence) Decided(a, b string) string { return s.decided[ordered(a, b)] }

func ordered(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// Open returns the undecided pairs of these names, in the order given.
func (s *Sequence) Open(names []string) (open [][2]string) {
	for i, a := range names {
		for _, b := range names[i+1:] {
			if s.Decided(a, b) == "" {
				open = append(open, [2]string{a, b})
			}
		}
	}
	return open
}

// Needed returns the names that further blocks need for the open pairs, in the order given: the
// targets of these pairs, and others up to a total of three, because Blocks cannot estimate a
// block's effect from two targets. It returns none if no pair is open.
func Needed(names []string, open [][2]string) []string {
	if len(open) == 0 {
		return nil
	}
	want := map[string]bool{}
	for _, pair := range open {
		want[pair[0]], want[pair[1]] = true, true
	}
	for _, name := range names {
		if len(want) >= leastTargets {
			break
		}
		want[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !want[name] })
}
