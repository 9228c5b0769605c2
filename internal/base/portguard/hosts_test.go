package portguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard checks that requests of browsers for pages of other origins are refused, and requests
// of programs are not.
func TestGuard(t *testing.T) {
	t.Setenv(Hosts, "prony, home.example")
	guarded := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	check := func(want int, method, host string, header ...string) {
		t.Helper()
		r := httptest.NewRequest(method, "/api/v1/query", http.NoBody)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s %s %q: %d %s, want %d", method, host, header, w.Code, w.Body, want)
		}
	}
	const site, mode, origin = "Sec-Fetch-Site", "Sec-Fetch-Mode", "Origin"
	for _, host := range []string{"127.0.0.1:9090", "[::1]:9090", "::1", "172.18.0.1", "localhost",
		"LOCALHOST:1", "a.localhost:1", "localhost.:1", "prony:9090", "Home.Example", ""} {
		check(200, "GET", host)
		check(200, "POST", host)
	}
	// Names that others can register: pages of such names could read responses.
	for _, host := range []string{"evil.example:9090", "127.0.0.1.evil.example", "localhost.evil",
		"xlocalhost", "prony.evil.example", "evil.example:9090:1", strings.Repeat("x", 9999),
		"127.0.0.1:9090@evil.example", "[::1].evil.example:1", "0x7f000001", "127.1"} {
		check(421, "GET", host)
		check(421, "POST", host)
	}
	const here = "127.0.0.1:9090"
	check(403, "POST", here, site, "cross-site")
	check(403, "POST", here, site, "same-site", origin, "http://127.0.0.1:8080")
	check(403, "GET", here, site, "cross-site", mode, "no-cors")
	check(403, "POST", here, site, "cross-site", mode, "navigate") // a form
	check(200, "GET", here, site, "cross-site", mode, "navigate")  // a link
	check(200, "GET", here, site, "none", mode, "navigate")        // typed
	check(200, "POST", here, site, "same-origin", origin, "http://"+here)
	check(403, "POST", here, origin, "http://evil.example")
	check(403, "POST", here, origin, "http://127.0.0.1:8080")
	check(403, "POST", here, origin, "null")
	check(403, "GET", here, origin, "http://localhost:9090")
	check(200, "POST", here, origin, "http://"+here)
}
