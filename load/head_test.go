package load_test

import (
	"testing"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/record"
)

// The response to a HEAD has a length and no body (RFC 9112, section 6.3), so the next response on
// the connection follows directly. HEAD is mixed with other requests.
func TestHeadHasNoBody(t *testing.T) {
	check := func(name, head string, keep bool) {
		t.Helper()
		asked := map[string]int{"HEAD": 0, "OPTIONS": 0, "GET": 0}
		r := offerReal(t, func(now int64, r truth.Request) truth.Reply {
			asked[string(r.Method)]++
			out := truth.Reply{At: now, Text: truth.Answer("200 OK", "", "ok")}
			switch string(r.Method) {
			case "HEAD":
				out.Text = []byte(head)
				if !keep {
					out.Then = truth.Close
				}
			case "OPTIONS":
				out.Text = []byte("HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n")
			}
			return out
		}, load.Spec{
			Model: record.Open, Schedule: even(300), Connections: 2, Seed: 3,
			Window: 200 * time.Millisecond, Scenario: load.Scenario{Requests: []load.Request{
				{Method: "HEAD", Path: "/", WantSize: -1, Weight: 2},
				{Method: "OPTIONS", Path: "/", Status: 204, WantSize: 0},
				{Method: "GET", Path: "/", Want: "ok", HasWant: true},
			}},
		})
		if r.Answered != 60 || r.Errors.Total() != 0 {
			t.Errorf("%s: answered %d of 60; %+v", name, r.Answered, r.Errors)
		}
		if renewed := r.Reconnects > 0; renewed == keep {
			t.Errorf("%s: %d reconnects with keep-alive %v", name, r.Reconnects, keep)
		}
		for method, n := range asked {
			if n == 0 {
				t.Errorf("%s: method %s was never asked", name, method)
			}
		}
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	check("length", ok+"Content-Length: 5000\r\n\r\n", true)
	check("no length", ok+"\r\n", true)
	check("chunked", ok+"Transfer-Encoding: chunked\r\n\r\n", true)
	check("interim", "HTTP/1.1 103 Early Hints\r\n\r\n"+ok+"Content-Length: 9\r\n\r\n", true)
	check("close", ok+"Connection: close\r\nContent-Length: 9\r\n\r\n", false)
}

// If a server sends a body to a HEAD, reading stops, because its bytes would count as a response.
func TestBodyAfterHead(t *testing.T) {
	r := offer(t, truth.Every(1, body("body"), truth.Fixed(0)), load.Spec{
		Model: record.Open, Schedule: even(100), Connections: 1, Window: 200 * time.Millisecond,
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "HEAD", Path: "/", WantSize: -1}}},
	})
	if r.Answered != 20 || r.Reconnects != 20 || r.Errors.Unsolicited != 20 {
		t.Errorf("%d of 20 answered over %d new connections; %+v", r.Answered, r.Reconnects,
			r.Errors)
	}
}
