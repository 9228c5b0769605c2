package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
)

// Evidence holds what the control groups of a container showed when its main process ended. The
// engine removes the group soon after; its own flag OOMKilled has no numbers, and is missing with
// some versions of cgroups and engines.
type Evidence struct {
	done   chan struct{}
	memory Memory // valid after done is closed
}

// WatchEnd waits for the end of the main process and then calls read. It uses a file descriptor of
// the process (pidfd_open(2)), which needs no rights and costs nothing while it waits.
func WatchEnd(pid int, read func() Memory) *Evidence {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	return HearEnd(func() (m Memory, _ error) {
		if err != nil {
			return m, nil // it has ended already, or the kernel is older than 5.10
		}
		file := os.NewFile(uintptr(fd), "pidfd")
		defer file.Close()
		if ended(file) == nil {
			m = read()
		}
		return m, nil
	})
}

// HearEnd is WatchEnd with another watcher: notify returns when the process has ended. If it
// returns an error, Done is never closed.
func HearEnd(notify func() (Memory, error)) *Evidence {
	e := &Evidence{done: make(chan struct{})}
	go func() {
		var err error
		if e.memory, err = notify(); err == nil {
			close(e.done)
		}
	}()
	return e
}

// Done returns a channel that is closed when the process has ended.
func (e *Evidence) Done() <-chan struct{} { return e.done }

// Memory waits for the end and returns the numbers read then.
func (e *Evidence) Memory() Memory {
	<-e.done
	return e.memory
}

// ended returns when the process has ended.
func ended(pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n > 0
	})
}

// forced are the signals that end the first process of a PID namespace although it has no handler:
// SIGKILL, and those raised by its own faults. The kernel withholds all others (pid_namespaces(7)).
// Other statuses from 128 on are therefore the program's own, such as of a JVM that ends after
// SIGTERM, and are reported as statuses.
var forced = map[int64]unix.Signal{
	128 + 4: unix.SIGILL, 128 + 5: unix.SIGTRAP, 128 + 7: unix.SIGBUS, 128 + 8: unix.SIGFPE,
	128 + 9: unix.SIGKILL, 128 + 11: unix.SIGSEGV,
}

// ExitWords describes the end of a container with this status in the words of os/exec.
func ExitWords(status int64) string {
	if s, ok := forced[status]; ok {
		return "signal: " + s.String()
	}
	return fmt.Sprintf("exit status %d", status)
}

// Memory holds the numbers of a control group about its limit on memory. They must be read before
// the group is removed.
type Memory struct {
	Kills      int64 // processes that the kernel killed because of the limit
	LimitBytes int64 // 0: none or unknown
	PeakBytes  int64 // the most ever charged to the group; 0: unknown
}

// ReadMemory reads the numbers from the groups of a target: from memory.oom_control of version 1
// (since Linux 4.13), from memory.events and memory.peak (since 5.19) of version 2.
func ReadMemory(groups []launch.Group) (m Memory) {
	dir, version := Find(groups, "memory")
	if dir == "" {
		return m
	}
	events, peak := "memory.events", "memory.peak"
	if version == 1 {
		events, peak = "memory.oom_control", "memory.max_usage_in_bytes"
	}
	// Each number is 0 if this kernel does not have it.
	m.Kills, _ = keyed(Value(dir, events), "oom_kill")
	m.PeakBytes, _ = strconv.ParseInt(Value(dir, peak), 10, 64)
	m.LimitBytes = memoryLimit(dir, version)
	return m
}

// killed is how os/exec describes an end by SIGKILL from any sender.
const killed = "signal: killed"

// Exit returns how a target ended, with the part that the limit on memory had in it. With stopped
// the lab was about to end the target, so the lab may have sent the signal.
func (m Memory) Exit(how string, stopped bool) string {
	switch {
	case m.Kills == 0:
		return how
	case how == killed && !stopped:
		return "killed by the kernel: " + m.cause()
	case m.Kills == 1:
		return how + "; the kernel had killed a process of this target: " + m.cause()
	}
	return fmt.Sprintf("%s; the kernel had killed %d processes of this target: %s",
		how, m.Kills, m.cause())
}

// cause returns the numbers in words: "out of memory (limit 64 MiB, peak 63.9 MiB)".
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

// SwapLimited reports whether the groups' limit on memory includes swapped memory.
func SwapLimited(groups []launch.Group) bool {
	dir, version := Find(groups, "memory")
	if dir == "" {
		return false
	}
	if version == 2 {
		return Value(dir, "memory.swap.max") == "0"
	}
	limit := memoryLimit(dir, version)
	shared := Value(dir, "memory.memsw.limit_in_bytes")
	return limit > 0 && shared == strconv.FormatInt(limit, 10)
}

// MaySwap reports whether the memory of groups may be swapped out: this host has swap space, which
// /proc/swaps lists below its header, and their limit does not include it.
func MaySwap(groups []launch.Group) bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(b), "\n") > 1 && !SwapLimited(groups)
}
