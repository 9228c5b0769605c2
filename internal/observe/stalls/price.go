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
	// leastTimes is the smallest number of times of which a tenth can be taken.
	leastTimes = 10
)

// Price estimates the share of a core's time that a clock with this period takes, by measuring for
// a duration. If stalls cannot be recorded, the Way has no name and the error says why; otherwise
// an error says why the price is unknown.
//
// A loop on that core reads the time, and its pauses around ticks show the cost of a tick. Price
// uses the cheapest tenth of groups of ticks, because other code also ran in others. It does not
// include cache evictions.
func Price(core int, period, d time.Duration) (Way, float64, error) {
	w, err := open([]int{core}, period, func(int, int) bool { return true }, openClocks)
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
		return 0, fmt.Errorf("measure the cost of the stall recorder: %w", err)
	}
	w.drain()
	ticks, rate := merge(c.ticks, c.ran), 1/float64(w.way.PeriodNs)
	if w.busyNs > 0 {
		rate += 1 / float64(w.busyNs)
	}
	costs := tickCosts(ticks, pauses, w.way.PeriodNs)
	if len(costs) < leastTimes {
		return 0, fmt.Errorf("measure the cost of the stall recorder: the core was busy at too "+
			"few of %d ticks",
			len(ticks))
	}
	return float64(costs[len(costs)/10]) * rate, nil
}

// merge returns the ticks of two clocks in order.
func merge(a, b []tick) []tick {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b tick) int { return cmp.Compare(a.ns, b.ns) })
	return all
}

// spin reads the time for a duration and returns the pauses, up to the slice's capacity.
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

// tickCosts returns the cost of a tick in each of some short times, in ns, sorted. A pause counts
// once, with all ticks in it. It ignores times with ticks outside of pauses, or in pauses of half a
// period and more, because other code ran.
func tickCosts(ticks []tick, pauses []pause, period int64) (costs []int64) {
	if len(ticks) == 0 {
		return nil
	}
	const periods = 8 // per group, so that one tick more or less of one clock hardly matters
	end, sum, n, last, clean := ticks[0].ns+periods*period, int64(0), int64(0), -1, true
	for _, t := range ticks {
		if t.ns >= end {
			if clean && n >= periods/2 {
				costs = append(costs, sum/n)
			}
			end, sum, n, clean = t.ns+periods*period, 0, 0, true
		}
		i, list := slices.BinarySearchFunc(pauses, t.ns, func(p pause, ns int64) int {
			return cmp.Compare(p.begin, ns)
		})
		if !list {
			i--
		}
		if i < 0 || t.ns >= pauses[i].end || pauses[i].end-pauses[i].begin >= period/2 {
			clean = false
			continue
		}
		n++
		if i != last {
			sum += pauses[i].end - pauses[i].begin
			last = i
		}
	}
	slices.Sort(costs)
	return costs
}
