package load

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/load/extract"
	"prony.example/load/pace"
	"prony.example/record"
)

// crossing responds after a millisecond, and closes each connection in place of its tenth response.
func crossing(op Op, err error) func(call) reply {
	return func(c call) reply {
		if c.onConn == 10 {
			return cut(op, err)
		}
		return answer(time.Millisecond, "ok")
	}
}

// A kept-alive connection that ends without a byte of the tenth response has not processed that
// request: it is sent again, which takes 1 ms for the failure and 1 ms for the response, and
// nothing is lost. Of 100 requests on one connection, numbers 10, 19, 28, … 100 meet an end: 11 of
// them.
func TestRequestsThatWereNeverTakenGoAgain(t *testing.T) {
	check := func(name, method string, op Op, end error) {
		t.Helper()
		w := &world{serve: crossing(op, end)}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
			Drain: time.Second, Scenario: Scenario{Requests: []Request{
				{Method: method, Path: "/", Want: "ok", HasWant: true}}}})
		counts{scheduled: 100, sent: 100, done: 100, answered: 100}.check(t, r)
		if r.Retried != 11 || r.Reconnects != 11 || len(w.calls) != 111 || w.attempts != 12 {
			t.Errorf("%s: %d retried, %d reconnects, %d requests over %d connections; want 11, "+
				"11, 111 over 12", name, r.Retried, r.Reconnects, len(w.calls), w.attempts)
		}
		// Due time and send time are those of the first send, which took 1 ms to fail.
		about(t, name+": longest response", r.ResponseTime.MaxNs, 2*ms)
		about(t, name+": longest service", r.ServiceTime.MaxNs, 2*ms)
		about(t, name+": median", r.ResponseTime.P50Ns, 1*ms)
		if r.OwnLag.Count != 100 || r.OwnLag.MaxNs != 1 {
			t.Errorf("%s: own lag %d of %d requests", name, r.OwnLag.MaxNs, r.OwnLag.Count)
		}
		if want := int64(111 * len(w.calls[0].text)); r.BytesOut != want {
			t.Errorf("%s: %d bytes went out, want %d", name, r.BytesOut, want)
		}
		if w.calls[9].text != w.calls[10].text {
			t.Errorf("%s: sent again as %q, first as %q", name, w.calls[10].text, w.calls[9].text)
		}
	}
	check("orderly", "GET", Reading, nil)
	check("reset", "PUT", Reading, syscall.ECONNRESET)
	check("broken pipe", "DELETE", Writing, syscall.EPIPE)
}

// In a closed load a retried request stays under way, 1 ms for the failure and 1 ms for the
// response, which determines the rate, and Little's law is exact.
func TestRetriedRequestsStayUnderWay(t *testing.T) {
	w := &world{serve: crossing(Reading, nil)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 1})
	// Nine responses in 9 ms, then an end after one more: 900 responses and 100 ends per second.
	if r.Done < 899 || r.Done > 901 || r.Retried < 99 || r.Retried > 101 {
		t.Errorf("%d answers, %d retried", r.Done, r.Retried)
	}
	if r.InFlightMean < 0.999 || r.InFlightMean > 1 || r.Errors.Total() != 0 {
		t.Errorf("%g under way on one connection, %+v", r.InFlightMean, r.Errors)
	}
}

// A request that must not be sent twice fails in a class of its own.
func TestPostIsNotSentTwice(t *testing.T) {
	w := &world{serve: crossing(Reading, syscall.ECONNRESET)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second, Scenario: Scenario{Requests: []Request{
			{Method: "POST", Path: "/", Body: "x", Want: "ok", HasWant: true}}}})
	counts{scheduled: 100, sent: 100, done: 90, answered: 90, failed: 10}.check(t, r)
	if r.Errors.Closed != 10 || r.Retried != 0 || len(w.calls) != 100 ||
		!strings.Contains(r.Errors.Example, "must not be sent twice") {
		t.Errorf("%d retried, %d sent, %+v", r.Retried, len(w.calls), r.Errors)
	}
}

// These remain failures: an end on a fresh connection, an end within a response, an end for a local
// reason.
func TestFaultsAreNotRetried(t *testing.T) {
	check := func(name string, serve func(call) reply) {
		t.Helper()
		w := &world{serve: serve}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
			Drain: time.Second})
		if r.Retried != 0 || r.Errors.Read+r.Errors.Write == 0 {
			t.Errorf("%s: %d retried, %+v", name, r.Retried, r.Errors)
		}
	}
	check("fresh", func(call) reply { return cut(Reading, syscall.ECONNRESET) })
	amidst := func(op Op, err error, text ...string) func(call) reply {
		return func(c call) reply {
			if c.onConn == 10 {
				return cut(op, err, text...)
			}
			return answer(time.Millisecond, "ok")
		}
	}
	check("a byte of the answer", amidst(Reading, nil, "H"))
	check("another error", amidst(Writing, errors.New("the request before is not out yet")))
}

// A request that the engine reports as not processed is repeated for any method and on any
// connection, but not forever: a server that refuses all gets eleven tries of each request.
func TestRefusalsAreBounded(t *testing.T) {
	refuse := cut(Reading, Untaken("HTTP/2: refused"))
	post := Scenario{Requests: []Request{{Method: "POST", Path: "/", Want: "ok", HasWant: true}}}
	s := Spec{Model: record.Open, Schedule: even(10), Connections: 1, Scenario: post,
		Drain: time.Second, Describe: EngineInfo{Protocol: "HTTP/2"}}
	w := &world{serve: func(c call) reply {
		if c.n%2 == 1 {
			return refuse
		}
		return answer(time.Millisecond, "ok")
	}}
	r := good(t, w, s)
	counts{scheduled: 10, sent: 10, done: 10, answered: 10}.check(t, r)
	if r.Retried != 10 {
		t.Errorf("%d retried, want 10", r.Retried)
	}
	w = &world{serve: func(call) reply { return refuse }}
	r = good(t, w, s)
	counts{scheduled: 10, sent: 10, failed: 10}.check(t, r)
	if r.Retried != 100 || len(w.calls) != 110 || r.Errors.Read != 10 ||
		!strings.Contains(r.Errors.Example, "refused") {
		t.Errorf("%d retried, %d sent, %+v", r.Retried, len(w.calls), r.Errors)
	}
	// Without such a report, an HTTP/2 stream that ends is a failure.
	w = &world{serve: crossing(Reading, nil)}
	r = good(t, w, s)
	if r.Retried != 0 || r.Errors.Read == 0 {
		t.Errorf("%d retried, %+v", r.Retried, r.Errors)
	}
}

// The timeout of a request that waits for its new connection counts from the first send. The
// connection does not open; after the timeout the request fails, and the next one is sent.
func TestRetriedRequestsTimeOut(t *testing.T) {
	w := &world{serve: crossing(Reading, nil), connect: func(n int) (time.Duration, error) {
		if n == 2 {
			return time.Hour, nil
		}
		return 0, nil
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 1,
		Drain: time.Second, Timeout: 100 * time.Millisecond})
	counts{scheduled: 20, sent: 20, done: 19, answered: 19, failed: 1}.check(t, r)
	if e := r.Errors; e.Timeout != 1 || r.Retried != 1 { // the tenth, and the second tenth
		t.Errorf("%d retried, %+v", r.Retried, e)
	}
	if got := r.ErrorTime.MaxNs / ms; got < 100 || got > 111 {
		t.Errorf("given up after %d ms", got)
	}
}

// A flow continues with its variables, a HEAD still expects no body, the number of requests is met,
// and a user thinks only after the response.
func TestTurnsSurviveARetry(t *testing.T) {
	flow := Scenario{Flow: true, Requests: []Request{
		{Method: "PUT", Path: "/", WantSize: -1, Extract: []extract.Capture{
			{Var: "id", From: must(extract.JSON("id"))}}},
		{Method: "GET", Path: "/{id}", Want: "{id}", HasWant: true},
		{Method: "HEAD", Path: "/{id}", WantSize: -1},
	}}
	serve := func(c call) reply {
		line, _, _ := strings.Cut(c.text, "\r\n")
		switch {
		case c.onConn == 5:
			return cut(Reading, nil)
		case strings.HasPrefix(line, "PUT"):
			return answer(time.Millisecond, `{"id": 42}`)
		case strings.HasPrefix(line, "HEAD"):
			return raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		}
		return answer(time.Millisecond, strings.TrimPrefix(strings.Fields(line)[1], "/"))
	}
	w := &world{serve: serve}
	r := good(t, w, Spec{Model: record.Closed, Connections: 2, Requests: 30, Scenario: flow})
	if r.Answered != 90 || r.Errors.Total() != 0 || r.FlowTime.Count != 30 || r.Retried < 20 {
		t.Errorf("%d answers, %d flows, %d retried, %+v", r.Answered, r.FlowTime.Count, r.Retried,
			r.Errors)
	}
	w = &world{serve: crossing(Reading, nil)}
	r = good(t, w, Spec{Model: record.Closed, Connections: 1, Users: users(pace.Flat(1),
		Think{Kind: "constant", Lo: 9 * time.Millisecond})})
	// 10 ms per turn, 11 for one in nine.
	if r.Answered < 98 || r.Answered > 100 || r.Errors.Total() != 0 || r.Retried < 10 {
		t.Errorf("%d answers to a user, %d retried, %+v", r.Answered, r.Retried, r.Errors)
	}
}

// Whether a connection ended is determined without an allocation, for any reason.
func TestRetriesDoNotAllocate(t *testing.T) {
	w := &worker{cfg: &config{serial: true}, engine: &sink{}, conns: []conn{{answers: 1}}}
	ends := []error{nil, syscall.ECONNRESET, syscall.EPIPE, Untaken("refused")}
	n := testing.AllocsPerRun(100, func() {
		for _, err := range ends {
			if untaken, _ := w.untaken(0, err); !untaken {
				t.Errorf("%v is taken for a failure", err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
