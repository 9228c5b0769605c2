package table

import (
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// shown lists the percentiles that are metrics.
var shown = metric.Percentiles()

// Percentile is one percentile of one trial, in ns, with its interval by order statistics. The
// interval is about this trial only and excludes the variation between trials.
type Percentile struct {
	Name       string // "p99"
	Q          float64
	Ns, Lo, Hi float64 // NaN if unknown
	Confidence float64
	Had        int64 // independent responses
	Needs      int64 // independent responses needed for an interval; 0 if Had is enough
	Unanswered Note  // set if the percentile is among unanswered requests
}

// HasInterval reports whether the percentile has an interval.
func (p Percentile) HasInterval() bool { return !math.IsNaN(p.Lo) && !math.IsNaN(p.Hi) }

// Refused reports whether the percentile must not be quoted, regardless of Ns.
func (p Percentile) Refused() bool { return p.Needs > 0 || p.Unanswered.Is() }

// Percentiles returns the percentiles of a distribution of a load's responses. The effective share
// of independent responses was estimated beyond p99 and is used for all of them.
func Percentiles(l *record.Load, d *record.Dist, confidence float64) []Percentile {
	return answeredOf(l, d, l.Censored, l.ResponseTime.Count, confidence)
}

// RoutePercentiles returns the percentiles of response time of a kind of request.
func RoutePercentiles(l *record.Load, r *record.Route, confidence float64) []Percentile {
	return answeredOf(l, &r.ResponseTime, max(r.Sent-r.Answered-r.Failed, 0), r.ResponseTime.Count,
		confidence)
}

// answeredOf returns the percentiles of a distribution, and refuses those among the requests that
// were never answered.
func answeredOf(l *record.Load, d *record.Dist, never, answered int64, confidence float64,
) []Percentile {
	share, _ := l.Autocorrelation.Worth()
	out := PercentilesOf(d, share, confidence)
	for i := range out {
		out[i].Unanswered = unanswered(never, answered, out[i].Q)
		if out[i].Refused() {
			out[i].Lo, out[i].Hi = math.NaN(), math.NaN()
		}
	}
	return out
}

// PercentilesOf returns the percentiles of a distribution of which this share of values counts as
// independent. Ns is always set if known.
func PercentilesOf(d *record.Dist, share, confidence float64) []Percentile {
	h := decode(*d)
	out := PercentilesIn(h, share, confidence)
	for i := range out {
		if p := &out[i]; !p.HasInterval() { // third-party tools have no histogram
			*p = percentile(p.Name, p.Q, d.Count, share, confidence)
			p.Ns = quantile(*d, h, p.Q)
		}
	}
	return out
}

// PercentilesIn returns the percentiles of a histogram; nil is an empty one. Lo and Hi are the
// values at the ranks of stats.QuantileRanks, to the histogram's three digits.
func PercentilesIn(h *hdrhistogram.Histogram, share, confidence float64) []Percentile {
	if h == nil {
		h = hdrhistogram.New(1, 2, 1)
	}
	n := h.TotalCount()
	out := make([]Percentile, len(shown))
	for i, s := range shown {
		out[i] = percentile(s.Name, s.Quantile, n, share, confidence)
		if n > 0 {
			out[i].Ns = float64(h.ValueAtPercentile(100 * s.Quantile))
		}
		if lo, hi, ok := stats.QuantileRanks(n, share, s.Quantile, confidence); ok {
			out[i].Lo, out[i].Hi = atRank(h, lo), atRank(h, hi)
		}
	}
	return out
}

// percentile returns a percentile of n responses without a value.
func percentile(name string, q float64, n int64, share, confidence float64) Percentile {
	nan := math.NaN()
	p := Percentile{Name: name, Q: q, Ns: nan, Lo: nan, Hi: nan, Confidence: confidence,
		Had: int64(share * float64(n))}
	if _, _, ok := stats.QuantileRanks(n, share, q, confidence); !ok {
		p.Needs = stats.QuantileNeeds(q, confidence)
		p.Had = min(p.Had, p.Needs-1) // the share is rounded
	}
	return p
}

// atRank returns the value at a rank, counted from 1; the histogram rounds a percentile to the
// nearest rank.
func atRank(h *hdrhistogram.Histogram, rank int64) float64 {
	return float64(h.ValueAtPercentile(100 * float64(rank) / float64(h.TotalCount())))
}

// Refusal returns the reason for a missing interval and what would give one: flag is the flag that
// makes the window longer, and windowNs its present length. It is "" if there are enough responses.
func (p Percentile) Refusal(flag string, windowNs int64) string {
	if p.Unanswered.Is() || p.Needs == 0 {
		return p.Unanswered.String()
	}
	return NoteOf(NoteFewIndependent, Count(p.Needs), Count(p.Had),
		Longer{flag, p.Needs, p.Had, windowNs}).String()
}

// unanswered returns a note if a quantile is among requests that were never answered. These are
// slower than all answered ones, so the quantile is unknown if they exceed the share above it.
func unanswered(never, answered int64, q float64) Note {
	all := never + answered
	if float64(never) <= (1-q)*float64(all) {
		return Note{}
	}
	return NoteOf(NoteNeverAnswered, Count(never), Count(all))
}

// grid has the quantiles of a latency curve: nine steps per decade of 1/(1-q), from the median to
// 99.99 %, so that on the axis log(1/(1-q)) the tail gets as many points as the body.
var grid = func() []float64 {
	qs := []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85}
	for decade := 0.1; decade > 0.00015; decade /= 10 {
		for _, step := range []float64{1, 0.8, 0.65, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15} {
			qs = append(qs, 1-decade*step)
		}
	}
	return append(qs, 0.9999)
}()

// Curve is latency by percentile under one load: at each quantile the median, across trials, of the
// trials' percentiles. It ends if a trial has too few samples for an interval.
type Curve struct {
	Load      string
	Quantiles []float64 // ascending, in (0,1)
	Ns        []float64
	Lo, Hi    []float64 // of Ns, the interval across trials; NaN without one

	byBlock []map[int]float64 // for each quantile the trials' values by block
	once    bool              // one trial per block
}

// percentiles returns the metrics and the curve of a load's response time.
func percentiles(info LoadInfo, offered []offer, confidence float64, t *Target) ([]Metric, Curve) {
	curve := Curve{Load: info.Name}
	hists := make([]*hdrhistogram.Histogram, len(offered))
	for i, o := range offered {
		hists[i] = decode(o.load.ResponseTime)
	}
	backlog := overload(info, offered)
	var metrics []Metric
	var lower *Metric // the last known one
	for _, p := range shown {
		m, why := t.percentile(info, p, offered, hists), tooFew(p.Quantile, offered, confidence)
		switch {
		case backlog.Is():
			why = backlog
		case why.Is():
		case len(m.Points) < len(offered):
			why = NoteOf(NoteNoHistogram, unread(offered, hists))
		case lower != nil && m.below(lower):
			m, why = t.inOrder(info, p, offered, hists, lower)
		}
		if why.Is() {
			m.withhold(why)
		} else {
			m.Summary = stats.Summarize(Values(m.Points), confidence)
			lower = &m
		}
		metrics = append(metrics, m)
	}
	if !backlog.Is() {
		curve.draw(offered, hists, confidence)
	}
	return metrics, curve
}

// percentile returns the values of a percentile of a load in windows, without a summary.
func (t *Target) percentile(info LoadInfo, p metric.Metric, offered []offer,
	hists []*hdrhistogram.Histogram,
) Metric {
	key := quantity{info.Name, p.Name}
	m := Metric{Load: info.Name, Model: info.Model, Name: p.Name, Unit: p.Unit,
		StallFree: t.stallFree[key], WithStalls: t.withStalls[key]}
	for i, o := range offered {
		m.Samples += o.load.ResponseTime.Count
		if x := record.StallFreeOf(o.load.StallFree, p.Quantile); x != nil && m.StallFree {
			m.Points = append(m.Points, o.point(float64(x.Ns)))
		} else if v := quantile(o.load.ResponseTime, hists[i], p.Quantile); !math.IsNaN(v) {
			m.Points = append(m.Points, o.point(v))
		}
	}
	return m
}

// inOrder returns a percentile that is below a lower one of the same trials. Percentiles of all
// arrivals are in order. Without stalls, each percentile leaves out other arrivals, and a lower one
// may include stalls. So this one also includes stalls. If it is still below the lower one, nothing
// shows which of the two is wrong, and why is the reason for a missing value.
func (t *Target) inOrder(info LoadInfo, p metric.Metric, offered []offer,
	hists []*hdrhistogram.Histogram, lower *Metric,
) (m Metric, why Note) {
	key := quantity{info.Name, p.Name}
	if t.stallFree[key] {
		t.stallFree[key] = false
		t.withStalls[key] = NoteOf(NoteWithStalls, Stalled{Reason: outOfOrder})
	}
	m = t.percentile(info, p, offered, hists)
	if len(m.Points) < len(offered) || m.below(lower) {
		why = NoteOf(NoteBelowLower, lower.Name)
	}
	return m, why
}

// below reports whether a percentile is below a lower one of the same trials: its median, or its
// geometric mean, which comparisons print.
func (m *Metric) below(lower *Metric) bool {
	xs, ys := Values(m.Points), Values(lower.Points)
	if len(xs) != len(ys) {
		return false
	}
	logs := 0.0
	for i := range xs {
		logs += math.Log(xs[i] / ys[i])
	}
	return stats.Median(xs) < stats.Median(ys) || logs < 0
}

// unread returns the trials whose histograms are missing or damaged.
func unread(offered []offer, hists []*hdrhistogram.Histogram) (ids Names) {
	for i, o := range offered {
		if hists[i] == nil {
			ids = append(ids, o.record.Trial)
		}
	}
	return ids
}

func (c *Curve) draw(offered []offer, hists []*hdrhistogram.Histogram, confidence float64) {
	for _, q := range grid {
		if tooFew(q, offered, confidence).Is() {
			return
		}
		var values []float64
		byBlock := make(map[int]float64, len(offered))
		for i := range offered {
			if hists[i] == nil {
				return
			}
			values = append(values, quantile(offered[i].load.ResponseTime, hists[i], q))
			byBlock[offered[i].block] = values[i]
		}
		c.Quantiles = append(c.Quantiles, q)
		c.byBlock, c.once = append(c.byBlock, byBlock), len(byBlock) == len(values)
		across := stats.Summarize(values, confidence)
		c.Ns = append(c.Ns, across.Center)
		c.Lo, c.Hi = append(c.Lo, across.Lo), append(c.Hi, across.Hi)
	}
}

// decode reads the histogram. It returns nil without a histogram, in which case the record's own
// fields are used, and for a damaged one, whose fields are not used because they were computed from
// it.
func decode(d record.Dist) *hdrhistogram.Histogram {
	h, err := d.Histogram()
	if h == nil || err != nil || h.TotalCount() != d.Count {
		return nil
	}
	return h
}

// damaged reports whether a distribution has a histogram that cannot be read.
func damaged(d record.Dist) bool { return d.HDR != "" && decode(d) == nil }

// Damaged counts the records with loads in which no response time can be read.
func Damaged(records []*record.Record) (n int) {
	for _, r := range records {
		if len(r.Loads) > 0 && !slices.ContainsFunc(r.Loads, func(l record.Load) bool {
			return !damaged(l.ResponseTime)
		}) {
			n++
		}
	}
	return n
}

// quantile reads a quantile from the histogram, else from the record's fields; NaN if neither has
// it.
func quantile(d record.Dist, h *hdrhistogram.Histogram, q float64) float64 {
	if d.Count == 0 || h == nil && d.HDR != "" {
		return math.NaN()
	}
	if h != nil && h.TotalCount() > 0 {
		return float64(h.ValueAtPercentile(q * 100))
	}
	for k, ns := range []int64{d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns} {
		if shown[k].Quantile == q && ns > 0 { // third-party generators do not report all of them
			return float64(ns)
		}
	}
	return math.NaN()
}

// tooFew returns the reason why a quantile of these trials would be a guess, or no note.
func tooFew(q float64, offered []offer, confidence float64) Note {
	needs := stats.QuantileNeeds(q, confidence)
	fewest := offered[0].load
	for _, o := range offered {
		l := o.load
		if l.ResponseTime.Count < fewest.ResponseTime.Count {
			fewest = l
		}
		if why := unanswered(l.Censored, l.ResponseTime.Count, q); why.Is() {
			return NoteOf(NoteUnanswered, why.Args...)
		}
	}
	previous := fewest.ResponseTime.Count
	if previous >= needs {
		return Note{}
	}
	if previous == 0 {
		return NoteOf(NoteNoAnswers)
	}
	return NoteOf(NoteFewAnswers, Count(needs), Count(previous),
		Longer{"--measure", needs, previous, fewest.WindowNs})
}

// overload returns a note if an open load was more than a trial could serve. It is for records
// without a verdict: the verdict allows for randomness and for requests at the window's edges, and
// excludes a load that fell behind.
func overload(info LoadInfo, offered []offer) Note {
	if info.Model != record.Open {
		return Note{}
	}
	for _, o := range offered {
		l := o.load
		ended := float64(l.Done + l.Errors.Total())
		if o.record.Verdict.Grade != "" || l.Scheduled == 0 || l.WindowNs == 0 ||
			ended >= metric.KeptUp*float64(l.Scheduled) {
			continue
		}
		seconds := float64(l.WindowNs) / 1e9
		return NoteOf(NoteBacklogGrew, Rate(float64(l.Scheduled)/seconds),
			Percent(ended/float64(l.Scheduled)), Rate(backlogPerS(l, ended, seconds)))
	}
	return Note{}
}

func backlogPerS(l *record.Load, ended, seconds float64) float64 {
	if l.BacklogPerS > 0 {
		return l.BacklogPerS
	}
	return (float64(l.Scheduled) - ended) / seconds
}
