package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// slicesView draws the rounds of starts: the ratios that come from them, and below them the
// machine's speed at the same time.
type slicesView struct {
	Lead   string
	Ratios []strip // one for each target and metric
	Speed  *strip
}

// mostRoundDots bounds the dots of all strips together. If there are more rounds, a dot combines
// several.
const mostRoundDots = 6000

// slicesOf returns nil without raw slices.
func slicesOf(sc *table.Scenario) *slicesView {
	if sc.Starts == nil || len(sc.Starts.Raw) == 0 {
		return nil
	}
	type drawing struct {
		target *table.Target
		metric table.Metric
	}
	var all []drawing
	for _, t := range sc.Targets {
		for _, name := range []string{metric.Throughput, metric.CPU} {
			m, ok := t.Metric(sc.Ranking.Load, name)
			if ok && m.Source == table.FromSlices && m.Ratio != nil {
				all = append(all, drawing{t, m})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	rounds := 0
	for _, raw := range sc.Starts.Raw {
		rounds = max(rounds, raw.Head.Rounds)
	}
	dotsEach := max(1, mostRoundDots/(len(all)+1)/len(sc.Starts.Raw))
	perDot := max(1, (rounds+dotsEach-1)/dotsEach)
	v := &slicesView{Lead: "Each small dot shows one round"}
	if perDot > 1 {
		v.Lead = fmt.Sprintf("Each small dot shows the mean of %d rounds", perDot)
	}
	for _, d := range all {
		if s, ok := roundStrip(sc, d.target, d.metric, perDot); ok {
			v.Ratios = append(v.Ratios, s)
		}
	}
	v.Speed = speedStrip(sc, sc.Target(all[0].target.Reference), perDot)
	return v
}

// roundPoint has the sums of one round, or of several together: of one target or of two.
type roundPoint struct {
	from, to int // rounds
	a, b     record.Slice
}

// pointsOf sums the closed slices of two sides over perDot rounds each. It leaves out rounds
// without a slice of each instance, and rounds whose processor time is unknown.
func pointsOf(raw table.StartSlices, a, b []*table.Target, perDot int) (out []roundPoint) {
	type pair struct {
		a, b []record.Slice
	}
	rounds := map[int]pair{}
	names := func(side []*table.Target, row string) bool {
		return slices.ContainsFunc(side, func(t *table.Target) bool { return t.Name == row })
	}
	most, last := pair{}, 0
	for _, s := range raw.Slices {
		if s.Open {
			continue
		}
		p := rounds[s.Round]
		if names(a, raw.Rows[s.Target]) {
			p.a = append(p.a, s)
		}
		if names(b, raw.Rows[s.Target]) {
			p.b = append(p.b, s)
		}
		rounds[s.Round], last = p, max(last, s.Round)
		if len(p.a)+len(p.b) > len(most.a)+len(most.b) {
			most = p
		}
	}
	for from := 1; from <= last; from += perDot {
		p := roundPoint{from: from, to: min(from+perDot-1, last)}
		for round := p.from; round <= p.to; round++ {
			r := rounds[round]
			if len(r.a)+len(r.b) < len(most.a)+len(most.b) {
				continue
			}
			sumSlices(&p.a, r.a)
			sumSlices(&p.b, r.b)
		}
		if p.a.Requests > 0 && p.b.Requests > 0 {
			out = append(out, p)
		}
	}
	return out
}

func sumSlices(sum *record.Slice, all []record.Slice) {
	for _, s := range all {
		sum.Requests += s.Requests
		sum.ClosedNs += s.ClosedNs - s.OpenedNs
		sum.CPUNs += s.CPUNs
	}
}

// sliceValue returns a metric of a sum of slices, whose ClosedNs is the length of its windows.
func sliceValue(s record.Slice, name string) float64 {
	if name == metric.CPU {
		return metric.Positive(float64(s.CPUNs) / float64(s.Requests))
	}
	return metric.Positive(float64(s.Requests) * 1e9 / float64(s.ClosedNs))
}

func (p roundPoint) title() string {
	if p.from == p.to {
		return fmt.Sprintf("round %d", p.from)
	}
	return fmt.Sprintf("rounds %d–%d", p.from, p.to)
}

// roundStrip draws the ratio of a target to its reference: a row for each start, with its rounds,
// and one for all starts together.
func roundStrip(sc *table.Scenario, t *table.Target, m table.Metric, perDot int) (strip, bool) {
	reference := sc.Target(t.Reference)
	byStart := map[int]float64{}
	var edges []float64
	points := map[int][]roundPoint{}
	for _, raw := range sc.Starts.Raw {
		byStart[raw.Block] = sc.StartRatio(reference, t, m.Load, m.Name, raw.Block)
		points[raw.Block] = pointsOf(raw, sc.Instances(reference, t),
			sc.Instances(t, reference), perDot)
		var ratios []float64
		for _, p := range points[raw.Block] {
			ratios = append(ratios, p.ratio(m.Name))
		}
		ratios = slices.DeleteFunc(ratios, func(x float64) bool { return !units.Known(x) })
		slices.Sort(ratios)
		if n := len(ratios); n > 0 { // a few stray rounds may lie beyond the edge
			edges = append(edges, ratios[n/20], ratios[n-1-n/20])
		}
		edges = append(edges, byStart[raw.Block])
	}
	edges = slices.DeleteFunc(append(edges, m.Ratio.Lo, m.Ratio.Hi, m.Ratio.Center),
		func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
	if len(edges) == 0 {
		return strip{}, false
	}
	lo, hi := slices.Min(edges)/1.005, slices.Max(edges)*1.005
	r := ruler{lo, hi, true}
	s := strip{Name: "start", Axis: t.Name + " over " + t.Reference + ", logarithmic",
		Caption: fmt.Sprintf("%s of %s divided by %s, by start and round",
			metricName(m.Name, m.Unit),
			t.Name, t.Reference),
		Value: "ratio, interval", Ticks: r.marks(ratioText), Class: "forest rounds",
		Says: roundsSay(t, m)}
	if r.beyond(1) == "" {
		s.Mark = r.place(1)
	}
	var g stripGroup
	for _, raw := range sc.Starts.Raw {
		ratio := byStart[raw.Block]
		if !units.Known(ratio) {
			continue
		}
		row := ratioRow(fmt.Sprintf("start %d", raw.Block), stats.Ratio{Center: ratio,
			Lo: math.NaN(), Hi: math.NaN()}, r)
		row.Dots = roundDots(points[raw.Block], r, func(p roundPoint) (float64, string) {
			return p.ratio(m.Name), units.Change(p.ratio(m.Name))
		})
		g.Rows = append(g.Rows, row)
	}
	sum := ratioRow("all starts", *m.Ratio, r)
	sum.Class = "sum"
	s.Groups = []stripGroup{g, {Rows: []stripRow{sum}}}
	return s, true
}

// ratio returns the ratio of b to a in a metric.
func (p roundPoint) ratio(name string) float64 {
	return sliceValue(p.b, name) / sliceValue(p.a, name)
}

// roundDots positions rounds, the first above and the last below. It leaves out rounds beyond the
// axis, because a dot at the edge would show a wrong value.
func roundDots(points []roundPoint, r ruler, value func(roundPoint) (float64, string),
) (out []stripDot) {
	last := 1
	for _, p := range points {
		last = max(last, p.from)
	}
	for _, p := range points {
		x, text := value(p)
		if !units.Known(x) || r.beyond(x) != "" {
			continue
		}
		out = append(out, stripDot{X: r.place(x), Y: blockPlace(p.from, last),
			Title: p.title() + ": " + text})
	}
	return out
}

func roundsSay(t *table.Target, m table.Metric) string {
	text := fmt.Sprintf("%s of %s is %s times that of %s: %s", metricName(m.Name, m.Unit), t.Name,
		ratioText(m.Ratio.Center), t.Reference, units.Change(m.Ratio.Center))
	if m.Ratio.HasInterval() {
		text += " (" + compare.Interval(*m.Ratio) + ")"
	}
	return text + "."
}

// speedStrip draws the machine's speed: the reference's rate by round.
func speedStrip(sc *table.Scenario, reference *table.Target, perDot int) *strip {
	if reference == nil {
		return nil
	}
	alone := []*table.Target{reference}
	points := map[int][]roundPoint{}
	var rates []float64
	for _, raw := range sc.Starts.Raw {
		points[raw.Block] = pointsOf(raw, alone, alone, perDot)
		for _, p := range points[raw.Block] {
			rates = append(rates, sliceValue(p.a, metric.Throughput))
		}
	}
	if len(rates) == 0 {
		return nil
	}
	slices.Sort(rates)
	r := ruler{0, rates[len(rates)-1] * 1.02, false}
	s := &strip{Caption: "The machine's speed: requests/s of " + reference.Name + " by round",
		Name: "start", Axis: "requests/s of " + reference.Name, Value: "lowest to highest round",
		Ticks: r.marks(onAxis(units.Rate)), Class: "rounds",
		Says: fmt.Sprintf("The same program, %s, served between %s/s and %s/s in 9 of 10 rounds: "+
			"this is the machine's speed, which cancels in the ratios above.", reference.Name,
			units.Rate(rates[len(rates)/20]), units.Rate(rates[len(rates)-1-len(rates)/20]))}
	var g stripGroup
	for _, raw := range sc.Starts.Raw {
		var served []float64
		row := stripRow{Name: fmt.Sprintf("start %d", raw.Block)}
		row.Dots = roundDots(points[raw.Block], r, func(p roundPoint) (float64, string) {
			rate := sliceValue(p.a, metric.Throughput)
			served = append(served, rate)
			return rate, units.Rate(rate) + "/s"
		})
		if len(served) > 0 {
			row.Text = strings.Join([]string{units.Rate(slices.Min(served)),
				units.Rate(slices.Max(served))}, " – ")
		}
		g.Rows = append(g.Rows, row)
	}
	s.Groups = []stripGroup{g}
	return s
}
