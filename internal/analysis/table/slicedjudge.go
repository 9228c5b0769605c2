package table

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/verdict"
	"prony.example/record"
	"prony.example/stats"
)

// judgeStarts fills in what all starts together say of the ratios that come from their slices.
func (sc *Scenario) judgeStarts(o Options) {
	if sc.Starts == nil {
		return
	}
	var pairs []verdict.Pair
	for t, m := range sc.Metrics() {
		if p, ok := sc.judgedPair(t, m, o); ok {
			pairs = append(pairs, p)
		}
	}
	sc.Findings = verdict.JudgeStarts(sc.Starts.facts(), pairs, 1-o.Confidence)
	sc.Starts.Invalid = sc.Starts.Withheld()
	for t, m := range sc.Metrics() {
		switch {
		case m.Source != FromSlices:
		case sc.Starts.Withheld(t.Reference, t.Name):
			m.Ratio = nil
		default:
			m.RatioDoubt = sc.RatioDoubt(sc.Target(t.Reference), t, m, m.Ratio)
		}
	}
}

// facts are what the verdict looks at.
func (s *Starts) facts() verdict.Starts {
	out := verdict.Starts{Count: s.Count, Lost: len(s.Lost), Repeated: s.Repeated}
	names := slices.Sorted(maps.Keys(s.LostBy))
	note := func(names ...string) {
		n, count := s.lacks(names...), len(s.together(names...))
		if n*out.Count <= out.Lost*count && out.LostBy != "" || count == 0 {
			return
		}
		out.Lost, out.Count, out.LostBy = n, count, strings.Join(names, " and ")
	}
	for i, a := range names {
		note(a)
		for _, b := range names[i+1:] { // their ratio lacks the starts of both
			if s.lacks(a, b) > s.lacks(b) {
				note(a, b)
			}
		}
	}
	if len(s.Raw) > 0 && len(s.names) > 1 {
		var rounds []*stats.Rounds
		for _, x := range s.Raw {
			rounds = append(rounds, x.rounds)
		}
		out.Steal = stats.CheckBalance(rounds, 0, len(s.names))
	}
	return out
}

// judgedPair is a metric of a target beside the same of its reference, or of the target that it is
// a control of; false where no ratio of them comes from slices, or nobody asks for it.
func (sc *Scenario) judgedPair(t *Target, m *Metric, o Options) (p verdict.Pair, ok bool) {
	base := sc.Target(cmp.Or(t.Info.ControlRow(), t.Reference))
	if base == nil || base == t || !ShownByDefault(*m, sc.Loads) {
		return p, false
	}
	b, ok := base.Metric(m.Load, m.Name)
	if !ok || !ShareStarts(b.Sliced, m.Sliced) {
		return p, false
	}
	r := sc.SlicedRatio(base, t, m.Load, m.Name, o.Confidence)
	_, starts := sc.startRatios(base, t, m.Load, m.Name)
	p = verdict.Pair{Load: m.Load, Metric: m.Name, A: base.Name, B: t.Name,
		Control: t.Info.ControlOf != "", Ratio: r.Center, P: r.P,
		Windows: math.NaN(), WindowsP: math.NaN(),
		Rare: stats.FindRareEvents(starts, o.Confidence)}
	if m.Model == record.Closed && b.Known() && m.Known() {
		windows := windowsOverSlices(&b, m, o.Confidence)
		p.Windows, p.WindowsP = windows.Center, windows.P
	}
	return p, true
}

// windowsOverSlices is the ratio of b to a from windows over that from slices, paired by start.
// Response times are not held against each other so: their windows have rates of their own.
func windowsOverSlices(a, b *Metric, confidence float64) stats.Ratio {
	var bySlices, byWindows []float64
	windowsA, windowsB := ByBlock(a.Points), ByBlock(b.Points)
	avs, bs, blocks := stats.Align(slicedItem(a), slicedItem(b))
	for i, block := range blocks {
		if x, y := windowsA[block], windowsB[block]; x > 0 && y > 0 {
			bySlices, byWindows = append(bySlices, bs[i]/avs[i]), append(byWindows, y/x)
		}
	}
	return stats.PairedRatio(bySlices, byWindows, confidence)
}

// RatioDoubt weighs what the findings on slices of both sides say against the interval of their
// ratio of a metric: what one target does to others moves its own ratio, and each finding on a side
// counts. A warm-up that was too short moves the ratio by as much as the ratio changed by the end
// of starts, and by the compilers' share: a change of the machine moves only levels. It is nil
// where there is no ratio.
func (sc *Scenario) RatioDoubt(a, b *Target, m *Metric, r *stats.Ratio) *Doubt {
	if r == nil {
		return nil
	}
	var rules, unbounded []string
	byName := map[string]float64{}
	ending, known := sc.ending(a, b, m)
	limit := 0.0
	if r.HasInterval() {
		limit = halfWidth(r.Center, r.Lo, r.Hi)
	}
	sideA, sideB := sc.Instances(a, b), sc.Instances(b, a)
	for i, side := range slices.Concat(sideA, sideB) {
		q, _ := side.Metric(m.Load, m.Name)
		values := len(q.Sliced) * len(sideB)
		if i < len(sideA) {
			values = len(q.Sliced) * len(sideA)
		}
		for _, p := range q.Sliced {
			for _, f := range side.onSlices(p, m.Load) {
				for _, move := range f.PossibleBias {
					if move.Metric == m.Name {
						rules = append(rules, f.Rule)
						bound := move.Bound(q.SlicedFree)
						if f.Rule == warmUp && known {
							bound = verdict.CompilerShare(side.trial(p))
						}
						byName[f.Rule] += bound / float64(values)
					}
				}
				if len(f.PossibleBias) == 0 && f.Grade == record.Suspect {
					unbounded = append(unbounded, f.Rule)
				}
			}
			if high := side.tooHigh(p, &q); high > 0 {
				if i < len(sideA) { // the ratio's denominator
					high = high / (1 - high)
				}
				rules = append(rules, shortStalls)
				byName[shortStalls] += high / float64(values)
			}
		}
	}
	if known && slices.Contains(rules, warmUp) {
		byName[warmUp] += ending
	}
	for _, f := range sc.Findings {
		concerns := f.Facts.Name == a.Name || f.Facts.Name == b.Name || f.Rule == "control"
		concerns = concerns && f.Load == m.Load && f.Facts.Subject == m.Name
		if f.Grade == record.Suspect && (concerns || f.Rule == "balance") {
			unbounded = append(unbounded, f.Rule)
		}
	}
	return weighed(rules, byName, unbounded, limit)
}

// tooHigh bounds the share by which a percentile in the slices of a point's trial is too high
// because of stalls that were too short to be recorded.
func (t *Target) tooHigh(p Point, m *Metric) float64 {
	r := t.trial(p)
	if r == nil || !m.SlicedFree {
		return 0
	}
	if l := loadOf(r, m.Load); l != nil && l.Slices != nil {
		if x := m.stallFreeOf(l.Slices.StallFree); x != nil {
			return x.TooHigh()
		}
	}
	return 0
}

// onSlices returns the findings on the slices of a load in the trial of a point.
func (t *Target) onSlices(p Point, load string) []record.Finding {
	r := t.trial(p)
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Verdict.Findings), func(f record.Finding) bool {
		return !ofSlices(r, load, f)
	})
}

// trial returns the record of a point, or nil.
func (t *Target) trial(p Point) *record.Record { return t.byPoint[trialInBlock{p.Trial, p.Block}] }

// RatioGrade is VALID, SUSPECT or UnknownGrade for a ratio from slices with its doubt.
func RatioGrade(r stats.Ratio, doubt *Doubt) string {
	switch {
	case RatioInterval(r).State != Known:
		return UnknownGrade
	case doubt != nil:
		return record.Suspect
	}
	return record.Valid
}

// RatioGrade is the grade of a ratio from slices; empty for all others, whose levels have a grade.
func (m *Metric) RatioGrade() string {
	if m.Source != FromSlices || m.Ratio == nil {
		return ""
	}
	return RatioGrade(*m.Ratio, m.RatioDoubt)
}

// FindingNotes say what was found of all starts together.
func (sc *Scenario) FindingNotes() (notes []Note) {
	for _, f := range sc.Findings {
		notes = append(notes, NoteOf(NoteOnStarts, OnStarts(f)))
	}
	return notes
}
