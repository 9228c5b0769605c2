package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/units"
	"prony.example/internal/observe/stalls"
)

// timeRules are about reading the clock and timely wake-ups.
var timeRules = []Rule{
	{Name: "clock source", look: clockSource, Vital: true,
		Fit:      "a clock that is read without a system call: tsc, kvm-clock, arch_sys_counter",
		Doubtful: "an unknown clock source",
		Unfit:    "the clock source hpet, acpi_pm, pit or jiffies",
		Why: "each request needs several time stamps: reading hpet or acpi_pm takes " +
			"microseconds, on one core at a time; jiffies count only whole milliseconds",
		Source: "kernel, timers/timekeeping.rst; vdso(7)"},
	{Name: "timer slack", look: timerSlack,
		Fit:      "50 µs or less, the kernel's default",
		Doubtful: "more",
		Why:      "the kernel delays timers by up to this time, to wake several threads at once",
		Source:   "prctl(2), PR_SET_TIMERSLACK"},
	{Name: "wake-ups", look: wakeUps,
		Fit:      "99 % of 200 sleeps of 1 ms end at most 250 µs late",
		Doubtful: "later",
		Unfit:    "half of the sleeps end 1 ms late: there are no high-resolution timers",
		Why: "timers send the requests of an open load: with late timers, requests are sent late " +
			"and responses are read late",
		Source: "kernel, timers/hrtimers.rst; measured"},
	{Name: "stalls", look: stallsRule,
		Fit: "stalls are recorded, and recording costs at most 3 % of a core",
		Doubtful: "stalls are not recorded, or recording costs more than 3 % of a core, or its " +
			"cost is unknown",
		Why: "on a shared machine, the slowest percent of responses waited for the machine; " +
			"prony excludes recorded stalls",
		Source: "perf_event_open(2); docs/stalls.md; measured"},
}

// Clock sources by the kernel's names. The fast ones are those that vdso(7) reads.
var (
	clocksFast = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter",
		"riscv_clocksource", "timebase", "tod"}
	clocksSlow = []string{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"}
)

func clockSource(m *machine) finding {
	const dir = "sys/devices/system/clocksource/clocksource0/"
	name := m.text(dir + "current_clocksource")
	if name == "" {
		return unsaid()
	}
	alternatives := strings.Fields(m.text(dir + "available_clocksource"))
	isFast := func(o string) bool { return slices.Contains(clocksFast, o) }
	better := slices.IndexFunc(alternatives, isFast)
	fix := "see dmesg | grep -i clocksource for the reason why the kernel does not use tsc; boot " +
		"with tsc=reliable if possible"
	if better >= 0 {
		fix = asRoot("echo " + alternatives[better] + " > /" + dir + "current_clocksource")
	}
	return worst(slices.Contains(clocksSlow, name), !isFast(name), name, fix)
}

const slackMax = 50 * time.Microsecond

func timerSlack(m *machine) finding {
	ns := m.number("proc/self/timerslack_ns")
	if ns < 0 {
		return unsaid()
	}
	return doubtfulIf(ns > int64(slackMax), inUs(ns), "start prony from a shell whose timer "+
		"slack is not raised; for a systemd service, set TimerSlackNSec=")
}

const (
	lateMax  = 250 * time.Microsecond // at the 99th percentile
	lateTick = time.Millisecond       // at the median
)

func wakeUps(m *machine) finding {
	n := len(m.lateNs)
	if n == 0 {
		return unknown("not measured")
	}
	// Nearest ranks: of 200, the 100th and the 198th.
	p50, p99 := m.lateNs[(n+1)/2-1], m.lateNs[(99*n+99)/100-1]
	observed := fmt.Sprintf("sleeps end %s late at p50, %s late at p99", inUs(p50), inUs(p99))
	if p50 >= int64(lateTick) {
		return unfit(observed, "boot without highres=off; use a kernel with CONFIG_HIGH_RES_TIMERS")
	}
	return doubtfulIf(p99 > int64(lateMax), observed, "end other programs; limit idle states; in "+
		"a virtual machine, its host determines this")
}

func inUs(ns int64) string { return fmt.Sprintf("%.0f µs", float64(ns)/1e3) }

// stallRecord describes how stalls of a core can be recorded.
type stallRecord struct {
	way   stalls.Way // without a name if stalls cannot be recorded
	share float64    // of the core's time
	err   error      // why stalls cannot be recorded, or why the share is unknown
}

var errNoCore = errors.New("the cores are unknown")

func measureStalls(core int) (r stallRecord) {
	r.way, r.share, r.err = stalls.Price(core, stalls.Period, stallsTime)
	return r
}

const stallsMax = 0.03 // of a core

func stallsRule(m *machine) finding {
	r := m.stalls
	reason := ""
	if r.err != nil {
		reason = strings.ReplaceAll(r.err.Error(), "\n", "; ")
	}
	const again = "end other programs, and run prony doctor again"
	switch {
	case errors.Is(r.err, errNoCore):
		return unknown("not measured: " + reason)
	case r.way.Name == "":
		fix := "use a machine whose kernel has perf events; here, response times include the " +
			"machine's stalls"
		if errors.Is(r.err, fs.ErrPermission) {
			fix = "run prony as root, or: " +
				asRoot(`setcap cap_perfmon,cap_sys_nice+ep "$(command -v prony)"`)
		}
		return doubtful("stalls are not recorded: "+reason, fix)
	case r.err != nil:
		return doubtful(r.way.String()+", cost unknown: "+reason, again)
	}
	return doubtfulIf(r.share > stallsMax,
		r.way.String()+", "+units.PercentTo(r.share, 1)+" of a core", again)
}
