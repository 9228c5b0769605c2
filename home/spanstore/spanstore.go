// Package spanstore stores traces of services by trial: it counts every span, and stores complete
// traces that failed, were slowest or have an id from the load, and a uniform sample, all within
// bounds.
//
//	ptrace.Traces ─► counts by window ─► span metrics ─► callback
//	             └─► assembly ─► silent or End ─► places of its window ─► spans.ndjson
//
// It counts what it drops. Its memory is bounded by Options for any input: if too much is under
// assembly, it judges the traces that were silent longest early.
//
// Non-goals: it does not receive, interpret or read traces (package traces reads).
package spanstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// Limits of traces under assembly, besides Options.Bytes.
const (
	maxTraces  = 50_000
	maxSpans   = 5000    // of one trace
	traceBytes = 4 << 20 // of one trace
)

// Options bound a store. Zero fields have the defaults.
type Options struct {
	// Silence is the time without a span after which a trace counts as complete. Senders batch
	// spans for up to 5 s (OpenTelemetry's batch processor), so the default is 12 s, more than two
	// batches.
	Silence      time.Duration
	Bytes        int64 // of traces under assembly, 64 MB
	KeptBytes    int64 // of stored traces, until their trial ends, 64 MB
	Asked        int   // stored traces of each class and window: 256, 64, 64, 64
	Errors       int
	Slow         int
	Uniform      int
	MetricSeries int // of span metrics in one trial, 2,000
	// Metrics receives the span metrics, cumulative since the trial began. It is called after
	// changes at the interval Every (5 s), at End, and by Flush; never while the store is locked.
	Metrics func(context.Context, pmetric.Metrics) error
	Every   time.Duration
}

func (o Options) withDefaults() Options {
	o.Silence = cmp.Or(o.Silence, 12*time.Second)
	o.Bytes = cmp.Or(o.Bytes, 64<<20)
	o.KeptBytes = cmp.Or(o.KeptBytes, 64<<20)
	o.Asked = cmp.Or(o.Asked, 256)
	o.Errors = cmp.Or(o.Errors, 64)
	o.Slow = cmp.Or(o.Slow, 64)
	o.Uniform = cmp.Or(o.Uniform, 64)
	o.MetricSeries = cmp.Or(o.MetricSeries, 2000)
	o.Every = cmp.Or(o.Every, 5*time.Second)
	return o
}

// Ended is a store's result for an ended trial.
type Ended struct {
	Loads  map[string]record.WindowTelemetry // by window; only the counts of this store
	Counts Counts
	IDs    map[pcommon.TraceID]bool // of stored traces; nil for a store of logs
}

// Store receives spans and writes the traces that it keeps. It is safe for concurrent use.
type Store struct {
	o     Options
	trace *os.File
	calls *os.File

	trials    Roll[*trial, *candidate] // its lock also guards the fields below
	pending   assembly
	exportErr error

	stop context.CancelFunc
	work sync.WaitGroup
}

// trial is a trial under way.
type trial struct {
	Under[*candidate]
	metrics *callMetrics
	news    bool // spans arrived since the last export
	kept    map[pcommon.TraceID]*candidate
}

// Open creates the folder if it is missing, and appends to its files. It terminates a line that a
// crash left incomplete, so that the next line is valid.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{o: o.withDefaults()}
	s.pending.byID = map[pcommon.TraceID]*pending{}
	s.trials.Most, s.trials.Lost = s.o.KeptBytes, s.drop
	var err error
	if s.trace, err = OpenLines(filepath.Join(dir, telemetry.SpansFile)); err != nil {
		return nil, fmt.Errorf("open spans: %w", err)
	}
	if s.calls, err = OpenLines(filepath.Join(dir, traces.MetricsFile)); err != nil {
		return nil, errors.Join(fmt.Errorf("open spans: %w", err), s.trace.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.work.Go(func() { s.tell(ctx) })
	return s, nil
}

// tell exports the metrics at intervals, and judges silent traces if no span arrives.
func (s *Store) tell(ctx context.Context) {
	for range clock.Every(ctx, s.o.Every) {
		s.trials.Lock()
		s.sweep(clock.Mono())
		s.trials.Unlock()
		if err := s.Flush(context.Background()); err != nil {
			s.trials.Lock()
			s.exportErr = err // the latest error; Close returns it
			s.trials.Unlock()
		}
	}
}

// Begin starts a trial. Spans belong to the latest one, unless their resource has the attribute
// traces.TrialAttribute.
func (s *Store) Begin(t telemetry.Trial) error {
	return s.trials.Begin(&trial{
		Under: Under[*candidate]{Trial: t,
			Places: func() Group[*candidate] { return newGroup(s.o) }},
		metrics: newMetrics(s.o.MetricSeries, clock.Wall().UnixNano()),
		kept:    map[pcommon.TraceID]*candidate{},
	})
}

// Mark opens or closes a window of a trial.
func (s *Store) Mark(m telemetry.Mark) error { return s.trials.Mark(m) }

// MayKeep reports whether a trace is kept so far or may still be.
func (s *Store) MayKeep(id pcommon.TraceID) bool {
	s.trials.Lock()
	defer s.trials.Unlock()
	return s.pending.byID[id] != nil ||
		slices.ContainsFunc(s.trials.Trials, func(t *trial) bool { return t.kept[id] != nil })
}

// ConsumeTraces adds spans. It keeps references, so the caller must not change them afterwards.
func (s *Store) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	now, wall := clock.Mono(), clock.Wall().UnixNano()
	s.trials.Lock()
	defer s.trials.Unlock()
	for _, r := range td.ResourceSpans().All() {
		service, t := s.trials.Origin(r.Resource().Attributes())
		for _, scope := range r.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				s.consume(t, span, service, now, wall)
			}
		}
	}
	s.sweep(now)
	return nil
}

// ServiceOf returns the name of the service in a resource.
func ServiceOf(resource pcommon.Map) string {
	if v, ok := resource.Get("service.name"); ok && v.AsString() != "" {
		return traces.CutText(v.AsString(), traces.MaxNameBytes)
	}
	return "unknown_service"
}

func (s *Store) consume(t *trial, span ptrace.Span, service string, now, wall int64) {
	if t == nil {
		s.trials.Stray()
		return
	}
	t.Counts.Received++
	t.news = true
	t.metrics.add(span, service)
	add := record.WindowTelemetry{Spans: 1}
	if span.Status().Code() == ptrace.StatusCodeError {
		add.ErrorSpans = 1
	}
	t.Windows.Add(nanos(span.StartTimestamp()), wall, add)
	s.assemble(t, span, service, now)
}

// assemble adds a counted span to its trace.
func (s *Store) assemble(t *trial, span ptrace.Span, service string, now int64) {
	id := span.TraceID()
	if c := t.kept[id]; c != nil {
		s.late(t, c, span, service)
		return
	}
	p := s.pending.byID[id]
	if p == nil {
		p = &pending{id: id, trial: t}
		s.pending.byID[id], p.at = p, s.pending.silent.PushBack(p)
	} else {
		s.pending.silent.MoveToBack(p.at)
	}
	p.lastNs = now
	if span.Status().Code() == ptrace.StatusCodeError {
		p.errors++
	}
	p.asked = p.asked || isAsked(span.TraceState().AsRaw())
	s.pending.add(p, span, service)
	for s.pending.bytes > s.o.Bytes || len(s.pending.byID) > maxTraces {
		s.judge(s.pending.first())
	}
}

// sweep judges all traces that were silent long enough.
func (s *Store) sweep(now int64) {
	for {
		p := s.pending.first()
		if p == nil || now-p.lastNs < int64(s.o.Silence) {
			return
		}
		s.judge(p)
	}
}

// Flush passes the metrics of the trials under way to the callback.
func (s *Store) Flush(ctx context.Context) error {
	s.trials.Lock()
	under := slices.Clone(s.trials.Trials)
	under = slices.DeleteFunc(under, func(t *trial) bool { return !t.news })
	s.trials.Unlock()
	return s.export(ctx, under, clock.Wall().UnixNano())
}

func (s *Store) export(ctx context.Context, trials []*trial, nowNs int64) error {
	if s.o.Metrics == nil {
		return nil
	}
	out := pmetric.NewMetrics()
	s.trials.Lock()
	for _, t := range trials {
		t.news = false
		t.metrics.write(out, t.ID, t.Target, nowNs)
	}
	s.trials.Unlock()
	if out.ResourceMetrics().Len() == 0 {
		return nil
	}
	if err := s.o.Metrics(ctx, out); err != nil {
		return fmt.Errorf("compute span metrics: %w", err)
	}
	return nil
}

// Counts returns the counts of all trials so far. Kept includes only ended trials.
func (s *Store) Counts() Counts { return s.trials.Counts() }

// Close ends the trials under way and closes the files.
func (s *Store) Close() error {
	s.stop()
	s.work.Wait()
	var errs []error
	for _, id := range s.trials.IDs() {
		_, err := s.End(id)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.exportErr, s.trace.Close(), s.calls.Close())...)
}
