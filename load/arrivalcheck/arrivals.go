package arrivalcheck

import (
	"math"
	"slices"
	"time"

	"prony.example/record"
)

const (
	// resolutionNs is the shortest gap that is tested. An exponential gap that is known to be
	// longer than r is r plus an exponential gap, and remains so if both of its ends get lags that
	// differ by less than r. So the test ignores lags within the limit for lags, and the
	// microseconds between two consecutive sends, but nothing else: a generator that sends in
	// bunches has the wrong gaps between the bunches.
	resolutionNs = int64(50 * time.Microsecond)

	// blockGaps bounds the gaps of one test. A test of n gaps detects a distribution that is off by
	// about 1/√n, even if the deviation does not matter; with n = 65,536 every real generator
	// fails. A test of 1,000 gaps detects 2 % to 3 %.
	blockGaps = 1000

	gapsMin = 100 // fewer gaps are not tested
	binsMin = 20  // fewer bins are not tested
)

// Arrivals describes when requests left. Poisson arrivals are compared with the exponential
// distribution, others with the gaps between their due moments. If the rate changes over time,
// expected is its integral: the number of arrivals expected up to a moment, from any origin; nil
// means a constant rate. Measured in this integral, gaps are those of a constant rate (time
// rescaling: Brown and others, Neural Computation 14, 2002).
func Arrivals(t Times, poisson bool, expected func(ns int64) float64) record.ArrivalProcess {
	n := len(t.Left)
	p := record.ArrivalProcess{Samples: int64(n)}
	if n <= gapsMin {
		return p
	}
	if expected == nil {
		expected = func(ns int64) float64 { return float64(ns - t.Left[0]) }
	}
	if poisson {
		p.AndersonDarling = exponential(t.Left, expected)
	} else {
		p.GapDeviationNs = deviation(t)
	}
	p.Dispersion1ms = dispersion(t.Left, int64(time.Millisecond), expected)
	p.Dispersion10ms = dispersion(t.Left, int64(10*time.Millisecond), expected)
	p.Dispersion100ms = dispersion(t.Left, int64(100*time.Millisecond), expected)
	return p
}

// deviation returns how far gaps are from the scheduled ones, in ns. It is the 99th percentile,
// because one hiccup of the machine is not a property of the process.
func deviation(t Times) int64 {
	offset := make([]int64, len(t.Left)-1)
	for k := range offset {
		d := (t.Left[k+1] - t.Left[k]) - (t.Due[k+1] - t.Due[k])
		offset[k] = max(d, -d)
	}
	slices.Sort(offset)
	return offset[rank(0.99, len(offset))]
}

// rank returns the index of a quantile among n sorted values: the smallest index such that at least
// the share q of values is at or below it.
func rank(q float64, n int) int { return max(int(math.Ceil(q*float64(n)))-1, 0) }

// exponential returns the median of A² over blocks of gaps. A wrong process is wrong in every
// block, but an incident, such as a preempted thread, affects only one. It returns 0 if too few
// gaps are long enough.
func exponential(remaining []int64, expected func(int64) float64) float64 {
	var gaps []float64
	for k := range len(remaining) - 1 {
		if remaining[k+1]-remaining[k] > resolutionNs {
			gaps = append(gaps, expected(remaining[k+1])-expected(remaining[k]+resolutionNs))
		}
	}
	if len(gaps) < gapsMin {
		return 0
	}
	blocks := max(len(gaps)/blockGaps, 1)
	stats := make([]float64, blocks)
	for b := range stats {
		stats[b] = andersonDarling(gaps[b*len(gaps)/blocks : (b+1)*len(gaps)/blocks])
	}
	slices.Sort(stats)
	return (stats[(blocks-1)/2] + stats[blocks/2]) / 2
}

// andersonDarling returns A² of the gaps against the exponential distribution with their mean,
// times 1 + 0.6/n because the mean is estimated (M. A. Stephens, JASA 69, 1974). By chance it
// exceeds 1.957 in 1 of 100 cases (there; 1.959 in D'Agostino and Stephens, Goodness-of-Fit
// Techniques, 1986). It sorts the gaps.
func andersonDarling(gaps []float64) float64 {
	slices.Sort(gaps)
	n := float64(len(gaps))
	mean := 0.0
	for _, g := range gaps {
		mean += g / n
	}
	if mean <= 0 {
		return 0
	}
	sum := 0.0
	for i, g := range gaps {
		// Gap i has its own weight below and the weight of its mirror image above: F(x) = 1 −
		// exp(−x/m).
		x := max(g/mean, 1e-12)
		sum += (2*float64(i) + 1) * math.Log(-math.Expm1(-x))
		sum -= (2*(n-float64(i)) - 1) * x
	}
	return (-n - sum/n) * (1 + 0.6/n)
}

// dispersion returns the variance-to-mean ratio of the numbers of requests in bins (D. R. Cox and
// P. A. W. Lewis, The Statistical Analysis of Series of Events, 1966): 1 for Poisson, near 0 for
// equal gaps, more for bunches. Each bin is compared with the number expected in it. It returns 0
// if there are too few bins.
func dispersion(remaining []int64, width int64, expected func(int64) float64) float64 {
	origin := remaining[0]
	bins := int((remaining[len(remaining)-1] - origin) / width)
	if bins < binsMin {
		return 0
	}
	end := origin + int64(bins)*width
	counts := make([]float64, bins)
	total := 0.0
	for _, atNs := range remaining[1:] { // the first one is the origin and adds no information
		if atNs < end {
			counts[(atNs-origin)/width]++
			total++
		}
	}
	integer := expected(end) - expected(origin)
	if total == 0 || integer <= 0 {
		return 0
	}
	squares := 0.0
	before := expected(origin)
	for i, n := range counts {
		next := expected(origin + int64(i+1)*width)
		d := n - total*(next-before)/integer
		squares += d * d
		before = next
	}
	return squares / total * float64(bins) / float64(bins-1)
}
