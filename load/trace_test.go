package load

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

// headRe are the header fields of a traced request: https://www.w3.org/TR/trace-context/, with the
// groups trace id and span id.
var headRe = regexp.MustCompile(
	"traceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\ntracestate: prony=1\r\n")

const zeros = "00000000000000000000000000000000"

func TestTraceIDs(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	field := []byte(traceText)
	head := func(c *tracer, k uint64, step int32) (trace, span string) {
		t.Helper()
		c.put(field, k, step)
		m := headRe.FindSubmatch(field)
		if m == nil || len(m[0]) != len(field) {
			t.Fatalf("request %d: %q", k, field)
		}
		trace, span = string(m[1]), string(m[2])
		if trace == zeros || span == zeros[:16] {
			t.Fatalf("request %d: %q has zeros", k, field)
		}
		return trace, span
	}
	// For any load: loads that differ in one parameter, and steps of one flow.
	type id struct{ hi, lo uint64 }
	var traces []id
	var spans []uint64
	take := func(n uint64, name string, salt, seed uint64, steps int32) {
		c := newTracer(Trace{Share: 1, Salt: salt}, name, seed)
		for k := range n {
			for step := range steps {
				hi, lo, span := c.ids(k, step)
				traces, spans = append(traces, id{hi, lo}), append(spans, span)
			}
		}
		head(&c, n/2, steps-1)
	}
	take(1_000_000, "peak", 0, 1, 1)
	take(100_000, "peak", 1, 1, 1)
	take(100_000, "peak", 1<<63, 1, 3)
	take(100_000, "steady", 0, 1, 1)
	take(100_000, "peak", 0, 2, 1)
	want := len(traces) // 1.7 million
	slices.SortFunc(traces, func(a, b id) int {
		return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
	})
	slices.Sort(spans)
	if n := len(slices.Compact(traces)); n != want {
		t.Errorf("%d trace ids of %d requests", n, want)
	}
	if n := len(slices.Compact(spans)); n != want {
		t.Errorf("%d span ids of %d requests", n, want)
	}
	// A repetition is identical.
	a, b := newTracer(Trace{Salt: 3}, "x", 4), newTracer(Trace{Salt: 3}, "x", 4)
	for k := range uint64(100) {
		ta, sa := head(&a, k, 0)
		if tb, sb := head(&b, k, 0); ta != tb || sa != sb {
			t.Fatalf("request %d has ids %s %s and %s %s", k, ta, sa, tb, sb)
		}
	}
	// Mix(0, 2^64-1) is 0: the only request of this tracer whose draws are.
	none := tracer{}
	if trace, span := head(&none, math.MaxUint64, 0); trace != zeros[:31]+"1" ||
		span != zeros[:15]+"1" {
		t.Errorf("zeros became %s and %s", trace, span)
	}
}

// Of a million requests, the traced share is as configured, within five standard deviations of the
// binomial distribution; and steps of a flow are drawn independently.
func TestTracedShare(t *testing.T) {
	const n = 1_000_000
	for _, share := range []float64{0, 1e-4, 0.01, 0.5, 0.999, 1} {
		for _, seed := range []uint64{1, 42, 1 << 63} {
			c := newTracer(Trace{Share: share}, "x", seed)
			count, both := 0, 0
			for k := range uint64(n) {
				_, first := c.draw(k, 0)
				_, second := c.draw(k, 1)
				if first {
					count++
				}
				if first && second {
					both++
				}
			}
			within := func(what string, got int, p float64) {
				t.Helper()
				bound := 5 * math.Sqrt(n*p*(1-p))
				if off := math.Abs(float64(got) - n*p); off > bound {
					t.Errorf("seed %d: %d of %d %s, want %g ± %.0f", seed, got, n, what, n*p, bound)
				}
			}
			within("are traced", count, share)
			within("have two traced steps", both, share*share)
		}
	}
	// The smallest possible share eventually takes some: its limit is not zero.
	if c := newTracer(Trace{Share: math.SmallestNonzeroFloat64}, "x", 1); c.limit != 1 {
		t.Errorf("the limit is %d", c.limit)
	}
}

// texts returns the requests that the server received, by time.
func (w *world) requests() (out []string) {
	slices.SortStableFunc(w.calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	for _, c := range w.calls {
		out = append(out, c.text)
	}
	return out
}

// Tracing adds its fields to the chosen requests and changes nothing else: neither other requests
// nor the rest of the chosen ones, for any template. A seed chooses the same ones for any salt, and
// the same salt gives the same bytes.
func TestOtherRequestsAreUnchanged(t *testing.T) {
	mix := Scenario{KeyLo: 1, KeyHi: 1e6, Requests: []Request{
		{Method: "GET", Path: "/fixed", WantSize: -1, Headers: []Header{{"Accept", "*/*"}}},
		{Method: "GET", Path: "/drawn?k={key}&u={uuid}", WantSize: -1},
		{Method: "POST", Path: "/body", Body: strings.Repeat("x", 5000), WantSize: -1},
		{Method: "PUT", Path: "/both", Body: "{seq} {hex 16}\r\n\r\n", WantSize: -1},
	}}
	check := func(name string, s Scenario) {
		t.Helper()
		send := func(trace Trace) []string {
			w := &world{serve: after(time.Millisecond)}
			if s.Flow {
				w.serve = clinic("", 0)
			}
			good(t, w, Spec{Model: record.Open, Schedule: at(pace.Poisson, 200), Seed: 7,
				Connections: 9,
				Drain:       2 * time.Second, Lead: 100 * time.Millisecond, Scenario: s,
				Trace: trace})
			return w.requests()
		}
		plain, some := send(Trace{}), send(Trace{Share: 0.3, Salt: 1})
		salted, all := send(Trace{Share: 0.3, Salt: 2}), send(Trace{Share: 1, Salt: 1})
		if len(plain) < 180 || len(some) != len(plain) || len(salted) != len(plain) ||
			len(all) != len(plain) {
			t.Fatalf("%s: %d, %d, %d and %d requests", name, len(plain), len(some), len(salted),
				len(all))
		}
		traced := 0
		for i, p := range plain {
			m := headRe.FindString(some[i])
			if m != "" {
				traced++
				head, _, _ := strings.Cut(some[i], "\r\n\r\n")
				if !strings.Contains(head, m[:len(m)-2]) {
					t.Errorf("%s: the fields are not in the head of %q", name, some[i])
				}
				if all[i] != some[i] || salted[i] == some[i] || !headRe.MatchString(salted[i]) {
					t.Errorf("%s: %q is %q among all, %q with another salt", name, some[i], all[i],
						salted[i])
				}
			} else if some[i] != p || salted[i] != p {
				t.Errorf("%s: without ids it is %q, among traced ones %q", name, p, some[i])
			}
			if bare := headRe.ReplaceAllString(all[i], ""); bare != p || all[i] == p {
				t.Errorf("%s: %q is traced as %q", name, p, all[i])
			}
		}
		// 0.3 ± 5·√(0.21/n)
		near := 5 * math.Sqrt(0.21*float64(len(plain)))
		if off := math.Abs(float64(traced) - 0.3*float64(len(plain))); off > near {
			t.Errorf("%s: %d of %d are traced", name, traced, len(plain))
		}
		if again := send(Trace{Share: 0.3, Salt: 1}); !slices.Equal(again, some) {
			t.Errorf("%s: the same load sends other bytes", name)
		}
	}
	check("mix", mix)
	check("flow", owners())
}

// told is a traced request as received by the server.
type told struct {
	id        string
	scheduled int64 // from the window's opening
	response  int64
	failed    bool
	n         int // in order of arrival
	done      int64
}

// tale serves requests with different response times and records the traced ones: with a connection
// for each, a request takes exactly as long as its response. Every 20th gets a wrong body, every
// 31st no response, which the first tick after the timeout detects.
func tale(start *int64, lead, timeout int64) (*world, *[]told) {
	out := &[]told{}
	w := &world{}
	w.serve = func(c call) reply {
		d := time.Duration(pace.Below(99, uint64(c.n), 1e8)) + time.Nanosecond
		r, x := answer(d, "ok"), told{response: int64(d), n: c.n}
		switch since := c.at - *start; {
		case c.n%31 == 0:
			const tick = int64(tickNs)
			r, x.failed = reply{}, true
			x.response = (since+timeout+tick-1)/tick*tick - since
		case c.n%20 == 0:
			r, x.failed = answer(d, "no"), true
		}
		x.scheduled, x.done = c.at-*start-lead, c.at+x.response
		if m := headRe.FindStringSubmatch(c.text); m != nil && c.at >= *start+lead {
			x.id = m[1]
			*out = append(*out, x)
		}
		return r
	}
	return w, out
}

// kept returns what the load reports of a class.
func kept(r *Result, why string) (out []told) {
	for _, x := range r.Traced {
		if x.Class == why {
			out = append(out, told{id: x.TraceID, scheduled: x.ScheduledNs, response: x.ResponseNs,
				failed: x.Failed})
		}
	}
	return out
}

// first returns the requests with the smallest keys, the slowest of them first.
func first(n int, list []told, key func(told) int64) []told {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b told) int { return cmp.Compare(key(a), key(b)) })
	list = list[:min(len(list), n)]
	slices.SortFunc(list, func(a, b told) int {
		return cmp.Or(cmp.Compare(b.response, a.response), cmp.Compare(a.n, b.n))
	})
	for i := range list { // which the generator does not report
		list[i].n, list[i].done = 0, 0
	}
	return list
}

// What is kept, compared with all traced requests that the server received, sorted.
func TestKeptRequests(t *testing.T) {
	const timeout, lead = 300 * time.Millisecond, 200 * time.Millisecond
	check := func(share float64, keep int) []record.Traced {
		t.Helper()
		var start int64
		w, saw := tale(&start, int64(lead), int64(timeout))
		r := good(t, w, Spec{Model: record.Open, Schedule: even(1000), Connections: 400, Seed: 5,
			Lead: lead, Drain: time.Second, Timeout: timeout,
			Trace: Trace{Share: share, Keep: keep},
			Together: func(context.Context) (int64, error) {
				start = clock.Mono()
				return start, nil
			}})
		if keep == 0 {
			keep = 16
		}
		if r.TraceShare != share {
			t.Errorf("share %g is told as %g", share, r.TraceShare)
		}
		same := func(why string, list []told, key func(told) int64) {
			t.Helper()
			want := first(keep, list, key)
			if got := kept(r, why); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("share %g: %s are\n%v, want\n%v", share, why, got, want)
			}
		}
		timed, bad := []told(nil), []told(nil)
		for _, x := range *saw {
			if x.failed {
				bad = append(bad, x)
			}
			if !x.failed || x.response >= int64(timeout) {
				timed = append(timed, x)
			}
		}
		same("slowest", timed, func(x told) int64 { return -x.response })
		same("failed", bad, func(x told) int64 { return x.done })
		tr := newTracer(Trace{Share: share}, "", 5)
		draws := map[string]int64{}
		for k := range uint64(1200) {
			hi, lo, _ := tr.ids(k, 0)
			d, _ := tr.draw(k, 0)
			draws[fmt.Sprintf("%016x%016x", hi, lo)] = int64(d >> 1)
		}
		same("uniform", *saw, func(x told) int64 { return draws[x.id] })
		return r.Traced
	}
	check(1, 0)
	check(1, 40)
	check(0.3, 0)
	if a, b := check(1, 3), check(1, 3); !slices.Equal(a, b) {
		t.Errorf("the same load keeps\n%v and\n%v", a, b)
	}
	w := &world{serve: after(time.Millisecond)}
	if r := good(t, w, Spec{Model: record.Closed, Connections: 2}); r.Traced != nil ||
		r.TraceShare != 0 {
		t.Errorf("without a share it keeps %v", r.Traced)
	}
}

// The same requests are kept for any number of threads, if their times are the same: a request with
// key k takes k ns.
func TestThreadsKeepTheSame(t *testing.T) {
	offer := func(threads int) []record.Traced {
		w := &world{serve: func(c call) reply {
			var k int
			if _, err := fmt.Sscanf(c.text, "GET /%d ", &k); err != nil {
				t.Error(err)
			}
			body := "ok"
			if k%7 == 0 {
				body = "no"
			}
			return answer(time.Duration(k), body)
		}}
		s := Spec{Model: record.Open, Schedule: even(1000), Connections: 30, Cores: make([]int,
			threads),
			Drain: time.Second, Trace: Trace{Share: 0.5, Keep: 20}}
		s.Scenario = Scenario{KeyLo: 1, KeyHi: 500_000, Requests: []Request{
			{Method: "GET", Path: "/{key}", Want: "ok", HasWant: true}}}
		return good(t, w, s).Traced
	}
	one := offer(1)
	if len(one) != 60 {
		t.Fatalf("%d requests kept, want 3 times 20", len(one))
	}
	for threads := 2; threads <= 3; threads++ {
		if many := offer(threads); !slices.Equal(many, one) {
			t.Errorf("%d threads keep\n%v, one\n%v", threads, many, one)
		}
	}
}

// The times of a request: due by the schedule, sent when the only connection was free, its first
// byte 3 ms and its last 5 ms after that. Ten per second and each takes 5 ms, except the first,
// which takes 250: the second waits 150 ms, the third 55.
func TestTimesOfTracedRequests(t *testing.T) {
	var wall int64
	w := &world{serve: func(c call) reply {
		wall = clock.Wall().UnixNano() - clock.Mono()
		r := reply{after: 3 * time.Millisecond, gap: 2 * time.Millisecond, pieces: []string{
			"HTTP/1.1 200 OK\r\n", "Content-Length: 2\r\n\r\nok"}}
		if c.n == 1 {
			r.after = 248 * time.Millisecond
		}
		return r
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(10), Connections: 1, Drain: time.Second,
		Trace: Trace{Share: 1, Keep: 3}})
	offset := r.Traced[0].ScheduledNs // of the first arrival in the window
	want := []record.Traced{
		{Class: "slowest", ScheduledNs: offset, FirstByteNs: 248 * ms, ResponseNs: 250 * ms},
		{Class: "slowest", ScheduledNs: offset + 100*ms, LagNs: 150 * ms, FirstByteNs: 3 * ms,
			ResponseNs: 155 * ms},
		{Class: "slowest", ScheduledNs: offset + 200*ms, LagNs: 55 * ms, FirstByteNs: 3 * ms,
			ResponseNs: 60 * ms},
	}
	for i, x := range r.Traced[:3] {
		x.TraceID = ""
		if x != want[i] {
			t.Errorf("request %d is %+v, want %+v", i, x, want[i])
		}
	}
	if r.WindowOpenedUnixNs != r.OpenedNs+wall {
		t.Errorf("the window opened at %d, on the wall %d ns off", r.WindowOpenedUnixNs,
			r.WindowOpenedUnixNs-r.OpenedNs-wall)
	}
	// In a closed load a request is due when it is sent, and steps have names.
	w = &world{serve: clinic("read", 3)}
	r = good(t, w, Spec{Model: record.Closed, Connections: 2, Scenario: owners(),
		Drain: time.Second, Trace: Trace{Share: 1}})
	routes := map[string]int{}
	for _, x := range r.Traced {
		routes[x.Class+" "+x.Route]++
		if x.LagNs != 0 || x.ScheduledNs < 0 || x.ScheduledNs >= 1000*ms {
			t.Errorf("%+v of a closed load", x)
		}
	}
	if routes["failed read"] == 0 || routes["failed pet"] != 0 || routes["slowest create"] == 0 {
		t.Errorf("kept are %v", routes)
	}
}

// A request that fails before its first byte has no first-byte time.
func TestTracedWithoutFirstByte(t *testing.T) {
	w := &world{serve: func(call) reply {
		return reply{after: time.Millisecond, end: true, err: errRefused, op: Reading}
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 4,
		Trace: Trace{Share: 1, Keep: 1}})
	if len(r.Traced) != 2 {
		t.Fatalf("%+v, want one failed and one uniform", r.Traced)
	}
	for i, why := range []string{"failed", "uniform"} {
		if x := r.Traced[i]; x.Class != why || !x.Failed || x.FirstByteNs != 0 ||
			x.ResponseNs < ms {
			t.Errorf("%+v", x)
		}
	}
}

// The two clocks are read so closely that the result is between two readings of one.
func TestWallAt(t *testing.T) {
	const slack = int64(time.Millisecond) // in case the process is interrupted in all readings
	for range 20 {
		before := clock.Wall().UnixNano()
		at := wallAt(clock.Mono())
		now := clock.Wall().UnixNano()
		if at < before-slack || at > now+slack {
			t.Errorf("%d is not from %d to %d", at, before, now)
		}
	}
}

func TestBadTraces(t *testing.T) {
	check := func(want string, trace Trace, headers ...Header) {
		t.Helper()
		w := &world{serve: after(time.Millisecond)}
		_, err := simulate(t, w, Spec{Name: "x", Model: record.Closed, Connections: 1, Trace: trace,
			Scenario: Scenario{Requests: []Request{
				{Method: "GET", Path: "/", Headers: headers, WantSize: -1}}}})
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: error %v, want %q", trace, err, want)
		}
	}
	own := Header{"TraceParent", "00-1-2-01"}
	check("", Trace{Share: 1, Keep: 1024}, Header{"Trace", "x"})
	check("", Trace{}, own)
	check("is not from 0", Trace{Share: -0.1})
	check("is not from 0", Trace{Share: 1.1})
	check("is not from 0", Trace{Share: math.NaN()})
	check("up to 1024 can", Trace{Share: 1, Keep: 1025})
	check("up to 1024 can", Trace{Share: 1, Keep: -1})
	check("a header field TraceParent of its own", Trace{Share: 0.1}, own)
	check("a header field tracestate of its own", Trace{Share: 0.1}, Header{"tracestate", "a=b"})
}
