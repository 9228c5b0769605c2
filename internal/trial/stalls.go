package trial

import (
	"prony.example/internal/launch"
	"prony.example/internal/observe/stallfree"
	"prony.example/load"
)

// watchStalls watches the service's cores and the load's. It does not count processes of the
// targets, or of this program on the load's cores. If backing processes have no cores of their own,
// it does not count them either.
func (l *Lab) watchStalls(targets func() []launch.Process) *stallfree.Watcher {
	if l.Slicing.Stalls == nil {
		return stallfree.Without("")
	}
	for _, p := range targets() {
		if len(p.PIDs()) == 0 {
			return stallfree.Without("the processes of a target are on another machine, or unknown")
		}
	}
	shared := len(l.Layout.Backing) == 0
	return stallfree.New(stallfree.Setup{Open: l.Slicing.Stalls, Service: l.Layout.Service,
		Load: l.Layout.Load, PIDs: func() (pids []int) {
			for _, p := range targets() {
				pids = append(pids, p.PIDs()...)
				if b, ok := p.(interface{ Backing() []int }); ok && shared {
					pids = append(pids, b.Backing()...)
				}
			}
			return pids
		}})
}

// stallWatcher watches the cores in use if only this process offers open loads. Other generators
// return only histograms, which no percentiles without stalls can be computed from.
func (f *life) stallWatcher(open bool, generators int) *stallfree.Watcher {
	if !open || generators > 1 || f.rec.Target.Driver != "" {
		return stallfree.Without("")
	}
	return f.lab.watchStalls(func() []launch.Process { return []launch.Process{f.proc} })
}

// windowStalls records the stalls of a window.
type windowStalls struct {
	*stallfree.Log
	room      int       // capacity of the sample
	quantiles []float64 // in addition to the usual ones
}

// logWindow begins a log of the stalls for an open load, and has the times of all its requests
// stored.
func logWindow(w *stallfree.Watcher, spec *load.Spec, quantiles ...float64) *windowStalls {
	s := &windowStalls{w.Log(), 0, quantiles}
	if w.Works() {
		s.room = stallfree.Sample(stallfree.Expected(spec))
		spec.Sample = s.room
	}
	s.Begin()
	return s
}

// keep ends the log of a window and computes the percentiles without stalls. The log covers the
// time from before the lead-in until after the last response, because the backlog of a stall may
// reach into the window.
func (s *windowStalls) keep(o *offered) {
	s.End()
	o.load.Stalls = s.Summary()
	if len(o.sample.Due) < s.room {
		o.load.StallFree = s.Percentiles(o.sample, o.fromNs, s.Spans(), o.load.Service.CPUShare,
			s.quantiles...)
	}
}
