package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"prony.example/internal/report/runs"
	"prony.example/internal/server/app"
)

// TestApp checks the app's files with their types, and that there are no others.
func TestApp(t *testing.T) {
	list, err := runs.Open(t.TempDir(), runs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Options{Runs: list}).Handler()
	check := func(path, kind string, want []byte) {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
		got := answer.Header().Get("Content-Type")
		if want == nil {
			if answer.Code != http.StatusNotFound || got != "application/json" {
				t.Errorf("%s: %d, %s", path, answer.Code, got)
			}
			return
		}
		if answer.Code != http.StatusOK || got != kind || answer.Body.String() != string(want) {
			t.Errorf("%s: %d, %s, %d bytes, want %s, %d bytes", path, answer.Code, got,
				answer.Body.Len(), kind, len(want))
		}
	}
	check("/", "text/html; charset=utf-8", app.Index(app.Server))
	check("/app.js", "text/javascript; charset=utf-8", app.File(app.Script))
	check("/app.css", "text/css; charset=utf-8", app.File(app.Style))
	check("/other.js", "", nil)
	check("/app.go", "", nil)
	check("/app.map", "", nil)
}
