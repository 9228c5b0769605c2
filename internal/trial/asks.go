package trial

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/service"
	"prony.example/internal/service/counters"
	"prony.example/internal/suite"
	"prony.example/record"
)

// restFor is the time for which a counter is read before the load, because other clients may also
// move it.
const restFor = time.Second

// asked is a counter of backend calls that the scenario's requests name.
type asked struct {
	name     string
	counter  counters.Counter
	restPerS float64
	failed   error // why it cannot be read; then its calls are unknown
}

// reading is one value of a counter, or why there is none.
type reading struct {
	count float64
	atNs  int64
	err   error
}

// count opens the counters that the scenario's requests name and the target has, and measures how
// fast they move without a load.
func (f *life) count(ctx context.Context) {
	names := map[string]bool{}
	for _, r := range f.trial.Scene.Requests {
		for name := range r.BackendCalls {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if place, ok := f.trial.Subject.Target.Counters[name]; ok && f.lab.Counter != nil {
			a := &asked{name: name}
			place, a.failed = service.CounterAt(place, f.addr.Addr().String(), f.ports())
			if a.failed == nil {
				if c, err := f.lab.Counter(place); err != nil {
					a.failed = err
				} else {
					a.counter = c
				}
			}
			f.requested = append(f.requested, a)
		}
	}
	if len(f.requested) == 0 {
		return
	}
	before := f.readings(ctx)
	select {
	case <-time.After(restFor):
	case <-ctx.Done():
	}
	for i, r := range f.readings(ctx) {
		b := before[i]
		f.requested[i].failed = cmp.Or(f.requested[i].failed, b.err, r.err)
		if f.requested[i].failed == nil {
			f.requested[i].restPerS = (r.count - b.count) / time.Duration(r.atNs-b.atNs).Seconds()
		}
	}
}

// ports returns the ports of the target's processes by name. The process that receives the requests
// also has the empty name.
func (f *life) ports() map[string]int {
	out := map[string]int{"": int(f.addr.Port())}
	for _, p := range f.proc.Parts {
		out[p.Name] = int(p.Addr().Port())
	}
	return out
}

// readings reads all counters. It skips a counter that failed once: every window would otherwise
// contain the wait for it.
func (f *life) readings(ctx context.Context) []reading {
	out := make([]reading, len(f.requested))
	for i, a := range f.requested {
		if out[i].err = a.failed; a.failed != nil {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, counters.Wait)
		began := clock.Mono()
		out[i].count, out[i].err = a.counter.Read(bounded)
		cancel()
		out[i].atNs = (began + clock.Mono()) / 2
		a.failed = out[i].err
	}
	return out
}

// asks returns the backend calls in a window, from the counters' readings at its opening followed
// by the readings at its end. fromNs is the real beginning of the window, or 0 if the generator
// does not report it; then the generator offers no load between the reading and the window. No load
// follows the end of a window.
func (f *life) asks(l *record.Load, readings []reading, fromNs int64) (out []record.BackendCalls) {
	for i, a := range f.requested {
		r := record.BackendCalls{Counter: a.name, IntervalNs: l.WindowNs, IdlePerS: a.restPerS}
		err := a.failed
		if err == nil && len(readings) != 2*len(f.requested) {
			err = errors.New("the window did not end")
		}
		if err != nil {
			r.Error = err.Error()
			out = append(out, r)
			continue
		}
		before, after := readings[i], readings[len(f.requested)+i]
		if fromNs != 0 { // negative if a slow counter was read in the window
			r.IntervalNs += fromNs - before.atNs
		}
		r.Unit, r.DelayNs = a.counter.What(), int64(a.counter.Late())
		r.Count = after.count - before.count
		r.Expected = wanted(a.name, f.trial.Scene, l) * float64(l.Done)
		switch {
		case r.Count < 0:
			r.Error = "the counter was reset during the window"
		case r.IntervalNs <= 0:
			r.Error = "the counter was read only after the end of the window"
		}
		out = append(out, r)
	}
	return out
}

// wanted returns how many calls to a counter each response of the load takes at least, on average.
func wanted(counter string, s suite.Scenario, l *record.Load) (perItem float64) {
	var all, requested float64
	i := 0
	for _, r := range s.Requests {
		if r.Setup != "" {
			continue
		}
		answered := 1.0 // weight of the request if the load does not count by route
		if i < len(l.Routes) {
			answered = float64(l.Routes[i].Answered)
		}
		i++
		all, requested = all+answered, requested+answered*float64(r.BackendCalls[counter])
	}
	if all == 0 {
		return 0
	}
	return requested / all
}
