package verdict

import (
	"math"
	"slices"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// sliceRules check the slices of a load. Their findings apply to ratios, which come from slices.
var sliceRules = []Rule{
	{"slice answers",
		"slices have good responses, and every response has the right status and body",
		"one rank per wrong response",
		ifMoved + "; above 0.1 % INVALID",
		"docs/slices.md", sliceAnswers},
	{"idle work",
		"a target uses no processor time while other targets are loaded",
		"for throughput: the target's share of the service's cores; for its processor time: its " +
			"use in slices of other targets, relative to its own slices",
		ifMoved + ", also if the effect is unknown",
		"docs/slices.md", idleWork},
	{"slice generator",
		"each load thread is busy for less than 80 % of slices, not counting polling, and " +
			"throughput in closed slices is below 70 % of the generator's against a no-op server",
		"closed slices: the CPU time of load threads in which the service may have had fewer " +
			"requests than cores, or the processor time that the service left unused if that is " +
			"less; open slices: none",
		ifMoved,
		"docs/slices.md", sliceGenerator},
	{"slice lag",
		"requests of open slices are sent on time",
		"the excess of percentiles over those of requests that were sent on time",
		ifMoved,
		"docs/slices.md", sliceLag},
}

// sliceAnswers compares failed requests with all requests of slices. Failures count also in
// lead-ins, but good responses only in windows, so those of lead-ins are estimated from the length
// of both.
func sliceAnswers(r *record.Record, l *load) *record.Finding {
	s := l.Slices
	if s == nil {
		return nil
	}
	all := int64(float64(s.Requests)/countedShare(r, s)) + s.Failed
	facts := record.Facts{Count: s.Failed, Total: all}
	part := float64(s.Failed) / float64(max(all, 1))
	switch {
	case s.Requests <= 0:
		return ofSlices(invalid(in("none", with(facts, record.Finding{Limit: 1,
			Unit: record.UnitCount, Side: record.Below}))))
	case s.Failed <= 0:
		return nil
	case part > errorsMax:
		return ofSlices(invalid(in("many", with(facts, share(part, errorsMax)))))
	}
	times := ranksOf(&s.ResponseTime)
	return ofSlices(orCause(with(facts, share(part, 0)), sliceMoves(s, part, part,
		func(q float64) float64 { return max(times.below(q, part), times.beyond(q, part)) })))
}

// idleWork bounds the effect of work that a target did in slices of others. It took that time from
// them if they share its cores. The part that the target did for its own requests, such as garbage
// collection, is missing in its own processor time, in proportion to the counted part of its
// slices.
func idleWork(r *record.Record, l *load) *record.Finding {
	s := l.Slices
	if s == nil || s.IdleTimeNs <= 0 {
		return nil
	}
	if s.IdleCPUNs < 0 {
		if r.SideBySide == nil || r.SideBySide.Freeze != record.FreezeOff {
			return nil // the target was stopped
		}
		return ofSlices(suspect(in("unknown", record.Finding{})))
	}
	part := float64(s.IdleCPUNs) / float64(s.IdleTimeNs)
	f := record.Finding{Value: part, Unit: record.UnitShare}
	if b := r.SideBySide; b != nil {
		f.Facts.Subject = b.Freeze
	}
	idleShare := min(part/coresOf(r), 0.9)
	unbooked := 0.0
	if s.CPUNs > 0 {
		unbooked = float64(s.IdleCPUNs) * countedShare(r, s) / float64(s.CPUNs)
	}
	times := ranksOf(&s.ResponseTime)
	return ofSlices(bounded(f, sliceMoves(s, idleShare/(1-idleShare), unbooked,
		func(q float64) float64 { return times.below(q, 2*idleShare) })))
}

// sliceGenerator bounds what a faster generator would have measured in slices, by what load threads
// counted there. The rules generator and ceiling are about the window then, because a machine whose
// speed changes can be slower in a window, or when the generator's limit was measured. Without
// these counts, they are about both.
func sliceGenerator(r *record.Record, l *load) *record.Finding {
	s := l.Slices
	if !generatorCounted(s) {
		return nil
	}
	f := share(float64(s.LoadCPUNs)/float64(s.TimeNs), generatorMax)
	if f.Value <= f.Limit && s.RatePerS <= 0 && l.CeilingPerS > 0 {
		f = in("ceiling", share(s.ThroughputPerS()/l.CeilingPerS, ceilingMax))
	}
	switch {
	case f.Value <= f.Limit:
		return nil
	case s.RatePerS > 0:
		return ofSlices(suspect(f))
	}
	amount := math.Inf(1)
	if used := float64(s.CPUNs) / float64(s.TimeNs) / coresOf(r); used > 0 {
		amount = max(1/used-1, 0)
	}
	if part := float64(s.StarvedNs) / float64(s.TimeNs); part >= 0 && part < 1 {
		amount = min(amount, part/(1-part))
	}
	if math.IsInf(amount, 1) {
		return ofSlices(suspect(f))
	}
	return ofSlices(bounded(f, sliceMoves(s, amount, 0, nil)))
}

// generatorCounted reports whether load threads counted in slices how busy they were.
func generatorCounted(s *record.Sliced) bool {
	return s != nil && s.LoadCPUNs > 0 && s.TimeNs > 0
}

// coresOf returns how many cores the service may use.
func coresOf(r *record.Record) float64 {
	return max(r.Limits.CPUs, float64(len(r.Limits.ServiceCores)), 1)
}

// sliceLag bounds the effect of the generator's lateness on response times of slices. The finding
// names the percentile whose bound exceeds its own interval the most, because that one decides.
func sliceLag(r *record.Record, l *load) *record.Finding {
	s := l.Slices
	if s == nil || s.PunctualTime.Count == 0 {
		return nil
	}
	times, least := ranksOf(&s.ResponseTime), ranksOf(&s.PunctualTime)
	all := stallFree(s.StallFree, sliceMoves(s, 0, 0, func(q float64) float64 {
		return times.above(q, least.at(q))
	}), lateness)
	f, worst := record.Finding{Unit: record.UnitNs}, math.Inf(-1)
	for _, b := range all {
		q, share := metric.Named(b.Metric, "").Quantile, b.Bound(true)
		if excess := share - tolerance(&r.Verdict, l, times, b.Metric); excess > worst {
			ns := times.at(q)
			if x := record.StallFreeOf(s.StallFree, q, stats.UnrecordedStalls); x != nil {
				ns = float64(x.Ns)
			}
			f.Value, f.Facts.Subject, worst = share*ns, b.Metric, excess
		}
	}
	return ofSlices(bounded(f, all))
}

// countedShare returns the share of a slice's time that counts, without the lead-in.
func countedShare(r *record.Record, s *record.Sliced) float64 {
	if r.SideBySide == nil || s.Slices <= 0 || s.TimeNs <= 0 {
		return 1
	}
	lead := r.SideBySide.LeadInNs
	if s.RatePerS > 0 && r.SideBySide.Open != nil {
		lead = r.SideBySide.Open.LeadInNs
	}
	window := float64(s.TimeNs) / float64(s.Slices) // on average: lengths are drawn
	return window / (window + float64(max(lead, 0)))
}

// sliceMoves returns bounds for the numbers that come from slices.
func sliceMoves(s *record.Sliced, throughput, cpu float64, time func(q float64) float64,
) (out []record.Bias) {
	add := func(number string, amount float64) {
		if amount > 0 {
			out = append(out,
				record.Bias{Metric: number, Share: math.Ceil(1e4*min(amount, most)) / 1e4})
		}
	}
	if s.RatePerS <= 0 {
		add(metric.Throughput, throughput)
	} else {
		for _, p := range metric.Percentiles() {
			if s.ResponseTime.Count >= stats.QuantileNeeds(p.Quantile, confidence) {
				add(p.Name, time(p.Quantile))
			}
		}
	}
	add(metric.CPU, cpu)
	return out
}

// ofSlices marks a finding as one on slices.
func ofSlices(f *record.Finding) *record.Finding {
	if f != nil {
		f.Phase = record.PhaseSlices
	}
	return f
}

// LostMost is the largest share of starts that a comparison may lose, because the remaining starts
// may be a biased selection.
const LostMost = 0.2

// levelsLeast is the smallest difference between two ratios that is reported.
const levelsLeast = 0.01

// Pair is one metric of two targets, A and B, over the starts of a run.
type Pair struct {
	Load, Metric, A, B string
	Control            bool    // B is A, measured a second time
	Ratio              float64 // of B to A, from slices
	P                  float64 // P value of "the ratio is 1"
	// Windows is the ratio from windows divided by that from slices, and WindowsP is the P value of
	// "they are the same"; NaN if windows give no result.
	Windows, WindowsP float64
	Rare              stats.RareEvents // of B compared with A
}

// Starts counts the starts of a run. Lost is the number of starts that are excluded because a
// target failed in them, and LostBy is the target that failed in most of them.
type Starts struct {
	Count, Lost int
	LostBy      string
	Repeated    int // of Count, starts that replaced others in which a target failed
	// Steal reports whether the hypervisor took time from all targets equally.
	Steal stats.Balance
}

// ComparisonRules lists the rules that judge all starts of a run together, for the documentation.
func ComparisonRules() []Rule {
	return []Rule{
		{Name: "starts", Meets: "every target was measured in every start; if a target fails " +
			"while slices run, the start is excluded for all targets", Else: "reported; if a " +
			"target, or two together, lack more than one start in five, their ratios are " +
			"INVALID",
			Source: "docs/slices.md"},
		{Name: "control", Meets: "the control (the first target again) does not differ from the " +
			"first target, corrected for the number of metrics", Else: "SUSPECT: all ratios of " +
			"the metric", Source: "Kalibera & Jones, ISMM 2013; docs/slices.md"},
		{Name: "levels", Meets: "the ratio from windows agrees with that from slices, within the " +
			"error of both or 1 %", Else: "SUSPECT: that ratio",
			Source: "docs/slices.md"},
		{Name: "balance", Meets: "the hypervisor takes as much time from slices of one target as " +
			"from those of another, within randomness", Else: "reported; SUSPECT from 0.3 % of a " +
			"core", Source: "Fisher, The Design of Experiments, section 21"},
		{Name: "rare events", Meets: "the typical round agrees with all rounds together, within " +
			"0.5 % and randomness",
			Else: "reported: rare events are part of the result, except those that " +
				"happen less than five times in a start", Source: "docs/slices.md"},
	}
}

// JudgeStarts judges all starts of a run together and returns findings on the comparison rather
// than on one trial. Alpha is the error rate of each rule.
func JudgeStarts(s Starts, pairs []Pair, alpha float64) (out []record.Finding) {
	if f := lostStarts(s); f != nil {
		out = append(out, *f)
	}
	if f := unbalanced(s.Steal); f != nil {
		out = append(out, *f)
	}
	controls, levels := 0, 0
	for _, p := range pairs {
		switch {
		case p.Control:
			controls++
		case !math.IsNaN(p.WindowsP):
			levels++
		}
	}
	for _, p := range pairs {
		var f *record.Finding
		if p.Control {
			f = controlDiffers(p, alpha/float64(controls))
		} else {
			f = levelsDisagree(p, alpha/float64(max(levels, 1)))
		}
		if f != nil {
			f.Load, f.Phase = p.Load, record.PhaseSlices
			f.Facts.Name, f.Facts.Subject = p.B, p.Metric
			out = append(out, *f)
		}
		rare := rareEvents(p)
		known := slices.ContainsFunc(out, func(f record.Finding) bool {
			return f.Rule == rare.Rule && f.Facts.Name == rare.Facts.Name
		})
		if p.Rare.Significant && !known {
			out = append(out, rare)
		}
	}
	return out
}

func lostStarts(s Starts) *record.Finding {
	if s.Lost == 0 {
		return nil
	}
	part := float64(s.Lost) / float64(s.Count)
	f := share(part, LostMost)
	f.Rule, f.Phase = "starts", record.PhaseSlices
	f.Facts = record.Facts{Count: int64(s.Lost), Total: int64(s.Count), Name: s.LostBy,
		Repeated: int64(s.Repeated)}
	if part > LostMost {
		return invalid(f)
	}
	f.Side, f.Limit = "", 0
	return cause(f)
}

func controlDiffers(p Pair, alpha float64) *record.Finding {
	if !(p.P <= alpha) {
		return nil
	}
	return suspect(record.Finding{Rule: "control", Value: math.Abs(p.Ratio - 1),
		Unit: record.UnitShare, Facts: record.Facts{Observed: p.Ratio}})
}

// balanceLeast is the difference of the hypervisor's shares of a core from which a ratio may have
// moved by a relevant part of the resolution.
const balanceLeast = least * record.Resolution

func unbalanced(b stats.Balance) *record.Finding {
	if !b.Unbalanced() {
		return nil
	}
	f := record.Finding{Rule: "balance", Phase: record.PhaseSlices, Unit: record.UnitShare,
		Value: b.Difference}
	if f.Value < balanceLeast {
		return cause(f)
	}
	return suspect(f)
}

// rareEvents reports that rare events make a pair differ, and names the target that loses more by
// them.
func rareEvents(p Pair) record.Finding {
	name, difference, events := p.B, p.Rare.Difference, p.Rare.EventsB
	if p.Rare.EventsA > p.Rare.EventsB {
		name, difference, events = p.A, -p.Rare.Difference, p.Rare.EventsA
	}
	f := record.Finding{Rule: "rare events", Load: p.Load, Phase: record.PhaseSlices,
		Grade: record.Valid, Note: true, Value: math.Abs(p.Rare.Difference),
		Unit: record.UnitShare, Facts: record.Facts{Name: name, Subject: p.Metric,
			Observed: math.Exp(difference), Expected: events}}
	if p.Rare.Few {
		f.Case = "few"
	}
	return f
}

func levelsDisagree(p Pair, alpha float64) *record.Finding {
	difference := math.Abs(p.Windows - 1)
	if !(p.WindowsP <= alpha) || !(difference >= levelsLeast) {
		return nil
	}
	return suspect(record.Finding{Rule: "levels", Value: difference, Unit: record.UnitShare,
		Facts: record.Facts{Observed: p.Ratio * p.Windows, Expected: p.Ratio}})
}

// weighSlices makes findings SUSPECT if their bounds on a number together exceed its uncertainty in
// this trial. The interval of a ratio is a limit only later, when all starts are known.
func weighSlices(v *record.Verdict, l *load) {
	if l.Slices == nil {
		return
	}
	numbers := []string{metric.Throughput, metric.CPU}
	for _, p := range metric.Percentiles() {
		numbers = append(numbers, p.Name)
	}
	times := ranksOf(&l.Slices.ResponseTime)
	for _, number := range numbers {
		limit := tolerance(v, l, times, number)
		weighPhase(v, l.Name, number, limit, func(f record.Finding) bool {
			return f.Phase == record.PhaseSlices
		})
	}
}
