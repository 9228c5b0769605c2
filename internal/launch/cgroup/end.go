package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
)

// Evidence is what the control groups of a container tell in the moment in which the main process
// has ended. The engine removes the group soon after, and its own word for it, OOMKilled, comes
// without numbers, and with some versions of cgroups and engines not at all.
type Evidence struct {
	done   chan struct{}
	memory Memory // after done
}

// WatchEnd waits for the end of the main process by its file descriptor (pidfd_open(2)), which
// anybody may have and which costs nothing while it waits.
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

// HearEnd has another watch: tell returns when the process has ended. After an error nobody will
// ever know.
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

// Done is closed when the process has ended.
func (e *Evidence) Done() <-chan struct{} { return e.done }

// Memory is what was read then; it waits for the end.
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

// forced are the signals that end the first process of a PID namespace if it has not asked for
// them: SIGKILL, and those that its own faults raise. All others the kernel keeps from it
// (pid_namespaces(7)), so that a status of 128 and more is the program's own, as that of a JVM
// which ends after SIGTERM, and is said as the status that it is.
var forced = map[int64]unix.Signal{
	128 + 4: unix.SIGILL, 128 + 5: unix.SIGTRAP, 128 + 7: unix.SIGBUS, 128 + 8: unix.SIGFPE,
	128 + 9: unix.SIGKILL, 128 + 11: unix.SIGSEGV,
}

// ExitWords says how a container of this status ended, as os/exec says it of a process.
func ExitWords(status int64) string {
	if s, ok := forced[status]; ok {
		return "signal: " + s.String()
	}
	return fmt.Sprintf("exit status %d", status)
}

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
	dir, version := Find(groups, "memory")
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
		return how + "; the kernel had killed a process of this target: " + m.cause()
	}
	return fmt.Sprintf("%s; the kernel had killed %d processes of this target: %s",
		how, m.Kills, m.cause())
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

// HasSwap says whether this host could swap anything out: /proc/swaps has a line for each place
// below its head.
func HasSwap() bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(b), "\n") > 1
}
