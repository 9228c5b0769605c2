package load_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// openLoader opens a loader in a world.
func openLoader(t *testing.T, w *virtual.World, s load.Spec) *load.Loader {
	t.Helper()
	s.Scenario = get("/", "ok")
	if s.Engine == nil {
		s.Engine = w.New
	}
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	if s.Model == "" {
		s.Model = record.Closed
	}
	s.Timeout = time.Second
	l, err := load.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const milli = time.Millisecond

func slice(t *testing.T, l *load.Loader, s load.Slice) load.Sliced {
	t.Helper()
	out, err := l.Slice(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A slice ends although all time of its window passes between a response and the next request,
// whose response is the only one that can end it.
func TestSliceEndsByItsLastRequest(t *testing.T) {
	w := &virtual.World{Serve: virtual.After(milli)}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 1})
		defer l.Close()
		slow := func() int64 { time.Sleep(50 * milli); return 0 }
		got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 40 * milli, CPU: slow})
		if got.Requests != 1 {
			t.Errorf("got %+v, want the request after the answer that opened the window", got)
		}
	})
}

// sleepy is an engine on a busy machine: its thread gets a core 100 ms late, as often as late says.
type sleepy struct {
	load.Engine
	late *int
}

func (e sleepy) Wait(deadline int64, h load.Handler) error {
	if *e.late > 0 {
		*e.late--
		time.Sleep(100 * milli)
	}
	return e.Engine.Wait(deadline, h)
}

// A slice that passes before its load thread runs is repeated, for a while.
func TestSliceBeginsLate(t *testing.T) {
	w := &virtual.World{Serve: virtual.After(milli)}
	late := 0
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4,
			Engine: func(to netip.AddrPort, slots int) (load.Engine, error) {
				e, err := w.New(to, slots)
				return sleepy{e, &late}, err
			}})
		defer l.Close()
		late = 3
		got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 40 * milli})
		if began := clock.Mono() - got.BeganNs; got.Requests != 160 || began > int64(100*milli) {
			t.Errorf("got %+v, which began %v ago, want 160 requests", got, time.Duration(began))
		}
		late = 1000
		_, err := l.Slice(t.Context(), load.Slice{Lead: 20 * milli, Window: 40 * milli})
		if err == nil || !strings.Contains(err.Error(), "100 slices of 60ms passed before") {
			t.Errorf("error %v", err)
		}
	})
}

// A slice ends although its thread gets a core only after the window, when all responses wait.
func TestSliceEndsLate(t *testing.T) {
	w := &virtual.World{Serve: virtual.After(milli)}
	late := 0
	synctest.Test(t, func(t *testing.T) {
		for _, connections := range []int{1, 4} {
			l := openLoader(t, w, load.Spec{Connections: connections,
				Engine: func(to netip.AddrPort, slots int) (load.Engine, error) {
					e, err := w.New(to, slots)
					return afterSend{e, &late}, err
				}})
			late = 1
			got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 40 * milli})
			if got.Requests < 1 || got.Failed != 0 {
				t.Errorf("%d connections: got %+v, want a request in the window", connections, got)
			}
			l.Close()
		}
	})
}

// afterSend is an engine whose thread loses its core for 100 ms after it has sent.
type afterSend struct {
	load.Engine
	late *int
}

func (e afterSend) Send(i int, out []byte) {
	e.Engine.Send(i, out)
	if *e.late > 0 {
		*e.late = -1
	}
}

func (e afterSend) Wait(deadline int64, h load.Handler) error {
	if *e.late < 0 {
		*e.late = 0
		time.Sleep(100 * milli)
	}
	return e.Engine.Wait(deadline, h)
}

// TestSlice counts the responses of windows exactly, and keeps connections open between slices.
func TestSlice(t *testing.T) {
	w := &virtual.World{Serve: virtual.After(milli)}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4})
		defer l.Close()
		cpu := int64(0)
		for range 3 {
			got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 40 * milli,
				CPU: func() int64 { cpu += 7; return cpu }})
			if got.Requests != 160 || got.Failed != 0 || got.CPUNs != 7 {
				t.Errorf("got %+v, want 160 requests and 7 ns", got)
			}
			if open, end := got.OpenedNs-got.BeganNs, got.ClosedNs-got.BeganNs; open !=
				int64(20*milli) || end != int64(60*milli) {
				t.Errorf("window from %d to %d ns, want 20 to 60 ms", open, end)
			}
			time.Sleep(time.Second)
		}
		if w.Attempts != 4 {
			t.Errorf("%d connections were opened, want 4", w.Attempts)
		}
	})
}

// TestSlicePause tests that a pause counts fully in the window in which it begins.
func TestSlicePause(t *testing.T) {
	var pauseAt int64
	w := &virtual.World{Serve: func(c virtual.Call) virtual.Reply {
		after := milli
		if pauseAt != 0 && c.At >= pauseAt && c.At < pauseAt+int64(100*milli) {
			after += time.Duration(pauseAt + int64(100*milli) - c.At)
		}
		return virtual.Answer(after, "ok")
	}}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4})
		defer l.Close()
		pauseAt = clock.Mono() + int64(50*milli) // in the window, and beyond its end
		got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 40 * milli})
		if length := got.ClosedNs - got.OpenedNs; length != int64(131*milli) ||
			got.Requests != 124 {
			t.Errorf("got %d requests in %v, want 124 in 131ms", got.Requests,
				time.Duration(length))
		}
	})
}

// TestSliceClosed tests that connections closed by the server between slices are renewed without a
// failure.
func TestSliceClosed(t *testing.T) {
	closing := false
	w := &virtual.World{Serve: func(virtual.Call) virtual.Reply {
		r := virtual.Answer(milli, "ok")
		if r.End = closing; closing {
			r.Gap = 0
		}
		return r
	}}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4})
		defer l.Close()
		slice(t, l, load.Slice{Lead: 5 * milli, Window: 10 * milli})
		closing = true
		if got := slice(t, l, load.Slice{Lead: 5 * milli, Window: 10 * milli}); got.Failed != 0 {
			t.Errorf("%d requests failed", got.Failed)
		}
		closing = false
		got := slice(t, l, load.Slice{Lead: 50 * milli, Window: 10 * milli})
		if got.Failed != 0 || got.Requests != 40 {
			t.Errorf("got %+v, want 40 requests", got)
		}
		if l.Reconnects() == 0 || l.Errors().Total() != 0 {
			t.Errorf("%d connections renewed, errors %+v", l.Reconnects(), l.Errors())
		}
	})
}

// TestSliceOpen sends arrivals at their moments and keeps their response times.
func TestSliceOpen(t *testing.T) {
	w := &virtual.World{Serve: virtual.After(milli)}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4, Model: record.Open, Pacing: load.Frugal,
			Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(1000)}})
		defer l.Close()
		// The last response comes before the window's end, and no other one passes it.
		got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 500 * time.Microsecond})
		if got.Requests > 1 || got.ClosedNs < got.OpenedNs || got.EndedNs < got.ClosedNs {
			t.Errorf("a window without an answer after it: %+v", got)
		}
		for seed := range uint64(2) {
			got := slice(t, l, load.Slice{Lead: 20 * milli, Window: 100 * milli, Seed: seed})
			if got.Requests < 99 || got.Requests > 101 {
				t.Errorf("%d requests, want 100", got.Requests)
			}
		}
		d, punctual := l.ResponseTimes()
		if punctual.Count != d.Count || punctual.P99Ns > d.P99Ns {
			t.Errorf("punctual %+v of %+v", punctual, d)
		}
		if d.Count < 199 || d.Count > 201 || d.P50Ns < 0.99e6 || d.P99Ns > 1.2e6 {
			t.Errorf("response times %d, p50 %d ns, p99 %d ns; want 200 of 1 ms", d.Count, d.P50Ns,
				d.P99Ns)
		}
	})
}

// TestSliceEnds ends a slice by its context, and one without a response that would end it.
func TestSliceEnds(t *testing.T) {
	quiet := false
	w := &virtual.World{Serve: func(virtual.Call) virtual.Reply {
		if quiet {
			return virtual.Reply{}
		}
		return virtual.Answer(milli, "ok")
	}}
	synctest.Test(t, func(t *testing.T) {
		l := openLoader(t, w, load.Spec{Connections: 4})
		defer l.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the target ended")
		time.AfterFunc(30*milli, func() { cancel(cause) })
		if _, err := l.Slice(ctx, load.Slice{Window: time.Hour}); !errors.Is(err, cause) {
			t.Errorf("error %v, want the cause", err)
		}
		quiet = true
		_, err := l.Slice(t.Context(), load.Slice{Lead: milli, Window: 10 * milli})
		if err == nil || !strings.Contains(err.Error(), "no whole answer within the timeout") {
			t.Errorf("error %v, want the timeout", err)
		}
	})
}

// TestSliceReal runs slices on two real servers in turns.
func TestSliceReal(t *testing.T) {
	var loaders []*load.Loader
	for range 2 {
		addr, stop, err := truth.Start(truth.Fixed(0))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		l, err := load.Open(t.Context(), load.Spec{Address: addr, Connections: 8,
			Model: record.Closed, Timeout: time.Minute, Scenario: get("/", truth.Body)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		loaders = append(loaders, l)
	}
	for i := range 20 {
		var got load.Sliced
		for window := 20 * milli; got.Requests == 0 && window < time.Minute; window *= 2 {
			got = slice(t, loaders[i%2], load.Slice{Lead: 5 * milli, Window: window})
		}
		if got.Requests == 0 || got.Failed != 0 || got.ClosedNs <= got.OpenedNs {
			t.Fatalf("slice %d: %+v", i, got)
		}
	}
}
