// Package host knows the machine that the lab runs on: its processors and who gets which, and what
// a record must say of it. What a kernel does not tell is "unknown", never guessed.
package host

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"prony/internal/result"
)

// Layout divides processors between the service and the load with everything else of the lab.
type Layout struct {
	Service []int
	Load    []int
	Home    []int // the home of telemetry's own, where there are enough; else none
	Backing []int // those of backing processes, such as a database, likewise
	Shared  bool  // there was one processor only: service and load take turns on it
}

// Divide gives the service as many cores as it may use processors (rounded up) and the rest to the
// load, which keeps at least one. The service gets the higher numbers: interrupts of devices
// usually arrive at the lower ones.
func Divide(cores []int, cpus float64) (Layout, error) {
	want := int(math.Ceil(cpus))
	switch {
	case len(cores) == 0 || want < 1:
		return Layout{}, fmt.Errorf("divide %d cores: a service of %g CPUs does not fit",
			len(cores), cpus)
	case len(cores) == 1 && want == 1:
		return Layout{Service: cores, Load: cores, Shared: true}, nil
	case want >= len(cores):
		return Layout{}, fmt.Errorf("divide %d cores: the service asks for %d and the load needs "+
			"one; set limits.cpus to %d or less", len(cores), want, max(len(cores)-1, 1))
	}
	at := len(cores) - want
	return Layout{Service: cores[at:], Load: cores[:at]}, nil
}

// Describe fills in what a record says of the machine.
func Describe(p *result.Provenance) {
	p.OS, p.Kernel = system()
	p.Arch = runtime.GOARCH
	cpuinfo := read("/proc/cpuinfo")
	p.CPUModel = cmp.Or(Field(cpuinfo, "model name"), "unknown")
	p.Hypervisor = strings.Contains(" "+Field(cpuinfo, "flags")+" ", " hypervisor ")
	p.Cores = runtime.NumCPU()
	if cores, err := Cores(); err == nil {
		p.Cores = len(cores)
	}
	p.MemoryBytes = KiB(Field(read("/proc/meminfo"), "MemTotal"))
	p.Governor = cmp.Or(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), noGovernor)
	p.Cgroup = CgroupVersion("/sys/fs/cgroup")
}

// AvailableBytes is the memory that programs may still take before others are pushed out (proc(5),
// MemAvailable); 0 unknown.
func AvailableBytes() int64 {
	return KiB(Field(read("/proc/meminfo"), "MemAvailable"))
}

// CgroupVersion tells which hierarchy holds the controllers of processors below root, where the
// kernel's are mounted: "v1", "v2" or "none". In a hybrid set-up, version 2 is mounted one folder
// below and holds none (systemd's CGROUP_DELEGATION); that is v1.
func CgroupVersion(root string) string {
	// Asked first: the root of version 2 has files named cpu.stat and the like.
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return "v2"
	}
	if dirs, _ := filepath.Glob(filepath.Join(root, "cpu*")); len(dirs) > 0 {
		return "v1"
	}
	return "none"
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Field returns the value of the first "name : value" line, "" where there is none.
func Field(lines, name string) string {
	for l := range strings.SplitSeq(lines, "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// KiB is a number of KiB as /proc writes it ("12 kB") in bytes, 0 where it is none.
func KiB(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
