package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // senders pack
	"google.golang.org/protobuf/encoding/protowire"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/telemetry"
)

// Requirements on the collector.
const (
	homeMemory = 512 << 20 // bytes of resident memory: the default of --memory
	senders    = 16        // in parallel
	bombing    = 3 * time.Second
	unpacked   = 16<<20 - 64 // bytes of a bomb: the maximum of a request
)

// explosive is a request that is small when sent and large when decoded.
type explosive struct {
	name, path, kind string
	body             []byte
}

// many repeats a piece up to the maximum size of a request.
func many(head, piece, between, tail string) []byte {
	n := (unpacked - len(head) - len(tail)) / (len(piece) + len(between))
	return []byte(head + strings.Repeat(piece+between, n-1) + piece + tail)
}

// wrapped wraps a body in fields of these numbers, the innermost first.
func wrapped(body []byte, fields ...protowire.Number) []byte {
	for _, f := range fields {
		body = protowire.AppendBytes(protowire.AppendTag(nil, f, protowire.BytesType), body)
	}
	return body
}

// deepValue is a list of a list, and so on, up to the maximum size.
func deepValue() []byte {
	var out []byte // from the end to the beginning, because lengths include all within
	size := 0
	var head [binary.MaxVarintLen64 + 1]byte
	for size < unpacked-64 {
		for _, field := range []protowire.Number{1, 5} { // values of ArrayValue; AnyValue's array
			h := protowire.AppendVarint(protowire.AppendTag(head[:0], field,
				protowire.BytesType), uint64(size))
			for i := len(h) - 1; i >= 0; i-- {
				out = append(out, h[i])
			}
			size += len(h)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

const traces, metrics, logs = "/v1/traces", "/v1/metrics", "/v1/logs"

func explosives() []explosive {
	const proto, text = "application/x-protobuf", "application/json"
	return []explosive{
		{"no spans", traces, proto, many("", "\x0a\x00", "", "")},
		{"empty spans", traces, proto, wrapped(many("", "\x12\x00", "", "")[:unpacked-32], 2, 1)},
		{"empty metrics", metrics, proto, wrapped(many("", "\x12\x00", "", "")[:unpacked-32],
			2, 1)},
		{"empty points", metrics, proto, wrapped(many("", "\x0a\x00", "", "")[:unpacked-32],
			9, 2, 2, 1)},
		{"empty logs", logs, proto, wrapped(many("", "\x12\x00", "", "")[:unpacked-32], 2, 1)},
		{"empty attributes", logs, proto, wrapped(many("", "\x32\x00", "", "")[:unpacked-40],
			2, 2, 1)},
		{"deep", logs, proto, wrapped(deepValue(), 5, 2, 2, 1)},
		{"no spans in JSON", traces, text, many(`{"resourceSpans":[`, "{}", ",", "]}")},
		{"deep JSON", logs, text, many(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":`,
			`{"arrayValue":{"values":[`, "", "")},
		{"spans of Zipkin", "/api/v2/spans", text, many("[",
			`{"id":"1","traceId":"1"}`, ",", "]")},
	}
}

func packed(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// startHome starts a real collector with its default memory limit.
func startHome(t *testing.T) (*exec.Cmd, telemetry.Endpoints) {
	t.Helper()
	cmd := exec.Command(program(t, "prony-home"), "telemetry", "serve", "--dir", t.TempDir(),
		"--listen", "127.0.0.1", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--zipkin", "127.0.0.1:0", "--query", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var at telemetry.Endpoints
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		t.Fatal(err)
	}
	return cmd, at
}

// raw sends bytes as they are.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal([]byte, any) error   { return nil }

var overGRPC = map[string]string{
	traces:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	logs:    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// Whatever is sent, by any number of senders, the collector stays within its memory, continues to
// respond, and ends on a signal.
func TestHomeIsNotBurst(t *testing.T) {
	testsets.Once(t, "a bomb for the home of telemetry", programFiles)
	more := testsets.More(t, programFiles)
	for i, x := range explosives() {
		if !more && i > 0 {
			break
		}
		t.Run(x.name+"/HTTP", func(t *testing.T) {
			small := packed(t, x.body)
			bombard(t, func(at telemetry.Endpoints) (send func(context.Context)) {
				host := at.HTTP
				if strings.HasPrefix(x.path, "/api/") {
					host = at.Zipkin
				}
				return func(ctx context.Context) {
					r, err := http.NewRequestWithContext(ctx, "POST", "http://"+host+x.path,
						bytes.NewReader(small))
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Content-Type", x.kind)
					r.Header.Set("Content-Encoding", "gzip")
					if answer, err := http.DefaultClient.Do(r); err == nil {
						_, _ = io.Copy(io.Discard, answer.Body) // it may be cut
						answer.Body.Close()
					}
				}
			})
		})
		method := overGRPC[x.path]
		if more && method != "" && strings.HasSuffix(x.kind, "protobuf") {
			t.Run(x.name+"/gRPC", func(t *testing.T) {
				bombard(t, func(at telemetry.Endpoints) (send func(context.Context)) {
					c, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(
						insecure.NewCredentials()), grpc.WithDefaultCallOptions(
						grpc.ForceCodec(raw{}), grpc.UseCompressor("gzip")))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					return func(ctx context.Context) {
						var answer []byte
						_ = c.Invoke(ctx, method, x.body, &answer) // a rejection is also valid
					}
				})
			})
		}
	}
}

// bombard sends from all senders for a while, and then checks the collector.
func bombard(t *testing.T, to func(telemetry.Endpoints) func(context.Context)) {
	t.Helper()
	cmd, at := startHome(t)
	send := to(at)
	ctx, cancel := context.WithTimeout(t.Context(), bombing)
	defer cancel()
	var all sync.WaitGroup
	var peak int64
	for range senders {
		all.Go(func() {
			for ctx.Err() == nil {
				send(ctx)
			}
		})
	}
	for ctx.Err() == nil {
		if peak = max(peak, resident(cmd.Process.Pid)); peak > 4*homeMemory {
			cancel() // enough data
			_ = cmd.Process.Kill()
		}
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	t.Logf("peak %d MiB", peak>>20)
	if peak > homeMemory {
		t.Errorf("it took %d MiB, more than %d", peak>>20, homeMemory>>20)
	}
	if peak <= 4*homeMemory {
		answers(t, at)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	ended := time.AfterFunc(within, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	ended.Stop()
}

// answers requires that a span is accepted within a while, because senders retry.
func answers(t *testing.T, at telemetry.Endpoints) {
	t.Helper()
	const one = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":` +
		`"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"x",` +
		`"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000000001"}]}]}]}`
	why := ""
	for range 50 {
		answer, err := http.Post("http://"+at.HTTP+traces, "application/json",
			strings.NewReader(one))
		if err == nil {
			text, _ := io.ReadAll(answer.Body) // what can be read
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
			why = string(text)
		} else {
			why = err.Error()
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("it takes in nothing any more: %s", why)
}
