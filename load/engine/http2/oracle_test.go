package http2

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"prony.example/internal/generator/truth"
	"prony.example/load/engine"
	"prony.example/load/engine/enginetest"
)

// tries is how many responses of a draw are compared with grpc-go; fuzzing makes more.
const tries = 2000

// smallMax is the maximum size of a message in this comparison.
const smallMax = 600

// For any response of a server to a call, this engine and grpc-go return the same code, and the
// same message and text if the server has sent them.
func TestCallsAsTheLibrary(t *testing.T) {
	o := newOracle(t)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[int]int{}
	for n := range tries {
		var script []byte
		if n%2 == 0 { // a valid beginning
			script = append(script, goodHead...)
		}
		if n%4 == 0 {
			script = append(script, goodMessage...)
		}
		for range r.IntN(60) {
			script = append(script, byte(r.Uint32()))
		}
		seen[o.hold(t, script)]++
		if t.Failed() {
			t.Fatalf("try %d: %x", n, script)
		}
	}
	for _, code := range []int{0, 1, 2, 5, 7, 8, 12, 13, 14, 16} {
		if seen[code] < tries/1000 {
			t.Errorf("code %d was met %d times in %d: the draw is too narrow", code, seen[code],
				tries)
		}
	}
}

// Scripts of a valid head, and of a message of five bytes.
var goodHead, goodMessage = []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{2, 0, 0, 5}

func FuzzCalls(f *testing.F) {
	end := []byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 1}
	for _, script := range [][]byte{end, goodMessage, {0, 3, 5, 0, 0, 0, 0, 0, 0, 1}, {4, 7},
		slices.Concat(goodHead, goodMessage, end), slices.Concat(goodHead, goodMessage,
			goodMessage, end), slices.Concat(goodHead, []byte{2, 0, 4, 255, 9}, end)} {
		f.Add(script)
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, script []byte) { o.hold(t, script) })
}

// oracle is grpc-go, over one permanent connection, to a server that responds by a script.
type oracle struct {
	conn   *grpc.ClientConn
	mu     sync.Mutex
	script []byte
}

func newOracle(t testing.TB) *oracle {
	o := &oracle{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, o.serve)
	o.conn, err = grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(truth.Bare{}),
			grpc.MaxCallRecvMsgSize(smallMax)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.conn.Close() })
	return o
}

func (o *oracle) serve(c net.Conn) {
	if _, err := io.ReadFull(c, make([]byte, len(preface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	err := f.WriteSettings()
	for err == nil {
		var in http2.Frame
		if in, err = f.ReadFrame(); err != nil {
			return
		}
		switch in := in.(type) {
		case *http2.SettingsFrame:
			if !in.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !in.IsAck() {
				err = f.WritePing(true, in.Data)
			}
		case *http2.DataFrame:
			if in.StreamEnded() {
				o.mu.Lock()
				said := play(o.script, in.StreamID)
				o.mu.Unlock()
				err = f.WriteWindowUpdate(0, in.Length)
				if err == nil {
					_, err = c.Write(said)
				}
			}
		}
	}
}

// hold lets both read the response of a script, and compares the results.
func (o *oracle) hold(t *testing.T, script []byte) int {
	o.mu.Lock()
	o.script = bytes.Clone(script)
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	in, out := []byte("ask"), []byte(nil)
	err := o.conn.Invoke(ctx, "/a.B/C", &in, &out)
	st, _ := status.FromError(err)
	want := int(st.Code())
	if ctx.Err() != nil {
		t.Fatalf("%x: the library does not end: %v", script, err)
	}
	if want > 16 {
		want = callUnknown
	}
	code, text := asked(t, script, 1<<20)
	if strings.Contains(text, "a body before its head") { // which the library accepts
		return code
	}
	if code != want {
		t.Fatalf("%x: it comes to %d, %q, and with the library to %d, %v", script, code, text, want,
			err)
	}
	if code == 0 && text != string(out) || code != 0 && !strings.HasPrefix(text, "gRPC: ") &&
		text != st.Message() {
		t.Fatalf("%x: it says %q, and the library %q, %q", script, text, out, st.Message())
	}
	if c, other := asked(t, script, 1); c != code || other != text {
		t.Fatalf("%x: in pieces it comes to %d, %q, and at once to %d, %q", script, c, other, code,
			text)
	}
	return code
}

// asked returns the result for a script's response that is received in pieces; the second one if
// the first is that the call was not processed.
func asked(t *testing.T, script []byte, piece int) (code int, text string) {
	b := newCalls(t, 1, 1)
	b.callMax = smallMax
	b.open()
	b.onClosed = func(i int) { b.Open(i) }
	for id := uint32(1); id == 1 || id == 3 && b.told[0].again == 1; id += 2 {
		b.told[0].closed = nil
		b.Send(0, []byte("POST /a.B/C HTTP/1.1\r\nHost: h\r\n\r\nask"))
		b.wait()
		for said := play(script, id); len(said) > 0; {
			n := min(piece, len(said))
			(*ear)(b.Engine).Received(0, 5, bytes.Clone(said[:n]))
			said = said[n:]
			b.wait()
		}
	}
	head, text, ok := strings.Cut(b.told[0].got, "\r\n\r\n")
	if len(b.told[0].closed) > 0 || !ok || !strings.HasSuffix(head,
		fmt.Sprintf("Content-Length: %d", len(text))) {
		t.Fatalf("it is told %+v", b.told[0])
	}
	code, err := strconv.Atoi(head[9:12])
	if err != nil || code != 200 && code < engine.CallStatus {
		t.Fatalf("it is told %q", head)
	}
	if code == 200 {
		return 0, text
	}
	return code - engine.CallStatus, text
}

// play makes the frames of a script, and always ends the stream. All of it is valid HTTP/2.
func play(script []byte, id uint32) []byte {
	var out, block bytes.Buffer
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0) // so that a stream has the same bytes on every connection
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		n := script[0]
		script = script[1:]
		return int(n)
	}
	var err error
	for len(script) > 0 {
		switch next() % 5 {
		case 0, 1:
			block.Reset()
			for _, values := range choices {
				if v := values.of[next()%len(values.of)]; v != "-" {
					err = errors.Join(err, e.WriteField(hpack.HeaderField{Name: values.name,
						Value: v}))
				}
			}
			err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
				EndStream: next()%2 == 1, EndHeaders: true, BlockFragment: block.Bytes()}))
		case 2, 3:
			err = errors.Join(err, f.WriteDataPadded(id, next()%4 == 1, payload(next), nil))
		default:
			err = errors.Join(err, f.WriteRSTStream(id, http2.ErrCode(next()%16)))
		}
	}
	if err = errors.Join(err, f.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// choices are fields, in order, and values of each; "-": omit the field.
var choices = []struct {
	name string
	of   []string
}{
	{":status", []string{"-", "200", "200", "503", "404", "400", "401", "403", "429", "502", "504",
		"500", "301", "100", "103"}},
	{"content-type", []string{"application/grpc", "application/grpc", "application/grpc+proto",
		"-", "application/grpc;x", "text/html", "application/grpcx", ""}},
	{"content-type", []string{"-", "-", "-", "text/html", "application/grpc"}},
	{"grpc-encoding", []string{"-", "-", "identity", "snappy"}},
	{"grpc-status", []string{"-", "0", "0", "5", "13", "16", "17", "-1", "abc", "", "007", "+3",
		"4294967296", "99999"}},
	{"grpc-status", []string{"-", "-", "-", "-", "-", "-", "0", "5", "x"}},
	{"grpc-message", []string{"-", "", "no", "a%20b%", "%zz%4", "%E4%BD%A0%0a", "%41%4"}},
	{"x-bin", []string{"-", "-", "-", "-", "-", "-", "aGk", "aGk=", "!", "aGk=="}},
}

// payload returns the payload of a DATA frame: a message, a compressed one, one that is too large,
// or a piece of anything.
func payload(next func() int) []byte {
	kind, n := next(), next()
	switch kind % 8 {
	case 0, 1, 2:
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, n)...)
	case 3:
		return append(binary.BigEndian.AppendUint32([]byte{byte(n % 4)}, 2), 1, 2)
	case 4:
		if n%2 == 0 { // the largest permitted, or one byte larger
			size := smallMax + n/2%2
			return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)),
				make([]byte, size)...)
		}
		return binary.BigEndian.AppendUint32([]byte{0}, uint32(n)<<uint(next()%24))
	case 5:
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, n/2)...)
	}
	b := make([]byte, n%12)
	for i := range b {
		b[i] = byte(next() % 3)
	}
	return b
}
