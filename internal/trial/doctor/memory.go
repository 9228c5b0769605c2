package doctor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unsafe"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/host"
)

// memoryRules are about memory.
var memoryRules = []Rule{
	{Name: "memory", look: memory, Vital: true,
		Fit:      "at least twice the service's memory limit is available",
		Doubtful: "less than twice the service's memory limit is available",
		Unfit:    "less than the service's memory limit is available",
		Why: "with little memory, the kernel drops caches and delays allocations, so results " +
			"depend on the machine instead of the service",
		Source: "proc(5), /proc/meminfo: MemAvailable"},
	{Name: "shared cache", look: sharedCache,
		Fit:      "the times of random reads in 4 MiB are even: eight of ten runs within 10 %",
		Doubtful: "the times of random reads vary",
		Why: "other users of the last-level cache and memory bus, such as other virtual machines " +
			"of the host, change the speed of trials, and no counter shows it; only more blocks " +
			"average it out",
		Source: "Drepper 2007, What every programmer should know about memory; measured"},
	{Name: "swap", look: swap,
		Fit:      "none in use",
		Doubtful: "some in use",
		Why: "a read of a swapped page waits for the disk during a request, and garbage " +
			"collectors read all pages",
		Source: "proc(5), /proc/meminfo"},
	{Name: "huge pages", look: hugePages,
		Fit:      "madvise or never",
		Doubtful: "always",
		Why: "heaps grow (by 40 % and more in Go), and services stop while the kernel compacts " +
			"memory. Runtimes can request huge pages themselves, such as a JVM with " +
			"-XX:+UseTransparentHugePages",
		Source: "kernel, admin-guide/mm/transhuge.rst; golang/go #59960"},
	{Name: "address layout", look: addressLayout,
		Fit:      "random",
		Doubtful: "fixed",
		Why: "the speed of code depends on its addresses. Random addresses are noise that blocks " +
			"average out; fixed addresses are an invisible bias",
		Source: "Mytkowicz et al. 2009, ASPLOS; Curtsinger & Berger 2013, ASPLOS"},
}

func memory(m *machine) finding {
	free := host.KiB(host.Field(m.text("proc/meminfo"), "MemAvailable"))
	if free == 0 {
		return unsaid()
	}
	observed := fmt.Sprintf("%s of memory available, limit of the service "+
		"%s", gib(free), gib(m.MemoryBytes))
	return worst(free < m.MemoryBytes, free < 2*m.MemoryBytes, observed,
		"end programs that use memory, or lower limits.memory")
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

func swap(m *machine) finding {
	info := m.text("proc/meminfo")
	if host.Field(info, "SwapTotal") == "" {
		return unsaid()
	}
	used := host.KiB(host.Field(info, "SwapTotal")) - host.KiB(host.Field(info, "SwapFree"))
	if used > 0 {
		return doubtful(gib(used)+" in use", asRoot("swapoff -a")+" (undo: swapon -a)")
	}
	return fit("none in use")
}

func hugePages(m *machine) finding {
	const file = "sys/kernel/mm/transparent_hugepage/enabled"
	// The active choice is in brackets: "always [madvise] never".
	_, chosen, _ := strings.Cut(m.text(file), "[")
	chosen, _, ok := strings.Cut(chosen, "]")
	if !ok {
		return unsaid()
	}
	return doubtfulIf(chosen == "always", chosen, asRoot("echo madvise > /"+file))
}

func addressLayout(m *machine) finding {
	const sysctl = "kernel.randomize_va_space"
	switch n := m.number("proc/sys/kernel/randomize_va_space"); n {
	case -1:
		return unsaid()
	case 2:
		return fit("random")
	default:
		return doubtful(fmt.Sprintf("%s is %d", sysctl, n), asRoot("sysctl -w "+sysctl+"=2"))
	}
}

// Reads of memory: more than fits into a core's own cache, and a small part of the shared cache, so
// that other users of it have an effect. The walks take a fifth of a second in all.
const (
	walks     = 20
	walkTime  = 10 * time.Millisecond
	walkBytes = 4 << 20
)

// evenMax is the maximum difference between the 10th and the 90th percentile of the walks, as a
// share of the median. A dedicated machine stays below it.
const evenMax = 0.1

func sharedCache(m *machine) finding {
	n := len(m.readNs)
	if n == 0 {
		return unknown("not measured")
	}
	// Percentiles by nearest rank.
	rank := func(percent int) float64 { return m.readNs[(percent*n+99)/100-1] }
	p10, p50, p90 := rank(10), rank(50), rank(90)
	return doubtfulIf(p90-p10 > evenMax*p50, fmt.Sprintf("time of a read: %.1f ns at p10, %.1f "+
		"ns at p50, %.1f ns at "+
		"p90", p10, p50, p90), "end other programs; in a virtual machine, measure at "+
		"another time, or use more blocks")
}

// wander measures n walks of about d each, and returns for each the time of one read in ns. Each
// read begins only after the last one has ended, and the processor cannot predict its address.
func wander(n int, d time.Duration, bytes int) []float64 {
	next := round(bytes / int(unsafe.Sizeof(uint32(0))))
	offset := uint32(0)
	walk := func(steps int) int64 {
		began := clock.Mono()
		for range steps {
			offset = next[offset]
		}
		return clock.Mono() - began
	}
	steps := len(next) // the first walk fills the caches
	steps = max(1, int(float64(steps)*float64(d)/float64(max(1, walk(steps)))))
	elapsed := make([]float64, n)
	for i := range elapsed {
		elapsed[i] = float64(walk(steps)) / float64(steps)
	}
	if offset >= uint32(len(next)) { // never; without it the compiler could remove the reads
		return nil
	}
	return elapsed
}

// round links n positions to one cycle, in an order that is the same each time.
func round(n int) []uint32 {
	next := make([]uint32, n)
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for i, index := range order {
		next[index] = uint32(order[(i+1)%n])
	}
	return next
}
