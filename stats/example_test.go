package stats_test

import (
	"fmt"

	"prony.example/stats"
)

// A level has an interval and its assumption: none with six trials or more.
func ExampleSummarize() {
	s := stats.Summarize([]float64{101, 99, 100, 102, 98, 103}, 0.95)
	fmt.Printf("%.1f, between %.0f and %.0f at %.3f, assuming %s\n", s.Center, s.Lo, s.Hi,
		s.Confidence, s.Assumption)
	one := stats.Summarize([]float64{100}, 0.95)
	fmt.Println(one.HasInterval(), one.Warning)
	// Output:
	// 100.5, between 98 and 103 at 0.969, assuming nothing
	// false needs n >= 2
}

// Two targets are compared within blocks, so that a slowdown of the machine for a whole block
// cancels: the second block is half as fast for both.
func ExamplePairedRatio() {
	a := []float64{1000, 500, 1000}
	b := []float64{1100, 549, 1101}
	r := stats.PairedRatio(a, b, 0.95)
	fmt.Printf("b/a = %.3f, between %.3f and %.3f\n", r.Center, r.Lo, r.Hi)
	fmt.Println("may it lose 5 %?", stats.Decide(r, 0.05).Outcome)
	// Output:
	// b/a = 1.100, between 1.096 and 1.103
	// may it lose 5 %? pass
}

// Targets that do not differ significantly share a tier.
func ExampleTiers() {
	fast := map[int]float64{1: 201, 2: 199, 3: 202, 4: 200, 5: 198, 6: 203}
	alike := map[int]float64{1: 200, 2: 201, 3: 199, 4: 202, 5: 199, 6: 201}
	slow := map[int]float64{1: 101, 2: 99, 3: 100, 4: 102, 5: 98, 6: 103}
	for i, tier := range stats.Tiers([]stats.Item{{"slow", slow}, {"fast", fast},
		{"alike", alike}}, 0.05) {
		fmt.Println(i+1, tier)
	}
	// Output:
	// 1 [fast alike]
	// 2 [slow]
}

// The point at which a history changes its level.
func ExampleChanges() {
	history := []float64{100, 101, 99, 100, 102, 90, 91, 89, 90, 90}
	for _, c := range stats.Changes(history, 0.05) {
		fmt.Printf("from value %d on: %.1f instead of %.1f\n", c.At, c.After, c.Before)
	}
	// Output: from value 5 on: 90.0 instead of 100.4
}
