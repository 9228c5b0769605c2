package trial

import (
	"prony.example/internal/launch"
	"prony.example/internal/observe/stallfree"
	"prony.example/load"
)

// watchStalls watches the service's cores and the load's. Processes of the targets, and of this
// program on the load's cores, are no stalls. Without cores of their own, neither are backing
// processes.
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

// stallWatcher watches the cores in use, if open loads are offered by this process alone. Of the
// users of others nothing is known but their histograms.
func (f *life) stallWatcher(open bool, generators int) *stallfree.Watcher {
	if !open || generators > 1 || f.rec.Target.Driver != "" {
		return stallfree.Without("")
	}
	return f.lab.watchStalls(func() []launch.Process { return []launch.Process{f.proc} })
}

// windowStalls are the stalls of a window.
type windowStalls struct {
	*stallfree.Log
	room      int       // of the sample
	quantiles []float64 // beside the usual ones
}

// logWindow begins a log of the stalls while an open load is offered, and has the times of all its
// requests kept.
func logWindow(w *stallfree.Watcher, spec *load.Spec, quantiles ...float64) *windowStalls {
	s := &windowStalls{w.Log(), 0, quantiles}
	if w.Works() {
		s.room = stallfree.Sample(stallfree.Expected(spec))
		spec.Sample = s.room
	}
	s.Begin()
	return s
}

// keep ends the log of a window, which began before it, and computes the percentiles without
// stalls. Stalls count from before the lead-in until after the last answer: their backlog reaches
// into the window.
func (s *windowStalls) keep(o *offered) {
	s.End()
	o.load.Stalls = s.Summary()
	if len(o.sample.Due) < s.room {
		o.load.StallFree = s.Percentiles(o.sample, o.fromNs, s.Spans(), o.load.Service.CPUShare,
			s.quantiles...)
	}
}
