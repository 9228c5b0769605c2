package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"prony/internal/load"
)

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
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector{measure}); err != nil {
		panic("live: the collector of metrics cannot be registered: " + err.Error())
	}
	silent := log.New(io.Discard, "", 0) // a broken connection is the reader's business
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorLog: silent,
	}))
	mux.Handle("/{$}", http.RedirectHandler("/metrics", http.StatusFound))
	p := &metricsPage{
		listener: l, ended: make(chan struct{}),
		server: &http.Server{Handler: mux, ErrorLog: silent, ReadHeaderTimeout: patience},
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

// collector makes Prometheus metrics of measures when it is asked.
type collector struct{ measure func() measures }

// Describe promises nothing: the metrics are made as they are asked for.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	m := c.measure()
	send := func(name, help string, kind prometheus.ValueType, v float64, labels ...string) {
		names, values := pairs(labels)
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v,
			values...)
	}
	for _, x := range counters {
		send(x.name, x.help, prometheus.CounterValue, float64(x.of(&m.totals)))
	}
	for i, class := range load.ClassNames {
		send(failedName, failedHelp, prometheus.CounterValue, float64(m.totals.Errors[i]),
			"class", class)
	}
	for _, x := range gauges {
		send(x.name, x.help, prometheus.GaugeValue, x.of(&m))
	}
	for i, q := range lagNames {
		if m.lagNs[i] > 0 {
			send(lagName, lagHelp, prometheus.GaugeValue, inSeconds(float64(m.lagNs[i])),
				"quantile", q)
		}
	}
	send(infoName, infoHelp, prometheus.GaugeValue, 1,
		"target", m.target, "model", m.model, "engine", m.engine)
	out <- newHistogram(&m)
}

// pairs parts names from values.
func pairs(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

// histogram is one metric with both kinds of buckets: those of 1, 2 and 5 for everybody, the
// exponential ones for a server that asks for native histograms.
type histogram struct{ classic, native prometheus.Metric }

func newHistogram(m *measures) histogram {
	t := &m.response
	desc := prometheus.NewDesc(responseName, responseHelp, nil, nil)
	buckets := make(map[float64]uint64, len(edgesNs))
	below := int64(0)
	for i, edge := range edgesNs {
		below += t.classic[i]
		buckets[inSeconds(float64(edge))] = uint64(below)
	}
	exponential := map[int]int64{}
	for i, n := range t.eighths {
		if n > 0 {
			exponential[i+eighthsFrom] = n
		}
	}
	count, sum := uint64(t.count), inSeconds(t.sumNs)
	native, err := prometheus.NewConstNativeHistogram(desc, count, sum, exponential, nil, 0, schema,
		0, m.began)
	if err != nil {
		panic("live: the native histogram does not hold what it counted: " + err.Error())
	}
	return histogram{prometheus.MustNewConstHistogram(desc, count, sum, buckets), native}
}

func (h histogram) Desc() *prometheus.Desc { return h.classic.Desc() }

func (h histogram) Write(out *dto.Metric) error {
	var native dto.Metric
	if err := errors.Join(h.native.Write(&native), h.classic.Write(out)); err != nil {
		return err
	}
	native.Histogram.Bucket = out.Histogram.Bucket
	out.Histogram = native.Histogram
	return nil
}
