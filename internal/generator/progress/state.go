package progress

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// Range and digits of the load's own histograms, so that merging loses no values.
const (
	histMax    = 1 << 40
	histDigits = 3
)

// percentiles lists the displayed percentiles. They are shown from needs responses on, because with
// fewer a percentile has no interval (stats.QuantileNeeds).
var (
	percentiles = [3]float64{50, 90, 99}
	needs       = [3]int64{need(0.50), need(0.90), need(0.99)}
)

func need(q float64) int64 { return stats.QuantileNeeds(q, 0.95) }

// seriesMax limits the history. When it is full, neighbors are merged, so that it always spans the
// whole load, with decreasing resolution.
const seriesMax = 160

// state is the accumulated state of a load.
type state struct {
	Config
	began    time.Time // by the wall clock, for monitoring
	totals   load.Totals
	elapsed  time.Duration
	inWindow bool
	opened   bool  // the window has been open
	ending   bool  // the load was interrupted
	failures int64 // of pushes

	grain  time.Duration // of the points
	from   mark          // begin of the current point
	points int           // number of finished points
	now    point         // the last one
	series []point
	fold   int // number of points that one of series combines
	folded int // number of points in the last of series

	base              mark    // last mark before the window opened
	meanDue, meanDone float64 // requests/s in the window so far

	ever   tally // since the beginning, because counters must not decrease
	before tally // ever, when the window opened

	slot        *hdrhistogram.PackedHistogram // of the current report
	recent, all *hdrhistogram.Histogram       // since the last point, since the window opened
	lag, allLag *hdrhistogram.Histogram       // likewise

	verdict record.Verdict // on the window so far; empty before it opens
}

// mark is a time and the totals at that time.
type mark struct {
	moment time.Duration
	totals load.Totals
}

// point is a stretch of the load.
type point struct {
	moment, length         time.Duration // moment: its end
	due, sent, done        int64
	failed, bytesIn, count int64
	quantileNs             [3]int64 // of response time; 0: too few answers
	maxNs                  int64
	lagCount, lagMaxNs     int64
	lagP50Ns, lagP99Ns     int64 // 0: too few requests
}

func newState(c Config) *state {
	return &state{
		Config: c, began: clock.Wall(), grain: grainOf(c), fold: 1,
		slot:   hdrhistogram.NewPacked(1, histMax, histDigits),
		recent: load.NewHistogram(), all: load.NewHistogram(),
		lag: load.NewHistogram(), allLag: load.NewHistogram(),
	}
}

// grainOf returns the length of points: for short loads the redraw interval, otherwise a second.
// Lines are a second apart.
func grainOf(c Config) time.Duration {
	if c.Kind == Plain || c.Kind == JSON {
		return lineEvery
	}
	if c.Requests > 0 {
		return redrawEvery // the duration is unknown
	}
	return min(max((c.Lead+c.Window)/60, redrawEvery), lineEvery)
}

// add adds a report on the load.
func (s *state) add(p load.Progress) {
	before := mark{s.elapsed, s.totals}
	s.totals, s.elapsed, s.inWindow = p.Totals, p.Elapsed, p.Window
	s.moveTo(s.lag, p.Lag)
	if s.opened {
		s.slot.MergeInto(s.allLag)
	}
	s.moveTo(s.recent, p.Response)
	s.ever.add(s.slot)
	switch {
	case s.opened:
		s.slot.MergeInto(s.all)
	case p.Window:
		// The window opened within this report. Its responses may be from either side, so they
		// don't count.
		s.opened, s.base, s.before = true, before, s.ever
	}
	if p.Window {
		span := (p.Elapsed - s.base.moment).Seconds()
		s.meanDue = float64(p.Due-s.base.totals.Due) / span
		s.meanDone = float64(p.Done-s.base.totals.Done) / span
	}
	// The interval between reports is not exact.
	if p.Elapsed-s.from.moment >= s.grain-s.grain/8 {
		s.finish()
	}
}

// moveTo adds a report's histogram to another one. The slot makes this cheap: its few nonempty
// buckets are found once for several uses.
func (s *state) moveTo(to, from *hdrhistogram.Histogram) {
	s.slot.Reset()
	if from != nil {
		s.slot.MergeFrom(from)
	}
	s.slot.MergeInto(to)
}

// window returns the response times since the window opened.
func (s *state) window() tally {
	if !s.opened {
		return tally{}
	}
	return s.ever.since(&s.before)
}

// finish ends the current point.
func (s *state) finish() {
	from, to := s.from.totals, s.totals
	s.now = point{
		moment: s.elapsed, length: s.elapsed - s.from.moment, due: to.Due - from.Due,
		sent: to.Sent - from.Sent, done: to.Done - from.Done, failed: to.Failed - from.Failed,
		bytesIn: to.BytesIn - from.BytesIn,
	}
	s.now.count, s.now.quantileNs, s.now.maxNs = summarise(s.recent)
	lag := s.lag.ValueAtPercentilesSlice([]float64{50, 99, 100})
	s.now.lagCount, s.now.lagMaxNs = s.lag.TotalCount(), lag[2]
	if s.now.lagCount >= needs[2] {
		s.now.lagP50Ns, s.now.lagP99Ns = lag[0], lag[1]
	}
	s.recent.Reset()
	s.lag.Reset()
	s.from = mark{s.elapsed, s.totals}
	s.points++
	s.keep(s.now)
	if s.opened && s.inWindow {
		s.judge()
	}
}

// judge judges the window so far.
func (s *state) judge() {
	base, now := s.base.totals, s.totals
	passed := s.elapsed - s.base.moment
	byClass, _ := s.failed()
	l := record.Load{Model: record.Closed, WindowNs: int64(passed), Scheduled: now.Due - base.Due,
		Sent: now.Sent - base.Sent, Done: now.Done - base.Done, Answered: now.Done - base.Done,
		InFlightMean: float64(now.InFlight), Errors: load.ErrorsOf(byClass)}
	late := s.allLag
	if s.Open {
		l.Model, l.RatePerS = record.Open, s.meanDue
	} else {
		late = nil
	}
	if s.Open && s.Steady {
		before := base.Due - base.Done - base.Failed
		l.BacklogPerS = float64(s.backlog()-before) / passed.Seconds()
	}
	s.verdict = verdict.SoFar(&l, s.all, late)
}

// soFar returns the verdict so far and the finding that decides it, nil if there is none.
func (s *state) soFar() (text string, decides *record.Finding) {
	if s.verdict.Grade == "" {
		return "", nil
	}
	for i, f := range s.verdict.Findings {
		if f.Grade == s.verdict.Grade && f.Grade != record.Valid {
			return f.Grade + " so far: " + f.Rule, &s.verdict.Findings[i]
		}
	}
	return s.verdict.Grade + " so far", nil
}

// summarise returns the quantiles that have enough responses.
func summarise(h *hdrhistogram.Histogram) (count int64, q [3]int64, maxNs int64) {
	count = h.TotalCount()
	values := h.ValueAtPercentilesSlice(append(percentiles[:], 100))
	for i := range q {
		if count >= needs[i] {
			q[i] = values[i]
		}
	}
	return count, q, values[3]
}

// keep appends a point to the history.
func (s *state) keep(p point) {
	if n := len(s.series); s.folded > 0 && s.folded < s.fold {
		s.series[n-1] = join(s.series[n-1], p)
		s.folded++
		return
	}
	if len(s.series) == seriesMax {
		for i := range seriesMax / 2 {
			s.series[i] = join(s.series[2*i], s.series[2*i+1])
		}
		s.series = s.series[:seriesMax/2]
		s.fold *= 2
	}
	s.series = append(s.series, p)
	s.folded = 1
}

// join merges two neighboring points. It adds counts and keeps the larger times, because two
// percentiles cannot be combined, and peaks matter in a sparkline.
func join(a, b point) point {
	out := point{
		moment: b.moment, length: a.length + b.length, due: a.due + b.due, sent: a.sent + b.sent,
		done: a.done + b.done, failed: a.failed + b.failed, bytesIn: a.bytesIn + b.bytesIn,
		count: a.count + b.count, maxNs: max(a.maxNs, b.maxNs),
		lagP50Ns: max(a.lagP50Ns, b.lagP50Ns), lagP99Ns: max(a.lagP99Ns, b.lagP99Ns),
		lagMaxNs: max(a.lagMaxNs, b.lagMaxNs), lagCount: a.lagCount + b.lagCount,
	}
	for i := range out.quantileNs {
		out.quantileNs[i] = max(a.quantileNs[i], b.quantileNs[i])
	}
	return out
}

// perS converts a count of the point to a rate.
func (p point) perS(n int64) float64 {
	if p.length <= 0 {
		return 0
	}
	return float64(n) / p.length.Seconds()
}

// backlog returns the number of arrivals that are due but not finished.
func (s *state) backlog() int64 { return s.totals.Due - s.ended() }

// ended returns the number of finished requests, good or failed.
func (s *state) ended() int64 { return s.totals.Done + s.totals.Failed }

// counted returns the number of requests that have finished since the window opened, which Requests
// limits.
func (s *state) counted() int64 {
	if !s.opened {
		return 0
	}
	return s.ended() - s.base.totals.Done - s.base.totals.Failed
}

// failed returns the failures since the window opened, by class and in total; before it opens,
// since the beginning.
func (s *state) failed() (byClass [load.Classes]int64, total int64) {
	for i, n := range s.totals.Errors {
		byClass[i] = n - s.base.totals.Errors[i]
		total += byClass[i]
	}
	return byClass, total
}

// Phases of a load.
const (
	connecting = "connecting"
	leading    = "lead-in"
	measuring  = "window"
	draining   = "drain"
)

func (s *state) phase() string {
	switch {
	case s.elapsed == 0:
		return connecting
	case s.inWindow:
		return measuring
	case s.opened || s.elapsed >= s.Lead+s.Window:
		return draining
	}
	return leading
}

// progress returns the completed share of the load, from 0 to 1, and the remaining time.
func (s *state) progress() (share float64, remaining time.Duration) {
	total := s.Lead + s.Window
	if total <= 0 || s.elapsed <= 0 {
		return 0, total
	}
	share = min(float64(s.elapsed)/float64(total), 1)
	remaining = max(total-s.elapsed, 0)
	if n := s.counted(); s.Requests > 0 && n > 0 {
		byCount := min(float64(n)/float64(s.Requests), 1)
		if byCount > share {
			share = byCount
			remaining = time.Duration(float64(s.elapsed-s.base.moment) * (1 - byCount) / byCount)
		}
	}
	return share, remaining
}

// edgesNs are the upper bounds of the classic buckets: 1, 2 and 5 in each decade from 1 µs to 1,000
// s. A value belongs to the first bucket whose bound it does not exceed; the last bucket has no
// bound.
var edgesNs = [...]int64{
	1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7,
	1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 2e11, 5e11, 1e12,
}

// Exponential buckets: number k is from 2^((k-1)/8) s to 2^(k/8) s, 9 % wide. Prometheus calls the
// 3 of 8 = 2³ schema, OpenTelemetry calls it scale. The first bucket includes 1 ns, the last
// histMax.
const (
	schema         = 3
	eighthsFrom    = -239
	eighthsTo      = 81
	eighthsBuckets = eighthsTo - eighthsFrom + 1
)

// eighthsNs are the upper bounds of the exponential buckets.
var eighthsNs = func() (out [eighthsBuckets]float64) {
	for i := range out {
		out[i] = 1e9 * math.Pow(2, float64(i+eighthsFrom)/(1<<schema))
	}
	return out
}()

// tally counts response times in buckets for bars and for monitoring.
type tally struct {
	count   int64
	sumNs   float64
	maxNs   int64
	classic [len(edgesNs) + 1]int64
	eighths [eighthsBuckets]int64
}

// add adds the values of a histogram, which are in ascending order.
func (t *tally) add(h *hdrhistogram.PackedHistogram) {
	c, e := 0, 0
	for ns, n := range h.ForEachBucket {
		for c < len(edgesNs) && ns > edgesNs[c] {
			c++
		}
		for e < eighthsBuckets-1 && float64(ns) > eighthsNs[e] {
			e++
		}
		t.classic[c] += n
		t.eighths[e] += n
		t.count += n
		t.sumNs += float64(ns) * float64(n)
		t.maxNs = max(t.maxNs, ns)
	}
}

// since returns the difference from an earlier tally.
func (t tally) since(before *tally) tally {
	t.count -= before.count
	t.sumNs -= before.sumNs
	for i, n := range before.classic {
		t.classic[i] -= n
	}
	for i, n := range before.eighths {
		t.eighths[i] -= n
	}
	return t
}
