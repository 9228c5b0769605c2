package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Of the ranges that sweeps go through.
const (
	connectionsMax = 1 << 20
	ratesMax       = 1e8 // per second; what package pace takes
	rateSteps      = 8
)

// Connections reads numbers of connections: a list, as 50,100,200, or a range that doubles, as
// 1..256. The range's end is always in it.
func Connections(text string) ([]int, error) {
	bounds, isRange, err := span(text, connectionsMax)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, v := range bounds {
		if v != float64(int(v)) {
			return nil, fmt.Errorf("%q: %v is no whole number of connections", text, v)
		}
		out = append(out, int(v))
	}
	if !isRange {
		return out, nil
	}
	from, to := out[0], out[1]
	out = out[:0]
	for n := from; n < to; n *= 2 {
		out = append(out, n)
	}
	return append(out, to), nil
}

// Rates reads rising rates: a list, as 50000,100000, or a range of eight at equal distances,
// as 1000..8000.
func Rates(text string) ([]float64, error) {
	bounds, isRange, err := span(text, ratesMax)
	if err != nil || !isRange {
		return bounds, err
	}
	var out []float64
	for i := range rateSteps {
		out = append(out, bounds[0]+(bounds[1]-bounds[0])*float64(i)/(rateSteps-1))
	}
	return out, nil
}

// span reads the numbers of a list or the two of a range.
func span(text string, most float64) (out []float64, isRange bool, err error) {
	parts := strings.Split(text, ",")
	if from, to, ok := strings.Cut(text, ".."); ok {
		parts, isRange = []string{from, to}, true
	}
	for _, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(v > 0 && v <= most) {
			return nil, false, fmt.Errorf("%q: want a list as 50,100,200 or a range as 1..256, of "+
				"numbers up to %.0f", text, most)
		}
		out = append(out, v)
	}
	if !slices.IsSorted(out) || len(slices.Compact(slices.Clone(out))) < len(out) {
		return nil, false, fmt.Errorf("%q: the numbers must rise", text)
	}
	return out, isRange, nil
}
