package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

const (
	power     = 0.8  // with which a difference of Detectable is detected
	sameRates = 0.01 // largest difference of rates that counts as equal
	mostly    = 0.8  // share of the error rate for the primary metric
)

// judge corrects the P values of all rows for their number and sets the outcome of each row. It
// computes a detectable difference once for each number of blocks and degrees of freedom, because
// that takes a tenth of a second, and scales it with the SD.
func (c *Comparison) judge() {
	var tested []*Row
	for _, r := range c.each() {
		if r.HasRatio() {
			tested = append(tested, r)
		}
	}
	c.Tests = len(tested)
	c.deal(tested)
	correct(tested)
	alpha := 1 - c.Confidence
	type known struct {
		n           int
		free, share float64
	}
	sees := map[known]float64{} // detectable differences, in standard deviations
	for _, r := range tested {
		k := known{r.Ratio.N, math.Floor(r.Ratio.Free), r.share}
		if _, ok := sees[k]; !ok {
			const sd = 0.01
			ratio := stats.Ratio{N: k.n, Free: k.free, SDLog: sd}
			sees[k] = math.Log1p(ratio.Detects(alpha*r.share, power)) / sd
		}
		if r.Ratio.SDLog > 0 && !r.live { // without a spread it would be 0, which is implausible
			r.Detectable = math.Expm1(sees[k] * r.Ratio.SDLog)
		}
	}
	for _, r := range c.each() {
		r.speak(alpha)
	}
}

// deal gives each row its share of the error rate: equal shares, or most of it to the rows of the
// first requested metric that exists. Whether it exists does not depend on its values.
func (c *Comparison) deal(rows []*Row) {
	var first []*Row
	for _, name := range c.first {
		for _, r := range rows {
			if r.Load+"/"+r.Metric == name {
				first = append(first, r)
			}
		}
		if len(first) > 0 {
			break
		}
	}
	remaining := len(rows) - len(first)
	for _, r := range rows {
		switch {
		case len(first) == 0 || remaining == 0:
			r.share = 1 / float64(len(rows))
		case slices.Contains(first, r):
			r.requested, r.share = true, mostly/float64(len(first))
		default:
			r.share = (1 - mostly) / float64(remaining)
		}
	}
}

// correct sets PHolm. Percentiles of the same requests depend on each other, which Holm's
// correction permits.
func correct(rows []*Row) {
	stats.Holm(rows, func(r *Row) float64 { return r.Ratio.P },
		func(r *Row) float64 { return r.share }, func(r *Row, p float64) { r.PHolm = p })
}

// withheld reports whether a ratio is missing because a side has no number, or because the numbers
// of both sides are not comparable. Without a ratio there is neither a test nor a verdict.
func (r Row) withheld() bool {
	if r.Ratio == nil && r.unsliced.Is() {
		return true
	}
	if r.Source == table.FromSlices {
		return r.Ratio == nil
	}
	return r.A.Withheld != nil || r.B.Withheld != nil
}

// fewStarts returns a note on a ratio from slices of few starts.
func (r *Row) fewStarts() table.Note {
	if r.Source != table.FromSlices || r.Ratio == nil || r.Control != nil {
		return table.Note{}
	}
	return table.FewStarts(*r.Ratio)
}

func (r *Row) speak(alpha float64) {
	meaning := metric.Named(r.Metric, r.Unit)
	a, b := r.A.Summary.Center, r.B.Summary.Center
	change := b - a
	switch {
	case r.withheld():
		r.Outcome, r.Text = Silent, "no number"
		if r.Grade == record.Invalid {
			r.Text = "INVALID: too many starts were excluded"
		} else if r.unsliced.Is() {
			r.Text = r.unsliced.String()
		}
		return
	case r.Ratio == nil && a == b:
		r.Outcome, r.Text = Equal, "the same"
		return
	case r.Ratio == nil:
	case !r.HasRatio():
		r.Outcome, r.Text = Silent, r.Ratio.Warning
		if few := r.fewStarts(); few.Is() {
			r.Text = few.String()
		}
		return
	case r.PHolm > alpha:
		r.Outcome, r.Text = Indistinguishable, "no significant difference"
		if r.Ratio.Lo > 1 || r.Ratio.Hi < 1 { // differs without the correction
			r.Text = "not significant after correcting for multiple metrics"
		}
		return
	default:
		change = r.Ratio.Center - 1
	}
	if change > 0 == (r.Better == Higher) {
		r.Outcome, r.Text = Better, meaning.Better
	} else {
		r.Outcome, r.Text = Worse, meaning.Worse
	}
}

// checkControl requires a control that is the same program in both runs, because dividing by
// another one would include its own change.
func checkControl(a, b *side, same bool, name string) error {
	if name == "" {
		return nil
	}
	if same {
		return fmt.Errorf("divide by %s: both sides come from one run and are already paired, so "+
			"leave out --control", name)
	}
	for _, s := range []*side{a, b} {
		if _, err := s.row(name); err != nil {
			return err
		}
	}
	if x, y := artifacts(a, name), artifacts(b, name); x != y || x == "" {
		return fmt.Errorf("divide by %s: the control has different artifacts in both runs (%s "+
			"and %s), so results would include its own change; choose another control", name,
			cmp.Or(x, table.UnknownValue), cmp.Or(y, table.UnknownValue))
	}
	return nil
}

// artifacts returns the hashes of a row's artifacts in all scenarios.
func artifacts(s *side, name string) string {
	var hashes []string
	for _, sc := range s.study.Scenarios {
		t := sc.Target(name)
		if t == nil {
			continue
		}
		for _, r := range t.Trials {
			if h := units.Hash(r.Artifact.SHA256); h != "" {
				hashes = table.AddNew(hashes, h)
			}
		}
	}
	slices.Sort(hashes)
	return strings.Join(hashes, "+")
}

// divide replaces a row's ratio by a ratio of ratios: each trial's value over the control's in the
// same block, in B's run to A's. Effects of the machine on both cancel, block by block; the runs
// are then compared as unpaired ones. In logarithms it is a difference in differences.
func (c *Comparison) divide(r *Row, ca, cb *table.Target) {
	number := func(t *table.Target) (table.Metric, bool) {
		if t == nil {
			return table.Metric{}, false
		}
		m, ok := t.Metric(r.Load, r.Metric)
		return m, ok && m.Known()
	}
	ma, okA := number(ca)
	mb, okB := number(cb)
	if !okA || !okB {
		lost := stats.UnpairedRatio(nil, nil, c.Confidence)
		lost.Warning = "the control has no value of this metric"
		r.Ratio = &lost
		return
	}
	control := stats.UnpairedRatio(table.Values(ma.Points), table.Values(mb.Points), c.Confidence)
	avs, bs := over(r.A.Points, ma.Points), over(r.B.Points, mb.Points)
	if table.ShareStarts(r.A.Slices, ma.Sliced) && table.ShareStarts(r.B.Slices, mb.Sliced) {
		r.Source = table.FromSlices
		avs, bs = over(r.A.Slices, ma.Sliced), over(r.B.Slices, mb.Sliced)
	}
	r.valueAt = func(confidence float64) stats.Ratio {
		return stats.UnpairedRatio(avs, bs, confidence)
	}
	ratio := r.valueAt(c.Confidence)
	r.Control, r.Ratio = &control, &ratio
}

// over divides points by those of the control, block by block.
func over(points, control []table.Point) []float64 {
	ofs, controls, _ := align(points, control)
	for i := range ofs {
		ofs[i] /= controls[i]
	}
	return ofs
}

// say adds a warning once.
func (c *Comparison) say(format string, args ...any) {
	c.Warnings = table.AddNew(c.Warnings, fmt.Sprintf(format, args...))
}

// warn adds the warnings for a reader.
func (c *Comparison) warn(a, b *side, pairs []pairing) {
	if !c.Paired && copies(a.Side, b.Side) {
		c.say("Both sides are copies of one run, so this comparison measures nothing.")
	}
	if !c.Paired {
		c.say("These runs are %s apart and not paired: differences include changes of the "+
			"machine between the runs, and intervals do not cover these changes.", between(a, b))
		c.warnControl(a, b)
	}
	var alike []string
	c.warnMissing(a)
	if !c.Paired {
		c.warnMissing(b)
	}
	c.warnStarts(b)
	for _, r := range c.each() {
		if few := r.fewStarts(); few.Is() && r.HasRatio() {
			c.say("%s.", units.Capital(few.String()))
		}
	}
	for _, p := range c.Pairs {
		for _, x := range []Subject{p.A, p.B} {
			for _, why := range x.Excluded {
				c.say("Excluded from some or all results: %s.", why)
			}
		}
		same := p.A.Artifact != "" && p.A.Artifact == p.B.Artifact && p.A.ran == p.B.ran
		if same {
			alike = table.AddNew(alike, p.B.Target)
		}
	}
	if len(alike) > 0 {
		c.say("Both sides of %s are the same artifact, so differences come from noise or the "+
			"machine.",
			strings.Join(alike, ", "))
	}
	for _, p := range pairs {
		c.warnRates(p)
		for _, t := range []*table.Target{p.a, p.b} {
			for _, m := range t.Method {
				c.say("%s %s.", t.Name, m)
			}
		}
	}
}

// mostMissing bounds how many missing trials a sentence names.
const mostMissing = 6

// warnMissing names the planned trials of a run that have no usable record, and the lines that were
// left out.
func (c *Comparison) warnMissing(s *side) {
	ids := table.Distinct(s.Missing, func(p record.Planned) string { return p.Trial })
	if len(ids) > 0 {
		c.say("%s has no usable record of %s: %s.", s.Dir,
			units.Plural(len(ids), "planned trial"), units.Few(ids, mostMissing))
	}
	for _, b := range s.Bad {
		c.say("%v.", b)
	}
}

// warnStarts adds the findings on all starts of a run together.
func (c *Comparison) warnStarts(s *side) {
	if !c.Paired {
		return
	}
	for _, p := range c.Pairs {
		scenario := s.study.Scenario(p.Scenario)
		c.Findings = append(c.Findings, wording.WithWords(scenario.Findings)...)
		for _, note := range scenario.FindingNotes() {
			c.say("%s", note)
		}
	}
}

func (c *Comparison) warnControl(a, b *side) {
	if c.Control != "" {
		c.say("Ratios are divided by those of the control %s, which is the same artifact in both "+
			"runs, so changes of the machine cancel.", c.Control)
		return
	}
	var offered []string
	for _, name := range a.rows() {
		hasOthers := slices.ContainsFunc(c.Pairs, func(p Pair) bool { return p.B.Target != name })
		if x := artifacts(a, name); x != "" && x == artifacts(b, name) && hasOthers {
			offered = append(offered, name)
		}
	}
	if len(offered) > 0 {
		c.say("Both runs have the same artifact of %s. With --control, Prony divides ratios by "+
			"the change of this artifact, so changes of the machine cancel.",
			strings.Join(offered, ", "))
	}
}

// warnRates warns of open loads whose rates are shares of each side's own peak.
func (c *Comparison) warnRates(p pairing) {
	for _, l := range measured(p.a)[0].Loads {
		if l.Model != record.Open || l.RateOf == "" ||
			!c.some(func(r *Row) bool { return r.Load == l.Name }) {
			continue
		}
		x, y := rates(p.a, l.Name), rates(p.b, l.Name)
		if !(math.Abs(y/x-1) > sameRates) {
			continue
		}
		owner := p.a.Name + " and " + p.b.Name
		if p.a.Name == p.b.Name {
			owner = "both sides of " + p.a.Name
		}
		c.say("%s: %s were each offered %s, which is %s/s and %s/s: latencies are compared at an "+
			"equal share of the maximum, not at an equal rate.", l.Name, owner,
			strings.Replace(l.RateOf, "%", " %", 1), units.Rate(x), units.Rate(y))
	}
}

// rates returns the median rate of a load for a row.
func rates(t *table.Target, load string) float64 {
	var all []float64
	for _, r := range measured(t) {
		for _, l := range r.Loads {
			if l.Name == load {
				all = append(all, l.RatePerS)
			}
		}
	}
	return stats.Median(all)
}

// enoughMost is the largest advised number of blocks.
const enoughMost = 200

// Enough describes how many more blocks or starts would detect a difference (0.05 is 5 %) in the
// row of the primary metric, or else the steadiest one, at the error rate and the power of
// Detectable. It uses the first of the effects that the comparison does not detect yet. The text is
// empty if it detects all of them, if a row differs significantly, or if the noise is unknown.
func (c Comparison) Enough(effects ...float64) string {
	var decides *Row
	for _, r := range c.each() {
		if r.Outcome == Better || r.Outcome == Worse {
			return ""
		}
		if r.HasRatio() && !math.IsNaN(r.Detectable) && (decides == nil || r.before(decides)) {
			decides = r
		}
	}
	if decides == nil {
		return ""
	}
	index := slices.IndexFunc(effects, func(x float64) bool { return decides.Detectable > x })
	if index < 0 {
		return ""
	}
	effect := effects[index]
	subject := fmt.Sprintf("%.3g %%", 100*effect)
	ratio := *decides.Ratio
	if decides.planSD > 0 {
		ratio.SDLog = decides.planSD
	}
	n := ratio.Resolves(effect, (1-c.Confidence)*decides.share, power)
	if n > enoughMost {
		return fmt.Sprintf("No sensible number of %ss detects a difference of %s in %s at this "+
			"noise. prony doctor reports what disturbs measurements.",
			c.Repeat(), subject, decides.Name())
	}
	more := max(n-decides.Ratio.N, 1)
	return fmt.Sprintf("Detecting a difference of %s in %s would take about %s (--blocks %d, or "+
		"a longer time with --for).",
		subject, decides.Name(), units.Plural(more, "more "+c.Repeat()),
		decides.Ratio.N+more)
}

// before reports whether a row takes precedence over another as the primary one.
func (r *Row) before(second *Row) bool {
	if r.requested != second.requested {
		return r.requested
	}
	return r.Detectable < second.Detectable
}

// DoubtBy marks the ratios from windows as SUSPECT if the control, the first target again, differs
// significantly from the first target in the same metric: differences of this size can come from
// the measurement itself. Ratios from slices have this finding already (verdict.JudgeStarts). Name
// is the control's.
func (c *Comparison) DoubtBy(control Comparison, name string) {
	for _, k := range control.each() {
		if k.Outcome != Better && k.Outcome != Worse || !k.HasRatio() || fromSlices(k) {
			continue
		}
		for _, r := range c.each() {
			if r.Load != k.Load || r.Metric != k.Metric || !r.HasRatio() || fromSlices(r) {
				continue
			}
			if r.Grade != record.Invalid {
				r.Grade = record.Suspect
			}
			doubt := table.Doubt{}
			if r.Doubt != nil {
				doubt = *r.Doubt
			}
			doubt.Rules = append(slices.Clone(doubt.Rules), "control")
			r.Doubt = &doubt
		}
		c.Findings = append(c.Findings, wording.WithWords([]record.Finding{{Rule: "control",
			Grade: record.Suspect, Load: k.Load, Value: math.Abs(k.Ratio.Center - 1),
			Unit: record.UnitShare, Facts: record.Facts{Name: name, Subject: k.Metric,
				Observed: k.Ratio.Center}}})...)
	}
}
