package load

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// Connecting takes 30 ms; then Together delays the load by half a second. The load begins at the
// returned moment, and the window opens a lead-in later.
func TestTogether(t *testing.T) {
	var asked, start int64
	calls := 0
	w := &world{serve: after(10 * time.Millisecond),
		connect: func(int) (time.Duration, error) { return 30 * time.Millisecond, nil }}
	r := good(t, w, Spec{Model: record.Closed, Connections: 4, Lead: 100 * time.Millisecond,
		Together: func(context.Context) (int64, error) {
			calls++
			asked = clock.Mono()
			start = asked + 500*ms
			return start, nil
		}})
	if calls != 1 || w.calls[0].at != start {
		t.Errorf("asked %d times; the first request left %d ns off", calls, w.calls[0].at-start)
	}
	if late := asked - w.opened[0]; late < 30*ms {
		t.Errorf("asked %d ns after connecting began, want 30 ms", late)
	}
	if r.OpenedNs != start+100*ms || r.FromNs != r.OpenedNs {
		t.Errorf("the window opened %d ns off", r.OpenedNs-start-100*ms)
	}
	// Windows of a second with a response every 10 ms on each of four connections.
	exactly(t, "throughput", r.ThroughputPerS, 400)
}

// Together can fail: then nothing is sent and everything is released.
func TestTogetherFails(t *testing.T) {
	w := &world{serve: after(10 * time.Millisecond)}
	gone := errors.New("the other side failed")
	_, err := simulate(t, w, Spec{Model: record.Closed, Connections: 4,
		Together: func(context.Context) (int64, error) { return 0, gone }})
	if !errors.Is(err, gone) || len(w.calls) > 0 {
		t.Errorf("error %v after %d requests", err, len(w.calls))
	}
	// Called only after connections are open.
	w = &world{connect: refuse}
	_, err = simulate(t, w, Spec{Model: record.Closed, Connections: 4,
		Together: func(context.Context) (int64, error) {
			t.Error("asked without a connection")
			return 0, gone
		}})
	if err == nil || errors.Is(err, gone) {
		t.Errorf("error %v, want that of connecting", err)
	}
}

// What a load allocates before it begins is no garbage: the collector, which would stop threads,
// stays off until as much garbage exists as for a short load.
func TestRoomForGarbage(t *testing.T) {
	const others = 64 << 20 // what other tests may allocate meanwhile
	good(t, &world{serve: after(time.Millisecond)}, Spec{Model: record.Closed, Connections: 1,
		Requests: 1, Window: 24 * time.Hour, // its intervals have 190 MiB
		Together: func(context.Context) (int64, error) {
			if room := debug.SetMemoryLimit(-1) - footprint(); room < garbageMax-others {
				t.Errorf("%d MiB of garbage fit below the limit, want %d", room>>20, garbageMax>>20)
			}
			return clock.Mono(), nil
		}})
}

// Two loads at once: in any order, the garbage collector stays off until both have ended, and then
// everything is as before.
func TestHush(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	limit := debug.SetMemoryLimit(-1)
	procs := runtime.GOMAXPROCS(0)
	state := func() int {
		p := debug.SetGCPercent(-1)
		debug.SetGCPercent(p)
		return p
	}
	check := func(when string, percent, threads int) {
		t.Helper()
		want := procs
		if threads > 0 {
			want = max(procs, threads+2)
		}
		if got := runtime.GOMAXPROCS(0); state() != percent || got != want {
			t.Errorf("%s: collector at %d, %d processors; want %d and %d", when, state(), got,
				percent, want)
		}
		if changed := debug.SetMemoryLimit(-1) != limit; changed != (threads > 0) {
			t.Errorf("%s: memory limit %d", when, debug.SetMemoryLimit(-1))
		}
	}
	first := hush(procs)
	check("one runs", -1, procs)
	second := hush(3)
	check("two run", -1, procs+3)
	first()
	check("the first has ended", -1, procs+3) // not fewer: that would stop the world of the other
	second()
	check("both have ended", 77, 0)
	again := hush(1)
	check("another one", -1, 1)
	again()
	check("none", 77, 0)
}
