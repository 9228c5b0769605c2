package main

import (
	"io"
	"strings"
	"testing"

	"prony/internal/suite"
	"prony/internal/telemetry/home"
)

// Addresses that others can reach are opened for those only who say so.
func TestCheckServe(t *testing.T) {
	const most = suite.Size(512 << 20)
	for _, row := range []struct {
		name   string
		change func(*home.Config)
		memory suite.Size
		expose bool
		want   string
	}{
		{"usual", func(*home.Config) {}, most, false, ""},
		{"no folder", func(c *home.Config) { c.Dir = "" }, most, false, "--dir"},
		{"IPv6", func(c *home.Config) { c.GRPC = "[::1]:0" }, most, false, ""},
		{"all", func(c *home.Config) { c.HTTP = ":4318" }, most, false, "127.0.0.1:4318, or say"},
		{"all", func(c *home.Config) { c.Query = "0.0.0.0:9090" }, most, false, "--query 0.0.0.0"},
		{"a name", func(c *home.Config) { c.Zipkin = "localhost:1" }, most, false, "--zipkin"},
		{"exposed", func(c *home.Config) { c.HTTP = "0.0.0.0:4318" }, most, true, ""},
		{"no port", func(c *home.Config) { c.HTTP = "127.0.0.1" }, most, false, "HOST:PORT"},
		{"bad port", func(c *home.Config) { c.HTTP = "127.0.0.1:99999" }, most, true, "99999"},
		{"small", func(*home.Config) {}, 127 << 20, false, "128MiB"},
		{"only", func(c *home.Config) { c.ForwardOnly = true }, most, false, "needs a --forward"},
	} {
		const free = "127.0.0.1:0"
		c := home.Config{Dir: "d", GRPC: free, HTTP: free, Zipkin: free, Query: free}
		row.change(&c)
		err := checkServe(c, row.memory, row.expose)
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// A bridge's address is for who sends, not for who gives orders, and goes before none that is said.
func TestListenOn(t *testing.T) {
	usual := home.Config{Dir: "d", GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318",
		Zipkin: "127.0.0.1:9411", Query: "127.0.0.1:9090"}
	for _, row := range []struct{ host, given, want string }{
		{"", "", "127.0.0.1:4317 127.0.0.1:4318 127.0.0.1:9411 127.0.0.1:9090"},
		{"172.18.0.1", "", "172.18.0.1:4317 172.18.0.1:4318 172.18.0.1:9411 127.0.0.1:9090"},
		{"172.18.0.1", "http", "172.18.0.1:4317 127.0.0.1:4318 172.18.0.1:9411 127.0.0.1:9090"},
		{"fd00::1", "grpc", "127.0.0.1:4317 [fd00::1]:4318 [fd00::1]:9411 127.0.0.1:9090"},
		{"0.0.0.0", "", "want one address"}, {"::", "", "want one address"},
		{"localhost", "", "want one address"},
	} {
		c, err := listenOn(usual, row.host, func(flag string) bool { return flag == row.given })
		got := strings.Join([]string{c.GRPC, c.HTTP, c.Zipkin, c.Query}, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%q: %s, want %s", row.host, got, row.want)
		}
		away := strings.Contains(got, "172") || strings.Contains(got, "fd00")
		if err := checkServe(c, 512<<20, false); err == nil == away {
			t.Errorf("%q: %v without --expose", row.host, err)
		}
	}
}

// A context ends with the stream that it hangs on, and not before.
func TestUntilEOF(t *testing.T) {
	r, w := io.Pipe()
	ctx, stop := untilEOF(t.Context(), r)
	defer stop()
	if _, err := w.Write([]byte("still here")); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	w.Close()
	<-ctx.Done()
}
