package table

import (
	"fmt"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// spec is a column with the function that fills it.
type spec struct {
	column Column
	cell   func(*Target) Cell
	leads  string // the load whose first column this is; it gets the load's footnotes
}

// shows returns the column of a metric's center.
func shows(c Column, load, name string, p printer) spec {
	return spec{column: c, cell: func(t *Target) Cell { return metricCell(t, load, name, p) }}
}

// specs returns a scenario's columns: its loads in order, then cost, then start.
func (sc *Scenario) specs(o Options) []spec {
	var out []spec
	for _, l := range sc.Loads {
		ownFunc := sc.closedSpecs
		switch l.Model {
		case record.Open:
			ownFunc = sc.openSpecs
		case record.Capacity:
			ownFunc = sc.servedSpecs
		}
		specs := ownFunc(l, o)
		if l.Model != record.Capacity { // the deciding step has no other columns
			specs = append(specs, o.wanted(metric.OfLoad, l, scaled(sc.latencyScale(l)))...)
		}
		specs[0].leads = l.Name
		out = append(out, specs...)
	}
	full := o.wanted(metric.OfTrial, LoadInfo{}, printer{})
	if sc.ranAlready() {
		return append(out, full...)
	}
	if l := sc.anchor(); l.Name != "" {
		out = slices.Concat(out, sc.costSpecs(l.Name), o.wanted(metric.OfCost, l, printer{}))
	}
	return slices.Concat(out, sc.startSpecs(), full)
}

// ranAlready reports whether Prony started none of the targets: cost and start are then unknown.
func (sc *Scenario) ranAlready() bool {
	return !slices.ContainsFunc(sc.Targets, func(t *Target) bool {
		return slices.ContainsFunc(t.Trials, func(r *record.Record) bool {
			return r.Target.URL == ""
		})
	})
}

// closedSpecs returns the columns of a closed load: throughput and latency. In a closed loop,
// requests wait for the service, so the latency is labeled and omitted first.
func (sc *Scenario) closedSpecs(l LoadInfo, o Options) []spec {
	out := sc.servedSpecs(l, o)
	times := scaled(sc.latencyScale(l))
	for _, p := range []string{"p50", "p99"} {
		out = append(out, shows(l.waits(l.column(p, p, units.Ns, Extra)), l.Name, p, times))
	}
	return out
}

// servedSpecs returns the columns of throughput, its interval and its ratio.
func (sc *Scenario) servedSpecs(l LoadInfo, o Options) []spec {
	name := metric.Throughput
	if l.Model == record.Capacity {
		name = metric.Capacity
	}
	width := l.column("interval", "", units.One, Essential)
	width.Role, width.Confidence = RoleWidth, o.Confidence
	out := []spec{
		{column: l.column(name, "req/s", units.PerS, Essential),
			cell: func(t *Target) Cell {
				c := metricCell(t, l.Name, name, same(units.Rate))
				if m, _ := t.Metric(l.Name, name); c.State == Withheld {
					c.AtLeast = m.AtLeast
				}
				return c
			}},
		{column: width,
			cell: func(t *Target) Cell { return widthCell(t, l.Name, name) }},
	}
	if sc.Versus.Kind != VersusNone {
		out = append(out, spec{column: sc.ratio(l.column("ratio", "", units.One, Detail)),
			cell: func(t *Target) Cell { return ratioCell(t, l.Name, name) }})
	}
	return out
}

// column returns a column of the load.
func (l LoadInfo) column(key, label, base string, weight int) Column {
	return Column{Key: l.Name + "/" + key, Group: Group{GroupLoad, l.Name, l.Title}, Label: label,
		Unit: base, Weight: weight}
}

// waits marks a column of response times if the load is closed.
func (l LoadInfo) waits(c Column) Column {
	c.Waits = l.Model == record.Closed
	return c
}

// ratio makes a column one of ratios.
func (sc *Scenario) ratio(c Column) Column {
	c.Role, c.Versus = RoleRatio, sc.Versus
	return c
}

// openSpecs returns the columns of an open load: response times and the share of the load that was
// answered.
func (sc *Scenario) openSpecs(l LoadInfo, o Options) []spec {
	var out []spec
	times := scaled(sc.latencyScale(l))
	for _, p := range []string{"p50", "p99", "p99.9"} {
		out = append(out, shows(l.column(p, p, units.Ns, Essential), l.Name, p, times))
	}
	if sc.Versus.Kind != VersusNone {
		out = append(out, spec{column: sc.ratio(l.column("p99 ratio", "p99", units.One, Extra)),
			cell: func(t *Target) Cell { return ratioCell(t, l.Name, "p99") }})
	}
	c := l.column(metric.Achieved, "achieved", units.One, sc.achievedWeight(l))
	tenths := func(share float64) string { return units.PercentTo(share, 1) }
	return append(out, shows(c, l.Name, metric.Achieved, same(tenths)))
}

// costSpecs returns the columns of cost under the load that ranks. Cost depends on the load, so its
// name is in the heading.
func (sc *Scenario) costSpecs(load string) []spec {
	group := Group{Kind: GroupCost, Load: load}
	var least []float64
	for _, t := range sc.Targets {
		if m, ok := t.Metric(load, metric.CPU); ok && m.Known() {
			least = append(least, m.Summary.Center/1e3)
		}
	}
	decimals := 1
	if len(least) > 0 {
		decimals = min(units.DecimalsFor(slices.Min(least), 3), 2)
	}
	perRequest := printer{micros(decimals), micros(decimals + 1)}
	cpu := Column{Key: "cost/cpu", Group: group, Label: "CPU µs/req", Unit: units.Ns}
	rss := Column{Key: "cost/rss", Group: group, Label: "RSS", Unit: units.Octet, Weight: Detail}
	out := []spec{shows(cpu, load, metric.CPU, perRequest)}
	if sc.Starts != nil && sc.Versus.Kind != VersusNone { // slices are most precise about it
		out = append(out, spec{column: sc.ratio(Column{Key: "cost/ratio", Group: group,
			Label: "CPU", Unit: units.One, Weight: Detail}),
			cell: func(t *Target) Cell { return ratioCell(t, load, metric.CPU) }})
	}
	return append(out, shows(rss, load, metric.RSS, same(units.Bytes)))
}

// micros returns a function that formats a time in microseconds, without the unit.
func micros(decimals int) func(float64) string {
	return func(ns float64) string { return fmt.Sprintf("%.*f", decimals, ns/1e3) }
}

// startSpecs returns the columns of startup: from exec to the first response, and from the first
// load to steady state.
func (sc *Scenario) startSpecs() []spec {
	column := func(key, heading, metric string, weight int) spec {
		c := Column{Key: "start/" + key, Group: Group{Kind: GroupStart}, Label: heading,
			Unit: units.Ns, Weight: weight}
		return shows(c, "", metric, same(units.Duration))
	}
	return []spec{column("ready", "time to ready", metric.Ready, Detail),
		column("steady", "time to steady", metric.SteadyAt, Extra)}
}

// achievedWeight makes the column omissible if every target kept up.
func (sc *Scenario) achievedWeight(l LoadInfo) int {
	for _, t := range sc.Targets {
		m, ok := t.Metric(l.Name, metric.Achieved)
		if ok && m.Known() && m.Summary.Center < metric.KeptUp {
			return Essential
		}
	}
	return Extra
}

// latencyScale returns a scale for all percentiles of a load.
func (sc *Scenario) latencyScale(l LoadInfo) units.Scale {
	var ns []float64
	for _, t := range sc.Targets {
		for _, p := range shown {
			if m, ok := t.Metric(l.Name, p.Name); ok && m.Known() {
				ns = append(ns, m.Summary.Center)
			}
		}
	}
	return units.ScaleFor(ns)
}

// columnOf returns a function that makes columns of a table without groups.
func columnOf(kind string) func(key, label, base string, role Role) Column {
	return func(key, label, base string, role Role) Column {
		return Column{Key: kind + "/" + key, Label: label, Unit: base, Role: role}
	}
}

// metric returns a metric of a target, or a withheld one if the target has none.
func (t *Target) metric(load, name string) Metric {
	if m, ok := t.Metric(load, name); ok {
		return m
	}
	return Metric{Withheld: NoteOf(NoteNotOffered)}
}

// noInterval returns a note on what would give an interval. The commonest cause, a single trial, is
// the same for a value and for a ratio, so both share a footnote.
func noInterval(n int, warning string) Note {
	if n < 2 {
		return NoteOf(NoteOneTrial)
	}
	return NoteOf(NoteNoInterval, Warning(warning))
}

// FewStarts returns a note on a ratio from slices of few starts: how many an interval needs, or
// that the interval is wide. Student's t has its stated coverage from two starts on, so all
// outcomes use it; live intervals need more starts. Without a note, there are enough.
func FewStarts(r stats.Ratio) Note {
	switch {
	case r.N >= stats.LeastStarts:
		return Note{}
	case r.HasInterval():
		return NoteOf(NoteWideStarts, r.N, stats.LeastStarts)
	case r.N < 2:
		return NoteOf(NoteFewStarts, 2, r.N)
	}
	return NoteOf(NoteFewLive, stats.LeastStarts, r.N)
}

// metricCell returns a cell with a metric's center.
func metricCell(t *Target, load, name string, p printer) Cell {
	m := t.metric(load, name)
	if !m.Known() {
		return withheld(m.Withheld)
	}
	c := levelCell(m.Summary, p.value)
	c.Grade, c.form = m.Grade(), levelForm(p)
	if m.WithStalls.Is() && (m.Mixed || m.WithStalls.stalled(outOfOrder)) {
		c.Notes = append(c.Notes, m.WithStalls)
	}
	if m.Doubt != nil && m.Doubt.Share > 0 {
		c.load, c.deviation = load, &Off{m.Name, m.Unit, m.Doubt.Share, m.Doubt.Rules, false, ""}
	}
	return c
}

// widthCell returns a cell with the larger arm of a metric's interval, relative to the center.
func widthCell(t *Target, load, name string) Cell {
	m := t.metric(load, name)
	if !m.Known() {
		return withheld(m.Withheld)
	}
	s := m.Summary
	if !s.HasInterval() {
		return withheld(noInterval(s.N, s.Warning))
	}
	c := valued(halfWidth(s.Center, s.Lo, s.Hi), func(x float64) string {
		return "±" + units.Percent(x)
	})
	c.N = s.N
	if Wide(s.Lo, s.Hi) {
		c.State, c.Notes = Unknown, []Note{NoteOf(NoteIntervalWide)}
	} else if s.Warning != "" {
		c.Notes = []Note{NoteOf(NoteWarned, s.Warning)}
	}
	return c
}

// ratioCell returns a cell with the ratio of a target to its reference, with its interval.
func ratioCell(t *Target, load, name string) Cell {
	if t.Reference == "" {
		return valued(1, units.Whole)
	}
	m, ok := t.Metric(load, name)
	if !ok || m.Ratio == nil {
		why := NoteOf(NoteNoCommonBlock, t.Reference)
		switch {
		case m.Unsliced.Is():
			why = m.Unsliced
		case m.Source == FromSlices:
			why = NoteOf(NoteStartsLost)
		case !m.Known():
			why = m.Withheld
		}
		return withheld(why)
	}
	r := m.Ratio
	c := Cell{State: Known, Value: r.Center, N: r.N,
		Interval: RatioInterval(*r)}
	few := FewStarts(*r)
	switch {
	case m.Source == FromSlices && few.Is():
		c.Notes = []Note{few}
		if c.Interval.State == Unknown {
			c.State = Unknown
		}
	case c.Interval.State == Absent:
		c.Notes = []Note{noInterval(r.N, r.Warning)}
	case c.Interval.State == Unknown:
		c.State, c.Notes = Unknown, []Note{NoteOf(NoteIntervalWide)}
	case r.Warning != "":
		c.Notes = []Note{NoteOf(NoteWarned, r.Warning)}
	}
	c.form = ratioForm(ratioDecimals(*r))
	c.Grade = m.RatioGrade()
	if d := m.RatioDoubt; d != nil {
		c.load, c.deviation = load, &Off{m.Name, m.Unit, d.Share, d.Rules, true, ""}
	}
	return c
}

// ratioDecimals is the number of decimals that distinguish the ends of a ratio's interval.
func ratioDecimals(r stats.Ratio) int {
	if r.Hi-r.Lo < 0.02 {
		return 3
	}
	return 2
}

// RatioText formats a ratio and its interval as a table does: "2.09" and "1.95 to 2.25".
func RatioText(r stats.Ratio) (center, interval string) {
	print := ratioForm(ratioDecimals(r)).value
	return print(r.Center), print(r.Lo) + " to " + print(r.Hi)
}

// unknownWord replaces a number whose interval is too wide; the notes explain it once.
const unknownWord = "unknown"

// tooWide is the factor between an interval's ends above which its numbers are not printed, because
// readers would take them for a finding.
const tooWide = 3

// Wide reports whether the interval of a level is too wide to be printed. RatioInterval decides
// about ratios.
func Wide(lo, hi float64) bool { return hi > tooWide*lo }

// Resolution formats the smallest detectable difference: 0.03 is "3 %", and a difference beyond
// tooWide is "unknown".
func Resolution(x float64) string {
	c := valued(x, units.Percent)
	c.State = resolutionState(x)
	return c.Number()
}

// resolutionState returns the state of the smallest detectable difference.
func resolutionState(x float64) State {
	switch {
	case !units.Known(x):
		return Absent
	case Undetectable(x):
		return Unknown
	}
	return Known
}

// Undetectable reports whether the smallest detectable difference is too large to be printed.
func Undetectable(x float64) bool { return 1+x > tooWide }

// wanted returns the columns of a place that the suite requests, over the metrics of a load. times
// formats metrics without a format of their own.
func (o Options) wanted(place metric.Place, l LoadInfo, times printer) (out []spec) {
	for _, m := range metric.Columns() {
		if m.Column.Place != place || !slices.Contains(o.Columns, m.Column.Name) ||
			m.Model != "" && m.Model != l.Model {
			continue
		}
		p := times
		if m.Column.Print != nil {
			p = same(m.Column.Print)
		}
		c := l.column(m.Column.Name, m.Column.Heading, m.Unit, Detail)
		switch {
		case place == metric.OfCost:
			c.Key, c.Group = "cost/"+m.Name, Group{Kind: GroupCost, Load: l.Name}
		case place == metric.OfTrial && m.Exact:
			c.Key, c.Group = "artifact/"+m.Column.Name, Group{Kind: GroupArtifact}
		case place == metric.OfTrial:
			c.Key, c.Group = "start/"+m.Column.Name, Group{Kind: GroupStart}
		case m.Unit == units.Ns:
			c = l.waits(c)
		}
		out = append(out, shows(c, l.Name, m.Name, p))
	}
	return out
}
