package stats

import "math"

// StageCost is what starts and rounds take, and what bounds them.
type StageCost struct {
	StartS  float64 // seconds of a start without its rounds: launch, warm-up, checks
	RoundS  float64 // seconds of a round
	BudgetS float64 // seconds that are left; 0: no bound

	LeastRounds, MostRounds int // in a further start
	MostStarts              int // all starts, those that there are included
}

// StagePlan is how a comparison goes on after its first starts.
type StagePlan struct {
	Starts int // further ones; 0: the interval is narrow enough, or nothing is left of the budget
	Rounds int // of each further start
	// Half is half the expected width of the final interval of the log ratio; NaN: unknown.
	Half    float64
	Reaches bool    // Half is at most the one that was asked for
	Seconds float64 // that the further starts take
	// Within is the SD of a log ratio of one round, and Between that of starts beyond their rounds,
	// as the plan assumes them.
	Within, Between float64
}

// PlanStarts chooses the number of further starts and the rounds of each, so that half the width of
// CompareStarts' interval is at most half (of the log ratio: 0.01 is 1 %) in the least time; if
// that takes more than there is, so that it is as short as it can be in that time. Pair and control
// are the starts of the first stage, at least two. Confidence is that of the final interval.
//
// Rounds and starts trade by their variance components (Kalibera & Jones, "Rigorous benchmarking in
// reasonable time", ISMM 2013, section 7): where nothing is left between starts, few long starts
// are best, else many short ones.
//
// It is a two-stage procedure (Stein, "A two-sample test for a linear hypothesis whose power is
// independent of the variance", Annals of Mathematical Statistics 16, 1945, pp. 243-258) whose
// final interval uses all starts, as an internal pilot does (Wittes & Brittain, "The role of
// internal pilot studies in increasing the efficiency of clinical trials", Statistics in Medicine
// 9, 1990, pp. 65-72). Had the pair's own scatter decided on the number of starts, the final
// interval would cover the truth in 92 % instead of 95 %, because a run ends early where the
// scatter happened to look small (Kieser & Friede, "Re-calculating the sample size in internal
// pilot study designs with control of the type I error rate", Statistics in Medicine 19, 2000, pp.
// 901-911). So the plan uses what rounds predict of the pair, and what the control scatters by
// beyond its own rounds: the coverage stays above 94 % (TestTwoStagesCover). Stein's own interval,
// by the variance of the first stage alone, would be exact, and take more than twice the time after
// four starts.
//
// Without a control the plan takes starts for alike. A pair that differs between starts by more
// than its control does misses the width, never the coverage: PlanStarts must not be called a
// second time with more starts.
func PlanStarts(pair, control []StartRatio, half, confidence float64, cost StageCost) StagePlan {
	mustBeShare("confidence", confidence)
	plan := StagePlan{Half: math.NaN(), Within: math.NaN(), Between: math.NaN()}
	if len(pair) < 2 {
		return plan
	}
	var known float64 // the sum of the variances of the starts that there are
	perRound := 0.0
	for _, s := range pair {
		known += s.SE * s.SE
		perRound += s.SE * s.SE * float64(s.Rounds) / float64(len(pair))
	}
	between := betweenStarts(control)
	known += between * float64(len(pair))
	if notFinite(known) {
		return plan
	}
	plan.Within, plan.Between = math.Sqrt(perRound), math.Sqrt(between)
	first := len(pair)
	quantiles := map[int]float64{} // of t, by the number of starts
	halfWith := func(more, rounds int) float64 {
		n := first + more
		if quantiles[n] == 0 {
			quantiles[n] = student(n - 1).Quantile((1 + confidence) / 2)
		}
		sum := known + float64(more)*(between+perRound/float64(rounds))
		return quantiles[n] * math.Sqrt(sum) / float64(n)
	}
	plan.Half, plan.Rounds = halfWith(0, 1), max(1, cost.LeastRounds)
	plan.Reaches = plan.Half <= half && first >= LeastStarts
	if plan.Reaches {
		return plan
	}
	plan.choose(half, first, halfWith, cost)
	return plan
}

// betweenStarts is the variance of the control's starts beyond what its rounds predict.
func betweenStarts(control []StartRatio) float64 {
	if len(control) < 2 {
		return 0
	}
	within := 0.0
	ds := make([]float64, len(control))
	for i, s := range control {
		ds[i] = s.LogRatio
		within += s.SE * s.SE / float64(len(control))
	}
	return max(0, variance(ds)-within)
}

// choose tries numbers of rounds, each a quarter above the one before.
func (p *StagePlan) choose(half float64, first int, halfWith func(more, rounds int) float64,
	cost StageCost) {
	least, most := max(1, cost.LeastRounds), max(1, cost.LeastRounds, cost.MostRounds)
	best := *p
	for rounds := least; ; rounds = min(most, max(rounds+1, rounds*5/4)) {
		start := cost.StartS + cost.RoundS*float64(rounds)
		for more := max(0, LeastStarts-first); first+more <= cost.MostStarts; more++ {
			seconds := start * float64(more)
			if cost.BudgetS > 0 && seconds > cost.BudgetS {
				break
			}
			next := StagePlan{Starts: more, Rounds: rounds, Half: halfWith(more, rounds),
				Seconds: seconds, Within: p.Within, Between: p.Between}
			next.Reaches = next.Half <= half && first+more >= LeastStarts
			if next.better(best) {
				best = next
			}
			if next.Reaches {
				break
			}
		}
		if rounds >= most {
			break
		}
	}
	*p = best
}

// better prefers a plan that reaches its width in less time, else the shorter interval.
func (p StagePlan) better(second StagePlan) bool {
	switch {
	case p.Reaches != second.Reaches:
		return p.Reaches
	case p.Reaches:
		return p.Seconds < second.Seconds
	}
	return p.Half < second.Half
}
