package load

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/socket"
	"prony.example/load/pace"
	"prony.example/record"
)

// gone is the announcement of a server that it waits for no further request.
const gone = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// A server can give a connection up while a request is on its way, and say so by 408: the request
// is sent again. If it comes a second time, or to a request that must not be sent twice, it counts.
func TestFarewellsCrossRequests(t *testing.T) {
	check := func(name, method string, serve func(call) reply, answered, retried, failed int64) {
		t.Helper()
		w := &world{serve: serve}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
			Drain: time.Second, Scenario: Scenario{Requests: []Request{
				{Method: method, Path: "/", Want: "ok", HasWant: true}}}})
		if r.Answered != answered || r.Retried != retried || r.Errors.Status != failed ||
			r.Errors.Total() != failed {
			t.Errorf("%s: %d answered, %d retried, %+v; want %d, %d, and %d failed", name,
				r.Answered, r.Retried, r.Errors, answered, retried, failed)
		}
	}
	tenth := func(c call) reply {
		if c.onConn == 10 {
			return raw(gone)
		}
		return answer(time.Millisecond, "ok")
	}
	check("at the tenth", "GET", tenth, 100, 11, 0)
	check("must not be sent twice", "POST", tenth, 90, 0, 10)
	check("always", "GET", func(call) reply { return raw(gone) }, 0, 100, 100)
	check("with an answer", "POST", func(call) reply {
		return raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + gone)
	}, 100, 0, 0)
	check("kept open", "GET", func(c call) reply {
		if c.onConn == 10 {
			return raw(strings.Replace(gone, "Connection: close\r\n", "", 1))
		}
		return answer(time.Millisecond, "ok")
	}, 99, 0, 1)
}

// aging is an engine whose server closes each connection at an age.
type aging struct {
	*fake
	age    time.Duration
	opened map[int]int64
}

func (a aging) Open(i int) {
	a.fake.Open(i)
	a.opened[i] = clock.Mono()
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.later(clock.Mono()+int64(a.age), i, true, func(h Handler) {
		a.fake.Close(i)
		h.Closed(i, clock.Mono(), Reading, nil)
	})
}

// A server closes connections that have sent no request for 100 ms, which meets requests of the
// last millisecond. Once the load has seen such a close, it sends those requests again.
func TestIdleTimeoutsOfNewConnections(t *testing.T) {
	var a aging
	w := &world{}
	w.wrap = func(f *fake) Engine {
		a = aging{f, 100 * time.Millisecond, map[int]int64{}}
		return a
	}
	met := 0
	w.serve = func(c call) reply {
		if c.at-a.opened[c.slot] >= int64(a.age-time.Millisecond) {
			met++
			return reply{} // its end comes with its age
		}
		return answer(100*time.Microsecond, "ok")
	}
	// A connection lives for 100 ms and is opened again 20 ms later. Requests come at all ages.
	r := good(t, w, Spec{Model: record.Open, Schedule: even(7.003), Connections: 1,
		Window: 100 * time.Second, Drain: time.Second})
	if met == 0 || r.Retried != int64(met) || r.Errors.Total() != 0 || r.Answered != r.Scheduled {
		t.Errorf("%d requests met an end, %d retried, %d of %d answered, %+v", met, r.Retried,
			r.Answered, r.Scheduled, r.Errors)
	}
}

// After a request with Connection: close, no other may follow on the connection (RFC 9112, section
// 9.6), although the server does not repeat it in its response.
func TestRequestsThatCloseTheirConnection(t *testing.T) {
	for value, most := range map[string]int{"close": 1, "TE, Close": 1, "keep-alive": 50} {
		w := &world{serve: after(time.Millisecond)}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(50), Connections: 1,
			Drain: time.Second, Scenario: Scenario{Requests: []Request{{Method: "POST", Path: "/",
				WantSize: -1, Headers: []Header{{Name: "connection", Value: value}}}}}})
		onConn := 0
		for _, c := range w.calls {
			onConn = max(onConn, c.onConn)
		}
		if r.Answered != 50 || r.Errors.Total() != 0 || onConn != most {
			t.Errorf("%s: %d answered, %d requests on a connection, %+v", value, r.Answered, onConn,
				r.Errors)
		}
	}
}

// A load by number has no other end if its server is gone: it ends when no connection could be
// opened for as long as a request may take.
func TestLoadsByNumberEndWithoutAServer(t *testing.T) {
	w := &world{connect: func(n int) (time.Duration, error) {
		if n > 2 {
			return time.Millisecond, syscall.ECONNREFUSED
		}
		return 0, nil
	}, serve: func(c call) reply {
		if c.onConn == 5 {
			return cut(Reading, syscall.ECONNRESET, "H")
		}
		return answer(time.Millisecond, "ok")
	}}
	for _, s := range []Spec{{Model: record.Closed}, {Model: record.Open, Schedule: even(100)}} {
		w.attempts, w.engines = 0, nil
		s.Connections, s.Requests, s.Window, s.Timeout = 2, 1000, 24*time.Hour, 3*time.Second
		r := good(t, w, s)
		if r.Answered != 8 || r.Errors.Read != 2 || r.Errors.Connect < 100 ||
			r.WindowNs < int64(3*time.Second) || r.WindowNs > int64(4*time.Second) {
			t.Errorf("%s: %d answered in %v, %+v", s.Model, r.Answered, time.Duration(r.WindowNs),
				r.Errors)
		}
	}
}

// Bytes that came before a request left are no response to it, and do not make it fail.
func TestBytesBeforeARequest(t *testing.T) {
	w := &world{serve: crossing(Writing, engine.Unsolicited("welcome"))}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second, Scenario: posts})
	if r.Answered != 100 || r.Retried != 11 || r.Errors.Unsolicited != 11 ||
		r.Errors.Requests() != 0 || !strings.Contains(r.Errors.Example, "(7 bytes)") {
		t.Errorf("%d answered, %d retried, %+v", r.Answered, r.Retried, r.Errors)
	}
}

// A response without a length is complete over TLS only after close_notify. Other responses are
// complete by themselves, and a connection that serves none may end without it.
func TestTruncatedTLS(t *testing.T) {
	const cause = "GET / HTTP/1.1: the server ended TLS without close_notify, so the answer, " +
		"which has no length, may be incomplete"
	tenth(t, cut(Reading, engine.ErrTruncated, "HTTP/1.1 200 OK\r\n\r\n", "ok"),
		func(e record.Errors) int64 { return e.Read }, cause)
	tenth(t, cut(Reading, engine.ErrTruncated, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
		func(e record.Errors) int64 { return e.Read },
		"GET / HTTP/1.1: the server closed the connection before the answer was whole")
	w := &world{serve: crossing(Reading, engine.ErrTruncated)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second})
	if r.Answered != 100 || r.Retried != 11 || r.Errors.Total() != 0 {
		t.Errorf("%d answered, %d retried, %+v", r.Answered, r.Retried, r.Errors)
	}
}

// A port of another protocol is named, and is a matter of the options.
func TestForeignPorts(t *testing.T) {
	const head = "GET / HTTP/1.1: response head is not HTTP/1.x: "
	status := func(line string) string {
		return "HTTP/1.1 400 Bad Request\r\nContent-Length: " + strconv.Itoa(len(line)) +
			"\r\n\r\n" + line
	}
	for text, want := range map[string]struct {
		text  string
		party socket.Party
	}{
		"\x15\x03\x01\x00\x02\x02\x46": {
			head + "the port speaks TLS; use https://", socket.Options},
		"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64": {
			head + "the port speaks HTTP/2; use h2c://", socket.Options},
		"SSH-2.0-OpenSSH_9.2\r\n": {head + `it begins with "SSH-2.0-OpenSSH_9.2"`, ""},
		status("<h1>400 Bad Request</h1>The plain HTTP request was sent to HTTPS port"): {
			"GET / HTTP/1.1: status 400: the port speaks TLS; use https://", socket.Options},
		status("Client sent an HTTP request to an HTTPS server.\n"): {
			"GET / HTTP/1.1: status 400: the port speaks TLS; use https://", socket.Options},
		status("<center>No required SSL certificate was sent</center>"): {
			"GET / HTTP/1.1: status 400: " + socket.NoCertificate, socket.Options},
		status("no such key"): {"GET / HTTP/1.1: status 400, want 200", ""},
	} {
		r := good(t, &world{serve: func(call) reply { return raw(text) }}, Spec{
			Model: record.Open, Schedule: even(10), Connections: 1, Drain: time.Second})
		if r.Errors.Example != want.text || r.Errors.Party != string(want.party) {
			t.Errorf("%q: %q of %q, want %q of %q", text, r.Errors.Example, r.Errors.Party,
				want.text, want.party)
		}
	}
}

// A load by number sends all its requests, also those of users whose connection the server has
// closed after the response before.
func TestUsersOfClosingServers(t *testing.T) {
	w := &world{serve: func(call) reply {
		return raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	}, connect: func(int) (time.Duration, error) { return 25 * time.Millisecond, nil }}
	r := good(t, w, Spec{Model: record.Closed, Connections: 3, Requests: 10,
		Window: 24 * time.Hour, Users: users(pace.Flat(3), Think{})})
	if r.Answered != 10 || r.Scheduled != 10 || len(w.calls) != 10 || r.Errors.Total() != 0 {
		t.Errorf("%d of %d answered, %d sent, %+v", r.Answered, r.Scheduled, len(w.calls), r.Errors)
	}
}
