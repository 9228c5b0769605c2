package stats_test

import (
	"fmt"

	"prony.example/stats"
)

// The median of an even number of values is the mean of the two middle ones.
func ExampleMedian() {
	fmt.Println(stats.Median([]float64{3, 1, 2}), stats.Median([]float64{1, 2, 3, 100}))
	// Output: 2 2.5
}

// Two runs on different days have no blocks in common: Welch's interval is wider.
func ExampleUnpairedRatio() {
	before := []float64{1000, 980, 1010, 990}
	after := []float64{1100, 1120, 1080, 1090}
	r := stats.UnpairedRatio(before, after, 0.95)
	fmt.Printf("after/before = %.3f, between %.3f and %.3f\n", r.Center, r.Lo, r.Hi)
	// Output: after/before = 1.103, between 1.076 and 1.131
}

// Only blocks that both targets have are compared.
func ExampleAlign() {
	a := stats.Item{Name: "a", Values: map[int]float64{1: 10, 2: 11, 3: 12}}
	b := stats.Item{Name: "b", Values: map[int]float64{1: 20, 3: 22, 4: 25}}
	fmt.Println(stats.Align(a, b))
	// Output: [10 12] [20 22] [1 3]
}

// All pairs at once, corrected for their number.
func ExampleCompare() {
	items := []stats.Item{
		{Name: "a", Values: map[int]float64{1: 100, 2: 102, 3: 98, 4: 101}},
		{Name: "b", Values: map[int]float64{1: 101, 2: 101, 3: 99, 4: 100}},
		{Name: "c", Values: map[int]float64{1: 150, 2: 153, 3: 147, 4: 151}},
	}
	for _, c := range stats.Compare(items, 0.05) {
		fmt.Printf("%s/%s = %.2f, apart: %v\n", c.B, c.A, c.Ratio.Center, c.Apart)
	}
	// Output:
	// b/a = 1.00, apart: false
	// c/a = 1.50, apart: true
	// c/b = 1.50, apart: true
}

// The smallest P of four tests is multiplied by four, the next by three.
func ExampleHolm() {
	type test struct {
		name string
		p    float64
	}
	tests := []*test{{"cpu", 0.03}, {"p99", 0.01}, {"memory", 0.5}, {"throughput", 0.02}}
	stats.Holm(tests, func(t *test) float64 { return t.p }, func(*test) float64 { return 1 },
		func(t *test, p float64) { t.p = p })
	for _, t := range tests {
		fmt.Printf("%s %.2f\n", t.name, t.p)
	}
	// Output:
	// p99 0.04
	// throughput 0.06
	// cpu 0.06
	// memory 0.50
}

// A gate allows a loss of 5 %.
func ExampleDecide() {
	lost := stats.PairedRatio([]float64{100, 101, 99}, []float64{90, 91, 89}, 0.95)
	fmt.Println(stats.Decide(lost, 0.05).Outcome)
	noisy := stats.PairedRatio([]float64{100, 90, 110}, []float64{98, 95, 100}, 0.95)
	d := stats.Decide(noisy, 0.05)
	fmt.Println(d.Outcome, d.More > 0)
	// Output:
	// fail
	// inconclusive true
}

// The number of requests that a percentile needs for an interval.
func ExampleQuantileNeeds() {
	fmt.Println(stats.QuantileNeeds(0.99, 0.95), stats.QuantileNeeds(0.999, 0.95))
	// Output: 381 3838
}

// The ranks between which the true 99th percentile of 10,000 independent requests lies.
func ExampleQuantileRanks() {
	fmt.Println(stats.QuantileRanks(10_000, 1, 0.99, 0.95))
	// Output: 9880 9920 true
}

// A service that is warm from the fifth interval on.
func ExampleSteadyState() {
	rates := []float64{20, 40, 60, 80}
	for range 40 {
		rates = append(rates, 100, 101, 99)
	}
	s := stats.SteadyState(rates, stats.SteadyRule{Tail: 20, Same: 0.05})
	fmt.Println(s.Kind, s.At)
	// Output: warmed up 4
}

// Source of the noise: here trials differ from each other, and hardly within themselves.
func ExampleComponents() {
	trial := func(level float64) (out []float64) {
		for i := range 40 {
			out = append(out, level+float64(i%2))
		}
		return out
	}
	v := stats.Components([][]float64{trial(100), trial(110), trial(95), trial(105)})
	fmt.Printf("%.0f %% of the variance is between trials\n", 100*v.Share)
	// Output: 100 % of the variance is between trials
}

// Blocks uses all targets to estimate block effects and noise.
func ExampleNewBlocks() {
	items := []stats.Item{
		{Name: "a", Values: map[int]float64{1: 100, 2: 50, 3: 101}},
		{Name: "b", Values: map[int]float64{1: 110, 2: 55, 3: 111}},
		{Name: "c", Values: map[int]float64{1: 90, 2: 45.1, 3: 90}},
	}
	b := stats.NewBlocks(items, 0.95)
	r := b.Ratio(items[0], items[1])
	fmt.Printf("b/a = %.2f, between %.2f and %.2f\n", r.Center, r.Lo, r.Hi)
	// Output: b/a = 1.10, between 1.09 and 1.11
}

// A run with early decisions: decided pairs need no more blocks.
func ExampleSequence() {
	s := stats.Sequence{Early: 0.01, Late: 0.04, Same: 0.01}
	items := []stats.Item{
		{Name: "a", Values: map[int]float64{1: 100, 2: 101, 3: 99, 4: 100, 5: 101}},
		{Name: "b", Values: map[int]float64{1: 200, 2: 202, 3: 199, 4: 201, 5: 200}},
	}
	s.Look(items, 0.5)
	fmt.Println(s.Decided("a", "b"), s.Open([]string{"a", "b"}))
	// Output: apart []
}
