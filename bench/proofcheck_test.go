package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/record"
	"prony.example/stats"
)

// made returns a record as a trial leaves it.
func made(block int, arm string, perS float64) *record.Record {
	r := &record.Record{Block: block, Outcome: record.Measured,
		Target:  record.Target{Name: arm},
		Verdict: record.Verdict{Grade: record.Valid}, Loads: []record.Load{{ThroughputPerS: perS}}}
	r.Loads[0].Service.CPUShare = 0.99
	return r
}

// testGates is small, because a test must not take a minute.
const testGates = 10

// proofOf makes blocks in which arm k has the throughput of(k, block), and analyzes them.
func proofOf(blocks int, of func(arm proofArm, block int) float64) comparison {
	known := proofKnown{Seed: 1, Arms: requestCost{BaseNs: 10_000, RoundNs: 1}.arms()}
	var records []*record.Record
	for i := range known.Arms {
		known.Arms[i].Ratio = 1 - known.Arms[i].Loss
		known.Arms[i].Lo, known.Arms[i].Hi = known.Arms[i].Ratio, known.Arms[i].Ratio
	}
	for block := 1; block <= blocks; block++ {
		for _, a := range known.Arms {
			records = append(records, made(block, a.Name, of(a, block)))
		}
	}
	by := newResample(known.Seed)
	by.gates = testGates
	return analyzeComparison(records, known, by)
}

// zigzag is a tenth of a percent up and down, for all arms but the first.
func zigzag(a proofArm, block int) float64 {
	if a.Name == "a" {
		return 1
	}
	return 1 + 0.001*float64(1-2*(block%2))
}

// The machine becomes 1 % slower with each block. Pairs cancel that. Running one server first and
// then the other makes the second seem slower: the halves of 10 blocks differ by 5 %, with an SD of
// 1.6 % within them, so that t = 0.05/(0.016·√(2/5)) = 5.
func TestProofOfADriftingMachine(t *testing.T) {
	c := proofOf(40, func(a proofArm, block int) float64 {
		return 1000 * math.Pow(0.99, float64(block)) * (1 - a.Loss) * zigzag(a, block)
	})
	const same, b2, b5, b10 = 0, 1, 2, 3
	check := func(name string, arm int, slower, faster string) {
		t.Helper()
		i := slices.IndexFunc(c.Rules, func(r ruleResult) bool { return r.Name == name })
		if i < 0 {
			t.Fatalf("no rule %q", name)
		}
		v := c.Rules[i].Says[arm]
		if v.slower.String() != slower || v.faster.String() != faster {
			t.Errorf("%s of %s: %v slower and %v faster, want %s and %s", name,
				c.Arms[arm].Arm.Name, v.slower, v.faster, slower, faster)
		}
	}
	check("Prony: paired t, 5 blocks", same, "0.0 %", "0.0 %")
	check("Prony: paired t, 5 blocks", b2, "100.0 %", "0.0 %")
	check("5 of one, then 5 of the other, t test", same, "100.0 %", "0.0 %")
	check("10 of one, then 10 of the other, t test", same, "100.0 %", "0.0 %")
	// The best of three is always the first: it wins if the zigzag is up.
	check("best of three, the higher wins", same, "50.0 %", "50.0 %")
	check("best of three, by 5 %", b10, "100.0 %", "0.0 %")
	check("one run each, by 5 %", same, "0.0 %", "0.0 %")
	check("one run each, by 5 %", b5, "50.0 %", "0.0 %") // 0.951 and 0.949
	check("one run each, by 10 %", b5, "0.0 %", "0.0 %")
	check("one run each, by 10 %", b10, "50.0 %", "0.0 %")

	if s := c.Same; s.Ratio.N != 40 || s.Runs[0].Neighbours != (share{0, 36}) ||
		s.Runs[3].Neighbours != (share{0, 21}) {
		t.Errorf("the same server twice: %+v", s)
	}
	for _, a := range c.Arms[b2:] { // five blocks of one side have no spread, and decide nothing
		if a.Found[1] != (share{proofDraws, proofDraws}) || a.holds() != "yes" {
			t.Errorf("%s: found %+v, holds the truth: %s", a.Arm.Name, a.Found, a.holds())
		}
	}
	// 0 and 2 % are within 5 %, 10 % is not. 5 % is the margin itself: at most runs of one side
	// only are decided.
	all, none := share{testGates, testGates}, share{0, testGates}
	for i, g := range c.Gates {
		if g.Blocks == proofSizes[0] {
			continue
		}
		want := []share{same: all, b2: all, b5: g.Pass, b10: none}[i/len(proofSizes)]
		if g.Pass != want || g.Pass.n+g.Fail.n+g.Inconclusive.n != testGates ||
			i/len(proofSizes) == b10 && g.Fail != all ||
			i/len(proofSizes) == b5 && g.Inconclusive.n < testGates*7/10 {
			t.Errorf("gate of %s: %+v", g.Arm.Name, g)
		}
	}
}

// With swapped pairs of normal noise, 5 % are alarms: 2,000 runs give 5 ± 1.5 % (three SD).
func TestProofOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	c := proofOf(200, func(a proofArm, _ int) float64 {
		return 1000 * (1 - a.Loss) * math.Exp(0.01*rng.NormFloat64())
	})
	for _, a := range c.Same.Runs {
		if rate := float64(a.Flipped.n) / float64(a.Flipped.of); a.Flipped.of != proofDraws ||
			rate < 0.035 || rate > 0.065 {
			t.Errorf("%d blocks: %v of %d swapped runs are alarms", a.Blocks, a.Flipped,
				a.Flipped.of)
		}
	}
	// A ratio of two trials of 1 % each: 1.4 %, which 200 blocks estimate within 5 % (SD of an SD:
	// 1/√400), so three of those are 0.21 points.
	if sd := c.Same.Ratio.SDLog; math.Abs(sd-0.01*math.Sqrt2) > 0.0021 {
		t.Errorf("SD of the paired ratio is %v", sd)
	}
	if math.Abs(c.Same.SingleSD-0.01) > 0.0015 {
		t.Errorf("SD of a trial is %v", c.Same.SingleSD)
	}
	if a := c.Arms[2]; a.Found[3].n < proofDraws*99/100 || a.Holds[1].n < proofDraws*9/10 {
		t.Errorf("5 %% loss: found %v, held %v", a.Found, a.Holds)
	}
}

// A server that is 5 % slower in every block is detected in each run. After random swaps of the
// sides, only runs in which the coins agree are alarms: all five, 2/32 = 6.2 %; nine of ten,
// 2·11/1024 = 2.1 %; for eight of ten, t is 2.25 and 2.26 is needed.
func TestProofSwapsSides(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var xs, ys []float64
	for range 40 {
		xs = append(xs, 1000*math.Exp(0.0001*rng.NormFloat64()))
		ys = append(ys, 950)
	}
	s := alike(newResample(1), xs, ys)
	for i, most := range []int{proofDraws * 9 / 100, proofDraws * 4 / 100} {
		a := s.Runs[i]
		if a.Neighbours.n != a.Neighbours.of || a.Flipped.n > most || a.Flipped.n < most/4 {
			t.Errorf("%d blocks: alarms in %+v, swapped in %+v", a.Blocks, a.Neighbours, a.Flipped)
		}
	}
}

// Each rule reads the intended values.
func TestProofRules(t *testing.T) {
	check := func(name string, xs, ys []float64, want int) {
		t.Helper()
		for _, r := range rules() {
			if r.name == name {
				if got := r.says(xs, ys); got != want || r.blocks != len(xs) {
					t.Errorf("%s of %v and %v: %+d, want %+d", name, xs, ys, got, want)
				}
				return
			}
		}
		t.Errorf("no rule %q", name)
	}
	check("best of three, the higher wins", []float64{1, 2, 3}, []float64{2.9, 2.8, 2.7}, -1)
	check("best of three, the higher wins", []float64{3, 3, 3}, []float64{1, 3.1, 1}, +1)
	check("best of three, by 5 %", []float64{1, 2, 3}, []float64{2.9, 1, 1}, 0)
	check("best of three, by 5 %", []float64{1, 2, 3}, []float64{2.8, 1, 1}, -1)
	check("one run each, by 5 %", []float64{1}, []float64{1.06}, +1)
	check("one run each, by 10 %", []float64{1}, []float64{1.06}, 0)
}

// An INVALID or failed trial is left out with its pair and no other.
func TestProofLeavesOut(t *testing.T) {
	var records []*record.Record
	for block := 1; block <= 4; block++ {
		for i, name := range []string{"a", "b", "c"} {
			records = append(records, made(block, name, float64(100*block+i)))
		}
	}
	records[1].Verdict.Grade = record.Invalid // b of block 1
	records[5].Outcome, records[5].Loads = record.Failed, nil
	records[10].Verdict.Grade = record.Suspect // b of block 4, which stays
	blocks, unusable := blocksOf(records)
	check := func(x, y string, wantX, wantY []float64) {
		t.Helper()
		xs, ys := pairsOf(blocks, x, y)
		if !slices.Equal(xs, wantX) || !slices.Equal(ys, wantY) {
			t.Errorf("%s and %s are %v and %v, want %v and %v", x, y, xs, ys, wantX, wantY)
		}
	}
	check("a", "b", []float64{200, 300, 400}, []float64{201, 301, 401})
	check("a", "c", []float64{100, 300, 400}, []float64{102, 302, 402})
	if unusable != 2 {
		t.Errorf("%d are unusable, want 2", unusable)
	}
}

// The cost of a request is 10 µs and 1 ns a round: the first arm's takes 40 µs, and to lose 5 % of
// throughput it must take 40/0.95 = 42.105 µs, which are 32,105 rounds.
func TestProofArms(t *testing.T) {
	c := requestCost{BaseNs: 10_000, RoundNs: 1}
	arms := c.arms()
	want := map[string]int64{"a": 30_000, "a-again": 30_000, "b2": 30_816, "b5": 32_105,
		"b10": 34_444}
	for _, a := range arms {
		if a.Rounds != want[a.Name] {
			t.Errorf("%s: %d rounds, want %d", a.Name, a.Rounds, want[a.Name])
		}
	}
	for _, w := range c.warm(6 * time.Second) {
		cold := map[string]int64{"cold-short": 50_000, "cold-long": 50_000, "cool-long": 34_000,
			"fast-short": 16_667, "steady": 30_000, "drifts": 0}[w.Name]
		if w.Server.Cold != cold || w.AtNs != int64(w.Server.For) {
			t.Errorf("%s: %+v, want %d rounds at first", w.Name, w, cold)
		}
	}
}

// A burner's requests take turns, cost more or less until a moment, or ever more.
func TestBurnerRounds(t *testing.T) {
	turns := &burning{burner: burner{Rounds: []int64{7, 9}}, slices: make([][]int64, 2)}
	for i := range 5 * proofSlice {
		want := []int64{7, 9}[i/proofSlice%2]
		if got := turns.rounds(); got != want {
			t.Fatalf("request %d costs %d rounds, want %d", i, got, want)
		}
	}
	// Of five slices the first is left out and the last has not ended.
	if len(turns.slices[0]) != 1 || len(turns.slices[1]) != 2 {
		t.Errorf("slices are %v, want one and two", turns.slices)
	}
	check := func(b burner, want int64) {
		t.Helper()
		x := &burning{burner: b}
		if got := x.rounds(); got != want {
			t.Errorf("%+v costs %d rounds, want %d", b, got, want)
		}
	}
	check(burner{Rounds: []int64{7}, Cold: 5, For: time.Hour}, 5)
	check(burner{Rounds: []int64{7}, Cold: 5, For: 0}, 7)
	check(burner{Rounds: []int64{7}}, 7)
	grown := &burning{burner: burner{Rounds: []int64{1000}, Grow: 1}, n: 2, began: -1e18}
	if got := grown.rounds(); got < 1e12 { // a thousand more each second, for 1e9 seconds
		t.Errorf("after 1e9 s a request costs %d rounds", got)
	}
}

// Two seconds at 1,000/s, then six at 1,500: warmed up at 2 s. The trial's own result is counted
// separately.
func TestProofWarm(t *testing.T) {
	const interval = 125 * time.Millisecond
	known := proofKnown{Warm: []proofWarm{
		{Name: "steady", Kind: stats.Flat}, {Name: "cold", Kind: stats.Warmed, AtNs: 2e9},
	}}
	var records []*record.Record
	for block := 1; block <= 3; block++ {
		for _, w := range known.Warm {
			r := made(block, w.Name, 1500)
			r.Warmup = record.Warmup{IntervalNs: int64(interval), DurationNs: 8e9}
			for i := range 64 {
				rate := 1500 + 10*float64(i*7%5) // a little noise, independent of the step
				if w.Kind == stats.Warmed && i < 16 {
					rate -= 500
				}
				r.Warmup.RatePerS = append(r.Warmup.RatePerS, rate)
			}
			records = append(records, r)
		}
	}
	first := &records[1].Warmup
	first.Kind, first.Steady, first.SteadyAtNs = stats.Warmed, true, 2.25e9
	records[3].Warmup.Kind, records[3].Warmup.SteadyAtNs = stats.Unsteady, 1e9
	records[4].Outcome = record.Failed // a steady one: its block has no level
	got := analyzeWarm(records, known)
	var out bytes.Buffer
	printWarm(&out, "Warm-ups", got)
	for _, want := range []string{
		"| steady | flat at 0.00 s      | 2      | 2 not said",
		"| 2 flat ", "| 0.00 s (0.00 s–0.00 s) ", "| 1.000 (1.000–1.000) ",
		"| cold   | warmed up at 2.00 s | 3      | 1 warmed up, 1 never, 1 not said | " +
			"2.25 s (2.25 s–2.25 s) | 3 warmed up          | 2.00 s (2.00 s–2.00 s) |",
		"| 8.00 s (8.00 s–8.00 s) |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if n := len(got[1].Level); n != 2 {
		t.Errorf("%d levels, want 2: one block has no steady server", n)
	}
}

// A table is Markdown with aligned columns.
func TestPrintTable(t *testing.T) {
	var out bytes.Buffer
	printTable(&out, "T", [][]string{{"a", "µs"}, {"long", "1"}})
	want := "**T**\n\n| a    | µs |\n|------|----|\n| long | 1  |\n\n"
	if out.String() != want {
		t.Errorf("it is\n%s, want\n%s", out.String(), want)
	}
	for _, row := range []struct {
		s    share
		want string
	}{{share{}, "–"}, {share{1, 8}, "12.5 %"}, {share{8, 8}, "100.0 %"}} {
		if fmt.Sprint(row.s) != row.want {
			t.Errorf("%+v is %s, want %s", struct{ n, of int }(row.s), row.s, row.want)
		}
	}
}
