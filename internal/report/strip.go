package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// A strip figure is a table whose middle column is drawn: a row has an interval, a center and a dot
// per trial, on an axis that all rows share. It is markup with positions in percent, so it needs no
// script, fits any width, prints well and reads as a table.

type strip struct {
	Caption string // the subject of the drawing
	Says    string // the finding in words
	Name    string // heading of the names
	Axis    string // heading of the drawing, with the unit
	Value   string // heading of the numbers
	Ticks   []tick
	Mark    string // position of a line through all rows; empty: none
	Groups  []stripGroup
	Blocks  int // dots are placed from block 1, above, to the last, below
	Class   string
}

type tick struct{ At, Text, Anchor string }

type shade struct{ From, Width string }

type stripGroup struct {
	Title string
	Ramp  int
	Rows  []stripRow
}

type stripRow struct {
	Name, Note  string
	Center      string // position; empty: none
	From, Width string // of the interval; empty: none
	Dots        []stripDot
	Text, Range string
	Class       string
	Shade       *shade // an allowed range
	Beyond      string // "start" or "end" if the center lies beyond that end of the axis
	CutLo       bool   // the interval continues beyond the axis' start, or its end
	CutHi       bool
}

type stripDot struct {
	X, Y, Title string
	Hollow      bool
}

// mostCircles is how many dots of a figure are elements, whose titles a mouse shows. More dots are
// drawn as paths, because a page of many elements is slow.
const mostCircles = 300

// Many reports whether dots are drawn as paths.
func (s strip) Many() bool {
	n := 0
	for _, g := range s.Groups {
		for _, r := range g.Rows {
			n += len(r.Dots)
		}
	}
	return n > mostCircles
}

// dotPath draws dots of a row in a box of 100 × 100: each is a line without length, whose round
// ends are the dot.
type dotPath struct {
	D     string
	Inner bool // the hole of hollow dots
}

// dotLayers is the number of paths of a row. Dots of different paths that lie on each other look
// darker, as single dots do.
const dotLayers = 4

// Paths returns a row's dots as paths.
func (r stripRow) Paths() (paths []dotPath) {
	for _, hollow := range []bool{false, true} {
		layers := make([]strings.Builder, dotLayers)
		n := 0
		for _, d := range r.Dots {
			if d.Hollow == hollow {
				fmt.Fprintf(&layers[n%dotLayers], "M%s %sh0", strings.TrimSuffix(d.X, "%"),
					strings.TrimSuffix(d.Y, "%"))
				n++
			}
		}
		for i := range min(n, dotLayers) {
			paths = append(paths, dotPath{layers[i].String(), false})
			if hollow {
				paths = append(paths, dotPath{layers[i].String(), true})
			}
		}
	}
	return paths
}

// ruler converts values to positions. The ends keep a distance to the cell's edges.
type ruler struct {
	lo, hi float64
	log    bool
}

const rulerMargin = 2.0 // percent, on either side

// intervalRoom is the factor by which an axis may exceed the largest trial to show an interval.
const intervalRoom = 1.3

// farthest is the largest ratio of forest plots.
const farthest = 2.0

// span returns a ruler for values; wide ranges and ratios have logarithmic axes, others start at
// zero.
func span(values []float64, ratio bool) ruler {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	switch {
	case hi < lo:
		return ruler{0, 1, false}
	case ratio:
		// The axis includes 1, and differences of a per mille look small.
		lo, hi = min(lo, 1/1.02), max(hi, 1.02)
		// A ratio of fifty would press all others into one line, so the text has it instead.
		lo, hi = max(lo, 1/farthest), min(hi, farthest)
		grow := math.Pow(hi/lo, 0.04)
		return ruler{lo / grow, hi * grow, true}
	case hi/lo > 30:
		return ruler{lo / 1.2, hi * 1.2, true}
	}
	return ruler{0, hi, false}
}

// at returns a value's position in percent; values beyond an end lie on it.
func (r ruler) at(v float64) float64 {
	share := (v - r.lo) / (r.hi - r.lo)
	if r.log {
		share = math.Log(v/r.lo) / math.Log(r.hi/r.lo)
	}
	return rulerMargin + (100-2*rulerMargin)*min(max(share, 0), 1)
}

// beyond returns the end that a value lies beyond, or "" if it is on the axis.
func (r ruler) beyond(v float64) string {
	switch {
	case v < r.lo:
		return "start"
	case v > r.hi:
		return "end"
	}
	return ""
}

func place(percent float64) string { return strconv.FormatFloat(percent, 'f', 2, 64) + "%" }

func (r ruler) place(v float64) string { return place(r.at(v)) }

// between returns an interval's position and width.
func (r ruler) between(lo, hi float64) (from, width string) {
	a, b := r.at(lo), r.at(hi)
	return place(a), place(b - a)
}

const mostTicks = 6

// ticks returns round values between the ends, at most mostTicks of them.
func (r ruler) ticks() []float64 {
	if r.log && r.hi/r.lo > 5 {
		return r.decades()
	}
	step := math.Pow(10, math.Floor(math.Log10((r.hi-r.lo)/2)))
	for _, m := range []float64{1, 2, 5, 10, 20} {
		if (r.hi-r.lo)/(m*step) < mostTicks {
			step *= m
			break
		}
	}
	var out []float64
	for k := math.Ceil(r.lo / step); k*step <= r.hi*(1+1e-9); k++ {
		out = append(out, k*step)
	}
	return out
}

// decades returns 1, 2 and 5 times the powers of ten, or only the powers if there would be too
// many.
func (r ruler) decades() []float64 {
	var out []float64
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		out = out[:0]
		for e := math.Floor(math.Log10(r.lo)); e <= math.Ceil(math.Log10(r.hi)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= r.lo && v <= r.hi {
					out = append(out, v)
				}
			}
		}
		if len(out) <= mostTicks {
			break
		}
	}
	return out
}

// marksIn returns the ticks of a metric's axis, for bytes round in KiB, MiB or GiB.
func (r ruler) marksIn(base string) []tick {
	print := onAxis(units.Printer(base))
	if base != units.Octet {
		return r.marks(print)
	}
	scale := 1.0
	for r.hi/scale >= 1024 {
		scale *= 1024
	}
	values := ruler{r.lo / scale, r.hi / scale, r.log}.ticks()
	for i := range values {
		values[i] *= scale
	}
	return r.marksAt(values, print)
}

func (r ruler) marks(print func(float64) string) []tick { return r.marksAt(r.ticks(), print) }

func (r ruler) marksAt(values []float64, print func(float64) string) []tick {
	var out []tick
	for _, v := range values {
		t := tick{At: r.place(v), Text: print(v), Anchor: "middle"}
		switch position := r.at(v); {
		case position < 6:
			t.Anchor = "start"
		case position > 94:
			t.Anchor = "end"
		}
		out = append(out, t)
	}
	return out
}

// onAxis removes unnecessary zeros on an axis: 20.0k becomes 20k.
func onAxis(print func(float64) string) func(float64) string {
	return func(v float64) string {
		text := print(v)
		if v == 0 {
			return "0"
		}
		number := strings.TrimRight(text, " µnmskMGKiB%")
		if tail := text[len(number):]; strings.Contains(number, ".") {
			return strings.TrimRight(strings.TrimRight(number, "0"), ".") + tail
		}
		return text
	}
}

// dots positions a metric's trials, block by block, or start by start, downwards.
func dots(points []table.Point, blocks int, repeat string, r ruler, print func(float64) string,
) []stripDot {
	var out []stripDot
	for _, p := range points {
		if !units.Known(p.Value) {
			continue // 0/0, of a record that contradicts itself, has no position
		}
		d := stripDot{X: r.place(p.Value), Y: blockPlace(p.Block, blocks),
			Title:  fmt.Sprintf("%s %d: %s", repeat, p.Block, print(p.Value)),
			Hollow: p.Verdict != "VALID"}
		if d.Hollow {
			d.Title += ", " + pointMark(p.Verdict)
		}
		out = append(out, d)
	}
	return out
}

// pointMark describes a trial that is not VALID.
func pointMark(verdict string) string {
	if verdict == record.Suspect {
		return "with findings"
	}
	return verdict
}

// blockPlace returns the height of a block's dots in a row.
func blockPlace(block, blocks int) string {
	if blocks < 2 {
		return "50%"
	}
	return place(16 + 68*float64(block-1)/float64(blocks-1))
}

// metricRow returns a target's row.
func metricRow(name string, m table.Metric, r ruler, blocks int, repeat string) stripRow {
	print := units.Printer(m.Unit)
	row := stripRow{Name: name, Dots: dots(m.Points, blocks, repeat, r, print)}
	if m.Doubt == nil { // the findings move the number by less than its interval
		for i := range row.Dots {
			row.Dots[i].Hollow = false
		}
	}
	s := m.Summary
	if !m.Known() || math.IsNaN(s.Center) {
		row.Text, row.Range, row.Class = units.Absent, m.Withheld.String(), "withheld"
		row.Dots = nil
		return row
	}
	row.Center, row.Text = r.place(s.Center), print(s.Center)
	if s.HasInterval() {
		row.interval(s.Lo, s.Hi, r, print)
		if table.Wide(s.Lo, s.Hi) { // as the tables have it
			row.Range = unknownInterval
		}
	}
	return row
}

// unknownInterval replaces an interval that is too wide to be printed.
const unknownInterval = "interval unknown"

func (row *stripRow) interval(lo, hi float64, r ruler, print func(float64) string) {
	row.From, row.Width = r.between(lo, hi)
	row.CutLo, row.CutHi = r.beyond(lo) == "start", r.beyond(hi) == "end"
	row.Range = print(lo) + " – " + print(hi)
}

// metricStrip draws one metric of all targets, in their order and, if it ranks, in their tiers.
func metricStrip(sc *table.Scenario, load, metric string, blocks int) (strip, bool) {
	var all, observed []float64
	base, title := "", loadName(sc, load)
	for _, t := range sc.Targets {
		if m, ok := t.Metric(load, metric); ok && m.Known() {
			base = m.Unit
			observed = append(observed, m.Summary.Center)
			all = append(all, m.Summary.Lo, m.Summary.Hi)
			for _, p := range m.Points {
				observed = append(observed, p.Value)
			}
		}
	}
	if len(observed) == 0 {
		return strip{}, false
	}
	// An interval from two trials may be extremely wide; it ends at the edge.
	all = append(all, observed...)
	// cmp.Compare orders NaN below every number.
	most := min(slices.MaxFunc(all, cmp.Compare[float64]), intervalRoom*slices.Max(observed))
	r := span(slices.DeleteFunc(all, func(x float64) bool { return !(x <= most) }), false)
	name, scale := metricName(metric, base), ""
	if base == units.PerS { // the small differences of the best targets matter in a ranking
		r, scale = ruler{0, most, false}, ", requests/s"
	}
	if r.log {
		scale += ", logarithmic"
	}
	ranks := load == sc.Ranking.Load && metric == sc.Ranking.Metric
	s := strip{Caption: name + title, Name: "target", Blocks: blocks, Axis: name + scale,
		Value: "median, interval", Ticks: r.marksIn(base)}
	tier := -1
	for _, t := range sc.Targets {
		m, ok := t.Metric(load, metric)
		if !ok {
			continue
		}
		if len(s.Groups) == 0 || ranks && t.Tier != tier {
			s.Groups = append(s.Groups, stripGroup{})
			tier = t.Tier
		}
		g := &s.Groups[len(s.Groups)-1]
		g.Rows = append(g.Rows, metricRow(t.Name, m, r, blocks, sc.Starts.Repeat()))
		if ranks {
			g.Title, g.Ramp = tierTitle(t.Tier, len(g.Rows)), min(t.Tier, tierColors)
		}
	}
	s.thin()
	return s, true
}

func tierTitle(tier, rows int) string {
	switch {
	case tier == 0:
		return "not ranked"
	case rows == 1:
		return fmt.Sprintf("tier %d", tier)
	}
	return fmt.Sprintf("tier %d · no significant difference", tier)
}

// metricName returns a metric's name for people.
func metricName(name, base string) string { return metric.Named(name, base).Label }

func loadName(sc *table.Scenario, load string) string {
	if l := sc.Load(load); l.Name != "" {
		return " at " + l.Title
	}
	return ""
}
