//go:build linux && !portable

package stalls

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Words for what ways cannot record.
const (
	shortOnes   = "most stalls that are shorter than a tick"
	processes   = "processes of others, except at a higher priority"
	outerSpace  = "processes outside of this container, which look as an idle core does"
	behindOther = "stalls while it waits behind the service; it may take such waits for stalls"
)

// ways are those of Linux, the best first.
func ways(period time.Duration) []Way {
	blind := []string{shortOnes}
	if inner(os.Readlink("/proc/self/ns/pid")) {
		blind = append(blind, outerSpace)
	}
	p := int64(period)
	return []Way{
		newWay(PerfEvent, p, p, blind...),
		newWay(PerfAndThread, p, rarer(p), blind...),
		newWay(RealTimeThread, p, 0, shortOnes, processes),
		newWay(NormalThread, p, 0, shortOnes, processes, behindOther),
	}
}

// inner reports whether a name space of process ids is not the machine's own, which always has the
// same number (PROC_PID_INIT_INO in include/linux/proc_ns.h). Where the kernel does not say, it is
// not.
func inner(link string, err error) bool {
	return err == nil && link != "pid:[4026531836]"
}

// openClocks makes the clocks of a core, each with room for some ticks. After an error, it returns
// those that are open.
func openClocks(way Way, core, room int) (logs []*coreLog, err error) {
	add := func(r recorder, period int64, looksFor kinds) {
		logs = append(logs, &coreLog{recorder: r, core: core, periodNs: period, looksFor: looksFor})
	}
	thread := 0
	if way.Name != PerfEvent {
		t, err := openThread(core, way.PeriodNs, way.Name != NormalThread, room)
		if err != nil {
			return logs, err
		}
		thread = t.id
		add(t, way.PeriodNs, kinds{late: true})
	}
	switch way.Name {
	case PerfEvent:
		if err := ticksOnIdleCores(core, way.PeriodNs); err != nil {
			return logs, err
		}
		p, err := openPerf(core, way.PeriodNs, room, thread)
		if err != nil {
			return logs, err
		}
		add(p, way.PeriodNs, kinds{late: true, processes: true})
	case PerfAndThread:
		period := rarer(way.PeriodNs)
		p, err := openPerf(core, period, room, thread)
		if err != nil {
			return logs, err
		}
		add(p, period, kinds{processes: true, sparse: true})
	}
	return logs, nil
}

// openNames has the kernel report the names of processes, where the way records any.
func openNames(way Way, known *identities) namer {
	if way.Processes() {
		return openBirths(known)
	}
	return nil
}

// stealSource returns a function that reads what the hypervisor has taken from each core, in ns;
// nil where there is no hypervisor.
func stealSource() func() map[int]int64 {
	info, err := os.ReadFile("/proc/cpuinfo")
	virtual := err == nil && slices.Contains(strings.Fields(string(info)), "hypervisor")
	for _, ns := range readSteal() {
		virtual = virtual || ns > 0
	}
	if !virtual {
		return nil
	}
	return readSteal
}

func readSteal() map[int]int64 {
	text, _ := os.ReadFile("/proc/stat") // without it nothing is known
	return parseSteal(string(text))
}

// parseSteal reads the eighth number of the lines of cores in /proc/stat (proc_stat(5)).
func parseSteal(text string) map[int]int64 {
	const field, tickNs = 8, int64(10 * time.Millisecond)
	all := map[int]int64{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) <= field || !strings.HasPrefix(words[0], "cpu") {
			continue
		}
		core, err := strconv.Atoi(words[0][len("cpu"):])
		ticks, wrong := strconv.ParseInt(words[field], 10, 64)
		if err == nil && wrong == nil {
			all[core] = ticks * tickNs
		}
	}
	return all
}

// onCore does something on a thread that is bound to a core and ends with it.
func onCore(core int, do func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		var only unix.CPUSet
		only.Set(core)
		err := unix.SchedSetaffinity(0, &only)
		if err == nil {
			do()
		}
		done <- err
	}()
	return <-done
}
