package kernel

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
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
func HearEnd(tell func() (Memory, error)) *Evidence {
	e := &Evidence{done: make(chan struct{})}
	go func() {
		var err error
		if e.memory, err = tell(); err == nil {
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
