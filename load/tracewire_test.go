package load_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

var parentRe = regexp.MustCompile("^00-([0-9a-f]{32})-([0-9a-f]{16})-01$")

// listener is a server that reads the trace fields of its requests, and is slow for some of the
// requests with them.
type listener struct {
	t     *testing.T
	slow  time.Duration // for every 40th traced one
	mu    sync.Mutex
	bare  int
	ids   []string
	slept []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parent, state := r.Header.Values("Traceparent"), r.Header.Values("Tracestate")
	if sleep := l.note(parent, state); sleep {
		time.Sleep(l.slow)
	}
	_, _ = io.WriteString(w, "ok") // a lost answer fails the test anyway
}

// note reports whether the response to the request is to be slow.
func (l *listener) note(parent, state []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(parent)+len(state) == 0 {
		l.bare++
		return false
	}
	if len(parent) != 1 || !slices.Equal(state, []string{"prony=1"}) {
		l.t.Errorf("fields are %q and %q", parent, state)
		return false
	}
	m := parentRe.FindStringSubmatch(parent[0])
	if m == nil {
		l.t.Errorf("%q is not a traceparent", parent[0])
		return false
	}
	l.ids = append(l.ids, m[1])
	if len(l.ids)%40 == 0 {
		l.slept = append(l.slept, m[1])
		return true
	}
	return false
}

// Over real sockets, the configured share of requests has an id that a server can read, each a
// different one, and the requests that the server delayed are among the slowest ones kept.
func TestTraceOverTheWire(t *testing.T) {
	testsets.Once(t, "trace contexts over the wire", testsets.Needs{})
	testsets.Measured(t)
	check := func(name string, share float64) {
		t.Run(name, func(t *testing.T) {
			l := &listener{t: t, slow: 200 * time.Millisecond}
			server := httptest.NewServer(l)
			defer server.Close()
			s := get("/?k={key}", "ok")
			s.Requests = append(s.Requests, load.Request{Method: "POST", Path: "/", Body: "x",
				Want: "ok", HasWant: true})
			s.KeyHi = 1000
			r, err := load.Run(t.Context(), load.Spec{
				Address:  netip.MustParseAddrPort(server.Listener.Addr().String()),
				Model:    record.Open,
				Schedule: at(pace.Poisson, 800), Seed: 3, Connections: 64, Engine: epollEngine,
				Window: time.Second, Drain: 5 * time.Second, Timeout: 5 * time.Second, Scenario: s,
				Trace: load.Trace{Share: share, Keep: 64},
			})
			if err != nil {
				t.Fatal(err)
			}
			n := float64(len(l.ids) + l.bare)
			if r.Answered != r.Scheduled || int64(n) != r.Answered {
				t.Fatalf("%d of %d answered, the server saw %g; %+v", r.Answered, r.Scheduled, n,
					r.Errors)
			}
			// Five standard deviations of the binomial distribution; none for a share of 1.
			bound := 5 * math.Sqrt(n*share*(1-share))
			if off := math.Abs(float64(len(l.ids)) - n*share); off > bound {
				t.Errorf("%d of %g are traced, want %g ± %g", len(l.ids), n, n*share, bound)
			}
			if u := len(slices.Compact(slices.Sorted(slices.Values(l.ids)))); u != len(l.ids) {
				t.Errorf("%d ids for %d requests", u, len(l.ids))
			}
			if len(l.slept) < int(n*share/40)-4 {
				t.Errorf("the server was slow %d times", len(l.slept))
			}
			for _, id := range l.slept {
				if !slices.ContainsFunc(r.Traced, func(x record.Traced) bool {
					return x.TraceID == id && x.Class == "slowest" && x.FirstByteNs >= 200*ms &&
						x.ResponseNs >= x.LagNs+x.FirstByteNs && !x.Failed
				}) {
					t.Errorf("the server was slow for %s, which is not among %+v", id, r.Traced)
				}
			}
			for _, x := range r.Traced {
				if !slices.Contains(l.ids, x.TraceID) {
					t.Errorf("nobody sent %+v", x)
				}
			}
		})
	}
	check("a quarter", 0.25)
	check("all", 1)
}
