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

// arrivals returns the arrival times from the start of a load to the end of its window, in ns.
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

// before returns the number of arrivals before the window.
func before(due []int64, fromNs int64) int {
	index, _ := slices.BinarySearch(due, fromNs)
	return index
}

// lindley returns the response time of each arrival at a single server, first come, first served:
// an arrival's wait is the previous wait plus the previous service minus the interval, and at least
// 0 (D. V. Lindley, Math. Proc. Cambridge 48(2), 1952).
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

// planned returns the planned responses to the window's arrivals, if each request arrives when it
// is due. A missing response takes as long as the timeout.
func planned(c *Case, m *measured) *answers {
	kind, ok := truth.Find(c.Kind)
	if !ok {
		panic("selftest: a case names a truth server that does not exist: " + c.Kind)
	}
	plan, err := kind.Plan(c.Params)
	if err != nil {
		panic("selftest: the server of a case is faulty: " + err.Error())
	}
	from := m.FromNs - int64(c.Spec.Lead)
	var due, response []int64
	for i, atNs := range arrivals(&c.Spec) {
		n := int64(i + 1)
		end := plan(from+atNs, truth.Request{N: n, OnConn: n}).At
		if end == truth.Never {
			end = from + atNs + int64(c.Spec.Timeout)
		}
		if atNs >= int64(c.Spec.Lead) {
			due, response = append(due, from+atNs), append(response, end-from-atNs)
		}
	}
	waitNs, quietNs := m.machine.bothNs()
	return newAnswers(m, due, response, waitNs, quietNs, float64(m.machine.ServerLateNs))
}

// served returns the window's responses of a queue, by Lindley's recursion over the real times at
// which requests arrived and the real service times. Only the response's way back is not included.
func served(c *Case, m *measured) *answers {
	due := arrivals(&c.Spec)
	times := m.server.Times
	n := min(len(due), len(times))
	arrived := make([]int64, n)
	for i, t := range times[:n] {
		arrived[i] = t.CameNs
	}
	sojourn := lindley(arrived, func(n int64) time.Duration {
		return time.Duration(times[n-1].ServiceNs)
	})
	from := m.FromNs - int64(c.Spec.Lead)
	for i := range sojourn {
		due[i] += from
		sojourn[i] += arrived[i] - due[i]
	}
	first := min(before(due[:n], m.FromNs), n)
	return newAnswers(m, due[first:n], sojourn[first:], m.machine.loadNs(),
		float64(m.machine.LoadWaitNs), 0)
}

// serving returns the server's responses per second in the window, and the share of the window in
// which it served requests.
func serving(m *measured) (perS, busy float64) {
	sum := int64(0)
	to := m.FromNs + m.WindowNs
	for _, t := range m.server.Times {
		if t.LeftNs > m.FromNs && t.LeftNs <= to {
			perS++
			sum += min(t.ServiceNs, t.LeftNs-m.FromNs)
		}
	}
	windowNs := float64(max(m.WindowNs, 1))
	return perS / windowNs * 1e9, float64(sum) / windowNs
}

// distribution records times as a generator does, so that ranks and rounding are equal.
func distribution(ns []int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 1<<40, 3)
	for _, x := range ns {
		_ = h.RecordValue(max(x, 1)) // fails only above 18 minutes
	}
	return h
}

// countAbove counts the times in a distribution that are longer than d; -1 without a histogram.
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

// refusals returns the indices of arrivals that find n requests in service, each for serviceNs.
func refusals(due []int64, n int, serviceNs int64) (refused []int) {
	var ends []int64
	for i, atNs := range due {
		ends = slices.DeleteFunc(ends, func(end int64) bool { return end <= atNs })
		if len(ends) == n {
			refused = append(refused, i)
			continue
		}
		ends = append(ends, atNs+serviceNs)
	}
	return refused
}

// goodMean returns the mean response time of requests that were not refused, by the server's times,
// since each was due.
func goodMean(c *Case, m *measured, refused []int) float64 {
	sum, n := 0.0, 0
	from := m.FromNs - int64(c.Spec.Lead)
	due := arrivals(&c.Spec)
	for i, t := range m.server.Times[:min(len(m.server.Times), len(due))] {
		if t.LeftNs != 0 && !slices.Contains(refused, i) {
			sum += float64(t.LeftNs - from - due[i])
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// erlangB returns the share of Poisson arrivals that find n servers busy with an offered load a, by
// recursion in n (A. K. Erlang 1917).
func erlangB(n int, a float64) float64 {
	b := 1.0
	for k := 1; k <= n; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// medians returns the medians of each interval of a series for a linearly falling service time, 0
// for intervals with fewer than ten responses.
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
