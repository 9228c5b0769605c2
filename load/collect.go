package load

import (
	"cmp"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/arrivalcheck"
	"prony.example/load/engine"
	"prony.example/load/network"
	"prony.example/load/pace"
	"prony.example/record"
)

// Result computes the load's result: counters add, histograms merge, and no percentile is ever
// averaged. The result shares its histograms with the ledger.
func (l *Ledger) Result() *Result {
	s, total, sum := &l.spec, l.total, &l.sums
	windowNs := l.peaks.windowNs
	out := record.Load{
		Name: s.Name, Protocol: s.Describe.Protocol, Model: s.Model,
		Connections: int(s.Part.share(int64(s.links()))),
		Streams:     s.Describe.Streams, Threads: int(sum.threads), Churn: s.Churn,
		Seed: s.Seed, WindowNs: windowNs, LeadInNs: int64(s.Lead), DrainNs: int64(s.Drain),
		Scheduled: total.dueInWin, Sent: total.sentInWin, Done: total.doneInWin,
		Answered: total.answered, BytesIn: total.inBytes, BytesOut: total.outBytes,
		ThroughputPerS: float64(total.doneInWin) / (float64(windowNs) / 1e9),
		Errors:         total.errors(), Reconnects: s.reconnects(total.renewed),
		Retried:        total.retried,
		Early:          total.early,
		InFlightMean:   float64(total.area) / float64(windowNs),
		CarriedInMean:  float64(total.carriedNs) / float64(windowNs),
		CarriedOutMean: float64(total.leftNs) / float64(windowNs),
		ServiceTime:    dist(total.service), FirstByte: dist(total.first),
		ErrorTime: dist(total.errored), ConnectTime: dist(total.connectT),
		TLS: l.spoken, TLSResumed: sum.resumed, TLSTime: dist(l.tls),
		FlowTime:  distOf(total.flowTime),
		Generator: l.cost(), Network: Simulated(s.Network),
	}
	if n := total.doneInWin + total.errors().Total(); n > 0 {
		out.Generator.CPUPerRequestNs = float64(max(sum.cpuNs-total.spinNs, 0)) / float64(n)
	}
	if out.Network != nil {
		out.Network.Added = dist(l.delay)
	}
	if l.peaks.short > 0 {
		permitted := max(out.Streams, 1) - int(l.peaks.short)
		out.StreamsPermitted = &permitted
	}
	course := total.course(windowNs)
	out.Series = course.series()
	out.Routes = l.routes()
	singles := arrivalcheck.Merge(l.singles...)
	out.Autocorrelation = arrivalcheck.Correlation(singles.Response)
	// In a closed load without pauses, a request is due when its connection is free, so its
	// response time equals its service time, unless it waited for a stream.
	if out.ResponseTime = out.ServiceTime; total.waited > 0 {
		out.ResponseTime, out.Lag, out.Waited = dist(total.response), dist(total.lag), total.waited
	}
	if s.Users != nil {
		out.Users, out.Think = s.Users.Number.String(), s.Users.Think.String()
	}
	if s.Model == record.Open || s.Users != nil {
		out.ResponseTime = dist(total.response)
		out.Lag, out.OwnLag, out.Waited = dist(total.lag), dist(total.ownLag), total.waited
		if s.Model == record.Open && total.flowTime == nil && sum.threads == 1 {
			out.PunctualTime = dist(total.punctual) // threads do not share their send delays
		}
		out.ConnectionsAdded = int(sum.grown)
		out.Generator.Pacing = l.pacing
	}
	if s.Model == record.Open {
		l.open(&out, &course, singles)
	}
	out.WindowOpenedUnixNs, out.TraceShare, out.Traced = l.wall, s.Trace.Share, l.traced()
	out.Censored = out.Scheduled - out.Answered - out.Errors.Requests()
	return &Result{Load: out, Intervals: course.histograms(), FromNs: l.fromNs,
		OpenedNs: l.fromNs + l.peaks.lateNs, Ledger: l, Sample: singles}
}

// reconnects returns how many connections were reopened, of so many streams. All streams of a
// connection report its end.
func (s *Spec) reconnects(renewed int64) int64 {
	streams := int64(max(s.Describe.Streams, 1))
	return (renewed + streams - 1) / streams
}

// cost returns what it cost the generator to send the load.
func (l *Ledger) cost() record.Gen {
	s, total, sum := &l.spec, l.total, &l.sums
	return record.Gen{
		Engine: s.Describe.Name, EngineReason: s.Describe.Reason, Pacing: "none",
		CPUNs: sum.cpuNs, CPUShare: float64(l.peaks.busyNs) / float64(l.peaks.windowNs),
		RunDelayNs: sum.delayNs, SwitchesForced: sum.switches, Priority: l.priority,
		SpinNs: total.spinNs, Iterations: total.turns, BatchMax: total.batchMax,
		StallMaxNs: total.stillNs, DatagramsLost: sum.unread, MemoryBytes: sum.memory,
	}
}

// merged returns the books of all workers in one, the CPU time of all load threads, and that of the
// busiest.
func (r *run) merged() (total *book, sum, busiest threadUsage) {
	total = r.workers[0].book
	for i, w := range r.workers {
		w.book.settle()
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

// opened returns when the last thread first ran in the open window.
func (r *run) opened() int64 {
	atNs := r.workers[0].book.openedAt
	for _, w := range r.workers {
		atNs = max(atNs, w.book.openedAt)
	}
	return atNs
}

// open adds the fields that only open loads have. It counts scheduled requests from the schedule
// itself, so arrivals that were never sent are included.
func (l *Ledger) open(out *record.Load, c *course, singles arrivalcheck.Times) {
	s := &l.spec
	from, to := int64(s.Lead), int64(s.Lead)+out.WindowNs
	out.Arrivals = s.Schedule.Arrivals
	due := l.due(from, to)
	if s.Schedule.Arrivals == pace.Replay { // a trace has no rate of its own
		out.RatePerS = float64(due) / (float64(out.WindowNs) / 1e9)
	} else {
		out.RatePerS = s.Schedule.Rate.Mean(from, to) / float64(s.Part.of())
		if !s.Schedule.Rate.IsFlat() {
			out.Shape = s.Schedule.Rate.String()
		}
	}
	out.Scheduled = due
	if l.total.flowTime != nil {
		// Arrivals are flows. A flow that never began counts as one request, because its length is
		// unknown.
		out.Scheduled = l.total.dueInWin + due - l.total.flows.begun
	}
	if s.Part.of() == 1 { // every n-th arrival of a Poisson process is not a Poisson process
		out.ArrivalProcess = arrivalcheck.Arrivals(
			singles,
			s.Schedule.Arrivals == pace.Poisson,
			l.expected(),
		)
	}
	out.TraceHash = pace.Hash(s.schedule(), to)
	out.Generator.Wakeup = dist(l.wakeup)
	scheduled := make([]int64, len(c.intervals))
	p, remaining := s.schedule(), due
	for t := p.Next(); t < to && remaining > 0; t = p.Next() {
		if t >= from {
			scheduled[(t-from)/c.stepNs]++
			remaining--
		}
	}
	out.Series.Scheduled = scheduled
	out.BacklogPerS = c.backlogSlope(scheduled, c.endings(l.total.flowTime != nil))
}

// routes returns the books of a mix or a flow, by request.
func (l *Ledger) routes() (out []record.Route) {
	for i := range l.total.routes {
		b := &l.total.routes[i]
		out = append(out, record.Route{
			Name: l.names[i], Sent: b.sent, Answered: b.answered, Failed: b.failed,
			ResponseTime: dist(b.response), ServiceTime: dist(b.service),
		})
	}
	return out
}

// Simulated returns a network as in records, without what it added; nil: there is none.
func Simulated(d network.Delay) *record.Network {
	if d.IsZero() {
		return nil
	}
	return &record.Network{DelayNs: int64(d.RoundTrip), JitterNs: int64(d.Jitter)}
}

// delayBy seeds the jitter of the thread's engine. It fails if the engine cannot add the delay of
// the spec.
func (w *worker) delayBy(s *Spec) error {
	if s.Network.IsZero() {
		return nil
	}
	if w.delays = engine.DelayerOf(w.engine); w.delays == nil {
		return errNoDelay
	}
	w.delays.Seed(pace.Mix(s.Seed, uint64(w.id)))
	return nil
}

// handshakes adds what engines report: their handshakes, the limit of streams, and added delays.
func (l *Ledger) handshakes(r *run) {
	l.tls, l.delay = newHist(), newHist()
	for _, w := range r.workers {
		if e, ok := w.engine.(engine.Handshaker); ok {
			l.tls.Merge(e.Handshakes())
			spoken, resumed := e.Session()
			l.spoken = cmp.Or(l.spoken, spoken)
			l.sums.resumed += resumed
		}
		if w.delays != nil {
			l.delay.Merge(w.delays.Added())
		}
		if e, ok := w.engine.(engine.Limited); ok {
			l.peaks.short = max(l.peaks.short, int64(e.Shortage()))
		}
	}
}

// expected returns a function for the number of arrivals expected from the beginning of the lead-in
// up to a moment, in ns from the window's opening. It returns nil for a constant rate and for a
// replay.
func (l *Ledger) expected() func(ns int64) float64 {
	s := &l.spec
	if s.Schedule.Arrivals == pace.Replay || s.Schedule.Rate.IsFlat() {
		return nil
	}
	return func(ns int64) float64 {
		offset := ns + int64(s.Lead)
		return s.Schedule.Rate.Mean(0, offset) * float64(offset) / 1e9
	}
}

// counters returns all counters that add up, except routes and intervals, in a fixed order.
func (b *book) counters() []*int64 {
	out := []*int64{&b.sentInWin, &b.dueInWin, &b.doneInWin, &b.answered, &b.inBytes, &b.outBytes,
		&b.renewed, &b.area, &b.flows.begun, &b.flows.ended, &b.flows.good, &b.spinNs, &b.turns,
		&b.waited, &b.carriedNs, &b.leftNs, &b.retried, &b.early}
	for i := range b.failures {
		out = append(out, &b.failures[i])
	}
	return out
}

// histogramsOf returns the book's histograms, except routes and intervals, in a fixed order.
func (b *book) histogramsOf() []*hdrhistogram.Histogram {
	out := []*hdrhistogram.Histogram{b.response, b.service, b.first, b.lag, b.ownLag, b.punctual,
		b.errored, b.connectT}
	if b.flowTime != nil {
		out = append(out, b.flowTime)
	}
	return out
}

// add merges another worker's book into this one.
func (b *book) add(o *book) {
	from := o.counters()
	for i, n := range b.counters() {
		*n += *from[i]
	}
	b.batchMax = max(b.batchMax, o.batchMax)
	b.stillNs = max(b.stillNs, o.stillNs)
	if b.exampleOf == "" {
		b.exampleOf, b.party = o.exampleOf, o.party
	}
	hists := o.histogramsOf()
	for i, h := range b.histogramsOf() {
		h.Merge(hists[i])
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
		b.intervals[i].add(&o.intervals[i])
	}
}

func (iv *interval) add(o *interval) {
	from := o.counters()
	for i, n := range iv.counters() {
		*n += *from[i]
	}
	if o.response.TotalCount() > 0 {
		iv.response.Merge(o.response)
	}
}

func distOf(h *hdrhistogram.Histogram) record.Dist {
	if h == nil {
		return record.Dist{}
	}
	return dist(h)
}

// dist summarizes a histogram and keeps it complete beside the summary.
func dist(h *hdrhistogram.Histogram) record.Dist {
	n := h.TotalCount()
	if n == 0 {
		return record.Dist{}
	}
	d := record.Dist{
		Count: n, MinNs: h.Min(), MeanNs: h.Mean(), MaxNs: h.Max(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90),
		P99Ns: h.ValueAtQuantile(99), P999Ns: h.ValueAtQuantile(99.9),
	}
	// The V2 compressed form in base64 is what all HdrHistogram libraries read. Writing to memory
	// cannot fail.
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("load: encode histogram: " + err.Error())
	}
	d.HDR = string(b)
	return d
}
