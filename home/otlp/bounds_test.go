package otlp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"prony.example/record"
)

// wantBusy checks that the error makes a sender retry in OTLP's way: over gRPC the status alone
// would mean a permanent failure.
func wantBusy(t *testing.T, err error, why string) {
	t.Helper()
	s := status.Convert(err)
	retry := false
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			retry = r.GetRetryDelay().AsDuration() == time.Second
		}
	}
	if s.Code() != codes.ResourceExhausted || !retry || !strings.Contains(s.Message(), why) {
		t.Errorf("%v, retry %v; want ResourceExhausted about %q, in 1 s", err, retry, why)
	}
}

// While all slots are occupied, others wait a moment and are refused. Afterwards they are accepted.
func TestSlots(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	s := &sink{do: func(context.Context) error {
		enter <- struct{}{}
		<-leave
		return nil
	}}
	in := opened(t, s, Limits{Slots: 1, Wait: time.Millisecond})
	client := ptraceotlp.NewGRPCClient(dial(t, in))
	export := func() error {
		_, err := client.Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(traces("a", 2)))
		return err
	}
	first := make(chan error)
	go func() { first <- export() }()
	<-enter
	wantBusy(t, export(), "limit of requests in work")
	data, _ := ptraceotlp.NewExportRequestFromTraces(traces("a", 3)).MarshalProto()
	send := func() (int, string) {
		return post(t, "http://"+in.Endpoints().HTTP+"/v1/traces", bytes.NewReader(data),
			"Content-Type", proto)
	}
	if code, text := send(); code != 429 || !strings.HasPrefix(text, "1 ") {
		t.Errorf("%d %q, want 429 and Retry-After 1", code, text)
	}
	code, text := post(t, "http://"+in.Endpoints().Zipkin+"/api/v2/spans",
		strings.NewReader(zipkinSpans), "Content-Type", jason)
	if code != 429 || !strings.HasPrefix(text, "1 ") {
		t.Errorf("Zipkin: %d %q, want 429 and Retry-After 1", code, text)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	go func() { <-enter }()
	if code, text := send(); code != 200 {
		t.Errorf("afterwards: %d %q", code, text)
	}
	// Refused: the 2 decoded spans over gRPC, and two requests that were not decoded.
	if got := signal(t, in, record.Spans); got.Received != 5 || got.Refused != 4 {
		t.Errorf("%+v, want 2 + 3 received, 2 + 1 + 1 refused", got)
	}
}

// A consumer's error is returned to the sender, and its items count as refused.
func TestConsumerRefuses(t *testing.T) {
	s := &sink{do: func(context.Context) error { return errors.New("the disk is full") }}
	in := opened(t, s, Limits{})
	_, err := ptraceotlp.NewGRPCClient(dial(t, in)).Export(t.Context(),
		ptraceotlp.NewExportRequestFromTraces(traces("a", 2)))
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("%v, want Unavailable, which is tried again", err)
	}
	data, _ := ptraceotlp.NewExportRequestFromTraces(traces("a", 3)).MarshalProto()
	code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/traces", bytes.NewReader(data),
		"Content-Type", proto)
	if code != 503 || !strings.Contains(text, "disk is full") {
		t.Errorf("%d %q, want 503, which is tried again", code, text)
	}
	if got := signal(t, in, record.Spans); got.Received != 0 || got.Refused != 5 {
		t.Errorf("%+v, want 2 + 3 refused", got)
	}
}

// With the heap above its limit, requests are refused and garbage is collected; below, all are
// accepted.
func TestHeap(t *testing.T) {
	in := opened(t, &sink{}, Limits{HeapBytes: 100})
	var heap atomic.Int64
	collected := make(chan struct{}, 8)
	heap.Store(101)
	for _, g := range in.gates {
		g.room.heap = heap.Load
		g.room.collect = func() { collected <- struct{}{} }
	}
	client := ptraceotlp.NewGRPCClient(dial(t, in))
	_, err := client.Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(traces("a", 2)))
	wantBusy(t, err, "short of memory")
	<-collected
	code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/traces", strings.NewReader(""),
		"Content-Type", proto)
	if code != 429 || !strings.Contains(text, "short of memory") {
		t.Errorf("%d %q", code, text)
	}
	heap.Store(100)
	if _, err := client.Export(t.Context(),
		ptraceotlp.NewExportRequestFromTraces(traces("a", 2))); err != nil {
		t.Error(err)
	}
	if got := signal(t, in, record.Spans); got.Received != 2 || got.Refused != 2 {
		t.Errorf("%+v, want 2 received, and two requests refused", got)
	}
}

// Garbage is collected once a second at most, however often the heap is full.
func TestRoomCollectsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		r := &room{bytes: 1, heap: func() int64 { return 2 }, collect: func() { n.Add(1) }}
		for range 25 { // at 0, 0.1, … 2.4 s: collected at 0, 1 and 2
			if !r.full() {
				t.Fatal("not full")
			}
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if n.Load() != 3 {
			t.Errorf("%d collections in 2.4 s, want 3", n.Load())
		}
	})
}

// Unread bytes of all slow senders together are limited.
func TestHeldBytes(t *testing.T) {
	in := opened(t, &sink{}, Limits{HeldBytes: 1000})
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://"+in.Endpoints().HTTP+"/v1/traces", r)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", proto)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	if _, err := w.Write(bytes.Repeat([]byte("x"), 900)); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return in.gates[1].held.Load() == 900 })
	code, text := post(t, "http://"+in.Endpoints().HTTP+"/v1/traces",
		bytes.NewReader(bytes.Repeat([]byte("x"), 101)), "Content-Type", proto) // 1001 together
	if code != 429 || !strings.Contains(text, "unread bytes") {
		t.Errorf("%d %q, want 429", code, text)
	}
	w.CloseWithError(errors.New("gone")) // the sender vanishes
	<-done
	until(t, func() bool { return in.gates[1].held.Load() == 0 && in.Busy() == 0 })
}

// until waits for another goroutine, for two minutes at most.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	end := time.After(2 * time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not come about")
		}
	}
}

// A sender that stops after a few bytes is disconnected after Read. It occupies no slot meanwhile,
// so that others are served.
func TestSlowSenders(t *testing.T) {
	in := opened(t, &sink{}, Limits{Slots: 1, Wait: time.Millisecond, Read: time.Second})
	var wg sync.WaitGroup
	ended := func(c net.Conn) {
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute)) // otherwise not disconnected
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: it was not cut off", err)
		}
	}
	open := func(address, first string) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, first); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { ended(c) })
	}
	at := in.Endpoints()
	for range 20 {
		open(at.HTTP, "POST /v1/traces HTTP/1.1\r\nHost: x\r\n")
		open(at.HTTP, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+proto+
			"\r\nContent-Length: 100\r\n\r\nabc")
		open(at.Zipkin, "POST /api/v2/spans HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+jason+
			"\r\nContent-Length: 100\r\n\r\n[")
		open(at.GRPC, "PRI * HT")
	}
	stalled := stall(t, at.GRPC, 20)
	until(t, func() bool { return in.Busy() >= 60 }) // 20 of HTTP, 20 of Zipkin, 20 of gRPC
	data, _ := ptraceotlp.NewExportRequestFromTraces(traces("a", 3)).MarshalProto()
	if code, text := post(t, "http://"+at.HTTP+"/v1/traces", bytes.NewReader(data),
		"Content-Type", proto); code != 200 {
		t.Errorf("among slow senders: %d %q", code, text)
	}
	wg.Wait()
	until(t, func() bool { return in.Busy() == 0 })
	stalled()
	// All requests that were begun are refused: 20 bodies of HTTP, of Zipkin and of gRPC. A stream
	// may be answered before it is counted.
	until(t, func() bool { return signal(t, in, record.Spans).Refused >= 60 })
	if got := signal(t, in, record.Spans); got.Received != 3 || got.Refused != 60 {
		t.Errorf("%+v, want 3 received and 60 refused", got)
	}
}

// stall begins n requests over gRPC that announce a message and send a tenth of it.
func stall(t *testing.T, address string, n int) (end func()) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := range n {
		block.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"},
			{":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"},
			{":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
			_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // into memory
		}
		id := uint32(2*i + 1)
		message := binary.BigEndian.AppendUint32([]byte{0}, 1000)
		if err := errors.Join(
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(),
				EndHeaders: true}),
			f.WriteData(id, false, append(message, make([]byte, 100)...))); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, c) }() // until end closes it
	return func() { c.Close() }
}

// Messages over gRPC that are too large, including compressed bombs, or invalid are refused and
// counted. Unknown methods get an error.
func TestBadGRPC(t *testing.T) {
	in := opened(t, &sink{}, Limits{MessageBytes: 1 << 20})
	conn := dial(t, in)
	const export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	for _, row := range []struct {
		name, method   string
		body           []byte
		options        []grpc.CallOption
		code           codes.Code
		refused, stray int64
	}{
		{"large", export, make([]byte, 1<<20+1), nil, codes.ResourceExhausted, 1, 0},
		{"bomb", export, make([]byte, 16<<20), []grpc.CallOption{grpc.UseCompressor(gzip.Name)},
			codes.ResourceExhausted, 1, 0},
		{"no protobuf", export, []byte("\xff\xff\xff"), nil, codes.Internal, 1, 0},
		{"elsewhere", "/a.B/C", nil, nil, codes.Unimplemented, 0, 1},
	} {
		before, odd := signal(t, in, record.Spans), in.Counts().Odd
		var answer raw
		err := conn.Invoke(t.Context(), row.method, raw(row.body), &answer,
			append(row.options, grpc.ForceCodec(codec{}))...)
		if status.Code(err) != row.code {
			t.Errorf("%s: %v, want %v", row.name, err, row.code)
		}
		until(t, func() bool { // gRPC answers before it calls the gate
			return signal(t, in, record.Spans).Refused-before.Refused == row.refused &&
				in.Counts().Odd.Stray-odd.Stray == row.stray
		})
	}
}

// raw is sent unchanged.
type raw []byte

type codec struct{}

func (codec) Name() string                    { return "proto" }
func (codec) Marshal(v any) ([]byte, error)   { return v.(raw), nil }
func (codec) Unmarshal(b []byte, v any) error { *v.(*raw) = b; return nil }

// Thousands of requests, hundreds at once, of which most must be refused, do not grow the heap:
// 2000 requests of 256 KiB are 500 MiB before decoding.
func TestFloodKeepsBounds(t *testing.T) {
	block := make(chan struct{})
	s := &sink{do: func(context.Context) error { <-block; return nil }}
	in := opened(t, s, Limits{HeldBytes: 8 << 20, Slots: 4, Wait: 10 * time.Millisecond})
	data, _ := ptraceotlp.NewExportRequestFromTraces(traces(strings.Repeat("x", 256<<10), 1)).
		MarshalProto()
	var refused, other atomic.Int64
	transport := &http.Transport{MaxConnsPerHost: 300}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	const requests, workers = 2000, 300
	each := make(chan struct{}, requests)
	for range requests {
		each <- struct{}{}
	}
	close(each)
	var most atomic.Int64
	for range workers {
		wg.Go(func() {
			for range each {
				res, err := client.Post("http://"+in.Endpoints().HTTP+"/v1/traces", proto,
					bytes.NewReader(data))
				if err != nil {
					other.Add(1) // disconnected while sending
					continue
				}
				_, _ = io.Copy(io.Discard, res.Body) // only its status matters
				res.Body.Close()
				switch res.StatusCode {
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					other.Add(1)
				}
				var m runtime.MemStats
				if refused.Load()%500 == 0 {
					runtime.ReadMemStats(&m)
					most.Store(max(most.Load(), int64(m.HeapInuse)))
				}
			}
		})
	}
	// The four requests with slots wait for block; all others are refused.
	until(t, func() bool { return refused.Load()+other.Load() >= requests-4-workers })
	close(block)
	wg.Wait()
	if refused.Load() < requests/2 {
		t.Errorf("%d of %d were refused, %d ended otherwise", refused.Load(), requests,
			other.Load())
	}
	// 8 MiB held, doubled by reading, four decoded, and 300 clients' own buffers.
	if most.Load() > 256<<20 {
		t.Errorf("%d MiB of heap", most.Load()>>20)
	}
	got := signal(t, in, record.Spans)
	if got.Received+got.Refused < refused.Load() {
		t.Errorf("%+v, but %d were told that they were refused", got, refused.Load())
	}
	t.Logf("%d refused, %d otherwise, %d MiB of heap at most", refused.Load(), other.Load(),
		most.Load()>>20)
}

// The number of service names is limited; all others are counted under one name.
func TestVoicesAreBounded(t *testing.T) {
	tally := newTally()
	for i := range maxVoices + 10 {
		tally.note(tally.traces(traces(fmt.Sprintf("service %d", i), 1)), false)
	}
	c := tally.Counts()
	if len(c.Voices) != maxVoices+1 || c.Voices[0].Service != others || c.Voices[0].Spans != 10 {
		t.Errorf("%d voices, the first %+v; want %d, and %q with 10 spans", len(c.Voices),
			c.Voices[0], maxVoices+1, others)
	}
}

// Dates far off are counted, and do no harm.
func TestOddDates(t *testing.T) {
	tally := newTally()
	d := traces("a", 4)
	spans := d.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	now := spans.At(0).StartTimestamp()
	spans.At(0).SetStartTimestamp(1 << 63)        // the year 2262
	spans.At(1).SetStartTimestamp(now + 2*60e9)   // in two minutes
	spans.At(2).SetStartTimestamp(now - 2*3600e9) // two hours ago
	tally.note(tally.traces(d), false)
	if got := tally.Counts().Odd; got.Ahead != 2 || got.Old != 1 {
		t.Errorf("%+v, want 2 ahead and 1 old", got)
	}
}

// TestLostSpans counts losses reported by SDKs: the growth of cumulative series, also after a
// restart of a process, and the values of deltas.
func TestLostSpans(t *testing.T) {
	point := func(name, service string, value int64, cause string, delta bool) pmetric.Metrics {
		d := points(service, 1)
		m := d.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		m.SetName(name)
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		if delta {
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		p := sum.DataPoints().AppendEmpty()
		p.SetIntValue(value)
		switch {
		case cause == "":
		case name == "processedSpans":
			p.Attributes().PutStr("dropped", cause)
		default:
			p.Attributes().PutStr("error.type", cause)
		}
		return d
	}
	begun := func(d pmetric.Metrics, ago time.Duration) pmetric.Metrics {
		m := d.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		m.Sum().DataPoints().At(0).SetStartTimestamp(
			pcommon.NewTimestampFromTime(time.Now().Add(-ago)))
		return d
	}
	const processed = "otel.sdk.processor.span.processed"
	for _, row := range []struct {
		name string
		sent []pmetric.Metrics
		want int64
	}{
		{"nothing said", []pmetric.Metrics{points("a", 1)}, -1},
		{"nothing lost", []pmetric.Metrics{point(processed, "a", 9, "", false)}, 0},
		{"grows: 5 + 2", []pmetric.Metrics{point(processed, "a", 5, "queue_full", false),
			point(processed, "a", 7, "queue_full", false)}, 7},
		{"begins anew: 5 + 3", []pmetric.Metrics{point(processed, "a", 5, "queue_full", false),
			point(processed, "a", 3, "queue_full", false)}, 8},
		{"deltas: 5 + 3", []pmetric.Metrics{point(processed, "a", 5, "queue_full", true),
			point(processed, "a", 3, "queue_full", true)}, 8},
		{"two places: 5 + 2", []pmetric.Metrics{point(processed, "a", 5, "queue_full", false),
			point("otel.sdk.exporter.span.exported", "a", 2, "500", false)}, 7},
		{"Java's older", []pmetric.Metrics{point("processedSpans", "a", 4, "true", false),
			point("processedSpans", "a", 99, "false", false)}, 4},
		{"lost before the intake was opened: 2", []pmetric.Metrics{
			begun(point(processed, "a", 500, "queue_full", false), time.Hour),
			begun(point(processed, "a", 502, "queue_full", false), time.Hour)}, 2},
		{"a process that began later", []pmetric.Metrics{
			begun(point(processed, "a", 5, "queue_full", false), -time.Second)}, 5},
	} {
		tally := newTally()
		for _, d := range row.sent {
			tally.note(tally.metrics(d), false)
		}
		if got := tally.Counts().Voices[0].LostSpans; got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// For any request, the HTTP ports answer, and error answers are counted.
func FuzzHTTP(f *testing.F) {
	good, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 2)).MarshalProto()
	asJSON, _ := ptraceotlp.NewExportRequestFromTraces(traces("shop", 2)).MarshalJSON()
	f.Add(good, 0, 0)
	f.Add(asJSON, 0, 1)
	f.Add(packed(good), 1, 0)
	f.Add([]byte(zipkinSpans), 0, 2)
	f.Add([]byte(`[{"id":"1","traceId":"2","duration":-1,"tags":{"a":null}}]`), 0, 2)
	in := opened(f, &sink{}, Limits{MessageBytes: 1 << 20})
	doors := []struct{ url, kind string }{
		{"http://" + in.Endpoints().HTTP + "/v1/traces", proto},
		{"http://" + in.Endpoints().HTTP + "/v1/traces", jason},
		{"http://" + in.Endpoints().Zipkin + "/api/v2/spans", jason},
		{"http://" + in.Endpoints().Zipkin + "/api/v2/spans", proto},
		{"http://" + in.Endpoints().HTTP + "/v1/metrics", proto},
		{"http://" + in.Endpoints().HTTP + "/v1/logs", jason},
	}
	packings := []string{"", "gzip", "deflate"}
	refused := func() (n int64) {
		for _, s := range in.Counts().Signals {
			n += s.Refused
		}
		return n
	}
	f.Fuzz(func(t *testing.T, body []byte, packing, door int) {
		d := doors[uint(door)%uint(len(doors))]
		before := refused()
		code, text := post(t, d.url, bytes.NewReader(body), "Content-Type", d.kind,
			"Content-Encoding", packings[uint(packing)%uint(len(packings))])
		if code >= 500 {
			t.Errorf("%d %q", code, text)
		}
		if n := refused() - before; (code >= 400) != (n > 0) {
			t.Errorf("%d %q, and %d counted as refused", code, text, n)
		}
	})
}
