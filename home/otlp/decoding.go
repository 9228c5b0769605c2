package otlp

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"prony.example/internal/base/portguard"
)

// decoding bounds the memory of all telemetry that is decoded at the same time, for all protocols
// and senders.
type decoding struct {
	bytes int64 // maximum
	held  atomic.Int64
}

var errDecoding = busyNow("the telemetry collector has reached its limit for decoding")

// take reserves the weight of a request before it is decoded; the caller releases it. It does not
// wait, because a waiting request would occupy memory.
func (d *decoding) take(weight int64, deep int) error {
	switch {
	case deep > deepest:
		return status.Errorf(codes.InvalidArgument, "the request has values nested more than %d "+
			"levels deep; send flat values", deepest)
	case weight > d.bytes:
		return status.Errorf(codes.InvalidArgument, "the request would take %d MiB of memory "+
			"when decoded, but the limit is %d MiB; configure the exporter to send smaller batches",
			weight>>20,
			d.bytes>>20)
	case d.held.Add(weight) > d.bytes:
		d.held.Add(-weight)
		return errDecoding
	}
	return nil
}

// weighed returns the decoded size of an HTTP body.
func weighed(signal, kind string, zipkin bool, body []byte) (bytes int64, deep int) {
	s := shapes()[signal]
	switch {
	case !strings.Contains(kind, "protobuf"):
		return weighJSON(body)
	case zipkin:
		return zipkinShape.weigh(body, 0)
	case s == nil:
		return 0, 0 // it is not decoded
	}
	return s.weigh(body, 0)
}

// weighing is gRPC's codec with weighing before decoding, because gRPC decodes before it calls any
// handler. It stores the reserved weight by message: a codec knows nothing else of its request.
type weighing struct {
	encoding.CodecV2
	g *gate
	m sync.Map // weights by message
}

func (c *weighing) Unmarshal(data mem.BufferSlice, v any) error {
	s := shapes()[signalOf(v)]
	if s == nil {
		return c.CodecV2.Unmarshal(data, v)
	}
	flat := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer flat.Free()
	weight, deep := s.weigh(flat.ReadOnlyData(), 0)
	if err := c.g.decoding.take(weight, deep); err != nil {
		return err
	}
	err := c.CodecV2.Unmarshal(mem.BufferSlice{flat}, v)
	if whole := flat.ReadOnlyData(); err != nil {
		if now, changed := s.repaired(whole, 0); changed {
			reflect.ValueOf(v).Elem().SetZero() // it may have some of the content
			err = c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(now)}, v)
		}
	}
	if err != nil {
		c.g.decoding.held.Add(-weight)
		return err
	}
	c.m.Store(v, weight)
	return nil
}

// Marshal also accepts encoded answers.
func (c *weighing) Marshal(v any) (mem.BufferSlice, error) {
	if text, ok := v.(partialAnswer); ok {
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// done releases the weight of a message after its request was answered, and answers with what was
// rejected. It keeps the connection open meanwhile, and marks it as known once items were accepted.
func (c *weighing) done(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
	next grpc.UnaryHandler) (any, error) {
	defer func() {
		if weight, ok := c.m.LoadAndDelete(req); ok {
			c.g.decoding.held.Add(-weight.(int64))
		}
	}()
	conn := connOf(ctx)
	defer portguard.ProtectConn(conn)()
	answer, err := next(ctx, req)
	v := visitOf(ctx)
	if err == nil && v != nil && v.counted.Load() {
		portguard.AdmitConn(conn)
	}
	if err == nil && v != nil && v.faults.items > 0 {
		text, err := v.faults.partial(v.signal, false)
		return partialAnswer(text), err
	}
	return answer, err
}

// signalOf returns the signal of a request from its type's name, since the types are not exported.
func signalOf(v any) string {
	name := fmt.Sprintf("%T", v)
	for part, signal := range map[string]string{"ExportTrace": "/v1/traces",
		"ExportMetrics": "/v1/metrics", "ExportLogs": "/v1/logs"} {
		if strings.Contains(name, part) {
			return signals[signal]
		}
	}
	return ""
}

// unpacking limits how many gRPC messages are unpacked at the same time: their size is unknown
// before, and each may reach the maximum. With a limit of four, sixteen senders exceeded a
// collector's 512 MiB.
var unpacking = make(chan struct{}, 1)

func init() {
	encoding.RegisterCompressor(oneOfFew{encoding.GetCompressor(grpcgzip.Name)})
}

// oneOfFew is a compressor that waits for its turn to unpack.
type oneOfFew struct{ encoding.Compressor }

func (c oneOfFew) Decompress(r io.Reader) (io.Reader, error) {
	unpacking <- struct{}{}
	in, err := c.Compressor.Decompress(r)
	if err != nil {
		<-unpacking
		return nil, err
	}
	return turn{in}, nil
}

// turn is a reader whose Close, called by gRPC, releases its turn.
type turn struct{ io.Reader }

func (turn) Close() error {
	<-unpacking
	return nil
}

// room limits the heap. Heap objects include garbage, so above the limit it first starts a garbage
// collection: otherwise a heap on which nothing is allocated, because all requests are refused,
// would stay above it. The OpenTelemetry Collector's memory limiter works in the same way.
// https://github.com/open-telemetry/opentelemetry-collector/tree/main/processor/memorylimiterprocessor
type room struct {
	bytes   int64 // 0: no bound
	heap    func() int64
	collect func()
	resting atomic.Bool // a collection is running, or ended a moment ago
}

// collectEvery limits the cost of collections: one of a heap of half a GiB takes about two tenths
// of this on one core.
const collectEvery = time.Second

func newRoom(bytes int64) *room {
	return &room{bytes: bytes, heap: heapBytes, collect: runtime.GC}
}

func heapBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// full reports whether the heap is above the limit. It does not block, because it is called where
// connections are read.
func (r *room) full() bool {
	if r.bytes <= 0 || r.heap() <= r.bytes {
		return false
	}
	if r.resting.CompareAndSwap(false, true) {
		go func() {
			r.collect()
			time.AfterFunc(collectEvery, func() { r.resting.Store(false) })
		}()
	}
	return true
}
