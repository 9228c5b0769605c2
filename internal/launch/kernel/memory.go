package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"prony/internal/launch"
)

// Memory is what a control group tells about its limit on memory. It has to be read while the group
// is there.
type Memory struct {
	Kills      int64 // processes that the kernel has killed because the limit was reached
	LimitBytes int64 // 0: none, or not known
	PeakBytes  int64 // the most that was ever charged to the group; 0: not known
}

// ReadMemory reads it from the groups of a target: memory.oom_control of version 1 (since Linux
// 4.13), memory.events and memory.peak (since 5.19) of version 2.
func ReadMemory(groups []launch.Group) (m Memory) {
	dir, version := find(groups, "memory")
	if dir == "" {
		return m
	}
	events, peak := "memory.events", "memory.peak"
	if version == 1 {
		events, peak = "memory.oom_control", "memory.max_usage_in_bytes"
	}
	// Either number is 0 where the kernel does not have it.
	m.Kills, _ = keyed(Value(dir, events), "oom_kill")
	m.PeakBytes, _ = strconv.ParseInt(Value(dir, peak), 10, 64)
	m.LimitBytes = memoryLimit(dir, version)
	return m
}

// killed is how a process ends that SIGKILL has ended, whoever sent it.
const killed = "signal: killed"

// Exit says how a target ended, which is how, and what the memory's limit had to do with it.
// Stopped is true where the lab was about to end it by itself, and so may have sent the signal.
func (m Memory) Exit(how string, stopped bool) string {
	switch {
	case m.Kills == 0:
		return how
	case how == killed && !stopped:
		return "killed by the kernel: " + m.cause()
	case m.Kills == 1:
		return how + "; the kernel had killed a process of it: " + m.cause()
	}
	return fmt.Sprintf("%s; the kernel had killed %d processes of it: %s", how, m.Kills, m.cause())
}

// cause is the evidence in words: "out of memory (limit 64 MiB, peak 63.9 MiB)".
func (m Memory) cause() string {
	var known []string
	if m.LimitBytes > 0 {
		known = append(known, "limit "+mebibytes(m.LimitBytes))
	}
	if m.PeakBytes > 0 {
		known = append(known, "peak "+mebibytes(m.PeakBytes))
	}
	if len(known) == 0 {
		return "out of memory"
	}
	return "out of memory (" + strings.Join(known, ", ") + ")"
}

func mebibytes(n int64) string {
	text := strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " MiB"
}

// SwapLimited says whether the groups' limit on memory holds for what is swapped out, too.
func SwapLimited(groups []launch.Group) bool {
	dir, version := find(groups, "memory")
	if dir == "" {
		return false
	}
	if version == 2 {
		return Value(dir, "memory.swap.max") == "0"
	}
	limit := memoryLimit(dir, version)
	both := Value(dir, "memory.memsw.limit_in_bytes")
	return limit > 0 && both == strconv.FormatInt(limit, 10)
}

// HasSwap says whether this host could swap anything out: /proc/swaps has a line for each place
// below its head.
func HasSwap() bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(b), "\n") > 1
}
