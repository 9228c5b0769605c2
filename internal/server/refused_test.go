package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"prony.example/internal/report/runs"
)

// TestRefusalsArePagesInBrowsers checks that a browser with an old link gets a page, and a program
// JSON.
func TestRefusalsArePagesInBrowsers(t *testing.T) {
	list, err := runs.Open(t.TempDir(), runs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Options{Runs: list, Token: "right"}).Handler()
	const browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
	for _, row := range []struct {
		path, token, accept string
		status              int
		kind, has, lacks    string
	}{
		{"/", "", browser, http.StatusUnauthorized, "text/html; charset=utf-8",
			"<h1>Unauthorized</h1>", `href="/"`},
		{"/", "", "*/*", http.StatusUnauthorized, "application/json", `{"error":`, "<h1>"},
		{"/api/v1/runs/%3Cb%3E/page", "right", browser, http.StatusNotFound,
			"text/html; charset=utf-8", `<a href="/">All runs</a>`, "<b>"},
		{"/api/v1/runs/gone/page", "right", "*/*", http.StatusNotFound, "application/json",
			`{"error":`, "<h1>"},
	} {
		request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+row.path, nil)
		request.Header.Set("Accept", row.accept)
		if row.token != "" {
			request.Header.Set("Authorization", "Bearer "+row.token)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		body := answer.Body.String()
		if answer.Code != row.status || answer.Header().Get("Content-Type") != row.kind ||
			!strings.Contains(body, row.has) || strings.Contains(body, row.lacks) {
			t.Errorf("%s as %s: %d, %s, %s", row.path, row.accept, answer.Code,
				answer.Header().Get("Content-Type"), body)
		}
	}
}

// TestLinkOfTheServer checks that only a browser that opens the printed link gets the cookie, which
// then opens everything; and that a wrong token beside the right cookie does not.
func TestLinkOfTheServer(t *testing.T) {
	list, err := runs.Open(t.TempDir(), runs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Options{Runs: list, Token: "right"}).Handler()
	check := func(method, path, token, bearer string, status int) {
		t.Helper()
		request := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
		request.Header.Set("Content-Type", "application/json")
		if token != "" {
			request.AddCookie(&http.Cookie{Name: cookie(request), Value: token})
		}
		if bearer != "" {
			request.Header.Set("Authorization", "bearer "+bearer) // or Bearer, as above
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		given := answer.Header().Get("Set-Cookie")
		if answer.Code != status || (given != "") != (status == http.StatusSeeOther) {
			t.Errorf("%s %s, cookie %q, bearer %q: %d, cookie %q; want %d", method, path, token,
				bearer, answer.Code, given, status)
		}
	}
	const no, ok, link = http.StatusUnauthorized, http.StatusOK, http.StatusSeeOther
	check("GET", "/?token=right", "", "", link)
	check("GET", "/?token=right", "right", "", link) // not a page whose address has the token
	check("GET", "/?token=right", "wrong", "", link)
	check("GET", "/?token=wrong", "", "", no)
	check("GET", "/?token=", "", "", no)
	check("GET", "/", "", "", no)
	check("POST", "/?token=right", "", "", no)
	check("GET", "/api/v1/runs?token=right", "", "", no)
	check("POST", "/api/v1/runs?token=right", "", "", no)
	check("GET", "/api/v1/runs", "right", "", ok)
	check("GET", "/api/v1/runs", "wrong", "", no)
	check("GET", "/api/v1/runs", "", "right", ok)
	check("GET", "/api/v1/runs", "", "wrong", no)
	check("GET", "/api/v1/runs", "right", "wrong", no)
	check("GET", "/api/v1/runs", "wrong", "right", ok)
}

// TestCookiesOfTwoServers checks that a browser with the cookies of two servers of a host can use
// both: a host's cookies are sent to all its ports.
func TestCookiesOfTwoServers(t *testing.T) {
	list, err := runs.Open(t.TempDir(), runs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"http://127.0.0.1:8001": "one", "http://127.0.0.1:8002": "two"}
	jar := map[string]*http.Cookie{}
	ask := func(url, path string) int {
		request := httptest.NewRequest(http.MethodGet, url+path, nil)
		for _, c := range jar {
			request.AddCookie(c)
		}
		answer := httptest.NewRecorder()
		New(Options{Runs: list, Token: tokens[url]}).Handler().ServeHTTP(answer, request)
		for _, c := range answer.Result().Cookies() {
			jar[c.Name] = c
		}
		return answer.Code
	}
	for url, token := range tokens {
		ask(url, "/?token="+token)
	}
	for url := range tokens {
		if status := ask(url, "/api/v1/runs"); status != http.StatusOK {
			t.Errorf("%s: %d", url, status)
		}
	}
}

// TestCauseIsTheLastMessage checks that the reason of a failed start is its last message, without
// the notices before it.
func TestCauseIsTheLastMessage(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"go-nethttp/otel is kept aside\nprony: the machine is busy\n  end process 7",
			"prony: the machine is busy\n  end process 7"},
		{"panic: x\ngoroutine 1", "panic: x\ngoroutine 1"},
	} {
		got := strings.Join(cause(strings.Split(row.in, "\n")), "\n")
		if got != row.want {
			t.Errorf("%q: %q, want %q", row.in, got, row.want)
		}
	}
}
