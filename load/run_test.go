package load

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/pace"
	"prony.example/record"
)

// counts are the fields of a record that must be exact.
type counts struct{ scheduled, sent, done, answered, failed, censored int64 }

func (c counts) check(t *testing.T, r *Result) {
	t.Helper()
	got := counts{r.Scheduled, r.Sent, r.Done, r.Answered, r.Errors.Requests(),
		r.Censored}
	if got != c {
		t.Errorf("counts\n got %+v\nwant %+v (%+v)", got, c, r.Errors)
	}
}

func exactly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if d := got - want; d > 1e-9 || d < -1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// within a histogram's three digits.
func about(t *testing.T, what string, got, want int64) {
	t.Helper()
	if d := got - want; d > want/500+1 || d < -want/500-1 {
		t.Errorf("%s is %d, want %d to three digits", what, got, want)
	}
}

func sum(v []int64) (n int64) {
	for _, x := range v {
		n += x
	}
	return n
}

// Eight connections, each with a response after 20 ms. With a lead-in of 100 ms they send at 0, 20,
// … ms; the window [100, 1100) has the sends at 100, …, 1080 (50 each), and as many responses.
func TestClosedLoop(t *testing.T) {
	w := &world{serve: after(20 * time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 8, Lead: 100 * time.Millisecond})
	counts{scheduled: 400, sent: 400, done: 400, answered: 400}.check(t, r)
	exactly(t, "throughput", r.ThroughputPerS, 400)
	exactly(t, "requests under way", r.InFlightMean, 8)
	if w.most != 8 {
		t.Errorf("%d requests were under way at once, want exactly 8", w.most)
	}
	for _, d := range []record.Dist{r.ServiceTime, r.ResponseTime, r.FirstByte} {
		about(t, "shortest time", d.MinNs, 20*ms)
		about(t, "longest time", d.MaxNs, 20*ms)
	}
	// A tenth of a second holds five rounds of eight.
	want := slices.Repeat([]int64{40}, 10)
	if !slices.Equal(r.Series.Done, want) || !slices.Equal(r.Series.Sent, want) {
		t.Errorf("series: sent %d, done %d, want %d", r.Series.Sent, r.Series.Done, want)
	}
}

// Without a lead-in the first requests leave at the window's opening, not before: 8 sends at 0, …,
// 980 are due in the window, and the responses of the last eight come at its end, which is outside.
func TestClosedLoopStartsAtTheStart(t *testing.T) {
	w := &world{serve: after(20 * time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 8, Drain: time.Second})
	counts{scheduled: 400, sent: 400, done: 392, answered: 400}.check(t, r)
	exactly(t, "requests under way", r.InFlightMean, 8)
	if began := w.calls[0].at - w.opened[0]; began != int64(settle) {
		t.Errorf("the first request left %d ns after the connects, want %d", began, settle)
	}
}

// An open load with spare capacity: each arrival leaves at its moment, which lag measures.
func TestOpenLoopIsOnTime(t *testing.T) {
	w := &world{serve: after(time.Millisecond)}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(1000), Connections: 4,
		Lead:  200 * time.Millisecond,
		Drain: time.Second})
	counts{scheduled: 1000, sent: 1000, done: 1000, answered: 1000}.check(t, r)
	exactly(t, "requests under way", r.InFlightMean, 1) // 1000/s × 1 ms
	exactly(t, "backlog", r.BacklogPerS, 0)
	for _, d := range []record.Dist{r.Lag, r.OwnLag} {
		if d.Count != 1000 || d.MaxNs != 1 { // 0 ns counts as the least that a histogram holds
			t.Errorf("lag of %d ns at most over %d", d.MaxNs, d.Count)
		}
	}
	if r.Waited != 0 {
		t.Errorf("%d waited", r.Waited)
	}
	begin := w.calls[0].at
	for k, c := range w.calls {
		if at := c.at - begin; at != int64(k)*ms {
			t.Fatalf("request %d left at %d ns, want %d ms", k, at, k)
		}
	}
}

// A replay sends the arrivals of its trace, which has no rate of its own: the mean rate is the
// number of arrivals due in the window, divided by its length.
func TestReplayHasTheRateOfItsTrace(t *testing.T) {
	r := good(t, &world{serve: after(time.Millisecond)}, Spec{
		Model: record.Open, Connections: 2, Window: 4 * time.Second, Lead: time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Replay, Trace: []int64{0, 1e9, 1e9, 45e8, 9e9}},
	})
	if r.Arrivals != pace.Replay || r.Shape != "" || r.Scheduled != 3 || r.Done != 3 {
		t.Errorf("%s %q, %d scheduled, %d done", r.Arrivals, r.Shape, r.Scheduled, r.Done)
	}
	exactly(t, "arrivals/s", r.RatePerS, 0.75)
}

// The server stops for 400 of 1,000 ms: one connection, 100/s, each response takes 1 ms, but none
// leaves between 300 and 700 ms. The request of 300 ms gets its response at 700; the arrivals of
// 310, …, 690 wait and go out back to back, a millisecond each, while those from 700 on queue
// behind them.
func TestOpenLoopNeverAdapts(t *testing.T) {
	var begin int64
	w := &world{}
	w.serve = func(c call) reply {
		if c.n == 1 {
			begin = c.at
		}
		if at := c.at - begin; at >= 300*ms && at < 700*ms {
			return answer(time.Duration(700*ms-at), "ok")
		}
		return answer(time.Millisecond, "ok")
	}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second})
	counts{scheduled: 100, sent: 100, done: 100, answered: 100}.check(t, r)
	// A manual queue: arrival k (due 10k ms) leaves at max(10k, response of k-1).
	free, waited := int64(0), int64(0)
	longest, lag := int64(0), int64(0)
	for k := range int64(100) {
		due := 10 * k
		left := max(due, free)
		free = left + 1
		if left == 300 {
			free = 700
		}
		if left > due {
			waited++
		}
		longest, lag = max(longest, free-due), max(lag, left-due)
	}
	about(t, "longest response", r.ResponseTime.MaxNs, longest*ms) // 400 ms
	about(t, "longest lag", r.Lag.MaxNs, lag*ms)                   // 390 ms
	about(t, "longest service", r.ServiceTime.MaxNs, 400*ms)
	about(t, "p90 of the service", r.ServiceTime.P90Ns, 1*ms)
	if r.Waited != waited {
		t.Errorf("%d waited, want %d", r.Waited, waited)
	}
	// The generator itself was never late: waiting requests left the moment the connection was
	// free.
	if r.OwnLag.MaxNs != 1 || r.OwnLag.Count != 100 {
		t.Errorf("own lag of %d ns at most over %d, want none", r.OwnLag.MaxNs, r.OwnLag.Count)
	}
	if r.PunctualTime != r.ResponseTime {
		t.Errorf("it held up answers: %+v of %+v", r.PunctualTime, r.ResponseTime)
	}
}

// A server stops responding at 500 ms, and continues a millisecond after the drain has ended, at
// 1,303 ms. 100/s from 0 on: 50 responses of 1 ms each, then the arrivals of 500, 510, 520 and 530
// take the four connections and 46 never leave.
func TestSilenceIsCensored(t *testing.T) {
	var begin int64
	w := &world{}
	w.serve = func(c call) reply {
		if c.n == 1 {
			begin = c.at
		}
		if at := c.at - begin; at >= 500*ms {
			return answer(time.Duration(1304*ms-at), "ok")
		}
		return answer(time.Millisecond, "ok")
	}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 4,
		Drain: 303 * time.Millisecond})
	counts{scheduled: 100, sent: 54, done: 50, answered: 50, censored: 50}.check(t, r)
	// ∫ under way = 50·1 + (500 + 490 + 480 + 470) = 1,990 ms over a window of 1,000: requests
	// without a response count to the end.
	exactly(t, "requests under way", r.InFlightMean, 1.99)
	// Behind at x = 0.1, …, 1.0 s: y = 0 five times, then 10, 20, 30, 40, 50. With x̄ = 0.55 the
	// slope is Σ(x-x̄)y over Σ(x-x̄)², which is 0.825:
	// 0.05·10 + 0.15·20 + 0.25·30 + 0.35·40 + 0.45·50 = 47.5.
	exactly(t, "backlog", r.BacklogPerS, 47.5/0.825)
	if r.ResponseTime.Count != 50 || r.Lag.Count != 54 {
		t.Errorf("%d response times, %d lags", r.ResponseTime.Count, r.Lag.Count)
	}
}

// A request that leaves after the window's end was still due inside it; a response that comes then
// counts as a response, but not as throughput. One connection, 50 ms each, 100 due in 1 s: 20 leave
// in the window (0, 50, …, 950), 19 responses come in it (50, …, 950).
func TestWindowMembership(t *testing.T) {
	w := &world{serve: after(50 * time.Millisecond)}
	// The timeout counts from the send: waiting for a connection is not part of it.
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: 10 * time.Second, Timeout: 60 * time.Millisecond})
	counts{scheduled: 100, sent: 20, done: 19, answered: 100}.check(t, r)
	exactly(t, "requests under way", r.InFlightMean, 1)
	if len(w.calls) != 100 {
		t.Errorf("%d requests left, though nothing is due after the window", len(w.calls))
	}
	if sum(r.Series.Done) != 19 || sum(r.Series.Sent) != 20 || sum(r.Series.Scheduled) != 100 {
		t.Errorf("series %+v", r.Series)
	}
	// The last was due at 990 and left at 99·50: response 4,950 + 50 - 990.
	about(t, "longest response", r.ResponseTime.MaxNs, 4010*ms)
	// With a shorter drain the rest is censored: responses at 50, …, 1,500 are 30.
	w = &world{serve: after(50 * time.Millisecond)}
	r = good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: 501 * time.Millisecond})
	counts{scheduled: 100, sent: 20, done: 19, answered: 30, censored: 70}.check(t, r)
	// Requests from the lead-in do not count, even with a response in the window: 0, …, 90 are due
	// in the lead-in and leave at 0, 50, …, 450; the window [100, 1100) has responses at 100, …,
	// 1050.
	w = &world{serve: after(50 * time.Millisecond)}
	r = good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Lead:  100 * time.Millisecond,
		Drain: 10 * time.Second})
	counts{scheduled: 100, sent: 12, done: 20, answered: 100}.check(t, r)
}

// Arrivals that are still waiting when the window ends leave in the drain, even if no connection is
// open at that moment. The server closes during the request of 900 ms and is back at 1,100: 910, …,
// 990 wait for it.
func TestDrainWaitsForConnections(t *testing.T) {
	var begin int64
	down := func() bool {
		at := clock.Mono() - begin
		return begin != 0 && at >= 900*ms && at < 1100*ms
	}
	w := &world{
		connect: func(int) (time.Duration, error) {
			if down() {
				return 0, errRefused
			}
			return 0, nil
		},
		serve: func(c call) reply {
			if c.n == 1 {
				begin = c.at
			}
			if down() {
				return reply{end: true, op: Reading}
			}
			return answer(time.Millisecond, "ok")
		},
	}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 1,
		Drain: time.Second})
	// The request that met the end is sent again when the server is back.
	counts{scheduled: 100, sent: 91, done: 90, answered: 100}.check(t, r)
	if r.Retried != 1 || r.Errors.Connect < 4 {
		t.Errorf("%d retried, %+v", r.Retried, r.Errors)
	}
}

// A timeout enters the response times with its age when it was given up: at most a tick of 10 ms
// after the bound. Every second request gets no response: 10/s, 2 connections.
func TestTimeoutsEnterTheResponseTimes(t *testing.T) {
	w := &world{serve: func(c call) reply {
		if c.n%2 == 0 {
			return reply{}
		}
		return answer(time.Millisecond, "ok")
	}}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(10), Connections: 4,
		Timeout: 150 * time.Millisecond,
		Drain:   time.Second})
	counts{scheduled: 10, sent: 10, done: 5, answered: 5, failed: 5}.check(t, r)
	if r.Errors.Timeout != 5 || r.ErrorTime.Count != 5 {
		t.Errorf("%+v, %d error times", r.Errors, r.ErrorTime.Count)
	}
	if r.ResponseTime.Count != 10 || r.ServiceTime.Count != 10 {
		t.Errorf("%d response times and %d service times, want 10: timeouts are in",
			r.ResponseTime.Count, r.ServiceTime.Count)
	}
	for _, d := range []record.Dist{r.ResponseTime, r.ServiceTime} {
		if low, high := 150*ms, 161*ms; d.MaxNs < low || d.MaxNs > high {
			t.Errorf("longest is %d, want %d to %d", d.MaxNs, low, high)
		}
		about(t, "median", d.P50Ns, 1*ms)
	}
	// Each timed-out request closes its connection.
	if r.Reconnects != 5 && r.Reconnects != 4 { // the last can time out after the window
		t.Errorf("%d reconnects", r.Reconnects)
	}
}

// The oldest request expires first, and one with a response in the meantime does not expire: three
// closed connections, of which the second is slow.
func TestTimeoutsGoByAge(t *testing.T) {
	w := &world{serve: func(c call) reply {
		if c.slot == 1 {
			return reply{}
		}
		return answer(70*time.Millisecond, "ok")
	}}
	r := good(t, w, Spec{Model: record.Closed, Connections: 3, Timeout: 100 * time.Millisecond,
		Drain: 200 * time.Millisecond})
	// Two connections send at 0, 70, …, 980: 15 each; the third gives up every 100 ms (and pauses
	// 20 ms, as it was never answered): at 0, 120, …, 960: 9.
	counts{scheduled: 39, sent: 39, done: 28, answered: 30, failed: 9}.check(t, r)
	if r.Errors.Timeout != 9 {
		t.Errorf("%+v", r.Errors)
	}
}

// Two threads send one schedule: sorted by time, the requests that the server receives are the
// process itself, arrival k requests key k, and each thread sends its own share.
func TestThreadsShareOneSchedule(t *testing.T) {
	check := func(threads, connections int, arrivals string) {
		t.Helper()
		const ratePerS, seed = 2000, 11
		w := &world{serve: func(call) reply { return answer(100*time.Microsecond, "ok") }}
		s := Spec{Model: record.Open, Schedule: at(arrivals, ratePerS), Seed: seed,
			Connections: connections, Drain: time.Second, Cores: make([]int, threads),
			Lead: 50 * time.Millisecond}
		s.Scenario = Scenario{KeyLo: 1, KeyHi: 1e9, Requests: []Request{
			{Method: "GET", Path: "/?k={key}", Want: "ok", HasWant: true}}}
		r := good(t, w, s)
		if r.Threads != threads || r.Errors.Total() != 0 || r.Answered != r.Scheduled {
			t.Fatalf("%d threads, %d of %d answered, %+v", r.Threads, r.Answered, r.Scheduled,
				r.Errors)
		}
		plan, err := compile(s.Scenario, "x", "80", seed)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(w.calls, func(a, b call) int { return int(a.at - b.at) })
		p, err := at(arrivals, ratePerS).Process(seed)
		if err != nil {
			t.Fatal(err)
		}
		start := w.opened[0] + int64(settle)
		for k, c := range w.calls {
			_, key := plan.draw(uint64(k))
			due := p.Next()
			line := fmt.Sprintf("GET /?k=%d ", key)
			if c.at-start != due || !strings.HasPrefix(c.text, line) {
				t.Fatalf("%d threads, %s: request %d at %d ns is %.20q, want %q at %d", threads,
					arrivals, k, c.at-start, c.text, line, due)
			}
		}
		if next := p.Next(); next < 1050*ms {
			t.Errorf("%d requests, and the arrival at %d never left", len(w.calls), next)
		}
	}
	check(1, 8, pace.Poisson)
	check(2, 8, pace.Poisson)
	check(3, 32, pace.Poisson)
	check(2, 9, pace.Constant)
}

// With one connection the seed determines requests and their order; another seed gives others.
func TestSeedsDecideTheKeys(t *testing.T) {
	ask := func(model string, seed uint64, speed time.Duration) []string {
		w := &world{serve: after(speed)}
		s := Spec{Model: model, Schedule: at(pace.Poisson, 100), Connections: 1, Seed: seed,
			Drain: time.Second}
		s.Scenario = Scenario{KeyLo: 10, KeyHi: 99, Requests: []Request{
			{Method: "GET", Path: "/a?k={key}", WantSize: -1, Weight: 2},
			{Method: "POST", Path: "/b?k={key}", Body: "x", WantSize: -1}}}
		good(t, w, s)
		return w.lines()
	}
	for _, model := range []string{record.Closed, record.Open} {
		a, b := ask(model, 7, time.Millisecond), ask(model, 7, 3*time.Millisecond)
		n := min(len(a), len(b))
		if n < 50 || !slices.Equal(a[:n], b[:n]) {
			t.Errorf("%s: one seed asks\n%q and\n%q", model, a[:n], b[:n])
		}
		if c := ask(model, 8, time.Millisecond); slices.Equal(a[:50], c[:50]) {
			t.Errorf("%s: two seeds ask the same", model)
		}
	}
}

// Longest idle first: with one request at a time, all connections take turns.
func TestLoadSpreadsOverConnections(t *testing.T) {
	w := &world{serve: after(time.Millisecond)}
	good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 5, Drain: time.Second})
	for k, c := range w.calls {
		if c.slot != k%5 {
			t.Fatalf("request %d went to connection %d, want %d", k, c.slot, k%5)
		}
	}
}

// A service that stalls for 100 ms just before the window sends the delayed responses inside it,
// and responses to requests due in the last 10 ms come after it. With both carried numbers, the
// requests under way match the times of the requests that count.
func TestWhatReachesOverTheEdges(t *testing.T) {
	var begin int64
	w := &world{}
	w.serve = func(c call) reply {
		if c.n == 1 {
			begin = c.at
		}
		if at := c.at - begin; at >= 400*ms && at < 500*ms {
			return answer(time.Duration(550*ms-at), "ok") // all at 550 ms, 50 ms into the window
		}
		return answer(15*time.Millisecond, "ok")
	}
	r := good(t, w, Spec{Model: record.Open, Schedule: even(100), Connections: 64,
		Lead: 500 * time.Millisecond, Drain: time.Second})
	// 10 were delayed, 50 ms of each in the window.
	exactly(t, "carried", r.CarriedInMean, 10*0.05)
	// Of those due at 990 ms 5 ms, of no other any.
	exactly(t, "left", r.CarriedOutMean, 0.005)
	sum := r.ServiceTime.MeanNs * float64(r.ServiceTime.Count) / float64(r.WindowNs)
	if law := sum + r.CarriedInMean - r.CarriedOutMean; math.Abs(law-r.InFlightMean) > 0.002*law {
		t.Errorf("%.4f under way, the times add up to %.4f", r.InFlightMean, law)
	}
}
