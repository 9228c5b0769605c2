package counters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const exposition = `# HELP requests_total by path
# TYPE requests_total counter
requests_total{path="/a",code="200"} 3
requests_total{code="500", path="/a"} 4e1 1700000000
requests_total{path="/b } \"x\""} 500
requests_total_more 6000
plain 7
`

// A page's counter is the sum of exactly the series with the name and the labels.
func TestTotal(t *testing.T) {
	check := func(series string, want float64) {
		t.Helper()
		s, ok := parseName(series)
		if !ok {
			t.Fatalf("%s is not a series", series)
		}
		got, found, err := total(strings.NewReader(exposition), s)
		if err != nil || got != want || found != (want > 0) {
			t.Errorf("%s is %v, found %v, error %v; want %v", series, got, found, err, want)
		}
	}
	check("requests_total", 543) // 3 + 40 + 500
	check(`requests_total{path="/a"}`, 43)
	check(`requests_total{path="/a",code="500"}`, 40)
	check(`requests_total{path="/b } \"x\""}`, 500)
	check("plain", 7)
	check("requests", 0)
	check(`plain{path="/a"}`, 0)
	s, _ := parseName("plain")
	for _, value := range []string{"NaN", "+Inf", "1e308\nplain 1e308"} {
		_, _, err := total(strings.NewReader("plain "+value+"\n"), s)
		if err == nil || !strings.Contains(err.Error(), "is not a finite number") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, _, err := total(strings.NewReader("plain much\n"), s); err == nil {
		t.Error("a word is a number")
	}
	for _, bad := range []string{"", "{}", `a{b}`, `a{b=c}`, `a{b="c"`, "a b", "#", "ü"} {
		if s, ok := parseName(bad); ok {
			t.Errorf("%q is taken for %+v", bad, s)
		}
	}
}

// The error for an unreadable counter has its name, place and cause, without a password.
func TestUnreadable(t *testing.T) {
	page := "other 1\n"
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(page))
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a 1\n" + strings.Repeat("# nothing\n", pageMost/10+1)))
	})
	server := httptest.NewServer(mux)
	at := strings.TrimPrefix(server.URL, "http://")
	check := func(p Place, want string) {
		t.Helper()
		c, err := Open(p)
		if err == nil {
			defer c.Close()
			_, err = c.Read(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: error %v, want %q", p, err, want)
		}
	}
	check(Place{Metrics: "http://me:secret@" + at + "/metrics", Series: "asks_total"},
		"read the counter asks_total of http://me:xxxxx@"+at+"/metrics: the page does not have "+
			"the series")
	check(Place{Metrics: server.URL + "/none", Series: "a"}, "responded with 404")
	check(Place{Metrics: server.URL + "/long", Series: "a"},
		"the page is larger than 16777216 bytes")
	check(Place{Metrics: at, Series: "a"}, "metrics must have the form http://HOST")
	check(Place{Metrics: server.URL, Series: "a{"}, "is not a name")
	check(Place{Postgres: "postgres://127.0.0.1/x"}, "the form postgres://USER:PASSWORD@")
	check(Place{Postgres: "postgres://u:se%zz@h/x"}, "the form postgres://USER:PASSWORD@")
	server.Close()
	check(Place{Metrics: server.URL + "/metrics", Series: "a"}, "connection refused")
	check(Place{Postgres: "postgres://me:secret@" + at + "/x"}, "connection refused")
}

// A page is read again each time, without delay.
func TestPage(t *testing.T) {
	asked := "1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("asks_total " + asked + "\n"))
	}))
	defer server.Close()
	c, err := Open(Place{Metrics: server.URL, Series: "asks_total"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []float64{1, 12} {
		if want == 12 {
			asked = "12"
		}
		if got, err := c.Read(t.Context()); got != want || err != nil {
			t.Errorf("%v, error %v; want %v", got, err, want)
		}
	}
	if c.What() != "asks_total" || c.Late() != time.Duration(0) {
		t.Errorf("it counts %s, late by %v", c.What(), c.Late())
	}
}
