package agents_test

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// sink receives and counts telemetry of agents, over their protocols.
type sink struct {
	grpc, http string // addresses

	mu      sync.Mutex
	heard   map[string]int   // counts by kind
	sums    map[string]int64 // last values of counters by name and endpoint
	changed chan struct{}    // closed when data arrives
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{heard: map[string]int{}, sums: map[string]int64{}, changed: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(server, &traces{s: s})
	metricspb.RegisterMetricsServiceServer(server, &metrics{s: s})
	logspb.RegisterLogsServiceServer(server, &logs{s: s})
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

// count adds to the counts and wakes waiters.
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

// counted returns the last value of a counter for an endpoint.
func (s *sink) counted(counter, endpoint string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[counter+" "+endpoint]
}

// counter keeps the values of a cumulative counter by endpoint.
func (s *sink) counter(m *metricpb.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range m.GetSum().GetDataPoints() {
		for _, a := range p.Attributes {
			if a.Key == "endpoint" {
				s.sums[m.Name+" "+a.Value.GetStringValue()] = p.GetAsInt()
			}
		}
	}
}

// await waits until the counts suffice or ctx ends.
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

// named counts a resource by its service and its trial.
func named(r *resourcepb.Resource, more map[string]int) {
	for _, a := range r.GetAttributes() {
		if a.Key == "service.name" || a.Key == "prony.trial" {
			more[a.Key+" "+a.Value.GetStringValue()]++
		}
	}
}

type traces struct {
	tracepb.UnimplementedTraceServiceServer
	s *sink
}

// Export counts spans, server spans, and both by trace.
func (x *traces) Export(_ context.Context, r *tracepb.ExportTraceServiceRequest) (
	*tracepb.ExportTraceServiceResponse, error) {
	more := map[string]int{}
	for _, rs := range r.ResourceSpans {
		named(rs.Resource, more)
		for _, ss := range rs.ScopeSpans {
			for _, span := range ss.Spans {
				more["spans"]++
				more["trace "+hex.EncodeToString(span.TraceId)]++
				if span.Kind == spanpb.Span_SPAN_KIND_SERVER {
					more["server spans"]++
				}
			}
		}
	}
	x.s.count(more)
	return &tracepb.ExportTraceServiceResponse{}, nil
}

type metrics struct {
	metricspb.UnimplementedMetricsServiceServer
	s *sink
}

func (x *metrics) Export(_ context.Context, r *metricspb.ExportMetricsServiceRequest) (
	*metricspb.ExportMetricsServiceResponse, error) {
	more := map[string]int{"metrics": 1}
	for _, rm := range r.ResourceMetrics {
		named(rm.Resource, more)
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				more["metric "+m.Name]++
				more["points"] += points(m)
				x.s.counter(m)
			}
		}
	}
	x.s.count(more)
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

// points returns the number of data points of a metric of any kind.
func points(m *metricpb.Metric) int {
	return len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) +
		len(m.GetHistogram().GetDataPoints()) + len(m.GetSummary().GetDataPoints()) +
		len(m.GetExponentialHistogram().GetDataPoints())
}

type logs struct {
	logspb.UnimplementedLogsServiceServer
	s *sink
}

func (x *logs) Export(_ context.Context, r *logspb.ExportLogsServiceRequest) (
	*logspb.ExportLogsServiceResponse, error) {
	n := 0
	for _, rl := range r.ResourceLogs {
		for _, sl := range rl.ScopeLogs {
			n += len(sl.LogRecords)
		}
	}
	x.s.count(map[string]int{"logs": n})
	return &logspb.ExportLogsServiceResponse{}, nil
}
