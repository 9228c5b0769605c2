package otlp

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/portguard"
	"prony.example/record"
)

// gate checks requests before a receiver. It implements the OpenTelemetry Collector's
// extensionmiddleware.HTTPServer and .GRPCServer.
type gate struct {
	component.StartFunc
	component.ShutdownFunc
	limits Limits
	tally  *tally
	slots  chan struct{}
	room   *room
	zipkin bool

	handler http.Handler     // over HTTP: the receiver's, with the gate
	guard   *portguard.Table // over gRPC

	decoding *decoding // shared by all gates

	held atomic.Int64 // bytes
	busy atomic.Int64 // requests

	visits sync.Map // of *visit, over gRPC, still arriving
}

// visit is the state of one request, from its header to its answer, in the request's context.
type visit struct {
	signal  string
	zipkin  bool
	faults  faults      // of the items that were rejected
	filled  bool        // the list of a request in JSON is not empty
	slot    bool        // it occupies a slot
	counted atomic.Bool // its items were counted, as received or as refused
	refused error       // why the gate refused it
	code    int         // status over HTTP for refused
	cancel  context.CancelFunc
	arrived func() // the request is complete: the gate no longer ends it
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// busyNow returns OTLP's error for retries: over gRPC the status is retryable only with a
// RetryInfo, over HTTP the receiver converts it to 429 with Retry-After.
// https://opentelemetry.io/docs/specs/otlp/#otlpgrpc-throttling
func busyNow(why string) error {
	s := status.New(codes.ResourceExhausted, why+"; try again")
	with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	if err != nil {
		return s.Err() // the status without its detail suffices
	}
	return with.Err()
}

var (
	errHeap    = busyNow("the telemetry collector is short of memory")
	errBytes   = busyNow("the telemetry collector has reached its limit of unread bytes")
	errSlots   = busyNow("the telemetry collector has reached its limit of requests in work")
	errClosed  = busyNow("the telemetry collector is shutting down")
	errStreams = busyNow("the telemetry collector has reached its limit of open requests")
)

// GetHTTPHandler takes a receiver's handler for the intake's own server, and ends the start.
func (g *gate) GetHTTPHandler(context.Context) (
	func(context.Context, http.Handler) (http.Handler, error), error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		g.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.serve(next, w, r)
		})
		return nil, errTaken
	}, nil
}

func (g *gate) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	g.busy.Add(1)
	defer g.busy.Add(-1)
	v := &visit{signal: signals[r.URL.Path], zipkin: g.zipkin}
	const spans = "/api/v2/spans"
	if g.zipkin && strings.HasSuffix(r.URL.Path, spans) { // its receiver accepts any prefix
		v.signal = record.Spans
	}
	if why, code := refusal(r, g.zipkin); code != 0 {
		g.turnAway(v)
		http.Error(w, why, code)
		return
	}
	if g.zipkin && v.signal == "" {
		g.tally.stray()
		http.Error(w, "send Zipkin spans to "+spans, http.StatusNotFound)
		return
	}
	ctx := context.WithValue(r.Context(), visitKey{}, v)
	b := &body{g: g, v: v, ctx: ctx, left: g.limits.MessageBytes,
		protect: func() func() { return portguard.Protect(r) }}
	// Not in the server's own request: the server inspects its body before it reuses a connection.
	b.open(r, http.MaxBytesReader(w, r.Body, g.limits.MessageBytes))
	defer b.leave()
	r = r.WithContext(ctx)
	r.Body = b
	a := &answer{ResponseWriter: w, v: v}
	next.ServeHTTP(a, r)
	switch {
	case v.signal == "":
		g.tally.stray()
	case a.code < http.StatusBadRequest && v.counted.Load():
		portguard.Admit(r)
	case a.code >= http.StatusBadRequest && !v.counted.Load():
		g.tally.refuse(v.signal, 1)
	}
}

// refusal applies the rules of portguard and, for Zipkin, checks the media type: its receiver
// accepts any type as JSON, which includes forms of any web page. OTLP's receiver checks it itself.
func refusal(r *http.Request, zipkin bool) (why string, code int) {
	if why, code = portguard.Refusal(r); code != 0 || !zipkin {
		return why, code
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != "application/x-protobuf" {
		return "Zipkin spans must have the type application/json or application/x-protobuf",
			http.StatusUnsupportedMediaType
	}
	return "", 0
}

// turnAway counts a refused request whose content was not read.
func (g *gate) turnAway(v *visit) {
	if v.signal == "" {
		g.tally.stray()
		return
	}
	g.tally.refuse(v.signal, 1)
}

// signals are the signals by OTLP's paths and services.
var signals = map[string]string{
	"/v1/traces": record.Spans, "/v1/metrics": record.Points, "/v1/logs": record.Logs,
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export":     record.Spans,
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": record.Points,
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export":       record.Logs,
}

// answer replaces the receiver's status by the gate's: a receiver reports any read error as a bad
// request, and Zipkin's ignores it.
type answer struct {
	http.ResponseWriter
	v    *visit
	code int
}

func (a *answer) WriteHeader(code int) {
	if a.v.code != 0 {
		code = a.v.code
		if code == http.StatusTooManyRequests {
			a.Header().Set("Retry-After", "1")
		}
	}
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Write sends the answer, with what was rejected instead of a full success, or with a warning that
// nothing was found.
func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.v.zipkin && a.v.refused != nil { // its receiver describes an incomplete text instead
		_, err := io.WriteString(a.ResponseWriter, status.Convert(a.v.refused).Message()+"\n")
		return len(p), err
	}
	nothing := a.v.filled && !a.v.counted.Load() && a.v.faults.total == 0
	if a.code != http.StatusOK || a.v.faults.items == 0 && !nothing {
		return a.ResponseWriter.Write(p)
	}
	json := !strings.Contains(a.Header().Get("Content-Type"), "protobuf")
	text, err := a.v.faults.partial(a.v.signal, json)
	if err == nil {
		_, err = a.ResponseWriter.Write(text)
	}
	return len(p), err
}

// body reads and unpacks a request's body within the limits. It reads everything before the
// receiver gets any byte, because it weighs the request first. Only a complete body takes a slot,
// so that slow senders occupy none.
type body struct {
	g    *gate
	v    *visit
	ctx  context.Context
	from io.Reader
	wire io.Closer
	left int64
	held int64

	protect func() (release func()) // keeps the connection open
	release func()

	kind   string        // media type
	whole  *bytes.Reader // content; nil: not read yet
	weight int64
}

// open checks the header. It stores a refusal as the error of reading, so that the receiver answers
// with it in OTLP's form.
func (b *body) open(r *http.Request, wire io.ReadCloser) {
	b.from, b.wire = wire, wire
	if b.g.room.full() {
		b.refuse(errHeap, http.StatusTooManyRequests)
		return
	}
	var err error
	switch e := strings.ToLower(r.Header.Get("Content-Encoding")); e { // RFC 9110, 8.4.1
	case "", "identity":
	case "gzip":
		b.from, err = unzipped(wire)
	case "deflate", "zlib":
		b.from, err = zlib.NewReader(wire)
	default:
		b.refuse(status.Errorf(codes.InvalidArgument, "Content-Encoding %q is not supported; "+
			"send gzip, deflate or none", e), http.StatusUnsupportedMediaType)
	}
	if err != nil {
		b.refuse(status.Errorf(codes.InvalidArgument, "unpack the body: %v", err),
			http.StatusBadRequest)
	}
	b.kind = strings.ToLower(r.Header.Get("Content-Type")) // RFC 9110, 8.3.1
	r.Header.Del("Content-Encoding")
	r.ContentLength = -1
}

// unzipped returns nil with an error: a nil *gzip.Reader would be a Reader that is not nil.
func unzipped(from io.Reader) (io.Reader, error) {
	plain, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	return plain, nil
}

func (b *body) refuse(err error, code int) {
	b.v.refused, b.v.code = err, code
}

func (b *body) Read(p []byte) (int, error) {
	if b.v.refused == nil && b.whole == nil {
		b.take()
	}
	if b.v.refused != nil {
		return 0, b.v.refused
	}
	return b.whole.Read(p)
}

// take reads the request to its end, weighs it, and reserves memory and a slot or refuses it.
func (b *body) take() {
	var data bytes.Buffer
	_, err := io.Copy(&data, counting{b})
	b.whole = bytes.NewReader(data.Bytes())
	b.release = b.protect()
	if b.v.refused != nil {
		return
	} else if err != nil {
		b.refuse(status.Errorf(codes.InvalidArgument, "read the body: %v", err),
			http.StatusBadRequest)
		return
	}
	weight, deep := weighed(b.v.signal, b.kind, b.g.zipkin, data.Bytes())
	if err := b.g.decoding.take(weight, deep); err == nil {
		b.weight = weight
	} else if errors.Is(err, errDecoding) {
		b.refuse(err, http.StatusTooManyRequests)
	} else {
		b.refuse(err, http.StatusRequestEntityTooLarge)
	}
	if s := shapes()[b.v.signal]; s != nil && !b.v.zipkin && strings.Contains(b.kind, "protobuf") &&
		b.v.refused == nil {
		now, _ := s.repaired(data.Bytes(), 0)
		b.whole = bytes.NewReader(now)
	}
	if why := missingKey(b.v, b.kind, data.Bytes()); why != "" && b.v.refused == nil {
		b.refuse(status.Error(codes.InvalidArgument, why), http.StatusBadRequest)
	}
	if b.v.refused == nil {
		if err := takeSlot(b.ctx, b.g.slots, b.v, b.g.limits.Wait); err != nil {
			b.refuse(err, http.StatusTooManyRequests)
		}
	}
}

// counting is the body on arrival, with the limits on bytes.
type counting struct{ *body }

func (b counting) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	b.held += int64(n)
	now := b.g.held.Add(int64(n))
	var large *http.MaxBytesError
	switch {
	case b.left < 0, errors.As(err, &large):
		b.refuse(status.Errorf(codes.InvalidArgument, "the request is larger than %d bytes; "+
			"configure the exporter to send smaller batches", b.g.limits.MessageBytes),
			http.StatusRequestEntityTooLarge)
	case now > b.g.limits.HeldBytes:
		b.refuse(errBytes, http.StatusTooManyRequests)
	}
	if b.v.refused != nil {
		return 0, b.v.refused
	}
	return n, err
}

// Close closes the connection's body: receivers answer 400 if closing fails.
func (b *body) Close() error { return b.wire.Close() }

// leave releases what the request has reserved.
func (b *body) leave() {
	b.g.held.Add(-b.held)
	b.g.decoding.held.Add(-b.weight)
	giveSlot(b.g.slots, b.v)
	if b.release != nil {
		b.release()
	}
}

// takeSlot waits for a slot. HTTP requests take theirs before decoding, gRPC requests after it,
// because gRPC decodes before it calls any handler.
func takeSlot(ctx context.Context, slots chan struct{}, v *visit, wait time.Duration) error {
	if v.slot {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case slots <- struct{}{}:
		v.slot = true
		return nil
	case <-waiting.Done():
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		return errSlots
	}
}

func giveSlot(slots chan struct{}, v *visit) {
	if v.slot {
		v.slot = false
		<-slots
	}
}

// GetGRPCServerOptions puts the gate before a receiver's services.
func (g *gate) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	c := &weighing{CodecV2: encoding.GetCodecV2("proto"), g: g}
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(c), grpc.ChainUnaryInterceptor(c.done),
		grpc.InTapHandle(g.tap), grpc.StatsHandler(g), greeting(g.guard),
		grpc.ConnectionTimeout(min(greetBound, g.limits.Read)), grpc.MaxHeaderListSize(maxHeader),
	}, nil
}

// tap is called for each request's header, in the goroutine that reads its connection, and must not
// wait. It returns the request's context, which ends if the sender is too slow.
func (g *gate) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	v := &visit{signal: signals[info.FullMethodName]}
	var err error
	packed := strings.Join(info.Header.Get("grpc-encoding"), ",")
	switch {
	case v.signal == "":
		g.tally.stray()
		return nil, status.Errorf(codes.Unimplemented, "the path %s does not exist",
			info.FullMethodName)
	case !named(info):
		err = status.Error(codes.PermissionDenied, "the host is not a known name of this server: "+
			"use the server's address, or add the host to "+portguard.Hosts)
	case packed != "" && packed != "identity" && packed != "gzip":
		err = status.Errorf(codes.Unimplemented, "compression %q is not supported; send gzip or "+
			"none",
			packed)
	case g.room.full():
		err = errHeap
	case g.busy.Load() >= int64(g.limits.Streams):
		err = errStreams
	}
	if err != nil {
		g.tally.refuse(v.signal, 1)
		return nil, err
	}
	g.busy.Add(1)
	ctx, v.cancel = context.WithTimeout(context.WithValue(ctx, visitKey{}, v), g.limits.Read)
	v.arrived = func() { g.visits.Delete(v) }
	g.visits.Store(v, nil)
	// gRPC ends the context of every stream when the stream ends.
	context.AfterFunc(ctx, func() {
		v.cancel()
		v.arrived()
		g.busy.Add(-1)
	})
	return ctx, nil
}

// named checks the host as on the other ports, although web pages cannot send here: browsers do not
// use HTTP/2 without TLS.
func named(info *tap.Info) bool {
	return !slices.ContainsFunc(info.Header.Get(":authority"), func(host string) bool {
		return !portguard.Named(host)
	})
}

// TagRPC, HandleRPC, TagConn and HandleConn implement stats.Handler, which reports messages that
// are too large or invalid.
func (g *gate) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (g *gate) HandleRPC(ctx context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if v := visitOf(ctx); ok && v != nil && end.Error != nil && !v.counted.Load() {
		g.tally.refuse(v.signal, 1)
	}
}

func (g *gate) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (g *gate) HandleConn(context.Context, stats.ConnStats) {}

// watch cancels arriving gRPC requests when memory runs short: their sizes are unknown before, and
// many accepted requests may grow together.
func (g *gate) watch(ctx context.Context) {
	const every = 50 * time.Millisecond
	for range clock.Every(ctx, every) {
		if g.busy.Load() > 0 && g.room.full() {
			g.cancelAll()
		}
	}
}

func (g *gate) cancelAll() {
	for v := range g.visits.Range {
		v.(*visit).cancel()
	}
}
