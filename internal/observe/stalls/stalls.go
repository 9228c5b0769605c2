// Package stalls records times in which a core could not run its own processes: the hypervisor took
// it, the kernel disabled interrupts, or another process ran. A clock ticks on each core. A late
// tick is a stall, and so are ticks at which another process runs. The clock ticks only between
// Begin and End, and costs nothing otherwise.
//
// The clock is an event of the kernel (perf_event_open(2)). Some kernels do not record its ticks on
// idle cores. On these, a process at real-time priority also ticks (package heartbeat): its late
// ticks are stalls, and ticks of the event show which processes run. Open returns an error if the
// user may use neither. Read returns the stalls. Time without a record is a stall of the cause
// Unrecorded, so that a gap is not mistaken for a quiet core. Price measures the share of a core's
// time that the clocks take.
//
// Non-goals: it excludes nothing from response times (stats.Exclude does) and judges nothing.
package stalls

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"prony.example/internal/base/clock"
)

// Causes of stalls.
const (
	Hypervisor = "hypervisor" // the core was taken from this virtual machine
	Kernel     = "kernel"     // interrupts were off, or a thread of the kernel ran (Stall.Name)
	Process    = "process"    // another process ran (Stall.Name)
	Unknown    = "unknown"    // the core did not run: hypervisor, kernel or process
	Unrecorded = "unrecorded" // no record of this time exists
)

// Stall is a time in which a core did not run its own processes. Ticks show only moments, so
// BeginNs and EndNs are the outer bounds, and LeastNs is the certain duration.
type Stall struct {
	Core    int
	BeginNs int64 // clock.Mono: last moment before the stall without a fault
	EndNs   int64 // first moment after the stall without a fault
	LeastNs int64 // the stall took at least this long, and at most EndNs - BeginNs
	// UnseenNs is this stall's part in an estimate of the time of stalls that were too short to be
	// recorded. Parts may be negative; only sums have a meaning.
	UnseenNs int64
	// MeanNs estimates the duration of this stall and of similar ones too short to be recorded. It
	// is unbiased in sums, also for stalls that are shorter than the period.
	MeanNs int64
	Cause  string
	Name   string // of the process or the kernel thread

	sinceNs int64 // of a process: first tick at which it ran
}

// Period is the usual time between ticks. Half of it costs twice as much and misses half as many
// stalls.
const Period = time.Millisecond

// SumPeriod is the time between ticks if only the sum of stalls matters. It costs a quarter of
// Period.
const SumPeriod = 4 * Period

const (
	// slack is the permitted delay of a tick. Virtual machines deliver timers up to 0.1 ms late.
	slack = int64(200 * time.Microsecond)
	// leastPeriod separates two ticks that are on time.
	leastPeriod = time.Duration(slack + early)
	// capacity is the number of ticks of a core that are buffered.
	capacity = 1 << 14
)

// Names of ways to record stalls.
const (
	PerfEvent = "perf event"
	Heartbeat = "perf event and heartbeat" // on kernels that record no ticks of idle cores
)

// Way describes how stalls are recorded.
type Way struct {
	Name     string
	PeriodNs int64 // from tick to tick
	// ShortestNs is the shortest stall that is always recorded; shorter ones are recorded by
	// chance. With a heartbeat, runs of other processes must be a period longer.
	ShortestNs int64
}

func (w Way) String() string {
	return fmt.Sprintf("%s, stalls of at least %.1f ms", w.Name, float64(w.ShortestNs)/1e6)
}

// recorder is the clock of one core.
type recorder interface {
	begin() error // returns when the clock ticks
	end() error   // returns when it has stopped
	// drain passes on the ticks since the last call, in order.
	drain(add func(tick))
	lost() int // number of lost ticks
	close() error
}

// namer reports names of processes that start, also between End and Begin.
type namer interface {
	drain()
	close() error
}

// Watch records the stalls of some cores.
type Watch struct {
	way    Way
	busyNs int64 // as in clocks
	known  *identities
	names  namer                // nil if not available
	closer func() error         // frees the rest; nil: nothing to free
	steal  func() map[int]int64 // stolen time of each core in ns since boot; nil if not virtual
	mutex  sync.Mutex
	cores  []*coreLog
	begun  bool
	filled *time.Timer // drains clocks in long windows
}

// clocks are the sources of ticks of some cores.
type clocks struct {
	name string
	// all has a clock for each core that always ticks.
	all []recorder
	// busy has a clock for each core that ticks only while the core is not idle, and reports the
	// running process. Without busy, the clocks in all report it.
	busy   []recorder
	busyNs int64        // its period
	pid    int          // of the heartbeat; 0: none
	close  func() error // frees the rest when all recorders are closed; nil: nothing
}

// coreLog holds the ticks of a core's clocks since the last Read.
type coreLog struct {
	all, busy recorder // busy may be nil
	core      int
	ticks     []tick // of all
	ran       []tick // of busy
	spans     []span
	// Sums since Open, for lateCause.
	lateNs, stolenNs, stolenBefore int64
}

func (c *coreLog) recorders() []recorder {
	if c.busy == nil {
		return []recorder{c.all}
	}
	return []recorder{c.all, c.busy}
}

// Open prepares a watch of cores. Function ours reports whether a process belongs on a core; Read
// calls it, also for ended processes. Period is the time between ticks, at least 0.25 ms. The
// clocks do not tick until Begin.
func Open(cores []int, period time.Duration, ours func(core, pid int) bool) (*Watch, error) {
	w, err := open(cores, period, ours, openClocks)
	if err != nil {
		return nil, fmt.Errorf("record stalls of cores %v: %w", cores, err)
	}
	return w, nil
}

// open is Open with a replaceable function that makes the clocks.
func open(cores []int, period time.Duration, ours func(core, pid int) bool,
	openClocks func(cores []int, periodNs int64) (clocks, error)) (*Watch, error) {
	if period < leastPeriod {
		panic(fmt.Sprintf("stalls: a period of %v is too short", period))
	}
	if len(cores) == 0 {
		return nil, errors.New("the list of cores is empty")
	}
	ns := int64(period)
	c, err := openClocks(cores, ns)
	if err != nil {
		return nil, err
	}
	w := &Watch{
		way: Way{Name: c.name, PeriodNs: ns, ShortestNs: ns + slack},
		known: newIdentities(func(core, pid int) bool {
			return c.pid != 0 && pid == c.pid || ours(core, pid)
		}),
		steal: stealSource(), closer: c.close, busyNs: c.busyNs,
	}
	for i, core := range cores {
		log := &coreLog{all: c.all[i], core: core}
		if c.busy != nil {
			log.busy = c.busy[i]
		}
		w.cores = append(w.cores, log)
	}
	w.names = openNames(w.known) // after the clocks, because lockable memory is limited
	return w, nil
}

// Way returns how this watch records stalls.
func (w *Watch) Way() Way { return w.way }

// Begin starts the clocks, and returns when all of them tick.
func (w *Watch) Begin() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.begun {
		return errors.New("begin to record stalls: recording has already begun")
	}
	w.begun = true
	w.drain()
	w.readSteal(false)
	var errs []error
	for _, c := range w.cores {
		from := clock.Mono()
		for _, r := range c.recorders() {
			errs = append(errs, r.begin())
		}
		c.spans = append(c.spans, span{from, clock.Mono(), math.MaxInt64})
	}
	if w.filled == nil {
		w.filled = time.AfterFunc(w.fetchEvery(), w.fetch)
	} else {
		w.filled.Reset(w.fetchEvery())
	}
	return errors.Join(errs...)
}

// fetchEvery returns the time between fetches: at most half of the time in which a buffer fills.
func (w *Watch) fetchEvery() time.Duration {
	return min(time.Duration(capacity/2*w.way.PeriodNs), time.Second)
}

// fetch drains the buffers of clocks that tick for a long time.
func (w *Watch) fetch() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.begun {
		w.drain()
		w.filled.Reset(w.fetchEvery())
	}
}

// End stops the clocks.
func (w *Watch) End() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.begun {
		return errors.New("end to record stalls: recording has not begun")
	}
	w.begun = false
	w.filled.Stop()
	var errs []error
	for _, c := range w.cores {
		c.spans[len(c.spans)-1].end = clock.Mono()
		for _, r := range c.recorders() {
			errs = append(errs, r.end())
		}
	}
	w.readSteal(true)
	return errors.Join(errs...)
}

// readSteal reads each core's stolen time, and at the end of a span adds the difference.
func (w *Watch) readSteal(atEnd bool) {
	if w.steal == nil {
		return
	}
	stolen := w.steal()
	for _, c := range w.cores {
		if atEnd {
			c.stolenNs += stolen[c.core] - c.stolenBefore
		}
		c.stolenBefore = stolen[c.core]
	}
}

func (w *Watch) drain() {
	for _, c := range w.cores {
		c.all.drain(func(t tick) { c.ticks = append(c.ticks, t) })
		if c.busy != nil {
			c.busy.drain(func(t tick) { c.ran = append(c.ran, t) })
		}
	}
	if w.names != nil {
		w.names.drain()
	}
}

// Read returns the stalls between each Begin and its End since the last call, in order of begin.
// Stalls of one core and cause do not overlap. Spans without an End are left to a later call.
func (w *Watch) Read() []Stall {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.drain()
	w.known.forget()
	var all []Stall
	for _, c := range w.cores {
		all = append(all, c.read(w)...)
	}
	slices.SortStableFunc(all, byBegin)
	return all
}

func byBegin(a, b Stall) int { return cmp.Compare(a.BeginNs, b.BeginNs) }

// read judges and removes a core's spans that have ended.
func (c *coreLog) read(w *Watch) []Stall {
	var all []Stall
	for len(c.spans) > 0 && c.spans[0].end < math.MaxInt64 {
		s := c.spans[0]
		n, ran := len(c.ticks), len(c.ran)
		if len(c.spans) > 1 {
			n, ran = before(c.ticks, c.spans[1].from), before(c.ran, c.spans[1].from)
		}
		cause := func(pid int32) (string, string) { return w.known.cause(c.core, int(pid)) }
		if c.busy == nil {
			all = append(all, judge(c.ticks[:n], s, w.way.PeriodNs, cause)...)
		} else {
			all = append(all, judgeBoth(c.ticks[:n], c.ran[:ran], s, w.way.PeriodNs, w.busyNs,
				cause)...)
		}
		c.ticks, c.ran, c.spans = c.ticks[n:], c.ran[ran:], c.spans[1:]
	}
	if len(c.ticks) == 0 {
		c.ticks = nil
	}
	if len(c.ran) == 0 {
		c.ran = nil
	}
	for i := range all {
		all[i].Core = c.core
		if all[i].Cause == Unknown {
			c.lateNs += all[i].LeastNs
		}
	}
	for i := range all {
		if all[i].Cause == Unknown {
			all[i].Cause = lateCause(w.steal != nil, c.lateNs, c.stolenNs)
		}
	}
	return all
}

// before returns the number of ticks before a moment.
func before(ticks []tick, ns int64) int {
	n, _ := slices.BinarySearchFunc(ticks, ns, func(t tick, ns int64) int {
		return cmp.Compare(t.ns, ns)
	})
	return n
}

// lateCause returns the cause of late ticks, which only processes of a higher real-time priority
// can delay. The kernel counts stolen time in steps of 10 ms, so it compares sums since Open, not
// single stalls.
func lateCause(virtual bool, lateNs, stolenNs int64) string {
	switch {
	case !virtual:
		return Kernel
	case stolenNs >= lateNs/2 && stolenNs > 0:
		return Hypervisor
	}
	return Unknown
}

// Lost returns the number of lost ticks since Open. Their time is Unrecorded.
func (w *Watch) Lost() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	sum := 0
	for _, c := range w.cores {
		for _, r := range c.recorders() {
			sum += r.lost()
		}
	}
	return sum
}

// Close frees the clocks. Unread stalls are lost.
func (w *Watch) Close() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.begun = false
	if w.filled != nil {
		w.filled.Stop()
	}
	var errs []error
	for _, c := range w.cores {
		for _, r := range c.recorders() {
			errs = append(errs, r.close())
		}
	}
	if w.closer != nil {
		errs = append(errs, w.closer())
	}
	if w.names != nil {
		errs = append(errs, w.names.close())
	}
	w.cores, w.names, w.closer = nil, nil, nil
	return errors.Join(errs...)
}
