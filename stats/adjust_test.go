package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// adjusted returns the log ratio of throughput with the first covariate as a control variate: a
// regression over the rounds of a start predicts the effect of the covariate's difference between
// targets, which is subtracted. It shows why CompareStarts does not do this.
func adjusted(r *Rounds) float64 {
	whole := r.Compare([]int{0}, []int{1}, Throughput).LogRatio
	var sums [2]SliceRow
	for _, round := range r.rounds {
		for target := range sums {
			sums[target] = sums[target].plus(round[target])
		}
	}
	var parts, differences []float64 // of each round: in the log ratio, and in the covariate
	for _, round := range r.rounds {
		part := 0.0
		for target, sign := range []float64{-1, 1} {
			row, sum := round[target], sums[target]
			part += sign * (float64(row.Requests)/float64(sum.Requests) -
				float64(row.TimeNs)/float64(sum.TimeNs))
		}
		parts = append(parts, part)
		differences = append(differences, round[1].Covariates[0]-round[0].Covariates[0])
	}
	center, both, squares := mean(differences), 0.0, 0.0
	for i, d := range differences {
		both += parts[i] * (d - center)
		squares += (d - center) * (d - center)
	}
	if squares == 0 {
		return whole
	}
	return whole - both/squares*center*float64(len(parts))
}

// adjustment simulates starts of two services, of which the second is 5 % slower and has helpers on
// the same core that take a share of the time.
type adjustment struct {
	plain, plainSD, adjusted, adjustedSD float64
	unbalanced                           float64 // share of comparisons of 8 starts
}

// If ticks is set, the covariate has a resolution of 10 ms, as steal in /proc/stat.
func playAdjustment(r *rand.Rand, m machine, helpers float64, ticks bool,
	comparisons int) (out adjustment) {
	const starts = 8
	services := equal(2)
	services[1].request *= 1.05
	d := usual(m)
	d.covariates, d.rounds = true, 40
	var plain, better []float64
	for range comparisons {
		var all []*Rounds
		for range starts {
			start := d.start(r, services)
			for _, round := range start.rounds {
				round[1].Requests = int64(float64(round[1].Requests) * (1 - helpers))
				round[1].Covariates[0] += helpers * (1 - round[1].Covariates[0])
				for target := range round {
					lost := &round[target].Covariates[0]
					if step := 10 / d.window; ticks {
						*lost = step * math.Floor(*lost/step+r.Float64())
					}
				}
			}
			plain = append(plain, start.Compare([]int{0}, []int{1}, Throughput).LogRatio)
			better = append(better, adjusted(start))
			all = append(all, start)
		}
		if CheckBalance(all, 0, 2).Unbalanced() {
			out.unbalanced += 1 / float64(comparisons)
		}
	}
	out.plain, out.plainSD = mean(plain), sd(plain)
	out.adjusted, out.adjustedSD = mean(better), sd(better)
	return out
}

// TestAdjustment shows that adjusting is unbiased as long as the time of other processes is
// independent of the targets, and that the SD of throughput falls to 1/1.4 or 1/2.4. If a target's
// own helpers take 2 % of the core, adjusted throughput hides these 2 %, and on a busy machine the
// test of balance hardly ever detects them. So nothing is adjusted.
func TestAdjustment(t *testing.T) {
	testsets.Long(t, "adjustment by covariates", testsets.Needs{Files: []string{"stats/testdata"}})
	const comparisons = 100
	check := func(name string, helpers float64, ticks bool, bias, gain float64) {
		t.Helper()
		got := playAdjustment(rand.New(rand.NewPCG(5, 5)), machineOf(t, name), helpers, ticks,
			comparisons)
		t.Logf("%s, helpers %.0f %%, ticks %v: %+.2f %% (SD of a start %.2f), adjusted %+.2f %% "+
			"(SD %.2f), unbalanced %.2f", name, 100*helpers, ticks, 100*got.plain, 100*got.plainSD,
			100*got.adjusted, 100*got.adjustedSD, got.unbalanced)
		truth := -math.Log(1.05) + math.Log1p(-helpers)
		four := 4 / math.Sqrt(comparisons*8)
		if math.Abs(got.plain-truth) > four*got.plainSD ||
			math.Abs(got.adjusted-truth-bias) > four*got.adjustedSD+0.002 ||
			math.Abs(got.plainSD/got.adjustedSD/gain-1) > 0.2 || got.unbalanced > 0.2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	check("model", 0, false, 0, 1.4)
	check("quiet", 0, false, 0, 2.0)
	check("builds", 0, false, 0, 2.4)
	check("model", 0, true, 0, 1.3)
	check("quiet", 0, true, 0, 1.3)
	check("builds", 0.02, false, 0.02, 2.4)
}

// TestWindowLength shows that, with a lead-in of 20 ms and the same time for a start, windows of 40
// ms give about the most precise throughput: shorter ones lose time to lead-ins, and the machine
// changes between longer ones.
func TestWindowLength(t *testing.T) {
	testsets.Long(t, "lengths of windows",
		testsets.Needs{Files: []string{"stats/testdata", "docs/" + decisionSlices}})
	const starts, startMs = 300, 9000
	lengths := []float64{20, 40, 80, 160, 320}
	lines := []string{"| machine |", "|---|"}
	for _, window := range lengths {
		lines[0] += fmt.Sprintf(" %.0f ms |", window)
		lines[1] += "---|"
	}
	for _, name := range machines[:3] {
		sds := map[float64]float64{}
		best := math.Inf(1)
		line := "| " + name + " |"
		for _, window := range lengths {
			d := design{machine: machineOf(t, name), rounds: int(startMs / (20 + window)), lead: 20,
				window: window}
			r := rand.New(rand.NewPCG(5, 1))
			var xs, ys []float64
			for range starts {
				s := d.start(r, equal(2))
				xs = append(xs, s.Compare([]int{0}, []int{1}, Throughput).LogRatio)
				ys = append(ys, s.Compare([]int{0}, []int{1}, CPUPerRequest).LogRatio)
			}
			line += fmt.Sprintf(" %.2f / %.2f %% |", 100*sd(xs), 100*sd(ys))
			sds[window] = sd(xs)
			best = min(best, sd(xs))
		}
		lines = append(lines, line)
		if sds[40] > 1.15*best || sds[320] < 1.4*best {
			t.Errorf("%s: %v", name, sds)
		}
	}
	documentedIn(t, decisionSlices, "windows", lines)
}
