package spanstore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

// heap returns the heap in use, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// In a flood of a million traces that all end after the silence, memory stays within Options,
// counts are complete, and the slowest trace is found.
func TestFloodOfTraces(t *testing.T) {
	const flood, part, mb = 1_000_000, 1000, 1 << 20
	dir := t.TempDir()
	before := heap()
	s := open(t, dir, Options{Bytes: 8 * mb, KeptBytes: 8 * mb})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	list, most := make([]spec, part), int64(0)
	for i := range flood / part {
		for j := range list {
			n := uint64(i*part + j + 1)
			list[j] = spec{trace: n, id: 1, start: 1, ns: int64(Mix(n) % 1e9), failed: n%3 == 0}
		}
		if i == 300 {
			list[500].ns = 2e9
		}
		send(t, s, list...)
		if i%250 == 249 {
			most = max(most, heap()-before)
		}
	}
	if most > 24*mb { // both limits, and half as much for uncounted memory
		t.Errorf("%d MB in use", most/mb)
	}
	got := end(t, s, "t").Counts
	must(t, s.Close())
	if got.Received != flood {
		t.Errorf("%+v", got)
	}
	slow := read(t, dir, traces.Filter{Slowest: true, Limit: 1})
	if len(slow) != 1 || slow[0].TraceID != idOf(300*part+500+1) {
		t.Errorf("the slowest is %+v", slow)
	}
	t.Logf("%d MB at most, %+v", most/mb, got)
}

// If all traces deserve a place and are large, kept traces stay within their bytes, and the least
// valuable class is dropped first.
func TestFloodOfLargeTraces(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{KeptBytes: 1 << 20})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	text := strings.Repeat("x", 10_000)
	for i := range 2000 {
		td := makeTraces(spec{trace: uint64(i + 1), id: 1, start: 1, ns: int64(i), asked: i%2 == 0})
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr("x", text)
		must(t, s.ConsumeTraces(context.Background(), td))
		s.trials.Lock()
		kept := s.trials.Bytes
		for s.pending.first() != nil {
			s.judge(s.pending.first())
		}
		s.trials.Unlock()
		if kept > 1<<20 {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
	end(t, s, "t")
	must(t, s.Close())
	// 1 MiB / 10.5 kB = 99 at most, all of class Asked.
	asked := len(read(t, dir, traces.Filter{Class: traces.Asked}))
	others := len(read(t, dir, traces.Filter{Class: traces.Uniform}))
	if asked < 90 || asked > 99 || others > 0 {
		t.Errorf("%d asked for, %d others", asked, others)
	}
	if s.trials.Bytes != 0 || s.pending.bytes != 0 {
		t.Errorf("%d and %d bytes after the end", s.trials.Bytes, s.pending.bytes)
	}
}

// Of a trace of a million spans some are kept, including its root although it arrives last, and the
// rest is counted.
func TestTraceOfAMillionSpans(t *testing.T) {
	const million, part = 1_000_000, 1000
	dir := t.TempDir()
	s := open(t, dir, Options{})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	list := make([]spec, part)
	for i := range million / part {
		for j := range list {
			n := uint64(i*part + j + 2)
			list[j] = spec{trace: 1, id: n, parent: n / 2, start: 100 + int64(n), ns: 1}
		}
		send(t, s, list...)
	}
	send(t, s, spec{trace: 1, id: 1, start: 100, ns: 1e9, name: "root"})
	got := end(t, s, "t").Counts
	must(t, s.Close())
	trace := read(t, dir, traces.Filter{})[0]
	n := int64(len(trace.Spans))
	if n != 5001 || trace.Cut != million+1-n || trace.Name != "root" || trace.DurationNs != 1e9 ||
		got.Kept != n || got.Dropped != trace.Cut {
		t.Errorf("%d spans of %q are kept, %d cut, %+v", n, trace.Name, trace.Cut, got)
	}
	roots := traces.Tree(trace)
	if len(roots) != trace.Roots || roots[0].Span.Name != "root" {
		t.Errorf("%d roots, the trace says %d", len(roots), trace.Roots)
	}
}

// A chain as long as a trace may be is ordered and drawn without a stack overflow.
func TestLongChain(t *testing.T) {
	trace := &traces.Trace{}
	for i := range 50_000 {
		trace.Spans = append(trace.Spans, traces.Span{ID: idOf(uint64(i + 1)), StartNs: int64(i),
			Parent: idOf(uint64(i)), DurationNs: 500_000})
	}
	trace.Settle()
	depth := 0
	traces.Walk(traces.Tree(trace), func(n *traces.Node) { depth = max(depth, n.Depth) })
	if depth != 49_999 {
		t.Errorf("depth %d", depth)
	}
}

func hostile(attributes int, value string) ptrace.Traces {
	td := makeTraces(spec{trace: 1, id: 1, start: 1, ns: 1})
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	for i := range attributes {
		s.Attributes().PutStr(idOf(uint64(i)), value)
	}
	e := s.Events().AppendEmpty()
	e.Attributes().PutStr("exception.stacktrace", value)
	return td
}

// Too many attributes and huge values are cut, and marked.
func TestCut(t *testing.T) {
	huge := "x" + strings.Repeat("ä", 5<<20) // 10 MB; the limit lies within a character
	for _, row := range []struct {
		name       string
		attributes int
		value      string
		cut        int64
		keptValue  string // its begin and its mark
	}{
		{"few", 3, "v", 0, "v"},
		{"200 attributes, which are not large", 200, "v", 200 - MaxAttributes, "v"},
		{"10,000 attributes", 10_000, "v", 10_000 - MaxAttributes, "v"},
		{"10,000 long ones", 10_000, strings.Repeat("y", 400), 10_000 - MaxAttributes, "yyy"},
		{"a value of 10 MB", 1, huge, 0, "xää|… (cut from 10485761 bytes)"},
		{"a value just within", 1, strings.Repeat("z", traces.MaxValueBytes), 0, "z"},
	} {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		must(t, s.Begin(telemetry.Trial{ID: "t"}))
		td := hostile(row.attributes, row.value)
		must(t, s.ConsumeTraces(context.Background(), td))
		if row.value == huge && s.pending.bytes > 1<<20 {
			t.Errorf("%s: %d bytes under assembly", row.name, s.pending.bytes)
		}
		end(t, s, "t")
		must(t, s.Close())
		span := read(t, dir, traces.Filter{})[0].Spans[0]
		if span.Cut != row.cut || len(span.Attributes) != min(row.attributes, MaxAttributes) {
			t.Errorf("%s: %d attributes, %d cut", row.name, len(span.Attributes), span.Cut)
		}
		head, mark, _ := strings.Cut(row.keptValue, "|")
		for _, v := range []any{span.Attributes[idOf(0)],
			span.Events[0].Attributes["exception.stacktrace"]} {
			text, _ := v.(string)
			if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, mark) ||
				len(text) > traces.MaxValueBytes+64 || strings.Contains(text, "\ufffd") {
				t.Errorf("%s: %d bytes %.20q…", row.name, len(text), text)
			}
		}
		// Other consumers share the request, so it must be unchanged.
		first := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		if v, _ := first.Attributes().Get(idOf(0)); v.Str() != row.value ||
			first.Attributes().Len() != row.attributes {
			t.Errorf("%s: what came was changed", row.name)
		}
	}
}

// Values of all kinds, extreme times and special numbers survive the file.
func TestOddValues(t *testing.T) {
	td := makeTraces(spec{trace: 1, id: 1}, spec{trace: 2, id: 1})
	list := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	a := list.At(0).Attributes()
	a.PutInt("int", math.MaxInt64)
	a.PutDouble("half", .5)
	a.PutDouble("nan", math.NaN())
	a.PutDouble("inf", math.Inf(-1))
	a.PutBool("bool", true)
	a.PutStr("broken", "a\xffb")
	a.PutEmptyBytes("bytes").FromRaw([]byte{1, 255})
	deep := a.PutEmptySlice("deep")
	deep.AppendEmpty().SetInt(7)
	for range 10 {
		deep = deep.AppendEmpty().SetEmptySlice()
	}
	a.PutEmptyMap("map").PutInt("n", 1<<60)
	list.At(0).SetStartTimestamp(math.MaxUint64)
	list.At(0).SetEndTimestamp(5)
	list.At(0).SetKind(99)
	list.At(0).Status().SetCode(-3)
	list.At(1).SetStartTimestamp(0)
	list.At(1).SetEndTimestamp(math.MaxUint64)
	dir := t.TempDir()
	s := open(t, dir, Options{})
	must(t, s.Begin(telemetry.Trial{ID: "t"}), s.ConsumeTraces(context.Background(), td))
	end(t, s, "t")
	must(t, s.Close())
	got := read(t, dir, traces.Filter{})
	want := traces.Attributes{"int": int64(math.MaxInt64), "half": .5, "nan": "NaN", "inf": "-Inf",
		"bool": true, "broken": "a\ufffdb", "bytes": "01ff",
		"map":  map[string]any{"n": int64(1 << 60)},
		"deep": []any{int64(7), []any{[]any{[]any{"…"}}}}}
	if !reflect.DeepEqual(got[1].Spans[0].Attributes, want) {
		t.Errorf("%#v\nwant %#v", got[1].Spans[0].Attributes, want)
	}
	if s := got[1].Spans[0]; s.StartNs != math.MaxInt64 || s.DurationNs != 0 ||
		s.Kind != "unspecified" || s.Status != "" {
		t.Errorf("%+v", s)
	}
	if got[0].DurationNs != math.MaxInt64 {
		t.Errorf("%d", got[0].DurationNs)
	}
}

// Beyond the limits of operations and services, the rest is counted as "other", and no call is
// lost.
func TestMetricsOverflow(t *testing.T) {
	var told pmetric.Metrics
	s := open(t, t.TempDir(), Options{MetricSeries: 10,
		Metrics: func(_ context.Context, m pmetric.Metrics) error { told = m; return nil }})
	must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}))
	const n = 1000
	for i := range uint64(n) {
		send(t, s, spec{trace: i + 1, id: 1, name: idOf(i), service: idOf(i % 200)})
	}
	end(t, s, "t")
	must(t, s.Close())
	calls, series := map[string]int64{}, 0
	for _, r := range told.ResourceMetrics().All() {
		for _, m := range r.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != CallsName {
				continue
			}
			for _, p := range m.Sum().DataPoints().All() {
				name, _ := p.Attributes().Get("span.name")
				calls[name.Str()] += p.IntValue()
				series++
			}
		}
	}
	all := int64(0)
	for _, v := range calls {
		all += v
	}
	// 10 of their own, at most 64 services with one series of other each, and other's other.
	if all != n || calls[other] != n-10 || series > 10+maxServices+1 {
		t.Errorf("%d calls, %d of other, %d series", all, calls[other], series)
	}
}

// The metrics are those of OpenTelemetry's connector, with its attributes.
func TestMetrics(t *testing.T) {
	var told []pmetric.Metrics
	dir := t.TempDir()
	s := open(t, dir, Options{Metrics: func(_ context.Context, m pmetric.Metrics) error {
		told = append(told, m)
		return nil
	}})
	must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}))
	// 0.05 ms lies in the first bucket, 50 µs and 1 ns in the second, 20 s in the last.
	send(t, s, spec{trace: 1, id: 1, ns: 50_000}, spec{trace: 2, id: 1, ns: 50_001},
		spec{trace: 3, id: 1, ns: 20e9}, spec{trace: 4, id: 1, ns: 1e6, failed: true})
	must(t, s.Flush(context.Background()), s.Flush(context.Background()))
	if len(told) != 1 { // nothing arrived since the first
		t.Fatalf("told %d times, want once", len(told))
	}
	var m pmetric.JSONMarshaler
	b, err := m.MarshalMetrics(told[0])
	must(t, err)
	for _, part := range []string{`"traces.span.metrics.calls"`, `"traces.span.metrics.duration"`,
		`"unit":"ms"`, `"isMonotonic":true`, `"aggregationTemporality":2`, `"asInt":"3"`,
		`{"key":"span.kind","value":{"stringValue":"SPAN_KIND_SERVER"}}`,
		`{"key":"status.code","value":{"stringValue":"STATUS_CODE_UNSET"}}`,
		`{"key":"status.code","value":{"stringValue":"STATUS_CODE_ERROR"}}`,
		`{"key":"service.name","value":{"stringValue":"web"}}`,
		`{"key":"prony.trial","value":{"stringValue":"t"}}`,
		`"sum":20000.100001,"bucketCounts":["1","1",`, `"0","1"],"explicitBounds":[0.05,0.1,`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("lacks %s in\n%s", part, b)
		}
	}
	end(t, s, "t")
	must(t, s.Close())
	if len(told) != 2 {
		t.Errorf("told %d times, want at the end too", len(told))
	}
	calls, bad, err := traces.ReadCalls(dir, "t", "x")
	if err != nil || len(bad) > 0 || len(calls) != 2 || calls[0].Calls != 3 ||
		calls[1].Status != "error" || calls[0].MaxNs != 20e9 {
		t.Errorf("%+v %v %v", calls, bad, err)
	}
}

// Exported and imported traces are the same.
func TestOTLP(t *testing.T) {
	send := func(td ptrace.Traces) []*traces.Trace {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		must(t, s.Begin(telemetry.Trial{ID: "t"}), s.ConsumeTraces(context.Background(), td))
		end(t, s, "t")
		must(t, s.Close())
		return read(t, dir, traces.Filter{})
	}
	td := makeTraces(spec{trace: 1, id: 1, start: 10, ns: 9, failed: true, asked: true},
		spec{trace: 1, id: 2, parent: 1, start: 11, ns: 2, service: "db"})
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	must(t, s.Attributes().FromRaw(map[string]any{"n": 1<<62 + 1, "f": .5, "b": true, "s": "<é>",
		"list": []any{"x", int64(2), []any{false}}, "map": map[string]any{"k": "v", "l": 1.25}}))
	s.Status().SetMessage("no")
	s.Events().AppendEmpty().SetName("e")
	s.Links().AppendEmpty().SetTraceID(pcommon.TraceID{9})
	first := send(td)
	// Through the JSON that other tools import, as the OpenTelemetry Collector would write it.
	var text bytes.Buffer
	must(t, traces.WriteOTLP(&text, first))
	again, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(text.Bytes())
	must(t, err)
	own, err := (&ptrace.JSONMarshaler{}).MarshalTraces(again)
	must(t, err)
	if text.String() != string(own)+"\n" {
		t.Errorf("%s\nwant %s", &text, own)
	}
	if second := send(again); !reflect.DeepEqual(first, second) || len(first) != 1 {
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(second)
		t.Errorf("%s\nwant %s", b, a)
	}
	none := []*traces.Trace{{TraceID: "xyz", Spans: []traces.Span{{}}}}
	if err := traces.WriteOTLP(io.Discard, none); err == nil {
		t.Error("an id that is none is exported")
	}
}
