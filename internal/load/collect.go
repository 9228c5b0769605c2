package load

import (
	"cmp"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony/internal/load/sample"
	"prony/internal/pace"
	"prony/internal/result"
)

// Interval is one step of the window with its response times, by when the answers came.
type Interval struct {
	Offset   time.Duration // from the window's opening
	Length   time.Duration
	Response *hdrhistogram.Histogram
}

// collect merges the workers' books: counters add, histograms merge; no percentile is ever
// averaged.
func (r *run) collect() *Result {
	s := &r.spec
	total, sum, busiest := r.merged()
	windowNs := r.window()
	l := result.Load{
		Name: s.Name, Protocol: s.Describe.Protocol, Model: s.Model,
		Connections: s.Connections / max(s.Describe.Streams, 1),
		Streams:     s.Describe.Streams, Threads: len(r.workers), Churn: s.Churn,
		Seed: s.Seed, WindowNs: windowNs, LeadNs: int64(s.Lead), DrainNs: int64(s.Drain),
		Scheduled: total.dueInWin, Sent: total.sentInWin, Done: total.doneInWin,
		Answered: total.answered, BytesIn: total.inBytes, BytesOut: total.outBytes,
		ThroughputPerS: float64(total.doneInWin) / (float64(windowNs) / 1e9),
		Errors:         total.errors(), Reconnects: total.renewed,
		InFlightMean: float64(total.area) / float64(windowNs),
		CarriedMean:  float64(total.carriedNs) / float64(windowNs),
		LeftMean:     float64(total.leftNs) / float64(windowNs),
		ServiceTime:  dist(total.service), FirstByte: dist(total.first),
		ErrorTime: dist(total.errored), ConnectTime: dist(total.connectT),
		FlowTime: distOf(total.flowTime), Slow: r.crowd.result(),
		Generator: result.Gen{
			Engine: s.Describe.Name, EngineReason: s.Describe.Reason, Pacing: "none",
			CPUNs: sum.cpuNs, CPUShare: float64(busiest.cpuNs) / float64(windowNs),
			RunDelayNs: sum.delayNs, SwitchesForced: sum.switches, Priority: r.priority,
			SpinNs: total.spinNs, Turns: total.turns, BatchMax: total.batchMax,
			StillMaxNs: total.stillNs, DatagramsLost: r.unread,
			MemoryBytes: resident(),
		},
	}
	r.handshakes(&l)
	if s.Describe.Spread {
		l.Generator.CPUShare /= float64(runtime.NumCPU())
	}
	if n := total.doneInWin + total.errors().Total(); n > 0 {
		l.Generator.CPUPerRequestNs = float64(sum.cpuNs-total.spinNs) / float64(n)
	}
	l.Series = total.series(windowNs)
	l.Routes = r.routes(total)
	singles := r.singles()
	l.Memory = sample.Correlation(singles.Response)
	// Closed, without pauses: a request is due when its connection is free, so response and
	// service are one.
	l.ResponseTime = l.ServiceTime
	if s.Users != nil {
		l.Users, l.Think = s.Users.Number.String(), s.Users.Think.String()
	}
	if !r.cfg.plain {
		l.ResponseTime = dist(total.response)
		l.Lag, l.OwnLag, l.Waited = dist(total.lag), dist(total.ownLag), total.waited
		if s.Model == result.Open && total.flowTime == nil && len(r.workers) == 1 {
			l.PunctualTime = dist(total.punctual) // threads know nothing of each other's lag
		}
		for _, w := range r.workers {
			l.Grown += w.used - w.first
		}
		l.Generator.Pacing = r.pacing()
	}
	if s.Model == result.Open {
		r.collectOpen(&l, total, singles)
	}
	l.OpenedAtNs, l.TraceShare, l.Traced = r.wall, s.Trace.Share, r.traced()
	l.Censored = l.Scheduled - l.Answered - l.Errors.Requests()
	return &Result{Load: l, Intervals: total.histograms(windowNs), FromNs: r.cfg.openAt,
		OpenedNs: r.opened()}
}

// merged are the books of all workers in one, what all load threads used, and the busiest of them.
func (r *run) merged() (total *book, sum, busiest threadUsage) {
	total = r.workers[0].book
	for i, w := range r.workers {
		u := w.book.cpuClose.minus(w.book.cpuOpen)
		sum.cpuNs += u.cpuNs
		sum.delayNs += u.delayNs
		sum.switches += u.switches
		if u.cpuNs > busiest.cpuNs {
			busiest = u
		}
		if i > 0 {
			total.add(w.book)
		}
	}
	return total, sum, busiest
}

// opened is when the last of the threads saw the window open.
func (r *run) opened() int64 {
	at := r.workers[0].book.openedAt
	for _, w := range r.workers {
		at = max(at, w.book.openedAt)
	}
	return at
}

// collectOpen adds what only a schedule has. What was due is counted from the schedule itself, so
// that arrivals which never left are in it.
func (r *run) collectOpen(l *result.Load, total *book, singles sample.Times) {
	s := &r.spec
	from, to := int64(s.Lead), int64(s.Lead)+l.WindowNs
	l.Arrivals, l.RatePerS = s.Schedule.Arrivals, s.Schedule.Rate.Mean(from, to)
	due := pace.Count(r.spec.schedule(), from, to)
	if s.Requests > 0 {
		due = min(due, s.Requests) // those after it were not to be sent
	}
	switch {
	case s.Schedule.Arrivals == pace.Replay:
		l.RatePerS = float64(due) / (float64(l.WindowNs) / 1e9)
	case !s.Schedule.Rate.IsFlat():
		l.Shape = s.Schedule.Rate.String()
	}
	l.Scheduled = due
	if r.plan.flow {
		// Arrivals are of flows. Those that never began are a request each, for who knows how far
		// they would have come.
		l.Scheduled = total.dueInWin + due - total.flows.begun
	}
	l.Process = sample.Arrivals(singles, s.Schedule.Arrivals == pace.Poisson, r.expected())
	l.TraceHash = pace.Hash(r.spec.schedule(), to)
	l.Generator.Wakeup = dist(r.wakeup())
	l.Series.Scheduled = make([]int64, len(l.Series.Done))
	p := r.spec.schedule()
	for t := p.Next(); t < to; t = p.Next() {
		// A short last interval is in no column (see series), so what was due in it is neither.
		if i := (t - from) / l.Series.IntervalNs; t >= from && int(i) < len(l.Series.Scheduled) {
			l.Series.Scheduled[i]++
		}
	}
	l.BacklogPerS = backlogSlope(&l.Series, total.endings(&l.Series), l.WindowNs)
}

// routes are the books of a mix or a flow, by request.
func (r *run) routes(total *book) (out []result.Route) {
	for i := range total.routes {
		b := &total.routes[i]
		out = append(out, result.Route{
			Name: r.plan.routes[i].name, Sent: b.sent, Answered: b.answered, Failed: b.failed,
			ResponseTime: dist(b.response), ServiceTime: dist(b.service),
		})
	}
	return out
}

// handshakes adds those of engines that make some.
func (r *run) handshakes(l *result.Load) {
	all := newHist()
	for _, w := range r.workers {
		if e, ok := w.engine.(Handshaker); ok {
			all.Merge(e.Handshakes())
			spoken, resumed := e.Session()
			l.TLS = cmp.Or(l.TLS, spoken)
			l.TLSResumed += resumed
		}
	}
	l.TLSTime = dist(all)
}

// singles are the threads' samples together.
func (r *run) singles() sample.Times {
	var all []sample.Times
	for _, w := range r.workers {
		all = append(all, w.book.sample)
	}
	return sample.Merge(all...)
}

// expected is the integral of a rate that changes, up to a moment; nil for one that does not.
func (r *run) expected() func(ns int64) float64 {
	s := &r.spec.Schedule
	if s.Arrivals == pace.Replay || s.Rate.IsFlat() {
		return nil
	}
	return func(ns int64) float64 {
		offset := ns - r.cfg.start
		return s.Rate.Mean(0, offset) * float64(offset) / 1e9
	}
}

// backlogSlope is the least-squares slope, per second, of the turns that were due but have not
// ended, from how many ended in each interval. In a queue with capacity to spare it is near zero;
// above capacity it is arrivals minus capacity.
func backlogSlope(s *result.Series, ended []int64, windowNs int64) float64 {
	n := float64(len(ended))
	if n < 2 {
		return 0
	}
	var backlog, sx, sy, sxx, sxy float64
	for i := range ended {
		backlog += float64(s.Scheduled[i] - ended[i])
		x := float64(min(int64(i+1)*s.IntervalNs, windowNs)) / 1e9
		sx, sy, sxx, sxy = sx+x, sy+backlog, sxx+x*x, sxy+x*backlog
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// endings are how many turns ended in each interval of the series, well or not.
func (b *book) endings(s *result.Series) []int64 {
	out := make([]int64, len(s.Done))
	for i := range out {
		out[i] = s.Done[i] + s.Failed[i]
		if b.flowTime != nil {
			out[i] = b.intervals[i].ended
		}
	}
	return out
}

// add merges another worker's book into this one.
func (b *book) add(o *book) {
	b.sentInWin += o.sentInWin
	b.dueInWin += o.dueInWin
	b.doneInWin += o.doneInWin
	b.answered += o.answered
	b.inBytes += o.inBytes
	b.outBytes += o.outBytes
	b.renewed += o.renewed
	b.area += o.area
	b.flows.begun += o.flows.begun
	b.flows.ended += o.flows.ended
	b.flows.good += o.flows.good
	b.spinNs += o.spinNs
	b.turns += o.turns
	b.batchMax = max(b.batchMax, o.batchMax)
	b.stillNs = max(b.stillNs, o.stillNs)
	for i := range b.failures {
		b.failures[i] += o.failures[i]
	}
	if b.exampleOf == "" {
		b.exampleOf = o.exampleOf
	}
	b.response.Merge(o.response)
	b.service.Merge(o.service)
	b.first.Merge(o.first)
	b.lag.Merge(o.lag)
	b.ownLag.Merge(o.ownLag)
	b.punctual.Merge(o.punctual)
	b.waited += o.waited
	b.carriedNs += o.carriedNs
	b.leftNs += o.leftNs
	b.errored.Merge(o.errored)
	b.connectT.Merge(o.connectT)
	if b.flowTime != nil {
		b.flowTime.Merge(o.flowTime)
	}
	for i := range b.routes {
		x, y := &b.routes[i], &o.routes[i]
		x.sent += y.sent
		x.answered += y.answered
		x.failed += y.failed
		x.response.Merge(y.response)
		x.service.Merge(y.service)
	}
	for i := range b.intervals {
		x, y := &b.intervals[i], &o.intervals[i]
		x.ended += y.ended
		x.sent += y.sent
		x.done += y.done
		x.failed += y.failed
		x.response.Merge(y.response)
	}
}

// series turns the intervals into columns. The last interval may be shorter than the others; it is
// left out when it is less than half of one, since its rate would be noise.
func (b *book) series(windowNs int64) result.Series {
	s := result.Series{IntervalNs: b.step}
	for i := range b.intervals {
		if windowNs-int64(i)*b.step < b.step/2 {
			break
		}
		iv := &b.intervals[i]
		s.Sent = append(s.Sent, iv.sent)
		s.Done = append(s.Done, iv.done)
		s.Failed = append(s.Failed, iv.failed)
		s.P50Ns = append(s.P50Ns, iv.response.ValueAtQuantile(50))
		s.P99Ns = append(s.P99Ns, iv.response.ValueAtQuantile(99))
		s.MaxNs = append(s.MaxNs, iv.response.Max())
	}
	return s
}

func (b *book) histograms(windowNs int64) []Interval {
	out := make([]Interval, len(b.intervals))
	for i := range out {
		at := int64(i) * b.step
		out[i] = Interval{
			Offset: time.Duration(at), Length: time.Duration(min(b.step, windowNs-at)),
			Response: b.intervals[i].response,
		}
	}
	return out
}

func distOf(h *hdrhistogram.Histogram) result.Dist {
	if h == nil {
		return result.Dist{}
	}
	return dist(h)
}

// dist summarises a histogram and keeps it whole beside the summary.
func dist(h *hdrhistogram.Histogram) result.Dist {
	n := h.TotalCount()
	if n == 0 {
		return result.Dist{}
	}
	d := result.Dist{
		Count: n, MinNs: h.Min(), MeanNs: h.Mean(), MaxNs: h.Max(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90),
		P99Ns: h.ValueAtQuantile(99), P999Ns: h.ValueAtQuantile(99.9),
	}
	// The V2 compressed form in base64, as every HdrHistogram reads it. Writing to memory cannot
	// fail.
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("load: encode histogram: " + err.Error())
	}
	d.HDR = string(b)
	return d
}
