package agents_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
)

// sink takes what agents send, over the protocols that they speak, and counts it.
type sink struct {
	grpc, http string // where it listens

	mu      sync.Mutex
	heard   map[string]int // how often, by what
	changed chan struct{}  // closed when something came
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{heard: map[string]int{}, changed: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, &traces{s: s})
	pmetricotlp.RegisterGRPCServer(server, &metrics{s: s})
	plogotlp.RegisterGRPCServer(server, &logs{s: s})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(l); err != nil {
			t.Errorf("serve OTLP: %v", err)
		}
	})
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count(map[string]int{"HTTP " + r.URL.Path: 1})
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(func() {
		plain.Close()
		server.Stop()
		serving.Wait()
	})
	s.grpc, s.http = l.Addr().String(), plain.Listener.Addr().String()
	return s
}

// count adds to what was heard and wakes who waits.
func (s *sink) count(more map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range more {
		s.heard[what] += n
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *sink) of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[what]
}

// await waits until enough was heard, for as long as ctx lasts.
func (s *sink) await(ctx context.Context, enough func() bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if enough() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return enough()
		}
	}
}

// named counts a resource as one of its service and of its trial.
func named(r pcommon.Resource, more map[string]int) {
	for _, key := range []string{"service.name", "prony.trial"} {
		if value, ok := r.Attributes().Get(key); ok {
			more[key+" "+value.Str()]++
		}
	}
}

type traces struct {
	ptraceotlp.UnimplementedGRPCServer
	s *sink
}

// Export counts spans, those of servers, and both by the trace.
func (x *traces) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse,
	error) {
	more := map[string]int{}
	for _, rs := range r.Traces().ResourceSpans().All() {
		named(rs.Resource(), more)
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				more["spans"]++
				more["trace "+span.TraceID().String()]++
				if span.Kind() == ptrace.SpanKindServer {
					more["server spans"]++
				}
			}
		}
	}
	x.s.count(more)
	return ptraceotlp.NewExportResponse(), nil
}

type metrics struct {
	pmetricotlp.UnimplementedGRPCServer
	s *sink
}

func (x *metrics) Export(_ context.Context, r pmetricotlp.ExportRequest) (
	pmetricotlp.ExportResponse, error) {
	more := map[string]int{"metrics": 1, "points": r.Metrics().DataPointCount()}
	for _, rm := range r.Metrics().ResourceMetrics().All() {
		named(rm.Resource(), more)
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				more["metric "+m.Name()]++
			}
		}
	}
	x.s.count(more)
	return pmetricotlp.NewExportResponse(), nil
}

type logs struct {
	plogotlp.UnimplementedGRPCServer
	s *sink
}

func (x *logs) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse,
	error) {
	x.s.count(map[string]int{"logs": r.Logs().LogRecordCount()})
	return plogotlp.NewExportResponse(), nil
}
