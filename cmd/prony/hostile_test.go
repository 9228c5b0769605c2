package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"prony.example/internal/dev/testsets"
	"prony.example/load/engine/enginetest"
)

// peer sends hostile data on a connection until writing or reading fails.
type peer func(c net.Conn)

// Bounds of a load against a hostile peer: half a second each of lead-in, window and drain; the
// rest is for a machine that is busy with the peer.
const (
	hostileEnd = 2 * time.Minute
	// hostileMemory is for the whole process, in bytes: the maximum for responses, and twice the
	// garbage that a load leaves before a collection (load, garbageMax).
	hostileMemory = 1 << 30
)

// peers are hostile peers, by the scheme that meets them. words is part of the load's error if the
// error is Prony's and not a library's.
var peers = []struct {
	name, scheme, words string
	do                  peer
}{
	{"says nothing", "h2c", "none was within 500ms", func(c net.Conn) { io.Copy(io.Discard, c) }},
	{"says anything", "h2c", "the port does not speak HTTP/2", func(c net.Conn) {
		flood(c, []byte("no protocol at all\r\n"))
	}},
	{"settings without end", "h2c", "", h2Flood(func(f *http2.Framer) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	})},
	{"pings without end", "h2c", "", h2Flood(func(f *http2.Framer) error {
		return f.WritePing(false, [8]byte{1})
	})},
	{"empty frames of nobody", "h2c", "", h2Flood(func(f *http2.Framer) error {
		return f.WriteRawFrame(0xfa, 0, 0, nil)
	})},
	{"goes away at once", "h2c", "", h2Flood(func(f *http2.Framer) error {
		return f.WriteGoAway(0, http2.ErrCodeNo, nil)
	})},
	{"windows that overflow", "h2c", "", h2Flood(func(f *http2.Framer) error {
		return f.WriteWindowUpdate(0, 1<<31-1)
	})},
	{"a window that never opens", "h2c post", "", h2Answer(
		[]http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}},
		func(*http2.Framer, uint32) error { return nil })},
	{"a frame of 16 MiB", "h2c", "", func(c net.Conn) {
		flood(c, append([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1}, make([]byte, 1<<20)...))
	}},
	{"every stream is reset", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		return f.WriteRSTStream(id, http2.ErrCodeInternal)
	})},
	{"headers without end", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
			BlockFragment: fields(":status", "200")})
		block := fields("x-more", strings.Repeat("y", 1000))
		for err == nil {
			err = f.WriteContinuation(id, false, block)
		}
		return err
	})},
	{"empty continuations", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
			BlockFragment: fields(":status", "200")})
		for err == nil {
			err = f.WriteContinuation(id, false, nil)
		}
		return err
	})},
	{"a header that is told 16,000 times", "h2c", "", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			return head(f, id, append(fields(":status", "200", "x-big", strings.Repeat("y", 4000)),
				bytes.Repeat([]byte{0x80 | 62}, 16000)...)) // RFC 7541: the newest entry is 62
		})},
	{"early hints without end", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		err := head(f, id, fields(":status", "103"))
		for err == nil {
			err = head(f, id, fields(":status", "103"))
		}
		return err
	})},
	{"a body without end", "h2c many", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		err := head(f, id, fields(":status", "200"))
		block := make([]byte, 16<<10)
		for err == nil {
			err = f.WriteData(id, false, block)
		}
		return err
	})},
	{"a body of nothing without end", "h2c", "", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			err := head(f, id, fields(":status", "200"))
			for err == nil {
				err = f.WriteData(id, false, nil)
			}
			return err
		})},
	{"less than it promised", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		err := head(f, id, fields(":status", "200", "content-length", "1000"))
		if err == nil {
			err = f.WriteData(id, true, []byte("short"))
		}
		return err
	})},
	{"pushes", "h2c", "", h2Answer(nil, func(f *http2.Framer, id uint32) error {
		return f.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2,
			BlockFragment: fields(":method", "GET", ":path", "/", ":scheme", "http",
				":authority", "x"), EndHeaders: true})
	})},

	{"a message of 4 GiB", "grpc", "status 8: gRPC: a message of 4294967295",
		grpcAnswer("application/grpc", "", []byte{0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3})},
	{"a message that does not end", "grpc", "status 13: gRPC: a message is cut",
		grpcAnswer("application/grpc", "", []byte{0, 0, 0, 1, 0, 1})},
	{"another type", "grpc", "status 2: gRPC: the answer is none",
		grpcAnswer("text/html", "", []byte("<html>"))},
	{"compressed by nobody", "grpc", "compression was not requested", grpcAnswer("application/grpc",
		"",
		message(1, []byte("no gzip")))},
	{"a bomb", "grpc", "compression was not requested", func(c net.Conn) {
		grpcAnswer("application/grpc", "gzip", message(1, bomb()))(c)
	}},
	{"two messages", "grpc", "status 13: gRPC: two messages", grpcAnswer("application/grpc", "",
		append(message(0, []byte("a")), message(0, []byte("b"))...))},
	// The second message is one too many, and the data after the reset exceed the limit: the first
	// error in the window depends on when the window begins.
	{"messages and no end", "grpc", "13: gRPC: two messages|that bring nothing", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			err := head(f, id, fields(":status", "200", "content-type", "application/grpc"))
			for err == nil {
				err = f.WriteData(id, false, message(0, make([]byte, 1000)))
			}
			return err
		})},
	{"every call is reset", "grpc", "status 8: gRPC: the server has reset", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			return f.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm)
		})},
	{"a message in pieces of nothing", "grpc", "bring nothing", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			err := head(f, id, fields(":status", "200", "content-type", "application/grpc"))
			for err == nil {
				err = f.WriteData(id, false, nil)
			}
			return err
		})},
	{"a status of nobody", "grpc", "status 2: gRPC: grpc-status is not a number", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			return head(f, id, fields(":status", "200", "content-type", "application/grpc",
				"grpc-status", "0", "grpc-status", "fine"))
		})},
	{"trailers alone", "grpc", "13: %zz\x00broken", h2Answer(nil,
		func(f *http2.Framer, id uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true,
				EndStream: true, BlockFragment: fields(":status", "200", "content-type",
					"application/grpc", "grpc-status", "13", "grpc-message", "%zz%00broken")})
		})},

	{"no upgrade", "ws", "", func(c net.Conn) {
		flood(c, []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	}},
	{"a head without end", "ws", "", func(c net.Conn) {
		if tell(c, "HTTP/1.1 101 Switching Protocols\r\n") == nil {
			flood(c, []byte("X-More: "+strings.Repeat("y", 1000)+"\r\n"))
		}
	}},
	{"a key of its own", "ws", "", func(c net.Conn) {
		if tell(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "+
			"Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n") == nil {
			io.Copy(io.Discard, c)
		}
	}},
	{"a frame of 8 EiB", "ws many", "within 64 MiB", wsFlood(append([]byte{0x81, 127, 0x7f, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, make([]byte, 1<<20)...))},
	{"a frame of a negative length", "ws", "",
		wsFlood([]byte{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})},
	{"fragments without end", "ws", "", wsFlood([]byte{0x01, 1, 'x'}, []byte{0x00, 1, 'y'})},
	{"empty fragments", "ws", "", wsFlood([]byte{0x01, 0}, []byte{0x00, 0})},
	{"pings and no answer", "ws", "", wsFlood([]byte{0x89, 4, 1, 2, 3, 4})},
	{"a ping that is too long", "ws", "", wsFlood(append([]byte{0x89, 126, 1, 0},
		make([]byte, 256)...))},
	{"an operation of nobody", "ws", "", wsFlood([]byte{0x8b, 0})},
	{"bits of nobody", "ws", "", wsFlood([]byte{0xf1, 1, 'x'})},
	{"closes by a code that may not be", "ws", "", wsFlood([]byte{0x88, 2, 0x03, 0xed})}, // 1005
	{"closes with half a code", "ws", "", wsFlood([]byte{0x88, 1, 3})},
	{"masked frames", "ws", "masked", wsFlood([]byte{0x81, 0x81, 0, 0, 0, 0, 'x'})},
	{"masked frames behind others", "ws", "masked", wsFlood([]byte{0x89, 4, 1, 2, 3, 4},
		[]byte{0x81, 0x81, 0, 0, 0, 0, 'x'})},
	{"no TLS", "https", "the port speaks plain HTTP; use http://", func(c net.Conn) {
		tell(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		io.Copy(io.Discard, c)
	}},
	{"no TLS at all", "https", "the port does not speak TLS; use http://", func(c net.Conn) {
		flood(c, []byte("220 mail\r\n"))
	}},
	{"closes at once", "ws", "", wsFlood([]byte{0x88, 2, 0x03, 0xe8})},
}

// Against servers that break the rules of a protocol, the real program ends in time, within its
// memory, without an error of Go's runtime, and counts no response as good.
func TestHostilePeers(t *testing.T) {
	testsets.Once(t, "every hostile peer", testsets.Needs{})
	bomb() // before a load waits for it
	for _, row := range peers {
		t.Run(row.scheme+"/"+row.name, func(t *testing.T) {
			t.Parallel()
			meetHostile(t, row.scheme, row.words, row.do)
		})
	}
}

// meetHostile points the program at a peer.
func meetHostile(t *testing.T, scheme, words string, do peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go enginetest.Serve(l, do)
	meetHostileAt(t, scheme, l.Addr().String(), words)
}

// meetHostileAt points the program at an existing peer.
func meetHostileAt(t *testing.T, scheme, address, words string) {
	t.Helper()
	scheme, how, _ := strings.Cut(scheme, " ")
	connections, timeout := "2", "1m"
	switch {
	case how == "many" && scheme == "h3": // two cores carry a tenth as much HTTP/3
		connections = "4"
	case how == "many": // they could take all memory without a limit
		connections = "16"
	case words == "" || words == "timeout" || strings.HasSuffix(words, " 500ms"):
		timeout = "500ms" // which may be the reason
	}
	args := []string{"load", scheme + "://" + address + "/a.B/C", "-c", connections,
		"-d", "500ms", "--timeout", timeout, "--json", "--view", "none"}
	if how == "post" || scheme != "h2c" {
		args = append(args, "--body", "abc", "-X", "POST")
	}
	if scheme == "h3" || how == "many" {
		args = append(args, "--lead-in", "0s") // 64 MiB, or endless data, last longer than any
	}
	if scheme == "h3" && how != "trusting" {
		args = append(args, "-k")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	began := time.Now()
	ended := time.AfterFunc(hostileEnd, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Run()
	if !ended.Stop() {
		t.Fatalf("it did not end in %v:\n%.3000s", hostileEnd, stderr.String())
	}
	rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%v, %d MiB, %v", time.Since(began), rss>>20, err)
	if rss > hostileMemory {
		t.Errorf("it took %d MiB", rss>>20)
	}
	checkHostile(t, words, stdout.Bytes(), stderr.String(), cmd.ProcessState.ExitCode())
}

// checkHostile requires an end with a reason, and no response that counts as good.
func checkHostile(t *testing.T, words string, stdout []byte, stderr string, code int) {
	t.Helper()
	var out struct {
		Load struct {
			Answered, Done int64
			Errors         struct{ Example string }
		}
	}
	why := stderr // a load that could not begin
	if len(stdout) > 0 {
		if err := json.Unmarshal(stdout, &out); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		why = out.Load.Errors.Example
	}
	if code != 1 && code != 4 || strings.Contains(stderr, "goroutine ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if out.Load.Answered != 0 || out.Load.Done != 0 {
		t.Errorf("%d answers are good, %d in the window", out.Load.Answered, out.Load.Done)
	}
	if why == "" || !slices.ContainsFunc(strings.Split(words, "|"),
		func(w string) bool { return strings.Contains(why, w) }) {
		t.Errorf("it says %q, want %q", why, words)
	}
}

func tell(c net.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

func flood(c net.Conn, b []byte) {
	go io.Copy(io.Discard, c) //nolint:errcheck // the failure of writing suffices
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// greet does the first steps of an HTTP/2 server (RFC 9113, section 3.4).
func greet(c net.Conn, settings []http2.Setting) (*http2.Framer, error) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return nil, err
	}
	f := http2.NewFramer(c, c)
	f.AllowIllegalWrites = true
	return f, f.WriteSettings(settings...)
}

// h2Flood sends the same data endlessly.
func h2Flood(send func(*http2.Framer) error) peer {
	return func(c net.Conn) {
		f, err := greet(c, nil)
		go io.Copy(io.Discard, c) //nolint:errcheck // the failure of writing suffices
		for err == nil {
			err = send(f)
		}
	}
}

// h2Answer responds to each request.
func h2Answer(settings []http2.Setting, answer func(*http2.Framer, uint32) error) peer {
	return func(c net.Conn) {
		f, err := greet(c, settings)
		for err == nil {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err != nil {
				return
			}
			switch x := frame.(type) {
			case *http2.SettingsFrame:
				if !x.IsAck() {
					err = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				err = answer(f, x.StreamID)
			}
		}
	}
}

// fields returns a block of header fields from pairs, for a decoder with an empty table.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		field := hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}
		if err := e.WriteField(field); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func head(f *http2.Framer, id uint32, block []byte) error {
	const most = 16 << 10 // of a frame
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: len(block) <= most,
		BlockFragment: block[:min(most, len(block))]})
	for block = block[min(most, len(block)):]; err == nil && len(block) > 0; {
		n := min(most, len(block))
		err = f.WriteContinuation(id, n == len(block), block[:n])
		block = block[n:]
	}
	return err
}

// grpcAnswer responds with these bytes and the status OK.
func grpcAnswer(kind, encoding string, body []byte) peer {
	return h2Answer(nil, func(f *http2.Framer, id uint32) error {
		pairs := []string{":status", "200", "content-type", kind}
		if encoding != "" {
			pairs = append(pairs, "grpc-encoding", encoding)
		}
		if err := head(f, id, fields(pairs...)); err != nil {
			return err
		}
		rest := body
		for len(rest) > 16<<10 {
			if err := f.WriteData(id, false, rest[:16<<10]); err != nil {
				return err
			}
			rest = rest[16<<10:]
		}
		if err := f.WriteData(id, false, rest); err != nil {
			return err
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true,
			EndStream: true, BlockFragment: fields("grpc-status", "0")})
	})
}

// message returns a gRPC message (PROTOCOL-HTTP2.md, "Length-Prefixed-Message").
func message(compressed byte, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(b))), b...)
}

// bomb is a gibibyte of zeros, compressed. It is made on demand, because that takes seconds, and
// many tests start this program.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zero := make([]byte, 1<<20)
	for range 1 << 10 {
		if _, err := z.Write(zero); err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
})

// wsFlood opens correctly (RFC 6455, section 4.2), then sends the first frames once and the last
// one endlessly.
func wsFlood(frames ...[]byte) peer {
	return func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		h := req.Header.Get("Sec-WebSocket-Key")
		if tell(c, fmt.Sprintf("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"+
			"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept(h))) != nil {
			return
		}
		for _, b := range frames[:len(frames)-1] {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
		flood(c, frames[len(frames)-1])
	}
}

// accept returns the response to a key (RFC 6455, section 4.2.2).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
