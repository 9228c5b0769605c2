package verdict_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
)

// These loads are offered by a generator that is bad in a known way, to a server that is not: a
// good engine in bad company.

// wheel is an engine whose timer ticks, as those of many generators do: it hears of nothing between
// the ticks.
type wheel struct {
	load.Engine
	tick time.Duration
}

func (w wheel) Wait(_ int64, h load.Handler) error {
	now := clock.Mono()
	time.Sleep(w.tick - time.Duration(now)%w.tick)
	return w.Engine.Wait(now, h) // past: what is there by now
}

func ticking(a netip.AddrPort, slots int) (load.Engine, error) {
	e, err := newEngine(a, slots)
	return wheel{e, 5 * time.Millisecond}, err
}

// At 2,000/s and a tick of 5 ms, 10 requests leave at once, and what is due just after a tick is 5
// ms late. Lag may be 5 % of p99, which is two ticks or so: 0.5 ms. Gaps are 0 or 5 ms and not
// exponential; in 1 of 5 bins of 1 ms lie 10, in the others none: variance by mean is 8.
func TestTimerProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	provoke(t, hello, load.Spec{
		Model: record.Open, Schedule: poisson(2000), Connections: 256, Window: time.Second,
		Lead: 50 * time.Millisecond, Engine: ticking,
	}, "timer VALID", "lag SUSPECT", "arrivals SUSPECT", "bursts SUSPECT")
}

// 10 of the constant arrivals leave at each tick: no gap is the 0.5 ms asked for, since all
// are late.
func TestArrivalsProvokedByConstantOnes(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	provoke(t, hello, load.Spec{
		Model: record.Open, Schedule: constant(2000), Connections: 256,
		Window: 600 * time.Millisecond, Engine: ticking,
	}, "arrivals VALID", "lag SUSPECT")
}

// Poisson arrivals whose rate changes, from 200/s to 3,000/s, are Poisson arrivals.
func TestArrivalsOfARamp(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	const window = 600 * time.Millisecond
	for n := 1; ; n++ {
		r := offered(t, hello(), load.Spec{
			Model: record.Open, Connections: 256, Window: window, Schedule: pace.Schedule{
				Arrivals: pace.Poisson, Rate: ramping(200, 3000, window)},
		})
		found := verdict.Judge(r).Findings
		i := slices.IndexFunc(found, func(f finding) bool { return f.Rule == "arrivals" })
		if i < 0 && r.Loads[0].Process.AndersonDarling > 0 {
			return
		}
		if n == attempts {
			t.Fatalf("in %d attempts %+v, last %+v", n, r.Loads[0].Process, found)
		}
	}
}

// late is an engine that sleeps once, for the pause, when the first request was sent so long ago.
type late struct {
	load.Engine
	first, pause time.Duration
	began        int64
	slept        bool
}

func sleeping(first, pause time.Duration) func(netip.AddrPort, int) (load.Engine, error) {
	return func(a netip.AddrPort, slots int) (load.Engine, error) {
		e, err := newEngine(a, slots)
		return &late{Engine: e, first: first, pause: pause}, err
	}
}

func (l *late) Send(slot int, b []byte) {
	if l.began == 0 {
		l.began = clock.Mono()
	}
	l.Engine.Send(slot, b)
}

func (l *late) Wait(deadline int64, h load.Handler) error {
	at := l.began + int64(l.first)
	if l.began > 0 && !l.slept {
		deadline = min(deadline, at)
		if clock.Mono() >= at {
			l.slept = true
			time.Sleep(l.pause)
		}
	}
	return l.Engine.Wait(deadline, h)
}

// From 0.85 to 1.15 s nothing leaves: 150 of the first second's 1,000 go in the second one,
// together with its own. The whole is right.
func TestRateProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	provoke(t, hello, load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 512, Window: 2 * time.Second,
		Engine: sleeping(850*time.Millisecond, 300*time.Millisecond),
	}, "rate SUSPECT")
}

// At 1,000/s 60 answers of 60 ms are on their way. All come while the generator sleeps for 80 ms,
// and it takes them in one turn: a tenth of all.
func TestBatchProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	provoke(t, after(60*time.Millisecond), load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 256,
		Window: 600 * time.Millisecond, Lead: 100 * time.Millisecond,
		Engine: sleeping(350*time.Millisecond, 80*time.Millisecond),
	}, "batch SUSPECT")
}

// few is an engine that gets no socket for some of its slots.
type few struct {
	load.Engine
	most    int
	refused []int
}

func (f *few) Open(slot int) {
	if slot >= f.most {
		f.refused = append(f.refused, slot)
		return
	}
	f.Engine.Open(slot)
}

func (f *few) Wait(deadline int64, h load.Handler) error {
	refused := f.refused
	f.refused = nil
	for _, slot := range refused {
		h.Closed(slot, clock.Mono(), load.Connecting, syscall.EMFILE)
	}
	return f.Engine.Wait(deadline, h)
}

// Of 50 slow clients 40 get a socket. The load has its own 8 connections.
func TestSlowClientsProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	s := load.Spec{
		Model: record.Closed, Connections: 8, Window: 250 * time.Millisecond,
		Slow: load.Slow{Clients: 50, Text: "GET"},
	}
	server := after(2 * time.Millisecond)
	provoke(t, server, s)
	s.Engine = func(a netip.AddrPort, slots int) (load.Engine, error) {
		e, err := newEngine(a, slots)
		return &few{Engine: e, most: 40}, err
	}
	f := provoke(t, server, s, "slow clients SUSPECT")
	if f[0].Value != 40 || f[0].Limit != 50 {
		t.Errorf("found %+v, want 40 of 50", f[0])
	}
}

// Another thread that never rests shares the load's core: whoever of the two runs, the other waits.
func TestRunDelayProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !set.IsSet(core) {
		core++
	}
	var stop atomic.Bool
	hog := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its affinity
		var one unix.CPUSet
		one.Set(core)
		hog <- unix.SchedSetaffinity(0, &one)
		for !stop.Load() {
		}
	}()
	defer stop.Store(true)
	if err := <-hog; err != nil {
		t.Fatal(err)
	}
	// 16 connections that are answered at once leave the load no time to rest either.
	r := offered(t, hello(), load.Spec{
		Model: record.Closed, Connections: 16, Window: 500 * time.Millisecond, Cores: []int{core},
	})
	if r.Loads[0].Generator.RunDelayNs == 0 {
		t.Skip("the kernel does not say how long threads wait for a processor")
	}
	v := verdict.Judge(r)
	if !slices.ContainsFunc(v.Findings, func(f finding) bool { return f.Rule == "run delay" }) {
		t.Errorf("the load waited for %v of 500ms, and run delay does not object: %+v",
			time.Duration(r.Loads[0].Generator.RunDelayNs), v.Findings)
	}
}

// waits is how the service's doing looks: 4 connections, a freeze of 60 ms at 800/s. 48 are due in
// it, of which 44 find no connection, and more while those are worked off: without them p99 would
// be a fraction of what it is. Whether that counts depends on whether so few pauses make a p99.
func TestWaitedProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	server := func() truth.Plan {
		return truth.Stall(300*time.Millisecond, 60*time.Millisecond, truth.Fixed(0))
	}
	f := provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(800), Connections: 4, Window: 800 * time.Millisecond,
	}, "waited VALID")
	if !slices.ContainsFunc(f[0].Moves, func(m record.Move) bool {
		return m.Number == "p99" && m.By > 0.5
	}) {
		t.Errorf("bounds are %+v, want most of p99", f[0].Moves)
	}
}

// With 128 connections nothing waits, but the 50 requests of a freeze of 50 ms at 1,000/s are the
// slowest: all 10 beyond p99 are neighbours, where independent ones would be spread over the
// window. In 32 batches of 31, 10²·(1 − 1/32)/31 = 3.1 instead of 10/32 = 0.31: 1,000 are worth
// 100.
func TestSamplesProvokedByCompany(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	server := func() truth.Plan {
		return truth.Stall(400*time.Millisecond, 50*time.Millisecond, truth.Fixed(0))
	}
	provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(1000), Connections: 128, Window: time.Second,
	}, "samples VALID")
}

// From the middle of the window on, answers take three times as long: 20 ms, then 60. At 100/s 2
// and then 6 are under way, which is no backlog. The change comes 50 ms before the middle, so that
// fast answers come in the first half and slow ones in the second.
func TestSettledProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	server := func() truth.Plan {
		return change(950*time.Millisecond, after(20*time.Millisecond)(),
			after(60*time.Millisecond)())
	}
	provoke(t, server, load.Spec{
		Model: record.Open, Schedule: constant(100), Connections: 64, Window: 2 * time.Second,
	}, "settled SUSPECT")
}

// A rate that climbs from 500/s to 3,000/s passes the capacity of 1,200/s after 0.17 s. There are
// connections for all of the 390 that are under way in the end, and at most 2,500/s × 1 ms of them
// are explained by the rate.
func TestCapacityProvokedByARamp(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	const window = 600 * time.Millisecond
	r := offered(t, truth.Cap(1, time.Second/1200), load.Spec{
		Name: "ramp", Model: record.Open, Connections: 1024, Window: window,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: ramping(500, 3000, window)},
	})
	v := verdict.Judge(r)
	if f := verdict.Withheld(v, "ramp"); f == nil || f.Rule != "capacity" {
		t.Errorf("want no latency because of capacity, found %+v", v.Findings)
	}
}

// A generator that stands still for 0.6 s of a window of 1.5 s, as one that was stopped with Ctrl-Z
// does: of 8 connections that are answered after 5 ms, 1,600/s become some 960/s.
func TestStoodStillProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	check := func(s load.Spec) {
		t.Helper()
		s.Connections, s.Window = 256, 1500*time.Millisecond
		s.Engine = sleeping(500*time.Millisecond, 600*time.Millisecond)
		for range attempts {
			v := verdict.Judge(offered(t, truth.Fixed(5*time.Millisecond), s))
			i := slices.IndexFunc(v.Findings, func(f finding) bool { return f.Grade == invalid })
			if i >= 0 && v.Findings[i].Rule == "stood still" {
				return // the cause comes first; the backlog that it left may be named behind it
			}
			t.Logf("found %+v", v.Findings)
		}
		t.Errorf("in %d attempts a %s load never stood still", attempts, s.Model)
	}
	check(load.Spec{Model: record.Closed})
	check(load.Spec{Model: record.Open, Schedule: constant(500)})
}

// A service whose socket has room for a datagram or two loses some of those that 16 connections
// send at once, which are sent again when they are missed; one with room for them loses none.
func TestDatagramsProvoked(t *testing.T) {
	testsets.Once(t, "datagrams that find no room", testsets.Needs{})
	testsets.Cores(t)
	check := func(room int, want string) {
		t.Helper()
		var found []record.Finding
		for range attempts {
			found = verdict.Judge(&record.Record{
				Outcome: record.Measured, Warmup: record.Warmup{Steady: true},
				Loads: []record.Load{datagrams(t, room)},
			}).Findings
			i := slices.IndexFunc(found, func(f record.Finding) bool {
				return f.Rule == "datagrams"
			})
			if i < 0 && want == "" || i >= 0 && found[i].Grade == want {
				return
			}
		}
		t.Errorf("room for %d bytes: never %q, but %+v", room, want, found)
	}
	check(1<<20, "")
	check(1, suspect) // the kernel makes it 2,304, of which a datagram takes most
}

// datagrams offers HTTP/3 to a server that has room for so many bytes.
func datagrams(t *testing.T, room int) record.Load {
	t.Helper()
	l, err := truth.Listen("h3", "udp", "127.0.0.1:0")
	if err == nil {
		l, err = truth.Cramp(l, room)
	}
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- truth.Speak(ctx, "h3", l, truth.Fixed(0), nil) }()
	s := load.Spec{Name: "it", Model: record.Closed, Connections: 16, Window: time.Second,
		Lead: 100 * time.Millisecond, Address: at, Host: "localhost"}
	s.Timeout, s.Drain = 20*time.Second, 2*time.Second
	by := generator.Prony{Stack: &nethttp.Config{Protocol: nethttp.H3, Network: "udp",
		Address: at.String(), Host: "localhost", Path: "/", Insecure: true}}
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	r, err := by.Offer(t.Context(), s)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return r.Load
}
