package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

func TestPlanStarts(t *testing.T) {
	cost := StageCost{StartS: 3, RoundS: 0.2, LeastRounds: 20, MostRounds: 200, MostStarts: 200}
	check := func(pair, control []StartRatio, half float64, cost StageCost, want StagePlan) {
		t.Helper()
		got := PlanStarts(pair, control, half, 0.95, cost)
		if got.Starts != want.Starts || got.Rounds != want.Rounds || got.Reaches != want.Reaches ||
			math.Abs(got.Half-want.Half) > 0.0001 || got.Seconds > want.Seconds {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	steady := startsOf(0.01, 0, 0.01, -0.01, 0) // 100 rounds: 1 %, so a round 10 %
	// Half is t(0.975, 3) = 3.182 times 1 %, by the root of 4 starts: 1.59 %.
	check(steady, nil, 0.016, cost, StagePlan{0, 20, 0.0159, true, 0, 0, 0})
	// 0.8 %: six further starts of 72 rounds take 6 (3 + 0.2 * 72) = 104 s. Their variance is 10 %²
	// by 72, so half is t(0.975, 9) = 2.262 times sqrt(4 + 6 * 100/72) / 10 = 0.79 %.
	check(steady, nil, 0.008, cost, StagePlan{6, 72, 0.0079, true, 104.5, 0, 0})
	// The control's starts scatter by 2.31 %, 2.08 % beyond their rounds. A start of
	// sqrt(3/0.2) 10/2.08 = 19 rounds is best, and 20 are the least.
	apart := startsOf(0.01, 0.02, -0.02, 0.02, -0.02)
	check(steady, apart, 0.01, cost, StagePlan{33, 20, 0.0099, true, 231, 0, 0})
	// With 30 s: four starts of 7 s. sqrt(4 (1 + 4.33) + 4 (5 + 4.33)) / 8 = 0.957 %, by 2.365.
	cost.BudgetS = 30
	check(steady, apart, 0.001, cost, StagePlan{4, 20, 0.0226, false, 30, 0, 0})
	cost.BudgetS = 2 // not even one: 3.182 sqrt(4 (1 + 4.33)) / 4
	check(steady, apart, 0.001, cost, StagePlan{0, 20, 0.0367, false, 0, 0, 0})
	if plan := PlanStarts(startsOf(math.NaN(), 0, 1), nil, 0.1, 0.95, cost); plan.Reaches ||
		!math.IsNaN(plan.Half) || plan.Starts != 0 {
		t.Errorf("without SEs: %+v", plan)
	}
}

// twoStages is a comparison whose first four starts plan the others. Rounds of targets a, a again
// and b have these SDs, starts of each target one of their own. Plan chooses the starts' number.
type twoStages struct {
	a, b, between float64
	half          float64
	ownScatter    bool // plan by the pair's own scatter: the rule that was refused
}

const stageRounds = 100

func (m twoStages) start(r *rand.Rand, rounds int) (pair, control StartRatio) {
	root := math.Sqrt(float64(rounds))
	draw := func(sd float64) float64 {
		return sd/root*r.NormFloat64() + m.between/math.Sqrt2*r.NormFloat64()
	}
	// A jackknife of n rounds knows a variance as n - 1 degrees of freedom do.
	know := func(first, second float64) float64 {
		return math.Hypot(first, second) / root * (1 + r.NormFloat64()/math.Sqrt2/root)
	}
	first := draw(m.a)
	return StartRatio{Rounds: rounds, LogRatio: draw(m.b) - first, SE: know(m.a, m.b)},
		StartRatio{Rounds: rounds, LogRatio: draw(m.a) - first, SE: know(m.a, m.a)}
}

// run reports the number of starts, whether the interval has the truth, and whether it is as narrow
// as planned, a tenth more allowed.
func (m twoStages) run(r *rand.Rand) (starts int, covers, narrow bool) {
	var pair, control []StartRatio
	add := func(count, rounds int) {
		for range count {
			p, c := m.start(r, rounds)
			pair, control = append(pair, p), append(control, c)
		}
	}
	add(LeastStarts, stageRounds)
	cost := StageCost{StartS: 2, RoundS: 0.1, LeastRounds: 50, MostRounds: 200, MostStarts: 200}
	plan := PlanStarts(pair, control, m.half, 0.95, cost)
	if m.ownScatter {
		plan = PlanStarts(pair, pair, m.half, 0.95, cost)
	}
	add(plan.Starts, plan.Rounds)
	c := CompareStarts(pair, control, 0.95)
	width := (math.Log(c.Hi) - math.Log(c.Lo)) / 2
	return c.N, c.Lo <= 1 && 1 <= c.Hi, width <= 1.1*m.half
}

// play reports the mean number of starts, and the shares of comparisons whose interval covers the
// truth and is narrow enough.
func (m twoStages) play(experiments int) (starts, covers, narrow float64) {
	r := rand.New(rand.NewPCG(4, 0))
	part := 1 / float64(experiments)
	for range experiments {
		n, covered, reached := m.run(r)
		starts += float64(n) * part
		if covered {
			covers += part
		}
		if reached {
			narrow += part
		}
	}
	return starts, covers, narrow
}

// checkTwoStages holds the coverage of one row to 94 to 96 %, give or take three standard errors,
// and makes the row of the table. A plan by the pair's own scatter is the oracle's counterexample.
func checkTwoStages(t *testing.T, m twoStages, experiments int) (line string, ownCovers float64) {
	t.Helper()
	three := 3 * math.Sqrt(0.05*0.95/float64(experiments))
	starts, covers, narrow := m.play(experiments)
	if covers < 0.94-three || covers > 0.96+three {
		t.Errorf("%+v: covers in %.4f", m, covers)
	}
	m.ownScatter = true
	_, ownCovers, _ = m.play(experiments)
	return fmt.Sprintf("| %.1f, %.1f %% | %.1f %% | %.1f %% | %.1f | %.0f %% | %.1f %% | %.1f %% |",
		100*m.a, 100*m.b, 100*m.between, 100*m.half, starts, 100*narrow, 100*covers,
		100*ownCovers), ownCovers
}

func TestTwoStagesCoverRoughly(t *testing.T) {
	const experiments = 800
	// One start: 10 % a round, sqrt(2)/10, is 1.4 % within. Four starts: ± 2.3 %.
	checkTwoStages(t, twoStages{a: 0.1, b: 0.1, half: 0.010}, experiments)
	checkTwoStages(t, twoStages{a: 0.1, b: 0.1, between: 0.02, half: 0.015}, experiments)
	_, ownCovers := checkTwoStages(t, twoStages{a: 0.02, b: 0.02, between: 0.02, half: 0.015},
		experiments)
	if ownCovers > 0.945 {
		t.Errorf("a plan by the pair's own scatter covers in %.4f", ownCovers)
	}
}

func TestTwoStagesCover(t *testing.T) {
	testsets.Long(t, "5,000 comparisons a case in two stages",
		testsets.Needs{Files: []string{"docs/slices.md"}})
	lines := []string{"| scatter of a round: a, b | between starts | wanted | starts " +
		"| narrow enough | covers | covers, if planned by the pair itself |",
		"|---|---|---|---|---|---|---|"}
	for _, m := range []twoStages{{a: 0.1, b: 0.1}, {a: 0.1, b: 0.1, between: 0.02},
		{a: 0.02, b: 0.02, between: 0.02}, {a: 0.1, b: 0.3, between: 0.01}} {
		for _, half := range []float64{0.02, 0.01, 0.005} {
			m.half = half
			line, _ := checkTwoStages(t, m, 5000)
			lines = append(lines, line)
		}
	}
	documented(t, "stages", lines)
}
