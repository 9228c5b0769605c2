package load

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/record"
)

// posts is a scenario of one POST, which must not be sent twice.
var posts = Scenario{Requests: []Request{
	{Method: "POST", Path: "/", Body: "twelve bytes", Want: "ok", HasWant: true}}}

// A server can respond before it has received the request. The response counts, the bytes that have
// not left do not, and an HTTP/1.1 connection is not used again.
func TestEarlyAnswers(t *testing.T) {
	check := func(name, protocol string, unsent int, early, reconnects int64) {
		t.Helper()
		w := &world{serve: func(call) reply {
			out := answer(time.Millisecond, "ok")
			out.unsent = unsent
			return out
		}}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(50), Connections: 2,
			Drain: time.Second, Scenario: posts, Describe: EngineInfo{Protocol: protocol}})
		counts{scheduled: 50, sent: 50, done: 50, answered: 50}.check(t, r)
		if r.Early != early || r.Reconnects != reconnects {
			t.Errorf("%s: %d early, %d reconnects; want %d, %d", name, r.Early, r.Reconnects,
				early, reconnects)
		}
		if want := int64(50 * (len(w.calls[0].text) - unsent)); r.BytesOut != want {
			t.Errorf("%s: %d bytes went out, want %d", name, r.BytesOut, want)
		}
	}
	check("all sent", "", 0, 0, 0)
	check("a rest", "", 5, 50, 50)
	check("over TLS", "HTTP/1.1 over TLS", 12, 50, 50)
	check("a stream's rest", "HTTP/2", 5, 50, 0) // a stream ends without its connection
}

// Bytes that did not leave count neither for responses that never come, nor for those that are
// under way at the end, nor for requests that are sent again.
func TestUnsentBytesOfOtherEnds(t *testing.T) {
	check := func(name string, out reply, drain time.Duration) {
		t.Helper()
		w := &world{serve: func(call) reply { return out }}
		r, err := simulate(t, w, Spec{Model: record.Open, Schedule: even(10), Connections: 20,
			Drain: drain, Scenario: posts, Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		n := len(w.calls)
		if want := int64(n * (len(w.calls[0].text) - out.unsent)); r.BytesOut != want ||
			n < 10 || r.Early != 0 {
			t.Errorf("%s: %d bytes went out, %d early; want %d of %d requests", name, r.BytesOut,
				r.Early, want, n)
		}
	}
	check("timeout", reply{unsent: 7}, time.Second)
	check("under way", reply{unsent: 12}, 0)
	broken := cut(Writing, syscall.ECONNRESET)
	broken.unsent = 1
	check("reset", broken, time.Second)
}

// A request of which no byte has left a connection that served before is sent again, whatever its
// method. On a fresh connection it is an error.
func TestRequestsThatNeverLeftGoAgain(t *testing.T) {
	never := func(n int) func(call) reply {
		return func(c call) reply {
			if c.onConn != n {
				return answer(time.Millisecond, "ok")
			}
			out := cut(Writing, syscall.EPIPE)
			out.unsent = len(c.text)
			return out
		}
	}
	w := &world{serve: never(10)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second, Scenario: posts})
	if r.Answered != 100 || r.Retried != 11 || r.Errors.Total() != 0 {
		t.Errorf("%d answered, %d retried, %+v", r.Answered, r.Retried, r.Errors)
	}
	if want := int64(100 * len(w.calls[0].text)); r.BytesOut != want {
		t.Errorf("%d bytes went out, want %d", r.BytesOut, want)
	}
	r, err := simulate(t, &world{serve: never(1)}, Spec{Model: record.Open, Schedule: even(10),
		Connections: 1, Drain: time.Second, Scenario: posts})
	if err != nil || r.Answered != 0 || r.Retried != 0 || r.Errors.Write == 0 {
		t.Errorf("fresh: %d answered, %d retried, %+v, %v", r.Answered, r.Retried, r.Errors, err)
	}
}

// A server can send a body after a response to HEAD, at once or late. The result names it.
func TestBytesAfterHeadAreNamed(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	for name, serve := range map[string]func(call) reply{
		"at once": func(call) reply { return raw(head + "hello") },
		"late": func(call) reply {
			return reply{after: time.Millisecond, gap: time.Millisecond, pieces: []string{head},
				extra: "hello"}
		},
	} {
		r, err := simulate(t, &world{serve: serve}, Spec{Model: record.Open, Schedule: even(10),
			Connections: 1, Drain: time.Second, Scenario: Scenario{Requests: []Request{
				{Method: "HEAD", Path: "/", WantSize: -1}}}})
		if err != nil || r.Errors.Unsolicited != 10 ||
			!strings.Contains(r.Errors.Example, "bytes after a response to HEAD (5 bytes)") {
			t.Errorf("%s: %+v, %v", name, r.Errors, err)
		}
	}
}

// In a closed load, the next request has left when the bytes come.
func TestBytesAfterHeadMeetTheNextRequest(t *testing.T) {
	r, err := simulate(t, &world{serve: func(call) reply {
		return reply{after: time.Millisecond, gap: time.Microsecond, extra: "hello",
			pieces: []string{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"}}
	}}, Spec{Model: record.Closed, Connections: 1, Requests: 10, Scenario: Scenario{
		Requests: []Request{{Method: "HEAD", Path: "/", WantSize: -1}}}})
	if err != nil || r.Errors.Parse == 0 || r.Errors.Parse+r.Answered != 10 ||
		!strings.Contains(r.Errors.Example, "bytes after a response to HEAD") {
		t.Errorf("%d answered, %+v, %v", r.Answered, r.Errors, err)
	}
}

// limited is an engine whose server permits three streams fewer than requested.
type limited struct{ Engine }

func (limited) Shortage() int { return 3 }

func TestStreamsPermitted(t *testing.T) {
	w := &world{serve: after(time.Millisecond)}
	s := Spec{Model: record.Open, Schedule: even(10), Connections: 10,
		Describe: EngineInfo{Protocol: "HTTP/2", Streams: 5}}
	if r := good(t, w, s); r.StreamsPermitted != nil {
		t.Errorf("%d streams are permitted without a limit", *r.StreamsPermitted)
	}
	s.Engine = func(a netip.AddrPort, slots int) (Engine, error) {
		e, err := w.engine(a, slots)
		return limited{e}, err
	}
	w.engines = nil
	if n := good(t, w, s).StreamsPermitted; n == nil || *n != 2 {
		t.Errorf("%v streams are permitted, want 2 of 5", n)
	}
}

// The first byte is that of the final response: over HTTP/2, interim responses do not count either.
func TestFirstByteAfterInterim(t *testing.T) {
	const hints, final = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	check := func(first time.Duration, pieces ...string) {
		t.Helper()
		w := &world{serve: func(call) reply {
			return reply{after: 5 * time.Millisecond, gap: 10 * time.Millisecond, pieces: pieces}
		}}
		status := 200
		if strings.Contains(pieces[0], " 204 ") {
			status = 204
		}
		r := good(t, w, Spec{Model: record.Closed, Connections: 1, Requests: 1, Scenario: Scenario{
			Requests: []Request{{Method: "GET", Path: "/", Status: status, WantSize: -1}}}})
		if got := r.FirstByte.MaxNs; r.Answered != 1 || got/1e5 != int64(first)/1e5 {
			t.Errorf("%q: first byte after %d ns, want %v", pieces, got, first)
		}
	}
	check(5*time.Millisecond, final)
	check(5*time.Millisecond, "HTTP/1.1 204 No Content\r\n\r\n")
	check(5*time.Millisecond, hints+final)
	check(15*time.Millisecond, hints, final)
	check(25*time.Millisecond, hints[:9], hints[9:], final)
	check(15*time.Millisecond, hints, final[:4], final[4:])
	check(5*time.Millisecond, hints+final[:4], final[4:])
	// A connection that ends after an interim response has begun to respond.
	w := &world{serve: func(c call) reply {
		if c.n == 2 {
			return reply{after: time.Millisecond, pieces: []string{hints}, end: true}
		}
		return answer(time.Millisecond, "ok")
	}}
	if r := good(t, w, Spec{Model: record.Closed, Connections: 1, Requests: 3}); r.Retried != 0 ||
		r.Errors.Read != 1 {
		t.Errorf("%d retried, %+v", r.Retried, r.Errors)
	}
}
