package verdict_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// These tests provoke effects of the kernel, on real sockets and processors.

// offeredTo returns a record like a trial's whose only load was s, on a real socket.
func offeredTo(t *testing.T, addr netip.AddrPort, s load.Spec) *record.Record {
	t.Helper()
	s.Address, s.Timeout, s.Drain = addr, 5*time.Second, 2*time.Second
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
		{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	s.Engine = func(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) }
	r, err := load.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return recordOf(r.Load)
}

// Another thread that never rests shares the load's core, so that one of them always waits.
func TestRunDelayProvoked(t *testing.T) {
	testsets.Once(t, "what the generator itself gives rise to", testsets.Needs{})
	testsets.Measured(t)
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
	// 16 connections with immediate responses keep the load busy all the time.
	addr, end, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	r := offeredTo(t, addr, load.Spec{
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

// attempts bounds how often the test sends datagrams until enough are lost: the kernel decides
// which of them fit.
const attempts = 4

// A service whose socket has room for a datagram or two loses some that 16 connections send at
// once, and the sender repeats them. A service with enough room loses none.
func TestDatagramsProvoked(t *testing.T) {
	testsets.Once(t, "datagrams that find no room", testsets.Needs{})
	testsets.Measured(t)
	check := func(room int, want string) {
		t.Helper()
		var found []record.Finding
		for range attempts {
			found = verdict.Judge(recordOf(datagrams(t, room))).Findings
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

// datagrams offers HTTP/3 to a server whose socket has this room in bytes.
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
