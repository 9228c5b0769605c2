package docker

import (
	"os"
	"os/exec"
	"testing"

	"prony.example/internal/dev/testsets"
)

// TestLives checks that a process that has ended does not live, also if nobody waited for it.
func TestLives(t *testing.T) {
	testsets.Live(t)
	if !lives(os.Getpid()) {
		t.Error("this process does not live")
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testsets.Eventually(t, "its end", func() bool { return !lives(cmd.Process.Pid) })
	if err := cmd.Wait(); err != nil || lives(cmd.Process.Pid) {
		t.Errorf("%v, or a process without an entry lives", err)
	}
}
