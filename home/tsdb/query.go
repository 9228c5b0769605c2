package tsdb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Point is a value at a moment.
type Point struct {
	Time  time.Time
	Value float64
}

// Row is one series of an answer.
type Row struct {
	Name   string // of the metric; empty if the query removed it
	Labels labels.Labels
	Points []Point // by time, at least one
	Last   float64
	Min    float64 // Min, Mean and Max skip values that are not finite; NaN if all are
	Mean   float64
	Max    float64
	Spark  string // the points as a row of blocks, from Min to Max; see spark
}

// Answer is the result of a query.
type Answer struct {
	Query    string
	From, To time.Time
	Step     time.Duration // 0: only at To
	Common   labels.Labels // labels of all rows, if there are several rows
	Rows     []Row         // sorted by labels
	Notes    []string      // warnings of the engine, and results that cannot be shown
}

// Window is the time range of a query.
type Window struct {
	From, To time.Time
	Step     time.Duration // 0: only at To
	// Trial excludes series whose label prony_trial has another value. Series without the label
	// stay.
	Trial string
}

// maxPoints is Prometheus' limit on the points of a range.
const maxPoints = 11_000

// StepFor returns a step for a time range: a second, or more if that would exceed maxPoints.
func StepFor(d time.Duration) time.Duration {
	least := (d / (maxPoints - 1)).Truncate(time.Second)
	if least*(maxPoints-1) < d {
		least += time.Second
	}
	return max(least, time.Second)
}

// Query evaluates PromQL over a window.
func (s *Store) Query(ctx context.Context, expr string, w Window) (*Answer, error) {
	if w.Step < 0 || w.To.Before(w.From) {
		return nil, fmt.Errorf("query from %s to %s in steps of %s: the time range is not valid",
			w.From,
			w.To, w.Step)
	}
	if w.Step > 0 && w.To.Sub(w.From)/w.Step > maxPoints {
		return nil, fmt.Errorf("query %s in steps of %s: the result would have more than %d "+
			"points; use a step of %s",
			w.To.Sub(w.From), w.Step, maxPoints, StepFor(w.To.Sub(w.From)))
	}
	var from storage.Queryable = s.db
	if w.Trial != "" {
		from = storage.QueryableFunc(func(from, to int64) (storage.Querier, error) {
			q, err := s.db.Querier(from, to)
			return onlyTrial{q, w.Trial}, err
		})
	}
	q, err := s.ask(ctx, from, nil, expr, w)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, r.Err)
	}
	a := &Answer{Query: expr, From: w.From, To: w.To, Step: w.Step}
	warnings, infos := r.Warnings.AsStrings(expr, 10, 10)
	a.Notes = append(warnings, infos...)
	a.take(r)
	return a, nil
}

func (s *Store) ask(ctx context.Context, of storage.Queryable, o promql.QueryOpts, expr string,
	w Window) (promql.Query, error) {
	if w.Step == 0 {
		return s.engine.NewInstantQuery(ctx, of, o, expr, w.To)
	}
	return s.engine.NewRangeQuery(ctx, of, o, expr, w.From, w.To, w.Step)
}

// QueryEnd evaluates PromQL at the end of a window or, if every series has ended by then, at the
// last step of the window with an answer.
func (s *Store) QueryEnd(ctx context.Context, expr string, w Window) (*Answer, error) {
	now := w
	now.Step = 0
	a, err := s.Query(ctx, expr, now)
	if err != nil || len(a.Rows) > 0 {
		return a, err
	}
	w.Step = cmp.Or(w.Step, StepFor(w.To.Sub(w.From)))
	// The last samples stored are the ends of the series, so look just before them.
	w.To = w.To.Add(-time.Millisecond)
	w.From = w.To.Add(-max(w.To.Sub(w.From), 0).Truncate(w.Step))
	course, err := s.Query(ctx, expr, w)
	if err != nil {
		return nil, err
	}
	var last time.Time
	for _, r := range course.Rows {
		if at := r.Points[len(r.Points)-1].Time; at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return a, nil
	}
	now.To = last
	return s.Query(ctx, expr, now)
}

// take copies the result, because the engine reuses its memory.
func (a *Answer) take(r *promql.Result) {
	histograms := 0
	switch v := r.Value.(type) {
	case promql.Matrix:
		for _, one := range v {
			histograms += len(one.Histograms)
			a.add(one.Metric, one.Floats)
		}
	case promql.Vector:
		for _, one := range v {
			if one.H != nil {
				histograms++
				continue
			}
			a.add(one.Metric, []promql.FPoint{{T: one.T, F: one.F}})
		}
	case promql.Scalar:
		a.add(labels.EmptyLabels(), []promql.FPoint{{T: v.T, F: v.V}})
	case promql.String:
		a.Notes = append(a.Notes, "the result is the text "+v.V)
	}
	if histograms > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d samples are native histograms, which are not "+
			"numbers; apply histogram_quantile or histogram_count to them", histograms))
	}
	slices.SortFunc(a.Rows, func(x, y Row) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), labels.Compare(x.Labels, y.Labels))
	})
	a.factor()
}

func (a *Answer) add(ls labels.Labels, ps []promql.FPoint) {
	if len(ps) == 0 {
		return
	}
	row := Row{
		Name:   ls.Get(labels.MetricName),
		Labels: labels.NewBuilder(ls).Del(labels.MetricName).Labels(),
	}
	values := make([]float64, 0, len(ps))
	for _, p := range ps {
		row.Points = append(row.Points, Point{time.UnixMilli(p.T).UTC(), p.F})
		values = append(values, p.F)
	}
	row.Last = values[len(values)-1]
	row.Min, row.Mean, row.Max = summary(values)
	row.Spark = spark(values, sparkWidth)
	a.Rows = append(a.Rows, row)
}

// factor moves labels that all rows share to Common.
func (a *Answer) factor() {
	if len(a.Rows) < 2 {
		return
	}
	b := labels.NewBuilder(a.Rows[0].Labels)
	a.Rows[0].Labels.Range(func(l labels.Label) {
		for _, r := range a.Rows[1:] {
			if r.Labels.Get(l.Name) != l.Value {
				b.Del(l.Name)
			}
		}
	})
	a.Common = b.Labels()
	for i := range a.Rows {
		b.Reset(a.Rows[i].Labels)
		a.Common.Range(func(l labels.Label) { b.Del(l.Name) })
		a.Rows[i].Labels = b.Labels()
	}
}

// summary returns minimum, mean and maximum of the finite values; NaN if there are none.
func summary(values []float64) (low, mean, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	n := 0.0
	for _, v := range values {
		if finite(v) {
			low, high = min(low, v), max(high, v)
			n++
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	for _, v := range values {
		if finite(v) {
			mean += v / n // a sum of large values might overflow
		}
	}
	return low, mean, high
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

const sparkWidth = 24

var blocks = []rune("▁▂▃▄▅▆▇█")

// spark draws values in at most width blocks, each the mean of its values; a blank is not finite.
// Equal values are all lowest blocks.
func spark(values []float64, width int) string {
	width = min(width, len(values))
	means := make([]float64, width)
	for i := range means {
		part := values[i*len(values)/width : (i+1)*len(values)/width]
		_, means[i], _ = summary(part)
	}
	low, _, high := summary(means)
	var b strings.Builder
	for _, m := range means {
		switch {
		case !finite(m):
			b.WriteRune(' ')
		case high/2 == low/2: // or too close for a difference
			b.WriteRune(blocks[0])
		default:
			// Halved, because the difference of two finite numbers may overflow.
			share := (m/2 - low/2) / (high/2 - low/2)
			b.WriteRune(blocks[int(share*float64(len(blocks)-1)+0.5)])
		}
	}
	return b.String()
}

// Listed is a metric in the result of List.
type Listed struct {
	Family
	Series int // with this name
}

// List returns all metrics, sorted by name, with the number of their series and their family.
func (s *Store) List(ctx context.Context) ([]Listed, error) {
	q, err := s.db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, fmt.Errorf("list metrics: %w", err)
	}
	defer q.Close()
	counts := map[string]int{}
	set := q.Select(ctx, false, nil,
		labels.MustNewMatcher(labels.MatchNotEqual, labels.MetricName, ""))
	for set.Next() {
		counts[strings.Clone(set.At().Labels().Get(labels.MetricName))]++
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("list metrics: %w", err)
	}
	out := make([]Listed, 0, len(counts))
	for name, n := range counts {
		f, _ := s.families.of(name)
		f.Name = name
		out = append(out, Listed{Family: f, Series: n})
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// onlyTrial selects the series of one trial, and those without a trial.
type onlyTrial struct {
	storage.Querier
	id string
}

func (t onlyTrial) Select(ctx context.Context, sorted bool, hints *storage.SelectHints,
	ms ...*labels.Matcher) storage.SeriesSet {
	ms = append(slices.Clone(ms), labels.MustNewMatcher(labels.MatchRegexp, LabelTrial,
		"|"+regexp.QuoteMeta(t.id)))
	return ofOne{t.Querier.Select(ctx, sorted, hints, ms...), t.id}
}

// ofOne skips Prony's own series of other trials.
type ofOne struct {
	storage.SeriesSet
	id string
}

func (s ofOne) Next() bool {
	for s.SeriesSet.Next() {
		ls := s.At().Labels()
		of := ls.Get("trial")
		if of == "" || of == s.id || !strings.HasPrefix(ls.Get(labels.MetricName), ownPrefix) {
			return true
		}
	}
	return false
}

// ownPrefix is the prefix of Prony's own metrics, whose trial is in the label "trial".
const ownPrefix = "prony_"
