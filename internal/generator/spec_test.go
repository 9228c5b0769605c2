package generator

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/load"
	"prony.example/load/extract"
	"prony.example/load/pace"
	"prony.example/record"
)

// plain returns a load that every closed tool can send.
func plain() load.Spec {
	return load.Spec{
		Name: "peak", Address: netip.MustParseAddrPort("127.0.0.1:8080"), Model: record.Closed,
		Connections: 8, Window: 1500 * time.Millisecond, Timeout: 2500 * time.Millisecond,
		Drain: time.Second, Cores: []int{2, 3}, Seed: 9,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 9, Requests: []load.Request{
			{Method: "GET", Path: "/a?b=1", WantSize: -1}}},
	}
}

func toolOf(t *testing.T, name string) *tool {
	t.Helper()
	tool, err := named(name)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// TestCannot checks that unsupported loads are refused with a reason; an empty reason means that
// all tools support it.
func TestCannot(t *testing.T) {
	ramp := pace.Profile{Pieces: []pace.Piece{{ForNs: 1e9, From: 10, To: 20}}}
	open := func(arrivals string, rate pace.Profile) func(*load.Spec) {
		return func(s *load.Spec) {
			s.Model, s.Schedule = record.Open, pace.Schedule{Arrivals: arrivals, Rate: rate}
		}
	}
	first := func(change func(*load.Request)) func(*load.Spec) {
		return func(s *load.Spec) { change(&s.Scenario.Requests[0]) }
	}
	// check lists in can the tools that support it; all others must return the reason.
	check := func(change func(*load.Spec), why, can string) {
		t.Helper()
		for _, name := range Names() {
			s := plain()
			change(&s)
			err := toolOf(t, name).cannot(&s)
			if ok := slices.Contains(strings.Fields(can), name); ok != (err == nil) {
				t.Errorf("%s: error %v, want %v", name, err, ok)
			} else if !ok && !strings.Contains(err.Error(), why) {
				t.Errorf("%s: error %q lacks %q", name, err, why)
			}
		}
	}
	const closed = "wrk hey k6 h2load jmeter"
	check(func(*load.Spec) {}, "the tool has no closed model", closed)
	check(open(pace.Constant, pace.Flat(100)), "the tool has no open model",
		"wrk2 hey k6 h2load jmeter")
	check(open(pace.Constant, pace.Flat(0.5)), "", "hey k6 h2load jmeter")
	check(func(s *load.Spec) { open(pace.Constant, pace.Flat(100))(s); s.Most = 9 },
		"cannot open more connections", "")
	check(open(pace.Poisson, pace.Flat(100)), "", "jmeter")
	check(open(pace.Constant, ramp), "", "k6")
	check(open(pace.Replay, pace.Profile{Pieces: []pace.Piece{{}}}), "", "")
	check(func(s *load.Spec) { open(pace.Constant, ramp)(s); s.Lead = 1 }, "", "")
	check(func(s *load.Spec) { s.Users = &load.Users{Number: pace.Flat(3)} }, "", "k6")
	check(func(s *load.Spec) { s.Users = &load.Users{Number: ramp} }, "", "k6")
	check(func(s *load.Spec) { s.Requests = 5 }, "", "hey k6 h2load")
	check(func(s *load.Spec) { s.Churn = 1 }, "", "hey k6 jmeter")
	check(func(s *load.Spec) { s.Churn = 2 }, "", "")
	check(func(s *load.Spec) { s.Trace.Share = 0.01 }, "", "")
	check(func(s *load.Spec) { s.Pacing = load.Precise }, "", "")
	check(func(s *load.Spec) { s.Pacing = load.Frugal }, "", closed)
	check(func(s *load.Spec) { s.Observer = load.Observers{} }, "", closed)
	check(func(s *load.Spec) { s.Observer, s.Every = load.Observers{}, time.Second }, "", "")
	check(func(s *load.Spec) { s.Describe.Protocol = "h2c" }, "", "")
	check(func(s *load.Spec) { s.Scenario.Flow = true }, "", "")
	check(func(s *load.Spec) { s.Scenario.Zipf = 1 }, "", "")
	check(func(s *load.Spec) { s.Scenario.KeyHi = 1 << 60 }, "", "hey h2load")
	check(func(s *load.Spec) { s.Scenario.Requests = nil }, "", "")
	check(func(s *load.Spec) {
		s.Scenario.Requests = append(s.Scenario.Requests, s.Scenario.Requests[0])
	}, "", "wrk k6")
	check(first(func(r *load.Request) { r.Checks = make([]extract.Check, 1) }), "", "")
	check(first(func(r *load.Request) { r.Status = 404 }), "", "hey k6 h2load jmeter")
	check(first(func(r *load.Request) { r.Method = "PATCH" }), "", "wrk k6 h2load jmeter")
	check(first(func(r *load.Request) { r.Method = "OPTIONS" }), "", closed)
	check(first(func(r *load.Request) { r.Method = "HEAD" }), "", "hey k6 jmeter")
}

func TestSplit(t *testing.T) {
	check := func(in string, want ...string) {
		t.Helper()
		got, err := split(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, %v, want %q", in, []string(got), err, want)
		}
	}
	refuse := func(in string) {
		t.Helper()
		if got, err := split(in); err == nil {
			t.Errorf("split(%q) = %q, want an error", in, []string(got))
		}
	}
	check("", "")
	check("/a", "/a")
	check("/a/{key}", "/a/", "")
	check("{key}-{key}", "", "-", "")
	check(`{"a": {}}`, `{"a": {}}`)
	check("{{key}}", "{key}")
	refuse("{seq}")
	refuse("{key}{random 1..9}")
	refuse("{uuid}")
	refuse("{pick a|b}")
	refuse("{name}")
}

func TestRequests(t *testing.T) {
	s := plain()
	s.Host = "prony.test"
	s.Scenario.Requests = []load.Request{
		{Method: "PUT", Path: "/{key}", Body: "x", Headers: []load.Header{{Name: "A", Value: "b"}}}}
	got, err := requests(&s, true)
	if err != nil {
		t.Fatal(err)
	}
	r := got[0]
	if r.Method != "PUT" || r.Weight != 1 || r.Status != 200 || r.fixed() ||
		r.Body.String() != "x" {
		t.Errorf("it is %+v", r)
	}
	var heads []string
	for _, h := range r.Headers {
		heads = append(heads, h.Name+"="+h.Value.String())
	}
	if want := []string{"A=b", "Content-Type=text/plain", "Host=prony.test"}; !slices.Equal(heads,
		want) {
		t.Errorf("headers are %q, want %q", heads, want)
	}
	if _, err := requests(&s, false); err == nil || !strings.Contains(err.Error(), "draw {key}") {
		t.Errorf("error %v for a tool without keys", err)
	}
	// The request's own fields come first.
	own := s
	own.Scenario.Requests = []load.Request{{Method: "PUT", Path: "/", Body: "x", Headers: []load.
		Header{{Name: "content-type", Value: "a/b"}, {Name: "host", Value: "c"}}}}
	if got, err := requests(&own, true); err != nil || len(got[0].Headers) != 2 {
		t.Errorf("headers are %v, %v", got[0].Headers, err)
	}
	// Host is the address itself, so it needs no header.
	s.Host = s.Address.String()
	if got, err := requests(&s, true); err != nil || len(got[0].Headers) != 2 {
		t.Errorf("headers are %v, %v", got[0].Headers, err)
	}
}

// TestFindTellsWrkFromWrk2 checks that wrk2 is recognized by its flags, because it also calls
// itself wrk.
func TestFindTellsWrkFromWrk2(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	install := func(name, says string) {
		t.Helper()
		script := "#!/bin/sh\necho '" + says + "'\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name, version, cause string) {
		t.Helper()
		got, err := versionOf(context.Background(), name)
		if cause == "" && err != nil || got != version {
			t.Errorf("%s is %q, %v, want %q", name, got, err, version)
		}
		if cause != "" && (err == nil || !strings.Contains(err.Error(), cause)) {
			t.Errorf("%s: error %v, want %q", name, err, cause)
		}
	}
	install("wrk", "wrk 4.0.0 [epoll] Copyright\n  -R, --rate <T>")
	check("wrk", "", "is another program with that name; to install it")
	check("wrk2", "4.0.0", "")
	install("wrk2", "wrk 4.0.1 [epoll]\n  -R, --rate <T>")
	check("wrk2", "4.0.1", "")
	install("wrk", "wrk debian/4.1.0-3+b2 [epoll]\n  -c, --connections")
	check("wrk", "4.1.0", "")
	install("wrk2", "wrk debian/4.1.0")
	check("wrk2", "", "is another program with that name")
	install("h2load", "h2load nghttp2/1.52.0")
	check("h2load", "1.52.0", "")
	install("hey", "Usage: hey [options...] <url>")
	check("hey", "unknown", "")
}

func TestForeign(t *testing.T) {
	_, err := Foreign("ab")
	if err == nil || !strings.Contains(err.Error(), "choose prony, wrk") {
		t.Errorf("error %v for a tool that nobody knows", err)
	}
	t.Setenv("PATH", t.TempDir())
	for _, name := range Names() {
		_, err := Foreign(name)
		if err == nil || !strings.Contains(err.Error(), "to install it: ") ||
			!strings.Contains(err.Error(), "not on the PATH") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// versionOf returns the version of an installed tool, "unknown" if its output has none.
func versionOf(ctx context.Context, name string) (string, error) {
	t, err := named(name)
	if err != nil {
		return "", err
	}
	_, version, err := t.find(ctx)
	return version, err
}
