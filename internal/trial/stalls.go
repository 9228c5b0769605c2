package trial

import (
	"cmp"
	"errors"
	"math"
	"os"
	"slices"
	"strings"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/stalls"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// StallWatch records when cores in use did not run what they should; *stalls.Watch is the one of
// real runs.
type StallWatch interface {
	Begin() error
	End() error
	Read() []stalls.Stall
	Way() stalls.Way
	Lost() int
	Close() error
}

// stallLog collects the stalls of open slices, or of an open window. Without a watch it is empty. A
// watch that fails is closed, and the record says why: a trial does not fail by it.
type stallLog struct {
	watch   StallWatch
	targets func() []launch.Process
	shared  bool // backing processes have no cores of their own
	pids    map[int]bool
	sum     record.Stalls
	all     []record.Stall
	began   int64
	causes  map[[2]string]*record.StallCause
}

// watchStalls watches the service's cores and the load's. Processes of the targets, and of this
// program on the load's cores, are no stalls.
func (l *Lab) watchStalls(targets func() []launch.Process) *stallLog {
	log := &stallLog{targets: targets, shared: len(l.Layout.Backing) == 0, pids: map[int]bool{},
		causes: map[[2]string]*record.StallCause{}}
	if l.Slicing.Stalls == nil {
		return log
	}
	for _, p := range targets() {
		if len(p.PIDs()) == 0 {
			log.sum.Missing = "the processes of a target are not on this machine, or not known"
			return log
		}
	}
	self := os.Getpid()
	ours := func(core, pid int) bool {
		return slices.Contains(l.Layout.Load, core) && pid == self || log.pids[pid]
	}
	cores := slices.Concat(l.Layout.Service, l.Layout.Load)
	slices.Sort(cores)
	watch, err := l.Slicing.Stalls(slices.Compact(cores), ours)
	if err != nil {
		log.fail(err)
		return log
	}
	log.watch = watch
	log.sum.Way, log.sum.ShortestNs = watch.Way().Name, watch.Way().ShortestNs
	return log
}

// fail ends the watch: what it recorded so far is incomplete.
func (s *stallLog) fail(err error) {
	if s.watch != nil {
		err = errors.Join(err, s.watch.Close())
	}
	s.watch, s.all, s.causes = nil, nil, nil
	s.sum = record.Stalls{Missing: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// note adds the targets' processes to those that are known. A process that began and ended between
// two notes looks as one of others.
func (s *stallLog) note() {
	for _, p := range s.targets() {
		for _, pid := range p.PIDs() {
			s.pids[pid] = true
		}
		if b, ok := p.(interface{ Backing() []int }); ok && s.shared {
			for _, pid := range b.Backing() {
				s.pids[pid] = true
			}
		}
	}
}

func (s *stallLog) begin() {
	if s.watch == nil {
		return
	}
	s.note()
	if err := s.watch.Begin(); err != nil {
		s.fail(err)
		return
	}
	s.began = clock.Mono()
}

// end also reads the stalls, while the processes that caused them can still be named.
func (s *stallLog) end() {
	if s.watch == nil {
		return
	}
	s.sum.TimeNs += clock.Mono() - s.began
	if err := s.watch.End(); err != nil {
		s.fail(err)
		return
	}
	s.note()
	for _, x := range s.watch.Read() {
		// The kernel's own threads handle packets, among other things: that is the service's work.
		if x.Cause == stalls.Kernel && x.Name != "" {
			continue
		}
		s.all = append(s.all, record.Stall{BeginNs: x.BeginNs, EndNs: x.EndNs, LeastNs: x.LeastNs,
			UnseenNs: x.UnseenNs,
			Core:     x.Core, Cause: x.Cause, Name: x.Name})
		key := [2]string{x.Cause, x.Name}
		if s.causes[key] == nil {
			s.causes[key] = &record.StallCause{Cause: x.Cause, Name: x.Name}
		}
		s.causes[key].Count++
		s.causes[key].Ns += x.EndNs - x.BeginNs
	}
	s.sum.LostTicks = s.watch.Lost()
}

// close ends the watch; the stalls stay.
func (s *stallLog) close() {
	if s.watch == nil {
		return
	}
	if err := s.watch.Close(); err != nil {
		s.watch = nil
		s.fail(err)
	}
}

// mostCauses bounds the causes in a record.
const mostCauses = 10

// summary is what the record has of it; nil if nobody watched.
func (s *stallLog) summary() *record.Stalls {
	if s.watch == nil && s.sum.Missing == "" {
		return nil
	}
	out := s.sum
	out.Count = len(s.all)
	always := []span{{math.MinInt64, math.MaxInt64}}
	for _, x := range stats.Exclude(s.within(always), stats.Margins{}) {
		out.StalledNs += x.ToNs - x.FromNs
	}
	for _, c := range s.causes {
		out.Causes = append(out.Causes, *c)
	}
	slices.SortFunc(out.Causes, func(a, b record.StallCause) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Cause+a.Name, b.Cause+b.Name))
	})
	out.Causes = out.Causes[:min(len(out.Causes), mostCauses)]
	return &out
}

// watchWindow watches the cores in use while an open load is offered by this process alone, and has
// the times of all its requests kept.
func (f *life) watchWindow(spec *load.Spec) *stallLog {
	// Of the users of others nothing is known but their histograms.
	if spec.Model != record.Open || spec.Part.Of > 1 || f.rec.Target.Driver != "" {
		return &stallLog{}
	}
	log := f.lab.watchStalls(func() []launch.Process { return []launch.Process{f.proc} })
	if log.watch != nil {
		expected := float64(len(spec.Schedule.Trace))
		if expected == 0 {
			end := int64(spec.Lead + spec.Window)
			expected = spec.Schedule.Rate.Mean(int64(spec.Lead), end) * spec.Window.Seconds()
		}
		spec.Sample = min(int(1.1*expected)+1000, mostSampled)
	}
	log.begin()
	return log
}

// keepWindow ends the watch over a window, which began before it, and computes the percentiles
// without stalls. Stalls count from before the lead-in until after the last answer: their backlog
// reaches into the window.
func (s *stallLog) keepWindow(o *offered, room int) {
	s.end()
	s.close()
	o.load.Stalls = s.summary()
	if len(o.sample.Due) < room {
		watched := span{s.began, s.began + s.sum.TimeNs}
		o.load.StallFree = s.free(o.sample, o.fromNs, []span{watched}, o.load.Service.CPUShare)
	}
}

// span is time in which a target was offered its load, by clock.Mono.
type span struct{ fromNs, toNs int64 }

// free are the percentiles of an open load without stalls. The sample must have all its arrivals,
// whose times count from fromNs.
func (s *stallLog) free(sample arrivalcheck.Times, fromNs int64, spans []span, utilization float64,
) (out []record.StallFree) {
	if s.watch == nil {
		return nil
	}
	all := stats.OpenLoad{Utilization: utilization, Stalls: s.within(spans)}
	for _, x := range spans {
		all.TimeNs += x.toNs - x.fromNs
	}
	punctual := all
	for i, response := range sample.Response {
		if response == 0 { // it failed
			continue
		}
		due, lag := fromNs+sample.Due[i], sample.Left[i]-sample.Due[i]
		all.Arrivals = append(all.Arrivals, stats.Arrival{DueNs: due, ResponseNs: response})
		punctual.Arrivals = append(punctual.Arrivals,
			stats.Arrival{DueNs: due, ResponseNs: max(response-lag, 1)})
	}
	byDue := func(a, b stats.Arrival) int { return cmp.Compare(a.DueNs, b.DueNs) }
	slices.SortStableFunc(all.Arrivals, byDue)
	slices.SortStableFunc(punctual.Arrivals, byDue)
	for _, p := range metric.Percentiles() {
		x := all.WithoutStalls(p.Quantile)
		if x.Unknown == stats.TooFewArrivals && x.ValueNs == 0 {
			continue
		}
		out = append(out, record.StallFree{Quantile: p.Quantile, Ns: x.ValueNs, RawNs: x.RawNs,
			LowestNs: x.LowestNs, PunctualNs: punctual.WithoutStalls(p.Quantile).ValueNs,
			KeptShare: x.Share, HalfNs: x.HalfNs, DoubleNs: x.DoubleNs, Unknown: x.Unknown})
	}
	return out
}

// within are the stalls of some spans, which are in order and apart.
func (s *stallLog) within(spans []span) (out []stats.Stall) {
	for _, x := range s.all {
		if slices.ContainsFunc(spans, func(y span) bool {
			return x.EndNs >= y.fromNs && x.BeginNs <= y.toNs
		}) {
			out = append(out, stats.Stall{BeginNs: x.BeginNs, EndNs: x.EndNs,
				UnseenNs: x.UnseenNs})
		}
	}
	return out
}
