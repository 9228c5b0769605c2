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

// openClock makes the clock of a core, if it also ticks while the core is idle.
func openClock(core int, periodNs int64) (recorder, error) {
	if err := ticksOnIdleCores(core, periodNs); err != nil {
		return nil, err
	}
	return openRoom(core, periodNs, capacity)
}

// openRoom makes a clock with room for some ticks, which may tick only while the core is busy.
func openRoom(core int, periodNs int64, room int) (recorder, error) {
	p, err := openPerf(core, periodNs, room)
	if err != nil { // a nil one would be a recorder
		return nil, err
	}
	return p, nil
}

// openNames has the kernel report the names of processes.
func openNames(known *identities) namer { return openBirths(known) }

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
