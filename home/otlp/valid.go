package otlp

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
)

// faults counts the rejected items of a request by reason. OTLP has one count and one text for
// them: partial_success.
// https://opentelemetry.io/docs/specs/otlp/#partial-success
type faults struct {
	items, total int64
	reasons      map[string]int64
	first        []string // the reasons in order of occurrence
	now          time.Time
}

// bad counts an item if it has a reason to be rejected, and reports whether it has.
func (f *faults) bad(reason string) bool {
	f.total++
	if reason == "" {
		return false
	}
	f.items++
	if f.reasons[reason] == 0 {
		if f.reasons == nil {
			f.reasons = map[string]int64{}
		}
		f.first = append(f.first, reason)
	}
	f.reasons[reason]++
	return true
}

// text returns a sentence such as "3 of 10 spans rejected: 2 end before they start, 1 …".
func (f *faults) text(noun string) string {
	if f.items == 0 {
		return fmt.Sprintf("the request has no %s; check the keys of its lists", noun)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d of %d %s rejected: ", f.items, f.total, noun)
	for i, reason := range f.first {
		if i > 0 {
			out.WriteString("; ")
		}
		fmt.Fprintf(&out, "%d × %s", f.reasons[reason], reason)
	}
	return out.String()
}

// Times outside of these are a wrong unit, such as milliseconds instead of nanoseconds, or a wrong
// clock.
var earliest = pcommon.NewTimestampFromTime(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))

const latest = 24 * time.Hour // from now

// when returns what is wrong with a time, or "".
func (f *faults) when(name string, at pcommon.Timestamp) string {
	switch {
	case at == 0:
		return name + " is missing"
	case at < earliest:
		return name + " is before 1990; send nanoseconds"
	case at > pcommon.NewTimestampFromTime(f.now.Add(latest)):
		return name + " is more than a day ahead"
	}
	return ""
}

// rejectSpans removes the spans that cannot be right.
func rejectSpans(d ptrace.Traces) (f faults) {
	f.now = clock.Wall()
	for _, r := range d.ResourceSpans().All() {
		for _, s := range r.ScopeSpans().All() {
			s.Spans().RemoveIf(func(s ptrace.Span) bool { return f.bad(f.span(s)) })
		}
	}
	return f
}

func (f *faults) span(s ptrace.Span) string {
	switch {
	case s.TraceID().IsEmpty():
		return "the trace id is missing or zero, or an id has a wrong length"
	case s.SpanID().IsEmpty():
		return "the span id is missing or zero"
	case s.ParentSpanID() == s.SpanID():
		return "the span is its own parent"
	}
	if why := f.when("the start", s.StartTimestamp()); why != "" {
		return why
	} else if why := f.when("the end", s.EndTimestamp()); why != "" {
		return why
	} else if s.EndTimestamp() < s.StartTimestamp() {
		return "the end is before the start"
	}
	return ""
}

// rejectLogs removes the log records that cannot be right. A record may lack its times.
func rejectLogs(d plog.Logs) (f faults) {
	f.now = clock.Wall()
	for _, r := range d.ResourceLogs().All() {
		for _, s := range r.ScopeLogs().All() {
			s.LogRecords().RemoveIf(func(l plog.LogRecord) bool { return f.bad(f.record(l)) })
		}
	}
	return f
}

func (f *faults) record(l plog.LogRecord) string {
	if !l.SpanID().IsEmpty() && l.TraceID().IsEmpty() {
		return "the span id has no trace id, or an id has a wrong length"
	}
	if l.Timestamp() != 0 {
		if why := f.when("the time", l.Timestamp()); why != "" {
			return why
		}
	}
	if l.ObservedTimestamp() != 0 {
		return f.when("the observed time", l.ObservedTimestamp())
	}
	return ""
}

// rejectPoints removes the data points that cannot be right.
func rejectPoints(d pmetric.Metrics) (f faults) {
	f.now = clock.Wall()
	for _, r := range d.ResourceMetrics().All() {
		for _, s := range r.ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				f.metric(m)
			}
		}
	}
	return f
}

func (f *faults) metric(m pmetric.Metric) {
	name, kind := "", pmetric.AggregationTemporalityCumulative
	if m.Name() == "" {
		name = "the metric has no name"
	} else if !strings.ContainsFunc(m.Name(), isNameRune) {
		name = "the metric's name has no ASCII letter or digit"
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		kind = m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		kind = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		kind = m.ExponentialHistogram().AggregationTemporality()
	}
	if name == "" && kind == pmetric.AggregationTemporalityUnspecified {
		name = "the metric has no aggregation temporality"
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		weed(f, name, m.Gauge().DataPoints(), gaugeFault)
	case pmetric.MetricTypeSum:
		weed(f, name, m.Sum().DataPoints(), func(p pmetric.NumberDataPoint) string {
			return sumFault(p, m.Sum().IsMonotonic())
		})
	case pmetric.MetricTypeHistogram:
		weed(f, name, m.Histogram().DataPoints(), histogramFault)
	case pmetric.MetricTypeExponentialHistogram:
		weed(f, name, m.ExponentialHistogram().DataPoints(), exponentialFault)
	case pmetric.MetricTypeSummary:
		weed(f, name, m.Summary().DataPoints(), summaryFault)
	}
}

// isNameRune reports whether names of Prometheus keep a character. They have an underscore instead
// of each other one, and a name of underscores only is none.
func isNameRune(r rune) bool {
	return r == ':' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// point is a data point of any type.
type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	StartTimestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

// weed removes the points of a metric that cannot be right: all, if the metric itself is wrong.
// The value of a point that says that it has none is not checked.
func weed[P point](f *faults, metric string, points interface{ RemoveIf(func(P) bool) },
	value func(P) string) {
	points.RemoveIf(func(p P) bool {
		why := metric
		if why == "" {
			why = f.when("the time", p.Timestamp())
		}
		if why == "" && p.StartTimestamp() > p.Timestamp() {
			why = "the start is after the time"
		}
		if why == "" {
			why = attachedFault(p)
		}
		if why == "" && !p.Flags().NoRecordedValue() {
			why = value(p)
		}
		return f.bad(why)
	})
}

// attachedFault checks what belongs to a point beside its value. The store would skip the metric's
// later points, too.
func attachedFault(p point) string {
	if _, nameless := p.Attributes().Get(""); nameless {
		return "an attribute has no name"
	}
	if x, ok := p.(interface{ Exemplars() pmetric.ExemplarSlice }); ok {
		for _, e := range x.Exemplars().All() {
			if e.ValueType() == pmetric.ExemplarValueTypeEmpty {
				return "an exemplar has no value"
			}
		}
	}
	return ""
}

// gaugeFault accepts NaN, because a gauge may be unknown.
func gaugeFault(p pmetric.NumberDataPoint) string {
	if p.ValueType() == pmetric.NumberDataPointValueTypeEmpty {
		return "the point has no value"
	}
	return ""
}

func sumFault(p pmetric.NumberDataPoint, monotonic bool) string {
	v := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	switch {
	case p.ValueType() == pmetric.NumberDataPointValueTypeEmpty:
		return "the point has no value"
	case math.IsNaN(v):
		return "the sum is NaN"
	case monotonic && v < 0:
		return "the monotonic sum is negative"
	}
	return ""
}

// totals is what histograms of both kinds have.
type totals interface {
	Count() uint64
	HasSum() bool
	Sum() float64
	HasMin() bool
	Min() float64
	HasMax() bool
	Max() float64
}

func totalsFault(p totals) string {
	switch {
	case p.HasSum() && math.IsNaN(p.Sum()):
		return "the histogram's sum is NaN"
	case p.HasSum() && p.Count() == 0 && p.Sum() != 0:
		return "the histogram has a sum without a count"
	case p.HasMin() && math.IsNaN(p.Min()) || p.HasMax() && math.IsNaN(p.Max()):
		return "the histogram's minimum or maximum is NaN"
	case p.HasMin() && p.HasMax() && p.Count() > 0 && p.Min() > p.Max():
		return "the histogram's minimum is above its maximum"
	}
	return ""
}

// histogramFault also accepts a histogram without buckets, which has its totals only.
func histogramFault(p pmetric.HistogramDataPoint) string {
	bounds, counts := p.ExplicitBounds(), p.BucketCounts()
	if bounds.Len() == 0 && counts.Len() == 0 {
		return totalsFault(p)
	}
	if counts.Len() != bounds.Len()+1 {
		return "the histogram must have one bucket more than bounds"
	}
	for i, b := range bounds.All() {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= bounds.At(i-1) {
			return "the histogram's bounds must be finite and ascend"
		}
	}
	if !adds(p.Count(), 0, counts) {
		return "the histogram's buckets do not add up to its count"
	}
	return totalsFault(p)
}

// scaleMin is the smallest scale of histograms in Prometheus. Buckets of a smaller one are wider,
// and cannot be divided.
const scaleMin = -4

func exponentialFault(p pmetric.ExponentialHistogramDataPoint) string {
	switch z := p.ZeroThreshold(); {
	case p.Scale() < scaleMin:
		return fmt.Sprintf("the histogram's scale is below %d, the smallest that can be stored",
			scaleMin)
	case math.IsNaN(z) || z < 0:
		return "the histogram's zero threshold is negative or NaN"
	case !adds(p.Count(), p.ZeroCount(), p.Positive().BucketCounts(),
		p.Negative().BucketCounts()):
		return "the histogram's buckets do not add up to its count"
	}
	for _, b := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
		if int64(b.Offset())+int64(b.BucketCounts().Len()) > math.MaxInt32 {
			return "the histogram's bucket numbers exceed 32 bits"
		}
	}
	return totalsFault(p)
}

// adds reports whether counts add up to a total, without overflow.
func adds(total, zero uint64, counts ...pcommon.UInt64Slice) bool {
	if zero > total {
		return false
	}
	total -= zero
	for _, list := range counts {
		for _, n := range list.All() {
			if n > total {
				return false
			}
			total -= n
		}
	}
	return total == 0
}

// summaryFault accepts NaN as a value, which a quantile of nothing has.
func summaryFault(p pmetric.SummaryDataPoint) string {
	for _, q := range p.QuantileValues().All() {
		if !(q.Quantile() >= 0 && q.Quantile() <= 1) {
			return "the summary's quantiles must be from 0 to 1"
		}
	}
	if math.IsNaN(p.Sum()) {
		return "the summary's sum is NaN"
	}
	return ""
}
