package doctor

import (
	"fmt"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/internal/observe/host"
)

// companyRules are about other users of the machine.
var companyRules = []Rule{
	{Name: "hypervisor", look: hypervisor,
		Fit:      "none",
		Doubtful: "a virtual machine",
		Why: "virtual machines on the same host share caches, memory and network, and no counter " +
			"shows their use; the CPUs may not be physical ones",
		Source: "Laaber, Scheuner & Leitner 2019, EMSE 24: benchmarking in the cloud"},
	{Name: "steal", look: steal, Vital: true,
		Fit:      "at most 1 % of the time of all cores",
		Doubtful: "up to 10 %",
		Unfit:    "more",
		Why: "a core that the hypervisor takes away stops for milliseconds during requests: " +
			"throughput falls by the same share, tail latency rises by far more",
		Source: "proc(5), /proc/stat; verdict rule steal"},
	{Name: "other load", look: otherLoad, Vital: true,
		Fit:      "at most 5 % of the time of all cores",
		Doubtful: "up to 25 %",
		Unfit:    "more",
		Why:      "other processes use CPU time and come and go, so trials differ",
		Source:   "proc(5), /proc/stat; verdict rule neighbors"},
	{Name: "load average", look: loadAverage,
		Fit:      "at most one task for two cores in the last minute",
		Doubtful: "more",
		Why:      "the machine was busy, and this work may come back",
		Source:   "proc(5), /proc/loadavg"},
	{Name: "pressure", look: pressure,
		Fit:      "waited for memory for at most 1 % of the last 10 s",
		Doubtful: "longer",
		Why: "threads that wait for memory add latency that no other metric shows. Without " +
			"/proc/pressure, verdicts cannot check it",
		Source: "kernel, accounting/psi.rst"},
	{Name: "container", look: container,
		Fit:      "none seen",
		Doubtful: "prony runs in a container",
		Why: "system call filters slow down calls, and may forbid the cgroups that enforce " +
			"limits",
		Source: "kernel, userspace-api/seccomp_filter.rst"},
}

func hypervisor(m *machine) finding {
	virtual, vendor := m.hypervisor()
	switch {
	case virtual:
		return doubtful(strings.TrimSuffix("virtual machine: "+vendor, ": "), elsewhere)
	case host.Field(m.text("proc/cpuinfo"), "flags") == "":
		return unknown("this kind of CPU has no flag for virtual machines")
	}
	return fit("none")
}

const elsewhere = "measure on a physical machine, or compare only within one run, which loads " +
	"its targets in turns"

const (
	stealUnfit = 0.10 // as in the verdict's rule steal
	otherUnfit = 0.25
)

func steal(m *machine) finding {
	s := m.sight
	if s.steal < 0 {
		return unsaid()
	}
	observed := fmt.Sprintf("%s of CPU time now, %s since boot", units.PercentTo(s.steal, 1),
		units.PercentTo(s.stealEver, 1))
	return worst(s.steal > stealUnfit, s.steal > stealMax, observed,
		"wait, or use a dedicated or bare-metal instance")
}

func otherLoad(m *machine) finding {
	s := m.sight
	if s.otherShare < 0 {
		return unsaid()
	}
	return worst(
		s.otherShare > otherUnfit,
		s.otherShare > otherMax,
		units.PercentTo(s.otherShare, 1)+s.names(),
		"end other programs",
	)
}

func loadAverage(m *machine) finding {
	var tasks float64
	if n, _ := fmt.Sscan(m.text("proc/loadavg"), &tasks); n != 1 || len(m.cores) == 0 {
		return unsaid()
	}
	return doubtfulIf(tasks > float64(len(m.cores))/2,
		fmt.Sprintf("%.2f tasks on %d cores", tasks, len(m.cores)),
		"wait a minute after other work ends; top shows active programs")
}

const pressureMax = 1.0 // %

func pressure(m *machine) finding {
	var percent10 float64
	line := m.text("proc/pressure/memory")
	if n, _ := fmt.Sscanf(line, "some avg10=%f", &percent10); n != 1 {
		return unknown("the kernel does not record memory pressure; boot with psi=1 if the " +
			"kernel supports it")
	}
	return doubtfulIf(percent10 > pressureMax, fmt.Sprintf("waited for memory for %.1f %% of the "+
		"last 10 s", percent10),
		"free memory, or lower the memory limit of the service")
}

func container(m *machine) finding {
	const fix = "run prony on the host, or use docker run --privileged --cgroupns=host " +
		"--cpuset-cpus=…"
	sign := ""
	for _, file := range []string{".dockerenv", "run/.containerenv", "run/systemd/container"} {
		if m.exists(file) {
			sign = "/" + file
		}
	}
	for _, word := range []string{"docker", "kubepods", "containerd", "libpod", "lxc"} {
		if sign == "" && strings.Contains(m.text("proc/1/cgroup"), word) {
			sign = word + " in /proc/1/cgroup"
		}
	}
	if sign == "" {
		return fit("none seen")
	}
	const filtered = "2" // SECCOMP_MODE_FILTER
	if host.Field(m.text("proc/self/status"), "Seccomp") == filtered {
		sign += ", system calls are filtered"
	}
	return doubtful(sign, fix)
}
