//go:build linux && !portable

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/generator/selftest"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/observe/stalls"
	"prony.example/stats"
)

// watch watches the cores in use while a case runs, after its server was started.
func (t *truthStarter) watch() (end func() selftest.Machine) {
	t.pids = t.server.PIDs()
	self := os.Getpid()
	own := cpuclock.New(func() []int { return []int{self} })
	its := cpuclock.New(func() []int { return t.pids })
	log := t.stalls.Log()
	log.Begin()
	delays := runDelays(self)
	load, service := readCores(t.layout.Load), readCores(t.layout.Service)
	ownNs, itsNs := own.Read(), its.Read()
	return func() selftest.Machine {
		m := selftest.Machine{Idle: t.idle}
		log.End()
		addStalls(&m, log, t.layout)
		for tid, ns := range runDelays(self) {
			m.BesideWaitNs += ns - delays[tid]
		}
		m.Load.StealNs, m.Load.OthersNs = readCores(t.layout.Load).since(load, own.Read()-ownNs)
		m.Service.StealNs, m.Service.OthersNs = readCores(t.layout.Service).since(service,
			its.Read()-itsNs)
		return m
	}
}

// runDelays returns, by thread id, how long each thread of a process was runnable and waited, in ns
// since its start (sched-stats.rst). The load's own threads end with the load and count their
// delays themselves.
func runDelays(pid int) map[int]int64 {
	all := map[int]int64{}
	_ = host.EachThread(strconv.Itoa(pid), func(tid int) error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
		if f := strings.Fields(string(text)); err == nil && len(f) > 1 {
			all[tid], _ = strconv.ParseInt(f[1], 10, 64) //nolint:errcheck // 0 if unknown
		}
		return nil
	}) // a process that has ended has no threads
	return all
}

// coreTimes are the CPU times of some cores since boot.
type coreTimes struct{ usedNs, stealNs int64 }

// since returns the time of the hypervisor and of other processes since another reading.
func (c coreTimes) since(before coreTimes, ownNs int64) (stealNs, othersNs int64) {
	return max(c.stealNs-before.stealNs, 0), max(c.usedNs-before.usedNs-ownNs, 0)
}

// readCores reads the used and the stolen time of some cores.
func readCores(cores []int) coreTimes {
	text, _ := os.ReadFile("/proc/stat") //nolint:errcheck // unknown times are 0
	return parseCores(string(text), cores)
}

// parseCores reads the lines of cores in /proc/stat (proc_stat(5)). Time in interrupts is not
// counted for programs, because they also handle the load's own packets.
func parseCores(text string, cores []int) (c coreTimes) {
	const user, nice, system, steal = 1, 2, 3, 8
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) <= steal || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		core, err := strconv.Atoi(f[0][len("cpu"):])
		if err != nil || !slices.Contains(cores, core) {
			continue
		}
		ns := func(field int) int64 {
			ticks, _ := strconv.ParseInt(f[field], 10, 64) //nolint:errcheck // 0 if unknown
			return ticks * selftest.StealStepNs
		}
		c.usedNs += ns(user) + ns(nice) + ns(system)
		c.stealNs += ns(steal)
	}
	return c
}

// watchStalls prepares the record of stalls before the first server runs, because its setup is fast
// on idle cores.
func (t *truthStarter) watchStalls() {
	t.stalls = stallfree.New(stallfree.Setup{Open: stallfree.OpenReal, Service: t.layout.Service,
		Load: t.layout.Load, PIDs: func() []int { return t.pids }})
}

// addStalls adds the stalls to the machine's report, or why none were recorded.
func addStalls(m *selftest.Machine, log *stallfree.Log, l host.Layout) {
	sum := log.Summary()
	m.StallsWay, m.StallsMissing = sum.Way, sum.Missing
	byCore := map[int][]stats.Stall{}
	for _, x := range log.Stalls() {
		stall := stats.Stall{BeginNs: x.BeginNs, EndNs: x.EndNs, UnseenNs: x.UnseenNs}
		if x.Cause == stalls.Process {
			m.Processes = append(m.Processes, stall)
			continue
		}
		m.Stalls = append(m.Stalls, stall)
		byCore[x.Core] = append(byCore[x.Core], stall)
	}
	m.Load.StalledNs, m.Service.StalledNs = stalled(byCore, l.Load), stalled(byCore, l.Service)
}

// stalled returns the time of stalls on some cores.
func stalled(byCore map[int][]stats.Stall, cores []int) (ns int64) {
	for _, core := range cores {
		for _, x := range stats.Exclude(byCore[core], stats.Margins{}) {
			ns += x.ToNs - x.FromNs
		}
	}
	return ns
}
