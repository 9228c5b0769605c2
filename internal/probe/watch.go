package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// refreshNs is how long a new process of the service may go unseen in the series. Marks always
	// ask anew.
	refreshNs = int64(time.Second)

	// hostShare bounds what reading /proc/stat may take, as a share of one core: it lists every
	// interrupt of every core, and takes 8 µs with two cores but milliseconds with hundreds.
	hostShare    = 0.001
	hostEveryMax = 100 // samples: 10 s at the default period
	hostTrials   = 3   // the least of these is what reading it takes
)

// sources are what the sampling thread and marks both read.
type sources struct {
	group     groupFiles
	host      hostFiles
	roles     *roles
	pids, own func() []int // of the service, and see Subject.own; nil: none
	foreign   bool         // there is a generator among own
}

// watch is the sampling thread's state. Its step does not allocate.
type watch struct {
	*sources
	service   table
	others    table // see Subject.own
	hostEvery int   // samples to one reading of /proc/stat

	cpu      cpuClock
	buf      [statBytes]byte
	timeout  unix.Timespec
	fds      [1]unix.PollFd
	last     row
	asked    bool  // whether the lists were ever asked for
	askedNs  int64 // when
	hostLeft int   // samples until /proc/stat is read
}

// calibrate finds how often the host's counters can be read within hostShare.
func (w *watch) calibrate(period time.Duration) {
	least := int64(1) << 62
	for range hostTrials {
		before := w.cpu.thread()
		w.host.ticks(w.buf[:hostBytes])
		least = min(least, w.cpu.thread()-before)
	}
	w.hostEvery = strideOf(least, int64(period))
}

// strideOf is the least number of periods in which cost stays within hostShare.
func strideOf(costNs, periodNs int64) int {
	budget := int64(hostShare * float64(periodNs))
	return int(min(1+max(costNs, 0)/max(budget, 1), hostEveryMax))
}

// step takes one sample. What cannot be read keeps its last value, so that counters never step back
// to zero; a service that is gone has no memory and no threads, though.
func (w *watch) step(tNs int64) row {
	if stale := w.service.stale || w.others.stale; !w.asked || stale || tNs-w.askedNs >= refreshNs {
		w.service.refresh()
		w.others.refresh()
		w.asked, w.askedNs = true, tNs
		w.roles.reread(w.service.list())
	} else {
		w.roles.read()
	}
	r := w.last
	r.tNs = tNs
	service := w.service.sum(&w.cpu, w.buf[:])
	own := w.others.sum(&w.cpu, w.buf[:])
	r.rssBytes, r.threads = service.rssBytes, service.threads
	r.labNs = labNs(&w.cpu, w.foreign, own)
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

// labNs is the CPU time of this process, of a foreign generator and of backing processes. A
// generator that has ended is among this process's ended children; they are left out when there is
// none, because the service would be counted as the lab's work once it ends.
func labNs(cpu *cpuClock, foreign bool, own family) int64 {
	ns := cpu.self() + own.cpuNs
	if foreign {
		ns += cpu.endedChildren()
	}
	return ns
}

// poll waits for an event on fd, at most leftNs, and gives the number of events.
func (w *watch) poll(fd *unix.PollFd, leftNs int64) (int, error) {
	w.timeout = unix.NsecToTimespec(leftNs)
	w.fds[0] = *fd
	return unix.Ppoll(w.fds[:], &w.timeout, nil)
}

func (w *watch) close() {
	w.service.close()
	w.others.close()
}
