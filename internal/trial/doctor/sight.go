package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/units"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/probe"
	"prony.example/record"
)

// Limits of a quiet host. The shares are the limits above which internal/analysis/verdict finds a
// trial SUSPECT (rules steal and neighbours), so that both agree.
const (
	stealMax = 0.01 // of all cores' time
	otherMax = 0.05 // of all cores' time
	hotC     = 85.0 // 15 °C below where most processors throttle
	topCount = 3
	topShare = 0.005 // of all cores' time; users below it are not named
)

// edge is one reading of the counters. -1 is unknown.
type edge struct {
	atNs       int64
	ownNs      int64
	ticks      probe.HostTicks
	throttledN int64                 // thermal throttle events since boot
	processes  map[int]probe.Process // nil unless requested
}

// takeEdge reads two small files and, if processes are requested, one more for each process.
func takeEdge(root string, s *senses, processes bool) edge {
	stat, _ := os.ReadFile(filepath.Join(root, "proc/stat")) // the parser takes empty as unknown
	e := edge{atNs: s.nowNs(), ownNs: s.ownNs(), ticks: probe.ParseHost(stat),
		throttledN: throttled(root)}
	if processes {
		e.processes = listProcesses(root, s.self)
	}
	return e
}

// listProcesses reads all processes except self. Processes may come and go meanwhile.
func listProcesses(root string, self int) map[int]probe.Process {
	all := map[int]probe.Process{}
	entries, _ := os.ReadDir(filepath.Join(root, "proc")) // without it, no process is named
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == self {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, "proc", e.Name(), "stat"))
		if p, ok := probe.ParseProcess(b); err == nil && ok {
			all[pid] = p
		}
	}
	return all
}

// sight is what happened between two edges. -1 is unknown.
type sight struct {
	windowNs          int64
	steal, otherShare float64 // shares of all cores' time
	tick              float64 // the smallest share above 0 that the counters can show
	hottestC          float64 // 0 is unknown
	throttledN        int64   // since boot
	throttledNow      int64   // between the edges
	stealEver         float64 // share since boot
	top               []user  // largest users, if processes were read
}

type user struct {
	name  string
	share float64 // of all cores' time
}

func between(a, b edge) sight {
	s := sight{windowNs: b.atNs - a.atNs, throttledN: b.throttledN, throttledNow: -1}
	s.steal, s.otherShare = probe.Shares(a.ticks, b.ticks, b.ownNs-a.ownNs)
	s.stealEver, _ = probe.Shares(probe.HostTicks{}, b.ticks, -1)
	if a.throttledN >= 0 && b.throttledN >= 0 {
		s.throttledNow = b.throttledN - a.throttledN
	}
	total := b.ticks.Total - a.ticks.Total
	if total <= 0 {
		return s
	}
	s.tick = 1 / float64(total)
	for pid, p := range b.processes {
		// A process that was not there, or whose PID another process had, counts from its start.
		// Names do not distinguish processes: the kernel's workers change theirs with their work.
		if was, ok := a.processes[pid]; ok && was.CPUNs <= p.CPUNs {
			p.CPUNs -= was.CPUNs
		}
		if share := float64(p.CPUNs) / float64(total*probe.TickNs); share >= topShare {
			s.top = append(s.top, user{p.Name, share})
		}
	}
	slices.SortFunc(s.top, func(a, b user) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.name, b.name))
	})
	s.top = s.top[:min(len(s.top), topCount)]
	return s
}

// unrest returns why a host is not quiet, "" if it is. Counters move in ticks, and one tick is 2.5
// % of 200 ms on two cores, so that a single tick is no evidence of a share above the limits.
func (s sight) unrest() string {
	var why []string
	if s.steal > max(stealMax, s.tick) {
		why = append(why, fmt.Sprintf("the hypervisor took %s of the CPU "+
			"time", units.PercentTo(s.steal, 1)))
	}
	if s.otherShare > max(otherMax, s.tick) {
		why = append(
			why,
			fmt.Sprintf("other programs used %s of the CPU "+
				"time%s", units.PercentTo(s.otherShare, 1), s.names()),
		)
	}
	if s.throttledNow > 0 {
		why = append(why, fmt.Sprintf("the CPU was throttled because of heat %d "+
			"times", s.throttledNow))
	}
	if s.hottestC >= hotC {
		why = append(why, fmt.Sprintf("%.0f °C hot", s.hottestC))
	}
	return strings.Join(why, ", ")
}

// names returns the largest users in brackets, "" if none is known.
func (s sight) names() string {
	if len(s.top) == 0 {
		return ""
	}
	var parts []string
	for _, u := range s.top {
		parts = append(parts, u.name+" "+units.PercentTo(u.share, 1))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// throttled counts the thermal throttle events since boot: the sum over cores, plus the count of
// the package with the most, because all cores of a package report the same number. It returns -1
// if the kernel counts none; it does on Intel's processors. Source: kernel,
// ABI/testing/sysfs-devices-system-cpu.
func throttled(root string) int64 {
	pattern := filepath.Join(root, "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/")
	cores, _ := filepath.Glob(filepath.Join(pattern, "core_throttle_count"))
	packages, _ := filepath.Glob(filepath.Join(pattern, "package_throttle_count"))
	if len(cores)+len(packages) == 0 {
		return -1
	}
	sum, most := int64(0), int64(0)
	for _, file := range cores {
		sum += max(readNumber(file), 0)
	}
	for _, file := range packages {
		most = max(most, readNumber(file))
	}
	return sum + most
}

// processorSensors are the drivers of sensors in processors. Other sensors may be in disks or
// voltage regulators, which are hot in normal use.
var processorSensors = []string{"coretemp", "cpu_thermal", "k10temp", "zenpower"}

// hottest returns the highest temperature of the thermal zones and processors in °C and the
// sensor's name; 0 if there is no sensor. Source: kernel, driver-api/thermal/sysfs-api.rst and
// hwmon/sysfs-interface.rst.
func hottest(root string) (celsius float64, name string) {
	look := func(pattern, label string, match func(string) bool) {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, file := range files {
			subject := cgroup.Value(filepath.Dir(file), label)
			// A disabled sensor returns nothing or an impossible value.
			c := float64(readNumber(file)) / 1000
			if match(subject) && c > celsius && c < 150 {
				celsius, name = c, subject
			}
		}
	}
	look("sys/class/thermal/thermal_zone*/temp", "type", func(string) bool { return true })
	look("sys/class/hwmon/hwmon*/temp*_input", "name", func(subject string) bool {
		return slices.Contains(processorSensors, subject)
	})
	return celsius, name
}

// readNumber returns the number in a file, -1 if there is none.
func readNumber(file string) int64 {
	n, err := strconv.ParseInt(cgroup.Value("", file), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

const (
	quietWindow = 200 * time.Millisecond
	quietBound  = 10 * time.Second
	looksMax    = 1000 // a bound that does not depend on the clock
)

// Quiet checks the host before a trial and waits for calm: it repeats the check until a window is
// quiet, the bound is reached or ctx ends. It returns the values of the last window and the reason
// of the wait. If the kernel does not report them, shares are -1 and the host is not quiet. A check
// reads a handful of small files twice; while it waits, also all processes, to name the largest
// users.
func Quiet(ctx context.Context, o Options) record.Before {
	o.Root = cmp.Or(o.Root, "/")
	o.Window = cmp.Or(o.Window, quietWindow)
	o.Bound = cmp.Or(o.Bound, quietBound)
	o.senses = cmp.Or(o.senses, realSenses())
	var began int64
	var before record.Before
	for look := range looksMax {
		a := takeEdge(o.Root, o.senses, look > 0)
		if look == 0 {
			began = a.atNs
		}
		o.senses.wait(ctx, o.Window)
		s := between(a, takeEdge(o.Root, o.senses, look > 0))
		s.hottestC, _ = hottest(o.Root)
		before = s.before(a.atNs-began, before.Reason)
		over := o.senses.nowNs()-began >= int64(o.Bound)
		if before.Quiet || before.StealShare < 0 || over || ctx.Err() != nil {
			break
		}
	}
	return before
}

// before converts a sight for the record. A quiet sight keeps the earlier reason of the wait.
func (s sight) before(waitedNs int64, earlier string) record.Before {
	b := record.Before{
		WindowNs: s.windowNs, WaitedNs: waitedNs, StealShare: s.steal, OtherCPUShare: s.otherShare,
		TemperatureC: s.hottestC, ThrottleEvents: max(s.throttledN, 0), Reason: s.unrest(),
	}
	switch {
	case s.steal < 0:
		b.Reason = "the kernel does not report which programs use its CPUs"
	case b.Reason == "":
		b.Quiet, b.Reason = true, earlier
	}
	return b
}
