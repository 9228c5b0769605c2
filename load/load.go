// Package load sends HTTP load and measures the responses. One call of Run is one load: it
// connects, sends the load for a lead-in and a window, waits for the responses still under way, and
// returns the measurements.
//
//	schedule (pace) ─► due arrival ─► any free connection ─► engine ─► response ─► checks ─► book
//
// Each core has one thread with its own connections, its own share of the schedule and its own
// book. Threads share nothing while they run, and nothing is allocated per request. Books are
// merged afterwards.
//
// Each request has four moments, all on the monotonic clock: scheduled, sent (just before the
// write), first byte, and done (just after the read that completed it). Response time is done −
// scheduled, service time is done − sent, and lag (send delay) is sent − scheduled. Times count
// from the moment at which the request was due, so a stalled server cannot hide the requests that
// it delayed (coordinated omission).
//
// A failed request is not sent again, with one exception: if the server closed the kept-alive
// connection before it processed the request, the request goes to a new connection with the same
// due time and is counted as retried.
//
// Non-goals: retries of failed requests, synthetic samples of any kind.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/address"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/load/arrivalcheck"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
)

// Users makes a closed load one of virtual users. Each user sends a request, waits for the
// response, pauses, and sends again. Spec.Connections is the maximum number of users, because each
// has its own connection.
type Users struct {
	Number pace.Profile // active users over time, from the beginning of the lead-in
	Think  Think
}

// Think is the pause of a user between a response and the next request.
type Think struct {
	Kind   string        // "constant", "uniform" or "exponential"; empty: none
	Lo, Hi time.Duration // uniform: the ends; the others: Lo is the value or the mean
}

// EngineInfo describes the engine in the record.
type EngineInfo struct {
	Name, Reason, Pacing string
	Protocol             string // empty: HTTP/1.1 without TLS
	Streams              int    // requests at once on one connection; 0: one
	Spread               bool   // other threads work for it: count the CPU time of the process
	Datagrams            bool   // its protocol uses UDP
}

// Result is the result of a load. Intervals holds the histograms behind Load.Series.
type Result struct {
	record.Load
	Intervals []Interval
	FromNs    int64   // clock.Mono of the window's opening; 0: unknown for a foreign generator
	OpenedNs  int64   // clock.Mono when the last thread first ran in the window; 0: no thread did
	Ledger    *Ledger // source of the computation; nil for a foreign generator
	// Sample is the times of the first Spec.Sample requests of the window, from FromNs on. Those of
	// an open load are in the order in which they were due.
	Sample arrivalcheck.Times
}

// config is shared by the workers and read-only once the load starts.
type config struct {
	threads   int // of all parts
	links     int // connections of all parts
	streams   int // of a connection
	last      int // of the last connection
	timeoutNs int64
	users     *Users
	churn     int32
	plain     bool   // closed, and no pauses: a request is due when it is sent
	sliced    bool   // a response after the window's end ends it, so one must be under way then
	serial    bool   // the protocol is HTTP/1.1
	trace     tracer // limit 0: no request is traced
	start     int64  // first moment of the lead-in, clock.Mono
	openAt    int64
	closeAt   int64
	endAt     int64
}

// never is a moment that never comes.
const never = math.MaxInt64

// garbageMax is how much garbage can accumulate before the garbage collector runs. Long loads that
// inspect responses produce some.
const garbageMax = 512 << 20

// settle is the time for the threads to get from the last connect to the first request.
const settle = 2 * time.Millisecond

// Run runs the load. It fails if no load is possible: the spec is invalid or no connection opens.
// If the context is canceled, Run returns the context's error. If the observer ends the
// load early, the result has its counters, but its rates are not representative.
func Run(ctx context.Context, s Spec) (_ *Result, err error) {
	defer func() {
		if err != nil && err != ctx.Err() {
			err = fmt.Errorf("%s: %w", s.called(), err)
		}
	}()
	r, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer hush(r.spec.threads())()
	return r.do(ctx)
}

// ready checks the spec, chooses an engine and compiles the scenario.
func (s Spec) ready(ctx context.Context) (*run, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Engine == nil {
		if err := (Choice{}).Set(&s); err != nil {
			return nil, err
		}
	}
	if s.Churn > 0 && s.Describe.Streams > 1 {
		return nil, errors.New("churn renews only connections with one request at a time; leave " +
			"out churn or the streams")
	}
	p, err := compile(s.Scenario, cmp.Or(s.Host, address.WithoutZone(s.Address.String())),
		strconv.Itoa(int(s.Address.Port())), s.Seed)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, &s); err != nil {
		return nil, err
	}
	return &run{spec: s, plan: p}, nil
}

// called returns the prefix of the load's errors, without the word "load" twice.
func (s *Spec) called() string {
	if s.Name == "" || s.Name == "load" {
		return "load"
	}
	return "load " + s.Name
}

// links returns the number of connections of all parts: Connections counts their streams.
func (s *Spec) links() int {
	streams := max(s.Describe.Streams, 1)
	return (s.Connections + streams - 1) / streams
}

// slots returns how many streams thread i of all threads has. Threads share whole connections; only
// the last connection can have fewer streams than the others.
func (s *Spec) slots(i, threads int) int {
	links, streams := s.links(), max(s.Describe.Streams, 1)
	n := int(share(int64(links), i, threads)) * streams
	if (links-1)%threads == i {
		n -= links*streams - s.Connections
	}
	return n
}

// threads returns the number of threads of each part.
func (s *Spec) threads() int { return max(min(len(s.Cores), s.links()/s.Part.of()), 1) }

// check rejects specs of impossible loads, and of loads that this process cannot send.
func (s *Spec) check() error {
	switch {
	case !s.Address.IsValid():
		return errors.New("it has no address to send to")
	case s.Every < 0:
		return fmt.Errorf("the time between reports, %v, is negative", s.Every)
	case s.Detail < Brief || s.Detail > Pieces:
		return fmt.Errorf("detail %d is none of Brief, Full and Pieces", s.Detail)
	}
	return s.checkLoad()
}

// reports reports whether the observer gets the load's progress.
func (s *Spec) reports() bool { return s.Observer != nil && s.Every > 0 }

// repeats reports whether the load threads record each request a second time.
func (s *Spec) repeats() bool { return s.reports() && s.Detail > Brief }

func (s *Spec) checkLoad() error {
	switch {
	case s.Model != record.Closed && s.Model != record.Open:
		return fmt.Errorf("model %q is neither %s nor %s", s.Model, record.Closed, record.Open)
	case s.Connections < 1:
		return fmt.Errorf("%d connections; it needs at least 1", s.Connections)
	case s.Model == record.Open && s.Most != 0 && s.Most < s.Connections:
		return fmt.Errorf("at most %d connections, and it begins with %d", s.Most, s.Connections)
	case s.Window <= 0:
		return fmt.Errorf("window %v is not positive", s.Window)
	case s.Timeout <= 0:
		return fmt.Errorf("timeout %v is not positive", s.Timeout)
	case s.Lead < 0 || s.Drain < 0:
		return fmt.Errorf("lead %v or drain %v is negative", s.Lead, s.Drain)
	}
	if err := s.Network.Check(); err != nil {
		return err
	}
	if err := s.checkPart(); err != nil {
		return err
	}
	if err := s.Trace.check(s.Scenario.Requests); err != nil {
		return err
	}
	return s.checkModel()
}

func (s *Spec) checkModel() error {
	switch {
	case s.Pacing != "" && s.Pacing != Frugal && s.Pacing != Precise:
		return fmt.Errorf("pacing %q is neither %s nor %s", s.Pacing, Frugal, Precise)
	case s.Churn < 0 || s.Requests < 0:
		return errors.New("churn and requests cannot be negative")
	case s.Model == record.Open && s.Users != nil:
		return errors.New("virtual users are a closed model; leave out the rate or the users")
	case s.Model == record.Open:
		_, err := s.Schedule.Process(s.Seed)
		return err
	case s.Users != nil:
		return s.Users.check(s.Connections)
	}
	return nil
}

func (u *Users) check(connections int) error {
	if err := u.Number.Check(); err != nil {
		return fmt.Errorf("users: %w", err)
	}
	if most := u.Number.Max(); most < 1 || most > float64(connections) {
		return fmt.Errorf("up to %g users over %d connections; each needs one of its own", most,
			connections)
	}
	t := u.Think
	switch t.Kind {
	case "":
		return nil
	case "constant", "exponential", "uniform":
		if t.Lo < 0 || t.Kind == "uniform" && t.Hi < t.Lo {
			return fmt.Errorf("think time from %v to %v: the second time must not be less than "+
				"the first", t.Lo, t.Hi)
		}
		return nil
	}
	return fmt.Errorf("think time %q is none of constant, uniform and exponential", t.Kind)
}

// run is the state of one load under way.
type run struct {
	spec    Spec
	plan    *plan
	cfg     config
	workers []*worker
	lives   []live

	priority string // scheduling of the first load thread; all have the same
	unread   int64  // dropped datagrams: a total until the window opens, then those in it
	wall     int64  // of the window's opening, Unix time in ns
	reported int    // intervals of the window that were already streamed

	connected sync.WaitGroup
	finished  sync.WaitGroup
	begin     chan struct{}
	errs      []error
}

func (r *run) do(ctx context.Context) (*Result, error) {
	n := r.spec.threads()
	r.cfg = r.spec.config(n)
	r.cfg.trace = newTracer(r.spec.Trace, r.spec.Name, r.spec.Seed)
	r.lives = make([]live, n)
	r.workers = make([]*worker, n) // never reallocated: the threads read it
	r.errs = make([]error, n)
	r.begin = make(chan struct{})
	for i := range n {
		r.employ(i, n)
		r.connected.Add(1)
		r.finished.Add(1)
		go r.work(i)
	}
	r.connected.Wait()
	makeRoom()
	err := r.firstError()
	if err == nil {
		err = r.setTimes(ctx)
	}
	close(r.begin)
	if err == nil {
		err = r.oversee(ctx)
	}
	r.finished.Wait()
	if err == nil {
		err = r.firstError()
	}
	if err == nil && r.window() <= 0 {
		err = errors.New("it was ended before its window began")
	}
	if err != nil {
		return nil, err
	}
	return r.ledger().Result(), nil
}

// config returns what n threads of each part share.
func (s *Spec) config(n int) config {
	links, streams := s.links(), max(s.Describe.Streams, 1)
	return config{
		threads: n * s.Part.of(), timeoutNs: int64(s.Timeout), users: s.Users,
		links: links, streams: streams, last: s.Connections - (links-1)*streams,
		churn:  int32(min(s.Churn, math.MaxInt32)),
		plain:  s.Model == record.Closed && s.Users == nil,
		serial: serial(s.Describe.Protocol),
		start:  never, openAt: never, closeAt: never, endAt: never,
	}
}

// employ makes the worker of thread i of n.
func (r *run) employ(i, n int) {
	id := r.spec.Part.thread(i)
	conns := r.spec.slots(id, r.cfg.threads)
	most := conns
	if r.cfg.streams == 1 {
		most = max(conns, int(share(int64(r.most()), i, n)))
	}
	w := newWorker(&r.cfg, r.plan, id, conns, most)
	w.live, r.workers[i] = &r.lives[i], w
	w.remaining = share(r.spec.Requests, id, r.cfg.threads)
}

// filesLeft is the number of file descriptors that are not for connections.
const filesLeft = 256

// most returns the most connections that this part can open. Only an open load without streams can
// grow, as far as the limit on file descriptors allows.
func (r *run) most() int {
	s := &r.spec
	limit, here := filesMost(), int(s.Part.share(int64(s.Connections)))
	if s.Model != record.Open || s.Describe.Streams > 1 || limit == 0 {
		return here
	}
	files := int(min(limit, math.MaxInt32)) - filesLeft
	return max(min(int(s.Part.share(int64(s.Most))), files), here)
}

// share returns the i-th of n parts of a number of turns; negative if there is no bound.
func share(total int64, i, n int) int64 {
	if total == 0 {
		return -1
	}
	part := total / int64(n)
	if int64(i) < total%int64(n) {
		part++
	}
	return part
}

// window returns the length of the window in ns, shorter than Spec.Window if the load ended within
// it.
func (r *run) window() int64 {
	end := int64(math.MinInt64)
	for _, w := range r.workers {
		end = max(end, w.book.endedAt)
	}
	return end - r.cfg.openAt
}

func (r *run) setTimes(ctx context.Context) error {
	start := clock.Mono() + int64(settle)
	if r.spec.Together != nil {
		var err error
		if start, err = r.spec.Together(ctx); err != nil {
			return err
		}
	}
	r.cfg.start = start
	r.cfg.openAt = r.cfg.start + int64(r.spec.Lead)
	r.cfg.closeAt = r.cfg.openAt + int64(r.spec.Window)
	r.cfg.endAt = r.cfg.closeAt + int64(r.spec.Drain)
	r.wall = wallAt(r.cfg.openAt)
	return nil
}

// work runs a load thread. The thread ends with its goroutine, and with it its affinity and timer
// slack.
func (r *run) work(i int) {
	defer r.finished.Done()
	runtime.LockOSThread()
	w := r.workers[i]
	err := r.prepare(i, w)
	if err != nil {
		r.errs[i] = err
	}
	r.connected.Done()
	<-r.begin
	if w.unwatch != nil {
		defer w.unwatch()
	}
	if w.engine == nil {
		return
	}
	defer w.engine.Release()
	if r.cfg.start == never {
		return
	}
	w.book.schedule(r.cfg.openAt, r.cfg.closeAt)
	if err := w.loop(); err != nil {
		r.errs[i] = err
		r.stop()
	}
}

func (r *run) prepare(i int, w *worker) error {
	if len(r.spec.Cores) > 0 {
		if err := pin(r.spec.Cores[i]); err != nil {
			return fmt.Errorf("pin load thread to core %d: %w", r.spec.Cores[i], err)
		}
	}
	if r.spec.Ahead && len(r.spec.Cores) > 0 && !r.spec.Describe.Spread {
		_, w.ahead = rtsched.Ahead(rtsched.Load) // the thread ends with its goroutine
	}
	if i == 0 {
		r.priority = priority()
	}
	usage := func() threadUsage { return threadUsage{} }
	switch {
	case !r.spec.Describe.Spread:
		usage, w.unwatch = ownUsage()
	case i == 0: // this worker counts the CPU time of all
		usage = wholeUsage()
	}
	w.book = newBook(r.spec.grid(), usage)
	w.book.unnamed = !serial(r.spec.Describe.Protocol)
	w.book.extend(r.plan, cmp.Or(r.spec.Sample, sampleMax)/r.cfg.threads, r.spec.repeats())
	if r.cfg.trace.limit > 0 {
		w.book.traced = newShelves(r.cfg.trace.keep)
	}
	if r.spec.Model == record.Open {
		w.arrivals = pace.Share(r.spec.whole(), w.id, r.cfg.threads)
	}
	// A nil pointer in an interface is not nil and would be released, so w.engine is set only on
	// success.
	e, err := r.spec.Engine(r.spec.Address, len(w.conns))
	if err != nil {
		return err
	}
	w.engine = e
	if q, ok := e.(Queueing); ok {
		w.queues = q.Queues()
	}
	if err := r.spec.Trace.carries(e); err != nil {
		return err
	}
	if err := w.delayBy(&r.spec); err != nil {
		return err
	}
	if r.spec.Model == record.Open {
		if err := w.wakeups(r.spec.Pacing); err != nil {
			return err
		}
	}
	if err := w.connect(clock.Mono() + int64(r.spec.Timeout)); err != nil {
		return err
	}
	if w.alive == 0 {
		why := cmp.Or(w.book.exampleOf, fmt.Sprintf(noneWithin+"%v", r.spec.Timeout))
		target := r.spec.Address.String()
		if r.spec.Describe.Protocol == nethttp.H1Unix { // the reason has its path
			target = "the Unix socket"
		}
		return fmt.Errorf("no connection to %s could be opened: %s", target,
			advised(why, w.book.party))
	}
	return nil
}

// noneWithin begins the reason why no connection could be opened in time.
const noneWithin = "none was within "

// advised adds advice to the reason why no connection could be opened. The party that caused it is
// empty for the service.
func advised(why, party string) string {
	if party != "" || strings.Contains(why, "; ") { // the reason has advice
		return why
	}
	if strings.HasPrefix(why, noneWithin) { // it can listen, and wait for another protocol
		return why + "; check that the service runs and speaks the protocol of the URL"
	}
	if strings.Contains(why, "QUIC handshake: ") {
		return why + "; check that the service runs and speaks HTTP/3, which needs this port of UDP"
	}
	if strings.Contains(why, "TLS handshake: ") { // something listens
		return why + "; check that the port speaks TLS"
	}
	return why + "; is the service running?"
}

// cross reports one end of the window to the observer.
func (r *run) cross(open bool) {
	Observers{r.spec.Observer}.Window(open)
	if r.spec.Describe.Datagrams {
		r.unread = unread() - r.unread
	}
}

// oversee waits for the ends of the window and of the load, and calls the observer.
func (r *run) oversee(ctx context.Context) error {
	done := make(chan struct{})
	go func() { r.finished.Wait(); close(done) }()
	edges := NewEdges(r.spec.Lead, r.cfg.openAt, r.cfg.closeAt, r.cross)
	defer edges.Stop()
	var tick, look <-chan time.Time
	var view *spectacle
	if r.spec.reports() {
		t := time.NewTicker(r.spec.Every)
		defer t.Stop()
		tick = t.C
	}
	if r.spec.repeats() {
		view = r.watch()
	}
	sight := glancer{r: r}
	report := func(p Progress) {
		if !r.spec.Observer.Progress(p) {
			r.stop()
			tick, look = nil, nil
		}
	}
	for {
		select {
		case <-ctx.Done():
			r.stop()
			<-done
			return ctx.Err()
		case <-done:
			edges.Rest()
			if view != nil {
				report(view.final())
			}
			return nil
		case <-edges.C:
			edges.Cross()
		case <-tick:
			if view == nil {
				report(sight.look())
				continue
			}
			view.ask()
			look = time.After(2 * tickNs)
		case <-look:
			report(view.look())
		}
	}
}

func (r *run) stop() {
	for i := range r.lives {
		r.lives[i].stop.Store(true)
	}
}

func (r *run) count() (n int64) {
	for i := range r.lives {
		n += r.lives[i].done.Load()
	}
	return n
}

func (r *run) firstError() error { return errors.Join(r.errs...) }
