package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// nobody runs a name server that answers every query with: the name does not exist (RFC 1035,
// 4.1.1: QR, RD, RA, RCODE 3).
func nobody(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for query := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			query[2], query[3] = 0x81, 0x83
			_, _ = conn.WriteTo(query[:n], from) // the resolver retries
		}
	}()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	to := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: to}
}

// Rain loads the running servers, stores the result of each, and leaves out unknown names. Without
// a running server it reports that.
func TestRain(t *testing.T) {
	nobody(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello")) // the load counts missing responses
	}))
	defer up.Close()
	into := t.TempDir()
	rain := func(urls ...string) (string, string, int) {
		args := append([]string{"rain", "--into", into, "--connections", "2", "--duration", "200ms",
			"--lead-in", "50ms"}, urls...)
		return really(args...)
	}
	out, stderr, exit := rain("http://not-up:8080/", up.URL+"/", "--remote=not-up", "--remote",
		"elsewhere")
	if unspoilt(exit) != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	has(t, "what was found", out, up.URL)
	if strings.Contains(out, "not-up") || strings.Contains(out, "elsewhere") {
		t.Errorf("the line that reproduces it names others:\n%s", out)
	}
	files, err := filepath.Glob(filepath.Join(into, "*", "*.json"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "127.0.0.1.json" {
		t.Fatalf("files %q, error %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	var report map[string]any
	if err := errors.Join(err, json.Unmarshal(text, &report)); err != nil {
		t.Error(err)
	}
	_, stderr, exit = rain("http://not-up:8080/")
	if exit != cli.Failed {
		t.Errorf("with nobody up exit %d", exit)
	}
	has(t, "the error", stderr, "none of the 1 servers runs")
	if _, stderr, exit = rain("not-up"); exit != cli.Misused {
		t.Errorf("without a host exit %d: %s", exit, stderr)
	}
}

// The command that reproduces one server's load names --remote only for this server.
func TestRainReproduces(t *testing.T) {
	for _, row := range [][]string{
		{"prony rain --remote=a --remote=b -d 1s http://a/ http://b/", "http://b/",
			"prony rain --remote=b -d 1s http://b/"},
		{"prony rain --remote a,b http://a/ --lead-in 1s http://b/ https://c/", "http://b/",
			"prony rain --remote=b --lead-in 1s http://b/"},
		{"prony rain http://a/ http://b/ --remote a", "http://b/", "prony rain http://b/"},
		{"prony rain h2c://a/ --otlp http://c/ h2c://b/", "h2c://b/",
			"prony rain --otlp http://c/ h2c://b/"},
	} {
		urls := []string{"http://a/", "http://b/", "https://c/", "h2c://a/", "h2c://b/"}
		got := strings.Join(alone(strings.Fields(row[0]), urls, row[1], "b"), " ")
		if got != row[2] {
			t.Errorf("%s\nis alone %s\nwant %s", row[0], got, row[2])
		}
	}
}
