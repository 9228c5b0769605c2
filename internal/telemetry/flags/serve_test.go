package flags

import (
	"context"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
)

// Addresses that others can reach need an explicit flag.
func TestCheckServe(t *testing.T) {
	const most = strictyaml.Size(512 << 20)
	for _, row := range []struct {
		name   string
		change func(*Serve)
		memory strictyaml.Size
		expose bool
		want   string
	}{
		{"usual", func(*Serve) {}, most, false, ""},
		{"no folder", func(c *Serve) { c.Dir = "" }, most, false, "--dir"},
		{"IPv6", func(c *Serve) { c.GRPC = "[::1]:0" }, most, false, ""},
		{"all", func(c *Serve) { c.HTTP = ":4318" }, most, false, "127.0.0.1:4318, or add"},
		{"all", func(c *Serve) { c.Query = "0.0.0.0:9090" }, most, false, "--query 0.0.0.0"},
		{"a name", func(c *Serve) { c.Zipkin = "localhost:1" }, most, false, "--zipkin"},
		{"exposed", func(c *Serve) { c.HTTP = "0.0.0.0:4318" }, most, true, ""},
		{"no port", func(c *Serve) { c.HTTP = "127.0.0.1" }, most, false, "HOST:PORT"},
		{"bad port", func(c *Serve) { c.HTTP = "127.0.0.1:99999" }, most, true, "99999"},
		{"small", func(*Serve) {}, 127 << 20, false, "128MiB"},
		{"only", func(c *Serve) { c.ForwardOnly = true }, most, false, "requires --forward"},
	} {
		const free = "127.0.0.1:0"
		c := Serve{Dir: "d", GRPC: free, HTTP: free, Zipkin: free, Query: free}
		row.change(&c)
		c.Memory, c.Expose = row.memory, row.expose
		err := c.check()
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// A bridge's address applies to receivers but not to control, and does not replace an explicit
// address.
func TestListenOn(t *testing.T) {
	usual := Serve{Dir: "d", GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318",
		Zipkin: "127.0.0.1:9411", Query: "127.0.0.1:9090"}
	for _, row := range []struct{ host, given, want string }{
		{"", "", "127.0.0.1:4317 127.0.0.1:4318 127.0.0.1:9411 127.0.0.1:9090"},
		{"172.18.0.1", "", "172.18.0.1:4317 172.18.0.1:4318 172.18.0.1:9411 127.0.0.1:9090"},
		{"172.18.0.1", "http", "172.18.0.1:4317 127.0.0.1:4318 172.18.0.1:9411 127.0.0.1:9090"},
		{"fd00::1", "grpc", "127.0.0.1:4317 [fd00::1]:4318 [fd00::1]:9411 127.0.0.1:9090"},
		{"0.0.0.0", "", "must be an address of this machine"}, {"::", "",
			"must be an address of this machine"},
		{"localhost", "", "must be an address of this machine"},
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
		c.Memory = DefaultMemory
		if err := c.check(); err == nil == away {
			t.Errorf("%q: %v without --expose", row.host, err)
		}
	}
}

// Args are parsed back to the same options.
func TestArgs(t *testing.T) {
	var served []Serve
	serve := func(args ...string) {
		t.Helper()
		c := Telemetry(func(_ context.Context, s Serve) error {
			served = append(served, s)
			return nil
		})
		c.SetArgs(args)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	serve("serve", "--dir", "a b", "--listen", "10.0.0.1", "--expose", "--memory", "256MiB",
		"--forward", "http://127.0.0.1:1", "--forward-only", "--until-stdin-ends")
	serve(served[0].Args()[1:]...)
	want := Serve{Dir: "a b", GRPC: "10.0.0.1:4317", HTTP: "10.0.0.1:4318",
		Zipkin: "10.0.0.1:9411", Query: "127.0.0.1:9090", Forward: "http://127.0.0.1:1",
		ForwardOnly: true, Memory: 256 << 20, Expose: true, UntilEnd: true}
	if served[0] != want || served[1] != want {
		t.Errorf("%+v, want twice %+v", served, want)
	}
	var asked []Query
	ask := func(args ...string) {
		t.Helper()
		c := Ask(func(_ context.Context, q Query) error {
			asked = append(asked, q)
			return nil
		})
		c.SetArgs(args)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, q := range []Query{
		{Run: dir, Expr: "-x", At: "end", Trial: "t", Step: time.Second, Format: "csv", Out: "o"},
		{Run: dir, List: true, Format: "text"}, {Run: dir, Serve: "127.0.0.1:0", Format: "text"},
	} {
		ask(q.Args(dir)[1:]...)
		if got := asked[len(asked)-1]; got != q {
			t.Errorf("%+v, want %+v", got, q)
		}
	}
}
