package tsdb

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The API answers like Prometheus, byte for byte except for the order of keys.
func TestAPIGolden(t *testing.T) {
	s := open(t, Options{})
	two(t, s)
	native(t, s)
	h := s.Handler()
	const noonUnix = "1795262400" // 2026-11-21T12:00:00Z
	for _, row := range []struct{ name, path string }{
		{"query", "query?time=" + noonUnix + "&query=" +
			url.QueryEscape(`jvm_memory_used_bytes{service_name="spring-jvm"} / 1048576`)},
		{"query_scalar", "query?time=" + noonUnix + "&query=1%2B1"},
		{"query_error", "query?query=sum("},
		{"query_range", "query_range?start=1795262370&end=" + noonUnix + "&step=10&query=" +
			url.QueryEscape(`spring_request_count_total`)},
		{"query_range_points", "query_range?start=0&end=" + noonUnix + "&step=1&query=x"},
		{"query_exemplars", "query_exemplars?start=1795262399&end=" + noonUnix + "&query=" +
			url.QueryEscape(`http_server_request_duration_seconds_bucket{le="0.01"}`)},
		{"labels", "labels"},
		{"label_values", "label/jvm_memory_pool_name/values"},
		{"series", "series?match[]=" + url.QueryEscape(`spring_request_count_total`)},
		{"metadata", "metadata?metric=http_server_request_duration_seconds"},
		{"format_query", "format_query?query=sum(a)by(b)"},
		{"parse_query", "parse_query?query=" +
			url.QueryEscape(`topk by (a) (3, -rate(x{b!="<c>"}[5m] offset 1m)) / on (d) `+
				`group_left (e) max_over_time((y @ end())[1h:30s]) > bool 2`)},
		{"query_histogram", "query?limit=1&time=" + noonUnix + "&query=" +
			url.QueryEscape(`rpc_duration`)},
		{"labels_limited", "labels?limit=2&match[]=up&match[]=spring_request_count_total"},
		{"series_error", "series?match[]=sum("},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/"+row.path, nil))
		var got bytes.Buffer
		if err := json.Indent(&got, w.Body.Bytes(), "", "\t"); err != nil {
			t.Errorf("%s: %v: %s", row.name, err, w.Body)
			continue
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", "api", row.name+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got.String() != string(want) {
			t.Errorf("%s, %v: got\n%s\nwant\n%s", row.name, err, &got, want)
		}
	}
}

// native sends an exponential histogram.
func native(t *testing.T, s *Store) {
	t.Helper()
	md := pmetric.NewMetrics()
	m := resource(md, "rpc", "b1-03").AppendEmpty()
	m.SetName("rpc.duration")
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetTimestamp(at(0))
	p.SetCount(6)
	p.SetSum(7.5)
	p.SetZeroCount(1)
	p.Positive().BucketCounts().FromRaw([]uint64{2, 0, 3})
	consume(t, s, md)
}

// Prometheus' own client, which promtool uses, reads all that it can request.
func TestPrometheusClient(t *testing.T) {
	s := open(t, Options{})
	two(t, s)
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	c, err := api.NewClient(api.Config{Address: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	a, ctx := promapi.NewAPI(c), context.Background()
	v, _, _, err := a.Query(ctx, `sum(spring_request_count_total)`, noon)
	if got, ok := v.(model.Vector); err != nil || !ok || len(got) != 1 || got[0].Value != 30 {
		t.Errorf("query: %v, %v", v, err)
	}
	v, _, _, err = a.QueryRange(ctx, `spring_request_count_total`,
		promapi.Range{Start: noon.Add(-30 * time.Second), End: noon, Step: 10 * time.Second})
	if got, ok := v.(model.Matrix); err != nil || !ok || len(got) != 1 || len(got[0].Values) != 4 {
		t.Errorf("query range: %v, %v", v, err)
	}
	series, _, _, err := a.Series(ctx, []string{`{__name__=~".+request_count_total"}`}, time.Time{},
		noon)
	if err != nil || len(series) != 2 {
		t.Errorf("series: %v, %v", series, err)
	}
	values, _, _, err := a.LabelValues(ctx, "service_name", nil, time.Time{}, noon)
	if err != nil || len(values) != 2 {
		t.Errorf("label values: %v, %v", values, err)
	}
	meta, err := a.Metadata(ctx, "jvm_memory_used_bytes", "")
	if m := meta["jvm_memory_used_bytes"]; err != nil || len(m) != 1 || m[0].Unit != "bytes" ||
		m[0].Type != "gauge" {
		t.Errorf("metadata: %v, %v", meta, err)
	}
	found, err := a.QueryExemplars(ctx, `http_server_request_duration_seconds_bucket`,
		noon.Add(-time.Minute), noon)
	if err != nil || len(found) != 2 ||
		found[0].Exemplars[0].Labels["trace_id"] != "00000000000000000000000000000001" {
		t.Errorf("exemplars: %v, %v", found, err)
	}
	info, err := a.Buildinfo(ctx)
	if err != nil || info.Version != promVersion {
		t.Errorf("build info: %+v, %v", info, err)
	}
}

// Only reading requests are served, and not to a page of another origin.
func TestAPIOnlyReads(t *testing.T) {
	s := open(t, Options{})
	h := s.Handler()
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/-/ready", 200},
		{"GET", "/-/healthy", 200},
		{"POST", "/api/v1/query?query=1", 200},
		{"DELETE", "/api/v1/query?query=1", 405},
		{"GET", "/api/v1/query?query=(", 400},
		{"POST", "/api/v1/write", 404},
		{"POST", "/api/v1/read", 404},
		{"POST", "/api/v1/otlp/v1/metrics", 404},
		{"POST", "/api/v1/admin/tsdb/delete_series?match[]=x", 404},
		{"GET", "/api/v1/rules", 404},
		{"GET", "/api/v1/alertmanagers", 404},
		{"GET", "/api/v1/targets", 404},
		{"GET", "/api/v1/status/config", 404},
		{"GET", "/api/v1/status/self_metrics", 404},
		{"GET", "/api/v1/label/a/b/values", 404},
		{"GET", "/api/v1/../v1/write", 404},
		{"GET", "/", 404},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(row.method, row.path, nil)
		r.Header.Set("Origin", "http://elsewhere.example")
		h.ServeHTTP(w, r)
		if w.Code != row.status || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %d %v, want %d", row.method, row.path, w.Code, w.Header(), row.status)
		}
	}
}

// A query that would use too much memory or time ends with an error.
func TestQueriesAreBounded(t *testing.T) {
	s := open(t, Options{QuerySize: 10})
	two(t, s)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet,
		"/api/v1/query?time=1795262400&query="+url.QueryEscape(`{__name__!=""}`), nil))
	if w.Code != 422 || !strings.Contains(w.Body.String(), "too many samples") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s = open(t, Options{QueryTime: 1}) // ns
	w = httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "timed out") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
