package selftest

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/record"
)

// arrivals are the offsets from the start of a load, in ns, up to the end of its window.
func arrivals(s *load.Spec) []int64 {
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		panic("selftest: a case's own schedule is bad: " + err.Error())
	}
	var all []int64
	for atNs := p.Next(); atNs < int64(s.Lead+s.Window); atNs = p.Next() {
		all = append(all, atNs)
	}
	return all
}

// before is how many of the arrivals come before the window.
func before(due []int64, lead time.Duration) int {
	index, _ := slices.BinarySearch(due, int64(lead))
	return index
}

// lindley gives the response time of each arrival at a single server, first come, first served: its
// wait is that of the one before, plus its service, minus the gap, and not negative (D. V. Lindley,
// Math. Proc. Cambridge 48(2), 1952).
func lindley(due []int64, draw func(n int64) time.Duration) []int64 {
	out := make([]int64, len(due))
	var wait, service int64
	for i, atNs := range due {
		if i > 0 {
			wait = max(0, wait+service-(atNs-due[i-1]))
		}
		service = int64(draw(int64(i + 1)))
		out[i] = wait + service
	}
	return out
}

// distribution books times as a generator does, so that ranks and rounding are the same.
func distribution(ns []int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 1<<40, 3)
	for _, x := range ns {
		_ = h.RecordValue(max(x, 1)) // no case takes 18 minutes
	}
	return h
}

// countAbove counts the times in a distribution that are longer than d; -1 when it has none to
// count.
func countAbove(dist *record.Dist, d time.Duration) int64 {
	h, err := dist.Histogram()
	if h == nil || err != nil {
		return -1
	}
	var n int64
	for _, bar := range h.Distribution() {
		if bar.From > int64(d) {
			n += bar.Count
		}
	}
	return n
}

// refusals counts the arrivals that find n requests in service, each for serviceNs.
func refusals(due []int64, n int, serviceNs int64) (refused int) {
	var ends []int64
	for _, atNs := range due {
		ends = slices.DeleteFunc(ends, func(end int64) bool { return end <= atNs })
		if len(ends) == n {
			refused++
			continue
		}
		ends = append(ends, atNs+serviceNs)
	}
	return refused
}

// erlangB is the share of Poisson arrivals that find n servers busy, offered a, by its recursion in
// n (A. K. Erlang 1917).
func erlangB(n int, a float64) float64 {
	b := 1.0
	for k := 1; k <= n; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// medians are those of the answers of each interval of a series, 0 where there are fewer than ten,
// for a service time that falls in a straight line.
func medians(due []int64, p truth.Params, intervalNs, windowNs int64) []int64 {
	if intervalNs <= 0 {
		return nil
	}
	bins := make([][]int64, windowNs/intervalNs)
	for _, atNs := range due {
		t := math.Min(1, float64(atNs-due[0])/float64(p.After))
		service := int64(float64(p.Cold) - t*float64(p.Cold-p.Service))
		if i := (atNs + service) / intervalNs; i < int64(len(bins)) {
			bins[i] = append(bins[i], service)
		}
	}
	out := make([]int64, len(bins))
	for i, ns := range bins {
		if len(ns) >= 10 {
			out[i] = distribution(ns).ValueAtQuantile(50)
		}
	}
	return out
}
