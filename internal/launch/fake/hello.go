package fake

import (
	"fmt"
	"net/http"
	"slices"
)

// Hello is a service that keeps the contract `hello` for a mode, as far as a trial's quick check
// asks, and is ready on the usual paths.
func Hello(mode string) http.Handler {
	ready := []string{"/ready", "/readyz", "/health"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		key, n := "1", 0
		if q.Has("key") {
			key = q.Get("key")
		}
		_, err := fmt.Sscanf(key, "%d", &n)
		status, body := http.StatusOK, ""
		switch {
		case slices.Contains(ready, r.URL.Path):
		case r.URL.Path != "/hello/"+mode || r.Method != http.MethodGet:
			status = http.StatusNotFound
		case q.Has("sleep") && q.Get("sleep") != "0", q.Get("log") == "yes":
			status = http.StatusBadRequest
		case err != nil || n < 1 || n > 50000:
			status = http.StatusNotFound
		default:
			body = "Hello from REST value-" + key
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		w.Write([]byte(body)) //nolint:errcheck // a client that has gone needs no answer
	})
}
