package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/runs"
	"prony.example/record"
	"prony.example/record/metric"
)

// figuresView has the figures of a scenario's section. For readers who do not see it, a plot drawn
// by script also has its finding in words and its numbers in a table.
type figuresView struct {
	Repeat   string // the unit of dots: "block" or "start"
	Ranking  *strip
	Trials   *dataTable // the ranking's dots as numbers
	More     []strip
	Slices   *slicesView
	Floor    *strip
	Noise    *dataTable // between trials and within them
	Latency  *plotView
	Loads    *plotView
	LoadsWhy string // the reason if there is no plot of latency against load
	Series   *plotView
	Cost     *plotView
}

type plotView struct {
	Says string
	Data []dataTable
}

// dataTable is a plain table; the first column names the rows.
type dataTable struct {
	Caption string
	Columns []string
	Rows    [][]string
}

// mostCells is how many cells of a table in closed details a page has as markup.
const mostCells = 500

// Folded reports whether the page has the table as text until a reader opens it.
func (t dataTable) Folded() bool { return len(t.Rows)*len(t.Columns) > mostCells }

func figuresOf(sc *table.Scenario, d pageScenario) figuresView {
	blocks := blocksOf(sc)
	v := figuresView{Repeat: sc.Starts.Repeat()}
	if r, ok := metricStrip(sc, sc.Ranking.Load, sc.Ranking.Metric, blocks); ok {
		r.Says = rankingSays(sc)
		r.Class = "ranking"
		v.Ranking, v.Trials = &r, trialsTable(sc, blocks)
	}
	v.More = moreStrips(sc, blocks)
	v.Slices = slicesOf(sc)
	v.Floor = floorStrip(sc)
	v.Noise = noiseTable(sc)
	if len(d.Latency) > 0 {
		v.Latency = &plotView{latencySays(sc, d.Latency[0]), latencyTables(sc, d.Latency)}
	}
	if d.Loads != nil {
		v.Loads = &plotView{loadsSays(*d.Loads), []dataTable{loadsTable(*d.Loads)}}
	} else {
		v.LoadsWhy = noLoads(sc)
	}
	if len(d.Series) > 0 {
		v.Series = &plotView{seriesSays(sc), warmupTables(sc)}
	}
	if d.Cost != nil {
		v.Cost = &plotView{costSays(*d.Cost), []dataTable{costTable(*d.Cost)}}
	}
	return v
}

func blocksOf(sc *table.Scenario) int {
	most := 0
	for _, m := range sc.Metrics() {
		for _, p := range m.Points {
			most = max(most, p.Block)
		}
	}
	return most
}

// rankingSays describes the ranking in words.
func rankingSays(sc *table.Scenario) string {
	if sentences := runs.Standing(sc); len(sentences) > 0 {
		return strings.Join(sentences, " ")
	}
	return "No target could be ranked."
}

func trialsTable(sc *table.Scenario, blocks int) *dataTable {
	t := &dataTable{Caption: "Each trial's " + metricName(sc.Ranking.Metric, "") + ", by " +
		sc.Starts.Repeat(),
		Columns: []string{"target"}}
	if blocks > mostListed {
		t.Caption += fmt.Sprintf(", the first %d", mostListed)
		blocks = mostListed
	}
	for b := range blocks {
		t.Columns = append(t.Columns, fmt.Sprint(b+1))
	}
	for _, target := range sc.Targets {
		m, ok := target.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		if !ok {
			continue
		}
		row := slices.Repeat([]string{units.Absent}, blocks+1)
		row[0] = target.Name
		for _, p := range m.Points {
			if p.Block < 1 || p.Block > blocks {
				continue
			}
			row[p.Block] = units.Printer(m.Unit)(p.Value)
			if p.Verdict != "VALID" {
				row[p.Block] += ", " + pointMark(p.Verdict)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// moreStrips returns figures of other common measures; the CSV has all measures.
func moreStrips(sc *table.Scenario, blocks int) []strip {
	var out []strip
	add := func(load, metric string) {
		if load == sc.Ranking.Load && metric == sc.Ranking.Metric {
			return
		}
		if s, ok := metricStrip(sc, load, metric, blocks); ok {
			out = append(out, s)
		}
	}
	for _, l := range sc.Loads {
		switch l.Model {
		case record.Open:
			add(l.Name, "p50")
			add(l.Name, "p99")
		case record.Capacity:
			add(l.Name, metric.Capacity)
		default:
			add(l.Name, metric.Throughput)
		}
	}
	for _, metric := range []string{metric.CPU, metric.RSS} {
		add(sc.Ranking.Load, metric)
	}
	for _, metric := range []string{metric.Ready, "time_to_peak", "warmup_cost"} {
		add("", metric)
	}
	return out
}

// floorStrip draws a target's ratio to itself: differences within it are noise.
func floorStrip(sc *table.Scenario) *strip {
	all := []float64{}
	for _, f := range sc.Floors {
		all = append(all, f.Ratio.Center, f.Ratio.Lo, f.Ratio.Hi)
	}
	if len(all) == 0 {
		return nil
	}
	r := span(slices.DeleteFunc(all, math.IsNaN), true)
	s := &strip{Caption: "Noise floor: each target against itself", Name: "target, measure",
		Axis: "arm b divided by arm a, logarithmic axis", Value: "ratio and interval",
		Ticks: r.marks(ratioText), Mark: r.place(1), Class: "forest"}
	worst, alarms, intervals := math.Inf(-1), 0, 0
	g := stripGroup{}
	for _, f := range sc.Floors {
		row := ratioRow(f.Target, f.Ratio, r)
		row.Note = f.Load + " " + metricName(f.Metric, f.Unit)
		if !math.IsNaN(f.Detects) {
			row.Range += "; resolution " + table.Resolution(f.Detects)
			worst = max(worst, f.Detects)
		}
		if f.Ratio.HasInterval() {
			intervals++
		}
		if f.Ratio.HasInterval() && (f.Ratio.Lo > 1 || f.Ratio.Hi < 1) {
			alarms++
			row.Class = "alarm"
		}
		g.Rows = append(g.Rows, row)
	}
	s.Groups = []stripGroup{g}
	s.Says = fmt.Sprintf("%d of %s exclude 1, although nothing differs.", alarms,
		units.Plural(intervals, "interval"))
	if intervals == 0 {
		s.Says = "No ratio has an interval."
	}
	switch {
	case math.IsInf(worst, -1):
	case table.Wide(1, 1+worst):
		s.Says += " There are too few " + sc.Starts.Repeat() +
			"s to know which difference they detect."
	default:
		s.Says += " These " + sc.Starts.Repeat() + "s detect differences of at least " +
			units.Percent(worst) + " in each metric; smaller differences are noise."
	}
	return s
}

// saidTargets is the largest number of targets that a sentence names; it counts the others.
const saidTargets = 8

// latencySays names the p99 of each target, in the order of the page, because a rank is not a
// finding.
func latencySays(sc *table.Scenario, l pageLatency) string {
	var words []string
	for _, t := range sc.Targets {
		m, ok := t.Metric(l.Load, "p99")
		if !ok || !m.Known() {
			continue
		}
		text := t.Name + " " + units.Duration(m.Summary.Center)
		if !m.Summary.HasInterval() || table.Wide(m.Summary.Lo, m.Summary.Hi) {
			text += " (" + unknownInterval + ")"
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return fmt.Sprintf("Response time by percentile at %s: no target has a known p99.",
			l.Title)
	}
	return fmt.Sprintf("p99 at %s: %s.", l.Title,
		strings.Join(units.First(words, saidTargets), ", "))
}

func latencyTables(sc *table.Scenario, ls []pageLatency) []dataTable {
	var out []dataTable
	for _, l := range ls {
		t := dataTable{Caption: "Response time at " + l.Title,
			Columns: []string{"target", "p50", "p90", "p99", "p99.9"}}
		for _, target := range sc.Targets {
			row := []string{target.Name}
			for _, name := range t.Columns[1:] {
				m, ok := target.Metric(l.Load, name)
				text := units.Absent
				if ok && m.Known() {
					text = withInterval(m)
				}
				row = append(row, text)
			}
			t.Rows = append(t.Rows, row)
		}
		out = append(out, t)
	}
	return out
}

// withInterval formats a level as "1.20 ms [1.15 ms – 1.28 ms]"; an interval that is Wide is
// unknown, as in the table.
func withInterval(m table.Metric) string {
	print := units.Printer(m.Unit)
	text := print(m.Summary.Center)
	switch {
	case !m.Summary.HasInterval():
	case table.Wide(m.Summary.Lo, m.Summary.Hi):
		text += " [unknown]"
	default:
		text += " [" + print(m.Summary.Lo) + " – " + print(m.Summary.Hi) + "]"
	}
	return text
}
