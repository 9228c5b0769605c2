package main

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony/internal/cli"
	"prony/internal/tests"
	"prony/internal/truth/exact"
)

// TestStoppedLab stops a real load in its window, as Ctrl-Z would, in both models: four fifths of
// its throughput are not the server's to lose.
func TestStoppedLab(t *testing.T) {
	tests.Cores(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := exact.Start(exact.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var all sync.WaitGroup
	for _, model := range [][]string{nil, {"--rate", "200"}} {
		all.Go(func() {
			cmd := exec.Command(self, append([]string{"load", "http://" + addr.String(), "-c", "4",
				"-d", "3s", "--lead", "100ms"}, model...)...)
			cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
			signals := time.AfterFunc(time.Second, func() {
				_ = cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(1500 * time.Millisecond)
				_ = cmd.Process.Signal(syscall.SIGCONT)
			})
			defer signals.Stop()
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != cli.Invalid {
				t.Errorf("%v: %v", model, cmd.ProcessState)
			}
			has(t, "the load", string(out), "INVALID", "stood still: 1.")
		})
	}
	all.Wait()
}
