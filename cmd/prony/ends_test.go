package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"prony/internal/cli"
	"prony/internal/tests"
	"prony/internal/truth/exact"
)

// A load that a signal ends says nothing about what its whole window would have shown: a script
// that asked for objectives must not go on as if they had been held.
func TestALoadCutShortHoldsNothing(t *testing.T) {
	tests.Cores(t)
	addr, stop, err := exact.Start(exact.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			p := exec.Command(os.Args[0], "load", "http://"+addr.String()+"/", "--duration", "60s",
				"--rate", "500", "--lead", "50ms", "--threshold", "errors<50%", "--view", "none")
			p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
			var stdout, stderr bytes.Buffer
			p.Stdout, p.Stderr = &stdout, &stderr
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond)
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			p.Wait() //nolint:errcheck // its code is looked at
			if got := p.ProcessState.ExitCode(); got != cli.Invalid {
				t.Errorf("%v, want exit %d", p.ProcessState, cli.Invalid)
			}
			has(t, "stdout", stdout.String(), "CUT SHORT", "INVALID", "let it run to its end")
			has(t, "stderr", stderr.String(), "threshold unknown  errors<50%", "cut short")
		})
	}
}
