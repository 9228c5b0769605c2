package generator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// service responds slowly, refuses every tenth request, and records its requests.
type service struct {
	*httptest.Server
	addr netip.AddrPort

	mu       sync.Mutex
	asked    map[string]int64 // by method, URL, host, header and body
	requests int64
	refused  int64
	addrs    map[string]bool // of clients: their connections
}

const answerTime = 5 * time.Millisecond

func serve(t *testing.T) *service {
	t.Helper()
	testsets.Measured(t)
	s := &service{asked: map[string]int64{}, addrs: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		time.Sleep(answerTime)
		s.mu.Lock()
		s.requests++
		refuse := s.requests%10 == 0
		if refuse {
			s.refused++
		}
		s.addrs[r.RemoteAddr] = true
		s.asked[strings.Join([]string{r.Method, r.URL.String(), r.Host, r.Header.Get("X-Prony"),
			r.Header.Get("Content-Type"), string(body)}, "|")]++
		s.mu.Unlock()
		if refuse {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Write([]byte("ok")) //nolint:errcheck // the client may be gone
	}))
	t.Cleanup(s.Close)
	s.addr = netip.MustParseAddrPort(s.Listener.Addr().String())
	return s
}

// count returns the numbers of requests so far.
func (s *service) count() (requests, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.refused
}

// ofSecond lists the tools of the second set; all others are in the third.
var ofSecond = []string{"wrk", "hey"}

// needs skips the test in sets that are not the tool's, and if the tool is not installed.
func needs(t *testing.T, name string) Driver {
	t.Helper()
	what := "what " + name + " does"
	testsets.Whole(t, what) // before the tool is started
	remember := testsets.Once
	if !slices.Contains(ofSecond, name) {
		remember = testsets.Long
	}
	of, err := named(name)
	if err != nil {
		t.Fatal(err)
	}
	path, version, err := of.find(t.Context())
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	remember(t, what, testsets.Needs{Facts: []string{version}})
	return &foreign{tool: of, path: path}
}

const sentBody = `{"a": "1, 2", "b": "$x\\n"}`

// specFor returns a load that every tool can send in its own model.
func specFor(s *service, name string) load.Spec {
	spec := load.Spec{
		Name: "test", Address: s.addr, Host: "prony.test", Model: record.Closed, Connections: 4,
		Lead: 100 * time.Millisecond, Window: time.Second, Drain: time.Second,
		Timeout: 5 * time.Second, Seed: 7,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{{
			Method: "POST", Path: "/echo?a=1&b=%20", Body: sentBody, Type: "application/json",
			Headers: []load.Header{{Name: "X-Prony", Value: "a,b $c \\ 'd' \"e\""}}, WantSize: -1,
		}}},
	}
	if name == "wrk2" {
		spec = rated(spec, 40)
	}
	return spec
}

func rated(s load.Spec, perS float64) load.Spec {
	s.Model = record.Open
	s.Schedule = pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(perS)}
	return s
}

// TestToolsCountAsTheServiceDoes compares every tool's numbers with the service's own counts.
func TestToolsCountAsTheServiceDoes(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			spec := specFor(s, name)
			var marks []bool
			var before, after, refusedBefore, refusedAfter int64
			spec.Observer = load.WindowFunc(func(open bool) {
				marks = append(marks, open)
				if open {
					before, refusedBefore = s.count()
				} else {
					after, refusedAfter = s.count()
				}
			})
			r, err := d.Offer(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(marks, []bool{true, false}) {
				t.Errorf("the window's edges are %v", marks)
			}
			// At each end of the window each connection may have one request in progress that only
			// one side counts.
			slack := int64(2 * spec.Connections)
			near := func(what string, got, want int64) {
				if got > want+slack || got < want-slack {
					t.Errorf("%s: %s says %d, the service %d", what, name, got, want)
				}
			}
			near("answers", r.Done+r.Errors.Total(), after-before)
			near("refused", r.Errors.Status, refusedAfter-refusedBefore)
			if name != "wrk2" && before == 0 {
				t.Error("there was no lead before the window")
			}
			checkResult(t, name, &r.Load, after-before)
			host := "prony.test"
			if name == "jmeter" { // it adds the port, and notes it
				host += s.addr.String()[strings.LastIndex(s.addr.String(), ":"):]
			}
			want := "POST|/echo?a=1&b=%20|" + host + "|a,b $c \\ 'd' \"e\"|application/json|" +
				sentBody
			if s.asked[want] == 0 || len(s.asked) != 1 {
				t.Errorf("it asked %v, want only %q", s.asked, want)
			}
		})
	}
}

func checkResult(t *testing.T, name string, l *record.Load, asked int64) {
	t.Helper()
	if l.Name != "test" || !strings.HasPrefix(l.Driver, name) || l.Connections != 4 {
		t.Errorf("it is called %q of %q with %d connections", l.Name, l.Driver, l.Connections)
	}
	g := l.Generator
	if g.CPUNs <= 0 || g.CPUPerRequestNs <= 0 || g.MemoryBytes <= 0 || g.Engine != name {
		t.Errorf("its cost is %+v", g)
	}
	if l.WindowNs < int64(500*time.Millisecond) || l.ThroughputPerS <= 0 {
		t.Errorf("its window is %d ns with %v/s", l.WindowNs, l.ThroughputPerS)
	}
	for what, d := range map[string]*record.Dist{
		"response": &l.ResponseTime, "service": &l.ServiceTime} {
		// No response is faster than the service, and none took an hour: the unit is right.
		for _, ns := range []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs} {
			if ns != 0 && (ns < int64(answerTime) || ns > int64(time.Minute)) {
				t.Errorf("%s time has %d ns in %+v", what, ns, *d)
			}
		}
		if d.Count < 1 || d.Count > asked || d.P50Ns == 0 || d.P99Ns == 0 {
			t.Errorf("%s time is %+v, of %d answers", what, *d, asked)
		}
	}
}

// TestToolsWithARate checks that tools whose clock starts at the sending have no response time of
// an open load.
func TestToolsWithARate(t *testing.T) {
	for _, name := range []string{"hey", "k6", "h2load", "jmeter"} {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			r, err := d.Offer(context.Background(), rated(specFor(s, name), 40))
			if err != nil {
				t.Fatal(err)
			}
			if r.Model != record.Open || r.Arrivals != pace.Constant || r.RatePerS != 40 {
				t.Errorf("it was %s %s at %v/s", r.Model, r.Arrivals, r.RatePerS)
			}
			if r.ResponseTime.Count > 0 || r.ServiceTime.Count == 0 {
				t.Errorf("response time is %+v, service time %+v", r.ResponseTime, r.ServiceTime)
			}
			// 40/s: never more than a request each of 4 connections ahead of the schedule.
			most := int64(float64(r.WindowNs)/1e9*40) + 5
			if n := r.Done + r.Errors.Total(); n > most || n < 1 {
				t.Errorf("%d answers, want at most %d", n, most)
			}
		})
	}
}

// TestToolsDrawKeysAndMixes checks keys, weights and fixed numbers of requests of tools that
// support them.
func TestToolsDrawKeysAndMixes(t *testing.T) {
	for _, name := range []string{"wrk", "wrk2", "k6", "jmeter"} {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			spec := specFor(s, name)
			spec.Lead, spec.Host = 0, ""
			spec.Scenario = load.Scenario{KeyLo: 10, KeyHi: 12, Requests: []load.Request{
				{Method: "GET", Path: "/a/{key}", WantSize: -1}}}
			if name != "jmeter" {
				spec.Scenario.Requests = append(spec.Scenario.Requests, load.Request{
					Method: "PUT", Path: "/b", Body: "n{key}", Weight: 3, WantSize: -1})
			}
			if _, err := d.Offer(context.Background(), spec); err != nil {
				t.Fatal(err)
			}
			gets, puts := map[string]bool{}, map[string]bool{}
			for what := range s.asked {
				f := strings.Split(what, "|")
				switch f[0] {
				case "GET":
					gets[f[1]] = true
				case "PUT":
					puts[f[5]] = true
				}
			}
			// 3 keys in some hundred requests: the probability that one is missing is (2/3)^100.
			if len(gets) != 3 || !gets["/a/10"] || !gets["/a/11"] || !gets["/a/12"] {
				t.Errorf("it asked for %v", gets)
			}
			if name != "jmeter" && (len(puts) != 3 || !puts["n10"] || !puts["n12"]) {
				t.Errorf("it put %v", puts)
			}
		})
	}
}

func TestToolsEndAfterSomeRequests(t *testing.T) {
	for _, name := range []string{"hey", "k6", "h2load"} {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			spec := specFor(s, name)
			spec.Requests, spec.Lead = 40, 0
			r, err := d.Offer(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if n := r.Done + r.Errors.Total(); n != 40 || r.Errors.Status != 4 || s.requests != 40 {
				t.Errorf("%d answers, %d refused, %d asked; want 40, 4, 40", n, r.Errors.Status,
					s.requests)
			}
			if name == "h2load" {
				return
			}
			spec.Churn, spec.Model = 1, record.Closed
			if _, err := d.Offer(context.Background(), spec); err != nil {
				t.Fatal(err)
			}
			if n := len(s.addrs); n < 40 {
				t.Errorf("80 requests, of which 40 on connections of their own, took %d", n)
			}
		})
	}
}

// TestToolsEndWithTheContext checks that canceling the context ends the tool with all its
// processes.
func TestToolsEndWithTheContext(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			spec := specFor(s, name)
			spec.Lead, spec.Window = 0, time.Minute
			ctx, cancel := context.WithCancel(context.Background())
			spec.Observer = load.WindowFunc(func(open bool) {
				if open {
					go func() {
						for n := int64(0); n == 0; n, _ = s.count() {
							time.Sleep(time.Millisecond)
						}
						cancel()
					}()
				}
			})
			if _, err := d.Offer(ctx, spec); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want the context's", err)
			}
			if left := mentioning(t, s.addr.String(), "plan.jmx"); len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

// mentioning lists the command lines of processes that contain one of the texts.
func mentioning(t *testing.T, texts ...string) (out []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				out = append(out, string(bytes.ReplaceAll(b, []byte{0}, []byte(" "))))
			}
		}
	}
	return out
}

// TestToolsWithoutAService checks that a missing service gives an error that says so, or failed
// connects.
func TestToolsWithoutAService(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			d := needs(t, name)
			s := serve(t)
			spec := specFor(s, name)
			spec.Lead = 0
			s.Close()
			r, err := d.Offer(context.Background(), spec)
			if err == nil && (r.Done > 0 || r.Errors.Total() == 0) {
				t.Errorf("%d answers and errors %+v from nobody", r.Done, r.Errors)
			}
		})
	}
}
