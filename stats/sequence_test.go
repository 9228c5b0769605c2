package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"prony.example/internal/dev/testsets"
)

// Values of the spending function of Lan & DeMets 1983 at alpha 0.05, from published tables.
func TestSpending(t *testing.T) {
	check := func(fraction, want float64) {
		t.Helper()
		if got := spending(0.05, fraction); math.Abs(got-want) > 5e-5 {
			t.Errorf("at %v: %v, want %v", fraction, got, want)
		}
	}
	check(0, 0)
	check(0.2, 0.00001)
	check(0.4, 0.0019)
	check(0.6, 0.0114)
	check(0.8, 0.0284)
	check(1, 0.05)
	check(2, 0.05) // a last block that exceeds the time limit
}

// simulation is a run that looks after each block, up to a maximum, with the levels and noise of
// each target. Targets whose pairs are all decided get no further blocks, as long as three targets
// are left.
type simulation struct {
	levels []float64
	noise  []noise
	blocks int
	looks  bool // otherwise all blocks run, with one final table
}

// run returns the number of trials, whether a look or the table declared equal targets different,
// and how many pairs of different levels the table found.
func (m simulation) run(r *rand.Rand) (trials int, early, late bool, found int) {
	seq := Sequence{Early: 0.01, Late: 0.05, Same: 0.03}
	items := make([]Item, len(m.levels))
	var names []string
	for i := range items {
		items[i] = Item{fmt.Sprint(i), map[int]float64{}}
		names = append(names, items[i].Name)
	}
	running := slices.Clone(names)
	for block := range m.blocks {
		mood := 10 + 0.2*r.NormFloat64()
		for i, item := range items {
			x := m.noise[i](r) // drawn in any case: the same values without looks
			if slices.Contains(running, item.Name) {
				item.Values[block+1] = m.levels[i] * math.Exp(mood+x)
				trials++
			}
		}
		if !m.looks || block == m.blocks-1 {
			continue
		}
		seq.Look(items, float64(block+1)/float64(m.blocks))
		open := seq.Open(names)
		if len(open) == 0 {
			break
		}
		running = Needed(names, open)
	}
	for i, a := range names {
		for j, b := range names[i+1:] {
			same := m.levels[i] == m.levels[i+1+j]
			early = early || same && seq.Decided(a, b) == Apart
		}
	}
	for _, c := range Compare(items, 0.05) {
		same := m.levels[slices.Index(names, c.A)] == m.levels[slices.Index(names, c.B)]
		late = late || same && c.Apart
		if !same && c.Apart {
			found++
		}
	}
	return trials, early, late, found
}

// TestSequenceErrs compares the stated errors with simulated runs: looks declare equal targets
// different in at most 1 % of runs, and looks or the final table in at most 6 %.
func TestSequenceErrs(t *testing.T) {
	testsets.Long(t, "1,500 runs each of six machines", testsets.Needs{})
	checkSequence(t, 1500, func(check func(string, int, []float64, ...noise)) {
		check("all alike", 8, []float64{1, 1, 1, 1}, gauss(0.02))
		check("quiet", 8, []float64{1, 1, 1}, gauss(0.01)) // ends early with Alike
		check("two alike among others", 8, []float64{1, 1, 1.1, 1.5, 2}, gauss(0.03))
		check("two in all", 10, []float64{1, 1}, gauss(0.02))
		check("unequal noise", 8, []float64{1, 1, 1, 1.3}, gauss(0.1), gauss(0.01))
		check("skewed", 8, []float64{1, 1, 1, 1}, skewed)
	})
}

// TestSequenceErrsRoughly is the same with fewer runs and wider bounds: it detects looks that each
// spend the whole error.
func TestSequenceErrsRoughly(t *testing.T) {
	checkSequence(t, 200, func(check func(string, int, []float64, ...noise)) {
		check("all alike", 8, []float64{1, 1, 1, 1}, gauss(0.05))
		check("two in all", 8, []float64{1, 1}, gauss(0.05))
	})
}

func checkSequence(t *testing.T, runs int,
	rows func(func(string, int, []float64, ...noise))) {
	rows(func(name string, blocks int, levels []float64, xs ...noise) {
		t.Helper()
		for len(xs) < len(levels) {
			xs = append(xs, xs[len(xs)-1])
		}
		m := simulation{levels, xs, blocks, true}
		r := rand.New(rand.NewPCG(uint64(blocks), uint64(len(levels))))
		early, any := 0, 0
		for range runs {
			_, e, l, _ := m.run(r)
			if e {
				early++
			}
			if e || l {
				any++
			}
		}
		n := float64(runs)
		four := func(p float64) float64 { return 4 * math.Sqrt(p*(1-p)/n) }
		e, a := float64(early)/n, float64(any)/n
		if e > 0.01+four(0.01) || a > 0.06+four(0.06) {
			t.Errorf("%s: looks err in %.4f of runs, all in %.4f; want 0.01 and 0.06", name, e, a)
		}
		t.Logf("%s: looks %.4f, all %.4f", name, e, a)
	})
}

// TestSequenceSaves: two of six targets are close. With the same number of trials as all blocks of
// all targets, looks leave more blocks for those two.
func TestSequenceSaves(t *testing.T) {
	const runs = 100
	levels := []float64{1, 1.04, 1.3, 1.7, 2.2, 3}
	xs := slices.Repeat([]noise{gauss(0.02)}, len(levels))
	sum := func(m simulation) (trials, found float64) {
		r := rand.New(rand.NewPCG(1, 2))
		for range runs {
			n, _, _, f := m.run(r)
			trials, found = trials+float64(n)/runs, found+float64(f)/runs
		}
		return trials, found
	}
	fixed, foundFixed := sum(simulation{levels, xs, 8, false})
	looked, foundLooked := sum(simulation{levels, xs, 12, true})
	t.Logf("8 blocks of all: %.1f trials, %.3f of 15 pairs; up to 12 with looks: %.1f, %.3f",
		fixed, foundFixed, looked, foundLooked)
	if looked > fixed || foundLooked < foundFixed {
		t.Errorf("looks took %.1f trials for %.3f pairs, all blocks %.1f for %.3f", looked,
			foundLooked, fixed, foundFixed)
	}
}

func TestWanted(t *testing.T) {
	check := func(open [][2]string, want ...string) {
		t.Helper()
		if got := Needed([]string{"a", "b", "c", "d"}, open); !slices.Equal(got, want) {
			t.Errorf("of %v %v, want %v", open, got, want)
		}
	}
	check(nil)
	check([][2]string{{"b", "d"}}, "a", "b", "d") // a third target, to estimate the block's effect
	check([][2]string{{"a", "b"}, {"b", "c"}}, "a", "b", "c")
	check([][2]string{{"a", "b"}, {"c", "d"}}, "a", "b", "c", "d")
}
