package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

func TestStagesByHand(t *testing.T) {
	// The SD of 0, 2, 4, 6 % is 2.582 %. t(0.975, 3) = 3.182: (3.182 * 2.582 / 1.98)² = 17.2.
	first := startsOf(0.01, 0, 0.02, 0.04, 0.06)
	check := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d starts, want %d", what, got, want)
		}
	}
	check("2 %", StagesNeed(first, 0.02, 0.95), 18)
	check("5 %", StagesNeed(first, 0.05, 0.95), 4)
	check("one start", StagesNeed(first[:1], 0.02, 0.95), Unresolvable)
	check("no scatter", StagesNeed(startsOf(0.01, 0, 0, 0, 0), 0.02, 0.95), Unresolvable)
	check("nothing narrow enough", StagesNeed(first, 1e-9, 0.95), Unresolvable)

	// All 18 starts: the mean is 3 %, half the interval 3.182 * 2.582 % / sqrt(18) = 1.936 %.
	all := first
	for i := range 14 {
		all = append(all, startsOf(0.01, 0.03+0.001*float64(i%2*2-1))...)
	}
	r := CompareStages(all, 4, 0.95)
	if math.Abs(math.Log(r.Center)-0.03) > 1e-12 || r.Free != 3 || r.Source != ErrorStarts ||
		math.Abs(math.Log(r.Hi/r.Lo)/2-0.01936) > 0.00001 || r.N != 18 {
		t.Errorf("%+v", r)
	}
	one := CompareStages(first, 4, 0.95)
	if one.Ratio != CompareStarts(first, nil, 0.95).Ratio {
		t.Errorf("one stage: %+v", one)
	}
	if r := CompareStages(all, 1, 0.95); r.HasInterval() || r.Center == 0 {
		t.Errorf("one first start: %+v", r)
	}
}

// TestStagesDetect: a comparison in two stages detects its detectable difference in 80 % of
// simulations, also after further starts.
func TestStagesDetect(t *testing.T) {
	const first, all, experiments = 4, 27, 2000
	check := func(more int) {
		t.Helper()
		of := Ratio{N: all, SDLog: 0.02, Free: first - 1}
		shift, r := math.Log1p(of.DetectsWith(more, 0.05, 0.8)), rand.New(rand.NewPCG(5, 5))
		detected := 0.0
		for range experiments {
			starts := startsOf(0.01, make([]float64, all+more)...)
			for i := range starts {
				starts[i].LogRatio = shift + 0.02*r.NormFloat64()
			}
			if CompareStages(starts, first, 0.95).P < 0.05 {
				detected += 1.0 / experiments
			}
		}
		if math.Abs(detected-0.8) > 3*math.Sqrt(0.16/experiments) {
			t.Errorf("%.2f %% with %d more starts: detected in %.3f", 100*shift, more, detected)
		}
	}
	check(0)
	check(27)
	// Further starts narrow the interval only as the root of their number: half the difference
	// takes four times as many starts.
	of := Ratio{N: all, SDLog: 0.02, Free: first - 1}
	half := math.Expm1(math.Log1p(of.Detects(0.05, 0.8)) / 2)
	if n := of.Resolves(half, 0.05, 0.8); n < 4*all-1 || n > 4*all+1 {
		t.Errorf("half the difference takes %d starts, want %d", n, 4*all)
	}
}

// stages simulates comparisons in two stages. Starts of a pair scatter by ratio times 1 %, those of
// the control by 1 %. All targets share the first one, so the ratios of a start are correlated.
type stages struct {
	targets, first int
	ratio, half    float64
}

const mostStages = 1000

// start returns the log ratios of a start: of the other targets to the first, and of the control.
func (m stages) start(r *rand.Rand) (pairs []StartRatio, control StartRatio) {
	const sd = 0.01
	base := min(m.ratio, 1) * sd / math.Sqrt2
	own, again := math.Sqrt(m.ratio*m.ratio*sd*sd-base*base), math.Sqrt(sd*sd-base*base)
	shared := base * r.NormFloat64()
	for range m.targets - 1 {
		pairs = append(pairs, StartRatio{LogRatio: own*r.NormFloat64() - shared, SE: math.NaN()})
	}
	return pairs, StartRatio{LogRatio: again*r.NormFloat64() - shared, SE: math.NaN()}
}

// played is the result of one run, as means over its pairs.
type played struct{ starts, covers, coversAll, narrow float64 }

// run simulates a run: the pair that needs most starts determines their number.
func (m stages) run(r *rand.Rand) (out played) {
	pairs, control := make([][]StartRatio, m.targets-1), []StartRatio(nil)
	add := func(count int) {
		for range count {
			values, c := m.start(r)
			for i, v := range values {
				pairs[i] = append(pairs[i], v)
			}
			control = append(control, c)
		}
	}
	add(m.first)
	need := m.first
	for _, pair := range pairs {
		need = max(need, min(StagesNeed(pair, m.half, 0.95), mostStages))
	}
	add(need - m.first)
	part := 1 / float64(len(pairs))
	out.starts = float64(need)
	for _, pair := range pairs {
		stages := CompareStages(pair, m.first, 0.95)
		if math.Log(stages.Hi/stages.Lo)/2 <= math.Log1p(m.half)*1.0001 {
			out.narrow += part
		}
		if stages.Lo <= 1 && 1 <= stages.Hi {
			out.covers += part
		}
		if all := CompareStarts(pair, control, 0.95); all.Lo <= 1 && 1 <= all.Hi {
			out.coversAll += part
		}
	}
	return out
}

func (m stages) play(experiments int) (mean played) {
	r := rand.New(rand.NewPCG(54, uint64(m.targets)))
	part := 1 / float64(experiments)
	for range experiments {
		x := m.run(r)
		mean.starts += x.starts * part
		mean.covers += x.covers * part
		mean.coversAll += x.coversAll * part
		mean.narrow += x.narrow * part
	}
	return mean
}

// checkStages compares coverage with 94 to 96 %, with a tolerance of three standard errors.
func checkStages(t *testing.T, m stages, experiments int) played {
	t.Helper()
	x := m.play(experiments)
	three := 3 * math.Sqrt(0.05*0.95/float64(experiments))
	if x.covers < 0.94-three || x.covers > 0.96+three || x.narrow < 0.999 {
		t.Errorf("%+v: covers in %.4f, narrow enough in %.4f", m, x.covers, x.narrow)
	}
	return x
}

func TestStagesCoverRoughly(t *testing.T) {
	for _, targets := range []int{2, 8} {
		for _, ratio := range []float64{0.5, 2} {
			checkStages(t, stages{targets, 4, ratio, 0.02}, 400)
		}
	}
	if x := checkStages(t, stages{2, 4, 1, 0.01}, 2000); x.coversAll > 0.945 {
		t.Errorf("with the variance of all starts, intervals cover in %.4f", x.coversAll)
	}
}

func TestStagesCover(t *testing.T) {
	testsets.Long(t, "5,000 comparisons a case in two stages",
		testsets.Needs{Files: []string{"docs/decisions/0054-two-stages.md"}})
	lines := []string{"| scatter of the pair by that of the control | first starts | wanted, % " +
		"| starts | covers, % | covers by the scatter of all starts, % |",
		"|---|---|---|---|---|---|"}
	for _, ratio := range []float64{0.5, 1, 2} {
		for _, m := range []stages{{0, 4, ratio, 0.01}, {0, 6, ratio, 0.01}, {0, 6, ratio, 0.005}} {
			var starts, covers, coversAll []string
			for _, targets := range []int{2, 3, 8} {
				m.targets = targets
				x := checkStages(t, m, 5000)
				starts = append(starts, fmt.Sprintf("%.1f", x.starts))
				covers = append(covers, fmt.Sprintf("%.1f", 100*x.covers))
				coversAll = append(coversAll, fmt.Sprintf("%.1f", 100*x.coversAll))
			}
			lines = append(lines, fmt.Sprintf("| %.1f | %d | %.1f | %s | %s | %s |", m.ratio,
				m.first, 100*m.half, strings.Join(starts, ", "), strings.Join(covers, ", "),
				strings.Join(coversAll, ", ")))
		}
	}
	documentedIn(t, filepath.Join("decisions", "0054-two-stages.md"), "stages", lines)
}
