package intake

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"prony/internal/result"
)

// metrics counts. What is dated so that a store cannot have it is left out, and counted, there.
func (t *tally) metrics(d pmetric.Metrics) *batch {
	var size pmetric.ProtoMarshaler
	b := &batch{signal: result.Points}
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

// loss is one series of an SDK's word on spans that it dropped itself.
type loss struct {
	service string
	series  string
	value   int64
	delta   bool
}

// lostMetrics are what SDKs count finished spans by, and which attribute marks those that were not
// passed on: the semantic conventions', and the Java SDK's older one.
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

// losses finds them; a series without losses is one of 0, which is what tells that an SDK speaks of
// them at all.
func losses(resource pcommon.Resource, m pmetric.Metric) []loss {
	lostBy := lostMetrics[m.Name()]
	if lostBy == nil || m.Type() != pmetric.MetricTypeSum {
		return nil
	}
	var one batch
	one.add(resource, 0, 0)
	instance := "" // the value of a missing attribute must not be touched
	if v, ok := resource.Attributes().Get("service.instance.id"); ok {
		instance = v.AsString()
	}
	var out []loss
	for _, d := range m.Sum().DataPoints().All() {
		var key strings.Builder
		key.WriteString(one.shares[0].service + "\x00" + instance + "\x00" + m.Name())
		l := loss{service: one.shares[0].service,
			delta: m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta}
		if lostBy(d.Attributes()) {
			l.value = d.IntValue()
			if d.ValueType() == pmetric.NumberDataPointValueTypeDouble {
				l.value = int64(d.DoubleValue())
			}
		}
		for k, v := range d.Attributes().All() { // in the order sent, which an SDK does not change
			key.WriteString("\x00" + k + "\x00" + v.AsString())
		}
		l.series = key.String()
		out = append(out, l)
	}
	return out
}

// lost remembers the last value of each cumulative series.
type lost map[string]int64

// maxLost bounds the series that are remembered; a hostile sender can name any number.
const maxLost = 10_000

// grown is by how much a series has grown. One that is lower than it was began anew.
func (l lost) grown(x loss) int64 {
	if x.delta || x.value < 0 {
		return max(x.value, 0)
	}
	before, ok := l[x.series]
	if !ok && len(l) >= maxLost {
		return 0
	}
	l[x.series] = x.value
	if x.value < before {
		return x.value
	}
	return x.value - before
}
