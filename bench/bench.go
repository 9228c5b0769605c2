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

// Setting returns a positive number from the environment, or otherwise if it is not set.
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

// TwoCores returns a core for the server and one for its client, or skips the test.
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

// StartOnCore starts a command that runs only on one core.
func StartOnCore(core int, cmd *exec.Cmd) error {
	var set unix.CPUSet
	set.Set(core)
	done := make(chan error)
	go func() { // its thread ends with it, so no other goroutine inherits the core
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- err
			return
		}
		done <- cmd.Start()
	}()
	return <-done
}

// Scope runs cleanups before the test ends.
type Scope struct {
	testing.TB
	ends []func()
}

// Cleanup implements testing.TB: End calls f.
func (s *Scope) Cleanup(f func()) { s.ends = append(s.ends, f) }

// End calls the cleanups in the order of their registration.
func (s *Scope) End() {
	for _, f := range s.ends {
		f()
	}
}
