package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// sink is a consumer of the intake. If do is set, it is called first.
type sink struct {
	mu                  sync.Mutex
	spans, points, logs int
	do                  func(context.Context) error
}

func (s *sink) take(ctx context.Context, n *int, add int) error {
	if s.do != nil {
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*n += add
	return nil
}

// opened starts an intake with all receivers, closed at the test's end.
func opened(t testing.TB, s *sink, l Limits) *Intake {
	t.Helper()
	c := Config{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Zipkin: "127.0.0.1:0", Limits: l}
	c.Traces, _ = consumer.NewTraces(func(ctx context.Context, d ptrace.Traces) error {
		return s.take(ctx, &s.spans, d.SpanCount())
	})
	c.Metrics, _ = consumer.NewMetrics(func(ctx context.Context, d pmetric.Metrics) error {
		return s.take(ctx, &s.points, d.DataPointCount())
	})
	c.Logs, _ = consumer.NewLogs(func(ctx context.Context, d plog.Logs) error {
		return s.take(ctx, &s.logs, d.LogRecordCount())
	})
	in, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := in.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return in
}

func traces(service string, n int) ptrace.Traces {
	d := ptrace.NewTraces()
	addTraces(d, service, n)
	return d
}

func addTraces(d ptrace.Traces, service string, n int) {
	r := d.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	spans := r.ScopeSpans().AppendEmpty().Spans()
	now := pcommon.NewTimestampFromTime(clock.Wall())
	for i := range n {
		s := spans.AppendEmpty()
		s.SetTraceID([16]byte{1, byte(i), byte(i >> 8)})
		s.SetSpanID([8]byte{1, byte(i), byte(i >> 8)})
		s.SetName("GET /owners")
		s.SetStartTimestamp(now)
		s.SetEndTimestamp(now + 1000)
	}
}

func points(service string, n int) pmetric.Metrics {
	d := pmetric.NewMetrics()
	r := d.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	m := r.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("heap")
	g := m.SetEmptyGauge()
	for i := range n {
		p := g.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(clock.Wall()))
		p.SetIntValue(int64(i))
	}
	return d
}

func records(service string, n int) plog.Logs {
	d := plog.NewLogs()
	r := d.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	for range n {
		r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("a line")
	}
	return d
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return b.Bytes()
}

// post returns the answer's status and text.
func post(t testing.TB, url string, body io.Reader, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Retry-After") + " " + string(text)
}

func dial(t testing.TB, in *Intake, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(in.Endpoints().GRPC,
		append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func signal(t *testing.T, in *Intake, name string) record.Signal {
	t.Helper()
	for _, s := range in.Counts().Signals {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no signal %s in %+v", name, in.Counts())
	return record.Signal{}
}

const (
	proto = "application/x-protobuf"
	jason = "application/json"
)

// Received telemetry is counted exactly, in items and bytes, over each protocol.
func TestCountsAreExact(t *testing.T) {
	s := &sink{}
	in := opened(t, s, Limits{})
	ctx, conn := t.Context(), dial(t, in)
	at := "http://" + in.Endpoints().HTTP

	two := traces("shop", 3)
	addTraces(two, "bank", 4)
	if _, err := ptraceotlp.NewGRPCClient(conn).Export(ctx,
		ptraceotlp.NewExportRequestFromTraces(two)); err != nil {
		t.Fatal(err)
	}
	data, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 5)).MarshalProto()
	for _, h := range [][]string{{"Content-Type", proto},
		{"Content-Type", proto, "Content-Encoding", "gzip"}} {
		body := data
		if len(h) > 2 {
			body = packed(data)
		}
		if code, text := post(t, at+"/v1/traces", bytes.NewReader(body), h...); code != 200 {
			t.Fatal(code, text)
		}
	}
	asJSON, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 5)).MarshalJSON()
	if code, text := post(t, at+"/v1/traces", bytes.NewReader(asJSON),
		"Content-Type", jason); code != 200 {
		t.Fatal(code, text)
	}
	if _, err := pmetricotlp.NewGRPCClient(conn).Export(ctx,
		pmetricotlp.NewExportRequestFromMetrics(points("shop", 11))); err != nil {
		t.Fatal(err)
	}
	lines, _ := plogotlp.NewExportRequestFromLogs(records("bank", 13)).MarshalProto()
	if code, text := post(t, at+"/v1/logs", bytes.NewReader(lines),
		"Content-Type", proto); code != 200 {
		t.Fatal(code, text)
	}
	var sizeT ptrace.ProtoMarshaler
	var sizeM pmetric.ProtoMarshaler
	five, seven := int64(sizeT.TracesSize(traces("shop", 5))), int64(sizeT.TracesSize(two))
	bank := int64(sizeT.TracesSize(traces("bank", 4)))
	eleven, thirteen := int64(sizeM.MetricsSize(points("shop", 11))), int64(len(lines))

	// 7 over gRPC, three times 5 over HTTP
	wantSignal(t, in, record.Signal{Name: record.Spans, Requests: 4, Received: 22,
		Bytes: seven + 3*five})
	wantSignal(t, in, record.Signal{Name: record.Points, Requests: 1, Received: 11, Bytes: eleven})
	wantSignal(t, in, record.Signal{Name: record.Logs, Requests: 1, Received: 13, Bytes: thirteen})
	want := []record.TelemetrySource{
		{Service: "bank", Spans: 4, Logs: 13, Bytes: bank + thirteen, LostSpans: -1},
		{Service: "shop", Spans: 18, Points: 11, Bytes: seven - bank + 3*five + eleven,
			LostSpans: -1},
	}
	if got := in.Counts().Voices; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("voices %+v, want %+v", got, want)
	}
	if s.spans != 22 || s.points != 11 || s.logs != 13 {
		t.Errorf("%d spans, %d points and %d logs arrived, want 22, 11, 13", s.spans, s.points,
			s.logs)
	}
}

func wantSignal(t *testing.T, in *Intake, want record.Signal) {
	t.Helper()
	if got := signal(t, in, want.Name); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

const zipkinSpans = `[{"id":"352bff9a74ca9ad2","traceId":"5af7183fb1d4cf5f","name":"get",
	"timestamp":1556604172355737,"duration":1431,"kind":"SERVER",
	"localEndpoint":{"serviceName":"old"}},
	{"id":"352bff9a74ca9ad3","traceId":"5af7183fb1d4cf5f","name":"put"}]`

// TestAnswers covers the answers and counts of all ports: nothing is counted twice, or silently
// lost.
func TestAnswers(t *testing.T) {
	s := &sink{}
	in := opened(t, s, Limits{MessageBytes: 1 << 20})
	otlp, zipkin := "http://"+in.Endpoints().HTTP, "http://"+in.Endpoints().Zipkin
	good, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 2)).MarshalProto()
	large := strings.Repeat(" ", 1<<20+1)
	for _, row := range []struct {
		name, url, body string
		header          []string
		code            int
		want            string
		received        int64
		refused, stray  int64
	}{
		{name: "good", url: otlp + "/v1/traces", body: string(good), received: 2, code: 200},
		{name: "empty", url: otlp + "/v1/traces", code: 200},
		{name: "no protobuf", url: otlp + "/v1/traces", body: "\xff\xff\xff", code: 400,
			refused: 1},
		{name: "torn", url: otlp + "/v1/traces", body: string(good[:len(good)-3]), code: 400,
			refused: 1},
		{name: "no JSON", url: otlp + "/v1/traces", body: "{", code: 400, refused: 1,
			header: []string{"Content-Type", jason}},
		{name: "wrong type", url: otlp + "/v1/traces", body: string(good), code: 415, refused: 1,
			header: []string{"Content-Type", "text/plain"}, want: "unsupported media type"},
		{name: "wrong path", url: otlp + "/v2/traces", body: string(good), code: 404, stray: 1},
		{name: "no gzip", url: otlp + "/v1/traces", body: string(good), code: 400, refused: 1,
			header: []string{"Content-Encoding", "gzip"}, want: "unpack the body"},
		{name: "torn gzip", url: otlp + "/v1/traces", body: string(packed(good)[:30]), code: 400,
			header: []string{"Content-Encoding", "gzip"}, refused: 1, want: "read the body"},
		{name: "unknown packing", url: otlp + "/v1/traces", body: string(good), code: 415,
			header: []string{"Content-Encoding", "br"}, refused: 1, want: "gzip, deflate or none"},
		{name: "large", url: otlp + "/v1/logs", body: large, code: 413, want: "smaller batches"},
		{name: "bomb", url: otlp + "/v1/logs", code: 413, want: "smaller batches",
			body:   string(packed(bytes.Repeat([]byte{0}, 16<<20))),
			header: []string{"Content-Encoding", "gzip"}},
		{name: "zipkin", url: zipkin + "/api/v2/spans", body: zipkinSpans, received: 2, code: 202},
		{name: "zipkin gzip, prefix", url: zipkin + "/z/api/v2/spans", received: 2, code: 202,
			body:   string(packed([]byte(zipkinSpans))),
			header: []string{"Content-Encoding", "GZip"}},
		{name: "zipkin torn", url: zipkin + "/api/v2/spans", body: zipkinSpans[:40], refused: 1,
			code: 400},
		{name: "zipkin large", url: zipkin + "/api/v2/spans", body: large, refused: 1, code: 413,
			want: "smaller batches"},
		{name: "zipkin bomb", url: zipkin + "/api/v2/spans", refused: 1, code: 413,
			body:   string(packed(bytes.Repeat([]byte{' '}, 16<<20))),
			header: []string{"Content-Encoding", "gzip"}},
		{name: "zipkin v1", url: zipkin + "/api/v1/spans", body: "[]", stray: 1, code: 404},
	} {
		before, odd := signal(t, in, record.Spans), in.Counts().Odd
		header := append([]string{"Content-Type", proto}, row.header...)
		if strings.HasPrefix(row.name, "zipkin") {
			header = append([]string{"Content-Type", jason}, row.header...)
		}
		code, text := post(t, row.url, strings.NewReader(row.body), header...)
		after := signal(t, in, record.Spans)
		if code != row.code || !strings.Contains(text, row.want) ||
			after.Received-before.Received != row.received ||
			after.Refused-before.Refused != row.refused ||
			in.Counts().Odd.Stray-odd.Stray != row.stray {
			t.Errorf("%s: %d %q, received %d, refused %d, stray %d; want %d %q, %d, %d, %d",
				row.name, code, text, after.Received-before.Received,
				after.Refused-before.Refused, in.Counts().Odd.Stray-odd.Stray,
				row.code, row.want, row.received, row.refused, row.stray)
		}
	}
	if got := signal(t, in, record.Logs); got.Refused != 2 || got.Received != 0 {
		t.Errorf("logs %+v, want 2 refused: the large one and the bomb", got)
	}
	wantEmpty(t, in)
}

// wantEmpty checks that nothing is held after all requests.
func wantEmpty(t *testing.T, in *Intake) {
	t.Helper()
	until(t, func() bool { // an answer is sent before its request ends
		return in.Busy() == 0 && in.gates[1].held.Load() == 0 && in.gates[2].held.Load() == 0
	})
}

// gRPC also refuses a host name that others could assign.
func TestHostOverGRPC(t *testing.T) {
	in := opened(t, &sink{}, Limits{})
	for name, want := range map[string]codes.Code{"": codes.OK, "localhost:1": codes.OK,
		"rebound.example:4317": codes.PermissionDenied} {
		client := ptraceotlp.NewGRPCClient(dial(t, in, grpc.WithAuthority(name)))
		_, err := client.Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(traces("a", 1)))
		if status.Code(err) != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}
