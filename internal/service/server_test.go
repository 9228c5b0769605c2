package service

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipes is a listener whose connections are net.Pipe, which testing/synctest can wait for.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
	once   sync.Once
	mu     sync.Mutex
	dials  int
	writes [][]byte // of the client, in order
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accept:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accept <- far:
		p.mu.Lock()
		p.dials++
		p.mu.Unlock()
		return noted{near, p}, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type noted struct {
	net.Conn
	pipes *pipes
}

func (n noted) Write(data []byte) (int, error) {
	n.pipes.mu.Lock()
	n.pipes.writes = append(n.pipes.writes, bytes.Clone(data))
	n.pipes.mu.Unlock()
	return n.Conn.Write(data)
}

// honest meets the three contracts in the mode virtual.
type honest struct {
	mu    sync.Mutex
	drawn uint64 // number of answers of /concat, so that each one differs
	lines []string
}

func (h *honest) log(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *honest) logs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{"started"}, h.lines...)
}

func answer(w http.ResponseWriter, status int, media, body string) {
	if media != "" {
		w.Header().Set("Content-Type", media)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

const text, plain = "text/plain; charset=utf-8", "text/plain"

func (h *honest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /":
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, 200, "", "")
	case "GET /no-read":
		answer(w, 200, "", "")
	case "GET /hello":
		answer(w, 200, plain, "Hello world")
	case "GET /file":
		h.file(w, r)
	case "POST /load":
		body, _ := io.ReadAll(r.Body)
		answer(w, 200, text, base64.StdEncoding.EncodeToString(body))
	case "GET /hello/virtual":
		h.greet(w, r)
	case "GET /data":
		answer(w, 200, "application/json", *goldens()["compute"].Cases[0].Body)
	case "GET /concat":
		h.mu.Lock()
		h.drawn++
		answer(w, 200, "application/json", concat(h.drawn))
		h.mu.Unlock()
	case "GET /fibonacci":
		answer(w, 200, "application/json", `{"fibonacci":832040}`)
	default:
		answer(w, 404, "", "")
	}
}

// concat returns 10,000 characters of a random stream.
func concat(stream uint64) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	source, text := rand.New(rand.NewPCG(1, stream)), make([]byte, 10000)
	for i := range text {
		text[i] = letters[source.IntN(len(letters))]
	}
	return `{"concat":"` + string(text) + `"}`
}

func get(r *http.Request, name, otherwise string) string {
	if values, ok := r.URL.Query()[name]; ok {
		return values[0]
	}
	return otherwise
}

func (h *honest) file(w http.ResponseWriter, r *http.Request) {
	size := get(r, "size", "1048576")
	n, err := strconv.Atoi(size)
	if !regexp.MustCompile(`^[0-9]{1,8}$`).MatchString(size) || err != nil || n > 1<<24 {
		answer(w, 400, "", "")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", size)
	_, _ = io.Copy(w, loremReader(int64(n)))
}

func (h *honest) greet(w http.ResponseWriter, r *http.Request) {
	key, sleep, log := get(r, "key", "1"), get(r, "sleep", "0"), get(r, "log", "false")
	seconds, err := strconv.ParseFloat(sleep, 64)
	number, notKey := strconv.Atoi(key)
	switch {
	case !regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,3})?$`).MatchString(sleep) || err != nil,
		seconds > 60, log != "true" && log != "false":
		answer(w, 400, "", "")
		return
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	if log == "true" {
		h.log("hello mode=virtual key=" + key + " thread=goroutine")
	}
	if notKey != nil || number < 1 || number > 50000 {
		answer(w, 404, "", "")
		return
	}
	answer(w, 200, text, "Hello from REST value-"+key)
}

// serve runs a handler on pipes until the test ends.
func serve(t *testing.T, handler http.Handler) *pipes {
	p := newPipes()
	server := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(p)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return p
}

// raw answers with exactly these bytes and closes the connection.
func raw(w http.ResponseWriter, bytes string) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = buf.WriteString(bytes)
	_ = buf.Flush()
	_ = conn.Close()
}

// head joins the lines of a raw answer's head.
func head(lines ...string) string { return strings.Join(append(lines, "", ""), "\r\n") }
