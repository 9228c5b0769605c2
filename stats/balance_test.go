package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// stealing simulates a start whose machine is disturbed in bursts that last for several slices;
// each round has a random order of targets. Target 0 gets extra in addition.
func stealing(r *rand.Rand, rounds, targets int, extra float64) *Rounds {
	var rows []SliceRow
	burst := 0.0
	for round := range rounds {
		for _, target := range r.Perm(targets) {
			switch { // in steps, as steal is reported
			case burst == 0 && r.Float64() < 0.1:
				burst = r.ExpFloat64()
			case r.Float64() < 0.3:
				burst = 0
			}
			row := SliceRow{Round: round, Target: target, TimeNs: ms,
				Covariates: []float64{burst, 0}}
			if target == 0 {
				row.Covariates[0] += extra
			}
			rows = append(rows, row)
		}
	}
	return NewRounds(rows)
}

func TestCheckBalance(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	check := func(targets int, extra, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, uint64(targets), 100, atLeast, atMost, func(r *rand.Rand) bool {
			starts := []*Rounds{stealing(r, 30, targets, extra),
				stealing(r, 30, targets, extra)}
			return CheckBalance(starts, 0, targets).P < 0.05
		})
	}
	for _, targets := range []int{2, 3, 8} {
		check(targets, 0, 0.05, 0.05)
		check(targets, 0.3, 0.9, 1) // doubles the total of all bursts
	}
}

// roundsOf makes a start of the covariates of its rounds by target; NaN: no slice.
func roundsOf(values ...[]float64) *Rounds {
	var rows []SliceRow
	for round, values := range values {
		for target, v := range values {
			if !math.IsNaN(v) {
				rows = append(rows, SliceRow{Round: round, Target: target, TimeNs: ms,
					Covariates: []float64{v}})
			}
		}
	}
	return NewRounds(rows)
}

func TestBalanceDifference(t *testing.T) {
	start := roundsOf([]float64{1, 3}, []float64{2, 6}, []float64{9}) // a slice is missing
	// Both rounds agree: two of four permutations are as far apart.
	b := CheckBalance([]*Rounds{start}, 0, 2)
	if b.Rounds != 2 || b.Difference != 3 || math.Abs(b.P-0.5) > 0.05 || b.Unbalanced() {
		t.Errorf("%+v", b)
	}
	for _, none := range []Balance{CheckBalance(nil, 0, 2),
		CheckBalance([]*Rounds{stealing(rand.New(rand.NewPCG(1, 1)), 9, 2, 0)}, 1, 2)} {
		if none.P != 1 || none.Unbalanced() {
			t.Errorf("of nothing: %+v", none)
		}
	}
	far := CheckBalance([]*Rounds{stealing(rand.New(rand.NewPCG(1, 1)), 99, 2, 3)}, 0, 2)
	if !far.Unbalanced() {
		t.Errorf("%+v", far)
	}
}

// Targets of different groups share no round, and a target that never ran has none. Differences
// count only between targets of the same rounds.
func TestBalanceOfGroups(t *testing.T) {
	absent := math.NaN()
	r := rand.New(rand.NewPCG(7, 7))
	var pair, more, first, second [][]float64
	for range 60 {
		x, y := r.Float64(), r.Float64()
		pair = append(pair, []float64{x, y})
		more = append(more, []float64{x, y, absent})
		first = append(first, []float64{r.Float64(), 5 + r.Float64(), absent})
		second = append(second, []float64{100 + r.Float64(), absent, 100 + r.Float64()})
	}
	two, three := CheckBalance([]*Rounds{roundsOf(pair...)}, 0, 2),
		CheckBalance([]*Rounds{roundsOf(more...)}, 0, 3)
	if two != three {
		t.Errorf("two targets: %+v; with one that never ran: %+v", two, three)
	}
	b := CheckBalance([]*Rounds{roundsOf(first...), roundsOf(second...)}, 0, 3)
	if b.Rounds != 120 || !b.Unbalanced() || math.Abs(b.Difference-5) > 0.3 {
		t.Errorf("%+v", b)
	}
	equal := CheckBalance([]*Rounds{roundsOf(pair...), roundsOf(second...)}, 0, 3)
	if equal.Unbalanced() || equal.Difference > 1 {
		t.Errorf("%+v", equal)
	}
}
