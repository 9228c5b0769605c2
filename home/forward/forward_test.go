package forward

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
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
	case <-time.After(time.Minute):
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
