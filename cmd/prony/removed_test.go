package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/translate"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// A removed verb prints the line to run instead and is an error of usage.
func TestRemovedVerbs(t *testing.T) {
	check := func(line string, wants ...string) {
		t.Helper()
		stdout, stderr, exit := say(t, mock{}, strings.Fields(line)...)
		if exit != cli.Misused || stdout != "" {
			t.Errorf("%s: exit %d, prints %q", line, exit, stdout)
		}
		has(t, line, stderr, wants...)
	}
	check("wrk -t2 -c100 -d30s http://127.0.0.1:8080/", "prony: the verb wrk was removed",
		"\n\n  prony load http://127.0.0.1:8080/ --connections 100 --duration 30s --timeout 2s\n",
		"\n- -t: one load thread",
		"\n- prony load counts a response with a status other than 200 as an error")
	check("wrk2 -R10 -d x{y http://localhost/", "wrk2: invalid argument", "docs/formats/other-tools.md")
	check("hey -host a;b http://localhost/", "--header 'Host: a;b'")
	check("hey -a ann:secret http://localhost/", "'Authorization: …'", "\n- replace … or xxxxx with")
	check("oha --gibberish http://localhost/", "unknown flag: --gibberish")
	check("hey", "must have one URL")
	check("oha --help", "the command line prints help")
	help, _, _ := say(t, mock{}, "--help")
	for _, tool := range translate.Tools() {
		if strings.Contains(help, "\n  "+tool+" ") {
			t.Errorf("help lists %s:\n%s", tool, help)
		}
	}
}

// prony load reads each translated line as the load that the tool would have offered.
func TestTranslatedLines(t *testing.T) {
	check := func(line string, want load.Spec, request load.Request) {
		t.Helper()
		f := strings.Fields(line)
		got, err := translate.Translate(f[0], f[1:])
		if err != nil {
			t.Error(err)
			return
		}
		flags := &loadFlags{}
		c := (&app{}).loadCmd()
		c.ResetFlags()
		flags.add(c)
		flags.addModel(c)
		if err := c.ParseFlags(got.Args[1:]); err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		p, err := flags.plan(t.Context(), c.Flags().Arg(0))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		s := p.spec
		r := s.Scenario.Requests[0]
		if s.Model != want.Model || s.Connections != want.Connections ||
			s.Window != want.Window || s.Requests != want.Requests || s.Lead != want.Lead ||
			s.Timeout != want.Timeout || s.Churn != want.Churn ||
			s.Schedule.Arrivals != want.Schedule.Arrivals ||
			s.Schedule.Rate.String() != want.Schedule.Rate.String() {
			t.Errorf("%s is %+v, want %+v", line, s, want)
		}
		if r.Method != request.Method || r.Path != request.Path || r.Body != request.Body ||
			r.Type != request.Type || r.Status != 200 ||
			!slices.Equal(r.Headers, request.Headers) {
			t.Errorf("%s sends %+v, want %+v", line, r, request)
		}
	}
	const lead, day = 500 * time.Millisecond, 24 * time.Hour
	get := load.Request{Method: "GET", Path: "/a?b={{uuid}}"}
	const url = " http://127.0.0.1:8080/a?b={uuid}"
	check("wrk -t2 -c100 -d30s"+url, load.Spec{Model: record.Closed, Connections: 100,
		Window: 30 * time.Second, Lead: lead, Timeout: 2 * time.Second}, get)
	check("wrk2 -R2k"+url, load.Spec{Model: record.Open, Connections: 10,
		Window: 10 * time.Second, Lead: lead, Timeout: 2 * time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(2000)}}, get)
	post := get
	post.Method, post.Body, post.Type = "POST", `{"a":"b"}`, "text/html"
	post.Headers = []load.Header{{Name: "Accept", Value: "c"}}
	check(`hey -n 70 -c 7 -disable-keepalive -m POST -A c -d {"a":"b"}`+url, load.Spec{
		Model: record.Closed, Connections: 7, Requests: 70, Window: day, Churn: 1,
		Timeout: 20 * time.Second}, post)
	check("oha -z 2s -q 50 -t 3s"+url, load.Spec{Model: record.Open, Connections: 50,
		Window: 2 * time.Second, Lead: lead, Timeout: 3 * time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(50)}}, get)
}
