//go:build linux && !portable

package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
)

// Terminals that understand no control sequences (TERM=dumb) get none.
func TestDumbTerminal(t *testing.T) {
	testsets.Live(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	number, err1 := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	err2 := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	screen, err3 := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	defer screen.Close()
	t.Setenv("NO_COLOR", "")
	for name, want := range map[string]bool{"xterm": true, "dumb": false} {
		t.Setenv("TERM", name)
		if isScreen(screen) != want || textOptions(screen).Color != want {
			t.Errorf("%s: screen %v, color %v", name, isScreen(screen), textOptions(screen).Color)
		}
	}
}
