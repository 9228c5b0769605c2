package progress

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/stats"
)

// The range and the digits of the load's own histograms, so that none of its values is lost.
const (
	histMax    = 1 << 40
	histDigits = 3
)

// percentiles are those that are shown, where there are as many answers as it needs: of fewer, a
// percentile has no interval (stats.QuantileNeeds).
var (
	percentiles = [3]float64{50, 90, 99}
	needs       = [3]int64{need(0.50), need(0.90), need(0.99)}
)

func need(q float64) int64 { return stats.QuantileNeeds(q, 0.95) }

// seriesMax bounds the history. When it is full, neighbours are merged: it always spans the whole
// load, ever more coarsely.
const seriesMax = 160

// state is what has been seen of a load.
type state struct {
	Config
	began    time.Time // on the wall's clock, for monitoring
	totals   load.Totals
	elapsed  time.Duration
	inWindow bool
	opened   bool  // the window has been open
	ending   bool  // somebody asked for the load's end
	failures int64 // of pushes

	grain  time.Duration // of the points
	from   mark          // where the point under way began
	points int           // that were ever finished
	now    point         // the last one
	series []point
	fold   int // points that are merged into one of series
	folded int // of them, in its last one

	base              mark    // the last one before the window opened
	meanDue, meanDone float64 // requests/s in the window so far

	ever   tally // since the beginning: counters of monitoring must not go back
	before tally // of it, what came before the window had opened

	slot        *hdrhistogram.PackedHistogram // of the snapshot
	recent, all *hdrhistogram.Histogram       // since the last point, since the window opened
	lag         *hdrhistogram.Histogram       // since the last point
}

// mark is a moment with the totals that it had.
type mark struct {
	moment time.Duration
	totals load.Totals
}

// point is what happened in one stretch of the load.
type point struct {
	moment, length         time.Duration // at: its end
	due, sent, done        int64
	failed, bytesIn, count int64
	quantileNs             [3]int64 // of response time; 0: too few answers
	maxNs                  int64
	lagCount, lagMaxNs     int64
	lagP50Ns, lagP99Ns     int64 // likewise
}

func newHist() *hdrhistogram.Histogram { return hdrhistogram.New(1, histMax, histDigits) }

func newState(c Config) *state {
	return &state{
		Config: c, began: clock.Wall(), grain: grainOf(c), fold: 1,
		slot:   hdrhistogram.NewPacked(1, histMax, histDigits),
		recent: newHist(), all: newHist(), lag: newHist(),
	}
}

// grainOf is as fine as the page is redrawn where the load is short, and a second otherwise; lines
// are a second apart.
func grainOf(c Config) time.Duration {
	if c.Kind == Plain || c.Kind == JSON {
		return lineEvery
	}
	if c.Requests > 0 {
		return redrawEvery // nobody knows how long it takes
	}
	return min(max((c.Lead+c.Window)/60, redrawEvery), lineEvery)
}

// add takes in a snapshot.
func (s *state) add(n load.Snapshot) {
	before := mark{s.elapsed, s.totals}
	s.totals, s.elapsed, s.inWindow = n.Totals, n.Elapsed, n.Window
	s.moveTo(s.lag, n.Lag)
	s.moveTo(s.recent, n.Response)
	s.ever.add(s.slot)
	switch {
	case s.opened:
		s.slot.MergeInto(s.all)
	case n.Window:
		// The window opened within this snapshot, whose answers are of both sides: they count for
		// neither.
		s.opened, s.base, s.before = true, before, s.ever
	}
	if n.Window {
		span := (n.Elapsed - s.base.moment).Seconds()
		s.meanDue = float64(n.Due-s.base.totals.Due) / span
		s.meanDone = float64(n.Done-s.base.totals.Done) / span
	}
	// The clock that snapshots come by is not exact.
	if n.Elapsed-s.from.moment >= s.grain-s.grain/8 {
		s.finish()
	}
}

// moveTo adds a histogram of the snapshot to one of ours, by way of the slot: its few full buckets
// are found once, however often they are looked at.
func (s *state) moveTo(to, from *hdrhistogram.Histogram) {
	s.slot.Reset()
	if from != nil {
		s.slot.MergeFrom(from)
	}
	s.slot.MergeInto(to)
}

// window is what was counted since the window opened.
func (s *state) window() tally {
	if !s.opened {
		return tally{}
	}
	return s.ever.since(&s.before)
}

// finish ends the point under way.
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
}

// summarise gives the quantiles that there are answers enough for.
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

// join makes one point of two neighbours. Counts add; of the times the worse one is kept, for a
// percentile of both cannot be had from two percentiles, and a spark line is looked at for its
// peaks.
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

// perS is a count of the point as a rate.
func (p point) perS(n int64) float64 {
	if p.length <= 0 {
		return 0
	}
	return float64(n) / p.length.Seconds()
}

// backlog are the arrivals that came due and have not ended.
func (s *state) backlog() int64 { return s.totals.Due - s.ended() }

// ended are the requests that came to an end, good or bad.
func (s *state) ended() int64 { return s.totals.Done + s.totals.Failed }

// counted is how many have ended since the window opened: those of a load of so many.
func (s *state) counted() int64 {
	if !s.opened {
		return 0
	}
	return s.ended() - s.base.totals.Done - s.base.totals.Failed
}

// failed is the number of failures since the window opened, by class and together; before, since
// the beginning.
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

// progress is the share of the load that is over, from 0 to 1, and the time to go.
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

// edgesNs are the bounds of the classic buckets: 1, 2 and 5 in each decade from 1 µs to 1,000 s. A
// value belongs to the first that is not below it; a last bucket has no bound.
var edgesNs = [...]int64{
	1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7,
	1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 2e11, 5e11, 1e12,
}

// Exponential buckets: number k reaches from 2^((k-1)/8) s to 2^(k/8) s, 9 % further. Prometheus
// calls the 3 of the 8 = 2³ schema, OpenTelemetry scale. The first holds 1 ns, the last histMax.
const (
	schema         = 3
	eighthsFrom    = -239
	eighthsTo      = 81
	eighthsBuckets = eighthsTo - eighthsFrom + 1
)

// eighthsNs are their upper bounds.
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

// add counts the values of a histogram, which come in ascending order.
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

// since is what was counted after an earlier moment.
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
