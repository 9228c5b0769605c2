package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HostTicks holds the host's CPU times since boot over all cores, in ticks of 10 ms (USER_HZ): on
// two cores a share over 2 s moves in steps of 1/400. Without CONFIG_VIRT_CPU_ACCOUNTING the kernel
// adds complete ticks to the state that it finds, so busy is a sample, not a sum, and shares of
// short windows are coarser still. Idle and iowait are free time. Source: proc(5), /proc/stat.
type HostTicks struct {
	Busy  int64 // user, nice, system, irq, softirq
	Steal int64 // taken by the hypervisor
	Total int64 // Busy, Steal, idle, iowait
}

// hostBytes fits the first line of /proc/stat, ten numbers of up to twenty digits.
const hostBytes = 256

// ParseHost parses the first line of /proc/stat; all fields are -1 if it is malformed. It leaves
// out guest and guest_nice, because the kernel includes them in user and nice.
func ParseHost(b []byte) HostTicks {
	const user, nice, system, idle, iowait, irq, softirq, steal = 0, 1, 2, 3, 4, 5, 6, 7
	var n [steal + 1]int64
	if numbers(after(b, "cpu "), n[:]) != len(n) {
		return HostTicks{unknown, unknown, unknown}
	}
	busy := n[user] + n[nice] + n[system] + n[irq] + n[softirq]
	return HostTicks{busy, n[steal], busy + n[steal] + n[idle] + n[iowait]}
}

// Pressure is the time, in µs since boot, in which at least one task waited for the resource (PSI
// "some"), or -1 if the kernel lacks PSI. Source: Documentation/accounting/psi.rst.
type Pressure struct{ CPUUs, MemoryUs, IOUs int64 }

// parsePressure returns the running total; the averages look back 10 s or more.
func parsePressure(b []byte) int64 {
	_, total, _ := bytes.Cut(after(b, "some "), []byte("total="))
	return leading(total)
}

// hostFiles are the open files of the host, shared like groupFiles.
type hostFiles struct {
	stat, cpu, memory, io, network file
	ownNetwork                     bool // the service has a network namespace
}

// openHost opens the host's files; network is the process whose network counts, 0 for the lab's.
func openHost(proc string, network int) hostFiles {
	from := filepath.Join(proc, strconv.Itoa(network))
	if network == 0 || sharesNetwork(proc, from) {
		from = proc
	}
	return hostFiles{
		ownNetwork: from != proc,
		stat:       optional(filepath.Join(proc, "stat")),
		cpu:        optional(filepath.Join(proc, "pressure/cpu")),
		memory:     optional(filepath.Join(proc, "pressure/memory")),
		io:         optional(filepath.Join(proc, "pressure/io")),
		network:    optional(filepath.Join(from, "net/dev")),
	}
}

// sharesNetwork reports whether a process has the lab's network: the kernel's files of a network
// are the same for all its processes. Load to any address of the lab's network uses its loopback
// interface.
func sharesNetwork(proc, process string) bool {
	ours, err1 := os.Stat(filepath.Join(proc, "net/dev"))
	theirs, err2 := os.Stat(filepath.Join(process, "net/dev"))
	return err1 == nil && err2 == nil && os.SameFile(ours, theirs)
}

func (h *hostFiles) close() {
	for _, f := range []*file{&h.stat, &h.cpu, &h.memory, &h.io, &h.network} {
		f.close()
	}
}

func (h *hostFiles) ticks(buf []byte) HostTicks { return ParseHost(h.stat.read(buf)) }

func (h *hostFiles) pressure(buf []byte) Pressure {
	return Pressure{
		CPUUs:    parsePressure(h.cpu.read(buf)),
		MemoryUs: parsePressure(h.memory.read(buf)),
		IOUs:     parsePressure(h.io.read(buf)),
	}
}

// netBytes returns the bytes that went to and from the service: over the loopback interface, which
// receives both, or in both directions over the first interface of the service's network.
func (h *hostFiles) netBytes(buf []byte) int64 {
	text := h.network.readAll(buf)
	if !h.ownNetwork {
		return keyed(text, "lo:")
	}
	var f [9]int64 // bytes received, seven more of that direction, bytes sent (proc_pid_net(5))
	if numbers(after(text, ownInterface), f[:]) < len(f) {
		return unknown
	}
	return f[0] + f[8]
}

// ownInterface is the name that container engines give a container's side of its bridge.
const ownInterface = "eth0:"

// meter adds up the hardware's counters of the energy of processor packages and their memory (RAPL,
// also of AMD). Source: Documentation/power/powercap.
type meter struct{ zones []zone }

type zone struct {
	counter file
	most    int64 // µJ at which the counter restarts
	last    int64
	sum     int64
}

// openMeter opens the counters that don't include each other: packages, and memory if it is counted
// separately; cores and graphics are included in their package. A meter has no counters if the
// machine lacks them, hides them from guests, or lets only root read them.
func openMeter(powercap string) (m meter) {
	dirs, err := filepath.Glob(filepath.Join(powercap, "intel-rapl:*"))
	if err != nil {
		return m
	}
	slices.Sort(dirs)
	buf := make([]byte, 64)
	for _, dir := range dirs {
		name := strings.TrimSpace(string(once(unix.AT_FDCWD, filepath.Join(dir, "name"), buf)))
		if !strings.HasPrefix(name, "package-") && name != "dram" {
			continue
		}
		z := zone{counter: optional(filepath.Join(dir, "energy_uj")),
			most: leading(once(unix.AT_FDCWD, filepath.Join(dir, "max_energy_range_uj"), buf))}
		if z.last = leading(z.counter.read(buf)); z.most <= 0 || z.last < 0 {
			z.counter.close()
			continue
		}
		m.zones = append(m.zones, z)
	}
	return m
}

// microjoules returns the energy since the meter was opened, or -1 without counters. A counter may
// have restarted at most once since the previous reading: at full load it lasts for minutes.
func (m *meter) microjoules(buf []byte) int64 {
	if len(m.zones) == 0 {
		return unknown
	}
	var sum int64
	for i := range m.zones {
		z := &m.zones[i]
		now := leading(z.counter.read(buf))
		if now < 0 {
			return unknown
		}
		if now < z.last {
			z.sum += z.most
		}
		z.sum += now - z.last
		z.last = now
		sum += z.sum
	}
	return sum
}

func (m *meter) close() {
	for i := range m.zones {
		m.zones[i].counter.close()
	}
}
