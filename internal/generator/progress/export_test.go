package progress

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"prony.example/internal/telemetry"
)

// exporting returns a view that shows nothing and exports the first eight snapshots: 8 × 1,250
// requests.
func exporting(t *testing.T, c Config) *View {
	t.Helper()
	c.Kind, c.Out = None, io.Discard
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 8; k++ {
		n := snapshot(k)
		n.Errors[3] = 9
		v.Progress(n)
	}
	return v
}

// receiver accepts pushes over HTTP or gRPC.
type receiver struct {
	otlp.UnimplementedMetricsServiceServer
	pushes chan *otlp.ExportMetricsServiceRequest
	heads  chan http.Header                   // of pushes; may be nil
	zipped string                             // compression of the last gRPC call
	answer *otlp.ExportMetricsServiceResponse // nil: all points accepted
}

func (r *receiver) take(push *otlp.ExportMetricsServiceRequest, head http.Header) {
	r.pushes <- push
	if r.heads != nil {
		r.heads <- head
	}
}

func (r *receiver) Export(ctx context.Context, q *otlp.ExportMetricsServiceRequest) (
	*otlp.ExportMetricsServiceResponse, error) {
	head := http.Header{}
	in, _ := metadata.FromIncomingContext(ctx)
	head.Set("Content-Encoding", r.zipped)
	for name, values := range in {
		head[http.CanonicalHeaderKey(name)] = values
	}
	r.take(q, head)
	if r.answer != nil {
		return r.answer, nil
	}
	return &otlp.ExportMetricsServiceResponse{}, nil
}

// HandleRPC and its neighbors get gRPC's own headers, which handlers don't.
func (r *receiver) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InHeader); ok {
		r.zipped = in.Compression
	}
}

func (r *receiver) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *receiver) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *receiver) HandleConn(context.Context, stats.ConnStats)                       {}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	b, err := io.ReadAll(body)
	push := &otlp.ExportMetricsServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(b, push)
	}
	if err != nil || q.URL.Path != "/v1/metrics" {
		http.Error(w, fmt.Sprint(q.URL, err), http.StatusBadRequest)
		return
	}
	r.take(push, q.Header)
	w.Header().Set("Content-Type", "application/x-protobuf")
	if b, err := proto.Marshal(r.answer); err == nil {
		w.Write(b) //nolint:errcheck // a short response fails its reader
	}
}

func TestPush(t *testing.T) {
	check := func(scheme string, serve func(*receiver) (address string, stop func())) {
		t.Run(scheme, func(t *testing.T) {
			r := &receiver{pushes: make(chan *otlp.ExportMetricsServiceRequest, 100)}
			address, stop := serve(r)
			defer stop()
			c := openLoad
			c.OTLP = scheme + "://" + address
			v := exporting(t, c)
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			// The last push is at the end, with the final counters.
			var last *otlp.ExportMetricsServiceRequest
			for len(r.pushes) > 0 {
				last = <-r.pushes
			}
			if last == nil {
				t.Fatal("nothing was pushed")
			}
			wantPush(t, c, last)
		})
	}
	check("http", overHTTPTo)
	check("grpc", overGRPCTo)
}

func overHTTPTo(r *receiver) (address string, stop func()) {
	s := httptest.NewServer(r)
	return s.Listener.Addr().String(), s.Close
}

func overGRPCTo(r *receiver) (address string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(grpc.StatsHandler(r))
	otlp.RegisterMetricsServiceServer(s, r)
	go s.Serve(l) //nolint:errcheck // it ends with stop
	return l.Addr().String(), s.Stop
}

func labels(all []*common.KeyValue) string {
	var out []string
	for _, kv := range all {
		out = append(out, kv.GetKey()+"="+kv.GetValue().GetStringValue())
	}
	return strings.Join(out, ",")
}

func wantPush(t *testing.T, c Config, push *otlp.ExportMetricsServiceRequest) {
	t.Helper()
	r := push.GetResourceMetrics()[0]
	if got, want := labels(r.GetResource().GetAttributes()), "prony.engine=epoll,prony.model="+
		c.Model+",prony.target="+c.Target+",service.name=prony"; got != want {
		t.Errorf("the resource is %s, want %s", got, want)
	}
	values := map[string]float64{}
	var response *metrics.ExponentialHistogramDataPoint
	for _, s := range r.GetScopeMetrics() {
		for _, m := range s.GetMetrics() {
			if s := m.GetSum(); s != nil && (!s.GetIsMonotonic() || s.GetAggregationTemporality() !=
				metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE) {
				t.Errorf("%s is not a cumulative counter", m.GetName())
			}
			points := append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...)
			for _, p := range points {
				values[m.GetName()+"{"+labels(p.GetAttributes())+"}"] = p.GetAsDouble() +
					float64(p.GetAsInt())
			}
			if h := m.GetExponentialHistogram(); h != nil {
				response = h.GetDataPoints()[0]
			}
		}
	}
	for name, want := range map[string]float64{
		"prony.load.due{}": 8 * 1250, "prony.load.sent{}": 8 * 1249, "prony.load.done{}": 8 * 1245,
		"prony.load.received{}": 8 * 1245 * 140, "prony.load.failed{class=timeout}": 9,
		"prony.load.failed{class=body}": 0, "prony.load.in_flight{}": 7,
		"prony.load.backlog{}": 40, "prony.load.window{}": 1,
		"prony.load.lag{quantile=0.99}": 12007e-9,
	} {
		if got, ok := values[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g; there are %v", name, got, want, values)
		}
	}
	b := response.GetPositive()
	// OpenTelemetry's bucket i begins at 2^(i/8): 8 ms is in -56.
	if at := -56 - b.GetOffset(); response.GetCount() != 8*1245 || response.GetScale() != 3 ||
		b.GetBucketCounts()[at] != 8*45 || math.Abs(response.GetMax()/8e-3-1) > 1e-3 {
		t.Errorf("the histogram is %v", response)
	}
}

// TestPushSettings checks OpenTelemetry's variables, those for metrics before those for all
// signals.
func TestPushSettings(t *testing.T) {
	check := func(scheme string, serve func(*receiver) (address string, stop func())) {
		t.Run(scheme, func(t *testing.T) {
			r := &receiver{pushes: make(chan *otlp.ExportMetricsServiceRequest, 100),
				heads: make(chan http.Header, 100)}
			address, stop := serve(r)
			defer stop()
			c := openLoad
			c.OTLP = scheme + "://" + address
			c.Env = []string{"OTEL_EXPORTER_OTLP_HEADERS=x-tenant=one",
				"OTEL_EXPORTER_OTLP_METRICS_HEADERS=x-tenant=a%20b, x-other = 2",
				"OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
				"OTEL_RESOURCE_ATTRIBUTES=site=lab,service.name=other"}
			if err := exporting(t, c).Close(); err != nil {
				t.Fatal(err)
			}
			push, head := <-r.pushes, <-r.heads
			if head.Get("X-Tenant") != "a b" || head.Get("X-Other") != "2" ||
				head.Get("Content-Encoding") != "gzip" {
				t.Errorf("headers are %v", head)
			}
			got := labels(push.GetResourceMetrics()[0].GetResource().GetAttributes())
			if !strings.HasPrefix(got, "site=lab,prony.") || strings.Contains(got, "other") {
				t.Errorf("the resource is %s", got)
			}
		})
	}
	check("http", overHTTPTo)
	check("grpc", overGRPCTo)
}

func TestBadSettings(t *testing.T) {
	check := func(variable, want string) {
		t.Helper()
		c := openLoad
		c.Kind, c.OTLP, c.Env = None, "http://127.0.0.1:1", []string{variable}
		_, err := New(c)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", variable, err, want)
		}
	}
	check("OTEL_EXPORTER_OTLP_HEADERS=a",
		`push metrics: read OTEL_EXPORTER_OTLP_HEADERS: "a" does not`)
	check("OTEL_RESOURCE_ATTRIBUTES=a=%",
		`push metrics: read OTEL_RESOURCE_ATTRIBUTES: "a=%" does not`)
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE"} {
		check("OTEL_EXPORTER_OTLP_"+name+"=export_test.go",
			"push metrics: read OTEL_EXPORTER_OTLP_"+name+": ")
	}
}

// TestPushesInPart checks a receiver that reports a partial success.
func TestPushesInPart(t *testing.T) {
	part := &otlp.ExportMetricsServiceResponse{PartialSuccess: &otlp.ExportMetricsPartialSuccess{
		RejectedDataPoints: 3, ErrorMessage: "too old"}}
	check := func(scheme string, serve func(*receiver) (address string, stop func())) {
		r := &receiver{pushes: make(chan *otlp.ExportMetricsServiceRequest, 100), answer: part}
		address, stop := serve(r)
		defer stop()
		c := openLoad
		c.OTLP = scheme + "://" + address
		err := exporting(t, c).Close()
		const want = `first error: the receiver rejected 3 data points: "too old"`
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", scheme, err, want)
		}
	}
	check("http", overHTTPTo)
	check("grpc", overGRPCTo)
}

// TestPushesThatFail checks that an absent or refusing receiver does not affect the load, and is
// reported once.
func TestPushesThatFail(t *testing.T) {
	check := func(name, endpoint, want string) {
		t.Run(name, func(t *testing.T) {
			c := openLoad
			c.OTLP = endpoint
			v := exporting(t, c)
			err := v.Close()
			var failed, pushed int64
			form := "push metrics to " + endpoint + ": %d of %d pushes failed; first error: "
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error is %v, want %q", err, want)
			}
			_, scan := fmt.Sscanf(err.Error(), form, &failed, &pushed)
			if scan != nil || failed < 1 || failed != pushed || v.push.failures() != failed {
				t.Errorf("error is %v, %d failures; want all pushes in it", err, v.push.failures())
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	check("nobody there", "http://"+gone, "connection refused")
	check("nobody there, gRPC", "grpc://"+gone, "connection refused")
	no := httptest.NewServer(http.NotFoundHandler())
	defer no.Close()
	check("not found", no.URL, "404")
	slow := make(chan struct{})
	never := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-slow
	}))
	defer never.Close()
	defer close(slow)
	check("no answer", never.URL, "deadline exceeded")
}

func TestBadEndpoints(t *testing.T) {
	check := func(endpoint, want string) {
		t.Helper()
		c := openLoad
		c.Kind, c.OTLP = None, endpoint
		_, err := New(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", endpoint, err, want)
		}
	}
	check("127.0.0.1:4318", "the address must be an endpoint such as http://127.0.0.1:4318")
	check("localhost", "the address must be an endpoint such as")
	check("udp://127.0.0.1:4318", "udp is not a scheme of OTLP; use http, https, grpc or grpcs")
}

// TestMetricNames checks that names are legal and unique.
func TestMetricNames(t *testing.T) {
	legal := regexp.MustCompile(`^prony\.load\.[a-z_]+$`)
	seen := map[string]bool{}
	names := []string{responseName}
	s := newState(openLoad)
	s.now.lagMaxNs = 1 // otherwise this metric is missing
	for _, x := range s.measures().metrics {
		names = append(names, x.name)
	}
	for _, n := range names {
		if seen[n] || !legal.MatchString(n) {
			t.Errorf("%s is a bad name, or used twice", n)
		}
		seen[n] = true
	}
}

// telemetry.LiveMetrics has the metrics of a load, by the names that OpenTelemetry's rules for
// Prometheus give them; dashboards are compared with that list.
func TestLiveMetrics(t *testing.T) {
	s := state{now: point{lagP50Ns: 1}}
	all := append(s.measures().metrics, metric{name: responseName, unit: "s"})
	var names []string
	for _, m := range all {
		name := strings.ReplaceAll(m.name, ".", "_") +
			map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio"}[m.unit]
		if m.counter {
			name += "_total"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, telemetry.LiveMetrics) {
		t.Errorf("a load sends %q, want %q", names, telemetry.LiveMetrics)
	}
}
