package trial

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"prony.example/record"
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
	for _, row := range []struct {
		slice time.Duration
		fits  bool
	}{
		{100 * time.Millisecond, true}, {573 * time.Millisecond, true},
		{666 * time.Millisecond, true}, {667 * time.Millisecond, false},
	} {
		if got := row.slice <= SliceLimit(5); got != row.fits {
			t.Errorf("slices of %v fit: %v", row.slice, got)
		}
	}
}

// SliceLimit is the longest slice with which rounds have several orders.
func TestSliceLimit(t *testing.T) {
	for n, want := range map[int]time.Duration{1: longestSlice, 2: 1333333333, 5: 666666666,
		8: 444444444} {
		if got := SliceLimit(n); got != want || between(got) <= n ||
			n > 1 && between(got+2) > n {
			t.Errorf("%d targets: %v, want %v", n, got, want)
		}
	}
}

// Windows have fewer turns if a round would stop a target for too long, or if rounds would take
// longer than planned.
func TestClosedLengths(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		targets            int
		planned            time.Duration
		turn, lead, window time.Duration
		fits               bool
	}{
		{5, 5000 * ms, 1 * ms, 20 * ms, 40 * ms, true},
		{5, 5000 * ms, 20 * ms, 100 * ms, 200 * ms, true},
		{5, 5000 * ms, 32 * ms, 160 * ms, 320 * ms, true},
		{5, 5000 * ms, 36 * ms, 180 * ms, 288 * ms, true},
		{5, 5000 * ms, 41 * ms, 205 * ms, 287 * ms, true},
		{5, 5000 * ms, 60 * ms, 300 * ms, 420 * ms, false},
		{2, 9800 * ms, 60 * ms, 300 * ms, 600 * ms, true},
		{2, 9800 * ms, 80 * ms, 400 * ms, 560 * ms, true},
		{5, 2000 * ms, 13 * ms, 65 * ms, 130 * ms, true},
		{5, 2000 * ms, 17 * ms, 85 * ms, 119 * ms, true},
		{5, 2000 * ms, 20 * ms, 100 * ms, 140 * ms, true},
	} {
		limit := SliceLimit(row.targets)
		lead, window := closedLengths(row.turn, min(limit, row.planned/leastRounds))
		x := record.SideBySide{LeadInNs: int64(lead), WindowNs: int64(window), TurnNs: int64(row.turn)}
		if lead != row.lead || window != row.window ||
			(time.Duration(x.MeanNs()) <= limit) != row.fits {
			t.Errorf("%+v: lead-in %v, window %v", row, lead, window)
		}
	}
}
