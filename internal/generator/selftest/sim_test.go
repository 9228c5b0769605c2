package selftest_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/record"
)

// wire is how long a request or an answer is under way: about what a virtual machine takes.
const wire = 100 * time.Microsecond

// stepNs is the grain of the simulated series.
const stepNs = 100e6

// world is a truth server and a perfect generator in simulated time: the server is its Plan, asked
// in the order in which the requests come.
type world struct {
	plan     truth.Plan
	requests int64
	freeAt   int64 // when the server's one thread will have burnt what it has to
	burnt    time.Duration
	cpu      float64 // of what was burnt, how much the server says it has used
	late     float64 // what the server says of its own lateness, ns
	waits    int64   // and of its waiting for a processor, ns a request
	stopped  int

	forgets func(*record.Load)           // what the generator does not tell
	drops   func(*outcome, *truth.Reply) // what it makes of a single request
}

func (w *world) start(_ context.Context, kind string, p truth.Params) (selftest.Server, error) {
	k, ok := truth.Find(kind)
	if !ok {
		return nil, fmt.Errorf("there is no kind %q", kind)
	}
	plan, err := k.Plan(p)
	w.plan, w.requests, w.freeAt, w.burnt = plan, 0, 0, 0
	return w, err
}

func (w *world) Addr() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:80") }

func (w *world) CPU() (time.Duration, error) {
	const before = 300 * time.Millisecond // what it has used until it listened
	return before + time.Duration(w.cpu*float64(w.burnt)), nil
}

func (w *world) Stop() (truth.Report, error) {
	w.stopped++
	return truth.Report{Requests: w.requests, LateMeanNs: w.late,
		RunDelayNs: w.waits * w.requests}, nil
}

// outcome is one request as a generator sees it.
type outcome struct {
	due, sent, first, end int64
	fail                  string
	renews                bool // its connection
	free                  int64
}

// ask sends a request at its moment on a connection that has asked n before.
func (w *world) ask(s *load.Spec, due, sent, n int64) outcome {
	w.requests++
	now := max(sent+int64(wire), w.freeAt)
	r := w.plan(now, truth.Request{N: w.requests, OnConn: n + 1})
	if r.Burn > 0 {
		w.burnt += r.Burn
		r.At += int64(r.Burn)
		w.freeAt = r.At
	}
	o := outcome{due: due, sent: sent}
	o.end = truth.Never
	if r.At != truth.Never {
		o.first = r.At + int64(wire)
		o.end = o.first
		if r.Step > 0 {
			o.end += int64(len(r.Text)-r.First) * int64(r.Step)
		}
	}
	good := []byte("\r\n\r\n" + s.Scenario.Requests[0].Want)
	switch {
	case o.end-sent >= int64(s.Timeout):
		o.fail, o.end, o.renews = "timeout", sent+int64(s.Timeout), true
	case r.Then == truth.Reset:
		o.fail = "read"
	case !bytes.HasPrefix(r.Text, []byte("HTTP/1.1 200 ")):
		o.fail = "status"
	case !bytes.HasSuffix(r.Text, good):
		o.fail = "body"
	}
	o.renews = o.renews || r.Then != truth.Keep
	o.free = o.end
	if w.drops != nil {
		w.drops(&o, &r)
	}
	return o
}

// honest is what each case came to with nothing dropped: simulated once, for most lies are told
// afterwards.
var honest = map[string]told{}

type told struct {
	load     record.Load
	requests int64
	burnt    time.Duration
}

// offer is a selftest.Offer.
func (w *world) offer(_ context.Context, s load.Spec) (*load.Result, error) {
	x, ok := honest[s.Name]
	if !ok || w.drops != nil {
		x.load = w.simulate(s)
		x.requests, x.burnt = w.requests, w.burnt
		if w.drops == nil {
			honest[s.Name] = x
		}
	}
	w.requests, w.burnt = x.requests, x.burnt
	l := x.load
	l.Series.P50Ns = slices.Clone(l.Series.P50Ns)
	if w.forgets != nil {
		w.forgets(&l)
	}
	return &load.Result{Load: l}, nil
}

func (w *world) simulate(s load.Spec) record.Load {
	b := &book{spec: &s, openAt: int64(s.Lead), closeAt: int64(s.Lead + s.Window)}
	b.endAt = b.closeAt + int64(s.Drain)
	if s.Model == record.Open {
		w.offerOpen(&s, b)
	} else {
		w.offerClosed(&s, b)
	}
	return b.result()
}

// wires are the connections: when each is free, and what it has asked.
type wires struct {
	free, asked []int64
}

func newWires(n int) *wires { return &wires{make([]int64, n), make([]int64, n)} }

// next is the connection that is free first.
func (c *wires) next() int {
	best := 0
	for i, at := range c.free {
		if at < c.free[best] {
			best = i
		}
	}
	return best
}

func (c *wires) take(i int, o outcome) {
	c.free[i] = o.free
	c.asked[i]++
	if o.renews {
		c.asked[i] = 0
	}
}

func (w *world) offerOpen(s *load.Spec, b *book) {
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		panic(err)
	}
	conns := newWires(s.Connections)
	for due := p.Next(); due < b.closeAt; due = p.Next() {
		b.scheduled(due)
		i := conns.next()
		sent := max(due, conns.free[i])
		if sent >= b.endAt {
			continue
		}
		o := w.ask(s, due, sent, conns.asked[i])
		conns.take(i, o)
		b.book(o)
	}
}

func (w *world) offerClosed(s *load.Spec, b *book) {
	conns := newWires(s.Connections)
	for {
		i := conns.next()
		sent := conns.free[i]
		if sent >= b.closeAt {
			return
		}
		b.scheduled(sent)
		o := w.ask(s, sent, sent, conns.asked[i])
		conns.take(i, o)
		b.book(o)
	}
}

// book counts as load does: a request by when it was due, an answer by when it came.
type book struct {
	spec                   *load.Spec
	openAt, closeAt, endAt int64

	load                          record.Load
	response, service, first, lag []int64
	due, done, failed             map[int64]int64
	times                         map[int64][]int64
	area                          int64
}

func (b *book) inside(t int64) bool { return t >= b.openAt && t < b.closeAt }

func (b *book) bin(t int64) int64 { return (t - b.openAt) / stepNs }

func (b *book) scheduled(due int64) {
	if b.due == nil {
		b.due, b.done = map[int64]int64{}, map[int64]int64{}
		b.failed, b.times = map[int64]int64{}, map[int64][]int64{}
	}
	if b.inside(due) {
		b.load.Scheduled++
		b.due[b.bin(due)]++
	}
}

func (b *book) book(o outcome) {
	counts := b.inside(o.due)
	if counts {
		b.lag = append(b.lag, o.sent-o.due)
	}
	b.area += max(0, min(o.end, b.closeAt)-max(o.sent, b.openAt))
	if o.end > b.endAt {
		return // nobody waits for it
	}
	if o.renews && b.inside(o.end) {
		b.load.Reconnects++
	}
	if o.fail != "" {
		b.fail(o, counts)
		return
	}
	if b.inside(o.end) {
		b.load.Done++
		b.done[b.bin(o.end)]++
		b.times[b.bin(o.end)] = append(b.times[b.bin(o.end)], o.end-o.due)
	}
	if counts {
		b.load.Answered++
		b.response = append(b.response, o.end-o.due)
		b.service = append(b.service, o.end-o.sent)
		b.first = append(b.first, o.first-o.sent)
	}
}

func (b *book) fail(o outcome, counts bool) {
	if b.inside(o.end) {
		b.failed[b.bin(o.end)]++
	}
	if !counts {
		return
	}
	e := &b.load.Errors
	switch o.fail {
	case "timeout":
		e.Timeout++
		b.response = append(b.response, o.end-o.due)
		b.service = append(b.service, o.end-o.sent)
	case "read":
		e.Read++
	case "status":
		e.Status++
	case "body":
		e.Body++
	}
}

func (b *book) result() record.Load {
	l := b.load
	l.Model, l.WindowNs = b.spec.Model, int64(b.spec.Window)
	l.Connections, l.Threads = b.spec.Connections, 1
	seconds := b.spec.Window.Seconds()
	l.ThroughputPerS = float64(l.Done) / seconds
	l.InFlightMean = float64(b.area) / float64(l.WindowNs)
	l.Censored = l.Scheduled - l.Answered - l.Errors.Total()
	l.ResponseTime, l.ServiceTime = dist(b.response), dist(b.service)
	l.FirstByte = dist(b.first)
	l.Series.IntervalNs = stepNs
	for i := range l.WindowNs / stepNs {
		l.Series.Done = append(l.Series.Done, b.done[i])
		l.Series.P50Ns = append(l.Series.P50Ns, dist(b.times[i]).P50Ns)
		l.BacklogPerS += float64(b.due[i]-b.done[i]-b.failed[i]) / seconds
	}
	if l.Model == record.Open {
		l.Lag = dist(b.lag)
		// None of the waiting is the generator's own.
		l.OwnLag = dist(make([]int64, len(b.lag)))
	}
	return l
}

func dist(ns []int64) record.Dist {
	if len(ns) == 0 {
		return record.Dist{}
	}
	h := hdrhistogram.New(1, 1<<40, 3)
	for _, x := range ns {
		if err := h.RecordValue(max(x, 1)); err != nil {
			panic(err)
		}
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	return record.Dist{
		Count: int64(len(ns)), MinNs: slices.Min(ns), MaxNs: h.Max(), MeanNs: h.Mean(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90),
		P99Ns: h.ValueAtQuantile(99), P999Ns: h.ValueAtQuantile(99.9), HDR: string(b),
	}
}

// scaled stretches a distribution, as a generator with a wrong clock would.
func scaled(d *record.Dist, by float64) {
	h, err := hdrhistogram.Decode([]byte(d.HDR))
	if err != nil {
		*d = record.Dist{}
		return
	}
	var ns []int64
	for _, bar := range h.Distribution() {
		for range bar.Count {
			ns = append(ns, int64(math.Round(by*float64(bar.From+bar.To)/2)))
		}
	}
	*d = dist(ns)
}
