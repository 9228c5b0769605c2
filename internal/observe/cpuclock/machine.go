package cpuclock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Reading holds a Machine's counters, in ns since boot. Only differences have a meaning; -1 is
// unknown.
type Reading struct {
	StealNs int64 // taken by the hypervisor from all cores, in steps of 10 ms
	BusyNs  int64 // processor time of all processes on the Machine's cores
}

// Machine reads steal and busy time of cores. It is not safe for concurrent use.
type Machine struct {
	stat   int // /proc/stat
	busy   int // file of the source; -1: stat
	source string
	cores  []bool // cores that count in BusyNs, by number; nil: all
	text   []byte
}

// Sources of busy time.
const (
	// BusyCpuacct is the root group of cgroup v1: ns, exact to a tick of running threads.
	BusyCpuacct = "cpuacct"
	// BusySchedstat is /proc/schedstat: ns, up to the last thread switch on each core.
	BusySchedstat = "schedstat"
	// BusyStat is /proc/stat: ticks of 10 ms.
	BusyStat = "stat"
)

const (
	// statTick is the unit of /proc/stat (proc_stat(5), USER_HZ).
	statTick = int64(10 * time.Millisecond)
	// textBytes fits the lines of all cores in /proc/stat, without the lines of interrupts after
	// them.
	textBytes = 1 << 14
	// schedstatBytes fits /proc/schedstat, which has a line for each scheduling domain of each
	// core.
	schedstatBytes = 1 << 17
	// maxCores bounds the numbers of cores (CONFIG_NR_CPUS).
	maxCores = 1 << 13
)

// OpenMachine opens the counters of this machine. BusyNs covers the given cores, or all if there
// are none, and comes from the available source with the finest resolution.
func OpenMachine(cores []int) (*Machine, error) {
	return openMachine("/proc", cpuacctRoot(), cores)
}

func openMachine(proc, cpuacct string, cores []int) (*Machine, error) {
	for _, core := range cores {
		if core < 0 || core >= maxCores {
			return nil, fmt.Errorf("open the machine's processor time: core %d does not exist",
				core)
		}
	}
	stat, err := openFile(filepath.Join(proc, "stat"))
	if err != nil {
		return nil, fmt.Errorf("open the machine's processor time: %w", err)
	}
	m := &Machine{stat: stat, busy: -1, source: BusyStat}
	size := textBytes
	if len(cores) > 0 {
		m.cores = make([]bool, slices.Max(cores)+1)
		for _, core := range cores {
			m.cores[core] = true
		}
	}
	if fd, err := openFile(cpuacct); cpuacct != "" && err == nil {
		m.busy, m.source = fd, BusyCpuacct
	} else if fd, err := openFile(filepath.Join(proc, "schedstat")); err == nil {
		m.busy, m.source, size = fd, BusySchedstat, schedstatBytes
	}
	m.text = make([]byte, size)
	return m, nil
}

// cpuacctRoot returns the cpuacct file of the group of the whole machine, or "" if it is not
// visible. Only a root group has a release_agent (cgroups.rst): the top of a container's tree has
// none.
func cpuacctRoot() string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != "cgroup" ||
			!slices.Contains(strings.Split(g[2], ","), "cpuacct") {
			continue
		}
		if _, err := os.Stat(filepath.Join(f[4], "release_agent")); err == nil {
			return filepath.Join(f[4], "cpuacct.usage_percpu")
		}
	}
	return ""
}

// Read reads both counters. Measured: 10 µs on two cores, most of it for /proc/stat, and more on
// machines with many interrupts, which the kernel counts for that file.
func (m *Machine) Read() Reading {
	text := read(m.stat, m.text)
	out := Reading{StealNs: steal(text), BusyNs: unknown}
	switch m.source {
	case BusyStat:
		out.BusyNs = m.sum(text, statBusy)
	case BusySchedstat:
		out.BusyNs = m.sum(m.pages(), schedstatBusy)
	case BusyCpuacct:
		out.BusyNs = m.percpu(read(m.busy, m.text))
	}
	return out
}

// pages reads schedstat, which the kernel returns in pages.
func (m *Machine) pages() []byte {
	n := 0
	for n < len(m.text) {
		more, err := unix.Pread(m.busy, m.text[n:], int64(n))
		if more <= 0 || err != nil {
			break
		}
		n += more
	}
	return m.text[:n]
}

// steal returns the steal time in the first line of /proc/stat.
func steal(text []byte) int64 {
	const field = 8 // of the line "cpu" (proc_stat(5))
	b := after(text, "cpu ")
	var ticks int64
	for range field {
		var ok bool
		if ticks, b, ok = number(b); !ok {
			return unknown
		}
	}
	return ticks * statTick
}

// sum adds up lines "cpuN …" of the cores that count; value parses a line.
func (m *Machine) sum(text []byte, value func(line []byte) int64) int64 {
	const name = "cpu"
	sum, lines := int64(0), 0
	for b := text; len(b) > len(name); b = nextLine(b) {
		if string(b[:len(name)]) != name {
			continue
		}
		core, tail, ok := number(b[len(name):])
		if !ok || b[len(name)] == ' ' || !m.counts(core) {
			continue
		}
		ns := value(tail)
		if ns < 0 {
			return unknown
		}
		sum, lines = sum+ns, lines+1
	}
	if lines == 0 {
		return unknown
	}
	return sum
}

func (m *Machine) counts(core int64) bool {
	return m.cores == nil || core < int64(len(m.cores)) && m.cores[core]
}

// statBusy sums user, nice, system, irq and softirq of a line of /proc/stat.
func statBusy(line []byte) int64 {
	const idle, iowait, fields = 3, 4, 7
	sum := int64(0)
	for i := range fields {
		ticks, tail, ok := number(line)
		if !ok {
			return unknown
		}
		if line = tail; i != idle && i != iowait {
			sum += ticks
		}
	}
	return sum * statTick
}

// schedstatBusy returns the seventh number of a line of /proc/schedstat, "sum of all time spent
// running by tasks on this processor" (Documentation/scheduler/sched-stats.rst).
func schedstatBusy(line []byte) int64 {
	const field = 7
	var ns int64
	for range field {
		var ok bool
		if ns, line, ok = number(line); !ok {
			return unknown
		}
	}
	return ns
}

// percpu adds up cpuacct.usage_percpu, which has a number for each possible core in one line.
func (m *Machine) percpu(line []byte) int64 {
	sum, counted := int64(0), false
	for core := int64(0); ; core++ {
		ns, tail, ok := number(line)
		if !ok {
			break
		}
		if line = tail; m.counts(core) {
			sum, counted = sum+ns, true
		}
	}
	if !counted {
		return unknown
	}
	return sum
}

// Close closes the files.
func (m *Machine) Close() {
	_ = unix.Close(m.stat) // opened for reading, so no data can be lost
	if m.busy >= 0 {
		_ = unix.Close(m.busy)
	}
	m.stat, m.busy = -1, -1
}
