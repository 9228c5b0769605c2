package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/dev/testsets"
)

// scenario is a comparison by slices with a known truth.
type scenario struct {
	machine  string // a model or a recorded trace
	name     string
	targets  int
	services func(design) []service
	effect   float64              // log ratio of the last target to the first one
	long     func(machine) design // nil: usual
}

// slowedBy makes the last of these services slower by a share.
func slowedBy(share float64, count int) scenario {
	return scenario{name: fmt.Sprintf("%.0f %% more work", 100*share), targets: count,
		effect: -math.Log1p(share), services: func(design) []service {
			all := equal(count)
			all[count-1].request *= 1 + share
			return all
		}}
}

// rare adds events to the last of these services that cost 4 % of its time.
func rare(perStart float64, regular bool) scenario {
	how := "random"
	if regular {
		how = "regular"
	}
	return scenario{name: fmt.Sprintf("%s events, %.0f", how, perStart), targets: 2,
		effect: math.Log(0.96), services: func(d design) []service {
			all := equal(2)
			all[1] = d.eventful(all[1], perStart, 0.04, regular)
			return all
		}}
}

func allAlike(count int) scenario {
	return scenario{name: "all alike", targets: count,
		services: func(design) []service { return equal(count) }}
}

// longTurns are equal services with few rounds, for turns of this length in ms.
func longTurns(rounds int, turn float64) scenario {
	all := allAlike(5)
	all.name = fmt.Sprintf("all alike, %d rounds, turns of %.0f ms", rounds, turn)
	all.long = func(m machine) design {
		return design{machine: m, rounds: rounds, lead: 5 * turn, window: 7 * turn, vary: 1}
	}
	return all
}

const (
	fewStarts  = 5
	manyStarts = 12
)

// misses are shares of comparisons whose 95 % interval excluded the truth, for throughput and CPU
// per request.
type misses struct {
	few, many [2]float64 // after this number of starts
	family    [2]float64 // of runs with any false difference among all pairs, after Holm
	tiers     [2]float64 // the same by Tiers, which share variances between targets
}

// measure simulates comparisons.
func (s scenario) measure(m machine, experiments int, seed uint64) misses {
	d := usual(m)
	if s.long != nil {
		d = s.long(m)
	}
	r := rand.New(rand.NewPCG(seed, uint64(s.targets)))
	part := 1 / float64(experiments)
	var out misses
	services := s.services(d)
	for range experiments {
		starts := make([]*Rounds, manyStarts)
		for i := range starts {
			starts[i] = d.start(r, services)
		}
		for q := range 2 {
			quantity := Quantity(q)
			truth := math.Exp(s.effect)
			if quantity == CPUPerRequest {
				truth = 1 / truth
			}
			pair := compareAll(starts, 0, s.targets-1, quantity)
			missed := func(r Ratio) float64 {
				if truth < r.Lo || r.Hi < truth {
					return part
				}
				return 0
			}
			out.few[q] += missed(CompareStarts(pair[:fewStarts], nil, 0.95).Ratio)
			out.many[q] += missed(CompareStarts(pair, nil, 0.95).Ratio)
			if s.effect == 0 && s.targets > 2 {
				holm, tiers := falseAmong(starts[:fewStarts], s.targets, quantity)
				out.family[q] += part * holm
				out.tiers[q] += part * tiers
			}
		}
	}
	return out
}

func compareAll(starts []*Rounds, a, b int, q Quantity) []StartRatio {
	out := make([]StartRatio, len(starts))
	for i, s := range starts {
		out[i] = s.Compare([]int{a}, []int{b}, q)
	}
	return out
}

// falseAmong is 1 if equal targets differ significantly: from the first one after Holm's
// correction, and by Tiers.
func falseAmong(starts []*Rounds, targets int, q Quantity) (holm, tiers float64) {
	items := []Item{{"0", map[int]float64{}}}
	var ps []*float64
	for target := 1; target < targets; target++ {
		pair := compareAll(starts, 0, target, q)
		p := CompareStarts(pair, nil, 0.95).P
		ps = append(ps, &p)
		item := Item{fmt.Sprint(target), map[int]float64{}}
		for i, s := range pair {
			items[0].Values[i], item.Values[i] = 1, math.Exp(s.LogRatio)
		}
		items = append(items, item)
	}
	Holm(ps, func(p *float64) float64 { return *p }, func(*float64) float64 { return 1 },
		func(_ *float64, corrected float64) {
			if corrected < 0.05 {
				holm = 1
			}
		})
	// Each start's speed cancels in Tiers; here it is that of the first target.
	for i := range starts {
		level := starts[i].total(0, q)
		for _, item := range items {
			item.Values[i] *= level
		}
	}
	if len(Tiers(items, 0.05)) > 1 {
		tiers = 1
	}
	return holm, tiers
}

// total returns a target's quantity in a start.
func (r *Rounds) total(target int, q Quantity) float64 {
	var sum SliceRow
	for _, round := range r.rounds {
		sum = sum.plus(round[target])
	}
	top, bottom, _ := q.parts(sum)
	return top / bottom
}

// scenarios returns the scenarios of each machine.
func scenarios() []scenario {
	all := []scenario{allAlike(2), allAlike(3), allAlike(8), slowedBy(0.05, 2)}
	for _, regular := range []bool{true, false} {
		for _, perStart := range []float64{1, 3, 10} {
			all = append(all, rare(perStart, regular))
		}
	}
	return append(all, longTurns(7, 20), longTurns(4, 60))
}

// line formats a row of the table: shares of comparisons as percentages, one per machine.
func (s scenario) line(results []misses) string {
	row := []string{s.name, fmt.Sprint(s.targets)}
	cell := func(share func(misses) string) {
		var each []string
		for _, m := range results {
			each = append(each, share(m))
		}
		row = append(row, strings.Join(each, ", "))
	}
	for q := range 2 {
		cell(func(m misses) string { return fmt.Sprintf("%.1f", 100-100*m.few[q]) })
		cell(func(m misses) string { return fmt.Sprintf("%.1f", 100-100*m.many[q]) })
	}
	if s.effect == 0 && s.targets > 2 {
		cell(func(m misses) string {
			return fmt.Sprintf("%.1f/%.1f", 100*m.family[0], 100*m.family[1])
		})
	} else {
		row = append(row, "")
	}
	return "| " + strings.Join(row, " | ") + " |"
}

var coverageHead = []string{
	"| last target | targets | throughput: 5 starts | 12 starts | CPU per request: 5 starts " +
		"| 12 starts | any false difference |",
	"|---|---|---|---|---|---|---|",
}

// TestCoverage tests the claims of docs/slices.md: 95 % intervals of 5 and 12 starts cover the
// truth in 94 to 96 %, and families of comparisons are wrong in at most 5 %.
func TestCoverage(t *testing.T) {
	testsets.Long(t, "2,000 comparisons a case on models and traces of a machine",
		testsets.Needs{Files: []string{"stats/testdata", "docs/slices.md"}})
	const experiments = 2000
	all := scenarios()
	results := make([][]misses, len(all)) // by scenario, then by machine
	for j := range all {
		results[j] = make([]misses, len(machines))
	}
	var running sync.WaitGroup
	for i, name := range machines {
		m := machineOf(t, name)
		running.Go(func() {
			for j, s := range all {
				results[j][i] = s.measure(m, experiments, uint64(100*i+j+1))
				s.check(t, name, results[j][i], experiments)
			}
		})
	}
	running.Wait()
	lines := slices.Clone(coverageHead)
	for j, s := range all {
		lines = append(lines, s.line(results[j]))
	}
	documented(t, "coverage", lines)
}

// machines by name: a model, and traces in testdata/speed.
var machines = []string{"model", "quiet", "builds", "loops"}

func machineOf(t testing.TB, name string) machine {
	t.Helper()
	if name == "model" {
		return drifting
	}
	return recorded(t, name)
}

// check compares shares with the claims, with a tolerance of three standard errors.
func (s scenario) check(t *testing.T, machine string, m misses, experiments int) {
	t.Helper()
	three := 3 * math.Sqrt(0.05*0.95/float64(experiments))
	within := func(what string, share, atLeast, atMost float64) {
		t.Helper()
		if share < atLeast-three || share > atMost+three {
			t.Errorf("%s, %s, %d targets: %s in %.3f, want %v to %v", machine, s.name, s.targets,
				what, share, atLeast, atMost)
		}
	}
	least := 0.04
	if s.long != nil { // intervals of short starts are too wide on a quiet machine
		least = 0.02
	}
	for q := range 2 {
		within(fmt.Sprintf("quantity %d of few starts misses", q), m.few[q], least, 0.06)
		within(fmt.Sprintf("quantity %d of many starts misses", q), m.many[q], least, 0.06)
		within(fmt.Sprintf("quantity %d has false differences", q), m.family[q], 0, 0.05)
	}
}

// TestCoverageRoughly is TestCoverage with few comparisons of some cases.
func TestCoverageRoughly(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 50
	for i, name := range machines {
		for j, s := range []scenario{allAlike(3), rare(3, false)} {
			m := s.measure(machineOf(t, name), experiments, uint64(10*i+j+1))
			s.check(t, name, m, experiments)
		}
	}
}

// The median of rounds is a counterexample: it excludes most of the cost of events, and so misses
// the truth.
func TestMedianMissesRareEvents(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments, starts = 200, 8
	s := rare(3, false)
	d := usual(drifting)
	services := s.services(d)
	r := rand.New(rand.NewPCG(7, 7))
	var whole, typical float64
	covers := 0
	for range experiments {
		pair := make([]StartRatio, starts)
		for i := range pair {
			pair[i] = d.start(r, services).Compare([]int{0}, []int{1}, CPUPerRequest)
			whole += pair[i].LogRatio / (experiments * starts)
			typical += pair[i].Typical / (experiments * starts)
			pair[i].LogRatio = pair[i].Typical
		}
		c := CompareStarts(pair, nil, 0.95)
		if truth := math.Exp(-s.effect); c.Lo <= truth && truth <= c.Hi {
			covers++
		}
	}
	t.Logf("whole %+.2f %%, median %+.2f %%; the median's intervals cover in %d of %d", 100*whole,
		100*typical, covers, experiments)
	if math.Abs(whole+s.effect) > 0.004 || typical > 0.01 || covers > experiments/20 {
		t.Errorf("whole %.4f, median %.4f, %d cover", whole, typical, covers)
	}
}

// TestCoverageSummary compares the sentence below the table of docs/slices.md with the table.
func TestCoverageSummary(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "slices.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "<!-- simulated coverage -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	var all []float64
	outside := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) < 7 || !strings.Contains(line, ", ") {
			continue
		}
		for _, cell := range cells[2:6] {
			for one := range strings.SplitSeq(cell, ", ") {
				share, err := strconv.ParseFloat(one, 64)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, share)
				if share < 94 || share > 96 {
					outside++
				}
			}
		}
	}
	want := fmt.Sprintf("The mean of all %d coverages of 95 %% intervals is %.1f %%. The lowest "+
		"coverage is %.1f %%, the highest %.1f %%. %d coverages lie outside of 94 to 96 %%",
		len(all), mean(all), slices.Min(all), slices.Max(all), outside)
	if page := strings.Join(strings.Fields(string(data)), " "); !strings.Contains(page, want) {
		t.Errorf("docs/slices.md does not say: %s", want)
	}
}
