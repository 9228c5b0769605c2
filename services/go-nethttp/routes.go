package main

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
)

func newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/"+mode, newCache().hello)

	mux.HandleFunc("GET /{$}", root)
	mux.HandleFunc("GET /no-read", ok)
	mux.HandleFunc("GET /hello", helloWorld)
	mux.HandleFunc("GET /file", newFile().serve)
	mux.HandleFunc("POST /load", load)

	mux.HandleFunc("GET /data", data)
	mux.HandleFunc("GET /concat", concat)
	mux.HandleFunc("GET /fibonacci", fibonacci)

	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok)

	// With a pattern for every method and path the mux never answers 405, which has a body.
	mux.HandleFunc("/", notFound)
	return named(mux)
}

// named answers 404 to requests that ServeMux accepts and the contract does not: its GET patterns
// match HEAD, and it redirects a path such as //hello to its clean form.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.URL.Path != path.Clean(r.URL.Path) {
			notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ok(w http.ResponseWriter, _ *http.Request) {
	empty(w, http.StatusOK)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	empty(w, http.StatusNotFound)
}

func empty(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// answer sets the length, because net/http would chunk a body larger than its buffer.
func answer(w http.ResponseWriter, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// The only error is a client that has closed the connection.
	_, _ = w.Write(body)
}

// parameter returns a parameter, or fallback only if it is absent.
func parameter(query url.Values, name, fallback string) string {
	if !query.Has(name) {
		return fallback
	}
	return query.Get(name)
}
