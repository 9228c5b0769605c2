package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/load/extract"
	"prony.example/record"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// owners is a flow like the pet clinic's: create an owner, who gets an id, read the owner, and
// after a pause add a pet.
func owners() Scenario {
	return Scenario{Flow: true, KeyLo: 1, KeyHi: 1000, Requests: []Request{
		{Name: "create", Method: "POST", Path: "/owners", Body: `{"name": "n{key}"}`, Status: 201,
			WantSize: -1, Extract: []extract.Capture{
				{Var: "id", From: must(extract.JSON("owner.id"))}}},
		{Name: "read", Method: "GET", Path: "/owners/{id}", Want: "owner {id}", HasWant: true,
			Pause: 100 * time.Millisecond},
		{Name: "pet", Method: "POST", Path: "/owners/{id}/pets", Body: "x", WantSize: -1},
	}}
}

// clinic serves the flow, with an error in every nth request of a kind.
func clinic(wrong string, nth int) func(call) reply {
	id, seen := 0, 0
	return func(c call) reply {
		line, _, _ := strings.Cut(c.text, "\r\n")
		method, path, _ := strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
		body, status := "ok", 200
		kind := "read"
		switch {
		case path == "/owners":
			id++
			kind, status, body = "create", 201, fmt.Sprintf(`{"owner": {"id": %d}}`, id)
		case method == "POST":
			kind = "pet"
		default:
			body = "owner " + strings.TrimPrefix(path, "/owners/")
		}
		if kind == wrong {
			if seen++; seen%nth == 0 {
				body = "wrong"
			}
		}
		return reply{after: 10 * time.Millisecond, pieces: []string{fmt.Sprintf(
			"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)}}
	}
}

// A flow takes 10 + 10 + 100 + 10 ms; each of its steps has its own book.
func TestFlows(t *testing.T) {
	w := &world{serve: clinic("", 0)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 8,
		Drain: time.Second, Scenario: owners()})
	// The pets of the last two owners are due after the window, and count in neither.
	if r.Scheduled != 58 || r.Answered != 58 || r.Censored != 0 || r.Errors.Total() != 0 {
		t.Fatalf("scheduled %d, answered %d, censored %d, %+v", r.Scheduled, r.Answered, r.Censored,
			r.Errors)
	}
	if n, d := r.FlowTime.Count, r.FlowTime.MaxNs/ms; n != 20 || d != 130 {
		t.Errorf("%d flows of up to %d ms, want 20 of 130", n, d)
	}
	for i, name := range []string{"create", "read", "pet"} {
		x, n := r.Routes[i], int64(20-2*(i/2))
		if x.Name != name || x.Sent != n || x.Answered != n || x.ResponseTime.Count != n ||
			x.ResponseTime.MaxNs/ms != 10 {
			t.Errorf("route %d: %+v", i, x)
		}
	}
	for k, line := range w.lines()[:6] {
		if k == 0 && line != "POST /owners HTTP/1.1" {
			t.Errorf("the first request is %q", line)
		}
	}
	if !slices.Contains(w.lines(), "POST /owners/17/pets HTTP/1.1") {
		t.Errorf("no pet for owner 17 in %q", w.lines())
	}
	if r.BacklogPerS > 1 || r.BacklogPerS < -1 {
		t.Errorf("the backlog grows by %g/s", r.BacklogPerS)
	}
}

// A flow ends with the step that fails; its later steps are not sent. Every fifth of 20 reads
// fails, so there are four pets fewer than the 18 that are due in the window; one of them is not
// due anyway.
func TestFlowsEndWithTheStepThatFails(t *testing.T) {
	w := &world{serve: clinic("read", 5)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 8,
		Drain: time.Second, Scenario: owners()})
	if r.Routes[1].Failed != 4 || r.Routes[2].Sent != 15 || r.FlowTime.Count != 16 ||
		r.Errors.Body != 4 || r.Censored != 0 {
		t.Errorf("%d reads failed, %d pets, %d flows, %+v, censored %d", r.Routes[1].Failed,
			r.Routes[2].Sent, r.FlowTime.Count, r.Errors, r.Censored)
	}
	// A missing value also ends it.
	w = &world{serve: clinic("create", 5)}
	r = good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 8,
		Drain: time.Second, Scenario: owners()})
	if r.Routes[0].Failed != 4 || r.Routes[1].Sent != 16 ||
		!strings.Contains(r.Errors.Example, "no value for variable id") {
		t.Errorf("%d creations failed, %d reads; %s", r.Routes[0].Failed, r.Routes[1].Sent,
			r.Errors.Example)
	}
}

// A value that would end the line of the next request is not inserted.
func TestValuesCannotBreakARequest(t *testing.T) {
	w := &world{serve: func(call) reply {
		body := `{"owner": {"id": "1 HTTP/1.1\r\nX: y"}}`
		return reply{after: ms10, pieces: []string{fmt.Sprintf(
			"HTTP/1.1 201 X\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}}
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(20), Connections: 8, Drain: time.Second,
		Scenario: owners()})
	if r.Errors.Body != 20 || r.Routes[1].Sent != 0 ||
		!strings.Contains(r.Errors.Example, "would break the request's head") {
		t.Errorf("%d reads were sent, %+v", r.Routes[1].Sent, r.Errors)
	}
}

// A flow whose connection is closed between two steps continues over a new one.
func TestFlowsOutliveTheirConnection(t *testing.T) {
	serve := clinic("", 0)
	w := &world{serve: func(c call) reply {
		r := serve(c)
		r.pieces[0] = strings.Replace(r.pieces[0], "\r\n", "\r\nConnection: close\r\n", 1)
		return r
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(10), Connections: 4,
		Drain: time.Second, Scenario: owners()})
	if r.FlowTime.Count != 10 || r.Errors.Total() != 0 || w.attempts < 30 {
		t.Errorf("%d flows, %d connections, %+v", r.FlowTime.Count, w.attempts, r.Errors)
	}
}

// Closed users also run flows: 4 users with 130 ms of flow and 70 ms of think time make 20 flows
// per second.
func TestUsersWalkFlows(t *testing.T) {
	w := &world{serve: clinic("", 0)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 4, Window: 10 * time.Second,
		Drain: time.Second, Scenario: owners(),
		Users: users(flat(4), Think{Kind: "constant", Lo: 70 * time.Millisecond})})
	if n := r.FlowTime.Count; n < 198 || n > 202 || r.Censored != 0 {
		t.Errorf("%d flows, want 200; %d censored", n, r.Censored)
	}
	w = &world{serve: clinic("", 0)}
	r = good(t, w, Spec{Model: record.Closed, Connections: 4, Window: 13 * time.Second,
		Drain: time.Second, Scenario: owners()})
	if n := r.FlowTime.Count; n < 399 || n > 401 { // 4·13/0.13
		t.Errorf("%d flows without thought, want 400", n)
	}
}

// Nobody can look into a compressed body, which the error names. Checks of the head need no remark.
func TestChecksOfCompressedBodies(t *testing.T) {
	check := func(finder *extract.Finder, coding, want string) {
		t.Helper()
		r := good(t, &world{serve: func(call) reply {
			return raw("HTTP/1.1 200 OK\r\nContent-Encoding: " + coding +
				"\r\nContent-Length: 2\r\n\r\n\x1f\x8b")
		}}, Spec{Model: record.Open, Schedule: even(10), Connections: 1, Drain: time.Second,
			Scenario: Scenario{Requests: []Request{{Method: "GET", Path: "/", WantSize: -1,
				Checks: []extract.Check{extract.Exists(finder, true)}}}}})
		if r.Errors.Body != 10 || !strings.HasSuffix(r.Errors.Example, want) {
			t.Errorf("%+v, want %q", r.Errors, want)
		}
	}
	id := must(extract.JSON("id"))
	check(id, "gzip", "json id exists; the body has Content-Encoding gzip, which is not decoded: "+
		"send Accept-Encoding: identity, or configure the service")
	check(id, "identity", "json id exists")
	check(must(extract.Header("x-id")), "gzip", "header x-id exists")
}

// Checks inspect head and body of the response.
func TestChecks(t *testing.T) {
	check := func(c extract.Check, bad int64) {
		t.Helper()
		w := &world{serve: func(c call) reply {
			body := fmt.Sprintf(`{"n": %d}`, c.n%10)
			return reply{after: ms10, pieces: []string{fmt.Sprintf(
				"HTTP/1.1 200 OK\r\nX-N: %d\r\nContent-Length: %d\r\n\r\n%s", c.n%4, len(body),
				body)}}
		}}
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 2,
			Drain: time.Second, Scenario: Scenario{Requests: []Request{{Method: "GET", Path: "/",
				WantSize: -1, Checks: []extract.Check{c}}}}})
		if r.Errors.Body != bad || r.Answered != 100-bad {
			t.Errorf("%v: %d failed, want %d: %s", &c, r.Errors.Body, bad, r.Errors.Example)
		}
	}
	check(must(extract.Is(must(extract.JSON("n")), "7", nil)), 90)
	check(must(extract.Is(must(extract.Header("x-n")), "3", nil)), 75)
	check(must(extract.Contains(extract.Body(), "n", nil)), 0)
}

const ms10 = 10 * time.Millisecond

// Progress reports count all that was due, sent and done, and each response time once.
func TestLive(t *testing.T) {
	for _, threads := range []int{1, 2} {
		w := &world{serve: after(50 * time.Millisecond)}
		var last Progress
		var responses int64
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 20,
			Cores: make([]int, threads), Drain: time.Second, Window: 3 * time.Second,
			Every: 250 * time.Millisecond, Detail: Full,
			Observer: ProgressFunc(func(p Progress) bool {
				if p.Elapsed < last.Elapsed || p.Done < last.Done {
					t.Errorf("went from %+v back to %+v", last.Totals, p.Totals)
				}
				last = p
				responses += p.Response.TotalCount()
				return true
			})})
		// The last report comes after the end and includes everything.
		if last.Done != 300 || responses != last.Done || last.Failed != 0 || last.InFlight != 0 {
			t.Errorf("%d threads: after %v %d done, %d response times", threads, last.Elapsed,
				last.Done, responses)
		}
		if last.Due != 300 {
			t.Errorf("after %v %d were due", last.Elapsed, last.Due)
		}
		if r.Answered != 300 {
			t.Errorf("%d answered", r.Answered)
		}
	}
}

// Brief reports count each response of the window's ended intervals once, and never more.
func TestBrief(t *testing.T) {
	for _, threads := range []int{1, 2} {
		w := &world{serve: after(50 * time.Millisecond)}
		var last Progress
		var responses int64
		r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 20,
			Cores: make([]int, threads), Lead: time.Second, Window: 3 * time.Second,
			Drain: time.Second, Every: 500 * time.Millisecond,
			Observer: ProgressFunc(func(p Progress) bool {
				if p.Elapsed <= last.Elapsed || p.Done < last.Done {
					t.Errorf("went from %+v back to %+v", last, p)
				}
				last = p
				responses += p.Answers
				if n := p.Answers; n > 0 && (!p.Window && p.Elapsed < 4*time.Second ||
					p.Response.Max()/ms != 50) {
					t.Errorf("after %v %d answers within %d ns", p.Elapsed, n, p.Response.Max())
				}
				return true
			})})
		// No brief report covers the last interval before the load has ended.
		if responses < 280 || responses > 290 || last.Failed != 0 || last.Done < 350 {
			t.Errorf("%d threads: after %v %d done, %d response times", threads, last.Elapsed,
				last.Done, responses)
		}
		if r.Answered != 300 {
			t.Errorf("%d answered", r.Answered)
		}
	}
}

// A load that its observer ends has the window so far.
func TestCutShort(t *testing.T) {
	w := &world{serve: after(10 * time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 2, Window: time.Hour,
		Every: 500 * time.Millisecond, Detail: Full,
		Observer: ProgressFunc(func(p Progress) bool { return p.Elapsed < time.Second })})
	if r.WindowNs < 1000*ms || r.WindowNs > 1100*ms {
		t.Errorf("the window was %d", r.WindowNs)
	}
	exactly(t, "throughput", r.ThroughputPerS, float64(r.Done)*1e9/float64(r.WindowNs))
	if _, err := simulate(t, &world{serve: after(ms10)}, Spec{Model: record.Closed, Connections: 2,
		Lead: time.Minute, Every: time.Second, Detail: Full,
		Observer: ProgressFunc(func(Progress) bool { return false })}); err == nil {
		t.Error("a load without a window is a result")
	}
}
