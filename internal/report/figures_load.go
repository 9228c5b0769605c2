package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// ratioText formats a ratio on an axis: 0.95, 1, 1.05.
func ratioText(x float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", x), "0"), ".")
}

// ratioRow returns a row of a forest plot.
func ratioRow(name string, x stats.Ratio, r ruler) stripRow {
	row := stripRow{Name: name, Text: units.Absent, Range: x.Warning}
	if math.IsNaN(x.Center) {
		return row
	}
	thousandths := func(x float64) string { return fmt.Sprintf("%.3f", x) }
	row.Center, row.Text = r.place(x.Center), thousandths(x.Center)
	if row.Beyond = r.beyond(x.Center); row.Beyond != "" {
		row.Center = ""
	}
	if x.HasInterval() {
		row.interval(x.Lo, x.Hi, r, thousandths)
	}
	if table.RatioInterval(x).State == table.Unknown { // as the tables have it
		row.Range = unknownInterval
	}
	return row
}

// noiseTable returns the sources of the ranking metric's noise.
func noiseTable(sc *table.Scenario) *dataTable {
	t := &dataTable{Caption: "Where the noise comes from", Columns: []string{"target",
		"SD between trials", "SD within a trial", "share between trials"}}
	for _, target := range sc.Targets {
		v := target.Variance
		if math.IsNaN(v.Share) || v.Between == 0 && v.Within == 0 {
			continue
		}
		t.Rows = append(t.Rows, []string{target.Name, units.Percent(v.Between),
			units.Percent(v.Within), units.Percent(v.Share)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// Latency against load.

type pageLoads struct {
	Targets []pageLoadLine `json:"targets"`
}

type pageLoadLine struct {
	Target string          `json:"target"`
	Points []pageLoadPoint `json:"points"` // by rate, of loads at which the target kept up
	Peak   *float64        `json:"peak"`   // requests/s of the closed load; null: none
	Knee   string          `json:"knee"`   // the rates between which it fell behind; empty: none
}

type pageLoadPoint struct {
	Load  string   `json:"load"`
	PerS  float64  `json:"perS"` // achieved
	P50Ms *float64 `json:"p50Ms"`
	P99Ms *float64 `json:"p99Ms"`
	P99Lo *float64 `json:"p99Lo"`
	P99Hi *float64 `json:"p99Hi"`
}

// loadsOf returns nil if no target has two points: one point is not a curve, and the response time
// of a closed load is not comparable with that of an open one.
func loadsOf(sc *table.Scenario) *pageLoads {
	out := &pageLoads{}
	most := 0
	for _, t := range sc.Targets {
		line := loadLine(sc, t)
		most = max(most, len(line.Points))
		if len(line.Points) > 0 {
			out.Targets = append(out.Targets, line)
		}
	}
	if most < 2 {
		return nil
	}
	return out
}

func loadLine(sc *table.Scenario, t *table.Target) pageLoadLine {
	line := pageLoadLine{Target: t.Name}
	var over []string
	for _, l := range sc.Loads {
		rate, ok := t.Metric(l.Name, metric.Throughput)
		if !ok || !rate.Known() {
			if ok && fellBehind(t, l, &rate) {
				over = append(over, l.Name)
			}
			continue
		}
		if l.Model != record.Open {
			if line.Peak == nil {
				line.Peak = format.Finite(rate.Summary.Center)
			}
			continue
		}
		p50, _ := t.Metric(l.Name, "p50")
		p99, _ := t.Metric(l.Name, "p99")
		if !p50.Known() {
			if fellBehind(t, l, &p50) {
				over = append(over, l.Name)
			}
			continue
		}
		point := pageLoadPoint{Load: l.Title, PerS: roundTo(rate.Summary.Center, 1),
			P50Ms: milli(p50.Summary.Center)}
		if p99.Known() {
			s := p99.Summary
			point.P99Ms, point.P99Lo, point.P99Hi = milli(s.Center), milli(s.Lo), milli(s.Hi)
		}
		line.Points = append(line.Points, point)
	}
	slices.SortStableFunc(line.Points, func(a, b pageLoadPoint) int {
		return int(math.Copysign(1, a.PerS-b.PerS))
	})
	if len(over) > 0 && len(line.Points) > 0 {
		line.Knee = fmt.Sprintf("reaches only %s/s, not the rate of load %s",
			units.Rate(line.Points[len(line.Points)-1].PerS), strings.Join(over, ", "))
	}
	return line
}

// fellBehind reports whether an open load has no number because its rate was above the capacity of
// the target. A number can also be missing because of the machine, or because of few responses.
func fellBehind(t *table.Target, l table.LoadInfo, m *table.Metric) bool {
	return l.Model == record.Open && (m.Withheld.Kind == table.NoteBacklogGrew ||
		slices.ContainsFunc(t.Trials, func(r *record.Record) bool {
			return slices.ContainsFunc(r.Verdict.Findings, func(f record.Finding) bool {
				return f.Load == l.Name && f.Grade == record.Invalid && (f.Rule == "capacity" ||
					f.Rule == "delivered" && f.Case == "waited")
			})
		}))
}

func milli(ns float64) *float64 { return format.Finite(roundTo(ns/1e6, 4)) }

func noLoads(sc *table.Scenario) string {
	open := 0
	for _, l := range sc.Loads {
		if l.Model == record.Open {
			open++
		}
	}
	if open == 0 || len(sc.Targets) == 0 {
		return ""
	}
	return "There is no plot of latency against load, because it needs at least two open loads " +
		"whose rate a target reaches. Add loads to the suite, such as 30, 60, 80 and 90 % of peak."
}

func loadsSays(l pageLoads) string {
	var words []string
	for _, t := range l.Targets {
		first, last := t.Points[0], t.Points[len(t.Points)-1]
		text := fmt.Sprintf("%s from p99 %s at %s/s to %s at %s/s", t.Target, msText(first.P99Ms),
			units.Rate(first.PerS), msText(last.P99Ms), units.Rate(last.PerS))
		if t.Knee != "" {
			text += " (" + t.Knee + ")"
		}
		words = append(words, text)
	}
	return "Latency as the load grows: " + strings.Join(units.First(words, saidTargets), "; ") + "."
}

func msText(ms *float64) string {
	if ms == nil {
		return units.Absent
	}
	return units.Duration(*ms * 1e6)
}

func loadsTable(l pageLoads) dataTable {
	t := dataTable{Caption: "Latency against load",
		Columns: []string{"target", "load", "achieved", "p50", "p99", "limit"}}
	for _, line := range l.Targets {
		for _, p := range line.Points {
			t.Rows = append(t.Rows, []string{line.Target, p.Load, units.Rate(p.PerS) + "/s",
				msText(p.P50Ms), msText(p.P99Ms), line.Knee})
		}
	}
	return t
}

// Cost against throughput.

type pageCost struct {
	Title  string          `json:"title"`
	Points []pageCostPoint `json:"points"`
}

// pageCostPoint has intervals of two values, or null where an interval is unknown.
type pageCostPoint struct {
	Target    string      `json:"target"`
	Tier      int         `json:"tier"`
	PerS      float64     `json:"perS"`
	PerSRange *[2]float64 `json:"perSRange"`
	CPUUs     *float64    `json:"cpuUs"`
	CPURange  *[2]float64 `json:"cpuRange"`
	RSSMiB    *float64    `json:"rssMiB"`
	RSSRange  *[2]float64 `json:"rssRange"`
	Text      string      `json:"text"`
}

// rangeOf is a metric's interval in a unit of the page; nil where it is unknown.
func rangeOf(m table.Metric, unit float64, decimals int) *[2]float64 {
	s := m.Summary
	if !s.HasInterval() || math.IsInf(s.Hi, 0) || table.Wide(s.Lo, s.Hi) {
		return nil
	}
	return &[2]float64{roundTo(s.Lo/unit, decimals), roundTo(s.Hi/unit, decimals)}
}

func costOf(sc *table.Scenario) *pageCost {
	load := sc.Ranking.Load
	out := &pageCost{Title: strings.TrimPrefix(loadName(sc, load), " at ")}
	for _, t := range sc.Targets {
		rate, ok := t.Metric(load, metric.Throughput)
		cpu, hasCPU := t.Metric(load, metric.CPU)
		rss, hasRSS := t.Metric(load, metric.RSS)
		if !ok || !rate.Known() {
			continue
		}
		p := pageCostPoint{Target: t.Name, Tier: t.Tier, PerS: roundTo(rate.Summary.Center, 1),
			PerSRange: rangeOf(rate, 1, 1)}
		var words []string
		if hasCPU && cpu.Known() {
			p.CPUUs = format.Finite(roundTo(cpu.Summary.Center/1e3, 3))
			p.CPURange = rangeOf(cpu, 1e3, 3)
			words = append(words, units.Duration(cpu.Summary.Center)+" of CPU per request")
		}
		if hasRSS && rss.Known() {
			p.RSSMiB = format.Finite(roundTo(rss.Summary.Center/(1<<20), 2))
			p.RSSRange = rangeOf(rss, 1<<20, 2)
			words = append(words, units.Bytes(rss.Summary.Center)+" resident")
		}
		if len(words) == 0 {
			continue
		}
		p.Text = units.Rate(rate.Summary.Center) + "/s, " + strings.Join(words, ", ")
		out.Points = append(out.Points, p)
	}
	if len(out.Points) == 0 {
		return nil
	}
	return out
}

// costSays names the CPU time of each target, in the order of the page, because a rank is not a
// finding.
func costSays(c pageCost) string {
	var words []string
	for _, p := range c.Points {
		if p.CPUUs != nil {
			words = append(words, p.Target+" "+units.Duration(*p.CPUUs*1e3))
		}
	}
	if len(words) == 0 {
		return fmt.Sprintf("At %s, the CPU time per request is unknown for all targets.", c.Title)
	}
	return fmt.Sprintf("CPU time per request at %s: %s.", c.Title,
		strings.Join(units.First(words, saidTargets), ", "))
}

func costTable(c pageCost) dataTable {
	t := dataTable{Caption: "Cost at " + c.Title, Columns: []string{"target",
		"throughput, CPU and memory"}}
	for _, p := range c.Points {
		t.Rows = append(t.Rows, []string{p.Target, p.Text})
	}
	return t
}

// Warm-up.

func seriesSays(sc *table.Scenario) string {
	kinds := map[string]int{}
	trials := 0
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			if r.Warmup.DurationNs > 0 {
				trials++
				kinds[warmupKind(r.Warmup)]++
			}
		}
	}
	var words []string
	for _, k := range kindWords {
		if n := kinds[k.kind]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, k.words))
		}
	}
	if trials == 0 {
		return "No trial recorded a warm-up."
	}
	return fmt.Sprintf("%d trials: %s.", trials, strings.Join(words, ", "))
}

// Texts for records without a classified series, which only have the result of the rule.
const (
	ruleHeld   = "steady"
	ruleMissed = "not steady"
)

var kindWords = []struct{ kind, words string }{
	{stats.Flat, "were steady from the first interval"},
	{stats.Warmed, "warmed up and became steady"},
	{stats.Slowed, "were faster at first, then steady"},
	{stats.Unsteady, "never became steady"},
	{ruleHeld, "became steady in the warm-up"},
	{ruleMissed, "were not steady when the warm-up ended"},
}

func warmupKind(w record.Warmup) string {
	switch {
	case w.Kind != "":
		return w.Kind
	case w.Steady:
		return ruleHeld
	}
	return ruleMissed
}

func warmupTables(sc *table.Scenario) []dataTable {
	t := dataTable{Caption: "Warm-up, one row per trial", Columns: []string{"target",
		sc.Starts.Repeat(), "kind", "steady after", "peak after", "cost", "levels"}}
	for _, target := range sc.Targets {
		for _, r := range target.Trials {
			w := r.Warmup
			if w.DurationNs == 0 {
				continue
			}
			t.Rows = append(t.Rows, []string{target.Name, fmt.Sprint(r.Block), warmupKind(w),
				secondsOr(w.SteadyAtNs, w.Steady), secondsOr(w.PeakAtNs, peaked(w)),
				secondsOr(w.CostNs, peaked(w)),
				levelsText(w.Levels)})
		}
	}
	if roles := rolesTable(sc); len(roles.Rows) > 0 {
		return []dataTable{t.bounded(), roles.bounded()}
	}
	return []dataTable{t.bounded()}
}

// rolesTable has the windows in which the names of threads identify their purpose.
func rolesTable(sc *table.Scenario) dataTable {
	t := dataTable{Caption: "CPU time by purpose of threads, one row per window",
		Columns: []string{"target", sc.Starts.Repeat(), "load", "CPU time", "compilers silent"}}
	for _, target := range sc.Targets {
		for _, r := range target.Trials {
			for i := range r.Loads {
				split := metric.Split(r.Loads[i].Service)
				if split == "" {
					continue
				}
				atNs := r.Warmup.CompilersIdleAtNs
				silent := secondsOr(atNs, atNs > 0)
				if atNs > 0 {
					silent = "after " + silent
				}
				t.Rows = append(t.Rows, []string{target.Name, fmt.Sprint(r.Block),
					r.Loads[i].Name, split, silent})
			}
		}
	}
	return t
}

// peaked reports whether the warm-up had a steady level to compare with.
func peaked(w record.Warmup) bool { return w.Kind != "" && w.Kind != stats.Unsteady }

func secondsOr(ns int64, known bool) string {
	if !known {
		return units.Absent
	}
	return time.Duration(ns).Round(100 * time.Millisecond).String()
}

const saidLevels = 6

func levelsText(levels []record.Level) string {
	var words []string
	for i, l := range levels {
		if i == saidLevels {
			words = append(words, "…")
			break
		}
		words = append(words, fmt.Sprintf("%s/s to %s", units.Rate(l.MeanPerS),
			time.Duration(l.ToNs).Round(100*time.Millisecond)))
	}
	if len(words) == 0 {
		return units.Absent
	}
	return strings.Join(words, ", ")
}
