package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/base/clock"
	"prony.example/load/pace"
)

// sink is an engine that accepts everything and reports nothing.
type sink struct{ sends, opens, closes int }

func (s *sink) Open(int)                  { s.opens++ }
func (s *sink) Send(int, []byte)          { s.sends++ }
func (s *sink) Close(int)                 { s.closes++ }
func (s *sink) Wait(int64, Handler) error { return nil }
func (s *sink) Release()                  {}
func (s *sink) Unsent(int) int            { return 0 }

// hot returns a worker in the middle of an endless window, with open connections and no engine
// behind it.
func hot(t testing.TB, s Scenario, conns int, arrivals pace.Process) *worker {
	t.Helper()
	return hotly(t, s, conns, arrivals, Trace{})
}

// hotly is hot with a share of the requests traced.
func hotly(t testing.TB, s Scenario, conns int, arrivals pace.Process, trace Trace) *worker {
	t.Helper()
	p, err := compile(s, "127.0.0.1:8080", "8080", 42)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Mono()
	cfg := &config{threads: 1, timeoutNs: 1 << 60, start: now, openAt: now, closeAt: 1 << 61,
		endAt: 1 << 62, trace: newTracer(trace, "hot", 42)}
	w := newWorker(cfg, p, 0, conns, conns)
	w.engine, w.live, w.arrivals = &sink{}, &live{}, arrivals
	w.book = newBook(grid{100, 100, false}, func() threadUsage { return threadUsage{} })
	w.book.schedule(now, 1<<61)
	w.book.traced = newShelves(cfg.trace.keep)
	if arrivals != nil {
		w.nextDue = now + arrivals.Next()
	}
	for i := range conns {
		w.open(i, now)
		w.Opened(i, clock.Mono())
	}
	return w
}

var hello = Scenario{Requests: []Request{
	{Method: "GET", Path: "/hello", Want: "hello", HasWant: true}}}

// ring returns the free connections, longest idle first.
func (w *worker) ring() []int32 {
	var out []int32
	for k := range w.freeN {
		out = append(out, w.free[(w.freeAt+k)%len(w.free)])
	}
	return out
}

// Push, pop and remove compared with a plain list, in random order, on rings of every small size:
// all wraps, every place to remove from.
func TestRing(t *testing.T) {
	for size := range 7 {
		if size == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(1, uint64(size)))
		w := newWorker(&config{}, &plan{}, 0, size, size)
		var want []int32
		for step := range 2000 {
			i := int32(rng.IntN(size))
			free := slices.Contains(want, i)
			switch rng.IntN(3) {
			case 0:
				if !free {
					w.push(i)
					want = append(want, i)
				}
			case 1:
				if len(want) > 0 {
					if got := w.pop(); got != want[0] {
						t.Fatalf("size %d, step %d: popped %d of %d", size, step, got, want)
					}
					want = want[1:]
				}
			case 2:
				if free {
					w.remove(i)
					want = slices.DeleteFunc(want, func(j int32) bool { return j == i })
				}
			}
			if got := w.ring(); !slices.Equal(got, want) {
				t.Fatalf("size %d, step %d: ring %d, want %d", size, step, got, want)
			}
		}
	}
}

// The list of requests under way, forwards and backwards, compared with a plain list.
func TestList(t *testing.T) {
	check := func(w *worker, want []int32) {
		t.Helper()
		var there, back []int32
		for i := w.oldest; i != none; i = w.conns[i].next {
			there = append(there, i)
		}
		for i := w.newest; i != none; i = w.conns[i].prev {
			back = append(back, i)
		}
		slices.Reverse(back)
		if !slices.Equal(there, want) || !slices.Equal(back, want) {
			t.Fatalf("list is %d forwards, %d backwards, want %d", there, back, want)
		}
	}
	rng := rand.New(rand.NewPCG(2, 3))
	w := newWorker(&config{}, &plan{}, 0, 6, 6)
	var want []int32
	check(w, nil)
	for range 2000 {
		i := int32(rng.IntN(6))
		if slices.Contains(want, i) {
			w.unlink(i)
			want = slices.DeleteFunc(want, func(j int32) bool { return j == i })
		} else {
			w.link(i)
			want = append(want, i)
		}
		check(w, want)
	}
}

// A response was delayed by no more than the greatest own lag since no request was under way; for a
// request that waited for a connection, the bound of the response before it is added.
func TestLateness(t *testing.T) {
	w := hot(t, hello, 3, &later{})
	send := func(i int32, due, since, sent int64) {
		c := &w.conns[i]
		c.due, c.since, c.sent = due, since, sent
		w.lateness(c)
		w.link(i)
		w.inFlight++
	}
	check := func(i int, late int64) {
		t.Helper()
		if w.ends(i, clock.Mono()); w.conns[i].late != late {
			t.Errorf("connection %d: late by %d at most, want %d", i, w.conns[i].late, late)
		}
	}
	send(0, 1000, 0, 1030) // 30 late
	send(1, 1040, 0, 1045) // 5 late, but behind the first
	check(1, 30)
	send(1, 1050, 1060, 1064) // waited for a response with bound 30, and left 4 after it
	check(0, 34)
	check(1, 34)
	send(2, 2000, 1060, 2007) // no request was under way
	check(2, 7)
	send(2, 3000, 2900, 3000)
	check(2, 0)
}

// A connection that closes while free leaves the ring, and no other does; one with a late response
// goes to its end.
func TestDyingConnectionsLeaveTheRing(t *testing.T) {
	w := hot(t, hello, 4, &later{})
	w.Closed(2, clock.Mono(), Reading, nil)
	if got := w.ring(); !slices.Equal(got, []int32{0, 1, 3}) || w.alive != 3 {
		t.Fatalf("ring %d, %d alive", got, w.alive)
	}
	w.tick(clock.Mono() + retryAfterNs) // no response yet, so it is opened after a pause
	w.Opened(2, clock.Mono())
	if got := w.ring(); !slices.Equal(got, []int32{0, 1, 3, 2}) || w.alive != 4 {
		t.Fatalf("ring %d, %d alive", got, w.alive)
	}
	w.Received(1, clock.Mono(), []byte("what?"))
	if got := w.ring(); !slices.Equal(got, []int32{0, 3, 2}) || w.engine.(*sink).closes != 1 {
		t.Fatalf("ring %d, %d closed", got, w.engine.(*sink).closes)
	}
}

// later is a process whose first arrival is never due.
type later struct{}

func (*later) Next() int64 { return 1 << 50 }

// ready is a process whose arrivals are all due already.
type ready struct{}

func (*ready) Next() int64 { return 0 }

// texts are responses as the server writes them, one for each key from 0 to 9.
func texts(body string) [][]byte {
	var out [][]byte
	for key := range 10 {
		b := strings.ReplaceAll(body, "{key}", strconv.Itoa(key))
		out = append(out, []byte("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: "+
			strconv.Itoa(len(b))+"\r\n\r\n"+b))
	}
	return out
}

// turn delivers the response of one connection: that frees it, and the next request leaves on it.
func turn(w *worker, answers [][]byte) {
	c := &w.conns[w.oldest]
	key := 0
	if n := len(c.want); n > 0 && c.want[n-1] >= '0' && c.want[n-1] <= '9' {
		key = int(c.want[n-1] - '0')
	}
	w.Received(int(w.oldest), clock.Mono(), answers[key])
}

var keyed = Scenario{KeyLo: 0, KeyHi: 9, Requests: []Request{
	{Method: "GET", Path: "/values?key={key}", Want: "value {key}", HasWant: true}}}

// From a response to the next request on its connection nothing is allocated: over thousands of
// requests, closed and open, with fixed and drawn keys, with and without trace ids.
func TestRequestsDoNotAllocate(t *testing.T) {
	check := func(name string, s Scenario, want string, arrivals pace.Process, share float64) {
		t.Helper()
		name = fmt.Sprintf("%s, %g traced", name, share)
		w := hotly(t, s, 16, arrivals, Trace{Share: share})
		answers := texts(want)
		w.more(clock.Mono())
		const each = 1000
		n := testing.AllocsPerRun(10, func() {
			for range each {
				turn(w, answers)
				w.tick(clock.Mono())
			}
		})
		if n != 0 {
			t.Errorf("%s: %g allocations for %d requests", name, n, each)
		}
		// AllocsPerRun does not count the first run, in which buffers grow.
		room := cap(newWorker(w.cfg, w.plan, 0, 1, 1).conns[0].sends)
		if now := cap(w.conns[0].sends); now != room {
			t.Errorf("%s: requests had room of %d bytes and took %d", name, room, now)
		}
		// AllocsPerRun warms up once; sixteen were sent before.
		if e := w.engine.(*sink); e.sends != 11*each+16 || w.book.total != 11*each ||
			w.inFlight != 16 {
			t.Errorf("%s: %d sent, %d answered, %d under way: %+v", name, e.sends, w.book.total,
				w.inFlight, w.book.errors())
		}
		for y := range whys { // none fails, so there are two full shelves and an empty one
			if n := len(w.book.traced[y].marks); share > 0 && n != [whys]int{16, 0, 16}[y] {
				t.Errorf("%s: %d requests kept as %s", name, n, whyNames[y])
			}
		}
	}
	fixed, drawn := hello.Requests[0].Want, keyed.Requests[0].Want
	mix := keyed
	mix.Requests = append(mix.Requests, Request{Method: "POST", Path: "/p?k={key}", Body: "x",
		Want: "value {key}", HasWant: true, Weight: 3})
	for _, share := range []float64{0, 0.5, 1} {
		check("closed", hello, fixed, nil, share)
		check("closed with keys", keyed, drawn, nil, share)
		check("open", hello, fixed, &ready{}, share)
		check("open with keys", keyed, drawn, &ready{}, share)
		check("mixed", mix, drawn, nil, share)
		check("quoting", quoting, quoted, nil, share)
	}
}

// quoting is a service that quotes the address and the client of a request.
var quoting = Scenario{Requests: []Request{{Method: "GET", Path: "/", HasWant: true,
	Want: "{lab host} heard :{lab source} at {lab port}"}}}

const quoted = "127.0.0.1:8080 heard :54321 at 8080"

// {lab …} values can vary in a response, and nothing else: any other byte of the same length is an
// error.
func TestQuotingAnswers(t *testing.T) {
	for body, bad := range map[string]bool{
		quoted: false, "127.0.0.1:8080 heard :1 at 8080": false,
		"127.0.0.1:8081 heard :54321 at 8080": true, "127.0.0.1:8080 heard :54321 at 8081": true,
		"127.0.0.1:8080 heard ;54321 at 8080": true, "127.0.0.1:8080 heard :5432x at 8080": true,
		"127.0.0.1:8080 heard :54321 at 808": true, "127.0.0.1:8080 heard : at 8080": true,
	} {
		w := hot(t, quoting, 16, nil)
		answers := texts(body)
		for range 100 {
			turn(w, answers)
		}
		if n := w.book.errors().Body; bad && n != 100 || !bad && n != 0 {
			t.Errorf("%q: %d of 100 are errors", body, n)
		}
	}
}

// members is keyed with users that have cookies and rows of data, and a path without cookies in the
// jar.
func members() Scenario {
	s := keyed
	s.Requests = []Request{{Method: "GET", Path: "/values?key={key}&of={name}",
		Want: "value {key}", HasWant: true}}
	s.Cookies, s.Columns = true, []string{"name"}
	s.Rows = [][][]byte{{[]byte("ann")}, {[]byte("ben")}}
	return s
}

// known gives each connection a jar.
func known(w *worker) {
	for i := range w.conns {
		w.conns[i].jar = jar{{name: "sid", value: "0123456789abcdef", path: "/"},
			{name: "x", value: "y", path: "/elsewhere"}}
	}
}

// Requests with cookies and rows of data do not allocate either, once buffers have grown.
func TestSessionsDoNotAllocate(t *testing.T) {
	w := hot(t, members(), 16, nil)
	known(w)
	answers := texts("value {key}")
	run := func() {
		for range 1000 {
			turn(w, answers)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%g allocations for 1000 requests", n)
	}
	const want = "&of=ben HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n" +
		"Cookie: sid=0123456789abcdef\r\n\r\n"
	found := slices.ContainsFunc(w.conns, func(c conn) bool {
		return strings.HasSuffix(string(c.out), want)
	})
	if !found || w.book.total != 12000 {
		t.Errorf("%d answers; it sends %q", w.book.total, w.conns[0].out)
	}
}

// A request without a key is sent directly from the template: copying a large body for each request
// would cost CPU time, and a buffer per connection memory.
func TestFixedRequestsAreNotCopied(t *testing.T) {
	s := Scenario{Requests: []Request{
		{Method: "POST", Path: "/", Body: strings.Repeat("x", 1<<20)}}}
	w := hot(t, s, 2, nil)
	a, b := w.conns[0].out, w.conns[1].out
	if &a[0] != &b[0] || &a[0] != &w.plan.routes[0].out[0] || len(a) < 1<<20 {
		t.Errorf("requests of %d and %d bytes have buffers of their own", len(a), len(b))
	}
	if n := cap(w.conns[0].sends); n != 0 {
		t.Errorf("a connection holds %d bytes for nothing", n)
	}
}

// A mix of fixed and keyed requests on one connection does not change the templates.
func TestTemplatesStayWhole(t *testing.T) {
	s := keyed
	s.Requests = append(s.Requests, Request{Method: "GET", Path: "/fixed", Want: "fixed",
		HasWant: true})
	w := hot(t, s, 1, nil)
	seen := map[string]int{}
	for range 500 {
		c := &w.conns[0]
		seen[string(c.out)]++
		w.Received(0, clock.Mono(), []byte("HTTP/1.1 200 OK\r\nContent-Length: "+
			strconv.Itoa(len(c.want))+"\r\n\r\n"+string(c.want)))
	}
	if w.book.total != 500 || len(seen) != 11 { // ten keys and the fixed one
		t.Errorf("%d of 500 good: %+v; %d texts", w.book.total, w.book.errors(), len(seen))
	}
	if n := seen["GET /fixed HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"]; n < 150 || n > 350 {
		t.Errorf("%d of 500 were fixed: %v", n, seen)
	}
}

// The generator's own work for a request, between the engine's read and its write.
func BenchmarkRequest(b *testing.B) {
	run := func(name string, s Scenario, arrivals pace.Process, share float64) {
		b.Run(name, func(b *testing.B) {
			w := hotly(b, s, 64, arrivals, Trace{Share: share})
			answers := texts(s.Requests[0].Want)
			w.more(clock.Mono())
			b.ReportAllocs()
			for b.Loop() {
				turn(w, answers)
			}
		})
	}
	poisson, err := at(pace.Poisson, 1e8).Process(1) // always behind
	if err != nil {
		b.Fatal(err)
	}
	run("closed", hello, nil, 0)
	run("closed, 1% traced", hello, nil, 0.01)
	run("closed, all traced", hello, nil, 1)
	run("closed with keys", keyed, nil, 0)
	run("closed with keys, all traced", keyed, nil, 1)
	run("open", hello, poisson, 0)
	run("closed with keys, rows and an empty jar", members(), nil, 0)
}

// crowding is arrivals of which one is due each nanosecond.
type crowding int64

func (c *crowding) Next() int64 {
	*c++
	return int64(*c)
}

// An open load that runs out of connections opens more before it has none, sends due requests on
// them, stops at its bound, and does not count a refusal as an error of a request.
func TestGrow(t *testing.T) {
	const hour = 3600e9
	arrivals := crowding(hour)
	w := hot(t, hello, 8, &arrivals)
	w.conns = append(w.conns, make([]conn, 24)...)
	w.free = append(w.free, make([]int32, 24)...)
	engine := w.engine.(*sink)
	now := w.cfg.start + hour + 6
	want := func(what string, inFlight, used, coming int) {
		t.Helper()
		if w.inFlight != inFlight || w.used != used || w.coming != coming {
			t.Fatalf("%s: %d under way on %d connections, %d coming, want %d on %d, %d coming",
				what, w.inFlight, w.used, w.coming, inFlight, used, coming)
		}
	}
	w.heard = now // the server responds: its requests come first
	w.dispatch(now)
	want("six are due, and more than one of eight stays free", 6, 8, 0)
	now += 3
	w.dispatch(now)
	want("the third of three more finds none", 8, 9, 1)
	w.dispatch(now + growNs/2)
	want("at once again", 8, 9, 1)
	w.Closed(8, now, Connecting, nil)
	if w.book.all.Errors[failConnect] != 0 || w.conns[8].phase != dead {
		t.Error("a refusal is not an error of a request")
	}
	now += growNs
	w.dispatch(now)
	want("after a refusal", 8, 9, 0)
	now += retryAfterNs
	w.tick(now)
	want("the refused one is tried again", 8, 9, 1)
	w.Opened(8, now)
	want("what was due leaves on it, and the server is silent", 9, 17, 8)
	for range 100 {
		now += retryAfterNs
		w.tick(now)
		w.dispatch(now)
		for i := range w.used {
			if w.conns[i].phase == opening {
				w.Opened(i, now)
			}
		}
	}
	if w.used != 32 || w.inFlight != 32 || w.coming != 0 || engine.opens < 32 {
		t.Errorf("%d under way on %d connections of 32, %d coming", w.inFlight, w.used, w.coming)
	}
}

// A closed load sends nothing after its window, even if the window closes between the loop's
// reading of the clock and the request: otherwise a server would count more requests than the load.
func TestNothingIsSentAfterTheWindow(t *testing.T) {
	w := hot(t, hello, 3, nil)
	w.cfg.plain = true
	sends, free, under := w.engine.(*sink).sends, w.freeN, w.inFlight
	if sends != 3 || free != 0 || under != 3 {
		t.Fatalf("%d sent, %d free, %d under way", sends, free, under)
	}
	w.cfg.closeAt = clock.Mono() // the loop's time is before
	for i := range 3 {
		w.unlink(int32(i))
		w.inFlight--
		w.conns[i].task = spare
		w.push(int32(i))
	}
	w.more(w.cfg.closeAt - 1)
	if n := w.engine.(*sink).sends; n != sends || w.freeN != 3 || w.inFlight != 0 ||
		w.oldest != none || w.newest != none {
		t.Errorf("%d sent, %d free, %d under way, list %d to %d", n, w.freeN, w.inFlight, w.oldest,
			w.newest)
	}
	// A slice ends with a response after its moment, and such a request can be the last one.
	w.cfg.sliced, w.cfg.closeAt = true, clock.Mono()
	w.more(w.cfg.closeAt - 1)
	if n := w.engine.(*sink).sends; n != sends+3 {
		t.Errorf("%d sent in a slice", n-sends)
	}
}

// Of the body of an error, only the part that explains the error is kept.
func TestErrorsAreNotKept(t *testing.T) {
	w := hot(t, hello, 1, nil)
	w.dispatch(clock.Mono())
	body := strings.Repeat("no", 1<<18)
	w.Received(0, clock.Mono(), fmt.Appendf(nil, "HTTP/1.1 500 \r\nContent-Length: %d\r\n\r\n%s",
		len(body), body))
	if c := &w.conns[0]; cap(c.retained) == 0 || cap(c.retained) > 2*explainMax {
		t.Errorf("%d bytes are kept of a body of %d", cap(c.retained), len(body))
	}
}
