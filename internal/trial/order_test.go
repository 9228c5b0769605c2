package trial

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// No target waits for more slices of others than permitted, each target has each place equally
// often, and with a large limit each round is a shuffle of its own.
func TestOrder(t *testing.T) {
	const n, rounds = 5, 20_000
	for _, most := range []int{n + 1, n + 2, 2*n - 2, 100} {
		r := rand.New(rand.NewPCG(39, uint64(most)))
		var places [n][n]int
		previous := r.Perm(n)
		for range rounds {
			next := order(r, previous, most)
			for place, i := range next {
				places[i][place]++
				if waited := n - 1 - slices.Index(previous, i) + place; waited > most {
					t.Fatalf("%d of %d others came between %v and %v", waited, most, previous,
						next)
				}
			}
			previous = next
		}
		for i := range places {
			for place, count := range places[i] {
				if count < rounds/n*9/10 || count > rounds/n*11/10 {
					t.Errorf("most %d: target %d is at place %d in %d of %d rounds", most, i, place,
						count, rounds)
				}
			}
		}
	}
}

// One of five targets may be stopped for six slices: with slices of 570 ms for 3.4 s.
func TestFits(t *testing.T) {
	s := &start{sides: make([]*side, 5)}
	for _, row := range []struct {
		slice time.Duration
		fits  bool
	}{
		{100 * time.Millisecond, true}, {573 * time.Millisecond, true},
		{666 * time.Millisecond, true}, {667 * time.Millisecond, false},
	} {
		if got := s.fits(row.slice); got != row.fits {
			t.Errorf("slices of %v fit: %v", row.slice, got)
		}
	}
}

// SliceLimit is the longest slice with which rounds have several orders.
func TestSliceLimit(t *testing.T) {
	for n, want := range map[int]time.Duration{1: longestSlice, 2: 1333333333, 5: 666666666,
		8: 444444444} {
		s := start{sides: make([]*side, n)}
		if got := SliceLimit(n); got != want || !s.fits(got) || n > 1 && s.fits(got+2) {
			t.Errorf("%d targets: %v, want %v", n, got, want)
		}
	}
}
