package load

import (
	"math"
	"strings"
	"testing"

	"prony.example/load/extract"
	"prony.example/load/pace"
)

func TestRequestsAsSent(t *testing.T) {
	check := func(r Request, key uint64, out, want string) {
		t.Helper()
		p, err := compile(Scenario{Requests: []Request{r}, KeyHi: math.MaxUint64 - 1}, "a.b:80",
			"80", 1)
		if err != nil {
			t.Fatal(err)
		}
		c := &p.routes[0]
		w := newWorker(&config{threads: 1}, p, 0, 1, 1)
		x := &w.conns[0]
		x.route, x.key = c, key
		w.make(x)
		if got := string(x.out); got != out {
			t.Errorf("sends\n%q, want\n%q", got, out)
		}
		if got := string(x.want); got != want {
			t.Errorf("wants %q, want %q", got, want)
		}
		if c.out == nil && len(out) > p.outMax {
			t.Errorf("%d bytes, bounded by %d", len(out), p.outMax)
		}
	}
	check(Request{Method: "GET", Path: "/"}, 0, "GET / HTTP/1.1\r\nHost: a.b:80\r\n\r\n", "")
	check(Request{Method: "GET", Path: "/{key}?k={key}", Want: "<{key}>"}, 17,
		"GET /17?k=17 HTTP/1.1\r\nHost: a.b:80\r\n\r\n", "<17>")
	check(Request{Method: "GET", Path: "/{key}"}, math.MaxUint64,
		"GET /18446744073709551615 HTTP/1.1\r\nHost: a.b:80\r\n\r\n", "")
	check(Request{Method: "POST", Path: "/p", Body: "é{}", Type: "application/json"}, 1,
		"POST /p HTTP/1.1\r\nHost: a.b:80\r\nContent-Type: application/json\r\n"+
			"Content-Length: 4\r\n\r\né{}", "")
	check(Request{Method: "POST", Path: "/p", Body: `{"id": {key}, "n": 1}`}, 23,
		"POST /p HTTP/1.1\r\nHost: a.b:80\r\nContent-Type: text/plain\r\n"+
			"Content-Length: 18\r\n\r\n{\"id\": 23, \"n\": 1}", "")
	check(Request{Method: "POST", Path: "/p"}, 1,
		"POST /p HTTP/1.1\r\nHost: a.b:80\r\nContent-Length: 0\r\n\r\n", "")
	check(Request{Method: "DELETE", Path: "/p"}, 1, "DELETE /p HTTP/1.1\r\nHost: a.b:80\r\n\r\n",
		"")
	check(Request{Method: "PATCH", Path: "/p", Body: "x"}, 1,
		"PATCH /p HTTP/1.1\r\nHost: a.b:80\r\nContent-Type: text/plain\r\n"+
			"Content-Length: 1\r\n\r\nx", "")
}

func TestBadScenarios(t *testing.T) {
	check := func(want string, s Scenario, host string) {
		t.Helper()
		if _, err := compile(s, host, "80", 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	one := func(r Request) Scenario { return Scenario{Requests: []Request{r}} }
	get := Request{Method: "GET", Path: "/"}
	check("it has no requests", Scenario{}, "h")
	check("keys 5 to 4: the last key", Scenario{Requests: []Request{get}, KeyLo: 5, KeyHi: 4}, "h")
	check("one too many", Scenario{Requests: []Request{get}, KeyHi: math.MaxUint64}, "h")
	check(`"a b" is not a host`, one(get), "a b")
	check(`"a\r\nX: y" is not a host`, one(get), "a\r\nX: y")
	check(`"" is not a method`, one(Request{Path: "/"}), "h")
	check(`"G ET" is not a method`, one(Request{Method: "G ET", Path: "/"}), "h")
	check(`path "x"`, one(Request{Method: "GET", Path: "x"}), "h")
	check(`path "/a b"`, one(Request{Method: "GET", Path: "/a b"}), "h")
	check("CONNECT is a tunnel", one(Request{Method: "CONNECT", Path: "/"}), "h")
	check("is not a media type", one(Request{Method: "PUT", Path: "/", Body: "x",
		Type: "a\r\nB: c"}), "h")
	check("at most 2^53 keys", Scenario{Requests: []Request{get}, KeyHi: 1 << 60, Zipf: 1}, "h")
	check("is not above 0", Scenario{Requests: []Request{get}, Zipf: -1}, "h")
	header := func(name, value string) Request {
		return Request{Method: "GET", Path: "/", Headers: []Header{{name, value}}}
	}
	check("is not a header field", one(header("a b", "c")), "h")
	check("is not a header field", one(header("a", "b\r\nc: d")), "h")
	check("is set from the body", one(header("content-Length", "3")), "h")
	find, err := extract.Header("Location")
	if err != nil {
		t.Fatal(err)
	}
	get.Extract = []extract.Capture{{Var: "id", From: find}}
	check("only a later step of a flow could use", one(get), "h")
	get.Extract = nil
	check("no placeholder", Scenario{Flow: true, Requests: []Request{
		{Method: "GET", Path: "/{id}"}}}, "h")
}

func draws(t *testing.T, seed uint64, n int, weights ...int) (routes []int, keys []uint64) {
	t.Helper()
	s := Scenario{KeyLo: 100, KeyHi: 107}
	for _, w := range weights {
		s.Requests = append(s.Requests, Request{Method: "GET", Path: "/", Weight: w})
	}
	p, err := compile(s, "h", "80", seed)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(n) {
		r, key := p.draw(k)
		for i := range p.routes {
			if r == &p.routes[i] {
				routes = append(routes, i)
			}
		}
		keys = append(keys, key)
	}
	return routes, keys
}

// independent compares χ² of a table of two draws with its limit: 1 in 1,000 at the given degrees
// of freedom, from tables.
func independent(t *testing.T, what string, counts [][]float64, limit float64) {
	t.Helper()
	total := 0.0
	rows, columns := make([]float64, len(counts)), make([]float64, len(counts[0]))
	for i := range counts {
		for j, c := range counts[i] {
			rows[i], columns[j], total = rows[i]+c, columns[j]+c, total+c
		}
	}
	chi := 0.0
	for i := range counts {
		for j, c := range counts[i] {
			e := rows[i] * columns[j] / total
			chi += (c - e) * (c - e) / e
		}
	}
	if chi > limit {
		t.Errorf("%s depend on each other: χ² = %g, want < %g", what, chi, limit)
	}
}

func table(rows, columns int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i] = make([]float64, columns)
	}
	return out
}

// Weights 1, 1, 5 and 1 of 8: the shares of 80,000 draws are within 3.29 standard deviations, and
// no route prefers a key: (4-1)·(8-1) = 21 degrees of freedom, limit 46.80.
func TestRoutesAndKeysAreDrawnByWeight(t *testing.T) {
	const n = 80_000
	for seed := range uint64(5) {
		routes, keys := draws(t, seed, n, 1, 0, 5, -3) // 0 and less count as 1
		counts := table(4, 8)
		for k := range routes {
			counts[routes[k]][keys[k]-100]++
		}
		for i, share := range []float64{1. / 8, 1. / 8, 5. / 8, 1. / 8} {
			got := 0.0
			for _, c := range counts[i] {
				got += c
			}
			if off := math.Abs(got - n*share); off > 3.29*math.Sqrt(n*share*(1-share)) {
				t.Errorf("seed %d: route %d was drawn %g times, want %g", seed, i, got, n*share)
			}
		}
		independent(t, "route and key", counts, 46.80)
	}
}

// If a service's work depends on the key, its expensive keys must not always follow short gaps: gap
// and key of a request, and gap and route, in tables of 8 × 8: 49 degrees of freedom, limit 85.35.
func TestGapsAndDrawsAreIndependent(t *testing.T) {
	const n = 80_000
	for seed := range uint64(5) {
		routes, keys := draws(t, seed, n, 1, 1, 1, 1, 1, 1, 1, 1)
		p, err := at(pace.Poisson, 1000).Process(seed)
		if err != nil {
			t.Fatal(err)
		}
		byKey, byRoute := table(8, 8), table(8, 8)
		before := int64(0)
		for k := range routes {
			now := p.Next()
			gap := int(8 * math.Exp(-float64(now-before)/1e6)) // uniform over 0..7
			before = now
			byKey[min(gap, 7)][keys[k]-100]++
			byRoute[min(gap, 7)][routes[k]]++
		}
		independent(t, "gap and key", byKey, 85.35)
		independent(t, "gap and route", byRoute, 85.35)
	}
}
