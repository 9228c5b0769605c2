package forward

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/telemetry"
	"prony.example/record"
)

// Metrics keep their order, even if one has to be sent again: databases refuse a sample that is
// older than the last one of its series.
func TestMetricsInOrder(t *testing.T) {
	var mu sync.Mutex
	var got []string
	first := true
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if first {
			first = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		req := pmetricotlp.NewExportRequest()
		packed, err := gzip.NewReader(r.Body)
		if err == nil {
			var body []byte
			if body, err = io.ReadAll(packed); err == nil {
				err = req.UnmarshalProto(body)
			}
		}
		if err != nil {
			t.Error(err)
			return
		}
		m := req.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		if got = append(got, m.Name()); len(got) == 3 {
			close(all)
		}
	}))
	defer server.Close()
	f, err := Start(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "c"}
	for _, name := range want {
		d := pmetric.NewMetrics()
		m := d.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		f.Metrics(t.Context(), d)
	}
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		t.Error("they did not all arrive")
	}
	if err := f.Close(context.Background()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("they arrived as %q, want %q", got, want)
	}
}

// TestEndpoints checks which endpoints are refused, and that the others need no answer to begin.
func TestEndpoints(t *testing.T) {
	check := func(endpoint, want string) {
		t.Helper()
		f, err := Start(t.Context(), endpoint)
		if want == "" {
			if err == nil {
				err = f.Close(t.Context())
			}
			if err != nil {
				t.Errorf("%s: %v", endpoint, err)
			}
			return
		}
		if f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", endpoint, err, want)
		}
	}
	check("http://127.0.0.1:1", "")
	check("grpc://127.0.0.1:1", "")
	check("grpcs://127.0.0.1:1", "")
	check("127.0.0.1:4318", "the value is not an endpoint; write http://HOST:4318")
	check("ftp://user:xyzzy@host", `"ftp://user:xxxxx@host": the scheme`)
	check("http://user:xyzzy@", `"http://user:xxxxx@": the value`)
	check("http://", "the value is not an endpoint")
	check("ftp://127.0.0.1", `the scheme "ftp" is not supported`)
}

// TestCounts checks the counts of a metric that the endpoint takes, and of one that it refuses.
func TestCounts(t *testing.T) {
	var refuses atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusBadRequest) // which is not tried again
		}
	}))
	defer server.Close()
	f, err := Start(t.Context(), server.URL+"/")
	if err != nil {
		t.Fatal(err)
	}
	d := pmetric.NewMetrics()
	points := d.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().
		AppendEmpty().SetEmptyGauge().DataPoints()
	for range 3 {
		points.AppendEmpty().SetIntValue(1)
	}
	counts := func(sent, failed int64) {
		t.Helper()
		want := telemetry.Forwarded{Signal: record.Points, Sent: sent, Failed: failed}
		for range 6000 { // a minute
			all, err := f.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 3 {
				t.Fatalf("counts of %d signals: %+v", len(all), all)
			}
			if all[1] == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("the counts never became %+v", want)
	}
	f.Metrics(t.Context(), d)
	counts(3, 0)
	refuses.Store(true)
	f.Metrics(t.Context(), d)
	counts(3, 3)
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var none *Forward
	none.Metrics(t.Context(), d)
	none.Traces(t.Context(), ptrace.NewTraces())
	none.Logs(t.Context(), plog.NewLogs())
}
