package load_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// diary records what a server received: the paths in order, and the maximum number of concurrent
// requests.
type diary struct {
	paths []string
	ends  []int64 // of requests under way
	most  int
}

func (d *diary) keep(p truth.Plan) truth.Plan {
	return func(now int64, r truth.Request) truth.Reply {
		out := p(now, r)
		d.ends = slices.DeleteFunc(d.ends, func(at int64) bool { return at <= now })
		d.ends = append(d.ends, out.At)
		d.most = max(d.most, len(d.ends))
		d.paths = append(d.paths, string(r.Path))
		return out
	}
}

// A closed loop has exactly as many requests under way as connections: never more, and all of them
// while the server takes its time.
func TestClosedLoopKeepsAllConnectionsBusy(t *testing.T) {
	const connections = 12
	var d diary
	r := offer(t, d.keep(truth.Fixed(20*time.Millisecond)), load.Spec{
		Model: record.Closed, Connections: connections, Window: 300 * time.Millisecond,
	})
	if d.most != connections {
		t.Errorf("%d requests at once, want %d", d.most, connections)
	}
	equal(t, "requests under way", r.InFlightMean, connections)
	if int64(len(d.paths)) != r.Scheduled || r.Errors.Total() != 0 {
		t.Errorf("the server saw %d requests, %d were sent; %+v", len(d.paths), r.Scheduled,
			r.Errors)
	}
}

// cores are n processors of this thread, the last one repeated when there are not so many.
func cores(t *testing.T, n int) []int {
	t.Helper()
	out, err := host.Cores()
	if err != nil {
		t.Skipf("cannot tell the processors: %v", err)
	}
	for len(out) < n {
		out = append(out, out[len(out)-1])
	}
	return out[:n]
}

// Two threads on separate cores send one schedule: the server receives all of it, and each
// arrival's key once.
func TestTwoThreadsSendOneSchedule(t *testing.T) {
	const ratePerS, seed = 3000, 5
	const lead, window = 50 * time.Millisecond, 250 * time.Millisecond
	var d diary
	s := get("/k?key={key}", "ok")
	s.KeyLo, s.KeyHi = 1, 1<<60 // so many that none is drawn twice
	r := offer(t, d.keep(truth.Fixed(0)), load.Spec{
		Model: record.Open, Schedule: at(pace.Poisson, ratePerS), Seed: seed, Connections: 16,
		Lead: lead, Window: window, Drain: 5 * time.Second, Scenario: s, Cores: cores(t, 2),
	})
	if r.Threads != 2 || r.Errors.Total() != 0 || r.Answered != r.Scheduled {
		t.Fatalf("%d threads, answered %d of %d, %+v", r.Threads, r.Answered, r.Scheduled, r.Errors)
	}
	p, err := at(pace.Poisson, ratePerS).Process(seed)
	if err != nil {
		t.Fatal(err)
	}
	if want := pace.Count(p, 0, int64(lead+window)); int64(len(d.paths)) != want {
		t.Errorf("the server saw %d requests, the schedule has %d", len(d.paths), want)
	}
	slices.Sort(d.paths)
	if n := len(slices.Compact(slices.Clone(d.paths))); n != len(d.paths) {
		t.Errorf("of %d keys only %d differ: one was sent twice", len(d.paths), n)
	}
	// One thread alone requests the same keys.
	var alone diary
	offer(t, alone.keep(truth.Fixed(0)), load.Spec{
		Model: record.Open, Schedule: at(pace.Poisson, ratePerS), Seed: seed, Connections: 16,
		Lead: lead, Window: window, Drain: 5 * time.Second, Scenario: s,
	})
	slices.Sort(alone.paths)
	if !slices.Equal(alone.paths, d.paths) {
		t.Errorf("one thread asked %d keys, two asked %d others", len(alone.paths), len(d.paths))
	}
}

// With one connection, the seed determines requests and order, for any speed of the server.
func TestOneSeedOneOrder(t *testing.T) {
	ask := func(seed uint64, p truth.Plan) []string {
		var d diary
		s := get("/a?k={key}", "ok")
		s.Requests = append(s.Requests, load.Request{Method: "GET", Path: "/b?k={key}",
			WantSize: -1})
		s.KeyLo, s.KeyHi = 1, 50_000
		offer(t, d.keep(p), load.Spec{
			Model: record.Closed, Connections: 1, Requests: 50, Window: time.Minute, Seed: seed,
			Scenario: s,
		})
		return d.paths
	}
	fast := ask(7, truth.Fixed(100*time.Microsecond))
	slow := ask(7, truth.Fixed(time.Millisecond))
	if len(fast) != 50 || !slices.Equal(fast, slow) {
		t.Errorf("one seed asked\n%q and\n%q", fast, slow)
	}
	if other := ask(8, truth.Fixed(time.Millisecond)); slices.Equal(fast, other) {
		t.Errorf("two seeds asked the same: %q", other)
	}
}

// The engine epoll loses no requests on real sockets: all due requests were sent, and all sent
// requests got a response or failed. One response in ten is cut by a reset.
func TestEpollConserves(t *testing.T) {
	var d diary
	r := offerReal(t, d.keep(truth.Every(10, truth.Torn, truth.Fixed(0))), load.Spec{
		Model: record.Open, Schedule: even(500), Connections: 8, Window: 200 * time.Millisecond,
	})
	if r.Scheduled != 100 || r.Answered+r.Errors.Requests() != 100 || r.Censored != 0 ||
		len(d.paths) != 100 || r.Errors.Read != 10 {
		t.Errorf("%d due, the server received %d; %d answered, %d censored, %+v", r.Scheduled,
			len(d.paths), r.Answered, r.Censored, r.Errors)
	}
}

// Large bodies are sent and received in parts, and compared to the last byte.
func TestLargeBodies(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		_, _ = io.Copy(w, r.Body) // the load detects lost bytes
	}))
	defer mirror.Close()
	s := load.Scenario{Requests: []load.Request{{
		Method: "POST", Path: "/", Body: body, Want: body, HasWant: true}}}
	r := offerTo(t, mirror.Listener.Addr().(*net.TCPAddr).AddrPort(), load.Spec{
		Model: record.Open, Schedule: even(20), Connections: 2, Window: 200 * time.Millisecond,
		Scenario: s,
		Drain:    10 * time.Second, Timeout: 10 * time.Second,
	})
	if r.Answered != 4 || r.Errors.Total() != 0 {
		t.Errorf("answered %d of 4, %+v", r.Answered, r.Errors)
	}
}

// The local kernel refuses this connect, without an event.
func TestUnreachable(t *testing.T) {
	_, err := load.Run(context.Background(), load.Spec{
		Address:  netip.MustParseAddrPort("127.255.255.255:80"),
		Scenario: get("/", "ok"), Model: record.Closed, Connections: 2, Window: time.Second,
		Timeout: time.Second, Engine: epollEngine,
	})
	if err == nil || !strings.Contains(err.Error(), "could be opened: connect: ") {
		t.Errorf("error is %v", err)
	}
}
