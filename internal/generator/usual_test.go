package generator

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// words cuts a command line at its blanks; ~ stands for a blank inside of a word.
func words(line string) []string {
	out := strings.Fields(line)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "~", " ")
	}
	return out
}

const at = " http://127.0.0.1:8080/a?b={c}"

// usually is what a line of a tool comes to without a flag.
func usually(tool string) load.Spec {
	s := load.Spec{Name: "load", Model: record.Closed, Connections: 50, Lead: usualLead, Seed: 1,
		Requests: 200, Window: forever, Timeout: 20 * time.Second, Drain: longestDrain,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
			{Method: "GET", Path: "/a?b={{c}}", Status: 200, WantSize: -1}}}}
	s.Lead = 0
	r := &s.Scenario.Requests[0]
	switch tool {
	case "wrk", "wrk2":
		s.Connections, s.Requests, s.Lead = 10, 0, usualLead
		s.Window, s.Timeout, s.Drain = 10*time.Second, 2*time.Second, 2*time.Second
	case "hey":
		r.Type, r.Headers = "text/html", []load.Header{{Name: "User-Agent", Value: "hey/0.0.1"}}
	case "oha":
		s.Timeout = forever
	}
	if tool == "wrk2" {
		s = rated(s, 1000)
	}
	return s
}

// reads holds a line against what change makes of one without a flag.
func reads(t *testing.T, line string, change func(*load.Spec, *load.Request, *Call)) {
	t.Helper()
	f := words(line + at)
	got, err := Usual(f[0], f[1:])
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	want := &Call{URL: strings.TrimSpace(at), Spec: usually(f[0]), Insecure: f[0] != "oha"}
	change(&want.Spec, &want.Spec.Scenario.Requests[0], want)
	want.Notes = got.Notes
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nis   %+v\nwant %+v", line, got, want)
	}
}

func same(*load.Spec, *load.Request, *Call) {}

func TestUsualOfWrk(t *testing.T) {
	reads(t, "wrk", same)
	reads(t, "wrk -t12 -c400 -d30s --latency", func(s *load.Spec, _ *load.Request, c *Call) {
		s.Connections, s.Window, c.Threads = 400, 30*time.Second, 12
	})
	reads(t, "wrk --threads 1 --connections 1k --duration 2 --timeout 500ms -L",
		func(s *load.Spec, _ *load.Request, c *Call) {
			s.Connections, s.Window, c.Threads = 1000, 2*time.Second, 1
			s.Timeout, s.Drain = 500*time.Millisecond, 500*time.Millisecond
		})
	reads(t, "wrk -H Host:~x -H A:b:{d} -H content-type:~c/d", func(s *load.Spec, r *load.Request,
		_ *Call) {
		s.Host, r.Type, r.Headers = "x", "c/d", []load.Header{{Name: "A", Value: "b:{{d}}"}}
	})
	reads(t, "wrk --status 404", func(_ *load.Spec, r *load.Request, _ *Call) { r.Status = 404 })
	reads(t, "wrk2 -R1k -U", same)
	reads(t, "wrk2 -t2 -R 2.5k", func(s *load.Spec, _ *load.Request, c *Call) {
		*s, c.Threads = rated(*s, 2500), 2
	})
}

func TestUsualOfHey(t *testing.T) {
	reads(t, "hey", same)
	reads(t, "hey -n 1000 -c 100 -disable-keepalive -h2", func(s *load.Spec, _ *load.Request,
		c *Call) {
		s.Requests, s.Connections, s.Churn, c.HTTP2 = 1000, 100, 1, true
	})
	reads(t, "hey -z 10s -q 2 -c 5 -cpus 3 -t 0", func(s *load.Spec, _ *load.Request, c *Call) {
		s.Requests, s.Window, s.Connections, s.Lead = 0, 10*time.Second, 5, usualLead
		s.Timeout, c.Threads = forever, 3
		*s = rated(*s, 10)
	})
	reads(t, "hey -m post -d {key} -T a/b -A c -a u:p -host h -U me", func(s *load.Spec,
		r *load.Request, _ *Call) {
		r.Method, r.Body, r.Type, s.Host = "POST", "{{key}}", "a/b", "h"
		r.Headers = []load.Header{{Name: "User-Agent", Value: "me"}, {Name: "Accept", Value: "c"},
			{Name: "Authorization", Value: "Basic dTpw"}}
	})
	reads(t, "hey -H User-Agent:~me", func(_ *load.Spec, r *load.Request, _ *Call) {
		r.Headers = []load.Header{{Name: "User-Agent", Value: "me"}}
	})
}

func TestUsualOfOha(t *testing.T) {
	reads(t, "oha", same)
	reads(t, "oha -z 2s -c 4 -q 50 --latency-correction -w --no-tui --insecure", func(s *load.Spec,
		_ *load.Request, c *Call) {
		s.Requests, s.Window, s.Connections, s.Lead = 0, 2*time.Second, 4, usualLead
		*s, c.Insecure = rated(*s, 50), true
	})
	reads(t, "oha -n 10k -t 3s --disable-keepalive --http2", func(s *load.Spec, _ *load.Request,
		c *Call) {
		s.Requests, s.Timeout, s.Drain, s.Churn = 10000, 3*time.Second, 3*time.Second, 1
		c.HTTP2 = true
	})
}

func TestUsualReadsTheBody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(`{"a": {key}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"hey", "oha"} {
		c, err := Usual(tool, []string{"-D", file, "-m", "POST", "http://x/"})
		if err != nil || c.Spec.Scenario.Requests[0].Body != `{"a": {{key}}}` {
			t.Errorf("%s: %+v, %v", tool, c, err)
		}
	}
}

// A flag that we do not have is named, with what there is instead.
func TestUsualRefuses(t *testing.T) {
	check := func(line string, wants ...string) {
		t.Helper()
		f := words(line)
		c, err := Usual(f[0], f[1:])
		if err == nil {
			t.Errorf("%s is %+v", line, c)
			return
		}
		for _, w := range wants {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q lacks %q", line, err, w)
			}
		}
	}
	const url = " http://x/"
	check("ab"+url, "known are those of wrk, wrk2, hey, oha")
	check("wrk", "want one URL, got 0")
	check("wrk a b", "want one URL, got 2")
	check("wrk x/y", `"x/y" is not a URL`)
	check("wrk -s x.lua"+url, "wrk: --script: Lua scripts are not run")
	check("wrk --gibberish 1"+url, "unknown flag: --gibberish", "see prony load --help")
	check("wrk -R 5"+url, "unknown shorthand flag: 'R'")
	check("wrk -c 0"+url, `--connections "0"`, "from 1 to 1M")
	check("wrk -c 1.5"+url, "whole number")
	check("wrk -c 1e300"+url, "want a ")
	check("wrk -d soon"+url, `--duration "soon"`, "a time such as 30s")
	check("wrk -d -1s"+url, "a time such as 30s")
	check("wrk -H nonsense"+url, `"nonsense" is not like`)
	check("wrk -H Content-Length:1"+url, "is set from the body")
	check("wrk2"+url, "it needs a rate, such as -R 1000")
	check("wrk2 -B -R1"+url, "--batch_latency", "not pipelined")
	check("hey -x proxy:1"+url, "-x", "there are no proxies")
	check("hey -o csv"+url, "-o", "prony load --json")
	check("hey -gibberish"+url, "-gibberish")
	check("hey -n 5 -c 10"+url, "-n 5 is less than -c 10")
	check("hey -c 0 -z 1s"+url, "0 connections are none")
	check("hey -q -1 -z 1s"+url, "a rate of -50/s is none")
	check("hey -D /no/such/file"+url, "read the body")
	check("oha --rand-regex-url"+url, "--rand-regex-url", "{key}")
	check("oha -n many"+url, `-n "many"`)
	for _, tool := range Usuals() {
		if _, err := Usual(tool, []string{"--help"}); !errors.Is(err, ErrHelp) {
			t.Errorf("%s --help is %v", tool, err)
		}
	}
}

func TestUsualSaysWhereItDiffers(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		f := words(line + " http://x/")
		c, err := Usual(f[0], f[1:])
		if err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), want) {
			t.Errorf("%s: %+v, %v; want a note with %q", line, c, err, want)
		}
	}
	check("wrk", "another status than 200 is an error")
	check("wrk2 -R 10", "wrk2 drops its first 10 s")
	check("hey -q 2", "so 2/s are 100/s in all")
	check("oha -q 2", "as with oha's --latency-correction")
	if c, err := Usual("oha", []string{"http://x"}); err != nil ||
		c.Spec.Scenario.Requests[0].Path != "/" || c.Spec.Schedule.Arrivals == pace.Poisson {
		t.Errorf("it is %+v, %v", c, err)
	}
}
