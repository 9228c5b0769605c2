package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/base/cli"
)

// members is a service that admits only users who logged in by name and password.
type members struct {
	turn            sync.Mutex
	logins, refused int
	users           map[string]bool
}

func (m *members) refuse(w http.ResponseWriter, why string) {
	m.refused++
	http.Error(w, why, http.StatusUnauthorized)
}

func (m *members) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if r.URL.Path == "/login" {
		name := r.FormValue("user")
		if r.FormValue("password") != "s3cret of "+name {
			m.refuse(w, "wrong password")
			return
		}
		m.logins++
		http.SetCookie(w, &http.Cookie{Name: "lang", Value: "en", Path: "/"})
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "id-" + name, Path: "/"})
		return
	}
	c, err := r.Cookie("sid")
	if err != nil || r.Header.Get("X-Id") != c.Value {
		m.refuse(w, "who are you?")
		return
	}
	m.users[c.Value] = true
	fmt.Fprintf(w, `{"user": %q}`, strings.TrimPrefix(c.Value, "id-"))
}

// The users of a file, each on a connection of its own, log in with a secret of the environment.
func TestLoadHasSessions(t *testing.T) {
	m := &members{users: map[string]bool{}}
	s := httptest.NewServer(m)
	defer s.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"users.csv": "user\nann\nben\ncem\n",
		"s.yaml": `name: many
cookies: true
data: users.csv
requests:
  - request: POST /login
    setup: user
    body: 'user={user}&password=${PRONY_TEST_PASSWORD} of {user}'
    type: application/x-www-form-urlencoded
    extract:
      id: {header: Set-Cookie, regex: 'sid=([^;]+)'}
  - request: GET /me
    headers: {X-Id: "{id}"}
    checks:
      - {json: user, is: "{user}"}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (string, int) {
		stdout, stderr, exit := really("load", s.URL, "-c", "3", "-n", "300", "--scenario",
			filepath.Join(dir, "s.yaml"))
		return stdout + stderr, exit
	}
	if out, exit := load(); exit != cli.Failed || !strings.Contains(out,
		"the environment has no PRONY_TEST_PASSWORD") {
		t.Errorf("exit %d without the password:\n%s", exit, out)
	}
	t.Setenv("PRONY_TEST_PASSWORD", "s3cret")
	out, exit := load()
	if exit == cli.Failed || m.refused > 0 || m.logins != 3 || len(m.users) != 3 ||
		strings.Contains(out, "s3cret") || strings.Contains(out, "/login") {
		t.Errorf("exit %d, %d logins, %d refused, users %v:\n%s", exit, m.logins, m.refused,
			m.users, out)
	}
	t.Setenv("PRONY_TEST_PASSWORD", "wrong")
	if out, exit := load(); exit != cli.Failed ||
		!strings.Contains(out, "POST /login: status 401") {
		t.Errorf("exit %d with a wrong password:\n%s", exit, out)
	}
}
