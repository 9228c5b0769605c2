package collector

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/home/logstore"
	"prony.example/home/spanstore"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

var update = flag.Bool("update", false, "write the telemetry that tests of prony read")

// sample is the folder of telemetry that prony's tests read.
const sample = "../../internal/telemetry/testdata/sample"

// Trial and target of the sample.
const sampleTrial, sampleTarget = "b1-01-go-nethttp", "go-nethttp"

// The stores write the same telemetry as in the sample.
func TestSample(t *testing.T) {
	made := t.TempDir()
	writeSample(t, made)
	if *update {
		if err := os.RemoveAll(sample); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(sample, os.DirFS(made)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(dir string) map[string]string {
		files := map[string]string{}
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			files[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	want, got := read(sample), read(made)
	if len(want) == 0 || len(want) != len(got) {
		t.Errorf("%s has %d files, the stores write %d: go test ./collector -update", sample,
			len(want), len(got))
	}
	for name := range want {
		if want[name] != got[name] {
			t.Errorf(
				"%s/%s is not what the stores write: go test ./collector -update",
				sample,
				name,
			)
		}
	}
}

// The OpenTelemetry Collector's own decoder reads the OTLP that prony writes from stored traces.
func TestSampleAsOTLP(t *testing.T) {
	kept, bad, err := traces.Read(sample, traces.Filter{})
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	var out bytes.Buffer
	if err := traces.WriteOTLP(&out, kept); err != nil {
		t.Fatal(err)
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(out.Bytes())
	if err != nil || td.SpanCount() != 160 { // 40 × 4
		t.Errorf("%d spans, %v", td.SpanCount(), err)
	}
}

// writeSample writes traces, span metrics and log records of a small system: 40 requests through a
// gateway and a service to a database, one a second, one of which failed. The result is the same
// every time.
func writeSample(t *testing.T, store string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := spanstore.Open(store, spanstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := logstore.Open(store, logstore.Options{Wanted: s.MayKeep})
		if err != nil {
			t.Fatal(err)
		}
		began := clock.Wall().UnixNano()
		trial := telemetry.Trial{Run: "RUN", ID: sampleTrial, Target: sampleTarget}
		mark := telemetry.Mark{
			Trial:  sampleTrial,
			Kind:   telemetry.Open,
			Name:   "half",
			WallNs: began,
		}
		err = errors.Join(s.Begin(trial), l.Begin(trial), s.Mark(mark), l.Mark(mark))
		for i := range 40 {
			at := clock.Wall().UnixNano()
			err = errors.Join(err, s.ConsumeTraces(context.Background(), sampleTrace(i, at)),
				l.ConsumeLogs(context.Background(), sampleLogs(i, at)))
			time.Sleep(time.Second)
		}
		ended, failed := s.End(sampleTrial)
		_, lost := l.End(sampleTrial, func(id pcommon.TraceID) bool { return ended.IDs[id] })
		if err = errors.Join(err, failed, lost, s.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

func sampleID(i int) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:], spanstore.Mix(uint64(i)))
	binary.BigEndian.PutUint64(id[8:], spanstore.Mix(uint64(1000+i)))
	return id
}

func sampleTrace(i int, at int64) ptrace.Traces {
	out := ptrace.NewTraces()
	span := func(service, name string, id, parent byte, kind ptrace.SpanKind, from,
		to int64) ptrace.Span {
		r := out.ResourceSpans().AppendEmpty()
		r.Resource().Attributes().PutStr("service.name", service)
		s := r.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(sampleID(i))
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetName(name)
		s.SetKind(kind)
		s.SetStartTimestamp(pcommon.Timestamp(at + from))
		s.SetEndTimestamp(pcommon.Timestamp(at + to))
		return s
	}
	more := int64(i*i) * 10_000 // additional time of the database: 0 to 15.2 ms
	span("visits", "SELECT petclinic", 4, 3, ptrace.SpanKindClient, 900_000, 1_300_000+more)
	s := span("visits", "GET /visits", 3, 2, ptrace.SpanKindServer, 600_000, 1_500_000+more)
	span("gateway", "GET", 2, 1, ptrace.SpanKindClient, 400_000, 1_800_000+more)
	root := span("gateway", "GET /api/visits", 1, 9, ptrace.SpanKindServer, 0, 2_000_000+more)
	if i == 7 {
		s.Status().SetCode(ptrace.StatusCodeError)
		e := s.Events().AppendEmpty()
		e.SetName("exception")
		e.SetTimestamp(pcommon.Timestamp(at + 1_400_000))
		e.Attributes().PutStr("exception.type", "SQLTransientException")
		e.Attributes().PutStr("exception.message", "no connection was free")
	}
	if i%20 == 19 {
		root.TraceState().FromRaw("prony=1")
	}
	return out
}

func sampleLogs(i int, at int64) plog.Logs {
	out := plog.NewLogs()
	r := out.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "visits")
	l := r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	l.SetTimestamp(pcommon.Timestamp(at + 1_450_000))
	l.SetSeverityNumber(plog.SeverityNumberInfo)
	l.Body().SetStr("found the visits of 6 pets")
	if i == 7 {
		l.SetSeverityNumber(plog.SeverityNumberError)
		l.Body().SetStr("no connection was free within 30 ms")
	}
	l.SetTraceID(sampleID(i))
	l.SetSpanID(pcommon.SpanID{3})
	return out
}
