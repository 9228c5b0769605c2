package virtual

import (
	"net/netip"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/load/engine/delayed"
	"prony.example/load/network"
	"prony.example/load/pace"
	"prony.example/record"
)

// behind returns an engine over the world's, with the delay of a network between both.
func behind(w *World, d network.Delay) func(netip.AddrPort, int) (load.Engine, error) {
	return func(a netip.AddrPort, slots int) (load.Engine, error) {
		e, err := w.New(a, slots)
		if err != nil {
			return nil, err
		}
		return delayed.New(e, slots, d), nil
	}
}

const ms = time.Millisecond

// A service that takes 2 ms behind a delay of 5 ms: each request of a closed load takes 7 ms, so
// one connection gets 142 responses in 1 s (1000 / 7 = 142.86). The service receives each request
// 2.5 ms after it was sent, and a connection opens after 5 ms.
func TestNetworkDelayIsExact(t *testing.T) {
	w, d := &World{Serve: After(2 * ms)}, network.Delay{RoundTrip: 5 * ms}
	res := w.Good(t, load.Spec{Model: record.Closed, Connections: 1, Network: d,
		Engine: behind(w, d), Drain: time.Second})
	if res.Done != 142 || res.Answered != 143 || res.Errors.Total() != 0 {
		t.Errorf("%d done, %d answered, %+v", res.Done, res.Answered, res.Errors)
	}
	exactly(t, "response", res.ResponseTime, 7*ms)
	exactly(t, "connect", res.ConnectTime, 5*ms)
	exactly(t, "added", res.Network.Added, 5*ms)
	if res.Network.DelayNs != int64(5*ms) || res.Network.JitterNs != 0 {
		t.Errorf("the record names the network %+v", res.Network)
	}
	for k, c := range w.Calls {
		if want := res.FromNs + int64(k)*int64(7*ms) + int64(2500*time.Microsecond); c.At != want {
			t.Fatalf("request %d came at %d, want %d", k, c.At, want)
		}
	}
}

// At 1000 requests/s, 7 requests are under way at once, and none waits for one of 8 connections.
// So every response comes 7 ms after its request was due, although the network holds bytes.
func TestNetworkDelayKeepsDueTimes(t *testing.T) {
	w, d := &World{Serve: After(2 * ms)}, network.Delay{RoundTrip: 5 * ms}
	res := w.Good(t, load.Spec{Model: record.Open, Connections: 8, Network: d,
		Engine: behind(w, d), Drain: time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(1000)}})
	if res.Scheduled != 1000 || res.Answered != 1000 || res.Waited != 0 {
		t.Errorf("%d due, %d answered, %d waited", res.Scheduled, res.Answered, res.Waited)
	}
	exactly(t, "response", res.ResponseTime, 7*ms)
	if res.OwnLag.MaxNs > 1 {
		t.Errorf("requests left up to %d ns late", res.OwnLag.MaxNs)
	}
}

// With a jitter of 1 ms, each direction takes 2 to 3 ms, and both together 4 to 6 ms with a
// triangular distribution: an eighth of round trips is shorter than 4.5 ms, half shorter than 5 ms.
// Its standard deviation is 1 ms / √6 = 408 µs, so the mean of 9,000 is within 0.02 ms of 5 ms with
// 4.6 standard errors to spare. The draws do not depend on the number of requests under way.
func TestNetworkJitter(t *testing.T) {
	d := network.Delay{RoundTrip: 5 * ms, Jitter: ms}
	offer := func(seed uint64) *load.Result {
		w := &World{Serve: After(2 * ms)}
		return w.Good(t, load.Spec{Model: record.Closed, Connections: 64, Network: d, Seed: seed,
			Engine: behind(w, d)})
	}
	res := offer(1)
	a := res.Network.Added
	if a.Count < 9000 || a.MinNs < int64(4*ms) || a.MaxNs > int64(6*ms)+1<<13 {
		t.Errorf("added %d times %d to %d ns", a.Count, a.MinNs, a.MaxNs)
	}
	near := func(subject string, got, want int64) {
		if off := got - want; max(off, -off) > int64(20*time.Microsecond) {
			t.Errorf("%s: %d, want about %d", subject, got, want)
		}
	}
	near("mean", int64(a.MeanNs), int64(5*ms))
	near("median", a.P50Ns, int64(5*ms))
	near("p90", a.P90Ns, int64(6*ms)-447_214) // 1 ms × √(2 × 0.1) below the end
	if other := offer(1); other.Done != res.Done || other.Network.Added.HDR != a.HDR {
		t.Error("the same seed drew other delays")
	}
	if other := offer(2); other.Network.Added.HDR == a.HDR {
		t.Error("another seed drew the same delays")
	}
}

// A connection that the service ends is reported after the network's delay, and after the response
// before it. The requests on it were answered, so none fails.
func TestNetworkDelaysTheEnd(t *testing.T) {
	w, d := &World{}, network.Delay{RoundTrip: 4 * ms}
	w.Serve = func(c Call) Reply {
		r := Answer(ms, "ok")
		r.End, r.Op = c.OnConn == 10, load.Reading
		return r
	}
	res := w.Good(t, load.Spec{Model: record.Closed, Connections: 1, Network: d,
		Engine: behind(w, d)})
	if res.Errors.Total() != 0 || res.Reconnects == 0 || res.Retried != res.Reconnects {
		t.Errorf("%+v, %d reconnects, %d retried", res.Errors, res.Reconnects, res.Retried)
	}
}

// An engine that adds no delay refuses a load with one, and names the engine that can.
func TestNetworkNeedsAnEngine(t *testing.T) {
	w := &World{Serve: After(ms)}
	_, err := w.Run(t, load.Spec{Model: record.Closed, Connections: 1,
		Network: network.Delay{RoundTrip: 5 * ms}})
	if err == nil {
		t.Fatal("the load ran without its delay")
	}
}

// exactly checks that all values are equal to the resolution of a histogram (three digits).
func exactly(t *testing.T, subject string, d record.Dist, want time.Duration) {
	t.Helper()
	least := int64(want) - int64(want)>>10
	if d.Count == 0 || d.MinNs < least || d.MaxNs > int64(want)+int64(want)>>9 {
		t.Errorf("%s: %d values from %d to %d ns, want %v", subject, d.Count, d.MinNs, d.MaxNs,
			want)
	}
}

// polling makes each poll of an engine take 1 µs.
type polling struct{ load.Engine }

// Wait implements load.Engine.
func (p polling) Wait(deadline int64, h load.Handler) error {
	if deadline <= clock.Mono() {
		time.Sleep(time.Microsecond)
	}
	return p.Engine.Wait(deadline, h)
}

// Polls that pass requests on are no idle time. Precise pacing polls for 20 µs before each of 1000
// arrivals. A delay of 1.99 ms in each direction ends 10 µs before an arrival, within one poll of
// 1 µs for each request. The response, 1.5 ms later, ends no wait within polls. So the load polls
// 1 ms less than without a delay.
func TestNetworkIsNoIdleTime(t *testing.T) {
	spun := func(d network.Delay) int64 {
		w := &World{Serve: After(1500 * time.Microsecond),
			Wrap: func(e load.Engine) load.Engine { return polling{e} }}
		res := w.Good(t, load.Spec{Model: record.Open, Connections: 16, Network: d,
			Engine: behind(w, d), Drain: time.Second, Pacing: load.Precise,
			Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(1000)}})
		return res.Generator.SpinNs
	}
	without, with := spun(network.Delay{}), spun(network.Delay{RoundTrip: 3980 * time.Microsecond})
	if less := without - with; less < 950_000 || less > 1_050_000 {
		t.Errorf("polled for %d ns, and for %d ns with a delay", without, with)
	}
}
