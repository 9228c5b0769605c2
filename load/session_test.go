package load_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"prony.example/load"
	"prony.example/load/extract"
	"prony.example/record"
)

// logins is a real service with sessions: requests without a login get 401.
type logins struct {
	http.ServeMux
	made    atomic.Int64
	refused atomic.Int64
	stale   atomic.Int64 // cookies without a value, which were deleted
	seen    sync.Map     // clients of /me, by the row that came with the request
}

func newLogins(t *testing.T) (*logins, netip.AddrPort) {
	l := &logins{}
	l.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Basic b3BlbiBzZXNhbWU=" {
			l.refuse(w)
			return
		}
		if _, err := r.Cookie("sid"); err == nil { // only clients without a session log in
			l.refuse(w)
			return
		}
		id := fmt.Sprintf("s%d", l.made.Add(1))
		http.SetCookie(w, &http.Cookie{Name: "other", Value: "x", Path: "/elsewhere"})
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: id, Path: "/", HttpOnly: true})
		fmt.Fprintf(w, `{"token": "Bearer %s"}`, id)
	})
	l.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if c, err := r.Cookie("sid"); err == nil {
			who = c.Value
			if who == "" {
				l.stale.Add(1)
			}
		}
		if !strings.HasPrefix(who, "s") {
			l.refuse(w)
			return
		}
		l.seen.Store(who+" "+r.FormValue("name"), true)
		fmt.Fprint(w, who)
	})
	l.HandleFunc("GET /bye", func(w http.ResponseWriter, r *http.Request) {
		gone := &http.Cookie{Name: "sid", Path: "/", MaxAge: -1}
		if r.FormValue("by") == "date" {
			gone.MaxAge, gone.Expires = 0, time.Unix(1, 0)
		}
		http.SetCookie(w, gone)
	})
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return l, s.Listener.Addr().(*net.TCPAddr).AddrPort()
}

func (l *logins) refuse(w http.ResponseWriter) {
	l.refused.Add(1)
	http.Error(w, "who are you?", http.StatusUnauthorized)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// login is a step that extracts a value from the response.
func login(extracts ...extract.Capture) load.Request {
	return load.Request{Name: "login", Method: "POST", Path: "/login", WantSize: -1,
		Headers: []load.Header{{Name: "Authorization", Value: "Basic ${PRONY_TEST_LOGIN}"}},
		Extract: extracts}
}

func ask(t *testing.T, to netip.AddrPort, s load.Scenario) *load.Result {
	t.Helper()
	s.KeyLo, s.KeyHi = 1, 1
	return offerTo(t, to, load.Spec{Model: record.Closed, Connections: 4, Scenario: s,
		Requests: 200, Window: time.Minute, Drain: 10 * time.Second, Timeout: 10 * time.Second})
}

// The login's token contains a space and is inserted in a header field unchanged; the secret comes
// from the environment.
func TestASessionByToken(t *testing.T) {
	t.Setenv("PRONY_TEST_LOGIN", "b3BlbiBzZXNhbWU=")
	l, to := newLogins(t)
	who := me(load.Header{Name: "Authorization", Value: "{token}"})
	r := ask(t, to, load.Scenario{Flow: true, Requests: []load.Request{
		login(extract.Capture{Var: "token", From: must(extract.JSON("token"))}), who}})
	if r.Errors.Total() != 0 || r.Answered < 20 || l.refused.Load() != 0 {
		t.Errorf("%d answers, %+v, %d refused", r.Answered, r.Errors, l.refused.Load())
	}
	// The same token in a path would end it, and is reported.
	who.Headers, who.Path = nil, "/me?of={token}"
	r = ask(t, to, load.Scenario{Flow: true, Requests: []load.Request{
		login(extract.Capture{Var: "token", From: must(extract.JSON("token"))}), who}})
	if r.Errors.Total() == 0 || !strings.Contains(fmt.Sprint(r.Errors), "token") {
		t.Errorf("a blank in a path: %+v", r.Errors)
	}
}

// Missing environment variables, and values that would break the head, are reported before anything
// is sent.
func TestAnEnvironmentThatDoesNotDo(t *testing.T) {
	l, to := newLogins(t)
	for _, row := range [][2]string{ // the unset variable comes first
		{"", "the environment has no PRONY_TEST_LOGIN"},
		{"a\r\nB: c", "the value of PRONY_TEST_LOGIN in the environment has a line's end"},
	} {
		value, want := row[0], row[1]
		if value != "" {
			t.Setenv("PRONY_TEST_LOGIN", value)
		}
		_, err := load.Run(t.Context(), load.Spec{Address: to, Model: record.Closed, Connections: 1,
			Window: time.Second, Timeout: time.Second, Engine: epollEngine,
			Scenario: load.Scenario{Requests: []load.Request{login()}, KeyLo: 1, KeyHi: 1}})
		if err == nil || !strings.Contains(err.Error(), want) || value != "" &&
			strings.Contains(err.Error(), value) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if l.refused.Load() != 0 {
		t.Error("something was sent")
	}
}

// me requests the client's identity.
func me(fields ...load.Header) load.Request {
	return load.Request{Name: "me", Method: "GET", Path: "/me", WantSize: -1, Headers: fields}
}

// fine requires responses without errors, and returns the number of logins.
func (l *logins) fine(t *testing.T, r *load.Result) int64 {
	t.Helper()
	if r.Errors.Total() != 0 || r.Answered < 20 || l.refused.Load() != 0 {
		t.Errorf("%d answers, %+v, %d refused", r.Answered, r.Errors, l.refused.Load())
	}
	return l.made.Load()
}

// A setup is sent once, or once per user, and is excluded from results: the server received one
// login, or four, one for each connection.
func TestSetup(t *testing.T) {
	t.Setenv("PRONY_TEST_LOGIN", "b3BlbiBzZXNhbWU=")
	token := extract.Capture{Var: "token", From: must(extract.JSON("token"))}
	for _, perUser := range []bool{false, true} {
		l, to := newLogins(t)
		s := load.Scenario{Requests: []load.Request{
			me(load.Header{Name: "Authorization", Value: "{token}"})}}
		s.Setup, s.PerUser = []load.Request{login(token)}, perUser
		r := ask(t, to, s)
		if got, want := l.fine(t, r), map[bool]int64{false: 1, true: 4}[perUser]; got != want {
			t.Errorf("a setup for each user: %v; %d logins, want %d", perUser, got, want)
		}
		if len(r.Routes) > 1 {
			t.Errorf("the setup is among the numbers: %+v", r.Routes)
		}
		users := 0
		l.seen.Range(func(any, any) bool { users++; return true })
		if want := map[bool]int{false: 1, true: 4}[perUser]; users != want {
			t.Errorf("the service saw %d users, want %d", users, want)
		}
	}
	// A failed setup ends the load before it begins, with a message.
	_, to := newLogins(t)
	t.Setenv("PRONY_TEST_LOGIN", "wrong")
	s := load.Scenario{Requests: []load.Request{me()}, KeyLo: 1, KeyHi: 1}
	s.Setup = []load.Request{login()}
	_, err := load.Run(t.Context(), load.Spec{Address: to, Model: record.Closed, Connections: 1,
		Window: time.Second, Timeout: time.Second, Engine: epollEngine, Scenario: s})
	if err == nil || !strings.Contains(err.Error(), "of user 0: login: status 401, want 200") {
		t.Errorf("a setup that is refused: %v", err)
	}
}

// Each user keeps its cookies. A flow begins without a session, so the login in it is never
// refused; cookies of the setup stay.
func TestCookies(t *testing.T) {
	t.Setenv("PRONY_TEST_LOGIN", "b3BlbiBzZXNhbWU=")
	l, to := newLogins(t)
	s := load.Scenario{Flow: true, Requests: []load.Request{login(), me()}}
	s.Cookies = true
	r := ask(t, to, s)
	if n := l.fine(t, r); n < r.Answered/2-8 || n > r.Answered/2+8 {
		t.Errorf("%d logins, %d answers", n, r.Answered)
	}
	// With the setup's cookie, in a mix.
	l, to = newLogins(t)
	s = load.Scenario{Requests: []load.Request{me()}}
	s.Cookies, s.PerUser, s.Setup = true, true, []load.Request{login()}
	if n := l.fine(t, ask(t, to, s)); n != 4 {
		t.Errorf("%d logins, want 4", n)
	}
	// A deleted cookie is no longer sent: the server refuses clients without one.
	for _, path := range []string{"/bye", "/bye?by=date"} {
		l, to = newLogins(t)
		bye := load.Request{Name: "bye", Method: "GET", Path: path, WantSize: -1}
		s = load.Scenario{Flow: true, Requests: []load.Request{login(), bye, me()}}
		s.Cookies = true
		r = ask(t, to, s) // the last responses can come after the window
		more := l.refused.Load() - r.Errors.Status
		if r.Errors.Status == 0 || more < 0 || more > 8 || l.stale.Load() > 0 {
			t.Errorf("after %s %+v, %d refused, %d without a value", path, r.Errors,
				l.refused.Load(), l.stale.Load())
		}
	}
	// Without a jar no client has a session.
	l, to = newLogins(t)
	if r := ask(t, to, load.Scenario{Requests: []load.Request{me()}}); r.Answered != 0 {
		t.Errorf("a stranger got %d answers", r.Answered)
	}
}

// Rows are used in turn, or stay with the user whose setup used them.
func TestRows(t *testing.T) {
	t.Setenv("PRONY_TEST_LOGIN", "b3BlbiBzZXNhbWU=")
	data := func(of *load.Scenario, names ...string) {
		of.Columns = []string{"name"}
		for _, n := range names {
			of.Rows = append(of.Rows, [][]byte{[]byte(n)})
		}
		for i := range of.Requests {
			of.Requests[i].Path += "?name={name}"
		}
	}
	count := func(l *logins) (n int) {
		l.seen.Range(func(any, any) bool { n++; return true })
		return n
	}
	for _, row := range []struct {
		perUser, drawn bool
		want           int
	}{{false, false, 3}, {false, true, 3}, {true, false, 4}} { // three names of one; four users
		l, to := newLogins(t)
		s := load.Scenario{Requests: []load.Request{me()}}
		s.Cookies, s.Setup, s.PerUser = true, []load.Request{login()}, row.perUser
		s.Drawn = row.drawn
		data(&s, "ann", "ben", "cem")
		l.fine(t, ask(t, to, s))
		if got := count(l); got != row.want {
			t.Errorf("%+v: the service saw %d pairs of user and name", row, got)
		}
	}
	s := load.Scenario{Requests: []load.Request{me()}, KeyLo: 1, KeyHi: 1}
	data(&s, "ann", "b b")
	_, to := newLogins(t)
	_, err := load.Run(t.Context(), load.Spec{Address: to, Model: record.Closed, Connections: 1,
		Window: time.Second, Timeout: time.Second, Engine: epollEngine, Scenario: s})
	if err == nil || !strings.Contains(err.Error(), "row 2: the value of name has a blank") {
		t.Errorf("a blank in a path: %v", err)
	}
}
