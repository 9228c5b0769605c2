package otlp

import (
	"context"
	"fmt"
	"io"
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
)

// decoding bounds what all that is decoded at the same time may take, over all doors and senders.
type decoding struct {
	bytes int64 // at most
	held  atomic.Int64
}

var errDecoding = busyNow("the telemetry collector has reached its limit for decoding")

// take asks for what a request has been weighed at, before it is decoded; whoever has it gives it
// back. It does not wait: what waits holds its bytes meanwhile.
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

// weighed is what a body over HTTP takes when it is decoded.
func weighed(signal, kind string, zipkin bool, body []byte) (bytes int64, deep int) {
	s := shapes()[signal]
	switch {
	case !strings.Contains(kind, "protobuf"):
		return weighJSON(body)
	case zipkin:
		return zipkinShape.weigh(body, 0)
	case s == nil:
		return 0, 0 // nobody decodes it
	}
	return s.weigh(body, 0)
}

// weighing is gRPC's codec with the weighing before it: gRPC decodes before it asks anybody. What a
// message was given is remembered by the message, which is all that a codec knows of its request.
type weighing struct {
	encoding.CodecV2
	g *gate
	m sync.Map // message to its weight
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
	if err := c.CodecV2.Unmarshal(mem.BufferSlice{flat}, v); err != nil {
		c.g.decoding.held.Add(-weight)
		return err
	}
	c.m.Store(v, weight)
	return nil
}

// done gives back what a message was given, when its request has been answered.
func (c *weighing) done(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
	next grpc.UnaryHandler) (any, error) {
	defer func() {
		if weight, ok := c.m.LoadAndDelete(req); ok {
			c.g.decoding.held.Add(-weight.(int64))
		}
	}()
	return next(ctx, req)
}

// signalOf tells a request by its type, which the collector does not export.
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

// unpacking bounds how many messages over gRPC are unpacked at the same time: only then is their
// size known, and each may become as large as a message may be. With four, sixteen senders took a
// home of 512 MiB past that.
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

// turn ends when gRPC closes it, as it does with readers that can be.
type turn struct{ io.Reader }

func (turn) Close() error {
	<-unpacking
	return nil
}

// room says whether there is memory for more. It counts what lies on the heap, garbage included, so
// when that is too much it has the garbage collected before it believes it: without that, a heap
// that nobody allocates on any more, because all are refused, would never be looked at again. The
// collector's memory limiter goes about it in the same way.
// https://github.com/open-telemetry/opentelemetry-collector/tree/main/processor/memorylimiterprocessor
type room struct {
	bytes   int64 // 0: no bound
	heap    func() int64
	collect func()
	resting atomic.Bool // it is being collected, or was a moment ago
}

// collectEvery bounds what looking for garbage may cost: collecting a heap of half a GiB takes
// about as long on one core as two tenths of this.
const collectEvery = time.Second

func newRoom(bytes int64) *room {
	return &room{bytes: bytes, heap: heapBytes, collect: runtime.GC}
}

func heapBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// full must not block: it is asked where connections are read.
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
