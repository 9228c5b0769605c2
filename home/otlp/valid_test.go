package otlp

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// checkFaults checks that one good item stays and one bad item is rejected with a reason.
func checkFaults(t *testing.T, name string, f faults, left int, want string) {
	t.Helper()
	if want == "" && f.items == 0 && left == 2 {
		return
	}
	if f.items != 1 || left != 1 || !strings.Contains(f.text("items"), want) || want == "" {
		t.Errorf("%s: %d left, %q, want %q", name, left, f.text("items"), want)
	}
}

func TestSpansThatCannotBeRight(t *testing.T) {
	now := pcommon.NewTimestampFromTime(clock.Wall())
	for name, row := range map[string]struct {
		change func(ptrace.Span)
		want   string
	}{
		"right":    {func(ptrace.Span) {}, ""},
		"instant":  {func(s ptrace.Span) { s.SetEndTimestamp(s.StartTimestamp()) }, ""},
		"trace id": {func(s ptrace.Span) { s.SetTraceID(pcommon.TraceID{}) }, "trace id is"},
		"span id":  {func(s ptrace.Span) { s.SetSpanID(pcommon.SpanID{}) }, "span id is missing"},
		"parent":   {func(s ptrace.Span) { s.SetParentSpanID(s.SpanID()) }, "its own parent"},
		"start":    {func(s ptrace.Span) { s.SetStartTimestamp(0) }, "the start is missing"},
		"end":      {func(s ptrace.Span) { s.SetEndTimestamp(0) }, "the end is missing"},
		"backward": {func(s ptrace.Span) { s.SetEndTimestamp(now - 1e9) }, "before the start"},
		"ms":       {func(s ptrace.Span) { s.SetStartTimestamp(now / 1e6) }, "before 1990"},
		"ahead": {func(s ptrace.Span) { s.SetEndTimestamp(now + 25*3600*1e9) },
			"the end is more than a day ahead"},
		"no end of it": {func(s ptrace.Span) { s.SetEndTimestamp(math.MaxUint64) }, "a day ahead"},
	} {
		d := traces("shop", 2)
		row.change(d.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1))
		checkFaults(t, name, rejectSpans(d), d.SpanCount(), row.want)
	}
}

func TestLogsThatCannotBeRight(t *testing.T) {
	for name, row := range map[string]struct {
		change func(plog.LogRecord)
		want   string
	}{
		"without times": {func(plog.LogRecord) {}, ""},
		"in a trace": {func(l plog.LogRecord) {
			l.SetTraceID(pcommon.TraceID{1})
			l.SetSpanID(pcommon.SpanID{1})
		}, ""},
		"span alone": {func(l plog.LogRecord) { l.SetSpanID(pcommon.SpanID{1}) }, "no trace id"},
		"seconds":    {func(l plog.LogRecord) { l.SetTimestamp(1e9) }, "the time is before 1990"},
		"observed": {func(l plog.LogRecord) { l.SetObservedTimestamp(math.MaxUint64) },
			"the observed time is more than a day ahead"},
	} {
		d := records("shop", 2)
		row.change(d.ResourceLogs().At(0).ScopeLogs().At(1).LogRecords().At(0))
		checkFaults(t, name, rejectLogs(d), d.LogRecordCount(), row.want)
	}
}

// pointRow is a metric with one good point, which change turns into a bad one.
type pointRow struct {
	change func(pmetric.Metric)
	want   string
}

func numberRows(now pcommon.Timestamp) map[string]pointRow {
	gauge := func(m pmetric.Metric) pmetric.NumberDataPoint {
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(now)
		return p
	}
	sum := func(m pmetric.Metric, v float64, monotonic bool) pmetric.NumberDataPoint {
		s := m.SetEmptySum()
		s.SetIsMonotonic(monotonic)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := s.DataPoints().AppendEmpty()
		p.SetTimestamp(now)
		p.SetDoubleValue(v)
		return p
	}
	return map[string]pointRow{
		"gauge":    {func(m pmetric.Metric) { gauge(m).SetDoubleValue(math.NaN()) }, ""},
		"counter":  {func(m pmetric.Metric) { sum(m, 3, true) }, ""},
		"down":     {func(m pmetric.Metric) { sum(m, -3, false) }, ""},
		"value":    {func(m pmetric.Metric) { gauge(m) }, "the point has no value"},
		"NaN":      {func(m pmetric.Metric) { sum(m, math.NaN(), false) }, "the sum is NaN"},
		"negative": {func(m pmetric.Metric) { sum(m, -1, true) }, "monotonic sum is negative"},
		"negative int": {func(m pmetric.Metric) { sum(m, 0, true).SetIntValue(-1) },
			"monotonic sum is negative"},
		"no value on purpose": {func(m pmetric.Metric) {
			gauge(m).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}, ""},
		"time": {func(m pmetric.Metric) { sum(m, 1, true).SetTimestamp(0) }, "the time is missing"},
		"start": {func(m pmetric.Metric) { sum(m, 1, true).SetStartTimestamp(now + 1) },
			"the start is after the time"},
		"name": {func(m pmetric.Metric) {
			sum(m, 1, true)
			m.SetName("")
		}, "the metric has no name"},
		"name of a digit": {func(m pmetric.Metric) {
			sum(m, 1, true)
			m.SetName("é1")
		}, ""},
		"name without letters": {func(m pmetric.Metric) {
			sum(m, 1, true)
			m.SetName("_日本_")
		}, "no ASCII letter or digit"},
		"attribute": {func(m pmetric.Metric) {
			gauge(m).SetIntValue(1)
			m.Gauge().DataPoints().At(0).Attributes().PutInt("日本", 1)
		}, ""},
		"attribute without name": {func(m pmetric.Metric) {
			gauge(m).SetIntValue(1)
			m.Gauge().DataPoints().At(0).Attributes().PutInt("", 1)
		}, "an attribute has no name"},
		"temporality": {func(m pmetric.Metric) {
			sum(m, 1, true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
		}, "no aggregation temporality"},
		"quantile": {func(m pmetric.Metric) {
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			p.SetTimestamp(now)
			p.QuantileValues().AppendEmpty().SetQuantile(1.5)
		}, "quantiles must be from 0 to 1"},
	}
}

// sums is the reason of counts that do not make the total.
const sums = "do not add up to its count"

func histogramRows(now pcommon.Timestamp) map[string]pointRow {
	type point = pmetric.HistogramDataPoint
	explicit := func(change func(point)) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(now)
			p.SetCount(6)
			p.SetSum(12)
			p.ExplicitBounds().FromRaw([]float64{1, 2})
			p.BucketCounts().FromRaw([]uint64{1, 2, 3})
			change(p)
		}
	}
	const ascend = "must be finite and ascend"
	bounds := func(b ...float64) func(pmetric.Metric) {
		return explicit(func(p point) { p.ExplicitBounds().FromRaw(b) })
	}
	counts := func(c ...uint64) func(pmetric.Metric) {
		return explicit(func(p point) { p.BucketCounts().FromRaw(c) })
	}
	return map[string]pointRow{
		"histogram": {explicit(func(point) {}), ""},
		"without buckets": {explicit(func(p point) {
			p.ExplicitBounds().FromRaw(nil)
			p.BucketCounts().FromRaw(nil)
		}), ""},
		"too few":  {counts(1, 2, 2), sums},
		"too many": {counts(1, 2, 4), sums},
		// 1 + 5 + 2⁶⁴ wraps around to 6.
		"overflow":  {counts(7, math.MaxUint64, 0), sums},
		"bounds":    {bounds(1), "one bucket more than bounds"},
		"no bounds": {bounds(), "one bucket more than bounds"},
		"equal":     {bounds(1, 1), ascend},
		"falling":   {bounds(2, 1), ascend},
		"NaN":       {bounds(1, math.NaN()), ascend},
		"infinite":  {bounds(1, math.Inf(1)), ascend},
		"sum":       {explicit(func(p point) { p.SetSum(math.NaN()) }), "histogram's sum is NaN"},
		"extremes": {explicit(func(p point) {
			p.SetMin(3)
			p.SetMax(2)
		}), "minimum is above its maximum"},
		"of nothing": {explicit(func(p point) {
			p.SetCount(0)
			p.BucketCounts().FromRaw([]uint64{0, 0, 0})
		}), "a sum without a count"},
		"exemplar": {explicit(func(p point) { p.Exemplars().AppendEmpty().SetIntValue(1) }), ""},
		"exemplar without value": {explicit(func(p point) { p.Exemplars().AppendEmpty() }),
			"an exemplar has no value"},
	}
}

func exponentialRows(now pcommon.Timestamp) map[string]pointRow {
	exponential := func(zero uint64, threshold float64, offset int32) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			h := m.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(now)
			p.SetCount(6)
			p.SetZeroCount(zero)
			p.SetZeroThreshold(threshold)
			p.Positive().BucketCounts().FromRaw([]uint64{1, 2})
			p.Negative().BucketCounts().FromRaw([]uint64{2})
			p.Positive().SetOffset(offset)
		}
	}
	scaled := func(scale int32) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			exponential(1, 0, 5)(m)
			m.ExponentialHistogram().DataPoints().At(0).SetScale(scale)
		}
	}
	return map[string]pointRow{
		"exponential":   {exponential(1, 0, 5), ""}, // 1 + 1 + 2 + 2
		"zeros":         {exponential(2, 0, 5), sums},
		"threshold":     {exponential(1, -1, 5), "zero threshold"},
		"bucket number": {exponential(1, 0, math.MaxInt32), "exceed 32 bits"},
		"scale":         {scaled(-4), ""},
		"fine scale":    {scaled(20), ""},
		"coarse scale":  {scaled(-5), "the histogram's scale is below -4"},
	}
}

func TestPointsThatCannotBeRight(t *testing.T) {
	now := pcommon.NewTimestampFromTime(clock.Wall())
	for _, rows := range []map[string]pointRow{numberRows(now), histogramRows(now),
		exponentialRows(now)} {
		for name, row := range rows {
			d := points("shop", 1)
			m := d.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName("other")
			row.change(m)
			checkFaults(t, name, rejectPoints(d), d.DataPointCount(), row.want)
		}
	}
}

// The reasons are counted, in the order in which they occurred.
func TestReasons(t *testing.T) {
	d := traces("shop", 5)
	spans := d.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.At(0).SetTraceID(pcommon.TraceID{})
	spans.At(2).SetEndTimestamp(spans.At(2).StartTimestamp() - 1)
	spans.At(4).SetTraceID(pcommon.TraceID{})
	f := rejectSpans(d)
	want := "3 of 5 spans rejected: 2 × the trace id is missing or zero, or an id has a wrong " +
		"length; 1 × the end is before the start"
	if got := f.text("spans"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// halfWrong returns requests of each signal in which one item of three is wrong.
func halfWrong() (ptraceotlp.ExportRequest, pmetricotlp.ExportRequest, plogotlp.ExportRequest) {
	s, p, l := traces("shop", 3), points("shop", 3), records("shop", 3)
	s.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).SetSpanID(pcommon.SpanID{})
	p.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(1).
		SetTimestamp(0)
	l.ResourceLogs().At(0).ScopeLogs().At(1).LogRecords().At(0).SetTimestamp(1)
	return ptraceotlp.NewExportRequestFromTraces(s), pmetricotlp.NewExportRequestFromMetrics(p),
		plogotlp.NewExportRequestFromLogs(l)
}

// wantPartial checks an answer: one of three items was rejected.
func wantPartial(t *testing.T, over string, rejected int64, text string) {
	t.Helper()
	if rejected != 1 || !strings.Contains(text, "1 of 3 ") {
		t.Errorf("%s: %d rejected, %q", over, rejected, text)
	}
}

// What is wrong is rejected in the answer, over all protocols; the rest is kept.
func TestPartialSuccess(t *testing.T) {
	sink := &sink{}
	in := opened(t, sink, Limits{})
	ctx, conn := t.Context(), dial(t, in)
	s, p, l := halfWrong()
	a1, err1 := ptraceotlp.NewGRPCClient(conn).Export(ctx, s)
	a2, err2 := pmetricotlp.NewGRPCClient(conn).Export(ctx, p)
	a3, err3 := plogotlp.NewGRPCClient(conn).Export(ctx, l)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	wantPartial(t, "spans", a1.PartialSuccess().RejectedSpans(),
		a1.PartialSuccess().ErrorMessage())
	wantPartial(t, "points", a2.PartialSuccess().RejectedDataPoints(),
		a2.PartialSuccess().ErrorMessage())
	wantPartial(t, "logs", a3.PartialSuccess().RejectedLogRecords(),
		a3.PartialSuccess().ErrorMessage())

	for path, of := range map[string]interface {
		MarshalProto() ([]byte, error)
		MarshalJSON() ([]byte, error)
	}{"/v1/traces": s, "/v1/metrics": p, "/v1/logs": l} {
		url := "http://" + in.Endpoints().HTTP + path
		body, _ := of.MarshalJSON() // of valid data
		code, text := post(t, url, bytes.NewReader(body), "Content-Type", jason)
		if code != 200 || !strings.Contains(text, `"1"`) || !strings.Contains(text, "1 of 3 ") {
			t.Errorf("%s in JSON: %d %s", path, code, text)
		}
		body, _ = of.MarshalProto()
		code, text = post(t, url, bytes.NewReader(body), "Content-Type", proto)
		if code != 200 || !strings.Contains(text, "1 of 3 ") {
			t.Errorf("%s in protobuf: %d %q", path, code, text)
		}
	}
	for _, name := range []string{record.Spans, record.Points, record.Logs} {
		if got := signal(t, in, name); got.Received != 6 || got.Refused != 3 || got.Requests != 3 {
			t.Errorf("%+v, want 3 times 2 received and 1 refused", got)
		}
	}
	if sink.spans != 6 || sink.points != 6 || sink.logs != 6 {
		t.Errorf("%d spans, %d points and %d logs arrived, want 6 each", sink.spans, sink.points,
			sink.logs)
	}
}

// A span or a log record with an id of a wrong length is rejected alone, although the decoder knows
// only whole requests.
func TestIDsOfWrongLength(t *testing.T) {
	sink := &sink{}
	in := opened(t, sink, Limits{})
	conn := dial(t, in)
	s, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 3)).MarshalProto()
	d := records("shop", 3)
	for i, r := range d.ResourceLogs().At(0).ScopeLogs().All() {
		r.LogRecords().At(0).SetTraceID(pcommon.TraceID{1, byte(i)})
	}
	l, _ := plogotlp.NewExportRequestFromLogs(d).MarshalProto()
	long := append([]byte{1, 1}, make([]byte, 14)...) // the second item's
	for path, whole := range map[string][]byte{"/v1/traces": s, "/v1/logs": l} {
		body := shortened(t, shapes()[signals[path]], whole, bytes.Index(whole, long))
		code, text := post(t, "http://"+in.Endpoints().HTTP+path, bytes.NewReader(body),
			"Content-Type", proto)
		if code != 200 || !strings.Contains(text, "1 of 3 ") ||
			!strings.Contains(text, "wrong length") {
			t.Errorf("%s: %d %q", path, code, text)
		}
		method := map[string]string{
			"/v1/traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
			"/v1/logs":   "/opentelemetry.proto.collector.logs.v1.LogsService/Export"}[path]
		var answer []byte
		err := conn.Invoke(t.Context(), method, body, &answer, grpc.ForceCodec(bare{}))
		if err != nil || !strings.Contains(string(answer), "wrong length") {
			t.Errorf("%s: %q, %v", method, answer, err)
		}
	}
	if sink.spans != 4 || sink.logs != 4 {
		t.Errorf("%d spans and %d logs arrived, want 2 of each request", sink.spans, sink.logs)
	}
}

// The same holds for each wrong length: the item may be as long with what replaces its ids.
func TestIDsOfEachLength(t *testing.T) {
	sink := &sink{}
	in := opened(t, sink, Limits{})
	d := records("shop", 2)
	for i, r := range d.ResourceLogs().At(0).ScopeLogs().All() {
		r.LogRecords().At(0).SetTraceID(pcommon.TraceID{1, byte(i)})
	}
	body, _ := plogotlp.NewExportRequestFromLogs(d).MarshalProto()
	at := bytes.Index(body, append([]byte{1, 1}, make([]byte, 14)...))
	for length := 15; length > 0; length-- {
		body = shortened(t, shapes()[record.Logs], body, at)
		code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/logs", bytes.NewReader(body),
			"Content-Type", proto)
		if code != 200 || !strings.Contains(text, "1 of 2 ") {
			t.Errorf("%d bytes: %d %q", length, code, text)
		}
	}
	if sink.logs != 15 {
		t.Errorf("%d log records arrived, want the other one of each request", sink.logs)
	}
}

// Media types are compared as the decoder does, without regard to case.
func TestMediaTypes(t *testing.T) {
	in := opened(t, &sink{}, Limits{})
	deep := ptrace.NewTraces()
	s := deep.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	v := s.Attributes().PutEmpty("a")
	for range deepest {
		v = v.SetEmptySlice().AppendEmpty()
	}
	body, _ := ptraceotlp.NewExportRequestFromTraces(deep).MarshalProto()
	for kind, row := range map[string]struct{ body, want string }{
		"Application/JSON":       {`{"resourceSpan":[{}]}`, "lacks the key"},
		"Application/X-Protobuf": {string(body), "levels deep"},
	} {
		code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/traces",
			strings.NewReader(row.body), "Content-Type", kind)
		if code < 400 || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d %q, want %q", kind, code, text, row.want)
		}
	}
}

// shortened removes the last byte of the id at an offset of an encoded message.
func shortened(t *testing.T, s *shape, b []byte, at int) (out []byte) {
	t.Helper()
	if at < 0 {
		t.Fatal("the request has no such id")
	}
	for from := 0; from < len(b); {
		number, kind, content, size := field(b[from:])
		if kind != protowire.BytesType || at < from || at >= from+size {
			out = append(out, b[from:from+size]...)
		} else {
			if inner := s.fields[number]; inner != nil {
				content = shortened(t, inner, content, at-from-size+len(content))
			} else {
				content = content[:len(content)-1]
			}
			out = protowire.AppendBytes(protowire.AppendTag(out, number, kind), content)
		}
		from += size
	}
	return out
}

// bare is a codec of gRPC for encoded messages.
type bare struct{}

func (bare) Name() string                  { return "proto" }
func (bare) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (bare) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

// Zipkin's spans may lack times, and its answer has no place for reasons.
func TestZipkinIsNotSifted(t *testing.T) {
	in := opened(t, &sink{}, Limits{})
	code, text := post(t, "http://"+in.Endpoints().Zipkin+"/api/v2/spans",
		strings.NewReader(zipkinSpans), "Content-Type", jason)
	if got := signal(t, in, record.Spans); code != 202 || got.Received != 2 || got.Refused != 0 {
		t.Errorf("%d %s, %+v", code, text, got)
	}
}

// An unknown outermost key is ignored beside the path's own, and an error without it.
func TestUnknownKeys(t *testing.T) {
	in := opened(t, &sink{}, Limits{})
	for _, row := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/v1/traces", `{}`, 200, ""},
		{"/v1/traces", `{"resourceSpans":[]}`, 200, ""},
		{"/v1/traces", `{"resourceSpans":null}`, 200, ""},
		{"/v1/traces", `{"resource_spans":[{"scope_spans":[{"spans":[{"name":"x"}]}]}]}`, 400,
			`lacks the key \"resourceSpans\", and has \"resource_spans\"`},
		{"/v1/traces", `{"resourceSpans":[{"scopeSpan":[{"spans":[{"name":"x"}]}]}]}`, 200,
			"the request has no spans"},
		{"/v1/metrics", `{"resourceMetrics":[{}]}`, 200, "the request has no data points"},
		{"/v1/traces", `{"resourceSpan":[{}]}`, 400, `lacks the key \"resourceSpans\"`},
		{"/v1/traces", `{"resourceMetrics":[]}`, 400, `lacks the key \"resourceSpans\"`},
		{"/v1/metrics", `{"resourceSpans":[]}`, 400, `lacks the key \"resourceMetrics\"`},
		{"/v1/logs", `{"resourceLogs":[],"more":1}`, 200, ""},
		{"/v1/logs", `{"more":[{"a":1}],"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` +
			`{"stringValue":"x"}}]}]}]}`, 200, ""},
		{"/v1/logs", `{"resourceLogs":{}}`, 400, `must be a list`},
		{"/v1/logs", `null`, 400, "the body is null"},
		{"/v1/logs", `[]`, 400, "not an object"},
		{"/v1/logs", `{"resourceLogs":[]} {}`, 400, "not an object"},
	} {
		code, text := post(t, "http://"+in.Endpoints().HTTP+row.path, strings.NewReader(row.body),
			"Content-Type", jason)
		if code != row.code || !strings.Contains(text, row.want) {
			t.Errorf("%s to %s: %d %s, want %d %q", row.body, row.path, code, text, row.code,
				row.want)
		}
	}
	if n := signal(t, in, record.Spans).Refused + signal(t, in, record.Points).Refused +
		signal(t, in, record.Logs).Refused; n != 8 {
		t.Errorf("%d refused requests are counted, want 8", n)
	}
	if n := signal(t, in, record.Logs).Received; n != 1 {
		t.Errorf("%d log records arrived beside an unknown key, want 1", n)
	}
}

// A time is compared with the time of arrival.
func TestWhen(t *testing.T) {
	f := faults{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	at := pcommon.NewTimestampFromTime(f.now)
	for at, want := range map[pcommon.Timestamp]string{0: "the start is missing",
		at: "", at + 86_400e9: "", at + 86_400e9 + 1: "the start is more than a day ahead",
		earliest: "", earliest - 1: "the start is before 1990; send nanoseconds"} {
		if got := f.when("the start", at); got != want {
			t.Errorf("%d: %q, want %q", at, got, want)
		}
	}
}

// Values of enums are numbers, or names as some senders write them; others are refused.
func TestEnumsInJSON(t *testing.T) {
	var got []ptrace.SpanKind
	c := Config{HTTP: "127.0.0.1:0"}
	c.Traces, _ = consumer.NewTraces(func(_ context.Context, d ptrace.Traces) error {
		got = append(got, d.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Kind())
		return nil
	})
	c.Metrics, _ = consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	c.Logs, _ = consumer.NewLogs(func(context.Context, plog.Logs) error { return nil })
	in, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close(t.Context())
	for kind, want := range map[string]int{`2`: 200, `"SPAN_KIND_SERVER"`: 200, `"server"`: 400,
		`"2"`: 400, `true`: 400} {
		body := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":` +
			`"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"x","kind":` +
			kind + `,"startTimeUnixNano":"1700000000000000000",` +
			`"endTimeUnixNano":"1700000000000000001"}]}]}]}`
		code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/traces", strings.NewReader(body),
			"Content-Type", jason)
		if code != want {
			t.Errorf("kind %s: %d %s, want %d", kind, code, text, want)
		}
	}
	if server := ptrace.SpanKindServer; !slices.Equal(got, []ptrace.SpanKind{server, server}) {
		t.Errorf("spans of kinds %v, want two of %v", got, server)
	}
}
