package probe

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HostTicks are the host's CPU times since boot over all cores, in ticks of 10 ms (USER_HZ): on two
// cores a share over 2 s moves in steps of 1/400. Without CONFIG_VIRT_CPU_ACCOUNTING the kernel
// adds whole ticks to what it finds running, so busy is a sample, not a sum, and shares of short
// windows are coarser still. Source: proc(5), /proc/stat; idle and iowait are the time that was
// free.
type HostTicks struct {
	Busy  int64 // user, nice, system, irq, softirq
	Steal int64 // taken by the hypervisor
	Total int64 // Busy, Steal, idle, iowait
}

// hostBytes hold the first line of /proc/stat, ten numbers of up to twenty digits.
const hostBytes = 256

// ParseHost reads the first line of /proc/stat; all are -1 where it is none. guest and guest_nice
// are left out: the kernel counts them in user and nice already.
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
// "some"), or -1 where the kernel has no PSI. Source: Documentation/accounting/psi.rst.
type Pressure struct{ CPUUs, MemoryUs, IOUs int64 }

// parsePressure takes the running total, not the averages, which look back 10 s or more.
func parsePressure(b []byte) int64 {
	_, total, _ := bytes.Cut(after(b, "some "), []byte("total="))
	return leading(total)
}

// hostFiles are the open files of the host, shared as groupFiles are.
type hostFiles struct {
	stat, cpu, memory, io, network file
	ownNetwork                     bool // the network is the service's own
}

// openHost opens them; network is whose network counts, 0 for our own.
func openHost(proc string, network int) hostFiles {
	from := proc
	if network != 0 {
		from = filepath.Join(proc, strconv.Itoa(network))
	}
	return hostFiles{
		ownNetwork: network != 0,
		stat:       optional(filepath.Join(proc, "stat")),
		cpu:        optional(filepath.Join(proc, "pressure/cpu")),
		memory:     optional(filepath.Join(proc, "pressure/memory")),
		io:         optional(filepath.Join(proc, "pressure/io")),
		network:    optional(filepath.Join(from, "net/dev")),
	}
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

// netBytes is what went to the service and from it: over the loopback interface, which receives
// both, or over the first interface of its own network in both directions.
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

// ownInterface is what container engines call a container's side of its bridge.
const ownInterface = "eth0:"

// meter adds up what the hardware counts of the energy that packages of processors take, and the
// memory beside them (RAPL). Source: Documentation/power/powercap; AMD's are there, too.
type meter struct{ zones []zone }

type zone struct {
	counter file
	most    int64 // µJ, at which the counter begins anew
	last    int64
	sum     int64
}

// openMeter opens the counters of what no other one counts: packages, and memory where it is
// counted apart; cores and graphics are part of their package. None where the machine has none,
// hides them from its guests, or lets only root read them.
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

// microjoules is what was taken since the meter was opened; -1 where nothing is counted. A counter
// may have begun anew once since the reading before: at full load one lasts for minutes.
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
