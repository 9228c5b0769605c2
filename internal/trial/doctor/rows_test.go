package doctor

import "prony.example/record"

// row is one change to the lab's machine and the result of a rule.
type row func(rule, grade, observed string, changes tree)

const (
	good    = record.Fit
	soso    = record.Doubtful
	bad     = record.Unfit
	silence = record.Unknown
)

const (
	mute  = "the kernel does not report it"
	state = "cpuidle/state1/"
)

// on returns a file of each of the machine's four cores.
func on(file, text string) tree {
	t := tree{}
	t.each(4, file, text)
	return t
}

func allowed(list string) tree {
	return tree{"proc/self/status": "Name:\tprony\nCpus_allowed_list:\t" + list}
}

func processorRows(check row) {
	// The default service gets one core.
	check("cores", good, "4 cores: 1 for the service, 3 for the load and everything else", nil)
	check("cores", good, "3 cores: 1 for the service, 2 for the load and everything else",
		allowed("0,2-3"))
	check("cores", soso, "2 cores: 1 for the service, 1 for the load and everything else",
		allowed("0-1"))
	check("cores", bad, "1 core for both service and load", allowed("2"))
	check("cores", silence, noCores, allowed("x"))
	check("cores", silence, noCores, tree{"proc/self/status": gone})

	// The service gets core 3, the load 0 to 2.
	const siblings = "topology/thread_siblings_list"
	check("siblings", good, "one thread on each core", nil)
	check("siblings", soso, "core 3 of the service and core 1 of the load are threads of one "+
		"physical core", tree{
		ofCore(0, siblings): "0,2", ofCore(2, siblings): "0,2",
		ofCore(1, siblings): "1,3", ofCore(3, siblings): "1,3"})
	check("siblings", good, "SMT is on, but service and load use different physical cores", tree{
		ofCore(0, siblings): "0-1", ofCore(1, siblings): "0-1",
		ofCore(2, siblings): "2,6", ofCore(3, siblings): "3,7"})
	check("siblings", silence, "the kernel does not report the CPU topology", on(siblings, gone))
	check("siblings", silence, "no thread siblings reported, but a hypervisor may hide them",
		tree{"proc/cpuinfo": "flags : hypervisor"})

	check("core types", good, "one type", nil)
	check("core types", good, "one type", tree{performance: "0-3", efficiency: "8-15"})
	check("core types", soso, "performance cores [0 1] and efficiency cores [2 3]",
		tree{performance: "0-1", efficiency: "2-7"})
	check("core types", good, "one type", on("cpu_capacity", "1024"))
	check("core types", soso, "only cores [2 3] have the full capacity", tree{
		ofCore(0, "cpu_capacity"): "512", ofCore(1, "cpu_capacity"): "512",
		ofCore(2, "cpu_capacity"): "1024", ofCore(3, "cpu_capacity"): "1024"})

	const own, above = mounted + "/user.slice/x.scope/cpu.max", mounted + "/user.slice/cpu.max"
	check("quota", good, "none", nil)
	check("quota", soso, "quota of 2 CPUs for service and load together",
		tree{own: "200000 100000"})
	check("quota", soso, "quota of 2.5 CPUs for service and load together",
		tree{above: "250000 100000"})
	check("quota", bad, "quota of 1.5 CPUs for service and load together",
		tree{own: "300000 100000", above: "75000 50000"})
	const hidden = "the kernel does not report the cgroup of this process"
	check("quota", bad, "quota of 1.5 CPUs for service and load together",
		tree{own: "150000 100000", above: "300000 100000"})
	check("quota", silence, hidden, tree{"proc/self/cgroup": gone})
	check("quota", silence, hidden, tree{mounted + "/cgroup.controllers": gone})
	v1 := tree{mounted + "/cgroup.controllers": gone, "proc/self/cgroup": "4:cpu,cpuacct:/a",
		mounted + "/cpu,cpuacct/a/cpu.cfs_quota_us":  "-1",
		mounted + "/cpu,cpuacct/a/cpu.cfs_period_us": "100000"}
	check("quota", good, "none", v1)
	check("quota", bad, "quota of 0.5 CPUs for service and load together",
		v1.with(tree{mounted + "/cpu,cpuacct/a/cpu.cfs_quota_us": "50000"}))

	const node = "sys/devices/system/node/node"
	check("NUMA", good, "cores on 1 of 1 NUMA nodes", nil)
	check("NUMA", good, "cores on 1 of 2 NUMA nodes", tree{node + "1/cpulist": "4-7"})
	check("NUMA", soso, "cores on 2 of 2 NUMA nodes", tree{node + "0/cpulist": "0-1",
		node + "1/cpulist": "2-3"})
	check("NUMA", silence, "the kernel reports no NUMA nodes", tree{node + "0/cpulist": gone})
}

func speedRows(check row) {
	check("governor", good, "performance by intel_pstate", nil)
	check("governor", soso, "schedutil by intel_pstate",
		on("cpufreq/scaling_governor", "schedutil"))
	check("governor", soso, "performance, powersave by intel_pstate",
		tree{ofCore(2, "cpufreq/scaling_governor"): "powersave"})
	fixed := on("cpufreq/scaling_governor", "userspace")
	fixed.each(4, "cpufreq/scaling_min_freq", "2400000")
	fixed.each(4, "cpufreq/scaling_max_freq", "2400000")
	check("governor", good, "userspace by intel_pstate, frequency fixed", fixed)
	check("governor", soso, "userspace by intel_pstate",
		fixed.with(tree{ofCore(3, "cpufreq/scaling_max_freq"): "3600000"}))
	check("governor", silence, "the kernel does not report frequencies",
		on("cpufreq/scaling_governor", gone))

	const noTurbo, boost = cpus + "intel_pstate/no_turbo", cpus + "cpufreq/boost"
	check("turbo", good, "off", nil)
	check("turbo", soso, "on", tree{noTurbo: "0"})
	check("turbo", good, "off", tree{noTurbo: gone, boost: "0"})
	check("turbo", soso, "on", tree{noTurbo: gone, boost: "1"})
	check("turbo", soso, "on", tree{noTurbo: gone, cpus + "cpufreq/policy0/boost": "0",
		cpus + "cpufreq/policy1/boost": "1"})
	check("turbo", silence, mute, tree{noTurbo: gone})

	check("idle states", good, "deepest state POLL of driver intel_idle, takes 0 µs to leave", nil)
	check("idle states", good, "deepest state C6 of driver intel_idle, takes 50 µs to leave",
		tree{ofCore(1, state+"disable"): "0", ofCore(1, state+"latency"): "50"})
	check("idle states", soso, "deepest state C6 of driver intel_idle, takes 133 µs to leave",
		tree{ofCore(3, state+"disable"): "0"})
}

func heatRows(check row) {
	// The cores' own counts add up; of a package's, which each core reports, the highest counts.
	check("throttling", soso, "9 throttling events since boot", tree{
		ofCore(0, "thermal_throttle/core_throttle_count"):    "1",
		ofCore(1, "thermal_throttle/core_throttle_count"):    "3",
		ofCore(0, "thermal_throttle/package_throttle_count"): "5",
		ofCore(1, "thermal_throttle/package_throttle_count"): "5"})

	const zone = "sys/class/thermal/thermal_zone0/"
	check("temperature", good, "47 °C (x86_pkg_temp)", nil)
	check("temperature", good, "85 °C (x86_pkg_temp)", tree{zone + "temp": "84999"})
	check("temperature", soso, "85 °C (x86_pkg_temp)", tree{zone + "temp": "85000"})
	check("temperature", good, "47 °C (x86_pkg_temp)", tree{
		"sys/class/hwmon/hwmon0/name": "nvme", "sys/class/hwmon/hwmon0/temp1_input": "99000"})
	check("temperature", soso, "99 °C (k10temp)", tree{
		"sys/class/hwmon/hwmon0/name": "k10temp", "sys/class/hwmon/hwmon0/temp1_input": "99000"})
	check("temperature", silence, "no sensor", tree{zone + "temp": gone})
	check("temperature", silence, "no sensor", tree{zone + "temp": "-274000"})

	const supply = "sys/class/power_supply/"
	battery := tree{supply + "BAT0/type": "Battery", supply + "BAT0/capacity": "41",
		supply + "BAT0/status": "Discharging"}
	check("power", good, "no battery in use", nil)
	check("power", soso, "battery, 41 % left", battery)
	check("power", good, "mains", battery.with(tree{supply + "AC/type": "Mains",
		supply + "AC/online": "1"}))
	check("power", good, "no battery in use", battery.with(tree{supply + "BAT0/status": "Full"}))
	check("power", silence, mute, tree{supply: gone})

	check("mitigations", good, "1 in force", nil)
	check("mitigations", soso, "1 in force, mitigations=off",
		tree{"proc/cmdline": "quiet mitigations=off"})
	check("mitigations", silence, mute, tree{cpus + "vulnerabilities/spectre_v2": gone,
		cpus + "vulnerabilities/meltdown": gone})
}

func timeRows(check row) {
	now := func(name string) tree { return tree{clocks + "current_clocksource": name} }
	check("clock source", good, "tsc", nil)
	check("clock source", good, "kvm-clock", now("kvm-clock"))
	check("clock source", good, "arch_sys_counter", now("arch_sys_counter"))
	check("clock source", soso, "xen", now("xen"))
	check("clock source", bad, "hpet", now("hpet"))
	check("clock source", bad, "acpi_pm", now("acpi_pm"))
	check("clock source", silence, mute, now(gone))

	slack := func(ns string) tree { return tree{"proc/self/timerslack_ns": ns} }
	check("timer slack", good, "50 µs", nil)
	check("timer slack", soso, "51 µs", slack("51000"))
	check("timer slack", silence, mute, slack(gone))
}

func companyRows(check row) {
	info := func(text string) tree { return tree{"proc/cpuinfo": text} }
	check("hypervisor", good, "none", nil)
	check("hypervisor", good, "none", tree{"sys/class/dmi/id/sys_vendor": "Amazon EC2"}) // metal
	check("hypervisor", soso, "virtual machine", info("flags : fpu hypervisor tsc"))
	check("hypervisor", soso, "virtual machine: xen", tree{"sys/hypervisor/type": "xen"})
	check("hypervisor", silence, "this kind of CPU has no flag for virtual machines",
		info("Features\t: fp asimd"))

	load := func(text string) tree { return tree{"proc/loadavg": text} }
	check("load average", good, "2.00 tasks on 4 cores", load("2.00 9 9"))
	check("load average", soso, "2.01 tasks on 4 cores", load("2.01 9 9"))
	check("load average", silence, mute, load(gone))

	some := func(text string) tree { return tree{"proc/pressure/memory": text} }
	check("pressure", good, "waited for memory for 1.0 % of the last 10 s",
		some("some avg10=1.00 avg60=9.00"))
	check("pressure", soso, "waited for memory for 1.2 % of the last 10 s",
		some("some avg10=1.20 avg60=0.00"))
	check("pressure", silence, "the kernel does not record memory pressure; boot with psi=1 if "+
		"the kernel supports it",
		some(gone))

	check("container", good, "none seen", nil)
	check("container", soso, "/.dockerenv", tree{".dockerenv": ""})
	check("container", soso, "/run/.containerenv, system calls are filtered", tree{
		"run/.containerenv": "", "proc/self/status": "Cpus_allowed_list:\t0-3\nSeccomp:\t2"})
	check("container", soso, "kubepods in /proc/1/cgroup",
		tree{"proc/1/cgroup": "4:cpu:/kubepods/besteffort/pod1"})
}

func memoryRows(check row) {
	free := func(kib string) tree { return tree{"proc/meminfo": meminfo("9", kib, "0", "0")} }
	// The default service gets 1 GiB = 1048576 KiB.
	check("memory", good, "2.0 GiB of memory available, limit of the service 1.0 GiB",
		free("2097152"))
	check("memory", soso, "2.0 GiB of memory available, limit of the service 1.0 GiB",
		free("2097151"))
	check("memory", soso, "1.0 GiB of memory available, limit of the service 1.0 GiB",
		free("1048576"))
	check("memory", bad, "1.0 GiB of memory available, limit of the service 1.0 GiB",
		free("1048575"))
	check("memory", silence, mute, tree{"proc/meminfo": gone})

	check("swap", good, "none in use", nil)
	check("swap", good, "none in use",
		tree{"proc/meminfo": meminfo("9", "9", "1048576", "1048576")})
	check("swap", soso, "0.5 GiB in use",
		tree{"proc/meminfo": meminfo("9", "9", "1048576", "524288")})
	check("swap", silence, mute, tree{"proc/meminfo": gone})

	check("huge pages", good, "madvise", nil)
	check("huge pages", good, "never", tree{thp: "always madvise [never]"})
	check("huge pages", soso, "always", tree{thp: "[always] madvise never"})
	check("huge pages", silence, mute, tree{thp: gone})

	aslr := func(n string) tree { return tree{"proc/sys/kernel/randomize_va_space": n} }
	check("address layout", good, "random", nil)
	check("address layout", soso, "kernel.randomize_va_space is 0", aslr("0"))
	check("address layout", soso, "kernel.randomize_va_space is 1", aslr("1"))
	check("address layout", silence, mute, aslr(gone))
}

func networkRows(check row) {
	files := func(soft string) tree {
		return tree{"proc/self/limits": "Limit Soft Limit Hard Limit\nMax open files            " +
			soft + "                 1048576              files"}
	}
	check("open files", good, "1048576", nil)
	check("open files", good, "unlimited", files("unlimited"))
	check("open files", good, "16384", files("16384"))
	check("open files", soso, "1024", files("1024"))
	check("open files", silence, mute, tree{"proc/self/limits": gone})

	span := func(text string) tree { return tree{"proc/sys/net/ipv4/ip_local_port_range": text} }
	check("ports", good, "28232 ports: 32768 to 60999", nil)
	check("ports", good, "28000 ports: 1000 to 28999", span("1000 28999"))
	check("ports", soso, "27999 ports: 1000 to 28998", span("1000 28998"))
	check("ports", silence, mute, span(gone))

	reuse := func(n string) tree { return tree{"proc/sys/net/ipv4/tcp_tw_reuse": n} }
	check("time-wait", good, "reused only on loopback", nil)
	check("time-wait", good, "used again", reuse("1"))
	check("time-wait", soso, "never used again", reuse("0"))
	check("time-wait", silence, mute, reuse(gone))

	queue := func(n string) tree { return tree{"proc/sys/net/core/somaxconn": n} }
	check("backlog", good, "4096", nil)
	check("backlog", good, "1024", queue("1024"))
	check("backlog", soso, "128", queue("128"))
	check("backlog", silence, mute, queue(gone))

	track := func(most, now string) tree {
		const dir = "proc/sys/net/netfilter/nf_conntrack_"
		return tree{dir + "max": most, dir + "count": now}
	}
	check("conntrack", good, "not loaded", nil)
	check("conntrack", good, "5 of 30005 table entries in use", track("30005", "5"))
	check("conntrack", soso, "6 of 30005 table entries in use", track("30005", "6"))
}

func permissionRows(check row) {
	check("cgroups", good, "v2: cpuset, cpu, memory", nil)
	top := mounted + "/cgroup."
	slice := mounted + "/user.slice/cgroup."
	check("cgroups", soso, "v2, no group for cpuset", tree{top + "controllers": "cpu memory",
		top + "subtree_control": "cpu memory", slice + "controllers": "cpu memory"})
	// The slice that contains the group has processes, and so has the top of a container.
	nested := tree{"proc/self/cgroup": "0::/", top + "type": "domain", top + "procs": "1",
		top + "subtree_control": ""}
	check("cgroups", soso, "v2, no group for cpuset, cpu, memory", nested)
	check("cgroups", good, "v2: cpuset, cpu, memory",
		nested.with(tree{top + "subtree_control": "cpuset cpu memory"}))
	check("cgroups", good, "v2: cpuset, cpu, memory", nested.with(tree{top + "type": gone}))
	v1 := tree{top + "controllers": gone, "proc/self/cgroup": "1:cpuset:/\n2:memory:/a",
		mounted + "/cpuset/": "", mounted + "/cpu,cpuacct/": "", mounted + "/memory/a/": ""}
	check("cgroups", good, "v1: cpuset, cpu, memory", v1)
	check("cgroups", soso, "v1, no group for memory", v1.with(tree{mounted + "/memory/a/": gone}))
	check("cgroups", soso, "none", tree{top + "controllers": gone})

	perf := func(n string) tree { return tree{"proc/sys/kernel/perf_event_paranoid": n} }
	check("perf events", good, "perf_event_paranoid is 2", nil)
	check("perf events", good, "perf_event_paranoid is -1", perf("-1"))
	check("perf events", silence, "the kernel has no perf events", perf(gone))
}
