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
