package bench

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/host"
)

// Setting is a number above 0 that the environment names, or otherwise.
func Setting(tb testing.TB, name string, otherwise int) int {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("%s is %q; want a number above 0", name, text)
	}
	return n
}

// TwoCores gives a core to the server and one to what asks it, or skips.
func TwoCores(tb testing.TB) (server, asker int) {
	tb.Helper()
	cores, err := host.Cores()
	if err != nil {
		tb.Fatal(err)
	}
	if len(cores) < 2 {
		tb.Skip("skipped: needs two cores")
	}
	return cores[1], cores[0]
}

// StartOnCore starts a command that will never run on another core.
func StartOnCore(core int, cmd *exec.Cmd) error {
	var set unix.CPUSet
	set.Set(core)
	done := make(chan error)
	go func() { // its thread ends with it, for no other goroutine to inherit the core
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- err
			return
		}
		done <- cmd.Start()
	}()
	return <-done
}

// Scope ends what was begun in it before the test ends.
type Scope struct {
	testing.TB
	ends []func()
}

// Cleanup is as testing.TB has it.
func (s *Scope) Cleanup(f func()) { s.ends = append(s.ends, f) }

// End does what was asked for, in order.
func (s *Scope) End() {
	for _, f := range s.ends {
		f()
	}
}
