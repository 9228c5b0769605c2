package load

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/load/engine/socket"
	"prony.example/record"
)

// raw responds with text unchanged, after a millisecond.
func raw(text ...string) reply { return reply{after: time.Millisecond, pieces: text} }

// cut responds like raw and closes the connection after the last piece.
func cut(op Op, err error, text ...string) reply {
	return reply{after: time.Millisecond, pieces: text, end: true, op: op, err: err}
}

// Every tenth request fails in one way: 20 of 200 arrivals and no others, with the first as the
// example.
func tenth(t *testing.T, wrong reply, of func(record.Errors) int64, want string) {
	t.Helper()
	w := &world{serve: func(c call) reply {
		if c.n%10 == 0 {
			return wrong
		}
		return answer(time.Millisecond, "ok")
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(200), Connections: 8,
		Drain: time.Second, Timeout: 50 * time.Millisecond})
	if got := of(r.Errors); got != 20 {
		t.Errorf("%d of its class, want 20: %+v", got, r.Errors)
	}
	counts{scheduled: 200, sent: 200, done: r.Done, answered: 180, failed: 20}.check(t, r)
	// Timeouts are also part of the response times; the last one can come after the window.
	timeouts := r.Errors.Timeout
	if r.ErrorTime.Count != 20 || r.ResponseTime.Count != 180+timeouts {
		t.Errorf("%d error times, %d response times", r.ErrorTime.Count, r.ResponseTime.Count)
	}
	if failed := sum(r.Series.Failed); failed != 20 && (timeouts == 0 || failed < 18) {
		t.Errorf("the series has %d failures", failed)
	}
	if r.Errors.Example != want {
		t.Errorf("example %q\n   want %q", r.Errors.Example, want)
	}
}

// Only over HTTP/1.1 does the example name this version: engines of other protocols translate.
func TestExampleNamesNoOtherProtocol(t *testing.T) {
	for protocol, want := range map[string]string{
		"":              "GET / HTTP/1.1: status 503, want 200",
		"HTTP/1.1, TLS": "GET / HTTP/1.1: status 503, want 200",
		"HTTP/2":        "GET /: status 503, want 200",
		"gRPC":          "GET /: status 503, want 200",
	} {
		w := &world{serve: func(call) reply {
			return raw("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nok")
		}}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 1,
			Drain: time.Second, Timeout: time.Second, Describe: EngineInfo{Protocol: protocol}})
		if r.Errors.Example != want {
			t.Errorf("%q: example %q, want %q", protocol, r.Errors.Example, want)
		}
	}
}

func TestFailuresByClass(t *testing.T) {
	check := func(name string, wrong reply, of func(record.Errors) int64, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) { tenth(t, wrong, of, "GET / HTTP/1.1: "+want) })
	}
	status := func(e record.Errors) int64 { return e.Status }
	body := func(e record.Errors) int64 { return e.Body }
	parse := func(e record.Errors) int64 { return e.Parse }
	read := func(e record.Errors) int64 { return e.Read }
	write := func(e record.Errors) int64 { return e.Write }
	timeout := func(e record.Errors) int64 { return e.Timeout }
	length := func(n string) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: " + n + "\r\n\r\n"
	}

	check("status", raw("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nok"), status,
		"status 503, want 200")
	check("no status of gRPC", raw("HTTP/1.1 999 Denied\r\nContent-Length: 2\r\n\r\nok"), status,
		"status 999, want 200")
	check("other body", raw(length("2")+"no"), body,
		"body of 2 bytes is not the expected one (2 bytes)"+
			": byte 1 begins \"no\", want \"ok\"")
	check("no body", raw(length("0")), body,
		"body of 0 bytes is not the expected one (2 bytes)"+
			": it lacks \"ok\"")
	check("short body", raw(length("1")+"o"), body,
		"body of 1 bytes is not the expected one (2 bytes)"+
			": it lacks \"k\"")
	check("long body", raw(length("5"), "ok", "!!!"), body,
		"body of 5 bytes is not the expected one (2 bytes)"+
			": it goes on with \"!!!\"")
	check("much longer body", raw(length("5000")+"ok", strings.Repeat("!", 4998)), body,
		"body of 5000 bytes is not the expected one (2 bytes)"+
			": it goes on with \"!!!!!!!!!!!!!!!!!!!!!!!!\"")
	check("no HTTP", raw("220 mail ready\r\n\r\n"), parse, "response head is not HTTP/1.x")
	check("closed early", cut(Reading, nil, length("9")+"ok"), read,
		"the server closed the connection before the answer was whole")
	check("closed amidst the head", cut(Reading, nil, "HTTP/1.1 2"), read,
		"the server closed the connection before the answer was whole")
	check("reset", cut(Reading, syscall.ECONNRESET, "H"), read, "connection reset by peer")
	check("write", cut(Writing, syscall.EPIPE, "H"), write, "broken pipe")
	check("longer than it says", raw(length("2")+"ok!"), body,
		"more follows than its head announces")
	check("two answers", raw(length("2")+"ok"+length("2")+"ok"), body,
		"more follows than its head announces")
	check("silence", reply{}, timeout, "no whole answer within the timeout")
	// A body that ends with the connection is incomplete if the connection is reset.
	check("reset body", cut(Reading, syscall.ECONNRESET, "HTTP/1.1 200 OK\r\n\r\n", "ok"), read,
		"connection reset by peer")
}

// The example is a failure that counts: not one of the lead-in, nor of connecting.
func TestTheExampleIsCounted(t *testing.T) {
	w := &world{
		connect: func(n int) (time.Duration, error) {
			if n == 1 {
				return 0, errRefused
			}
			return 0, nil
		},
		serve: func(c call) reply {
			if c.n <= 5 {
				return raw("nonsense\r\n\r\n")
			}
			return answer(time.Millisecond, "ok")
		},
	}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 4,
		Lead:  100 * time.Millisecond,
		Drain: time.Second})
	if r.Errors != (record.Errors{}) {
		t.Errorf("%+v, want none at all", r.Errors)
	}
}

// A connect takes 10 ms: of a hundred there are 8 at once, then as many more as are open. If none
// ever opens, the others are tried after the timeout.
func TestConnectionsComeGently(t *testing.T) {
	counts := func(w *world) (at []int64, n []int) {
		for _, o := range w.opened {
			o -= w.opened[0]
			if len(at) == 0 || o > at[len(at)-1] {
				at, n = append(at, o), append(n, 0)
			}
			n[len(n)-1]++
		}
		return at, n
	}
	s := Spec{Model: record.Closed, Connections: 100, Timeout: time.Second}
	w := &world{serve: after(10 * time.Millisecond),
		connect: func(int) (time.Duration, error) { return 10 * time.Millisecond, nil }}
	good(t, w, s)
	at, n := counts(w)
	if !slices.Equal(at, []int64{0, 10 * ms, 20 * ms, 30 * ms}) ||
		!slices.Equal(n, []int{8, 16, 32, 44}) {
		t.Errorf("%d connections at %d ns", n, at)
	}
	w = &world{connect: func(int) (time.Duration, error) { return time.Hour, nil }}
	_, err := simulate(t, w, s)
	if err == nil || !strings.Contains(err.Error(), "none was within 1s; check that the service "+
		"runs and speaks the protocol of the URL") {
		t.Errorf("error %v", err)
	}
	if at, n := counts(w); !slices.Equal(n, []int{8, 92}) || at[1] != int64(s.Timeout) {
		t.Errorf("without an answer %d connections at %d ns", n, at)
	}
}

// A server that closes each connection without a response is tried again every 20 ms, not as fast
// as the machine can: per second with 2 connections, 2·1000/20 = 100 times plus the first two.
func TestRetriesAreSpaced(t *testing.T) {
	check := func(name string, w *world, s Spec, class func(record.Errors) int64,
		most int) *Result {
		t.Helper()
		r := good(t, w, s)
		if w.attempts > most || w.attempts < most*3/5 {
			t.Errorf("%s: %d attempts to connect, want at most %d and not far from it", name,
				w.attempts, most)
		}
		gaps := map[int64]int{}
		for i := 2; i < len(w.opened); i++ {
			if gap := w.opened[i] - w.opened[i-2]; gap < retryAfterNs {
				gaps[gap]++
			}
		}
		if len(gaps) != 0 {
			t.Errorf("%s: retries after %d ns", name, gaps)
		}
		if class(r.Errors) == 0 || class(r.Errors) != r.Errors.Total() {
			t.Errorf("%s: %+v", name, r.Errors)
		}
		return r
	}
	ends := func(call) reply { return reply{end: true, op: Reading} }
	for _, s := range []Spec{
		{Model: record.Closed, Connections: 2},
		{Model: record.Open, Schedule: even(5000), Connections: 2},
	} {
		r := check(s.Model, &world{serve: ends}, s, func(e record.Errors) int64 { return e.Read },
			102)
		if r.Done != 0 || r.Errors.Read > 102 {
			t.Errorf("%s: %d done, %+v", s.Model, r.Done, r.Errors)
		}
	}
	// A listener that goes away after the first connect of each: refused, and again after 20 ms.
	refuses := &world{serve: ends, connect: func(n int) (time.Duration, error) {
		if n > 2 {
			return 0, errRefused
		}
		return 0, nil
	}}
	r := good(t, refuses, Spec{Model: record.Open, Schedule: even(1000), Connections: 2})
	// Two requests are lost with their connections; nothing else was sent, and 998 wait.
	counts{scheduled: 1000, sent: 2, failed: 2, censored: 998}.check(t, r)
	if e := r.Errors; e.Connect < 60 || e.Connect > 100 || e.Read != 2 {
		t.Errorf("%+v, want about 98 refused connects", e)
	}
	// No request leaves the queue of 1,000/s, because refused connects are no departures. (At 100
	// ms, the backlog is 98.)
	exactly(t, "backlog", r.BacklogPerS, 1000)
}

// A connect that never ends is given up after the timeout and tried again.
func TestHangingConnectsAreGivenUp(t *testing.T) {
	w := &world{serve: after(time.Millisecond), connect: func(n int) (time.Duration, error) {
		if n == 2 {
			return time.Hour, nil
		}
		return 0, nil
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 2,
		Drain: time.Second, Timeout: 100 * time.Millisecond})
	counts{scheduled: 100, sent: 100, done: 100, answered: 100}.check(t, r)
	if w.attempts != 3 || r.Errors.Connect != 1 {
		t.Errorf("%d attempts, %+v; want a second one for the connect that hung", w.attempts,
			r.Errors)
	}
}

// A connection that has served a response is renewed at once; this fails no request.
func TestConnectionsAreRenewed(t *testing.T) {
	check := func(name string, serve func(c call) reply, requests, renewed int64) {
		t.Helper()
		w := &world{serve: serve}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
			Drain: time.Second})
		if r.Answered != requests || r.Errors.Total() != 0 || r.Reconnects != renewed ||
			r.OwnLag.MaxNs != 1 {
			t.Errorf("%s: %d answered, %d renewed, %+v, own lag %d; want %d and %d", name,
				r.Answered, r.Reconnects, r.Errors, r.OwnLag.MaxNs, requests, renewed)
		}
		if int64(w.attempts) != renewed+1 {
			t.Errorf("%s: %d attempts to connect, want %d", name, w.attempts, renewed+1)
		}
	}
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
	check("keeps", func(call) reply { return raw(ok + "\r\nok") }, 100, 0)
	check("closes", func(call) reply { return raw(ok + "Connection: close\r\n\r\nok") }, 100, 100)
	check("until close", func(call) reply {
		return cut(Reading, nil, "HTTP/1.1 200 OK\r\n\r\no", "k")
	}, 100, 100)
	// A server may announce on an idle connection that it will not wait for another request.
	check("farewell", func(c call) reply {
		r := raw(ok + "\r\nok")
		r.gap, r.extra = 2*time.Millisecond, "HTTP/1.1 408 Too Late\r\n\r\n"
		return r
	}, 100, 100)
	// The server closes the idle connection after each tenth request.
	check("idle close", func(c call) reply {
		r := raw(ok + "\r\nok")
		if c.onConn == 10 {
			r.gap, r.end = 2*time.Millisecond, true
		}
		return r
	}, 100, 10)
}

// Bytes without a request on an idle connection fail no request, and are counted.
func TestUnaskedAnswers(t *testing.T) {
	w := &world{serve: func(call) reply {
		r := raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		r.gap, r.extra = 2*time.Millisecond, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		return r
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second})
	counts{scheduled: 100, sent: 100, done: 100, answered: 100}.check(t, r)
	if e := r.Errors; e.Unsolicited != 100 || e.Total() != 100 || r.Reconnects != 100 ||
		e.Example != "an unsolicited response (40 bytes)" {
		t.Errorf("%d renewed, %+v", r.Reconnects, e)
	}
}

// Responses come in pieces; the first byte is when the first piece came: 1 ms, then four more
// pieces.
func TestPiecesOfAnAnswer(t *testing.T) {
	pieces := []string{"HTTP/1.1 20", "0 OK\r\nTransfer-Encoding: chunked\r\n\r",
		"\n1\r\no\r\n1", "\r\nk\r\n0\r\n\r", "\n"}
	w := &world{serve: func(call) reply {
		return reply{after: time.Millisecond, gap: 2 * time.Millisecond, pieces: pieces}
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(50), Connections: 1,
		Drain: time.Second})
	counts{scheduled: 50, sent: 50, done: 50, answered: 50}.check(t, r)
	about(t, "first byte", r.FirstByte.P50Ns, 1*ms)
	about(t, "service", r.ServiceTime.P50Ns, 9*ms)
	if want := int64(50 * len(strings.Join(pieces, ""))); r.BytesIn != want {
		t.Errorf("%d bytes came in, want %d", r.BytesIn, want)
	}
	if want := int64(50 * len(w.calls[0].text)); r.BytesOut != want {
		t.Errorf("%d bytes went out, want %d", r.BytesOut, want)
	}
}

// An engine that fails ends the load with its error; a canceled context ends it with its own.
func TestBrokenEngine(t *testing.T) {
	w := &world{serve: after(time.Millisecond),
		broken: errors.New("epoll_wait: bad file descriptor")}
	_, err := simulate(t, w, Spec{Name: "peak", Model: record.Closed, Connections: 4,
		Cores: []int{0, 0}})
	if err == nil || !strings.Contains(err.Error(), "load peak: epoll_wait: bad file") {
		t.Errorf("error is %v", err)
	}
}

// The record says who caused the first error: here, of connects after the first two.
func TestPartyOfErrors(t *testing.T) {
	for err, want := range map[error]string{syscall.EADDRNOTAVAIL: record.PartyMachine,
		errRefused: ""} {
		w := &world{serve: after(time.Millisecond), connect: func(n int) (time.Duration, error) {
			if n > 2 {
				return 0, err
			}
			return 0, nil
		}}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 2, Churn: 5})
		if e := r.Errors; e.Connect == 0 || e.Example == "" || e.Party != want {
			t.Errorf("%v: %+v, want the party %q", err, e, want)
		}
	}
}

func TestNoConnection(t *testing.T) {
	w := &world{connect: refuse}
	for name, called := range map[string]string{"peak": "load peak", "load": "load"} {
		_, err := simulate(t, w, Spec{Name: name, Model: record.Closed, Connections: 4})
		want := called + ": no connection to 127.0.0.1:1 could be opened: connect: " +
			"connection refused; is the service running?"
		if err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	// Something may listen at the port, but for TCP.
	w.connect = func(int) (time.Duration, error) {
		return time.Millisecond, errors.New("QUIC handshake: connection refused")
	}
	if _, err := simulate(t, w, Spec{Model: record.Closed, Connections: 4}); err == nil ||
		!strings.HasSuffix(err.Error(), "check that the service runs and speaks HTTP/3, which "+
			"needs this port of UDP") {
		t.Errorf("error is %v, want a hint at UDP", err)
	}
	// What this machine or the options cause is no question about the service.
	for err, want := range map[error]string{
		syscall.EADDRNOTAVAIL: "connect: no free port on this machine",
		socket.ErrNone:        "connect: no more sockets",
		syscall.EINVAL:        "needs a zone",
	} {
		w := &world{connect: func(int) (time.Duration, error) { return time.Millisecond, err }}
		_, got := simulate(t, w, Spec{Model: record.Closed, Connections: 4})
		if got == nil || !strings.Contains(got.Error(), want) ||
			strings.Contains(got.Error(), "is the service running") {
			t.Errorf("error is %v, want %s", got, want)
		}
	}
	// Failed connections are retried 20 ms later; the load begins with the open ones.
	w = &world{serve: after(time.Millisecond), connect: func(n int) (time.Duration, error) {
		if n <= 3 {
			return 0, errRefused
		}
		return 0, nil
	}}
	r := good(t, w, Spec{Model: record.Closed, Connections: 4, Lead: 100 * time.Millisecond})
	if w.attempts != 7 || r.Errors.Total() != 0 || w.most != 4 {
		t.Errorf("%d attempts, %+v, %d at once", w.attempts, r.Errors, w.most)
	}
	var slots []int
	for _, c := range w.calls {
		if !slices.Contains(slots, c.slot) {
			slots = append(slots, c.slot)
		}
	}
	if len(slots) != 4 {
		t.Errorf("connections %d were used, want four", slots)
	}
}
