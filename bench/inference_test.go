package bench

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"prony.example/stats"
)

// Simulations of machines with known truth test the promises of the statistics, and compare them
// with the rules of other tools. docs/proof.md has the tables; go test ./bench -v -run
// InferenceTables -inference 4000 makes them. The tests run fewer.

const inferenceSeed = 2024

// machine is the noise of trials apart from the target: log-normal, in blocks of two trials.
type machine struct {
	block, trial float64 // SD of the log between blocks, and between trials of one
	drift        float64 // log per trial, all in one direction
	outliers     float64 // share of trials that are slower, by a tenth on average
}

var machines = []machine{
	{block: 0.06, trial: 0.012, drift: -0.001, outliers: 0.02},
	{block: 0.06, trial: 0.03, drift: -0.001, outliers: 0.02},
}

// calm is a machine without drift. It shows the cost of pairing where pairing is not needed.
var calm = machine{trial: 0.012, outliers: 0.02}

// session returns the machine's speed at 2n moments. The rule chooses which target runs when.
func (m machine) session(r *rand.Rand, n int) []float64 {
	speeds := make([]float64, 2*n)
	block := 0.0
	for i := range speeds {
		if i%2 == 0 {
			block = m.block * r.NormFloat64()
		}
		x := block + m.trial*r.NormFloat64() + m.drift*float64(i)
		if r.Float64() < m.outliers {
			x -= 0.1 * r.ExpFloat64()
		}
		speeds[i] = 1000 * math.Exp(x)
	}
	return speeds
}

// shuffled runs both targets in each block, in random order; b is ratio times a.
func shuffled(r *rand.Rand, speeds []float64, ratio float64) (a, b []float64) {
	for i := 0; i < len(speeds); i += 2 {
		first := r.IntN(2)
		a = append(a, speeds[i+first])
		b = append(b, speeds[i+1-first]*ratio)
	}
	return a, b
}

// oneAfterOther runs a n times, then b n times, as a script of two loops does.
func oneAfterOther(speeds []float64, n int, ratio float64) (a, b []float64) {
	a = slices.Clone(speeds[:n])
	for _, x := range speeds[n : 2*n] {
		b = append(b, x*ratio)
	}
	return a, b
}

// simAlarm is a rule that detects a different speed of b, from this many trials of each.
type simAlarm struct {
	name   string
	blocks int
	says   func(r *rand.Rand, speeds []float64, ratio float64) bool
}

func simAlarms() []simAlarm {
	var all []simAlarm
	for _, n := range []int{5, 10, 20} {
		all = append(all, simAlarm{"Prony, paired, P < 0.05", n,
			func(r *rand.Rand, speeds []float64, ratio float64) bool {
				a, b := shuffled(r, speeds, ratio)
				return stats.PairedRatio(a, b, 0.95).P < 0.05
			}})
	}
	for _, n := range []int{5, 10, 20} {
		all = append(all, simAlarm{"unpaired t, one after the other", n,
			func(_ *rand.Rand, speeds []float64, ratio float64) bool {
				a, b := oneAfterOther(speeds, n, ratio)
				return stats.UnpairedRatio(a, b, 0.95).P < 0.05
			}})
	}
	for _, threshold := range []float64{0.05, 0.10} {
		for _, n := range []int{3, 1} {
			name := fmt.Sprintf("best of %d, more than %.0f %%", n, 100*threshold)
			all = append(all, simAlarm{name, n,
				func(_ *rand.Rand, speeds []float64, ratio float64) bool {
					a, b := oneAfterOther(speeds, n, ratio)
					return math.Abs(slices.Max(b)/slices.Max(a)-1) > threshold
				}})
		}
	}
	return all
}

// simShare simulates experiments with one seed and returns the share in which the rule detects a
// difference.
func simShare(experiments int, m machine, n int, yes func(*rand.Rand, []float64) bool) float64 {
	r := rand.New(rand.NewPCG(inferenceSeed, uint64(n)))
	count := 0
	for range experiments {
		if yes(r, m.session(r, n)) {
			count++
		}
	}
	return float64(count) / float64(experiments)
}

func (a simAlarm) simShare(experiments int, m machine, ratio float64) float64 {
	// At least two moments: a single run of each is one block, or half of each of two blocks.
	return simShare(experiments, m, max(a.blocks, 2), func(r *rand.Rand, speeds []float64) bool {
		if a.blocks == 1 {
			speeds = []float64{speeds[0], speeds[2]} // two runs, on two occasions
		}
		return a.says(r, speeds, ratio)
	})
}

func alarmTable(experiments int) string {
	var out strings.Builder
	out.WriteString("\n| rule | trials each | wander | noise " +
		"| nothing | 2 % slower | 5 % slower |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, m := range append(slices.Clone(machines), calm) {
		for _, a := range simAlarms() {
			fmt.Fprintf(&out, "| %s | %d | %.0f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% |\n",
				a.name, a.blocks, 100*m.block, 100*m.trial,
				100*a.simShare(experiments, m, 1),
				100*a.simShare(experiments, m, 0.98), 100*a.simShare(experiments, m, 0.95))
		}
	}
	return out.String()
}

// simGate simulates one experiment of n blocks. It uses only the outcome, because Decide's More
// takes milliseconds. TestOutcome shows that both agree.
func simGate(experiments int, m machine, n int, loss float64, want string) float64 {
	return simShare(experiments, m, n, func(r *rand.Rand, speeds []float64) bool {
		a, b := shuffled(r, speeds, 1-loss)
		return simOutcome(stats.PairedRatio(a, b, 0.95)) == want
	})
}

func simOutcome(r stats.Ratio) string {
	switch {
	case r.Hi < 0.95:
		return stats.Fail
	case r.Lo >= 0.95:
		return stats.Pass
	}
	return stats.Inconclusive
}

func TestOutcome(t *testing.T) {
	seen := map[string]int{}
	r := rand.New(rand.NewPCG(inferenceSeed, 0))
	for i := range 60 {
		a, b := shuffled(r, machines[0].session(r, 5), 1-0.05*float64(i%3))
		ratio := stats.PairedRatio(a, b, 0.95)
		got := stats.Decide(ratio, 0.05).Outcome
		seen[got]++
		if want := simOutcome(ratio); got != want {
			t.Errorf("seed %d: %s, the tables say %s: %+v", inferenceSeed, got, want, ratio)
		}
	}
	if len(seen) != 3 {
		t.Errorf("seed %d: outcomes %v, want all three", inferenceSeed, seen)
	}
}

func gateTable(experiments int) string {
	var out strings.Builder
	out.WriteString("\n| true loss | blocks | noise | pass | fail | inconclusive |\n")
	out.WriteString("|---|---|---|---|---|---|\n")
	for _, m := range machines {
		for _, loss := range []float64{0, 0.02, 0.05, 0.08} {
			for _, n := range []int{5, 10, 20} {
				fmt.Fprintf(&out, "| %.0f %% | %d | %.1f %% |", 100*loss, n, 100*m.trial)
				for _, want := range []string{stats.Pass, stats.Fail, stats.Inconclusive} {
					fmt.Fprintf(&out, " %.1f %% |", 100*simGate(experiments, m, n, loss, want))
				}
				out.WriteString("\n")
			}
		}
	}
	return out.String()
}

var inferenceTables = flag.Int("inference", 0, "experiments a cell for docs/proof.md's tables")

// TestInferenceTables prints the tables of docs/proof.md, in half a minute for 4000 experiments.
func TestInferenceTables(t *testing.T) {
	n := *inferenceTables
	if n == 0 {
		t.Skip("-inference 4000 makes the tables")
	}
	t.Logf("seed %d, %d experiments a cell\n%s", inferenceSeed, n, alarmTable(n))
	t.Logf("likewise\n%s", gateTable(n))
	t.Logf("%d experiments a cell\n%s", n/20, steadyTable(n/20))
}

// TestInference runs few experiments, and tests the promises with four standard errors.
func TestInference(t *testing.T) {
	const experiments = 1000
	four := func(p float64) float64 { return 4 * math.Sqrt(p*(1-p)/experiments) }
	check := func(what string, got, atLeast, atMost float64) {
		t.Helper()
		if got < atLeast-four(atLeast) || got > atMost+four(atMost) {
			t.Errorf("seed %d: %s in %.3f of %d, want %.3f to %.3f", inferenceSeed, what, got,
				experiments, atLeast, atMost)
		}
	}
	for _, m := range machines {
		for _, a := range simAlarms()[:3] {
			check("false alarms", a.simShare(experiments, m, 1), 0.02, 0.05)
		}
		check("a loss of 5 % passes", simGate(experiments, m, 10, 0.05, stats.Pass), 0, 0.03)
		check("a loss of 5 % fails", simGate(experiments, m, 10, 0.05, stats.Fail), 0, 0.03)
		check("nothing fails", simGate(experiments, m, 10, 0, stats.Fail), 0, 0.005)
	}
	twenty := simAlarms()[2]
	check("5 % found in 20 blocks", twenty.simShare(experiments, machines[0], 0.95), 0.9, 1)
	check("5 % found in 20 noisier blocks", twenty.simShare(experiments, machines[1], 0.95), 0.9, 1)
	best := simAlarms()[6]
	check(best.name+" cries wolf", best.simShare(experiments, machines[0], 1), 0.1, 1)
}
