package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/types/known/timestamppb"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/hostguard"
	"prony.example/load"
)

// measures is what monitoring gets. Counters count since the beginning of the lead-in, for they may
// not go back; gauges are of the last point.
type measures struct {
	began, now time.Time
	metrics    []metric
	about      []string // engine, model and target, each before its value
	response   tally
}

// metric has a name by the conventions of Prometheus, and one of OpenTelemetry, with dots and no
// unit in it. docs/formats/load-live.md lists both.
type metric struct {
	name, otel, unit, help string
	counter                bool // else a gauge
	samples                []sample
}

// sample is a value with what it is told apart by: a name, then its value.
type sample struct {
	value  float64
	labels []string
}

// The metrics that are no metric above: one has buckets, the other nothing but labels.
const (
	responseName, responseOtel = "prony_load_response_seconds", "prony.load.response"
	responseHelp               = "Response time, from when a request was due to its last byte."

	infoName = "prony_load_info"
	infoHelp = "What is offered, to what, and how."
)

func (s *state) measures() measures {
	t := &s.totals
	item := func(n int64) []sample { return []sample{{value: float64(n)}} }
	window := int64(0)
	if s.inWindow {
		window = 1
	}
	var failed, lag []sample
	for i, class := range load.ClassNames {
		failed = append(failed, sample{float64(t.Errors[i]), []string{"class", class}})
	}
	for i, ns := range []int64{s.now.lagP50Ns, s.now.lagP99Ns, s.now.lagMaxNs} {
		if ns > 0 { // else it is unknown
			lag = append(lag, sample{inSeconds(float64(ns)),
				[]string{"quantile", []string{"0.5", "0.99", "1"}[i]}})
		}
	}
	m := measures{
		began: s.began, now: clock.Wall(), response: s.ever,
		about: []string{"engine", s.Engine, "model", s.Model, "target", s.Target},
		metrics: []metric{
			{"prony_load_due_total", "prony.load.due", "{request}",
				"Requests whose time has come.", true, item(t.Due)},
			{"prony_load_sent_total", "prony.load.sent", "{request}",
				"Requests sent.", true, item(t.Sent)},
			{"prony_load_done_total", "prony.load.done", "{request}",
				"Requests answered well.", true, item(t.Done)},
			{"prony_load_received_bytes_total", "prony.load.received", "By",
				"Bytes received.", true, item(t.BytesIn)},
			{"prony_load_failed_total", "prony.load.failed", "{request}",
				"Requests that failed, by class.", true, failed},
			{"prony_load_in_flight", "prony.load.in_flight", "{request}",
				"Requests sent and not yet ended.", false, item(t.InFlight)},
			{"prony_load_backlog", "prony.load.backlog", "{request}",
				"Requests whose time has come and that have not ended.", false, item(s.backlog())},
			{"prony_load_window", "prony.load.window", "1",
				"1 while the window is open, whose requests make the result.", false, item(window)},
		},
	}
	if len(lag) > 0 {
		m.metrics = append(m.metrics, metric{"prony_load_lag_seconds", "prony.load.lag", "s",
			"Lateness of sending in the last interval, by quantile; 1 is the largest.", false, lag})
	}
	return m
}

func inSeconds(ns float64) float64 { return ns / 1e9 }

// patience is how long the page's last readers may take, and the last push.
const patience = 2 * time.Second

// metricsPage serves what a view has measured to Prometheus.
type metricsPage struct {
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// serveMetrics listens at the address; without a host that is 127.0.0.1, for nobody else asked.
func serveMetrics(address string, measure func() measures) (*metricsPage, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w; choose another address", err)
	}
	silent := log.New(io.Discard, "", 0) // a broken connection is the reader's business
	mux := http.NewServeMux()
	mux.Handle("/metrics", scraped(measure))
	mux.Handle("/{$}", http.RedirectHandler("/metrics", http.StatusFound))
	p := &metricsPage{
		listener: l, ended: make(chan struct{}),
		server: &http.Server{Handler: hostguard.Guard(mux), ErrorLog: silent,
			ReadHeaderTimeout: patience},
	}
	go func() {
		defer close(p.ended)
		_ = p.server.Serve(l) // always an error: that it was closed, by close
	}()
	return p, nil
}

func (p *metricsPage) addr() string {
	if p == nil {
		return ""
	}
	return p.listener.Addr().String()
}

func (p *metricsPage) close() error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = p.server.Close() // the slow reader does without
	}
	<-p.ended
	return err
}

// scraped writes measures in the format that the reader asks for: text, OpenMetrics or protobuf.
func scraped(measure func() measures) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		m := measure()
		format := expfmt.NegotiateAccept(q.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
		w.Header().Set("Content-Type", string(format))
		e := expfmt.NewEncoder(w, format)
		for _, f := range m.families() {
			if e.Encode(f) != nil {
				return // a broken connection is the reader's business
			}
		}
		if c, ok := e.(expfmt.Closer); ok {
			_ = c.Close() // likewise
		}
	}
}

// families are the metrics as Prometheus' protobuf has them, from which all its formats are made.
func (m *measures) families() []*dto.MetricFamily {
	family := func(name, help string, kind dto.MetricType) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
	}
	info := family(infoName, infoHelp, dto.MetricType_GAUGE)
	info.Metric = []*dto.Metric{{Label: pairs(m.about), Gauge: &dto.Gauge{Value: new(1.0)}}}
	response := family(responseName, responseHelp, dto.MetricType_HISTOGRAM)
	response.Metric = []*dto.Metric{{Histogram: m.histogram()}}
	out := []*dto.MetricFamily{info, response}
	for _, x := range m.metrics {
		f := family(x.name, x.help, dto.MetricType_GAUGE)
		if x.counter {
			f.Type = dto.MetricType_COUNTER.Enum()
		}
		for _, s := range x.samples {
			item := &dto.Metric{Label: pairs(s.labels)}
			if x.counter {
				item.Counter = &dto.Counter{Value: &s.value}
			} else {
				item.Gauge = &dto.Gauge{Value: &s.value}
			}
			f.Metric = append(f.Metric, item)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	return out
}

// pairs makes labels of names, in their order, and values.
func pairs(labels []string) (out []*dto.LabelPair) {
	for pair := range slices.Chunk(labels, 2) {
		out = append(out, &dto.LabelPair{Name: &pair[0], Value: &pair[1]})
	}
	return out
}

// histogram has both kinds of buckets: those of 1, 2 and 5 for everybody, the exponential ones for
// a server that asks for native histograms. Of those, spans say which are not empty, each by its
// distance from the end of the one before, and deltas how much each count differs from the last.
func (m *measures) histogram() *dto.Histogram {
	t := &m.response
	h := &dto.Histogram{
		SampleCount: new(uint64(t.count)), SampleSum: new(inSeconds(t.sumNs)),
		Schema: new(int32(schema)), ZeroThreshold: new(0.0), ZeroCount: new(uint64(0)),
		CreatedTimestamp: timestamppb.New(m.began),
	}
	below := int64(0)
	for i, edge := range edgesNs {
		below += t.classic[i]
		h.Bucket = append(h.Bucket, &dto.Bucket{
			UpperBound: new(inSeconds(float64(edge))), CumulativeCount: new(uint64(below)),
		})
	}
	end, last := 0, int64(0)
	for i, n := range t.eighths {
		if n == 0 {
			continue
		}
		key := i + eighthsFrom
		if len(h.PositiveSpan) == 0 || key > end {
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{
				Offset: new(int32(key - end)), Length: new(uint32(0)),
			})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, n-last)
		end, last = key+1, n
	}
	if len(h.PositiveSpan) == 0 { // an empty one tells that this is a native histogram
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return h
}
