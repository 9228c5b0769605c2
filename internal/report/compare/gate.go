package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Limit is the largest allowed change for the worse of a metric.
type Limit struct {
	Load   string  // empty: under any load
	Metric string  // empty: the ranking metric
	Most   float64 // 0.05: throughput may fall by 5 %, a latency may rise by 5 %
}

// Gate is a decision about a comparison: the worst of its checks.
type Gate struct {
	Outcome    string // stats.Pass, stats.Fail, stats.Inconclusive or InsufficientData
	More       int    // if inconclusive: approximate number of blocks that would decide; 0: unknown
	Checks     []Check
	Comparison Comparison
}

// InsufficientData is the outcome of a gate without usable numbers: trials are INVALID or failed,
// or there are too few starts or blocks for an interval.
const InsufficientData = "insufficient data"

// Check is a gate's decision about one metric.
type Check struct {
	Pair    *Pair
	Row     *Row
	Most    float64
	Outcome string
	More    int
	Why     string // a sentence
	// FailsWithStalls marks a check that passes, but would fail if the machine's stalls counted.
	FailsWithStalls bool
}

// WarnOfStalls marks the checks that pass only without the machine's stalls. Raw is the same gate
// with stalls (table.KeepStalls).
func (g *Gate) WarnOfStalls(raw Gate) {
	for i := range g.Checks {
		k := &g.Checks[i]
		for _, x := range raw.Checks {
			same := k.Pair.Scenario == x.Pair.Scenario && k.Pair.A.Target == x.Pair.A.Target &&
				k.Pair.B.Target == x.Pair.B.Target && k.Row.Load == x.Row.Load &&
				k.Row.Metric == x.Row.Metric
			if same && k.Outcome == stats.Pass && x.Outcome == stats.Fail && !k.FailsWithStalls {
				k.FailsWithStalls = true
				k.Why += fmt.Sprintf("; including the machine's stalls (--stalls keep), it "+
					"changed by %s and would fail", changeText(*x.Row))
			}
		}
	}
}

// ParseLimits parses the metrics and limits of a gate: metrics such as "throughput" or "half/p99",
// and limits such as "5%", for all metrics, or "p99=10%", for one metric, which it also adds. The
// default limit is 5 %.
func ParseLimits(metrics, limits []string) ([]Limit, error) {
	const usual = 0.05
	most := usual
	var out []Limit
	var names []string
	for _, text := range limits {
		name, value, named := strings.Cut(text, "=")
		if !named {
			name, value = "", text
		}
		x, err := ParsePercent(value)
		switch {
		case err != nil:
		case named && name == "":
			err = errors.New("a metric is missing before =")
		case slices.Contains(names, name):
			err = errors.New("there is another limit for the same metrics")
		}
		names = append(names, name)
		if err != nil {
			return nil, fmt.Errorf("read limit %q: %w; write a limit such as 5%% or p99=10%%",
				text, err)
		}
		if !named {
			most = x
			continue
		}
		out = append(out, limitOf(name, x))
	}
	for _, name := range metrics {
		l := limitOf(name, most)
		if !slices.ContainsFunc(out, func(x Limit) bool {
			return x.Load == l.Load && x.Metric == l.Metric
		}) {
			out = append(out, l)
		}
	}
	if len(metrics) == 0 { // a limit for one metric keeps the checks of the others
		out = append([]Limit{{Most: most}}, out...)
	}
	return out, nil
}

func limitOf(name string, most float64) Limit {
	if load, metric, ok := strings.Cut(name, "/"); ok {
		return Limit{load, metric, most}
	}
	return Limit{"", name, most}
}

// ParsePercent parses a share such as "5%" or "0.05", at least 0 and below 1.
func ParsePercent(text string) (float64, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", digits)
	}
	if percent {
		x /= 100
	}
	if !(x >= 0 && x < 1) {
		return 0, fmt.Errorf("the limit must be at least 0%% and below 100%%")
	}
	return x, nil
}

// Judged returns the names of the rows of a comparison that these limits apply to, for
// Options.Metrics, so that a gate shows and corrects for no other rows.
func Judged(c Comparison, limits []Limit) (names []string, err error) {
	g, err := find(c, limits)
	return table.Distinct(g.Checks, func(k Check) string {
		return k.Row.Load + "/" + k.Row.Metric
	}), err
}

// DecidedLimits replaces the limit of the ranking metric by that of the metric that decided the
// comparison of a run, by its word in Decisive; empty: the ranking metric stays. If the metric has
// no row, the next one decides, as in the answer of the run.
func DecidedLimits(limits []Limit, c Comparison, word string) []Limit {
	if !slices.Contains(Decisive, word) {
		return limits
	}
	limits = slices.Clone(limits)
	for i := range limits {
		if limits[i].Metric != "" {
			continue
		}
		for _, name := range DecidedBy(word) {
			decided := limitOf(name, limits[i].Most)
			if slices.ContainsFunc(c.Pairs, func(p Pair) bool { return p.judges(decided) }) {
				limits[i] = decided
				break
			}
		}
	}
	return limits
}

// judges reports whether a pair has a number in the row of a limit.
func (p Pair) judges(l Limit) bool {
	return slices.ContainsFunc(p.Rows, func(r Row) bool {
		return r.Load == l.Load && r.Metric == l.Metric && r.HasRatio()
	})
}

// find returns the checks of the limits, without a decision.
func find(c Comparison, limits []Limit) (Gate, error) {
	g := Gate{Comparison: c}
	for _, l := range limits {
		before := len(g.Checks)
		for i := range c.Pairs {
			g.add(&c.Pairs[i], l)
		}
		if len(g.Checks) == before {
			return g, fmt.Errorf("gate: no metric is called %q; the metrics are %s",
				l.name(), known(c))
		}
	}
	return g, nil
}

// Judge decides whether B is a regression. Invalid is the number of INVALID or failed trials that a
// checked row may have lost before its numbers are unusable, because the excluded trials may be the
// worse ones.
//
// stats.Decide decides whether a metric passes, at the comparison's confidence. With several
// metrics, one of them fails only if it also fails at a confidence corrected for their number
// (Bonferroni), so that further metrics do not raise the rate of false alarms. Passing needs no
// correction, because all must pass (intersection-union; Berger, Technometrics 24, 1982).
func Judge(c Comparison, limits []Limit, invalid int) (Gate, error) {
	g, err := find(c, limits)
	if err != nil {
		return g, err
	}
	if len(c.Missing) > 0 {
		return g, fmt.Errorf("gate: not all rows can be judged: %s; name the rows to judge, such "+
			"as RUN:TARGET", strings.Join(c.Missing, "; "))
	}
	for i := range g.Checks {
		g.Checks[i].decide(c, len(g.Checks), invalid)
	}
	order := []string{stats.Pass, stats.Inconclusive, InsufficientData, stats.Fail}
	worst := 0
	for _, k := range g.Checks {
		worst = max(worst, slices.Index(order, k.Outcome))
	}
	g.Outcome = order[worst]
	for _, k := range g.Checks {
		if k.Outcome == stats.Inconclusive {
			g.More = max(g.More, k.More)
		}
	}
	return g, nil
}

func (l Limit) name() string {
	if l.Load != "" {
		return l.Load + "/" + l.Metric
	}
	return l.Metric
}

// add finds the rows that a limit applies to. The bare name of a latency means open loads if there
// are any, and bare throughput means closed ones: the others follow from the load.
func (g *Gate) add(p *Pair, l Limit) {
	var rows []*Row
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Metric == l.Metric && (l.Load == "" || r.Load == l.Load) {
			rows = append(rows, r)
		}
	}
	if l.Metric == "" {
		rows = ranking(p)
	}
	if l.Load == "" && l.Metric != "" {
		var loads []table.LoadInfo
		for _, r := range rows {
			loads = append(loads, table.LoadInfo{Name: r.Load, Model: r.Model})
		}
		rows = slices.DeleteFunc(rows, func(r *Row) bool {
			return !table.IsDefaultLoad(
				table.Metric{Name: r.Metric, Load: r.Load, Model: r.Model}, loads)
		})
	}
	for _, r := range rows {
		g.Checks = append(g.Checks, Check{Pair: p, Row: r, Most: l.Most})
	}
}

// ranking returns the row that ranks in tables: throughput of the first closed load, else a
// capacity, else p99 of the first open load.
func ranking(p *Pair) []*Row {
	for _, want := range []Row{{Model: record.Closed, Metric: metric.Throughput},
		{Model: record.Capacity, Metric: metric.Capacity},
		{Model: record.Open, Metric: "p99"}} {
		for i := range p.Rows {
			if r := &p.Rows[i]; r.Model == want.Model && r.Metric == want.Metric {
				return []*Row{r}
			}
		}
	}
	return nil
}

func known(c Comparison) string {
	var names []string
	for _, r := range c.each() {
		names = table.AddNew(names, r.Metric)
	}
	return strings.Join(names, ", ")
}

// decide sets the outcome and the reason.
func (k *Check) decide(c Comparison, checks, invalid int) {
	lost := max(k.lost(k.Pair.A, k.Row.A), k.lost(k.Pair.B, k.Row.B))
	switch {
	case k.Row.withheld():
		k.Outcome = InsufficientData
		k.Why = k.Row.Name() + ": " + k.Row.Text
		if lacking := lacks(*k.Row); len(lacking) > 0 && k.Row.Grade != record.Invalid {
			k.Why = lacking[0].say(k.Row.Name())
		}
	case lost > invalid:
		k.Outcome = InsufficientData
		k.Why = fmt.Sprintf("%s INVALID, failed or stopped, and these trials may be the slow "+
			"ones: fix the cause above, or allow them with --allow-invalid %d", were(lost), lost)
	case k.Row.Ratio == nil:
		k.exact()
	case !k.Row.HasRatio():
		k.Outcome = InsufficientData
		k.Why = "there is no interval: " + k.Row.Text
	default:
		k.test(c, checks)
	}
}

// lost returns the number of a subject's trials without a value in a row.
func (k *Check) lost(x Subject, v Value) int {
	n := x.Counts
	return n.Valid + n.Suspect + n.Invalid + n.Failed + n.Stopped - len(k.Row.pointsOf(v))
}

func were(n int) string {
	if n == 1 {
		return "1 trial of one side was"
	}
	return fmt.Sprintf("%d trials of one side were", n)
}

// exact decides for values without noise, such as sizes.
func (k *Check) exact() {
	loss := k.Row.Change()
	if k.Row.Better == Higher {
		loss = -loss
	}
	k.Outcome = stats.Pass
	if loss > k.Most {
		k.Outcome = stats.Fail
	}
	k.Why = fmt.Sprintf("%s has no noise and changed by %s", k.Row.Name(), changeText(*k.Row))
	if math.IsNaN(k.Row.Change()) {
		k.Why = k.Row.Name() + " is zero on both sides"
	}
}

// test decides by the interval.
func (k *Check) test(c Comparison, checks int) {
	ratio, most := upright(*k.Row.Ratio, k.Row.Better), k.Most
	if k.Row.Better == Lower {
		most = 1 - 1/(1+k.Most)
	}
	d := stats.Decide(ratio, most)
	beyond := d.Outcome == stats.Fail
	requested := 1 - (1-c.Confidence)/float64(checks)
	if beyond && checks > 1 {
		strict := k.Row.valueAt(requested)
		d = stats.Decide(upright(strict, k.Row.Better), most)
	}
	k.Outcome, k.More = d.Outcome, d.More
	limit := allowed(k.Most, k.Row.Better)
	name, change := k.Row.Name(), changeText(*k.Row)
	switch {
	case d.Outcome == stats.Inconclusive && beyond:
		k.Why = fmt.Sprintf("%s changed by %s, more than the allowed %s, but not significantly "+
			"at the %.4g %% confidence level that %d checks need; %s",
			name, change, limit, 100*requested,
			checks, k.more(c))
	case d.Outcome == stats.Pass:
		k.Why = fmt.Sprintf("%s changed by %s, within the allowed %s", name, change, limit)
	case d.Outcome == stats.Fail:
		k.Why = fmt.Sprintf("%s changed by %s, more than the allowed %s", name, change, limit)
	default:
		k.Why = fmt.Sprintf("%s changed by %s, but its confidence interval includes the allowed "+
			"%s; %s", name,
			change, limit, k.more(c))
	}
	if few := k.Row.fewStarts(); few.Is() {
		k.Why += "; " + few.String()
	}
	if k.Row.Grade == record.Suspect {
		k.Why += "; this ratio is SUSPECT: " + strings.Join(k.Row.Doubt.Rules, ", ")
	}
}

// upright inverts a ratio if lower is better.
func upright(r stats.Ratio, better string) stats.Ratio {
	if better == Lower {
		r.Center, r.Lo, r.Hi = 1/r.Center, 1/r.Hi, 1/r.Lo
	}
	return r
}

// allowed formats a limit with the sign of a change for the worse.
func allowed(most float64, better string) string {
	if better == Higher {
		return units.Change(1 - most)
	}
	return units.Change(1 + most)
}

// more describes how many further blocks would decide, and how long they would take.
func (k *Check) more(c Comparison) string {
	repeat, suffix, n := c.Repeat(), "", k.More
	blockTime := k.Pair.B.blockTime
	if !c.Paired {
		suffix, blockTime = " of each run", blockTime+k.Pair.A.blockTime
	}
	if n == stats.Unresolvable || n <= 0 {
		return fmt.Sprintf("no sensible number of %ss%s is likely to decide, because the change "+
			"is close to the limit", repeat, suffix)
	}
	text := "about " + units.Plural(n, "more "+repeat) + suffix
	if total := time.Duration(n) * blockTime; total >= time.Second {
		text += " (" + units.Roughly(total) + ")"
	}
	return text + " would decide in 8 of 10 cases"
}
