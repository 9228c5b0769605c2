package summary

import (
	"fmt"
	"math"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// confidence is the confidence level of all intervals here.
const confidence = 0.95

// proseWidth is the number of columns at which a sentence beside the names wraps.
const proseWidth = 85

// longer is the flag that gives a load more responses.
const longer = "--duration"

// Percentile is a percentile with its interval in JSON: docs/formats/load-json.md.
type Percentile struct {
	Distribution string   `json:"distribution"` // the distribution's field in the load
	Name         string   `json:"name"`         // "p99"
	Quantile     float64  `json:"quantile"`
	Ns           *float64 `json:"ns"` // null if withheld
	LoNs         *float64 `json:"loNs"`
	HiNs         *float64 `json:"hiNs"`
	Confidence   float64  `json:"confidence"`
	Answers      int64    `json:"answers"`
	Independent  int64    `json:"independent"` // equivalent number of independent answers
	Assumption   string   `json:"assumption"`  // "nothing", or "independence" if it is unknown
	Withheld     string   `json:"withheld,omitempty"`
}

// percentiles returns a load's percentiles, or why they are withheld.
func percentiles(r Report) []Percentile {
	l, out := r.Load, []Percentile{}
	above := verdict.Withheld(r.Verdict, l.Name)
	for _, c := range []column{
		{"responseTime", &l.ResponseTime, true}, {"serviceTime", &l.ServiceTime, true},
		{"firstByte", &l.FirstByte, true}, {"flowTime", &l.FlowTime, true},
	} {
		if c.dist.Count == 0 {
			continue
		}
		for _, p := range c.percentiles(l) {
			share, present := l.Autocorrelation.Worth()
			q := Percentile{
				Distribution: c.name, Name: p.Name, Quantile: p.Q, Confidence: confidence,
				Answers: c.dist.Count, Independent: int64(share * float64(c.dist.Count)),
				Assumption: "nothing", Withheld: p.Refusal(longer, l.WindowNs),
			}
			if !present {
				q.Assumption = "independence"
			}
			if above != nil {
				w := wording.Finding(*above)
				q.Withheld = above.Rule + ": " + w.Observed + "; " + w.Hint
			}
			if q.Withheld == "" {
				q.Ns, q.LoNs, q.HiNs = format.Finite(p.Ns), format.Finite(p.Lo), format.Finite(p.Hi)
			}
			out = append(out, q)
		}
	}
	return out
}

// column is a distribution with its name. Percentiles of what users wait for have intervals; a
// number is sufficient for the generator's own send delay.
type column struct {
	name     string
	dist     *record.Dist
	interval bool
}

// latency prints the distributions side by side. If requests are due when their connection is free,
// response and service time are equal and have no lag.
func (p *page) latency(l *record.Load) {
	columns := []column{{"service", &l.ServiceTime, true}}
	if l.Model == record.Open || l.Lag.Count > 0 {
		columns = []column{{"response", &l.ResponseTime, true}, {"service", &l.ServiceTime, true},
			{"lag", &l.Lag, false}}
	}
	if l.FlowTime.Count > 0 {
		columns = append(columns, column{"flow", &l.FlowTime, true})
	}
	names := []string{"latency"}
	for _, q := range table.Percentiles(l, &l.ResponseTime, confidence) {
		names = append(names, q.Name)
	}
	blocks := [][]string{append(names, "max", "mean", "count")}
	var requested refusals
	for _, c := range columns {
		blocks = append(blocks, c.lines(l, &requested))
	}
	grid := make([][]string, len(blocks[0]))
	for i := range grid {
		for _, b := range blocks {
			grid[i] = append(grid[i], b[i])
		}
	}
	p.grid(grid)
	p.worth(l, columns)
	for _, text := range requested.texts(columns) {
		p.row("", "%s", text)
	}
	p.stalls(l)
	if l.Model == record.Closed {
		p.row("", "in a closed load, requests wait for the server, so these times are not those "+
			"of users")
	}
}

// percentiles returns a column's percentiles. Only response times are autocorrelated.
func (c column) percentiles(l *record.Load) []table.Percentile {
	if !c.interval {
		return table.PercentilesOf(c.dist, 1, confidence)
	}
	return table.Percentiles(l, c.dist, confidence)
}

// lines returns a column from its heading to its count, padded to equal width.
func (c column) lines(l *record.Load, requested *refusals) []string {
	cells := []cell{{number: c.name}}
	for _, q := range c.percentiles(l) {
		x := cellOf(q)
		if !c.interval {
			x.interval = ""
		} else if q.Refused() && c.dist.Count > 0 {
			requested.add(q, c.name, q.Refusal(longer, l.WindowNs))
		}
		cells = append(cells, x)
	}
	most, mean := units.Absent, units.Absent
	if c.dist.Count > 0 {
		most, mean = units.KnownDuration(c.dist.MaxNs), units.KnownDuration(c.dist.MeanNs)
	}
	return beside(append(cells, cell{number: most}, cell{number: mean},
		cell{number: units.Count(c.dist.Count)}))
}

// cell is a percentile and its interval as text; a dash if it is refused.
type cell struct{ number, interval string }

func cellOf(q table.Percentile) cell {
	switch {
	case q.Refused() || math.IsNaN(q.Ns):
		return cell{units.Absent, ""}
	case !q.HasInterval():
		return cell{units.KnownDuration(q.Ns), ""}
	}
	return cell{units.KnownDuration(q.Ns), units.Ends(q.Ns, q.Lo, q.Hi)}
}

// beside aligns numbers to the right and the texts after them to the left, to equal width.
func beside(cells []cell) []string {
	var numbers, ends []string
	for _, c := range cells {
		numbers, ends = append(numbers, c.number), append(ends, c.interval)
	}
	out, tails := format.PadAll(numbers, format.Right), format.PadAll(ends, format.Left)
	for i := range out {
		if tails[i] != "" {
			out[i] += " " + tails[i]
		}
	}
	return out
}

// nameWidth is the smallest width of a grid's first column: the width of names beside sentences.
const nameWidth = 12

func (p *page) grid(rows [][]string) {
	rows[0][0] = format.Pad(rows[0][0], nameWidth, format.Left)
	p.WriteString(format.Grid("  ", rows, format.Left, format.Right))
}

// worth prints what the intervals mean, if any exist.
func (p *page) worth(l *record.Load, columns []column) {
	some := false
	for _, c := range columns {
		for _, q := range c.percentiles(l) {
			some = some || c.interval && q.HasInterval()
		}
	}
	if !some {
		return
	}
	text := "[95 % intervals] for this window"
	switch share, present := l.Autocorrelation.Worth(); {
	case !present:
		text += "; the intervals assume that responses are independent"
	case share < 1:
		n := l.ResponseTime.Count
		text += fmt.Sprintf("; the %s responses are worth %s independent ones", units.Count(n),
			units.Count(int64(share*float64(n))))
	}
	p.row("", "%s", text)
}

// refusals lists what percentiles without an interval need, once for each percentile: the needs of
// the column with the fewest responses are sufficient for the others.
type refusals []refusal

type refusal struct {
	table.Percentile
	why     string
	columns []string
}

func (r *refusals) add(q table.Percentile, column, why string) {
	for i := range *r {
		a := &(*r)[i]
		if a.Name != q.Name {
			continue
		}
		a.columns = append(a.columns, column)
		if q.Had < a.Had {
			a.Percentile, a.why = q, why
		}
		return
	}
	*r = append(*r, refusal{q, why, []string{column}})
}

// texts returns the refusals, with the columns unless they are all that have intervals.
func (r refusals) texts(columns []column) []string {
	all := 0
	for _, c := range columns {
		if c.interval && c.dist.Count > 0 {
			all++
		}
	}
	var out []string
	for _, a := range r {
		subject := ""
		if len(a.columns) < all {
			subject = " of " + strings.Join(a.columns, " and ")
		}
		text := a.Name + subject + ": " + a.why
		if head, hint, ok := strings.Cut(text, " ("); ok && len(text) > proseWidth {
			out, text = append(out, head), "("+hint
		}
		out = append(out, text)
	}
	return out
}

// dist prints a distribution on one line, if it is not empty: its median, and the highest
// percentile that has enough responses.
func (p *page) dist(name string, d *record.Dist, share float64) {
	if d.Count == 0 {
		return
	}
	var words []string
	qs := table.PercentilesOf(d, share, confidence)
	tail := qs[2]
	if tail.Refused() {
		tail = qs[1]
	}
	for _, q := range []table.Percentile{qs[0], tail} {
		if q.Refused() {
			continue
		}
		c := cellOf(q)
		words = append(words, strings.TrimSpace(q.Name+" "+c.number+" "+c.interval))
	}
	words = append(words, "max "+units.KnownDuration(d.MaxNs))
	p.row(name, "%s of %s", strings.Join(words, ", "), units.Count(d.Count))
}

// routes prints a row for each kind of request or step of a flow.
func (p *page) routes(l *record.Load, withheld bool) {
	grid := [][]string{{"route", "sent", "answered", "failed", "p50", "p99", "max"}}
	p50, p99 := []cell{{number: "p50"}}, []cell{{number: "p99"}}
	for i := range l.Routes {
		r := &l.Routes[i]
		middle, tail, most := cell{number: units.Absent}, cell{number: units.Absent}, units.Absent
		if !withheld {
			qs := table.RoutePercentiles(l, r, confidence)
			middle, tail = cellOf(qs[0]), cellOf(qs[2])
			if qs[2].Needs > 0 {
				tail.interval = fmt.Sprintf("(needs n ≥ %s)", units.Count(qs[2].Needs))
			}
			most = units.KnownDuration(r.ResponseTime.MaxNs)
		}
		p50, p99 = append(p50, middle), append(p99, tail)
		grid = append(grid, []string{r.Name, units.Count(r.Sent), units.Count(r.Answered),
			units.Count(r.Failed), "", "", most})
	}
	middles, tails := beside(p50), beside(p99)
	for i, row := range grid {
		row[4], row[5] = middles[i], tails[i]
	}
	p.grid(grid)
}
