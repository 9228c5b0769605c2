package probe

import (
	"maps"
	"slices"

	"prony.example/internal/base/rtsched"
)

// Mark is one complete reading. Counters run since boot, or since the start of the cgroup or of
// each process: only differences between two marks of one sampler have a meaning. -1 is an
// unreadable value. Times are ns, sizes bytes.
type Mark struct {
	Lost bool // no reading arrived: only TNs and Source are known

	TNs    int64  // since Start, monotonic
	Source string // of CPUNs, UserNs, SystemNs, as record.Usage.Source

	CPUNs    int64
	UserNs   int64
	SystemNs int64

	ThrottledPeriods int64
	ThrottledNs      int64

	Processes    int
	ThreadCount  int      // as /proc/PID/stat counts
	Threads      []Thread // live ones, by PID and TID
	RSSBytes     int64    // summed: pages that processes share count in each
	PSSBytes     int64    // -1 unless requested
	ChargedBytes int64    // by the memory controller, page cache included
	MajorFaults  int64
	Roles        Roles
	Parts        []PartMark // of a system, in the order of Subject.Parts

	LabNs    int64 // CPU time of this process, a foreign generator and backing processes
	Host     HostTicks
	Pressure Pressure
	NetBytes int64 // over the loopback interface, or the service's network, in both directions
	EnergyUJ int64 // energy of all the machine's processors, in µJ; see meter
}

// PartMark is the reading of one process of a system and its children; CPUNs is -1 and others are 0
// if none is alive.
type PartMark struct {
	Name     string
	CPUNs    int64
	RSSBytes int64
	Threads  int
}

// marker is the state of marks. It shares only open files with the sampling thread, so that marks
// never block samples.
type marker struct {
	*sources
	walker walker
	parts  []Part
	cpu    cpuClock
	meter  meter
}

// Mark takes a complete reading without PSS on the caller's goroutine. It first reads the counters
// of the service and host, at TNs, then two small files for each thread of the service (about 20 µs
// a thread). It reads threads in the same order at both edges of a window, so that their windows
// have the same length. Concurrent marks wait for each other; samples never wait for marks.
//
// Mark panics after Stop.
func (s *Sampler) Mark() Mark { return s.reading(false) }

// MarkPSS takes a Mark with PSS. Call it without load: the kernel walks all page tables of the
// service (measured: 1.5 ms for each 100 MiB) and blocks memory mappings meanwhile.
func (s *Sampler) MarkPSS() Mark { return s.reading(true) }

func (s *Sampler) reading(pss bool) Mark {
	s.marking.Lock()
	defer s.marking.Unlock()
	if s.stopped {
		panic("probe: Mark after Stop: take the last mark of a window before stopping the sampler")
	}
	var m Mark
	// The CPU clock belongs to the thread, so the goroutine must stay on it.
	rtsched.Locked(rtsched.Probe, func() {
		began := s.mark.cpu.thread()
		m = s.mark.read(s.now())
		if pss {
			m.PSSBytes = s.mark.pss()
		}
		s.markNs += s.mark.cpu.thread() - began
	})
	return m
}

// read begins with the fast counters and ends with the walk over the threads.
func (k *marker) read(tNs int64) Mark {
	text, group, host := k.walker.text, &k.group, &k.host
	m := Mark{TNs: tNs, Source: group.source, PSSBytes: unknown}
	m.CPUNs = group.cpuNs(text)
	m.UserNs, m.SystemNs = group.splitNs(text)
	m.ThrottledPeriods, m.ThrottledNs = group.throttled(text)
	m.ChargedBytes = group.memoryBytes(text)
	ownByName := k.stats(processes(k.ownPIDs))
	m.LabNs = labNs(&k.cpu, k.foreign, sum(ownByName))
	m.Host = host.ticks(text[:hostBytes])
	m.Pressure = host.pressure(text)
	m.NetBytes = host.netBytes(text)
	m.EnergyUJ = k.meter.microjoules(text)

	pids := processes(k.pids)
	stats := k.stats(pids)
	all := sum(stats)
	m.Processes, m.ThreadCount = all.processes, int(all.threads)
	m.RSSBytes, m.MajorFaults = unknown, unknown
	if all.processes > 0 {
		m.RSSBytes, m.MajorFaults = all.rssBytes, all.majorFaults
		if group.source == sourceProc {
			m.CPUNs, m.UserNs, m.SystemNs = all.cpuNs, all.userNs, all.systemNs
		}
	}
	maps.Copy(stats, ownByName) // parts outside of the limits are among those
	m.Parts = k.apart(stats)
	for _, pid := range pids {
		m.Threads = k.walker.threads(pid, m.Threads)
	}
	slices.SortFunc(m.Threads, byThread)
	m.Roles = k.roles.reread(pids)
	return m
}

// stats reads each process once and returns the readings by number, without ended processes.
func (k *marker) stats(pids []int) map[int]procStat {
	out := map[int]procStat{}
	for _, pid := range pids {
		if stat, ok := parseStat(k.walker.of(pid, "stat")); ok {
			out[pid] = stat.timed(&k.cpu, pid)
		}
	}
	return out
}

func sum(stats map[int]procStat) (all family) {
	for _, s := range stats {
		all.add(s)
	}
	return all
}

// apart sums processes by the part that they belong to.
func (k *marker) apart(stats map[int]procStat) (out []PartMark) {
	for _, p := range k.parts {
		out = append(out, PartMark{Name: p.Name, CPUNs: unknown})
	}
	if len(out) == 0 {
		return nil
	}
	for pid, s := range stats {
		if i := k.partOf(stats, pid); i >= 0 {
			out[i].CPUNs = max(out[i].CPUNs, 0) + s.cpuNs
			out[i].RSSBytes += s.rssBytes
			out[i].Threads += int(s.threads)
		}
	}
	return out
}

// partOf returns the index of the part that a process belongs to: by its group, or by its nearest
// ancestor in a part's group, because servers may give their workers groups of their own
// (PostgreSQL does). -1: no part.
func (k *marker) partOf(stats map[int]procStat, pid int) int {
	for range len(stats) {
		stat, ok := stats[pid]
		if !ok {
			return -1
		}
		i := slices.IndexFunc(k.parts, func(p Part) bool { return int64(p.Group) == stat.group })
		if i >= 0 {
			return i
		}
		pid = int(stat.parent)
	}
	return -1
}

// pss returns the sum over the readable processes, or unknown if none is readable.
func (k *marker) pss() int64 {
	sum := int64(unknown)
	for _, pid := range processes(k.pids) {
		if bytes := k.walker.pssBytes(pid); bytes >= 0 {
			sum = max(sum, 0) + bytes
		}
	}
	return sum
}
