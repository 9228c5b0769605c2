package stalls

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"prony.example/internal/base/clock"
)

// pause is time in which a loop that reads the clock did not run.
type pause struct{ begin, end int64 }

const (
	// shortPause separates pauses from turns of the loop, which take some ten nanoseconds.
	shortPause = int64(500)
	// leastTicks are enough for a tenth of them.
	leastTicks = 20
)

// Price estimates how much of a core's time a clock with this period takes, by measuring for some
// time. If stalls cannot be recorded, the Way has no name and the error says why; otherwise an
// error says why the price is unknown.
//
// A loop on that core reads the time, and the shortest tenth of its pauses around ticks shows what
// a tick costs: in longer ones something else ran as well, and pauses of half a period and more do
// not count at all. What a tick evicts from caches is not in the price.
func Price(core int, period, d time.Duration) (Way, float64, error) {
	w, err := open([]int{core}, period, func(int, int) bool { return true }, openClock)
	if err != nil {
		return Way{}, 0, err
	}
	share, err := w.price(d)
	if wrong := w.Close(); err == nil {
		err = wrong
	}
	return w.way, share, err
}

func (w *Watch) price(d time.Duration) (float64, error) {
	pauses := make([]pause, 0, 1<<16)
	var wrong error
	c := w.cores[0]
	err := onCore(c.core, func() {
		wrong = w.Begin()
		pauses = spin(pauses, d)
	})
	if err = cmp.Or(err, wrong, w.End()); err != nil {
		return 0, fmt.Errorf("measure the price of a clock: %w", err)
	}
	w.drain()
	costs := tickCosts(c.ticks, pauses, w.way.PeriodNs/2)
	if len(costs) < leastTicks {
		return 0, fmt.Errorf("measure the price of a clock: the core ran at %d of %d ticks",
			len(costs), len(c.ticks))
	}
	return float64(costs[len(costs)/10]) / float64(w.way.PeriodNs), nil
}

// spin reads the time for a while and returns the pauses, as many as there is room for.
func spin(pauses []pause, d time.Duration) []pause {
	last := clock.Mono()
	for over := last + int64(d); last < over; {
		now := clock.Mono()
		if now-last >= shortPause && len(pauses) < cap(pauses) {
			pauses = append(pauses, pause{last, now})
		}
		last = now
	}
	return pauses
}

// tickCosts returns how long the pauses were in which ticks came, if they are shorter than a limit,
// the shortest first.
func tickCosts(ticks []tick, pauses []pause, limit int64) (costs []int64) {
	for _, t := range ticks {
		i, list := slices.BinarySearchFunc(pauses, t.ns, func(p pause, ns int64) int {
			return cmp.Compare(p.begin, ns)
		})
		if !list {
			i--
		}
		if i < 0 || t.ns >= pauses[i].end {
			continue
		}
		if cost := pauses[i].end - pauses[i].begin; cost < limit {
			costs = append(costs, cost)
		}
	}
	slices.Sort(costs)
	return costs
}
