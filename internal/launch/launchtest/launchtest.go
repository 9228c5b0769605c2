// Package launchtest is what every launcher must do, as one suite of tests.
package launchtest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony/internal/clock"
	"prony/internal/launch"
)

// Programs gives the suite something to launch: argument lists for a launcher's world.
type Programs struct {
	Forever []string // runs until SIGTERM, then ends with status 0
	Deaf    []string // ignores SIGTERM
	Forks   []string // leaves a child in the background and runs until it is ended
	Fails   []string // writes "cannot begin" and ends with status 3
	Prints  []string // prints its environment, one variable a line, and ends
}

// Run runs the suite against launchers that make returns.
func Run(t *testing.T, make func(t *testing.T) launch.Launcher, p Programs) {
	s := &suite{make: make, p: p}
	t.Run("stops politely", s.stopsPolitely)
	t.Run("stops by force", s.stopsByForce)
	t.Run("leaves no child", s.leavesNoChild)
	t.Run("says how it ended", s.saysHowItEnded)
	t.Run("passes only its own environment", s.passesEnvironment)
	t.Run("misses a program", s.missesProgram)
	t.Run("stop may come twice", s.stopsTwice)
}

type suite struct {
	make func(t *testing.T) launch.Launcher
	p    Programs
}

func (s *suite) launch(t *testing.T, args []string) launch.Process {
	t.Helper()
	dir := t.TempDir()
	p, err := s.make(t).Launch(context.Background(), launch.Spec{
		Name: "t", Dir: dir, Args: args, Env: []string{"PATH=/usr/bin:/bin", "PRONY_TEST=yes"},
		LogFile: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	})
	return p
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := clock.Mono() + int64(5*time.Second); clock.Mono() < end; {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s did not happen within 5 s", what)
}

func ended(p launch.Process) bool {
	select {
	case <-p.Exited():
		return true
	default:
		return false
	}
}

func (s *suite) stopsPolitely(t *testing.T) {
	before := clock.Mono()
	p := s.launch(t, s.p.Forever)
	if b := p.Began(); b < before || b > clock.Mono() {
		t.Errorf("began at %d, not between %d and now", b, before)
	}
	eventually(t, "start", func() bool { return slices.Contains(p.Log(9), "ready") })
	if err := p.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if !ended(p) || p.Exit() != "exit status 0" {
		t.Errorf("ended %v with %q, want exit status 0", ended(p), p.Exit())
	}
}

func (s *suite) stopsByForce(t *testing.T) {
	p := s.launch(t, s.p.Deaf)
	eventually(t, "start", func() bool { return slices.Contains(p.Log(9), "ready") })
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !ended(p) || !strings.Contains(p.Exit(), "killed") {
		t.Errorf("ended %v with %q, want it killed", ended(p), p.Exit())
	}
}

func (s *suite) leavesNoChild(t *testing.T) {
	p := s.launch(t, s.p.Forks)
	eventually(t, "fork", func() bool { return len(p.PIDs()) >= 2 })
	if err := p.Stop(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left := p.PIDs(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func (s *suite) saysHowItEnded(t *testing.T) {
	p := s.launch(t, s.p.Fails)
	eventually(t, "end", func() bool { return ended(p) })
	if p.Exit() != "exit status 3" {
		t.Errorf("exit is %q, want status 3", p.Exit())
	}
	if log := p.Log(5); !slices.Contains(log, "cannot begin") {
		t.Errorf("log is %q", log)
	}
}

func (s *suite) passesEnvironment(t *testing.T) {
	t.Setenv("PRONY_SECRET", "x")
	p := s.launch(t, s.p.Prints)
	eventually(t, "end", func() bool { return ended(p) })
	log := fmt.Sprint(p.Log(50))
	// Its own variable, and none of the lab's, whether secret or meant for the way to here.
	if !strings.Contains(log, "PRONY_TEST=yes") || strings.Count(log, "PRONY_") != 1 {
		t.Errorf("environment is %s", log)
	}
}

func (s *suite) missesProgram(t *testing.T) {
	_, err := s.make(t).Launch(context.Background(), launch.Spec{
		Name: "t", Dir: t.TempDir(), Args: []string{"./no-such-program"},
	})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error is %v, want one that names the program", err)
	}
}

func (s *suite) stopsTwice(t *testing.T) {
	p := s.launch(t, s.p.Forever)
	for range 2 {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	}
}
