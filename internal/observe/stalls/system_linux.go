//go:build linux && !portable

package stalls

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// openClocks opens the clocks of some cores: the perf event, and also a heartbeat if the event may
// not tick while a core is idle. In virtual machines that may change from second to second, so the
// event alone is used there only if a heartbeat is not permitted.
func openClocks(cores []int, periodNs int64) (clocks, error) {
	var refused error
	if isVirtual() {
		c, err := openBoth(cores, periodNs)
		if !errors.Is(err, fs.ErrPermission) {
			return c, err
		}
		refused = err
	}
	switch idle := ticksOnIdleCores(cores[0], periodNs); {
	case idle == nil:
		return openEvents(cores, periodNs)
	case refused != nil:
		return clocks{}, refused
	case errors.Is(idle, errIdle) || errors.Is(idle, errBusy):
		return openBoth(cores, periodNs)
	default:
		return clocks{}, fmt.Errorf("core %d: %w", cores[0], idle)
	}
}

// openEvents opens clocks that are perf events.
func openEvents(cores []int, periodNs int64) (clocks, error) {
	c := clocks{name: PerfEvent}
	for _, core := range cores {
		r, err := openRoom(core, periodNs, capacity)
		if err != nil {
			return clocks{}, errors.Join(fmt.Errorf("core %d: %w", core, err), closeAll(c.all))
		}
		c.all = append(c.all, r)
	}
	return c, nil
}

// openBoth opens a heartbeat and perf events. The events tick half as often, which keeps the cost
// of both below 3 % of a core.
func openBoth(cores []int, periodNs int64) (clocks, error) {
	c, err := openEvents(cores, 2*periodNs)
	if err != nil {
		return c, err
	}
	h, err := startHeartbeats(cores, periodNs)
	if err != nil {
		return clocks{}, errors.Join(fmt.Errorf("ticks of idle cores may be missing, and no "+
			"heartbeat could be started: %w", err), closeAll(c.all))
	}
	c.name, c.pid, c.close = Heartbeat, h.cmd.Process.Pid, h.close
	c.busy, c.busyNs, c.all = c.all, 2*periodNs, nil
	for i := range cores {
		c.all = append(c.all, &beatClock{heartbeats: h, index: i})
	}
	return c, nil
}

func closeAll(list []recorder) (err error) {
	for _, r := range list {
		err = errors.Join(err, r.close())
	}
	return err
}

// openRoom opens a clock with a buffer for a number of ticks. It may tick only while the core is
// busy.
func openRoom(core int, periodNs int64, room int) (recorder, error) {
	p, err := openPerf(core, periodNs, room)
	if err != nil { // a nil *perfClock would not be a nil recorder
		return nil, err
	}
	return p, nil
}

// openNames makes the kernel report the names of processes.
func openNames(known *identities) namer { return openBirths(known) }

// stealSource returns a function that reads the time that the hypervisor has taken from each core,
// in ns; nil if this is not a virtual machine.
func stealSource() func() map[int]int64 {
	if !isVirtual() {
		return nil
	}
	return readSteal
}

// isVirtual reports whether this is a virtual machine.
func isVirtual() bool {
	info, err := os.ReadFile("/proc/cpuinfo")
	virtual := err == nil && slices.Contains(strings.Fields(string(info)), "hypervisor")
	for _, ns := range readSteal() {
		virtual = virtual || ns > 0
	}
	return virtual
}

func readSteal() map[int]int64 {
	text, _ := os.ReadFile("/proc/stat") // an unreadable file gives no cores
	return parseSteal(string(text))
}

// parseSteal parses the eighth number of the lines of cores in /proc/stat (proc_stat(5)).
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

// onCore calls a function on a thread that is bound to a core and ends afterwards.
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
