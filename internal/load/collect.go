package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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
	total := r.workers[0].book
	busiest := threadUsage{}
	var sum threadUsage
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
	windowNs := int64(s.Window)
	l := result.Load{
		Name: s.Name, Model: s.Model, Connections: s.Connections, Threads: len(r.workers),
		Seed: s.Seed, WindowNs: windowNs, LeadNs: int64(s.Lead), DrainNs: int64(s.Drain),
		Scheduled: total.dueInWin, Sent: total.sentInWin, Done: total.doneInWin,
		Answered: total.answered, BytesIn: total.inBytes, BytesOut: total.outBytes,
		ThroughputPerS: float64(total.doneInWin) / s.Window.Seconds(),
		Errors:         total.errors(), Reconnects: total.renewed,
		InFlightMean: float64(total.area) / float64(windowNs),
		ServiceTime:  dist(total.service), FirstByte: dist(total.first),
		ErrorTime: dist(total.errored), ConnectTime: dist(total.connectT),
		Generator: result.Gen{
			Engine: s.Describe.Name, EngineReason: s.Describe.Reason, Pacing: "none",
			CPUNs: sum.cpuNs, CPUShare: float64(busiest.cpuNs) / float64(windowNs),
			RunDelayNs: sum.delayNs, SwitchesForced: sum.switches, Priority: r.priority,
		},
	}
	if n := total.doneInWin + total.errors().Total(); n > 0 {
		l.Generator.CPUPerRequestNs = float64(sum.cpuNs) / float64(n)
	}
	l.Series = total.series(windowNs)
	if s.Model == Open {
		r.collectOpen(&l, total)
	} else {
		// Closed: a request is due when its connection is free, so response and service are one.
		l.ResponseTime = l.ServiceTime
	}
	l.Censored = l.Scheduled - l.Answered - failedRequests(l.Errors)
	return &Result{Load: l, Intervals: total.histograms(windowNs)}
}

// failedRequests leaves out failed connects, which were no requests yet.
func failedRequests(e result.Errors) int64 { return e.Total() - e.Connect }

// collectOpen adds what only a schedule has. What was due is counted from the schedule itself, so
// that arrivals which never left are in it.
func (r *run) collectOpen(l *result.Load, total *book) {
	s := &r.spec
	l.Arrivals, l.RatePerS = s.Arrivals, s.RatePerS
	l.Generator.Pacing = s.Describe.Pacing
	l.ResponseTime = dist(total.response)
	l.Lag, l.OwnLag, l.Waited = dist(total.lag), dist(total.ownLag), total.waited
	from, to := int64(s.Lead), int64(s.Lead+s.Window)
	l.Scheduled = pace.Count(r.schedule(), from, to)
	l.TraceHash = pace.Hash(r.schedule(), to)
	l.Series.Scheduled = make([]int64, len(l.Series.Done))
	p := r.schedule()
	for t := p.Next(); t < to; t = p.Next() {
		// A short last interval is in no column (see series), so what was due in it is neither.
		if i := (t - from) / l.Series.IntervalNs; t >= from && int(i) < len(l.Series.Scheduled) {
			l.Series.Scheduled[i]++
		}
	}
	l.BacklogPerS = backlogSlope(&l.Series, l.WindowNs)
}

func (r *run) schedule() pace.Process {
	p, err := pace.New(r.spec.Arrivals, r.spec.RatePerS, r.spec.Seed)
	if err != nil {
		panic("load: the schedule was checked and is bad all the same: " + err.Error())
	}
	return p
}

// backlogSlope is the least-squares slope, per second, of the arrivals due but not yet answered. In
// a queue with capacity to spare it is near zero; above capacity it is arrivals minus capacity.
func backlogSlope(s *result.Series, windowNs int64) float64 {
	n := float64(len(s.Done))
	if n < 2 {
		return 0
	}
	var backlog, sx, sy, sxx, sxy float64
	for i := range s.Done {
		backlog += float64(s.Scheduled[i] - s.Done[i] - s.Failed[i])
		x := float64(min(int64(i+1)*s.IntervalNs, windowNs)) / 1e9
		sx, sy, sxx, sxy = sx+x, sy+backlog, sxx+x*x, sxy+x*backlog
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
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
	b.waited += o.waited
	b.errored.Merge(o.errored)
	b.connectT.Merge(o.connectT)
	for i := range b.intervals {
		x, y := &b.intervals[i], &o.intervals[i]
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
