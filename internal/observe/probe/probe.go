// Package probe observes a trial: what the service consumes, what the lab's own load costs, and
// what the host does meanwhile. It reads cgroups (version 1 and 2), /proc and the kernel's CPU
// clocks.
//
// A Sampler reads inexpensive counters ten times a second on its own OS thread, and stores them as
// a Series. A Mark is a complete reading at the edge of a window; Between turns two marks and the
// samples between them into the record's Usage and Host. It subtracts counters and infers nothing
// from averages.
//
// Unreadable values are -1, never 0, in marks and in the results of Between: processes start and
// end, the service may crash, and hosts may lack PSI or cgroups.
//
// Non-goals: it starts and limits nothing (internal/launch does), judges nothing
// (internal/analysis/verdict does), and writes no file.
package probe

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/record"
)

const (
	periodDefault = 100 * time.Millisecond
	periodMin     = time.Millisecond // below it the sampler itself would be a load
)

// Subject defines what to observe.
type Subject struct {
	// PIDs returns the live processes of the service, from its cgroup's cgroup.procs or its process
	// group. It is called about once a second, when a process has ended, and in each Mark: from two
	// goroutines, but never concurrently. Its cost is part of the sampler's reported cost.
	PIDs func() []int

	// Groups are the service's cgroups. Without CPU accounting among them, CPU time is the sum over
	// the processes of PIDs (source "proc"). The sum misses processes that ended without one of the
	// other processes having waited for them.
	Groups []Group

	// Network is a process of the service that may have its own network, as in a container; 0: the
	// service shares the lab's network.
	Network int

	// Load returns the processes of a foreign generator, nil if this process sends the load. Their
	// CPU time counts as the trial's own, not as the host's other work.
	Load func() []int

	// Backing returns processes that the service needs outside of its cgroups, such as a database;
	// nil if none. They also count as the trial's own.
	Backing func() []int

	// Parts are the processes of a system, each with the process group that it leads. Marks have
	// separate figures for them. Empty: the service is a single process.
	Parts []Part
}

// own returns the trial's processes besides this one and the service; nil: none.
func (s Subject) own() func() []int {
	switch {
	case s.Backing == nil:
		return s.Load
	case s.Load == nil:
		return s.Backing
	}
	return func() []int { return slices.Concat(s.Load(), s.Backing()) }
}

// Part is one process of a system with all its children.
type Part struct {
	Name  string
	Group int
}

// Config configures a Sampler.
type Config struct {
	Period time.Duration // between samples; 0: 100 ms
	Cores  []int         // for the sampling thread; empty: any core

	proc, powercap string // tests replace /proc and /sys/class/powercap
}

// Sampler samples a Subject until Stop.
type Sampler struct {
	sources
	period  time.Duration
	start   int64      // clock.Mono at tNs 0
	charged bool       // the memory controller reports the charged memory
	asking  sync.Mutex // serializes calls of the subject's functions
	watch   watch      // used only by the sampling thread until done is closed

	wake unix.PollFd // an eventfd; readable when the thread must end
	done chan struct{}

	logging sync.Mutex // the thread writes the log, Series reads it
	log     log

	marking sync.Mutex // serializes marks; guards the fields below
	mark    marker
	markNs  int64 // CPU time of marks
	stopped bool
	cost    record.Cost
}

// Start opens all files, takes a first sample and samples until Stop. It returns an error if a
// cgroup's CPU accounting cannot be read, cores do not exist or are not permitted, or file
// descriptors run out. Missing host files are not errors; their values are -1.
func Start(cfg Config, subject Subject) (*Sampler, error) {
	s, err := open(cfg, subject)
	if err != nil {
		return nil, fmt.Errorf("start probe: %w", err)
	}
	ready := make(chan error)
	go s.run(cfg.Cores, ready)
	if err := <-ready; err != nil {
		<-s.done
		s.close()
		return nil, fmt.Errorf("start probe: %w", err)
	}
	return s, nil
}

// open returns a sampler without its thread.
func open(cfg Config, subject Subject) (*Sampler, error) {
	cfg.Period = cmp.Or(cfg.Period, periodDefault)
	if cfg.Period < periodMin {
		return nil, fmt.Errorf("the sampling period must be at least %[2]v, got %[1]v",
			cfg.Period, periodMin)
	}
	if cfg.proc == "" {
		cfg.proc, cfg.powercap = "/proc", cmp.Or(cfg.powercap, "/sys/class/powercap")
	}
	group, err := openGroups(subject.Groups)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		group.close()
		return nil, fmt.Errorf("open eventfd: %w", err)
	}
	s := &Sampler{
		sources: sources{group: group, host: openHost(cfg.proc, subject.Network),
			roles: newRoles(cfg.proc), foreign: subject.Load != nil},
		period:  cfg.Period,
		start:   clock.Mono(),
		charged: group.memory != noFile,
		wake:    unix.PollFd{Fd: int32(fd), Events: unix.POLLIN},
		done:    make(chan struct{}),
		log:     newLog(logRows),
	}
	s.pids, s.ownPIDs = s.asked(subject.PIDs), s.asked(subject.own())
	s.watch = watch{sources: &s.sources, hostEvery: 1,
		service: newTable(cfg.proc, s.pids), peers: newTable(cfg.proc, s.ownPIDs)}
	s.mark = marker{sources: &s.sources, walker: newWalker(cfg.proc), parts: subject.Parts,
		meter: openMeter(cfg.powercap)}
	return s, nil
}

// asked serializes calls from the two goroutines that need a list of processes.
func (s *Sampler) asked(pids func() []int) func() []int {
	if pids == nil {
		return nil
	}
	return func() []int {
		s.asking.Lock()
		defer s.asking.Unlock()
		return pids()
	}
}

// run is the sampling thread. It never unlocks its OS thread, so that the pinned thread ends with
// the goroutine and runs no other.
func (s *Sampler) run(cores []int, ready chan<- error) {
	defer close(s.done)
	runtime.LockOSThread()
	if err := pin(cores); err != nil {
		ready <- err
		return
	}
	// With real-time priority, if permitted, a sample is of one moment even on a busy core. The
	// priority must be reset, because a process's first thread outlives its goroutine.
	if back, ok := rtsched.Ahead(rtsched.Probe); ok {
		defer back()
	}
	began := s.watch.cpu.thread()
	s.watch.calibrate(s.period)
	s.sample()
	close(ready)

	period := int64(s.period)
	due := clock.Mono() + period
	for !s.wait(due) {
		s.sample()
		// A late sample is not repeated: the next one is due a full period later.
		for now := clock.Mono(); due <= now; {
			due += period
		}
	}
	s.sample()
	s.cost.CPUNs = s.watch.cpu.thread() - began
}

// now returns the time in ns that samples and marks share.
func (s *Sampler) now() int64 { return clock.Mono() - s.start }

func (s *Sampler) sample() {
	r := s.watch.step(s.now())
	s.logging.Lock()
	s.log.add(r)
	s.logging.Unlock()
}

// wait sleeps until due and reports whether Stop was called. It sleeps in ppoll rather than on a Go
// timer, so that waking costs only this thread, whose time is accounted for.
func (s *Sampler) wait(due int64) (stop bool) {
	for {
		remaining := due - clock.Mono()
		if remaining <= 0 {
			return false
		}
		n, err := s.watch.poll(&s.wake, remaining)
		if err == nil {
			return n > 0
		}
		if err != unix.EINTR { // the runtime's preemption signal
			panic("probe: ppoll on an eventfd failed: " + err.Error())
		}
	}
}

func pin(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, core := range cores {
		if core < 0 {
			return fmt.Errorf("pin sampling thread to core %d: the core does not exist", core)
		}
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin sampling thread to cores %v: %w (check that at least one core is "+
			"online and in this process's cpuset)", cores, err)
	}
	return nil
}

// Series returns a copy of the samples so far. It may be called at any time.
func (s *Sampler) Series() Series {
	s.logging.Lock()
	rows, every := s.log.copy()
	s.logging.Unlock()
	return newSeries(rows, every, s.period, s.group.source, s.charged)
}

// Roles returns the counters of the last sample. It may be called at any time.
func (s *Sampler) Roles() Roles { return s.roles.last() }

// Stop takes a last sample, ends the thread and closes all files. Its Cost is the CPU time of the
// sampling thread and of all marks, over the sampler's life. A repeated call returns the same.
func (s *Sampler) Stop() (Series, record.Cost) {
	s.marking.Lock()
	defer s.marking.Unlock()
	if !s.stopped {
		s.stopped = true
		item := [8]byte{1} // any nonzero number makes an eventfd readable, in either byte order
		for {
			if _, err := unix.Write(int(s.wake.Fd), item[:]); err != unix.EINTR {
				break
			}
		}
		<-s.done
		life := s.now()
		s.cost.Samples = s.log.samples
		s.cost.PeriodNs = int64(s.period)
		s.cost.CPUNs += s.markNs
		s.cost.CPUShare = float64(s.cost.CPUNs) / float64(max(life, 1))
		s.close()
	}
	return s.Series(), s.cost
}

func (s *Sampler) close() {
	s.group.close()
	s.host.close()
	s.roles.close()
	s.watch.close()
	s.mark.meter.close()
	_ = unix.Close(int(s.wake.Fd))
}

// processes returns the distinct PIDs of a list that may be nil.
func processes(pids func() []int) []int {
	if pids == nil {
		return nil
	}
	list := slices.Clone(pids())
	slices.Sort(list)
	return slices.Compact(list)
}

const (
	// refreshNs is the longest time for which the series lacks a new process of the service. Marks
	// always list processes again.
	refreshNs = int64(time.Second)

	// hostShare limits the time for reading /proc/stat, as a share of one core. The file lists
	// every interrupt of every core: reading takes 8 µs with two cores but milliseconds with
	// hundreds.
	hostShare    = 0.001
	hostEveryMax = 100 // samples: 10 s at the default period
	hostTrials   = 3   // the smallest of these is the cost
)

// sources are the files that the sampling thread and marks share.
type sources struct {
	group         groupFiles
	host          hostFiles
	roles         *roles
	pids, ownPIDs func() []int // of the service, and see Subject.own; nil: none
	foreign       bool         // own includes a generator
}

// watch is the sampling thread's state. Its step does not allocate.
type watch struct {
	*sources
	service   table
	peers     table // see Subject.own
	hostEvery int   // samples per reading of /proc/stat

	cpu       cpuClock
	buf       [statBytes]byte
	timeout   unix.Timespec
	fds       [1]unix.PollFd
	last      row
	requested bool  // the lists have been requested
	askedNs   int64 // time of the last request
	hostLeft  int   // samples until /proc/stat is read
}

// calibrate finds how often reading the host's counters stays within hostShare.
func (w *watch) calibrate(period time.Duration) {
	least := int64(1) << 62
	for range hostTrials {
		before := w.cpu.thread()
		w.host.ticks(w.buf[:hostBytes])
		least = min(least, w.cpu.thread()-before)
	}
	w.hostEvery = strideOf(least, int64(period))
}

// strideOf returns the smallest number of periods in which the cost stays within hostShare.
func strideOf(costNs, periodNs int64) int {
	budget := int64(hostShare * float64(periodNs))
	return int(min(1+max(costNs, 0)/max(budget, 1), hostEveryMax))
}

// step takes one sample. Unreadable counters keep their last value, so that they never fall to
// zero. Memory and threads of an ended service are 0.
func (w *watch) step(tNs int64) row {
	if stale := w.service.stale || w.peers.stale; !w.requested || stale ||
		tNs-w.askedNs >= refreshNs {
		w.service.refresh()
		w.peers.refresh()
		w.requested, w.askedNs = true, tNs
		w.roles.reread(w.service.list())
	} else {
		w.roles.read()
	}
	r := w.last
	r.tNs = tNs
	service := w.service.sum(&w.cpu, w.buf[:])
	ownFamily := w.peers.sum(&w.cpu, w.buf[:])
	r.rssBytes, r.threads = service.rssBytes, service.threads
	r.labNs = labNs(&w.cpu, w.foreign, ownFamily)
	if w.group.source != sourceProc {
		keep(&r.cpuNs, w.group.cpuNs(w.buf[:]))
	} else if service.processes > 0 {
		r.cpuNs = service.cpuNs
	}
	keep(&r.chargedBytes, w.group.memoryBytes(w.buf[:]))
	if w.hostLeft--; w.hostLeft < 0 {
		w.hostLeft = w.hostEvery - 1
		if ticks := w.host.ticks(w.buf[:hostBytes]); ticks.Total >= 0 {
			r.host, r.hostFresh = ticks, tNs
		}
	}
	w.last = r
	return r
}

func keep(to *int64, value int64) {
	if value >= 0 {
		*to = value
	}
}

// labNs returns the CPU time of this process, of a foreign generator and of backing processes. An
// ended generator is among this process's ended children. Without a generator the children are left
// out, because an ended service would count as the lab's work.
func labNs(cpu *cpuClock, foreign bool, ownFamily family) int64 {
	ns := cpu.self() + ownFamily.cpuNs
	if foreign {
		ns += cpu.endedChildren()
	}
	return ns
}

// poll waits for an event on fd for at most leftNs, and returns the number of events.
func (w *watch) poll(fd *unix.PollFd, leftNs int64) (int, error) {
	w.timeout = unix.NsecToTimespec(leftNs)
	w.fds[0] = *fd
	return unix.Ppoll(w.fds[:], &w.timeout, nil)
}

func (w *watch) close() {
	w.service.close()
	w.peers.close()
}
