package stats

import (
	"math"
	"slices"
)

// sums are cumulative sums of a series, from which the cost of any stretch follows in a few steps:
// of values, of their squares, and of index times value. Values are relative to their mean, so that
// small differences of large numbers keep their digits.
type sums struct {
	y, yy, ty []float64
	per       []float64 // 1/n: dividing would take half of pelt's time
}

func sum(ys []float64) *sums {
	s, middle := &sums{}, mean(ys)
	n := len(ys) + 1
	s.y, s.yy, s.ty = make([]float64, n), make([]float64, n), make([]float64, n)
	s.per = make([]float64, n+1)
	for i := 1; i <= n; i++ {
		s.per[i] = 1 / float64(i)
	}
	for i, y := range ys {
		y -= middle
		s.y[i+1] = s.y[i] + y
		s.yy[i+1] = s.yy[i] + y*y
		s.ty[i+1] = s.ty[i] + float64(i)*y
	}
	return s
}

// about returns the sum of squared deviations from the stretch's mean.
func (s *sums) about(from, to int) float64 {
	y := s.y[to] - s.y[from]
	return s.yy[to] - s.yy[from] - y*y*s.per[to-from]
}

// slope returns the slope of the least-squares line through the stretch, and the sum of squared
// indices about their mean, n(n^2-1)/12. A single value has slope 0.
func (s *sums) slope(from, to int) (b, tt float64) {
	n := float64(to - from)
	tt = n * (n*n - 1) / 12
	if to-from < 2 {
		return 0, tt
	}
	return s.tilt(from, to) / tt, tt
}

// tilt returns the sum of index times value, both about their means.
func (s *sums) tilt(from, to int) float64 {
	return s.ty[to] - s.ty[from] - float64(from+to-1)/2*(s.y[to]-s.y[from])
}

// aboutLine returns the sum of squared deviations from the stretch's line.
func (s *sums) aboutLine(from, to int) float64 {
	if to-from < 3 {
		return 0
	}
	tilt, n := s.tilt(from, to), to-from
	per := s.per[n-1] * s.per[n] * s.per[n+1] // of n(n^2-1)
	return s.about(from, to) - 12*tilt*tilt*per
}

// segment is pelt for long series. It first places cuts on at most this many places at equal
// distances, and then moves each to the best place between its neighbors. Without cuts, pelt's time
// grows with the square of the places, so a long series would disturb the measurement.
func segment(n, places int, penalty float64, cost func(from, to int) float64) []int {
	step := (n + places - 1) / places
	begins := pelt((n+step-1)/step, penalty, func(from, to int) float64 {
		return cost(from*step, min(n, to*step))
	})
	for i := range begins {
		begins[i] *= step
	}
	for i := 1; i < len(begins); i++ {
		before, cut, after := begins[i-1], begins[i], n
		if i+1 < len(begins) {
			after = begins[i+1]
		}
		least := math.Inf(1)
		for pos := max(before+1, cut-step+1); pos < min(after, cut+step); pos++ {
			if c := cost(before, pos) + cost(pos, after); c < least {
				least, begins[i] = c, pos
			}
		}
	}
	return begins
}

// pelt cuts n values so that the costs of the stretches plus a penalty for each cut are minimal,
// and returns the beginnings of stretches, 0 first. The optimum is exact.
//
// Method: PELT (Killick, Fearnhead & Eckley, "Optimal detection of changepoints with a linear
// computational cost", JASA 107, 2012, pp. 1590-1598), K = 0: for costs that no cut can increase,
// as sums of squares are. It takes the first of equally good cuts, so the result is unique.
func pelt(n int, penalty float64, cost func(from, to int) float64) []int {
	best := make([]float64, n+1) // of the first i values, with one penalty too few
	last := make([]int, n+1)     // beginning of the stretch that ends at i
	best[0] = -penalty
	open := make([]int, 1, n+1) // possible beginnings of the last stretch
	costs := make([]float64, n+1)
	for to := 1; to <= n; to++ {
		least := math.Inf(1)
		for i, from := range open {
			c := best[from] + cost(from, to)
			costs[i] = c
			if c < least {
				least, last[to] = c, from
			}
		}
		best[to] = least + penalty
		retained := 0
		for i, from := range open {
			if costs[i] <= best[to] {
				open[retained] = from
				retained++
			}
		}
		open = append(open[:retained], to)
	}
	var begins []int
	for to := n; to > 0; to = last[to] {
		begins = append(begins, last[to])
	}
	slices.Reverse(begins)
	return begins
}
