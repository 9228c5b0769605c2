package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/home/logstore"
	"prony.example/home/spanstore"
	"prony.example/home/tsdb"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// Stores store telemetry. They are safe for concurrent use.
type Stores interface {
	ConsumeTraces(context.Context, ptrace.Traces) error
	ConsumeMetrics(context.Context, pmetric.Metrics) error
	ConsumeLogs(context.Context, plog.Logs) error
	// ConsumeOwn stores Prony's own gauges without counting them, and returns the number of dropped
	// samples by reason.
	ConsumeOwn(context.Context, pmetric.Metrics) (map[string]int64, error)
	Handler() http.Handler // Prometheus' HTTP interface
	Begin(telemetry.Trial) error
	Scrape(telemetry.Trial) error // starts scraping
	Mark(telemetry.Mark) error
	// End returns the counts of a trial by window, and what was kept.
	End(trial string) (map[string]record.WindowTelemetry, Outcomes, error)
	// Save passes on what is in memory of trials under way, and Load restores it in a process that
	// has begun these trials again. Files are those to which End appends.
	Save(spanstore.Put) error
	Load(kind byte, data []byte) error
	Files() []string
	// Fates returns the counts since the stores were opened.
	Fates() Outcomes
	Close() error
}

// Opener opens the stores in a folder.
type Opener func(dir string) (Stores, error)

// Outcomes counts items that were kept or dropped. A dropped point counts by its samples, which may
// be several.
type Outcomes struct {
	PointsDropped             int64
	SpansKept, LogsKept       int64
	SpansDropped, LogsDropped int64
}

// nothing opens stores that keep nothing.
func nothing(string) (Stores, error) { return none{}, nil }

type none struct{}

func (none) ConsumeTraces(context.Context, ptrace.Traces) error    { return nil }
func (none) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }
func (none) ConsumeLogs(context.Context, plog.Logs) error          { return nil }
func (none) ConsumeOwn(context.Context, pmetric.Metrics) (map[string]int64, error) {
	return nil, nil
}
func (none) Handler() http.Handler        { return http.NotFoundHandler() }
func (none) Begin(telemetry.Trial) error  { return nil }
func (none) Scrape(telemetry.Trial) error { return nil }
func (none) Mark(telemetry.Mark) error    { return nil }
func (none) End(string) (map[string]record.WindowTelemetry, Outcomes, error) {
	return nil, Outcomes{}, nil
}
func (none) Save(spanstore.Put) error { return nil }
func (none) Load(byte, []byte) error  { return nil }
func (none) Files() []string          { return nil }
func (none) Fates() Outcomes          { return Outcomes{} }
func (none) Close() error             { return nil }

// stores are the real ones. Each embedded store provides the methods that only it has.
type stores struct {
	*metricStore
	*spanStore
	*logStore
	dropped map[string]int64 // points dropped before a trial began
}

type (
	metricStore = tsdb.Store
	spanStore   = spanstore.Store
	logStore    = logstore.Store
)

func openReal(dir string) (Stores, error) {
	s := &stores{dropped: map[string]int64{}}
	var err error
	s.metricStore, err = tsdb.Open(filepath.Join(dir, telemetry.TSDBDir), tsdb.Options{})
	if err != nil {
		return nil, err
	}
	s.spanStore, err = spanstore.Open(dir, spanstore.Options{Metrics: s.metricStore.ConsumeMetrics})
	if err != nil {
		return nil, errors.Join(err, s.metricStore.Close())
	}
	s.logStore, err = logstore.Open(dir, logstore.Options{Wanted: s.spanStore.MayKeep})
	if err != nil {
		return nil, errors.Join(err, s.spanStore.Close(), s.metricStore.Close())
	}
	return s, nil
}

func (s *stores) Begin(t telemetry.Trial) error {
	s.dropped[t.ID] = s.pointsDropped()
	return errors.Join(s.spanStore.Begin(t), s.logStore.Begin(t), s.metricStore.Scrape(t))
}

func (s *stores) pointsDropped() (n int64) {
	for _, d := range s.metricStore.Stats().Dropped {
		n += d
	}
	return n
}

func (s *stores) Mark(m telemetry.Mark) error {
	if m.Kind == telemetry.Phase {
		return nil // these stores use only windows
	}
	return errors.Join(s.spanStore.Mark(m), s.logStore.Mark(m))
}

// End ends the stores in the order of their dependencies: it reads pages once more, then the spans
// make their last metrics and decide which traces are kept, and the logs keep the lines of these
// traces.
func (s *stores) End(trial string) (map[string]record.WindowTelemetry, Outcomes, error) {
	s.metricStore.StopScrape()
	of, err1 := s.spanStore.End(trial)
	lines, err2 := s.logStore.End(trial, func(id pcommon.TraceID) bool { return of.IDs[id] })
	err3 := s.metricStore.EndTrial(clock.Wall(), trial)
	told := map[string]record.WindowTelemetry{}
	maps.Copy(told, of.Loads)
	for name, t := range lines.Loads {
		one := told[name]
		one.Logs = t.Logs
		told[name] = one
	}
	f := s.fates(of.Counts, lines.Counts)
	f.PointsDropped -= s.dropped[trial]
	delete(s.dropped, trial)
	if err := errors.Join(err1, err2, err3); err != nil {
		return told, f, fmt.Errorf("end trial %s in the stores: %w", trial, err)
	}
	return told, f, nil
}

// Save leaves out metrics, because their database has its own write-ahead log.
func (s *stores) Save(put spanstore.Put) error {
	return errors.Join(s.spanStore.Save(put), s.logStore.Save(put))
}

func (s *stores) Load(kind byte, data []byte) error {
	return errors.Join(s.spanStore.Load(kind, data), s.logStore.Load(kind, data))
}

func (s *stores) Files() []string {
	return append(s.spanStore.Files(), s.logStore.Files()...)
}

func (s *stores) Fates() Outcomes {
	return s.fates(s.spanStore.Counts(), s.logStore.Counts())
}

func (s *stores) fates(of, lines spanstore.Counts) Outcomes {
	return Outcomes{
		PointsDropped: s.pointsDropped(),
		SpansKept:     of.Kept, SpansDropped: of.Dropped,
		LogsKept: lines.Kept, LogsDropped: lines.Dropped,
	}
}

// Close closes the spans before the logs, as End does, and the metrics last, because the spans add
// metrics.
func (s *stores) Close() error {
	return errors.Join(s.spanStore.Close(), s.logStore.Close(), s.metricStore.Close())
}
