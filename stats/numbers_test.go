package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

var decimal = regexp.MustCompile(`\d+\.\d+(e[+-]\d+)?`)

// rounded prints a value with seven digits of its numbers.
func rounded(v any) string {
	return decimal.ReplaceAllStringFunc(fmt.Sprintf(" %+v", v), func(text string) string {
		x, _ := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(x, 'g', 7, 64)
	})
}

// samples draws n log-normal values.
func samples(r *rand.Rand, n int, center, sd float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = center * math.Exp(sd*r.NormFloat64())
	}
	return xs
}

// blocksOf returns an item with these values, without the block missing.
func blocksOf(name string, xs []float64, missing int) Item {
	item := Item{Name: name, Values: map[int]float64{}}
	for i, x := range xs {
		if i != missing {
			item.Values[i+1] = x
		}
	}
	return item
}

// notes prints named values, a line each.
type notes struct{ strings.Builder }

func (b *notes) note(name string, values ...any) {
	b.WriteString(name)
	for _, v := range values {
		b.WriteString(rounded(v))
	}
	b.WriteString("\n")
}

// TestNumbers checks the digits of what this package computes for fixed data. Simulations check
// what they mean.
func TestNumbers(t *testing.T) {
	var b notes
	for k, n := range []int{2, 3, 5, 8, 13, 20} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		x, y, z := samples(r, n, 100, 0.05), samples(r, n, 104, 0.02), samples(r, n, 150, 0.2)
		b.note("==", n)
		b.ofBlocks(x, y, z, k)
		var series [][]float64
		for _, level := range z {
			series = append(series, samples(r, 40, level, 0.1))
		}
		b.note("Components", Components(series), Components(series[:1]))
		b.ofStarts(r, x, y)
	}
	b.ofRanks()
	r := rand.New(rand.NewPCG(7, 1))
	b.ofSeries(r)
	b.ofStalls(r)
	b.ofRounds(r)
	testsets.Golden(t, *update, "testdata/numbers.txt", b.String())
}

// ofBlocks notes comparisons of three targets; a block of one and the first of another are missing.
func (b *notes) ofBlocks(x, y, z []float64, missing int) {
	b.note("Median", Median(x), Median(z))
	b.note("Summarize", Summarize(x, 0.95), Summarize(z, 0.9))
	for _, ratio := range []Ratio{PairedRatio(x, y, 0.95), PairedRatio(x, z, 0.99),
		UnpairedRatio(x, y, 0.95), UnpairedRatio(y, z, 0.9)} {
		b.note("Ratio", ratio, ratio.Resolves(0.03, 0.05, 0.8), ratio.Detects(0.05, 0.8),
			ratio.DetectsWith(7, 0.05, 0.8), Decide(ratio, 0.05))
	}
	b.note("RatioThrough", RatioThrough(PairedRatio(x, y, 0.95), PairedRatio(x, z, 0.95)))
	items := []Item{blocksOf("x", x, -1), blocksOf("y", y, missing), blocksOf("z", z, 0)}
	blocks, second := NewBlocks(items, 0.95), NewBlocks(items[1:], 0.95)
	for i, item := range items {
		b.note("Level", blocks.Level(item))
		b.note("Blocks", blocks.Ratio(item, items[(i+1)%3]))
		b.note("Unpaired", blocks.Unpaired(item, second, items[1]))
	}
	b.note("Compare", Compare(items, 0.05))
	b.note("Tiers", Tiers(items, 0.05))
	s := Sequence{Early: 0.04, Late: 0.01, Same: 0.1}
	for i := range 3 {
		b.note("Look", s.Look(items, float64(i+1)/3), s.Open([]string{"x", "y", "z"}),
			s.Decided("x", "y"), s.Decided("y", "z"))
	}
}

// ofStarts notes comparisons of two targets by starts, with a control.
func (b *notes) ofStarts(r *rand.Rand, x, y []float64) {
	var pair, control []StartRatio
	for i := range x {
		change := math.Log(y[i] / x[i])
		pair = append(pair, StartRatio{LogRatio: change, SE: 0.02, Typical: change +
			0.01*r.Float64(), EventsA: i % 3, Rounds: 40})
		control = append(control, StartRatio{LogRatio: 0.03 * r.NormFloat64(), SE: 0.02})
	}
	b.note("Starts", CompareStarts(pair, nil, 0.95))
	b.note("Control", CompareStarts(pair, control, 0.95), ControlOfMean(control))
	b.note("Stages", CompareStages(pair, max(2, len(x)/2), 0.95), StagesNeed(pair, 0.01, 0.95))
	b.note("Live", LiveRatio(pair, 0.95), LivePrice(len(x), 0.95), PlanSD(pair, control))
	b.note("RareEvents", FindRareEvents(pair, 0.95))
}

func (b *notes) ofRanks() {
	for _, share := range []float64{0.1, 0.5, 1} {
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			for _, n := range []int64{100, 381, 5000, 100_000} {
				lo, hi, ok := QuantileRanks(n, share, q, 0.95)
				b.note("Ranks", n, share, q, lo, hi, ok)
			}
			b.note("Needs", QuantileNeeds(q, 0.95), QuantileNeeds(q, 0.9))
		}
	}
}

// ofSeries notes the levels of a steady series, of one that warms up, and of one that slows down.
func (b *notes) ofSeries(r *rand.Rand) {
	for _, xs := range [][]float64{samples(r, 60, 100, 0.03),
		append(samples(r, 30, 60, 0.05), samples(r, 60, 100, 0.05)...),
		append(append(samples(r, 20, 120, 0.02), samples(r, 4, 30, 0.1)...),
			samples(r, 60, 100, 0.02)...)} {
		b.note("Steady", SteadyState(xs, SteadyRule{Tail: 12, Same: 0.03}))
		b.note("Changes", Changes(xs, 0.05))
	}
	for bend := 0.01; bend < 0.06; bend += 0.004 { // the latter half is steeper than the whole
		xs := make([]float64, 100)
		for i := range xs {
			xs[i] = 1000 * (1 + bend*float64(i*i)/1e4)
		}
		b.note("Bend", bend, SteadyState(xs, SteadyRule{Tail: 12, Same: 0.03}).Kind)
	}
}

// ofStalls notes values without the stalls of a machine.
func (b *notes) ofStalls(r *rand.Rand) {
	for _, q := range []queue{plainQueue, shortQueue, longQueue} {
		l := play(q, 0.03, 3, 5)
		for _, p := range []float64{0.5, 0.9, 0.99} {
			f := l.load(q).WithoutStalls(p)
			f.relevant = nil
			b.note("StallFree "+q.name, f)
		}
		unseen := UnseenOf(l.stalls, 3e9)
		b.note("Unseen", unseen, unseen.Most(), unseen.Least())
		all := hypervisor(r, 0.03, 1e9)
		closed := q.loop(64, all, all[:len(all)/2], 1e9)
		closed.Service, closed.Load = coarse(r, all), coarse(r, all[:len(all)/2])
		b.note("ClosedLoad", closed.WithoutStalls())
		closed.Saturated = false
		b.note("ClosedLoad", closed.WithoutStalls())
	}
}

// ofRounds notes comparisons of three targets in rounds: one round has an event, and in others a
// window or the processor time is unknown.
func (b *notes) ofRounds(r *rand.Rand) {
	var rows []SliceRow
	for round := range 30 {
		for target := range 3 {
			n := int64(1000 * (1 + 0.1*float64(target) + 0.02*r.NormFloat64()))
			rows = append(rows, SliceRow{Round: round, Target: target, Requests: n, TimeNs: 40 * ms,
				CPUNs: 30 * ms, Covariates: []float64{r.Float64(), float64(target) + r.Float64()}})
		}
	}
	rows[5].Requests, rows[11].TimeNs, rows[20].CPUNs = 100, 0, -1
	rounds := NewRounds(rows)
	for _, q := range []Quantity{Throughput, CPUPerRequest} {
		b.note("Rounds", rounds.Compare([]int{0}, []int{1}, q),
			rounds.Compare([]int{0, 1}, []int{2}, q))
	}
	for covariate := range 2 {
		b.note("Balance", CheckBalance([]*Rounds{rounds}, covariate, 3))
	}
}
