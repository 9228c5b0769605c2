package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"prony.example/stats"
)

// Simulations of runs with known truth compare intervals that use all trials of a run
// (stats.Blocks) with intervals of each target alone: seven targets, some of them noisier, on
// machines whose speed drifts. docs/proof.md has the table.

// mix is the noise of a run's targets, as multiples of the machine's scatter.
type mix struct {
	name  string
	noise []float64
}

var mixes = []mix{
	{"alike", []float64{1, 1, 1, 1, 1, 1, 1}},
	{"one 5 times", []float64{5, 1, 1, 1, 1, 1, 1}},
	{"three 5 times", []float64{5, 5, 5, 1, 1, 1, 1}},
	{"all but one 5 times", []float64{5, 5, 5, 5, 5, 5, 1}},
	{"1 to 5 times", []float64{1, 1.31, 1.71, 2.24, 2.92, 3.82, 5}},
}

// tail is one trial's deviation, in multiples of its scatter.
type tail struct {
	name string
	draw func(*rand.Rand) float64
}

var normal = tail{"normal", (*rand.Rand).NormFloat64}

var heavy = []tail{
	{"t, 3 degrees", func(r *rand.Rand) float64 {
		squares := 0.0
		for range 3 {
			x := r.NormFloat64()
			squares += x * x
		}
		return r.NormFloat64() / math.Sqrt(squares/3)
	}},
	{"1 in 10 5 times wider", func(r *rand.Rand) float64 {
		if r.Float64() < 0.1 {
			return 5 * r.NormFloat64()
		}
		return r.NormFloat64()
	}},
}

// slower is the distribution in docs/proof.md: some trials are slower by a tenth on average.
func (m machine) slower() tail {
	return tail{"outliers", func(r *rand.Rand) float64 {
		x := r.NormFloat64()
		if r.Float64() < m.outliers {
			x -= 0.1 * r.ExpFloat64() / m.trial
		}
		return x
	}}
}

// run draws every target's trials by block; the true level of all is 1.
func (m machine) run(r *rand.Rand, blocks int, noise []float64, x tail) []stats.Item {
	items := make([]stats.Item, len(noise))
	for i := range items {
		items[i] = stats.Item{Name: fmt.Sprint(i), Values: make(map[int]float64, blocks)}
	}
	moment := 0
	for block := range blocks {
		mood := m.block * r.NormFloat64()
		for _, i := range r.Perm(len(noise)) { // in a random order
			drift := m.drift * (float64(moment) - float64(len(noise)*blocks-1)/2)
			items[i].Values[block+1] = math.Exp(mood + drift + m.trial*noise[i]*x.draw(r))
			moment++
		}
	}
	return items
}

// kept is the result of intervals: how often they contained the truth, in all and for the worst
// target, and how wide they were, on average and at most in a run (half, of the logarithm).
type kept struct {
	held, of      []float64 // by target
	width, widest float64   // sums
	most          float64   // of the current run
}

// add adds an interval of a value that is 1 in truth, for its targets.
func (k *kept) add(lo, hi float64, targets ...int) {
	w := math.Log(hi/lo) / 2
	k.width += w
	k.most = max(k.most, w)
	for _, t := range targets {
		k.of[t]++
		if lo <= 1 && 1 <= hi {
			k.held[t]++
		}
	}
}

// end ends a run.
func (k *kept) end() {
	k.widest += k.most
	k.most = 0
}

func (k *kept) share() (all, least float64) {
	held, of := 0.0, 0.0
	least = 1
	for i := range k.of {
		held, of = held+k.held[i], of+k.of[i]
		least = min(least, k.held[i]/k.of[i])
	}
	return held / of, least
}

// played is the result of both methods in many runs: intervals of each target alone, and intervals
// that use all trials.
type played struct {
	level, ratio [2]kept
	apart        float64 // share of runs with a significant difference, although none exists
}

func playBlocks(experiments int, m machine, blocks int, noise []float64, x tail) played {
	r := rand.New(rand.NewPCG(inferenceSeed, uint64(blocks)))
	var out played
	for i := range 2 {
		for _, k := range []*kept{&out.level[i], &out.ratio[i]} {
			k.of, k.held = make([]float64, len(noise)), make([]float64, len(noise))
		}
	}
	for range experiments {
		items := m.run(r, blocks, noise, x)
		design := stats.NewBlocks(items, 0.95)
		base := r.IntN(len(items)) // baseline of all ratios
		for i, item := range items {
			xs, _, _ := stats.Align(item, item)
			alone := stats.Summarize(xs, 0.95)
			out.level[0].add(alone.Lo, alone.Hi, i)
			shared := design.Level(item)
			out.level[1].add(shared.Lo, shared.Hi, i)
			if i == base {
				continue
			}
			a, b, _ := stats.Align(items[base], item)
			paired := stats.PairedRatio(a, b, 0.95)
			out.ratio[0].add(paired.Lo, paired.Hi, base, i)
			moderated := design.Ratio(items[base], item)
			out.ratio[1].add(moderated.Lo, moderated.Hi, base, i)
		}
		for i := range 2 {
			out.level[i].end()
			out.ratio[i].end()
		}
		if slices.ContainsFunc(stats.Compare(items, 0.05), func(c stats.Comparison) bool {
			return c.Apart
		}) {
			out.apart += 1 / float64(experiments)
		}
	}
	return out
}

// wandering is a machine whose blocks differ as much as trials do.
var wandering = machine{trial: 0.03, block: 0.03}

func blocksTable(experiments int) string {
	var out strings.Builder
	out.WriteString("| noise of the targets | blocks " +
		"| level: alone | shared | least | width | widest " +
		"| ratio: alone | shared | least | width | widest | false tiers |\n" +
		strings.Repeat("|---", 13) + "|\n")
	row := func(name string, m machine, blocks int, noise []float64, x tail) {
		p := playBlocks(experiments, m, blocks, noise, x)
		fmt.Fprintf(&out, "| %s, %s | %d |", name, x.name, blocks)
		for _, k := range [][2]kept{p.level, p.ratio} {
			alone, _ := k[0].share()
			shared, least := k[1].share()
			fmt.Fprintf(&out, " %.1f %% | %.1f %% | %.0f %% | %.2f | %.2f |", 100*alone,
				100*shared, 100*least, k[1].width/k[0].width, k[1].widest/k[0].widest)
		}
		fmt.Fprintf(&out, " %.1f %% |\n", 100*p.apart)
	}
	for blocks := 2; blocks <= 6; blocks++ {
		for i, m := range []machine{machines[0], machines[1], calm} {
			name := []string{"1.2 %", "3 %", "1.2 %, calm"}[i]
			row(name, m, blocks, mixes[0].noise, m.slower())
		}
		for _, x := range append([]tail{normal}, heavy...) {
			for _, mx := range mixes {
				row(mx.name, wandering, blocks, mx.noise, x)
			}
		}
	}
	return out.String()
}

// TestBlocksTable prints the table of docs/proof.md.
func TestBlocksTable(t *testing.T) {
	n := *inferenceTables
	if n == 0 {
		t.Skip("-inference 4000 makes the table")
	}
	t.Logf("seed %d, %d experiments a row\n\n%s", inferenceSeed, n, blocksTable(n))
}

// TestBlocks runs few simulations, with the machines of docs/proof.md and the worst of the mixes.
func TestBlocks(t *testing.T) {
	const experiments = 300
	check := func(m machine, blocks int, noise []float64, x tail) {
		t.Helper()
		p := playBlocks(experiments, m, blocks, noise, x)
		level, _ := p.level[1].share()
		ratio, _ := p.ratio[1].share()
		// Intervals of one run share its blocks: three standard errors of as many runs.
		if least := 0.94 - 3*math.Sqrt(0.06*0.94/experiments); level < least || ratio < least {
			t.Errorf("seed %d: %d blocks, %s: levels hold in %.3f, ratios in %.3f", inferenceSeed,
				blocks, x.name, level, ratio)
		}
	}
	for _, m := range machines {
		for _, blocks := range []int{2, 3, 6} {
			check(m, blocks, mixes[0].noise, m.slower())
		}
	}
	check(wandering, 3, mixes[2].noise, normal)
	check(wandering, 3, mixes[4].noise, heavy[1])
}
