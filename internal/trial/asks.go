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

// restFor is how long a counter is looked at before the load: others may move it, too.
const restFor = time.Second

// asked is a counter that requests of the trial's scenario are held by.
type asked struct {
	name     string
	counter  counters.Counter
	restPerS float64
	failed   error // it cannot be read; nothing is said of it then
}

// reading is what a counter said.
type reading struct {
	count float64
	atNs  int64
	err   error
}

// count opens the counters that the scenario's requests name and the target has, and looks for how
// much they move without a load.
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

// ports are those that the target's processes listen on; of what takes the requests also without
// its name.
func (f *life) ports() map[string]int {
	out := map[string]int{"": int(f.addr.Port())}
	for _, p := range f.proc.Parts {
		out[p.Name] = int(p.Addr().Port())
	}
	return out
}

// readings reads all counters. One that failed once is left alone: the wait for it would be in
// every window.
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

// asks is what the counters say of a window, by their readings at its opening, then those at its
// end. From is the window's real beginning, 0 where the generator does not say: then nothing was
// offered beside it. After its end nothing is.
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
		if fromNs != 0 { // negative where a slow counter was read in the window
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

// wanted is how often an answer of the load asks a counter at least, on average.
func wanted(counter string, s suite.Scenario, l *record.Load) (perItem float64) {
	var all, requested float64
	i := 0
	for _, r := range s.Requests {
		if r.Setup != "" {
			continue
		}
		answered := 1.0 // of the only kind
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
