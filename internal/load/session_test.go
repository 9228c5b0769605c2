package load_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"prony/internal/load"
	"prony/internal/load/extract"
	"prony/internal/result"
	"prony/internal/tests"
)

// logins is a real service with sessions: who is not logged in, gets 401.
type logins struct {
	http.ServeMux
	made    atomic.Int64
	refused atomic.Int64
}

func newLogins(t *testing.T) (*logins, netip.AddrPort) {
	l := &logins{}
	l.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Basic b3BlbiBzZXNhbWU=" {
			l.refuse(w)
			return
		}
		id := fmt.Sprintf("s%d", l.made.Add(1))
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: id, Path: "/", HttpOnly: true})
		fmt.Fprintf(w, `{"token": "Bearer %s"}`, id)
	})
	l.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if c, err := r.Cookie("sid"); err == nil {
			who = c.Value
		}
		if !strings.HasPrefix(who, "s") {
			l.refuse(w)
			return
		}
		fmt.Fprint(w, who)
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

// login is a step that takes something out of the answer.
func login(extracts ...extract.Capture) load.Request {
	return load.Request{Name: "login", Method: "POST", Path: "/login", WantSize: -1,
		Headers: []load.Header{{Name: "Authorization", Value: "Basic ${PRONY_TEST_LOGIN}"}},
		Extract: extracts}
}

func ask(t *testing.T, to netip.AddrPort, s load.Scenario) *load.Result {
	t.Helper()
	tests.Cores(t)
	s.KeyLo, s.KeyHi = 1, 1
	return offerTo(t, to, load.Spec{Model: result.Closed, Connections: 4, Scenario: s,
		Window: 200 * time.Millisecond, Drain: time.Second, Timeout: time.Second})
}

// A login's token has a blank, and goes into a field as it came; the secret is of the environment.
func TestASessionByToken(t *testing.T) {
	t.Setenv("PRONY_TEST_LOGIN", "b3BlbiBzZXNhbWU=")
	l, to := newLogins(t)
	me := load.Request{Name: "me", Method: "GET", Path: "/me", WantSize: -1,
		Headers: []load.Header{{Name: "Authorization", Value: "{token}"}}}
	r := ask(t, to, load.Scenario{Flow: true, Requests: []load.Request{
		login(extract.Capture{Var: "token", From: must(extract.JSON("token"))}), me}})
	if r.Errors.Total() != 0 || r.Answered < 20 || l.refused.Load() != 0 {
		t.Errorf("%d answers, %+v, %d refused", r.Answered, r.Errors, l.refused.Load())
	}
	// The same token in a path would end it, and is told.
	me.Headers, me.Path = nil, "/me?of={token}"
	r = ask(t, to, load.Scenario{Flow: true, Requests: []load.Request{
		login(extract.Capture{Var: "token", From: must(extract.JSON("token"))}), me}})
	if r.Errors.Total() == 0 || !strings.Contains(fmt.Sprint(r.Errors), "token") {
		t.Errorf("a blank in a path: %+v", r.Errors)
	}
}

// What the environment lacks, or what would break the head, is told before anything is sent.
func TestAnEnvironmentThatDoesNotDo(t *testing.T) {
	l, to := newLogins(t)
	for value, want := range map[string]string{
		"":          "the environment has no PRONY_TEST_LOGIN",
		"a\r\nB: c": "the value of PRONY_TEST_LOGIN in the environment has a line's end",
	} {
		if value != "" {
			t.Setenv("PRONY_TEST_LOGIN", value)
		}
		_, err := load.Run(t.Context(), load.Spec{Address: to, Model: result.Closed, Connections: 1,
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
