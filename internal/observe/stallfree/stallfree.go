// Package stallfree computes response times of open loads without the machine's stalls. A Watcher
// records stalls of the cores in use. A Log has those of one load, and its method Percentiles
// leaves out the arrivals that were due near them (stats.OpenLoad.WithoutStalls). Nearby does this
// for loads to one service of this machine.
//
// A watch that fails fails no measurement: the summary says why nothing is left out.
package stallfree

import (
	"cmp"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/stalls"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Watch records when cores in use did not run what they should; *stalls.Watch is the one of real
// loads.
type Watch interface {
	Begin() error
	End() error
	Read() []stalls.Stall
	Way() stalls.Way
	Lost() int
	Close() error
}

// Opener opens a watch of cores with a period. Function ours reports whether a process should run
// on a core.
type Opener func(cores []int, period time.Duration, ours func(core, pid int) bool) (Watch, error)

// OpenReal is the Opener of real loads.
func OpenReal(cores []int, period time.Duration, ours func(core, pid int) bool) (Watch, error) {
	w, err := stalls.Open(cores, period, ours)
	if err != nil { // a nil one would be a Watch
		return nil, err
	}
	return w, nil
}

// Setup is what a Watcher watches.
type Setup struct {
	Open    Opener
	Period  time.Duration // of the clock; 0: stalls.Period
	Service []int         // cores of the targets
	Load    []int         // cores of this program
	// Free are cores that service and load can leave for others. A process of others that runs
	// there is no stall.
	Free []int
	// PIDs are the processes of the targets now. A process that begins and ends between two calls
	// looks as one of others.
	PIDs func() []int
}

// Watcher records stalls of the cores in use.
type Watcher struct {
	setup   Setup
	watch   Watch // nil: nothing is recorded
	missing string
	pids    map[int]bool // that are known to belong to the targets
}

// New opens a watcher. Close ends it.
func New(s Setup) *Watcher {
	w := &Watcher{setup: s, pids: map[int]bool{}}
	self := os.Getpid()
	ours := func(core, pid int) bool {
		return slices.Contains(s.Load, core) && pid == self || w.pids[pid] ||
			slices.Contains(s.Free, core)
	}
	cores := slices.Concat(s.Service, s.Load)
	slices.Sort(cores)
	watch, err := s.Open(slices.Compact(cores), cmp.Or(s.Period, stalls.Period), ours)
	if err != nil {
		w.fail(err)
		return w
	}
	w.watch = watch
	return w
}

// Without is a watcher that records nothing, and the reason, in one line. An empty reason says that
// nobody wants a record.
func Without(reason string) *Watcher {
	return &Watcher{missing: strings.ReplaceAll(reason, "\n", "; ")}
}

// Works reports whether stalls are recorded.
func (w *Watcher) Works() bool { return w.watch != nil }

// fail ends the watch: what it recorded so far is incomplete.
func (w *Watcher) fail(err error) {
	if w.watch != nil {
		err = errors.Join(err, w.watch.Close())
	}
	*w = *Without(err.Error())
}

// Close ends the watch. What logs have stays, if it can be closed.
func (w *Watcher) Close() {
	if w.watch == nil {
		return
	}
	watch := w.watch
	w.watch = nil
	if err := watch.Close(); err != nil {
		w.fail(err)
	}
}

// note adds the targets' processes to those that are known.
func (w *Watcher) note() {
	for _, pid := range w.setup.PIDs() {
		w.pids[pid] = true
	}
}

// Log collects the stalls of one load, which may come in several pieces.
type Log struct {
	watcher *Watcher
	sum     record.Stalls
	all     []record.Stall
	causes  map[[2]string]*record.StallCause
	spans   []Span // that were watched
	lost    int    // ticks that the watcher lost before this piece
}

// Span is time by clock.Mono.
type Span struct{ FromNs, ToNs int64 }

// Log begins a log without stalls.
func (w *Watcher) Log() *Log {
	l := &Log{watcher: w, causes: map[[2]string]*record.StallCause{}}
	if w.watch != nil {
		l.sum.Way, l.sum.ShortestNs = w.watch.Way().Name, w.watch.Way().ShortestNs
	}
	return l
}

// Begin begins a piece of the load.
func (l *Log) Begin() {
	w := l.watcher
	if w.watch == nil {
		return
	}
	w.note()
	if err := w.watch.Begin(); err != nil {
		w.fail(err)
		return
	}
	l.spans, l.lost = append(l.spans, Span{clock.Mono(), math.MaxInt64}), w.watch.Lost()
}

// End ends a piece of the load, and reads its stalls while the processes that caused them can still
// be named.
func (l *Log) End() {
	w := l.watcher
	if w.watch == nil {
		return
	}
	piece := &l.spans[len(l.spans)-1]
	piece.ToNs = clock.Mono()
	l.sum.TimeNs += piece.ToNs - piece.FromNs
	if err := w.watch.End(); err != nil {
		w.fail(err)
		return
	}
	w.note()
	for _, x := range w.watch.Read() {
		// The kernel's own threads handle packets, among other things: that is the service's work.
		if x.Cause != stalls.Kernel || x.Name == "" {
			l.add(x)
		}
	}
	l.sum.LostTicks += w.watch.Lost() - l.lost
}

func (l *Log) add(x stalls.Stall) {
	l.all = append(l.all, record.Stall{BeginNs: x.BeginNs, EndNs: x.EndNs, LeastNs: x.LeastNs,
		UnseenNs: x.UnseenNs, MeanNs: x.MeanNs, Core: x.Core, Cause: x.Cause, Name: x.Name})
	key := [2]string{x.Cause, x.Name}
	if l.causes[key] == nil {
		l.causes[key] = &record.StallCause{Cause: x.Cause, Name: x.Name}
	}
	l.causes[key].Count++
	l.causes[key].Ns += x.EndNs - x.BeginNs
}

// Stalls are those of the load so far; none if the watch failed.
func (l *Log) Stalls() []record.Stall {
	if !l.Recorded() {
		return nil
	}
	return l.all
}

// Spans are the pieces of the load so far.
func (l *Log) Spans() []Span { return l.spans }

// mostCauses bounds the causes in a record.
const mostCauses = 10

// Summary is what a record has of it; nil if nobody wants a record.
func (l *Log) Summary() *record.Stalls {
	if !l.Recorded() {
		if l.watcher.missing == "" {
			return nil
		}
		return &record.Stalls{Missing: l.watcher.missing}
	}
	out := l.sum
	out.Count = len(l.all)
	out.Unseen = l.Unseen(l.spans)
	always := []Span{{math.MinInt64, math.MaxInt64}}
	for _, x := range stats.Exclude(l.within(always), stats.Margins{}) {
		out.StalledNs += x.ToNs - x.FromNs
	}
	for _, c := range l.causes {
		out.Causes = append(out.Causes, *c)
	}
	slices.SortFunc(out.Causes, func(a, b record.StallCause) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Cause+a.Name, b.Cause+b.Name))
	})
	out.Causes = out.Causes[:min(len(out.Causes), mostCauses)]
	return &out
}

// Recorded reports whether the log has all stalls so far: the watch began, and did not fail.
func (l *Log) Recorded() bool { return l.watcher.missing == "" && l.sum.Way != "" }

// StallLimit is the share of the time of a window, or of a round of open slices, from which on it
// should be repeated: with the margins of so many stalls, too few arrivals would remain.
const StallLimit = 0.1

// Share returns the share of some time in which cores in use stalled, 0 to 1. Without a record of
// stalls, it is 0.
func (l *Log) Share(spans []Span) float64 {
	if !l.Recorded() || lengthOf(spans) == 0 {
		return 0
	}
	var stalledNs int64
	for _, x := range stats.Exclude(l.within(spans), stats.Margins{}) {
		for _, y := range spans {
			stalledNs += max(min(x.ToNs, y.ToNs)-max(x.FromNs, y.FromNs), 0)
		}
	}
	return float64(stalledNs) / float64(lengthOf(spans))
}

// Percentiles are those of an open load without stalls: the usual ones, and more if they are named.
// The sample must have all its arrivals, whose times count from fromNs. Arrivals that were not due
// within spans are left out, and utilization is the share of its cores that the service used.
// Without a record of stalls there are none.
func (l *Log) Percentiles(sample arrivalcheck.Times, fromNs int64, spans []Span,
	utilization float64, more ...float64) (out []record.StallFree) {
	if !l.Recorded() {
		return nil
	}
	all := stats.OpenLoad{Utilization: utilization, Stalls: l.within(spans),
		TimeNs: lengthOf(spans), ShortestNs: l.sum.ShortestNs}
	var punctual []stats.Arrival
	all.Arrivals, punctual = arrivals(sample, fromNs)
	all.Arrivals, all.Disturbed = divide(all.Arrivals, spans)
	punctual, _ = divide(punctual, spans)
	for _, q := range quantiles(more) {
		x := all.WithoutStalls(q)
		if x.Unknown == stats.TooFewArrivals && x.ValueNs == 0 {
			continue
		}
		out = append(out, record.StallFree{Quantile: q, Ns: x.ValueNs, RawNs: x.RawNs,
			LowestNs: x.LowestNs, LowerFrom: x.LowerFrom,
			PunctualNs: x.QuantileOf(punctual),
			KeptShare:  x.Share, IgnoredStalls: x.IgnoredStalls,
			HalfNs: x.HalfNs, DoubleNs: x.DoubleNs, Unknown: x.Unknown})
	}
	return out
}

// Unseen estimates the time of stalls within spans that were too short to be recorded. Without a
// record of stalls, it is nil.
func (l *Log) Unseen(spans []Span) *record.Unseen {
	if !l.Recorded() {
		return nil
	}
	x := stats.UnseenOf(l.within(spans), lengthOf(spans))
	return &record.Unseen{Ns: int64(x.Ns), ErrNs: int64(x.ErrNs), TimeNs: x.TimeNs}
}

func lengthOf(spans []Span) (ns int64) {
	for _, x := range spans {
		ns += x.ToNs - x.FromNs
	}
	return ns
}

// quantiles are the usual ones and more, each once and in order.
func quantiles(more []float64) []float64 {
	all := slices.Clone(more)
	for _, p := range metric.Percentiles() {
		all = append(all, p.Quantile)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// arrivals are those of a sample that succeeded, in order, and the same without the load's own
// lateness.
func arrivals(sample arrivalcheck.Times, fromNs int64) (all, punctual []stats.Arrival) {
	for i, response := range sample.Response {
		if response == 0 { // it failed
			continue
		}
		due, lag := fromNs+sample.Due[i], sample.Left[i]-sample.Due[i]
		all = append(all, stats.Arrival{DueNs: due, ResponseNs: response})
		punctual = append(punctual,
			stats.Arrival{DueNs: due, ResponseNs: max(response-lag, 1)})
	}
	byDue := func(a, b stats.Arrival) int { return cmp.Compare(a.DueNs, b.DueNs) }
	slices.SortStableFunc(all, byDue)
	slices.SortStableFunc(punctual, byDue)
	return all, punctual
}

// divide divides arrivals, which are in order, into those that were due within some spans, which
// are in order and apart, and all others.
func divide(all []stats.Arrival, spans []Span) (within, outside []stats.Arrival) {
	next := 0
	for _, a := range all {
		for next < len(spans) && a.DueNs > spans[next].ToNs {
			next++
		}
		if next < len(spans) && a.DueNs >= spans[next].FromNs {
			within = append(within, a)
		} else {
			outside = append(outside, a)
		}
	}
	return within, outside
}

// within are the stalls of some spans, which are in order and apart.
func (l *Log) within(spans []Span) (out []stats.Stall) {
	for _, x := range l.all {
		if slices.ContainsFunc(spans, func(y Span) bool {
			return x.EndNs >= y.FromNs && x.BeginNs <= y.ToNs
		}) {
			out = append(out, statsOf(x))
		}
	}
	return out
}

func statsOf(x record.Stall) stats.Stall {
	return stats.Stall{BeginNs: x.BeginNs, EndNs: x.EndNs, LeastNs: x.LeastNs, MeanNs: x.MeanNs,
		UnseenNs: x.UnseenNs}
}

// mostSampled bounds the memory for times of requests to 24 bytes each.
const mostSampled = 8 << 20

// Sample is how many requests of an open load are to be kept one by one, so that all are, with room
// to spare. If a sample is full, some may be missing.
func Sample(expected float64) int { return min(int(1.1*expected)+1000, mostSampled) }

// Expected is how many requests an open load offers in its window.
func Expected(s *load.Spec) float64 {
	steps := 1.0
	if s.Scenario.Flow {
		steps = float64(len(s.Scenario.Requests))
	}
	if n := len(s.Schedule.Trace); n > 0 {
		return steps * float64(n)
	}
	if s.Requests > 0 {
		return steps * float64(s.Requests)
	}
	return steps * s.Schedule.Rate.Mean(int64(s.Lead), int64(s.Lead+s.Window)) *
		s.Window.Seconds()
}
