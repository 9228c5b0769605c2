package tsdb

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"github.com/prometheus/prometheus/config"
	otlp "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/metric/noop"
)

// LabelTrial is the label that identifies a trial's series.
const LabelTrial = "prony_trial"

// promoted are the attributes of a resource that become labels of each of its series, with
// underscores for dots. The others become labels of target_info.
var promoted = []string{
	"service.name", "service.instance.id", "telemetry.sdk.language",
	"prony.trial", "prony.target", "prony.variant",
}

func (s *Store) settings() otlp.Settings {
	return otlp.Settings{
		AddMetricSuffixes: true, LookbackDelta: lookback,
		PromoteResourceAttributes: otlp.NewPromoteResourceAttributes(config.OTLPConfig{
			PromoteResourceAttributes: promoted,
		}),
		LabelNameUnderscoreSanitization: true,
	}
}

// openDeltas prepares the conversion of deltas to sums, as Prometheus does with its flag
// otlp-deltatocumulative.
func (s *Store) openDeltas() error {
	f := deltatocumulativeprocessor.NewFactory()
	cfg := f.CreateDefaultConfig()
	if c, ok := cfg.(*deltatocumulativeprocessor.Config); ok {
		c.MaxStreams = int(min(s.o.MaxSeries, math.MaxInt32))
	}
	next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		s.deltaReached = int64(md.DataPointCount())
		return s.translate(ctx, md)
	})
	if err != nil {
		return err
	}
	set := processor.Settings{
		ID:                component.NewID(f.Type()),
		TelemetrySettings: component.TelemetrySettings{MeterProvider: noop.NewMeterProvider()},
	}
	if s.deltas, err = f.CreateMetrics(context.Background(), set, cfg, next); err != nil {
		return err
	}
	return s.deltas.Start(context.Background(), nil)
}

// ConsumeMetrics stores OTLP metrics under their Prometheus names (OpenTelemetry, "Prometheus and
// OpenMetrics compatibility"): underscores, units and _total as suffixes. It sums up deltas;
// explicit histograms become _bucket, _sum and _count, exponential ones native histograms. It does
// not change md. Errors come only from a cancelled context or the disk: bad data is counted
// instead.
func (s *Store) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	low := pcommon.NewTimestampFromTime(s.o.Now().Add(-maxAge))
	high := pcommon.NewTimestampFromTime(s.o.Now().Add(maxAhead))
	var old, future int64
	bad := func(ts pcommon.Timestamp) bool {
		if ts < low {
			old++
		} else if ts > high {
			future++
		}
		return ts < low || ts > high
	}
	delta := false
	each(md, func(m pmetric.Metric) {
		delta = look(m, bad, false) || delta
	})
	if delta || old+future > 0 {
		own := pmetric.NewMetrics()
		md.CopyTo(own)
		md = own
	}
	if old+future > 0 {
		s.count(map[string]int64{DropOld: old, DropFuture: future})
		each(md, func(m pmetric.Metric) { look(m, bad, true) })
	}
	if !delta {
		return s.translate(ctx, md)
	}
	s.deltaMu.Lock()
	defer s.deltaMu.Unlock()
	s.deltaReached = 0
	points := int64(md.DataPointCount())
	err := s.deltas.ConsumeMetrics(ctx, md)
	if lost := points - s.deltaReached; lost > 0 {
		s.count(map[string]int64{DropDelta: lost})
	}
	return err
}

// translate appends in one transaction. Timestamps were checked before, because the translator
// writes target_info for all the time between the first and the last.
func (s *Store) translate(ctx context.Context, md pmetric.Metrics) error {
	return s.convert(ctx, md, s.gate(ctx))
}

// ConsumeOwn is ConsumeMetrics for Prony's own gauges, which do not count as received. It returns
// the number of dropped samples by reason.
func (s *Store) ConsumeOwn(ctx context.Context, md pmetric.Metrics) (map[string]int64, error) {
	g := s.gate(ctx)
	g.quiet = true
	return g.dropped, s.convert(ctx, md, g)
}

func (s *Store) convert(ctx context.Context, md pmetric.Metrics, g *gate) error {
	c := otlp.NewPrometheusConverter(g)
	_, err := c.FromMetrics(ctx, md, s.settings())
	if ctx.Err() != nil {
		return errors.Join(fmt.Errorf("store metrics: %w", ctx.Err()), g.Rollback())
	}
	if n := countErrors(err); n > 0 {
		g.drop(DropUntranslatable, n)
	}
	if err := g.Commit(); err != nil {
		return fmt.Errorf("store metrics: %w", err)
	}
	return nil
}

// countErrors returns the number of joined errors.
func countErrors(err error) int {
	if err == nil {
		return 0
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return 1
	}
	n := 0
	for _, e := range joined.Unwrap() {
		n += countErrors(e)
	}
	return n
}

func each(md pmetric.Metrics, f func(pmetric.Metric)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				f(m)
			}
		}
	}
}

// points are the points of one metric, of any type.
type points[P stamped] interface {
	Len() int
	At(int) P
	RemoveIf(func(P) bool)
}

type stamped interface{ Timestamp() pcommon.Timestamp }

func lookAt[P stamped](ps points[P], bad func(pcommon.Timestamp) bool, weed bool) {
	if weed {
		ps.RemoveIf(func(p P) bool { return bad(p.Timestamp()) })
		return
	}
	for i := range ps.Len() {
		bad(ps.At(i).Timestamp())
	}
}

// look calls bad with each timestamp, and reports whether the metric has deltas. With weed it
// removes the points for which bad returns true; otherwise it writes nothing, so that others may
// read the same data.
func look(m pmetric.Metric, bad func(pcommon.Timestamp) bool, weed bool) bool {
	const delta = pmetric.AggregationTemporalityDelta
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		lookAt(m.Gauge().DataPoints(), bad, weed)
	case pmetric.MetricTypeSum:
		lookAt(m.Sum().DataPoints(), bad, weed)
		return m.Sum().AggregationTemporality() == delta
	case pmetric.MetricTypeHistogram:
		lookAt(m.Histogram().DataPoints(), bad, weed)
		return m.Histogram().AggregationTemporality() == delta
	case pmetric.MetricTypeExponentialHistogram:
		lookAt(m.ExponentialHistogram().DataPoints(), bad, weed)
		return m.ExponentialHistogram().AggregationTemporality() == delta
	case pmetric.MetricTypeSummary:
		lookAt(m.Summary().DataPoints(), bad, weed)
	}
	return false
}
