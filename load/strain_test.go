package load

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// costly is an engine whose thread needs CPU time for each response before it sends the next
// request. Once per period, the thread does not run for a while.
type costly struct {
	*fake
	*workshop
}

// workshop is a generator with known costs, and a service with known times on some cores.
type workshop struct {
	cost         time.Duration
	serve        func() time.Duration
	away, period time.Duration
	nextAway     int64

	usedNs int64      // by the load thread
	freeNs []int64    // when each core of the service is free
	idle   [][2]int64 // times in which a core was free before its next request
}

func (e costly) Wait(deadline int64, h Handler) error {
	return e.fake.Wait(deadline, costlyEar{h, e.workshop})
}

type costlyEar struct {
	Handler
	*workshop
}

func (e costlyEar) Received(i int, _ int64, b []byte) {
	if now := clock.Mono(); e.away > 0 && now >= e.nextAway {
		e.nextAway = now + int64(e.period)
		time.Sleep(e.away)
	}
	time.Sleep(e.cost)
	e.usedNs += int64(e.cost)
	e.Handler.Received(i, clock.Mono(), b)
}

// answer serves requests in order, each on the core that is free first.
func (s *workshop) answer(c call) reply {
	core := 0
	for i, ns := range s.freeNs {
		if ns < s.freeNs[core] {
			core = i
		}
	}
	begin := max(c.at, s.freeNs[core])
	s.idle = append(s.idle, [2]int64{s.freeNs[core], begin})
	s.freeNs[core] = begin + int64(s.serve())
	return answer(time.Duration(s.freeNs[core]-c.at), "ok")
}

// idleNs returns how long cores were idle between two moments.
func (s *workshop) idleNs(from, to int64) (ns int64) {
	for _, x := range s.idle {
		ns += max(min(x[1], to)-max(x[0], from), 0)
	}
	return ns
}

// offer loads the service for one slice. It returns the share of the window in which cores were
// idle, and that in which the service may have had too few requests.
func (s *workshop) offer(t *testing.T, connections, cores int) (idle, starved float64) {
	t.Helper()
	s.freeNs = make([]int64, cores)
	w := &world{serve: s.answer, wrap: func(f *fake) Engine {
		runtime.UnlockOSThread() // or each wait would cost two switches of threads
		return costly{f, s}
	}}
	x := Slice{Lead: 5 * time.Millisecond, Window: 20 * time.Millisecond, Cores: cores}
	synctest.Test(t, func(t *testing.T) {
		l := opened(t, Spec{Model: record.Closed, Connections: connections, Engine: w.engine})
		defer l.Close()
		l.run.workers[0].book.usage = func() threadUsage { return threadUsage{cpuNs: s.usedNs} }
		s.nextAway = clock.Mono()
		for i := range s.freeNs {
			s.freeNs[i] = s.nextAway
		}
		got, err := l.Slice(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		from, window := got.BeganNs+int64(x.Lead), float64(x.Window)
		idle = float64(s.idleNs(from, from+int64(x.Window))) / float64(cores) / window
		starved = float64(got.StarvedNs) / window
	})
	return idle, starved
}

// opened opens a loader in a bubble.
func opened(t *testing.T, s Spec) *Loader {
	t.Helper()
	s.Timeout, s.Address = time.Second, netip.MustParseAddrPort("127.0.0.1:1")
	s.Scenario = Scenario{Requests: []Request{
		{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	l, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestStarved compares the time in which a service may have had too few requests with the time in
// which a simulated service was idle, and with arithmetic.
func TestStarved(t *testing.T) {
	const us = time.Microsecond
	steady := func(d time.Duration) func() time.Duration {
		return func() time.Duration { return d }
	}
	random := func(mean time.Duration) func() time.Duration {
		r := rand.New(rand.NewPCG(1, 2))
		return func() time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
	}
	// Shares of the window: idle and starved, each at least and at most.
	check := func(name string, connections, cores int, s *workshop, idle, starved [2]float64) {
		t.Helper()
		really, most := s.offer(t, connections, cores)
		t.Logf("%s: idle %.4f, starved at most %.4f", name, really, most)
		if really < idle[0] || really > idle[1] || most < starved[0] || most > starved[1] ||
			s.away == 0 && most < really-0.005 {
			t.Errorf("%s: idle %.4f, want %v; starved at most %.4f, want %v", name, really, idle,
				most, starved)
		}
	}
	none, all := [2]float64{0, 0}, [2]float64{0.93, 1.07} // edges lie within a turn of 0.64 ms
	// The generator needs twice as long as the service, which is idle for half of the time.
	check("a generator at its limit", 32, 1, &workshop{cost: 20 * us, serve: steady(10 * us)},
		[2]float64{0.49, 0.51}, all)
	check("a service at its limit", 32, 1, &workshop{cost: 5 * us, serve: steady(10 * us)}, none,
		none)
	check("nearly at the limit", 32, 1, &workshop{cost: 9 * us, serve: random(10 * us)},
		[2]float64{0, 0.02}, [2]float64{0, 0.3})
	check("few connections", 8, 1, &workshop{cost: 9 * us, serve: random(10 * us)},
		[2]float64{0.02, 0.1}, [2]float64{0.05, 0.9})
	// With one connection, the service is idle while the generator works: 5 of 15 µs.
	check("one connection", 1, 1, &workshop{cost: 5 * us, serve: steady(10 * us)},
		[2]float64{0.33, 0.34}, [2]float64{0.33, 0.34})
	check("two cores at their limit", 32, 2, &workshop{cost: 5 * us, serve: steady(20 * us)}, none,
		none)
	check("a generator at its limit for two cores", 32, 2,
		&workshop{cost: 20 * us, serve: steady(20 * us)}, [2]float64{0.49, 0.51}, all)
	// The thread loses its core for 2 ms in 10 ms. The service has work for 0.32 ms of that. What
	// the machine takes is not the generator's.
	check("a machine that stalls", 32, 1, &workshop{cost: 5 * us, serve: steady(10 * us),
		away: 2 * time.Millisecond, period: 10 * time.Millisecond}, [2]float64{0.15, 0.18},
		[2]float64{0, 0.01})
}

// Engines that hold requests or responses do not know what the service has, and open loads may
// offer less than the service can handle.
func TestStarvedUnknown(t *testing.T) {
	for name, change := range map[string]func(*world, *Spec){
		"queues": func(w *world, _ *Spec) { w.permitting(8) },
		"open":   func(_ *world, s *Spec) { s.Model, s.Schedule = record.Open, even(1000) },
		"spread": func(_ *world, s *Spec) { s.Describe.Spread = true },
		"closed": func(*world, *Spec) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{serve: after(time.Millisecond)}
			s := Spec{Model: record.Closed, Connections: 8, Engine: w.engine}
			change(w, &s)
			l := opened(t, s)
			defer l.Close()
			got, err := l.Slice(t.Context(), Slice{Window: 40 * time.Millisecond})
			if err != nil || (got.StarvedNs == -1) != (name != "closed") {
				t.Errorf("%s: %+v, error %v", name, got, err)
			}
		})
	}
}
