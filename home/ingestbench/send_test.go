package ingestbench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// The sender of BenchmarkIngest encodes payloads once. Before each request it writes only trace ids
// and times into the encoded bytes, so that the sender's core is never the bottleneck and no trace
// is sent twice.

// senders is the number of connections with one request in progress each, as in an SDK's exporter.
const senders = 4

// perPayload is the number of items in one request: 512 spans are the Java agent's batch.
var perPayload = map[string]int{record.Spans: 512, record.Points: 200, record.Logs: 100}

var exportMethods = map[string]string{
	record.Spans:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	record.Points: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	record.Logs:   "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// A placeholder of a time is timeMark in its upper half and ns after the first one in its lower; a
// placeholder of an id is idMark and a number.
const timeMark = 0x7EA5C33C

var idMark = []byte{0xA5, 0x5A, 0xC3, 0x3C, 0x96, 0x69, 0xE1, 0x1E}

// payload is an encoded request with the positions of its times and ids.
type payload struct {
	bytes []byte
	times []int // of fixed64
	late  []uint64
	ids   []int // of the last eight bytes
	of    []uint64
}

func newPayload(encoded []byte) *payload {
	p := &payload{bytes: encoded}
	var mark [4]byte
	binary.LittleEndian.PutUint32(mark[:], timeMark)
	for _, at := range indexes(encoded, mark[:]) {
		p.times = append(p.times, at-4)
		p.late = append(p.late, uint64(binary.LittleEndian.Uint32(encoded[at-4:])))
	}
	for _, at := range indexes(encoded, idMark) {
		p.ids = append(p.ids, at+8)
		p.of = append(p.of, binary.BigEndian.Uint64(encoded[at+8:]))
	}
	return p
}

func indexes(in, mark []byte) (out []int) {
	for at := 0; ; at++ {
		i := bytes.Index(in[at:], mark)
		if i < 0 {
			return out
		}
		at += i
		out = append(out, at)
	}
}

// stamp makes the payload unique: its first time is ns, and its ids are new for each n.
func (p *payload) stamp(ns int64, n uint64) {
	for i, at := range p.times {
		binary.LittleEndian.PutUint64(p.bytes[at:], uint64(ns)+p.late[i])
	}
	for i, at := range p.ids {
		binary.BigEndian.PutUint64(p.bytes[at:], n<<16+p.of[i])
	}
}

func marked(lateNs int) pcommon.Timestamp {
	return pcommon.Timestamp(timeMark<<32 + uint64(lateNs))
}

func markedID(n int) (id pcommon.TraceID) {
	copy(id[:], idMark)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func spanID(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

func describe(r pcommon.Resource, instance int) {
	for k, v := range map[string]string{
		"service.name": "petclinic", "service.instance.id": fmt.Sprintf("instance-%d", instance),
		"telemetry.sdk.language": "java", "telemetry.sdk.name": "opentelemetry",
		"telemetry.sdk.version": "1.49.0", "host.name": "bench", "os.type": "linux",
		"process.runtime.name": "OpenJDK Runtime Environment",
	} {
		r.Attributes().PutStr(k, v)
	}
}

// spansOf returns traces of four spans, one in a hundred with an error, one in 128 sent by the
// load.
func spansOf(instance int) ([]byte, error) {
	const perTrace, spanNs = 4, 100_000
	d := ptrace.NewTraces()
	r := d.ResourceSpans().AppendEmpty()
	describe(r.Resource(), instance)
	scope := r.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("io.opentelemetry.tomcat-10.0")
	for i := range perPayload[record.Spans] {
		s := scope.Spans().AppendEmpty()
		s.SetTraceID(markedID(i / perTrace))
		s.SetSpanID(spanID(i))
		s.SetStartTimestamp(marked(i * spanNs))
		s.SetEndTimestamp(marked((i + 1 + i%7) * spanNs))
		s.SetName("SELECT petclinic.owners")
		s.SetKind(ptrace.SpanKindClient)
		if i%perTrace == 0 {
			s.SetName("GET /owners/{ownerId}")
			s.SetKind(ptrace.SpanKindServer)
		} else {
			s.SetParentSpanID(spanID(i - i%perTrace))
		}
		if i%100 == 0 {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
		if i < perTrace {
			s.TraceState().FromRaw("prony=1")
		}
		a := s.Attributes()
		a.PutStr("http.request.method", "GET")
		a.PutStr("url.path", fmt.Sprintf("/owners/%d", i))
		a.PutStr("url.scheme", "http")
		a.PutInt("http.response.status_code", 200)
		a.PutStr("http.route", "/owners/{ownerId}")
		a.PutStr("server.address", "localhost")
		a.PutInt("server.port", 8080)
		a.PutStr("thread.name", "http-nio-8080-exec-7")
		a.PutInt("thread.id", int64(i))
	}
	return (&ptrace.ProtoMarshaler{}).MarshalTraces(d)
}

// pointsOf returns counters, gauges and one histogram in ten: 200 points are 420 samples.
func pointsOf(instance int) ([]byte, error) {
	began := pcommon.NewTimestampFromTime(clock.Wall())
	d := pmetric.NewMetrics()
	r := d.ResourceMetrics().AppendEmpty()
	describe(r.Resource(), instance)
	scope := r.ScopeMetrics().AppendEmpty()
	counter, gauge := scope.Metrics().AppendEmpty(), scope.Metrics().AppendEmpty()
	histogram := scope.Metrics().AppendEmpty()
	counter.SetName("jvm.gc.collected")
	sum := counter.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	gauge.SetName("jvm.memory.used")
	gauge.SetUnit("By")
	gauge.SetEmptyGauge()
	histogram.SetName("http.server.request.duration")
	histogram.SetUnit("s")
	durations := histogram.SetEmptyHistogram()
	durations.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range perPayload[record.Points] {
		if i%10 == 0 {
			p := durations.DataPoints().AppendEmpty()
			p.SetStartTimestamp(began)
			p.SetTimestamp(marked(0))
			p.SetCount(55)
			p.SetSum(1.5)
			p.ExplicitBounds().FromRaw([]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5})
			p.BucketCounts().FromRaw([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
			p.Attributes().PutStr("http.route", fmt.Sprintf("/owners/%d", i))
			p.Attributes().PutStr("http.request.method", "GET")
			continue
		}
		to := gauge.Gauge().DataPoints()
		if i%2 == 0 {
			to = sum.DataPoints()
		}
		p := to.AppendEmpty()
		p.SetStartTimestamp(began)
		p.SetTimestamp(marked(0))
		p.SetIntValue(int64(i) * 1001)
		p.Attributes().PutStr("jvm.memory.pool.name", fmt.Sprintf("pool %d", i))
		p.Attributes().PutStr("jvm.memory.type", "heap")
	}
	return (&pmetric.ProtoMarshaler{}).MarshalMetrics(d)
}

// logsOf returns lines of a logger: one in twenty is a warning, every other one is in a trace.
func logsOf(instance int) ([]byte, error) {
	d := plog.NewLogs()
	r := d.ResourceLogs().AppendEmpty()
	describe(r.Resource(), instance)
	scope := r.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("org.springframework.samples.petclinic.owner.OwnerController")
	for i := range perPayload[record.Logs] {
		l := scope.LogRecords().AppendEmpty()
		l.SetTimestamp(marked(i * 1000))
		l.SetObservedTimestamp(marked(i*1000 + 500))
		l.SetSeverityNumber(plog.SeverityNumberInfo)
		l.SetSeverityText("INFO")
		if i%20 == 0 {
			l.SetSeverityNumber(plog.SeverityNumberWarn)
			l.SetSeverityText("WARN")
		}
		l.Body().SetStr(fmt.Sprintf("owner %d was found, with 2 pets and 5 visits, in a cache", i))
		if i%2 == 0 {
			l.SetTraceID(markedID(i))
			l.SetSpanID(spanID(i))
		}
		l.Attributes().PutStr("thread.name", "http-nio-8080-exec-7")
		l.Attributes().PutInt("thread.id", 42)
		l.Attributes().PutStr("code.function", "showOwner")
	}
	return (&plog.ProtoMarshaler{}).MarshalLogs(d)
}

var encoders = map[string]func(instance int) ([]byte, error){
	record.Spans: spansOf, record.Points: pointsOf, record.Logs: logsOf,
}

// encoded is a codec of gRPC for encoded messages.
type encoded struct{}

func (encoded) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (encoded) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

func (encoded) Name() string { return "proto" }

// sending is a set of senders of one signal.
type sending struct {
	signal string
	items  int64 // of a payload
	conns  []*grpc.ClientConn
	load   [senders][]*payload
	sent   [senders]uint64
}

// instances is the number of service instances of each sender, in turn: a series of metrics must
// not have two values within a millisecond.
const instances = 8

func newSending(tb testing.TB, address, signal string) *sending {
	tb.Helper()
	s := &sending{signal: signal, items: int64(perPayload[signal])}
	for i := range senders {
		c, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { c.Close() })
		s.conns = append(s.conns, c)
		for j := range instances {
			text, err := encoders[signal](i*instances + j)
			if err != nil {
				tb.Fatal(err)
			}
			s.load[i] = append(s.load[i], newPayload(text))
		}
	}
	return s
}

// taken counts the items that were accepted and refused.
type taken struct {
	accepted, refused int64
	why               error // of the first refusal
}

// run sends for a duration: as fast as answers arrive, or perS items a second.
func (s *sending) run(d time.Duration, perS float64) taken {
	var all taken
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := clock.Mono()
	for i := range senders {
		wg.Go(func() {
			t := s.send(i, began, d, perS)
			mu.Lock()
			defer mu.Unlock()
			all.accepted += t.accepted
			all.refused += t.refused
			all.why = errors.Join(all.why, t.why)
		})
	}
	wg.Wait()
	return all
}

func (s *sending) send(i int, began int64, d time.Duration, perS float64) (t taken) {
	for k := 0; ; k++ {
		if perS > 0 { // the senders take turns
			due := int64(float64(k*senders+i) * float64(s.items) / perS * 1e9)
			if due >= int64(d) {
				return t
			}
			time.Sleep(time.Duration(due - (clock.Mono() - began)))
		} else if clock.Mono()-began >= int64(d) {
			return t
		}
		if err := s.once(i); err == nil {
			t.accepted += s.items
		} else {
			t.refused += s.items
			if t.why == nil {
				t.why = err
			}
		}
	}
}

func (s *sending) once(i int) error {
	s.sent[i]++
	p := s.load[i][s.sent[i]%instances]
	p.stamp(clock.Wall().UnixNano(), s.sent[i]*senders+uint64(i))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var answer []byte
	err := s.conns[i].Invoke(ctx, exportMethods[s.signal], p.bytes, &answer,
		grpc.ForceCodec(encoded{}), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	// The answers of all signals have the same form: partial_success, a count, and a reason.
	partial := ptraceotlp.NewExportResponse()
	if err := partial.UnmarshalProto(answer); err != nil {
		return err
	}
	if n := partial.PartialSuccess().RejectedSpans(); n > 0 {
		return fmt.Errorf("%d of %d were rejected: %s", n, s.items,
			partial.PartialSuccess().ErrorMessage())
	}
	return nil
}
