package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
)

// processorRules are about cores and their speed.
var processorRules = []Rule{
	{Name: "cores", look: cores, Vital: true,
		Fit:      "two or more cores in addition to the service's",
		Doubtful: "only one core for the load and everything else",
		Unfit:    "service and load share a core, or there are too few cores",
		Why: "other work on the service's core uses its CPU time; other work on the generator's " +
			"core delays requests",
		Source: "TechEmpower #5207, #1432: results limited by the clients"},
	{Name: "siblings", look: siblings,
		Fit:      "service and load have no physical core in common",
		Doubtful: "a core of the service and one of the load are threads of one physical core",
		Why: "two threads of one core share its pipelines and caches, so a busy generator " +
			"slows the service down",
		Source: "kernel, admin-guide/cputopology.rst; postrust #11"},
	{Name: "core types", look: coreTypes,
		Fit:      "all cores have the same speed",
		Doubtful: "performance and efficiency cores, or cores of different capacity",
		Why: "a service on an efficiency core takes longer for each request, and the kernel " +
			"chooses cores that are not pinned",
		Source: "kernel, ABI/testing/sysfs-devices-system-cpu: cpu_capacity; perf-intel-hybrid(1)"},
	{Name: "quota", look: quota, Vital: true,
		Fit:      "the cgroup of this process has no CPU quota",
		Doubtful: "a CPU quota that is enough for service and load",
		Unfit:    "a CPU quota below the limits of service and load",
		Why: "a cgroup that used up its quota is stopped for the rest of a 100 ms period, which " +
			"raises the latency tail and delays the generator",
		Source: "kernel, scheduler/sched-bwc.rst; kubernetes #67577"},
	{Name: "governor", look: governor,
		Fit:      "performance, or a fixed frequency",
		Doubtful: "a governor that changes the frequency with the load",
		Why: "an idle core starts slow and speeds up over milliseconds: latency is higher at low " +
			"rates, and depends on earlier load",
		Source: "kernel, admin-guide/pm/cpufreq.rst"},
	{Name: "turbo", look: turbo,
		Fit:      "off",
		Doubtful: "on",
		Why: "the frequency depends on heat and on the number of busy cores: trials are faster " +
			"on a cold machine, and services run at different speeds",
		Source: "kernel, admin-guide/pm/cpufreq.rst and intel_pstate.rst"},
	{Name: "idle states", look: idleStates,
		Fit:      "all enabled states take at most 50 µs to leave",
		Doubtful: "deeper ones",
		Why: "the first request after a pause waits until its core wakes up; at low rates, every " +
			"request does",
		Source: "kernel, admin-guide/pm/cpuidle.rst"},
	{Name: "NUMA", look: numa,
		Fit:      "all cores are on one NUMA node",
		Doubtful: "the cores are on several NUMA nodes",
		Why: "memory and loopback traffic may cross between nodes, so a start may be faster or " +
			"slower by chance",
		Source: "kernel, admin-guide/mm/numa_memory_policy.rst; aztec #24276"},
	{Name: "throttling", look: throttling,
		Fit:      "no thermal throttling since boot",
		Doubtful: "some since boot",
		Unfit:    "now",
		Why:      "the firmware slows down a hot CPU for seconds at a time",
		Source:   "kernel, ABI/testing/sysfs-devices-system-cpu: thermal_throttle"},
	{Name: "temperature", look: temperature,
		Fit:      "below 85 °C",
		Doubtful: "from there on",
		Why:      "the CPU is close to thermal throttling, which may begin during a trial",
		Source:   "kernel, driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst"},
	{Name: "power", look: power,
		Fit:      "mains",
		Doubtful: "battery",
		Why:      "firmware and kernel lower CPU frequencies on battery",
		Source:   "kernel, ABI/testing/sysfs-class-power"},
	{Name: "mitigations", look: mitigations,
		Fit:      "the kernel's default mitigations",
		Doubtful: "mitigations turned off at boot",
		Why:      "without mitigations, system calls cost less than in production",
		Source:   "kernel, admin-guide/hw-vuln and kernel-parameters: mitigations="},
}

const noCores = "the kernel does not report the cores"

func cores(m *machine) finding {
	n := len(m.cores)
	if n == 0 {
		return unknown(noCores)
	}
	const more = "use a machine with more cores, or give the service fewer (limits.cpus)"
	switch {
	case m.refused != nil:
		return unfit(fmt.Sprintf("%d cores, but the service needs %g", n, m.CPUs), more)
	case m.layout.Shared:
		return unfit("1 core for both service and load", more)
	}
	observed := fmt.Sprintf("%d cores: %d for the service, %d for the load and everything else", n,
		len(m.layout.Service), len(m.layout.Load))
	return doubtfulIf(len(m.layout.Load) == 1, observed, more+"; end all other programs")
}

func siblings(m *machine) finding {
	if len(m.cores) == 0 {
		return unknown(noCores)
	}
	byName := map[int]string{}
	threads := false
	for _, core := range m.cores {
		byName[core] = m.text(ofCore(core, "topology/thread_siblings_list"))
		if byName[core] == "" {
			return unknown("the kernel does not report the CPU topology")
		}
		threads = threads || len(cgroup.ParseCores(byName[core])) > 1
	}
	if !threads {
		if virtual, _ := m.hypervisor(); virtual {
			return unknown("no thread siblings reported, but a hypervisor may hide them")
		}
		return fit("one thread on each core")
	}
	for _, s := range m.layout.Service {
		for _, l := range m.layout.Load {
			if s != l && byName[s] == byName[l] {
				return doubtful(fmt.Sprintf("core %d of the service and core %d of the load are "+
					"threads of one physical core", s, l),
					asRoot("echo off > /sys/devices/system/cpu/smt/control")+"; or start prony "+
						"with taskset on one thread of each core")
			}
		}
	}
	return fit("SMT is on, but service and load use different physical cores")
}

// quota reads the group of this process. Source: kernel, admin-guide/cgroup-v2.rst for cpu.max,
// scheduler/sched-bwc.rst for version 1.
func quota(m *machine) finding {
	const fix = "run prony outside of the container or slice with the quota, or raise the quota: " +
		"docker run --cpus, cpu.max, CPUQuota="
	dirs := m.groups().of("cpu")
	if len(dirs) == 0 || !m.exists("proc/self/cgroup") {
		return unknown("the kernel does not report the cgroup of this process")
	}
	cpus := -1.0
	for _, dir := range dirs {
		limit, period := m.number(dir+"/cpu.cfs_quota_us"), m.number(dir+"/cpu.cfs_period_us")
		if n, _ := fmt.Sscan(m.text(dir+"/cpu.max"), &limit, &period); n == 2 || limit > 0 {
			if c := float64(limit) / float64(max(period, 1)); cpus < 0 || c < cpus {
				cpus = c
			}
		}
	}
	if cpus < 0 {
		return fit("none")
	}
	want := float64(len(m.layout.Service) + len(m.layout.Load))
	return worst(cpus < min(m.CPUs+1, want), true, fmt.Sprintf("quota of %g CPUs for service and "+
		"load together", cpus),
		fix)
}

func governor(m *machine) finding {
	all := m.ofCores("cpufreq/scaling_governor")
	if len(all) == 0 {
		return unknown("the kernel does not report frequencies")
	}
	observed := strings.Join(all, ", ")
	if drivers := m.ofCores("cpufreq/scaling_driver"); len(drivers) > 0 {
		observed += " by " + strings.Join(drivers, ", ")
	}
	fixed := true
	for _, core := range m.cores {
		least := m.number(ofCore(core, "cpufreq/scaling_min_freq"))
		fixed = fixed && least > 0 && least == m.number(ofCore(core, "cpufreq/scaling_max_freq"))
	}
	if fixed {
		return fit(observed + ", frequency fixed")
	}
	return doubtfulIf(!slices.Equal(all, []string{"performance"}), observed,
		asRoot("cpupower frequency-set -g performance"))
}

func turbo(m *machine) finding {
	const pstate = "sys/devices/system/cpu/intel_pstate/no_turbo"
	switch m.text(pstate) {
	case "1":
		return fit("off")
	case "0":
		return doubtful("on", asRoot("echo 1 > /"+pstate))
	}
	boosts := m.match("sys/devices/system/cpu/cpufreq/boost")
	if len(boosts) == 0 {
		boosts = m.match("sys/devices/system/cpu/cpufreq/policy*/boost")
	}
	if len(boosts) == 0 {
		return unsaid()
	}
	for _, boost := range boosts {
		if m.text(boost) != "0" {
			all := strings.Replace(boost, "policy0", "policy*", 1)
			return doubtful("on", asRoot("echo 0 | tee /"+all))
		}
	}
	return fit("off")
}

// idleUsMax is the send delay in µs that internal/analysis/verdict allows (rule lag).
const idleUsMax = 50

func idleStates(m *machine) finding {
	driver := m.text("sys/devices/system/cpu/cpuidle/current_driver")
	deepest, latency, states := "", int64(-1), 0
	for _, core := range m.cores {
		for _, dir := range m.match(ofCore(core, "cpuidle/state[0-9]*")) {
			states++
			if us := m.number(dir + "/latency"); m.text(dir+"/disable") != "1" && us > latency {
				deepest, latency = m.text(dir+"/name"), us
			}
		}
	}
	if states == 0 {
		return unknown("the kernel reports no idle states")
	}
	observed := fmt.Sprintf("deepest state %s of driver %s, takes %d µs to "+
		"leave", deepest, driver, max(latency, 0))
	return doubtfulIf(latency > idleUsMax, observed, asRoot(fmt.Sprintf("cpupower idle-set -D %d",
		idleUsMax+1))+" (undo: cpupower idle-set -E)")
}

func numa(m *machine) finding {
	dirs := m.match("sys/devices/system/node/node[0-9]*")
	if len(dirs) == 0 || len(m.cores) == 0 {
		return unknown("the kernel reports no NUMA nodes")
	}
	used := 0
	for _, dir := range dirs {
		on := cgroup.ParseCores(m.text(dir + "/cpulist"))
		if slices.ContainsFunc(m.cores, func(c int) bool { return slices.Contains(on, c) }) {
			used++
		}
	}
	return doubtfulIf(used > 1, fmt.Sprintf("cores on %d of %d NUMA nodes", used, len(dirs)),
		"numactl --cpunodebind=0 --membind=0 prony run")
}

func throttling(m *machine) finding {
	const fix = "cool the machine: clean fans and filters, turn turbo off, pause longer between " +
		"trials"
	switch s := m.sight; {
	case s.throttledN < 0:
		return unknown("the kernel does not count thermal throttling here")
	case s.throttledNow > 0:
		return unfit(fmt.Sprintf("%d throttling events during the check", s.throttledNow), fix)
	case s.throttledN > 0:
		return doubtful(fmt.Sprintf("%d throttling events since boot", s.throttledN), fix)
	}
	return fit("no throttling event since boot")
}

func temperature(m *machine) finding {
	celsius, name := hottest(m.Root)
	if celsius == 0 {
		return unknown("no sensor")
	}
	return doubtfulIf(celsius >= hotC, fmt.Sprintf("%.0f °C (%s)", celsius, name),
		"let the machine cool down; clean fans and filters, turn turbo off")
}

func power(m *machine) finding {
	if !m.exists("sys/class/power_supply") {
		return unsaid()
	}
	battery := ""
	for _, dir := range m.match("sys/class/power_supply/*") {
		switch m.text(dir + "/type") {
		case "Battery":
			if m.text(dir+"/status") == "Discharging" {
				battery = fmt.Sprintf("battery, %d %% left", max(m.number(dir+"/capacity"), 0))
			}
		case "Mains", "USB":
			if m.text(dir+"/online") == "1" {
				return fit("mains")
			}
		}
	}
	return doubtfulIf(battery != "", cmp.Or(battery, "no battery in use"), "plug it in")
}

func mitigations(m *machine) finding {
	files := m.match("sys/devices/system/cpu/vulnerabilities/*")
	if len(files) == 0 {
		return unsaid()
	}
	active := 0
	for _, f := range files {
		if strings.HasPrefix(m.text(f), "Mitigation") {
			active++
		}
	}
	observed := fmt.Sprintf("%d in force", active)
	const off = "mitigations=off"
	if slices.Contains(strings.Fields(m.text("proc/cmdline")), off) {
		return doubtful(observed+", "+off, "boot without "+off)
	}
	return fit(observed)
}

// hypervisor reports whether this is a virtual machine, by the processor's flags, and its vendor.
// The vendor alone proves nothing, because bare-metal machines of clouds also have one.
func (m *machine) hypervisor() (virtual bool, vendor string) {
	flags := host.Field(m.text("proc/cpuinfo"), "flags")
	virtual = strings.Contains(" "+flags+" ", " hypervisor ") ||
		m.exists("sys/hypervisor/type")
	if vendor = m.text("sys/hypervisor/type"); vendor == "" {
		vendor = m.text("sys/class/dmi/id/sys_vendor")
	}
	return virtual, vendor
}
