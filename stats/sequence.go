package stats

import (
	"math"
	"slices"
)

// What a look decides of a pair.
const (
	Apart = "apart" // they differ
	Alike = "alike" // they differ by less than anybody asks about
)

// Sequence decides the comparisons of a run while it goes on, block by block, so that further
// blocks go to those that are open.
//
// It is a group-sequential design: each look may tell pairs apart with the part of an error that
// is spent there, and the parts add up to Early by the spending function of O'Brien and Fleming's
// type (Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70(3), 1983,
// pp. 659-663): 2 - 2 Φ(z/√t) at the fraction t of what the run may take. Little is spent early,
// when little is known. The parts are added, as Bonferroni has it, instead of integrating over
// what looks have in common: it needs no joint distribution, which t tests with moderated variances
// do not have in closed form, and costs some blocks. Within a look all pairs are tested by Holm's
// procedure (see Compare). So the probability that even one pair of targets that are in truth alike
// is told apart before the end is at most Early, however many looks there are.
//
// Pairs are Alike once their interval lies within Same of one, at 1 - Late. That claims nothing; it
// ends their blocks. What is printed in the end is a table of its own, at Late: the run as a whole
// errs in at most Early + Late of runs, which is what the simulation holds it to.
type Sequence struct {
	Early float64 // of all looks together
	Late  float64 // of the table in the end
	Same  float64 // a relative difference that nobody asks about

	spent   float64
	decided map[[2]string]string
}

const (
	// leastLook is the error below which a look is not worth taking: beyond it t quantiles have no
	// digits.
	leastLook = 1e-9
	// leastAlike is how many blocks a pair must share before it is called alike. The SD of fewer is
	// a guess, and stopping where it looks small would pick the lucky ones.
	leastAlike = 5
)

// Look tests all pairs of items that are not decided yet, at a fraction of the whole, 0 to 1, which
// must not fall from look to look. It returns the error that this look may make.
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

// spending is how much of an error may be spent until a fraction of the whole.
func spending(alpha, fraction float64) float64 {
	if fraction <= 0 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(1-alpha)
	return math.Erfc(z / math.Sqrt(2*min(fraction, 1)))
}

// decide keeps the first decision on a pair.
func (s *Sequence) decide(a, b, subject string) {
	if s.Decided(a, b) == "" {
		s.decided[ordered(a, b)] = subject
	}
}

// Decided is what is decided of a pair, whose order does not matter: Apart, Alike, or nothing yet.
func (s *Sequence) Decided(a, b string) string { return s.decided[ordered(a, b)] }

func ordered(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// Open are the pairs of these names that are not decided, in the order given.
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

// Wanted are the names that further blocks must hold for the open pairs, in the order given: those
// of the pairs, and others up to three, since a block of two has no mood that Blocks could take
// off. None where no pair is open.
func Wanted(names []string, open [][2]string) []string {
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
