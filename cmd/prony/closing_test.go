package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/load/engine/enginetest"
	"prony.example/record"
)

// closes returns the URL of a server that ends each connection with its hundredth response, with or
// without an announcement, or, if late, once it has received one more request.
func closes(t *testing.T, announced, late bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := 1; n <= 100; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			fields := "Content-Length: 2\r\n"
			if n == 100 && announced {
				fields += "Connection: close\r\n"
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"+fields+"\r\nok"); err != nil {
				return
			}
		}
		if late {
			_, _ = http.ReadRequest(in) // it gets no response
		}
	})
	return "http://" + l.Addr().String() + "/"
}

// judged is a load that a command printed as JSON, and its verdict.
type judged struct {
	Load    record.Load
	Verdict record.Verdict
}

// offeredOf runs prony load as a user does.
func offeredOf(t *testing.T, args ...string) (out judged, stderr string, exit int) {
	t.Helper()
	args = append([]string{"load"}, args...)
	stdout, stderr, exit := really(append(args, "--json", "--view", "none", "-x")...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, exit, stdout, stderr)
	}
	return out, stderr, exit
}

// checkFaultless requires a load without errors that is not INVALID except because of noise.
func checkFaultless(t *testing.T, what string, got judged) {
	t.Helper()
	l := &got.Load
	if l.Errors != (record.Errors{}) || l.Done == 0 || l.Answered+l.Censored != l.Scheduled ||
		l.Reconnects == 0 {
		t.Errorf("%s: %d of %d answered, %d censored, %d reconnects, %+v", what, l.Answered,
			l.Scheduled, l.Censored, l.Reconnects, l.Errors)
	}
	if slices.ContainsFunc(got.Verdict.Findings, func(f record.Finding) bool {
		return f.Rule == "errors" || f.Rule == "answers" || f.Rule == "little"
	}) {
		t.Errorf("%s: %+v", what, got.Verdict)
	}
}

// A server that closes connections after a hundred requests is sound, with every engine and with or
// without an announcement: requests that it did not take are sent again and counted.
func TestServersThatCloseAreSound(t *testing.T) {
	testsets.Whole(t, "whole loads")
	testsets.Measured(t)
	for _, announced := range []bool{true, false} {
		url := closes(t, announced, false)
		for _, how := range []string{"--engine=auto", "--engine=epoll", "--engine=stack",
			"--rate=2000"} {
			got, _, _ := offeredOf(t, url, "-c", "4", "-d", "400ms", "--lead-in", "100ms", how)
			what := fmt.Sprintf("announced %v, %s", announced, how)
			checkFaultless(t, what, got)
			// At a rate, a connection is closed while it is idle, mostly detected in time.
			retried := got.Load.Retried
			if announced && retried != 0 || !announced && how != "--rate=2000" && retried == 0 {
				t.Errorf("%s: %d retried", what, retried)
			}
		}
	}
}

// A request that must not be sent twice is an error in a class of its own, and the verdict says
// what to do.
func TestPostsToServersThatClose(t *testing.T) {
	got, stderr, exit := offeredOf(t, closes(t, false, true), "-c", "4", "-n", "1000", "-X", "POST",
		"--body", "x", "--engine=epoll")
	e := got.Load.Errors
	if exit != cli.Invalid || e.Closed == 0 || e.Closed != e.Total() {
		t.Errorf("exit %d, %d retried, %+v\n%s", exit, got.Load.Retried, e, stderr)
	}
	i := slices.IndexFunc(got.Verdict.Findings, func(f record.Finding) bool {
		return f.Rule == "errors"
	})
	if i < 0 || !strings.Contains(
		wording.Finding(got.Verdict.Findings[i]).Hint, "limits on connections") {
		t.Errorf("%+v", got.Verdict)
	}
}

// nginx that closes a connection after 10 requests is sound over all its protocols, with each
// engine.
func TestNginxIsSound(t *testing.T) {
	testsets.Once(t, "nginx that closes connections", testsets.Needs{Files: []string{serverFiles},
		Facts: []string{testsets.Version("nginx", "-v")}})
	nginx := &realServers[0]
	p := newPlace(t)
	p.Short = true
	nginx.start(t, p, "http", p.Plain)
	for scheme := range strings.FieldsSeq(nginx.schemes) {
		c := serverCase{server: nginx, scheme: scheme, short: true, model: closedModel}
		for _, engine := range []string{"auto", "epoll", "stack"} {
			got, _, _ := offeredOf(t, append(c.args(t, p)[1:], "--engine", engine)...)
			checkFaultless(t, scheme+", "+engine, got)
			t.Logf("%s, %s: %d answers, %d reconnects, %d retried", scheme, engine, got.Load.Done,
				got.Load.Reconnects, got.Load.Retried)
		}
	}
}
