package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"prony.example/internal/observe/stalls"
	"prony.example/record"
)

// tree is a host's files: path to text. An empty text makes a folder of a path that ends in "/".
type tree map[string]string

func (t tree) with(changes tree) tree {
	out := maps.Clone(t)
	for path, text := range changes {
		if text == gone {
			delete(out, path)
		} else {
			out[path] = text
		}
	}
	return out
}

const gone = "\x00"

func (t tree) write(tb testing.TB) string {
	tb.Helper()
	root := tb.TempDir()
	for path, text := range t {
		put(tb, root, path, text)
	}
	return root
}

// remove removes a file, and folders that are empty then.
func remove(tb testing.TB, root, path string) {
	tb.Helper()
	full := filepath.Join(root, path)
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		tb.Fatal(err)
	}
	for dir := filepath.Dir(full); dir != root && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
}

// kept is a host whose files stay from one examination to the next, except for changes that are
// undone: writing them all again for each of two hundred rows takes half a minute.
type kept struct {
	root string
	base tree
}

func keep(tb testing.TB, base tree) *kept { return &kept{base.write(tb), base} }

func (k *kept) examine(t *testing.T, changes tree, h happening) record.Grading {
	t.Helper()
	for path, text := range changes {
		if text == gone {
			remove(t, k.root, path)
		}
	}
	for path, text := range changes {
		if text != gone {
			put(t, k.root, path, text)
		}
	}
	g := Examine(t.Context(), Options{Root: k.root, senses: feel(t, k.root, h)})
	for _, touched := range []tree{changes, h.after} {
		for path := range touched {
			if text, was := k.base[path]; was {
				put(t, k.root, path, text)
			} else {
				remove(t, k.root, path)
			}
		}
	}
	return g
}

func put(tb testing.TB, root, path, text string) {
	tb.Helper()
	full := filepath.Join(root, path)
	dir := filepath.Dir(full)
	if path[len(path)-1] == '/' {
		dir = full
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if path[len(path)-1] == '/' {
		return
	}
	if err := os.WriteFile(full, []byte(text+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// each adds a file to every core of 0 to n-1.
func (t tree) each(n int, file, text string) {
	for i := range n {
		t[ofCore(i, file)] = text
	}
}

// lab is a tuned machine: four cores, eight threads of which SMT is off for half, everything fixed,
// nothing else running.
func lab() tree {
	t := tree{
		"proc/self/status": "Name:\tprony\nCpus_allowed_list:\t0-3\nSeccomp:\t0",
		"proc/self/limits": "Limit                     Soft Limit           Hard Limit\n" +
			"Max processes             61743                61743                processes\n" +
			"Max open files            1048576              1048576              files",
		"proc/self/timerslack_ns":                  "50000",
		"proc/self/cgroup":                         "0::/user.slice/x.scope",
		"proc/stat":                                "cpu  1000 0 1000 98000 0 0 0 0 0 0",
		"proc/loadavg":                             "0.10 0.20 0.30 1/200 4711",
		"proc/cpuinfo":                             "processor\t: 0\nflags\t: fpu tsc",
		"proc/cmdline":                             "BOOT_IMAGE=/vmlinuz root=/dev/sda1",
		"proc/meminfo":                             meminfo("16777216", "8388608", "0", "0"),
		"proc/pressure/memory":                     "some avg10=0.00 avg60=0.00 total=7",
		"proc/1/cgroup":                            "0::/init.scope",
		"proc/sys/kernel/randomize_va_space":       "2",
		"proc/sys/kernel/perf_event_paranoid":      "2",
		"proc/sys/net/core/somaxconn":              "4096",
		"proc/sys/net/ipv4/ip_local_port_range":    "32768\t60999",
		"proc/sys/net/ipv4/tcp_tw_reuse":           "2",
		clocks + "current_clocksource":             "tsc",
		clocks + "available_clocksource":           "tsc hpet acpi_pm",
		cpus + "intel_pstate/no_turbo":             "1",
		cpus + "cpuidle/current_driver":            "intel_idle",
		cpus + "vulnerabilities/spectre_v2":        "Mitigation: Retpolines",
		cpus + "vulnerabilities/meltdown":          "Not affected",
		"sys/devices/system/node/node0/cpulist":    "0-3",
		"sys/class/power_supply/":                  "",
		"sys/class/thermal/thermal_zone0/type":     "x86_pkg_temp",
		"sys/class/thermal/thermal_zone0/temp":     "47000",
		thp:                                        "always [madvise] never",
		mounted + "/cgroup.controllers":            "cpuset cpu io memory pids",
		mounted + "/cgroup.subtree_control":        "cpuset cpu memory",
		mounted + "/user.slice/x.scope/cpu.max":    "max 100000",
		mounted + "/user.slice/cgroup.type":        "domain",
		mounted + "/user.slice/cgroup.procs":       "",
		mounted + "/user.slice/cgroup.controllers": "cpuset cpu memory",
	}
	for i := range 4 {
		t[ofCore(i, "topology/thread_siblings_list")] = strconv.Itoa(i)
	}
	t.each(4, "cpufreq/scaling_governor", "performance")
	t.each(4, "cpufreq/scaling_driver", "intel_pstate")
	t.each(4, "cpuidle/state0/name", "POLL")
	t.each(4, "cpuidle/state0/latency", "0")
	t.each(4, "cpuidle/state0/disable", "0")
	t.each(4, "cpuidle/state1/name", "C6")
	t.each(4, "cpuidle/state1/latency", "133")
	t.each(4, "cpuidle/state1/disable", "1")
	t.each(4, "thermal_throttle/core_throttle_count", "0")
	t.each(4, "thermal_throttle/package_throttle_count", "0")
	return t
}

const (
	clocks = "sys/devices/system/clocksource/clocksource0/"
	cpus   = "sys/devices/system/cpu/"
	thp    = "sys/kernel/mm/transparent_hugepage/enabled"
)

func meminfo(total, available, swapTotal, swapFree string) string {
	return fmt.Sprintf("MemTotal:       %s kB\nMemAvailable:   %s kB\n"+
		"SwapTotal:      %s kB\nSwapFree:       %s kB", total, available, swapTotal, swapFree)
}

// laptop runs on its battery, warm, with a browser open: two cores of two threads each.
func laptop() tree {
	t := lab().with(tree{
		"proc/loadavg":                         "2.50 1.00 0.50 3/900 4711",
		"proc/meminfo":                         meminfo("8388608", "1572864", "2097152", "1048576"),
		cpus + "intel_pstate/no_turbo":         "0",
		"sys/class/power_supply/BAT0/type":     "Battery",
		"sys/class/power_supply/BAT0/status":   "Discharging",
		"sys/class/power_supply/BAT0/capacity": "41",
		"sys/class/power_supply/AC/type":       "Mains",
		"sys/class/power_supply/AC/online":     "0",
		"sys/class/hwmon/hwmon0/name":          "coretemp",
		"sys/class/hwmon/hwmon0/temp1_input":   "91000",
		"sys/class/hwmon/hwmon1/name":          "nvme",
		"sys/class/hwmon/hwmon1/temp1_input":   "96000",
		thp:                                    "[always] madvise never",
		"proc/200/stat":                        process(200, "Web (Content)", 100),
	})
	t.each(4, "cpufreq/scaling_governor", "powersave")
	t.each(4, "cpuidle/state1/disable", "0")
	t.each(4, "thermal_throttle/core_throttle_count", "2")
	t.each(4, "thermal_throttle/package_throttle_count", "5")
	for i := range 4 {
		t[ofCore(i, "topology/thread_siblings_list")] = []string{"0,2", "1,3"}[i%2]
	}
	return t
}

// cloud is a virtual machine of four cores, of which the hypervisor steals a quarter.
func cloud() tree {
	t := lab().with(tree{
		"proc/cpuinfo":                         "processor\t: 0\nflags\t\t: fpu tsc hypervisor",
		"sys/class/dmi/id/sys_vendor":          "QEMU",
		clocks + "current_clocksource":         "kvm-clock",
		cpus + "cpuidle/current_driver":        "none",
		cpus + "intel_pstate/no_turbo":         gone,
		"sys/class/thermal/thermal_zone0/type": gone,
		"sys/class/thermal/thermal_zone0/temp": gone,
	})
	for path := range t {
		for _, pattern := range []string{"cpufreq/*", "cpuidle/state*/*", "thermal_throttle/*"} {
			if ok, _ := filepath.Match(cpus+"cpu[0-9]/"+pattern, path); ok {
				delete(t, path)
			}
		}
	}
	return t
}

// bare is a container on two cores without /sys.
func bare() tree {
	t := tree{".dockerenv": ""}
	for path, text := range lab() {
		if ok, _ := filepath.Match("sys/*", path); !ok && path[:4] != "sys/" {
			t[path] = text
		}
	}
	return t.with(tree{
		"proc/self/status": "Name:\tprony\nCpus_allowed_list:\t0-1\nSeccomp:\t2",
		"proc/self/cgroup": "0::/",
		"proc/cpuinfo":     "processor\t: 0\nflags\t\t: fpu tsc",
	})
}

// process is a /proc/PID/stat of a process that used this many ticks, half of them as the system.
func process(pid int, name string, ticks int) string {
	return fmt.Sprintf("%d (%s) S 1 1 1 0 -1 0 100 0 0 0 %d %d 0 0 20 0 1 0 500 1000000 300 1",
		pid, name, ticks/2, ticks-ticks/2)
}

// happening is a change of the host during a window.
type happening struct {
	after tree // files at the end of the window
	ownNs int64
	late  []int64
	reads []float64
	ro    bool // cgroups are read-only
	stall *stallRecord
}

// feel makes senses whose waits take no time; each wait applies the next happening.
func feel(tb testing.TB, root string, h ...happening) *senses {
	var nowNs, ownNs int64
	first := h[0]
	return &senses{
		self:  77,
		nowNs: func() int64 { return nowNs },
		ownNs: func() int64 { return ownNs },
		stalls: func(int) stallRecord {
			if first.stall != nil {
				return *first.stall
			}
			return stallRecord{way: stalls.Way{Name: stalls.PerfEvent, ShortestNs: 1.2e6},
				share: 0.013}
		},
		writable: func(string) bool { return !first.ro },
		lateNs: func() []int64 {
			if first.late != nil {
				return first.late
			}
			late := make([]int64, 200)
			for i := range late {
				late[i] = 60_000
			}
			return late
		},
		readNs: func() []float64 {
			if first.reads != nil {
				return first.reads
			}
			return []float64{20, 20}
		},
		wait: func(_ context.Context, d time.Duration) {
			nowNs += int64(d)
			if len(h) == 0 {
				return
			}
			ownNs += h[0].ownNs
			for path, text := range h[0].after {
				put(tb, root, path, text)
			}
			h = h[1:]
		},
	}
}

var errEvent = errors.New("open perf event: operation not permitted")
