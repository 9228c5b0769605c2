package load

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

// Timers fire in the order of their moments, in whatever order they were set.
func TestTimers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		h := make(timers, 0, n)
		var want []int64
		for i := range n {
			at := rng.Int64N(20)
			h.push(timer{at, int32(i)})
			want = append(want, at)
		}
		slices.Sort(want)
		var got []int64
		for len(h) > 0 {
			got = append(got, h.pop().atNs)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d timers fired at %d, want %d", n, got, want)
		}
	}
}

func users(number pace.Profile, think Think) *Users { return &Users{Number: number, Think: think} }

// N users with think time Z and service time S send N/(Z+S) requests per second: the interactive
// response time law.
func TestUsersThink(t *testing.T) {
	testsets.Whole(t, "many simulated loads")
	check := func(threads int, think Think, want int64) {
		t.Helper()
		w := &world{serve: after(50 * time.Millisecond)}
		cores := make([]int, threads)
		r := good(t, w, Spec{Model: record.Closed, Connections: 10, Window: 100 * time.Second,
			Users: users(pace.Flat(10), think), Cores: cores, Seed: 3})
		if d := r.Scheduled - want; d < -want/40 || d > want/40 {
			t.Errorf("%v: %d requests, want %d", think, r.Scheduled, want)
		}
		near := func(what string, ns, want int64) {
			if ns < want*999/1000 || ns > want*1001/1000 {
				t.Errorf("%v: %s %d, want %d", think, what, ns, want)
			}
		}
		near("response", r.ResponseTime.P50Ns, 50*ms)
		near("service", r.ServiceTime.MaxNs, 50*ms)
		if r.Lag.MaxNs > 1 {
			t.Errorf("%v: lag %d", think, r.Lag.MaxNs)
		}
	}
	// 10 users, 100 s, a request every 200 ms: 10·100/0.2. What is drawn has a standard deviation
	// of at most 0.75/√5000, 1.1 %.
	check(1, Think{Kind: "constant", Lo: 150 * time.Millisecond}, 5000)
	check(3, Think{Kind: "constant", Lo: 150 * time.Millisecond}, 5000)
	check(1, Think{Kind: "uniform", Lo: 0, Hi: 300 * time.Millisecond}, 5000)
	check(1, Think{Kind: "exponential", Lo: 150 * time.Millisecond}, 5000)
	check(1, Think{}, 20000) // no pause: 10·100/0.05
}

// Users come and go by the profile: from 0 to 8 in 4 s user i begins at (i+1)/2 s, and from 8 to 0
// in the next 4 s they leave in the opposite order. One request per second each, which takes no
// time: those of user 0 begin at 0.5 s and end before 7.5 s.
func TestUsersComeAndGo(t *testing.T) {
	shape := pace.Profile{Pieces: []pace.Piece{{ForNs: 4000 * ms, From: 0, To: 8},
		{ForNs: 4000 * ms, From: 8, To: 0}, {ForNs: 1, From: 0, To: 0}}}
	for _, threads := range []int{1, 2} {
		w := &world{serve: after(0)}
		r := good(t, w, Spec{Model: record.Closed, Connections: 8, Window: 10 * time.Second,
			Users: users(shape, Think{Kind: "constant", Lo: time.Second}),
			Cores: make([]int, threads)})
		// User i is active for 7 − i seconds, both ends included: 8 + 7 + … + 1 requests.
		if r.Scheduled != 36 {
			t.Errorf("%d threads: %d requests, want 36", threads, r.Scheduled)
		}
		first := w.calls[0].at
		most := map[int64]int{}
		for _, c := range w.calls {
			first = min(first, c.at)
		}
		for _, c := range w.calls {
			most[(c.at-first)/(1000*ms)]++
		}
		// From 0.5 s on, in each second: one more user at its beginning and one in its middle.
		want := map[int64]int{0: 2, 1: 4, 2: 6, 3: 8, 4: 7, 5: 5, 6: 3, 7: 1}
		if !maps.Equal(most, want) {
			t.Errorf("%d threads: requests by second %v, want %v", threads, most, want)
		}
	}
}

// A user's request on a closed connection waits for the new one, and the wait counts.
func TestUsersWaitForTheirConnection(t *testing.T) {
	w := &world{serve: func(c call) reply {
		r := answer(0, "ok")
		r.end = true // after each response, while the user thinks
		return r
	}, connect: func(n int) (time.Duration, error) {
		if n > 1 {
			return 300 * time.Millisecond, nil
		}
		return 0, nil
	}}
	r := good(t, w, Spec{Model: record.Closed, Connections: 1, Window: 2 * time.Second,
		Users: users(pace.Flat(1), Think{Kind: "constant", Lo: 100 * time.Millisecond})})
	// Every 300 ms: 100 ms of think time end while the connection takes 300 ms to open.
	if r.Scheduled != 7 || r.Waited != 6 {
		t.Errorf("%d requests, %d waited; want 7, of which all but the first", r.Scheduled,
			r.Waited)
	}
	if got := r.ResponseTime.MaxNs / ms; got < 199 || got > 201 {
		t.Errorf("longest response %d ms, want 200", got)
	}
	if r.ServiceTime.MaxNs > 1 || r.OwnLag.MaxNs > 1 {
		t.Errorf("service %d, own lag %d", r.ServiceTime.MaxNs, r.OwnLag.MaxNs)
	}
}

// With churn a connection is renewed after a number of responses, which counts neither as failure
// nor as reconnect.
func TestChurn(t *testing.T) {
	w := &world{serve: after(10 * time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 2, Churn: 5})
	if n := len(w.calls); n != 200 || w.attempts < 40 || w.attempts > 42 || r.Reconnects != 0 {
		t.Errorf("%d requests over %d connections, %d reconnects", n, w.attempts, r.Reconnects)
	}
	for _, c := range w.calls {
		if c.onConn > 5 {
			t.Fatalf("request %d of a connection", c.onConn)
		}
	}
}

// A load with a number of requests ends with the last response, and its duration is the window.
// Requests of the lead-in do not count.
func TestSoManyRequests(t *testing.T) {
	check := func(model string, connections, threads int, lead time.Duration) {
		t.Helper()
		w := &world{serve: after(10 * time.Millisecond)}
		s := Spec{Model: model, Connections: connections, Requests: 100, Window: time.Hour,
			Cores: make([]int, threads), Drain: time.Second, Lead: lead}
		if model == record.Open {
			s.Schedule = even(1000)
		}
		r := good(t, w, s)
		want := int64(100/connections) * 10 * ms
		if model == record.Open {
			want = 109 * ms // the hundredth is due at 99 ms
		}
		before := connections * int(lead/(10*time.Millisecond))
		if model == record.Open {
			before = int(lead / time.Millisecond)
		}
		if len(w.calls) != before+100 || r.Answered != 100 || r.Done < 99 || r.Censored != 0 {
			t.Errorf("%s: sent %d, answered %d, censored %d", model, len(w.calls), r.Answered,
				r.Censored)
		}
		if d := r.WindowNs - want; d < 0 || d > 2*ms {
			t.Errorf("%s: the window was %d, want %d", model, r.WindowNs, want)
		}
	}
	for _, lead := range []time.Duration{0, 300 * time.Millisecond} {
		check(record.Closed, 4, 1, lead)
		check(record.Closed, 4, 2, lead)
		check(record.Open, 50, 1, lead)
	}
}

func flat(n float64) pace.Profile { return pace.Flat(n) }
