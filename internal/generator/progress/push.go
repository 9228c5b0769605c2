package progress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpczip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A push must end before the next one is due. Failed pushes are not repeated, because the next one
// has cumulative counters.
const (
	pushEvery   = time.Second
	pushTimeout = 900 * time.Millisecond
)

// carrier sends an OTLP message to its receiver and decodes the response.
type carrier interface {
	carry(ctx context.Context, m, answer proto.Message) error
	close() error
}

// pusher pushes a view's metrics to an OTLP receiver.
type pusher struct {
	endpoint   string
	measure    func() measures
	attributes []*common.KeyValue // of the resource, in addition to Prony's
	carrier    carrier
	stop       chan struct{}
	ended      chan struct{}

	mu     sync.Mutex
	pushed int64
	failed int64
	first  error
}

// startPushes starts the pushes. The endpoint's scheme sets the protocol: http or https for
// protobuf over HTTP, grpc or grpcs for gRPC without or with TLS. It does not check whether the
// endpoint answers.
func startPushes(endpoint string, env []string, measure func() measures) (*pusher, error) {
	s, err := readSettings(env)
	if err != nil {
		return nil, fmt.Errorf("push metrics: %w", err)
	}
	c, err := newCarrier(endpoint, s)
	if err != nil {
		return nil, fmt.Errorf("push metrics to %q: %w", endpoint, err)
	}
	p := &pusher{
		endpoint: endpoint, measure: measure, attributes: s.attributes, carrier: c,
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.run()
	return p, nil
}

func newCarrier(endpoint string, s settings) (carrier, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, errors.New("the address must be an endpoint such as http://127.0.0.1:4318")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/metrics"
		}
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = s.tls
		return &overHTTP{url: u.String(), settings: s, client: http.Client{Transport: t}}, nil
	case "grpc", "grpcs":
		secure := credentials.NewTLS(s.tls)
		if u.Scheme == "grpc" {
			secure = insecure.NewCredentials()
		}
		conn, err := grpc.NewClient(u.Host, grpc.WithTransportCredentials(secure),
			grpc.WithUserAgent("prony"), grpc.WithDisableRetry())
		return &overGRPC{conn: conn, settings: s}, err
	}
	return nil, fmt.Errorf("%s is not a scheme of OTLP; use http, https, grpc or grpcs",
		u.Scheme)
}

func (p *pusher) run() {
	defer close(p.ended)
	due := time.NewTicker(pushEvery)
	defer due.Stop()
	for ending := false; !ending; {
		select {
		case <-due.C:
		case <-p.stop:
			ending = true // after a last push with the final counters
		}
		err := p.push()
		p.mu.Lock()
		p.pushed++
		if err != nil {
			p.failed++
			if p.first == nil {
				p.first = err
			}
		}
		p.mu.Unlock()
	}
}

func (p *pusher) push() error {
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	m := p.measure()
	// The response is an ExportMetricsServiceResponse. Its only field is a message, which has the
	// same encoding as bytes. It is set if the receiver rejected a part.
	var answer wrapperspb.BytesValue
	if err := p.carrier.carry(ctx, m.otlp(p.attributes), &answer); err != nil {
		return err
	}
	// That message has the number of rejected points (1) and the reason (2); the status's fields
	// code and message have the same numbers and types.
	var refused status.Status
	if err := proto.Unmarshal(answer.GetValue(), &refused); err != nil {
		return fmt.Errorf("read the response of the metrics receiver: %w", err)
	}
	if refused.GetCode() == 0 && refused.GetMessage() == "" {
		return nil
	}
	return fmt.Errorf("the receiver rejected %d data points: %q", refused.GetCode(),
		refused.GetMessage())
}

func (p *pusher) failures() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// close pushes a last time and returns the first error. It takes at most the time of two pushes: a
// running one and the last.
func (p *pusher) close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	<-p.ended
	if err := p.carrier.close(); p.failed == 0 && err != nil {
		return fmt.Errorf("close the connection to %s: %w", p.endpoint, err)
	}
	if p.failed == 0 {
		return nil
	}
	return fmt.Errorf("push metrics to %s: %d of %d pushes failed; first error: %w", p.endpoint,
		p.failed, p.pushed, p.first)
}

// overHTTP posts protobuf (OTLP's specification, "OTLP/HTTP").
type overHTTP struct {
	url      string
	settings settings
	client   http.Client
}

// answerBytes limits the size of a response.
const answerBytes = 64 << 10

func (h *overHTTP) carry(ctx context.Context, m, answer proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if h.settings.zip {
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return err
		}
		body = zipped.Bytes()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("User-Agent", "prony")
	for name, value := range h.settings.headers {
		q.Header.Set(name, value)
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	if h.settings.zip {
		q.Header.Set("Content-Encoding", "gzip")
	}
	r, err := h.client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, answerBytes))
	if r.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver responded with status %s: "+
			"%q", r.Status, strings.TrimSpace(string(text)))
	}
	if err == nil && r.Header.Get("Content-Type") == "application/x-protobuf" {
		if err = proto.Unmarshal(text, answer); err != nil {
			err = fmt.Errorf("read the response of the metrics receiver: %w", err)
		}
	}
	return err
}

func (h *overHTTP) close() error {
	h.client.CloseIdleConnections()
	return nil
}

// overGRPC calls MetricsService.Export.
type overGRPC struct {
	conn     *grpc.ClientConn
	settings settings
}

func (g *overGRPC) carry(ctx context.Context, m, answer proto.Message) error {
	var options []grpc.CallOption
	if g.settings.zip {
		options = append(options, grpc.UseCompressor(grpczip.Name))
	}
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(g.settings.headers))
	return g.conn.Invoke(ctx, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", m,
		answer, options...)
}

func (g *overGRPC) close() error { return g.conn.Close() }

// settings are settings of OpenTelemetry's variables (its specification, "OpenTelemetry Protocol
// Exporter" and "Resource SDK"). Endpoint and interval are not among them: a flag and pushEvery set
// those.
type settings struct {
	headers    map[string]string
	zip        bool
	tls        *tls.Config
	attributes []*common.KeyValue
}

func readSettings(env []string) (settings, error) {
	s := settings{headers: map[string]string{}, tls: &tls.Config{}}
	// A variable for metrics has precedence over the variable for all signals.
	pick := func(name string) string {
		if v := getenv(env, "OTEL_EXPORTER_OTLP_METRICS_"+name); v != "" {
			return v
		}
		return getenv(env, "OTEL_EXPORTER_OTLP_"+name)
	}
	err := eachPair(pick("HEADERS"), func(name, value string) { s.headers[name] = value })
	if err != nil {
		return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	ours := map[string]bool{"service.name": true, "prony.target": true, "prony.model": true,
		"prony.engine": true}
	err = eachPair(getenv(env, "OTEL_RESOURCE_ATTRIBUTES"), func(name, value string) {
		if !ours[name] {
			s.attributes = append(s.attributes, attribute(name, value))
		}
	})
	if err != nil {
		return s, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	s.zip = pick("COMPRESSION") == "gzip"
	if file := pick("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		s.tls.RootCAs = x509.NewCertPool()
		if err == nil && !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("the file %s contains no certificate", file)
		}
		if err != nil {
			return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
	}
	if file := pick("CLIENT_CERTIFICATE"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, pick("CLIENT_KEY"))
		if err != nil {
			return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return s, nil
}

// eachPair parses "name=value,name=value" with percent-encoded values.
func eachPair(text string, f func(name, value string)) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return fmt.Errorf("%q does not have the form name=value,name=value", pair)
		}
		f(name, value)
	}
	return nil
}
