package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/arrivalcheck"
	"prony.example/load/pace"
	"prony.example/record"
)

// Loader keeps the connections of a load open and sends the load in slices, so that several targets
// can take turns of some tens of milliseconds. Between slices its threads sleep. Only one goroutine
// at a time may use a Loader.
type Loader struct {
	run   *run
	calls []chan struct{} // one for each thread: run the slice that is set
	done  chan error      // one result for each thread and slice
	ended sync.WaitGroup
	quiet func() // restores the Go runtime's settings
}

// Slice configures one slice.
type Slice struct {
	Lead   time.Duration // not counted; lost connections are reopened in it
	Window time.Duration // counted, from the first completion after Lead
	// CPU returns the CPU time of the target in ns. A load thread calls it at both ends of the
	// window, so it must neither allocate nor block. It may be nil.
	CPU  func() int64
	Seed uint64 // of the arrivals of an open load
	// Cores is the number of cores that the target may use; 0: one.
	Cores int
}

// Sliced is the result of a slice. Times are by clock.Mono, in ns.
type Sliced struct {
	BeganNs, EndedNs   int64 // first request sent, last response received
	OpenedNs, ClosedNs int64 // first completions after the window's planned ends
	Requests           int64 // good responses after OpenedNs until ClosedNs
	Failed             int64 // from BeganNs to EndedNs
	CPUNs              int64 // reading at ClosedNs minus reading at OpenedNs; -1 without Slice.CPU
	// LoadCPUNs is the CPU time of the busiest load thread in the window, without polling.
	LoadCPUNs int64
	// StarvedNs bounds the part of the threads' CPU time in which the target may have had fewer
	// requests than cores; -1: unknown, as for open loads.
	StarvedNs int64
}

// edge is what a load thread records when a completion passes an end of the window.
type edge struct {
	atNs, done, cpuNs int64
}

// slicing is the part of a worker that only slices use.
type slicing struct {
	edgeNs      int64 // the next moment whose first completion is an edge; never: no more edges
	followingNs int64 // the moment after edgeNs
	cpu         func() int64
	threads     []live // of the other threads, whose responses count too
	edges       [2]edge
	n           int
}

// pass records an edge at a completion that is already counted. If a pause of the service covers
// both ends of the window, the next completion is the second edge, so no window is empty.
func (w *worker) pass(now int64) {
	s := &w.slicing
	e := edge{atNs: now, done: w.book.total, cpuNs: -1}
	for i := range s.threads {
		e.done += s.threads[i].done.Load()
	}
	if s.cpu != nil {
		e.cpuNs = s.cpu()
	}
	s.edges[s.n] = e
	s.n++
	s.edgeNs, s.followingNs = s.followingNs, never
	if now >= s.edgeNs {
		s.edgeNs = now + 1
	}
}

// awaitsEdge reports whether a slice of a closed load has its first edge only. If the thread gets
// its core after the window, all responses that wait have one time. The next request then ends the
// slice, so that a pause of the service counts as in other slices.
func (w *worker) awaitsEdge() bool {
	return w.slicing.n == 1 && w.arrivals == nil && w.alive > 0
}

// Open connects and prepares a Loader for its first slice. It ignores Window, Lead, Drain
// and Observer of the spec. An open load restarts its schedule in each slice.
func Open(ctx context.Context, s Spec) (*Loader, error) {
	s.Window, s.Lead = time.Second, 0
	s.Observer = nil
	fail := func(err error) (*Loader, error) { return nil, fmt.Errorf("%s: %w", s.called(), err) }
	switch {
	case s.Users != nil:
		return fail(errors.New("virtual users cannot be offered in slices"))
	case s.Part.of() > 1 || s.Requests > 0:
		return fail(errors.New(
			"parts of a load and a number of requests cannot be offered in slices"))
	}
	r, err := s.ready(ctx)
	if err != nil {
		return fail(err)
	}
	l := &Loader{run: r}
	if err := l.connect(); err != nil {
		return fail(err)
	}
	return l, nil
}

// connect starts the threads and waits until each has its connections.
func (l *Loader) connect() error {
	r := l.run
	n := r.spec.threads()
	l.quiet = hush(n)
	r.cfg = r.spec.config(n)
	r.cfg.sliced = true
	r.lives, r.workers, r.errs = make([]live, n), make([]*worker, n), make([]error, n)
	l.calls, l.done = make([]chan struct{}, n), make(chan error, n)
	for i := range n {
		r.employ(i, n)
		l.calls[i] = make(chan struct{})
		r.connected.Add(1)
		l.ended.Add(1)
		go l.work(i)
	}
	r.connected.Wait()
	makeRoom()
	if err := r.firstError(); err != nil {
		l.Close()
		return err
	}
	return nil
}

// work runs a load thread; see run.work.
func (l *Loader) work(i int) {
	defer l.ended.Done()
	runtime.LockOSThread()
	r := l.run
	w := r.workers[i]
	if err := r.prepare(i, w); err != nil {
		r.errs[i] = err
	}
	r.connected.Done()
	if w.unwatch != nil {
		defer w.unwatch()
	}
	if w.engine != nil {
		defer w.engine.Release()
	}
	for range l.calls[i] {
		l.done <- w.offerSlice()
	}
}

// offerSlice runs one slice on one thread. It first processes the events of idle connections since
// the last slice.
func (w *worker) offerSlice() error {
	w.stop = false
	if err := w.engine.Wait(clock.Mono(), w); err != nil {
		return err
	}
	w.book.cur = 0
	w.book.schedule(w.cfg.openAt, w.cfg.closeAt)
	return w.loop()
}

// lateMost limits how often in a row a slice may pass before its load thread runs.
const lateMost = 100

// Slice runs one slice and returns when its last request has ended. On a busy machine a slice can
// pass before its load thread runs: it sent nothing, and is repeated. An error means that the load
// cannot continue: the context ended, or no completion ended the window.
func (l *Loader) Slice(ctx context.Context, s Slice) (Sliced, error) {
	for range lateMost {
		answered := l.answered()
		out, err := l.slice(ctx, s)
		if err == nil || ctx.Err() != nil || l.answered() > answered || !l.late(out) {
			return out, err
		}
	}
	return Sliced{}, fmt.Errorf("%s: %d slices of %v passed before the load thread ran: use a "+
		"less busy machine, or longer slices", l.run.spec.called(), lateMost, s.Lead+s.Window)
}

// late reports whether a slice without responses has sent no request: otherwise one would have
// failed, or the slice would have waited for it.
func (l *Loader) late(s Sliced) bool {
	return l.run.spec.Model == record.Closed && s.Failed == 0 && s.EndedNs < l.run.cfg.endAt &&
		l.run.workers[0].alive > 0
}

// answered returns the number of responses of all slices so far. No slice may be under way.
func (l *Loader) answered() (n int64) {
	for _, w := range l.run.workers {
		n += w.book.total
	}
	return n
}

// slice runs one slice.
func (l *Loader) slice(ctx context.Context, s Slice) (Sliced, error) {
	r := l.run
	start := clock.Mono()
	c := &r.cfg
	c.start, c.openAt = start, start+int64(s.Lead)
	c.closeAt = c.openAt + int64(s.Window)
	c.endAt = c.closeAt + 2*c.timeoutNs
	failed := l.failed()
	r.spec.Seed = s.Seed
	for i, w := range r.workers {
		r.lives[i].stop.Store(false)
		if r.spec.Model == record.Open {
			w.arrivals = pace.Share(r.spec.whole(), w.id, c.threads)
		}
		w.slicing = slicing{edgeNs: never, followingNs: never}
		w.book.strain.enough = int64((max(s.Cores, 1) + len(r.workers) - 1) / len(r.workers))
	}
	first := &r.workers[0].slicing
	*first = slicing{edgeNs: c.openAt, followingNs: c.closeAt, cpu: s.CPU,
		threads: r.lives[1:]}
	for _, call := range l.calls {
		call <- struct{}{}
	}
	err := l.wait(ctx)
	out := Sliced{BeganNs: start, EndedNs: clock.Mono(), Failed: l.failed() - failed, CPUNs: -1}
	if err != nil {
		return out, err
	}
	if r.spec.Model == record.Open {
		l.finish(first)
	}
	if first.n < len(first.edges) {
		return out, fmt.Errorf("%s: no answer came that would have ended a slice of %v: %s",
			r.spec.called(), s.Lead+s.Window, l.why(out.Failed))
	}
	opened, closed := first.edges[0], first.edges[1]
	out.OpenedNs, out.ClosedNs = opened.atNs, closed.atNs
	out.Requests = closed.done - opened.done
	out.LoadCPUNs, out.StarvedNs = l.effort()
	if opened.cpuNs >= 0 && closed.cpuNs >= 0 {
		out.CPUNs = closed.cpuNs - opened.cpuNs
	}
	return out, nil
}

// finish records the edges of an open slice that no completion has passed. After the last arrival
// no more completions come, so the slice ends now.
func (l *Loader) finish(s *slicing) {
	e := edge{atNs: clock.Mono(), cpuNs: -1}
	for _, w := range l.run.workers {
		e.done += w.book.total
	}
	if s.cpu != nil {
		e.cpuNs = s.cpu()
	}
	for ; s.n < len(s.edges); s.n++ {
		s.edges[s.n] = e
	}
}

// wait waits for all threads, and ends the slice when the context ends.
func (l *Loader) wait(ctx context.Context) error {
	var errs []error
	end := ctx.Done()
	for running := len(l.calls); running > 0; {
		select {
		case err := <-l.done:
			errs = append(errs, err)
			running--
		case <-end:
			l.run.stop()
			end = nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// failed returns the number of failed requests of all slices so far. No slice may be under way.
func (l *Loader) failed() (n int64) {
	for _, w := range l.run.workers {
		n += w.book.all.Failed
	}
	return n
}

// why explains why a slice has no responses.
func (l *Loader) why(failed int64) string {
	for _, w := range l.run.workers {
		if w.book.exampleOf != "" {
			why := w.book.exampleOf
			if w.alive == 0 {
				why = advised(why, w.book.party)
			}
			return fmt.Sprintf("%d requests failed, for example %s", failed, why)
		}
	}
	return "the service answered too slowly for slices"
}

// Errors returns the failed requests that were due in windows, by class.
func (l *Loader) Errors() record.Errors {
	total := l.run.workers[0].book.errors()
	for _, w := range l.run.workers[1:] {
		total = total.Plus(w.book.errors())
	}
	return total
}

// Reconnects returns the number of connections that were reopened within windows.
func (l *Loader) Reconnects() (n int64) {
	for _, w := range l.run.workers {
		n += w.book.renewed
	}
	return l.run.spec.reconnects(n)
}

// ResponseTimes returns the response times over all open slices, and lower bounds of them without
// the generator's own delays.
func (l *Loader) ResponseTimes() (all, punctual record.Dist) {
	h, least := newHist(), newHist()
	for _, w := range l.run.workers {
		h.Merge(w.book.response)
		least.Merge(w.book.punctual)
	}
	return dist(h), dist(least)
}

// Sample returns the times of the first Spec.Sample requests over all windows, by clock.Mono.
func (l *Loader) Sample() arrivalcheck.Times {
	var threads []arrivalcheck.Times
	for _, w := range l.run.workers {
		threads = append(threads, w.book.sample)
	}
	return arrivalcheck.Merge(threads...)
}

// Close ends the threads and their connections.
func (l *Loader) Close() {
	for _, call := range l.calls {
		close(call)
	}
	l.ended.Wait()
	l.quiet()
}
