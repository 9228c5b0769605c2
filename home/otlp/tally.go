package otlp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// Counts count everything since the intake was opened. They only grow.
type Counts struct {
	// Signals have Requests, Received, Refused and Bytes; the stores add what they kept and
	// dropped. A request that was refused before decoding counts as one item, because its number of
	// items is unknown.
	Signals []record.Signal          `json:"signals"`
	Voices  []record.TelemetrySource `json:"voices"`
	Odd     telemetry.Odd            `json:"odd"`
}

const (
	maxVoices = 1000       // services counted separately; all others share one name
	maxName   = 200        // bytes of a service's name that are kept
	others    = "(others)" // name for services beyond the limit

	maxAhead = time.Minute // all clocks are of one machine
	maxAge   = time.Hour
)

// tally counts telemetry.
type tally struct {
	last atomic.Int64 // clock.Mono of the last accepted items

	passing sync.RWMutex // read-locked while passing to consumers
	closed  bool         // guarded by passing

	mu      sync.Mutex
	signals map[string]*record.Signal
	voices  map[string]*record.TelemetrySource
	odd     telemetry.Odd
	lost    lost
	began   pcommon.Timestamp
}

func newTally() *tally {
	t := &tally{signals: map[string]*record.Signal{},
		voices: map[string]*record.TelemetrySource{}, lost: lost{},
		began: pcommon.NewTimestampFromTime(clock.Wall())}
	for _, name := range []string{record.Spans, record.Points, record.Logs} {
		t.signals[name] = &record.Signal{Name: name}
	}
	t.last.Store(clock.Mono())
	return t
}

// Last returns the time (clock.Mono) of the last accepted items.
func (t *tally) Last() int64 { return t.last.Load() }

// Counts returns the counts, sorted by name.
func (t *tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Counts{Odd: t.odd}
	for _, name := range slices.Sorted(maps.Keys(t.signals)) {
		c.Signals = append(c.Signals, *t.signals[name])
	}
	for _, service := range slices.Sorted(maps.Keys(t.voices)) {
		c.Voices = append(c.Voices, *t.voices[service])
	}
	return c
}

func (t *tally) refuse(signal string, items int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signals[signal].Refused += items
}

func (t *tally) stray() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.odd.Stray++
}

// share is the part of one resource in a request.
type share struct {
	service string
	items   int64
	bytes   int64
}

// batch is the content of one request.
type batch struct {
	signal string
	shares []share
	items  int64
	odd    telemetry.Odd
	lost   []loss
}

func (b *batch) add(resource pcommon.Resource, items, bytes int) {
	b.items += int64(items)
	b.shares = append(b.shares, share{serviceOf(resource), int64(items), int64(bytes)})
}

func serviceOf(resource pcommon.Resource) string {
	service := "(unnamed)"
	if v, ok := resource.Attributes().Get("service.name"); ok && v.AsString() != "" {
		service = v.AsString()
	}
	return service[:min(len(service), maxName)]
}

// note counts a request after the consumer has accepted or refused it.
func (t *tally) note(b *batch, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.signals[b.signal]
	if refused {
		s.Refused += b.items
		return
	}
	t.last.Store(clock.Mono())
	s.Requests++
	s.Received += b.items
	t.odd.Ahead += b.odd.Ahead
	t.odd.Old += b.odd.Old
	for _, sh := range b.shares {
		s.Bytes += sh.bytes
		v := t.voice(sh.service)
		v.Bytes += sh.bytes
		switch b.signal {
		case record.Spans:
			v.Spans += sh.items
		case record.Points:
			v.Points += sh.items
		case record.Logs:
			v.Logs += sh.items
		}
	}
	for _, l := range b.lost {
		v := t.voice(l.service)
		v.LostSpans = max(v.LostSpans, 0) + t.lost.grown(l, t.began)
	}
}

func (t *tally) voice(service string) *record.TelemetrySource {
	v, ok := t.voices[service]
	if !ok && len(t.voices) >= maxVoices {
		service = others
		v, ok = t.voices[service]
	}
	if !ok {
		v = &record.TelemetrySource{Service: service, LostSpans: -1}
		t.voices[service] = v
	}
	return v
}

// date counts unusual times. A log record may have none. It compares encoded times, because those
// beyond the year 2262 do not fit into a time.Time.
func date(o *telemetry.Odd, at pcommon.Timestamp, now time.Time) {
	switch {
	case at == 0:
	case at > pcommon.NewTimestampFromTime(now.Add(maxAhead)):
		o.Ahead++
	case at < pcommon.NewTimestampFromTime(now.Add(-maxAge)):
		o.Old++
	}
}

// hand calls a consumer and counts, unless the intake is closed: consumers are closed after it.
func (t *tally) hand(b *batch, to func() error) error {
	t.passing.RLock()
	defer t.passing.RUnlock()
	err := errClosed
	if !t.closed {
		err = to()
	}
	t.note(b, err != nil)
	return err
}

// Still calls do while no request is with the consumers or being counted. Requests wait.
func (t *tally) Still(do func()) {
	t.passing.Lock()
	defer t.passing.Unlock()
	do()
}

// Replay counts telemetry that an earlier process has accepted.
type Replay struct{ *tally }

// NewReplay returns a replay without counts.
func NewReplay() Replay { return Replay{newTally()} }

// Traces counts spans, and Logs counts log records.
func (r Replay) Traces(d ptrace.Traces) { r.note(r.traces(d), false) }
func (r Replay) Logs(d plog.Logs)       { r.note(r.logs(d), false) }

func (t *tally) shut() {
	t.passing.Lock()
	defer t.passing.Unlock()
	t.closed = true
}

// counted returns the config with the tally before its consumers.
func (t *tally) counted(c Config, slots chan struct{}) Config {
	pass := func(ctx context.Context, b *batch, to func() error) error {
		v := visitOf(ctx)
		if v == nil {
			v = &visit{}
		}
		if v.refused != nil {
			return v.refused // Zipkin's receiver continues after a read error
		}
		if v.arrived != nil {
			v.arrived()
		}
		v.counted.Store(true)
		err := takeSlot(ctx, slots, v, c.Limits.Wait)
		if err != nil {
			t.note(b, true)
			return err
		}
		defer giveSlot(slots, v)
		return t.hand(b, to)
	}
	out := c
	// The constructors fail only for nil functions.
	out.Traces, _ = consumer.NewTraces(func(ctx context.Context, d ptrace.Traces) error {
		t.sift(ctx, record.Spans, func() faults { return rejectSpans(d) })
		if d.SpanCount() == 0 {
			return nil
		}
		return pass(ctx, t.traces(d), func() error { return c.Traces.ConsumeTraces(ctx, d) })
	})
	out.Metrics, _ = consumer.NewMetrics(func(ctx context.Context, d pmetric.Metrics) error {
		t.sift(ctx, record.Points, func() faults { return rejectPoints(d) })
		if d.DataPointCount() == 0 {
			return nil
		}
		return pass(ctx, t.metrics(d), func() error { return c.Metrics.ConsumeMetrics(ctx, d) })
	})
	out.Logs, _ = consumer.NewLogs(func(ctx context.Context, d plog.Logs) error {
		t.sift(ctx, record.Logs, func() faults { return rejectLogs(d) })
		if d.LogRecordCount() == 0 {
			return nil
		}
		return pass(ctx, t.logs(d), func() error { return c.Logs.ConsumeLogs(ctx, d) })
	})
	return out
}

// sift rejects what cannot be right in a request of OTLP, counts it as refused, and leaves the
// reasons for the answer. Zipkin's answers have no place for them.
func (t *tally) sift(ctx context.Context, signal string, reject func() faults) {
	v := visitOf(ctx)
	if v == nil || v.zipkin || v.refused != nil {
		return
	}
	if v.faults = reject(); v.faults.items > 0 {
		t.refuse(signal, v.faults.items)
	}
}

func (t *tally) traces(d ptrace.Traces) *batch {
	var size ptrace.ProtoMarshaler
	b, now := &batch{signal: record.Spans}, clock.Wall()
	for _, r := range d.ResourceSpans().All() {
		for _, s := range r.ScopeSpans().All() {
			for _, span := range s.Spans().All() {
				date(&b.odd, span.StartTimestamp(), now)
			}
		}
		// Moved, not copied, and back: only a complete payload has a size.
		one := ptrace.NewTraces()
		alone := one.ResourceSpans().AppendEmpty()
		r.MoveTo(alone)
		b.add(alone.Resource(), one.SpanCount(), size.TracesSize(one))
		alone.MoveTo(r)
	}
	return b
}

func (t *tally) logs(d plog.Logs) *batch {
	var size plog.ProtoMarshaler
	b, now := &batch{signal: record.Logs}, clock.Wall()
	for _, r := range d.ResourceLogs().All() {
		for _, s := range r.ScopeLogs().All() {
			for _, l := range s.LogRecords().All() {
				date(&b.odd, l.Timestamp(), now)
			}
		}
		one := plog.NewLogs()
		alone := one.ResourceLogs().AppendEmpty()
		r.MoveTo(alone)
		b.add(alone.Resource(), one.LogRecordCount(), size.LogsSize(one))
		alone.MoveTo(r)
	}
	return b
}

// metrics counts points. The store itself leaves out, and counts, points with invalid times.
func (t *tally) metrics(d pmetric.Metrics) *batch {
	var size pmetric.ProtoMarshaler
	b := &batch{signal: record.Points}
	for _, r := range d.ResourceMetrics().All() {
		one := pmetric.NewMetrics()
		alone := one.ResourceMetrics().AppendEmpty()
		r.MoveTo(alone)
		b.add(alone.Resource(), one.DataPointCount(), size.MetricsSize(one))
		for _, s := range alone.ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				b.lost = append(b.lost, losses(alone.Resource(), m)...)
			}
		}
		alone.MoveTo(r)
	}
	return b
}

// loss is a series in which an SDK reports spans that it dropped itself.
type loss struct {
	service string
	series  string
	value   int64
	delta   bool
	start   pcommon.Timestamp // of a cumulative value; 0: unknown
}

// lostMetrics are the metrics by which SDKs count finished spans, with a check for those that were
// not sent: the semantic conventions', and the Java SDK's older one.
// https://opentelemetry.io/docs/specs/semconv/otel/sdk-metrics/
var lostMetrics = map[string]func(pcommon.Map) bool{
	"otel.sdk.processor.span.processed": failed,
	"otel.sdk.exporter.span.exported":   failed,
	"processedSpans": func(m pcommon.Map) bool {
		v, ok := m.Get("dropped")
		return ok && v.AsString() == "true"
	},
}

func failed(m pcommon.Map) bool {
	v, ok := m.Get("error.type")
	return ok && v.AsString() != ""
}

// losses returns the losses in a metric. A series without losses has the value 0, which shows that
// the SDK reports them at all.
func losses(resource pcommon.Resource, m pmetric.Metric) []loss {
	lostBy := lostMetrics[m.Name()]
	if lostBy == nil || m.Type() != pmetric.MetricTypeSum {
		return nil
	}
	service := serviceOf(resource)
	instance := "" // the value of a missing attribute must not be used
	if v, ok := resource.Attributes().Get("service.instance.id"); ok {
		instance = v.AsString()
	}
	var out []loss
	for _, d := range m.Sum().DataPoints().All() {
		var key strings.Builder
		key.WriteString(service + "\x00" + instance + "\x00" + m.Name())
		l := loss{service: service, start: d.StartTimestamp(),
			delta: m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta}
		if lostBy(d.Attributes()) {
			l.value = d.IntValue()
			if d.ValueType() == pmetric.NumberDataPointValueTypeDouble {
				l.value = int64(d.DoubleValue())
			}
		}
		for k, v := range d.Attributes().All() { // in the order sent, which is constant for an SDK
			key.WriteString("\x00" + k + "\x00" + v.AsString())
		}
		l.series = key.String()
		out = append(out, l)
	}
	return out
}

// lost holds the last value of each cumulative series.
type lost map[string]int64

// maxLost limits the series in lost, because a hostile sender can name any number.
const maxLost = 10_000

// grown returns the growth of a series since an intake began. A lower value than before means a
// restart.
func (l lost) grown(x loss, began pcommon.Timestamp) int64 {
	if x.delta || x.value < 0 {
		return max(x.value, 0)
	}
	before, ok := l[x.series]
	if !ok && len(l) >= maxLost {
		return 0
	}
	l[x.series] = x.value
	if !ok && x.start != 0 && x.start < began {
		return 0 // unknown: what the SDK lost before
	}
	if x.value < before {
		return x.value
	}
	return x.value - before
}
