package trial

import (
	"cmp"
	"slices"

	"prony.example/internal/launch"
	"prony.example/internal/observe/stallfree"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// watchStalls watches the service's cores and the load's, for loads of a model. It does not count
// processes of the targets, or of this program on the load's cores. If backing processes have no
// cores of their own, it does not count them either.
func (l *Lab) watchStalls(model string, targets func() []launch.Process) *stallfree.Watcher {
	if l.Slicing.Stalls == nil {
		return stallfree.Without("")
	}
	for _, p := range targets() {
		if len(p.PIDs()) == 0 {
			return stallfree.Without("the processes of a target are on another machine, or unknown")
		}
	}
	shared := len(l.Layout.Backing) == 0
	return stallfree.New(stallfree.Setup{Open: l.Slicing.Stalls, Period: stallfree.PeriodOf(model),
		Service: l.Layout.Service, Load: l.Layout.Load, PIDs: func() (pids []int) {
			for _, p := range targets() {
				pids = append(pids, p.PIDs()...)
				if b, ok := p.(interface{ Backing() []int }); ok && shared {
					pids = append(pids, b.Backing()...)
				}
			}
			return pids
		}})
}

// stallWatcher watches the cores in use if only this process offers the load. Other generators
// return only histograms, which no percentiles without stalls can be computed from. The throughput
// of users who think does not depend on the cores alone.
func (f *life) stallWatcher(s *load.Spec) *stallfree.Watcher {
	if s.Users != nil || s.Part.Of > 1 || f.rec.Target.Driver != "" {
		return stallfree.Without("")
	}
	return f.lab.watchStalls(s.Model, func() []launch.Process { return []launch.Process{f.proc} })
}

// windowStalls records the stalls of a window.
type windowStalls struct {
	*stallfree.Log
	room      int       // capacity of the sample
	cores     int       // of the service
	quantiles []float64 // in addition to the usual ones
}

// logWindow begins a log of the stalls for a load, and has the times of its requests stored.
func (f *life) logWindow(w *stallfree.Watcher, spec *load.Spec,
	quantiles ...float64) *windowStalls {
	s := &windowStalls{w.Log(), 0, len(f.lab.Layout.Service), quantiles}
	if w.Works() {
		s.room = stallfree.SampleOf(spec)
		spec.Sample = s.room
	}
	s.Begin()
	return s
}

// keep ends the log of a window and computes the values without stalls. The log covers the
// time from before the lead-in until after the last response, because the backlog of a stall may
// reach into the window.
func (s *windowStalls) keep(o *offered) {
	s.End()
	used := cmp.Or(o.load.Service.CPUShare, -1) // unknown if processes have left the groups
	s.Keep(stallfree.Window{Load: &o.load, Sample: o.sample, Room: s.room, FromNs: o.fromNs,
		Utilization: used, Cores: s.cores}, s.quantiles...)
}

// shareDependence makes the throughputs without stalls of a trial unknown if open loads show that
// stalls depend on the service. A service that is always busy, as under a closed load, does not
// show that stalls come because it is busy.
func shareDependence(loads []record.Load) {
	depends := slices.ContainsFunc(loads, func(l record.Load) bool {
		all := l.StallFree
		if l.Slices != nil {
			all = slices.Concat(all, l.Slices.StallFree)
		}
		return slices.ContainsFunc(all, func(x record.StallFree) bool {
			return x.Unknown == stats.StallsDepend
		})
	})
	for i := range loads {
		if x := loads[i].WithoutStalls; x != nil && depends {
			x.Unknown = stats.StallsDepend
		}
	}
}
