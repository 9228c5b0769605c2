// Package launchtest is the conformance suite of all launchers.
package launchtest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
)

// Target describes what the suite launches.
type Target struct {
	Program string // a program that calls Act, as a path in the launcher's world
	Image   string // contains the program, for launchers of containers
	// Peak says that a target's group outlives the target, so that its peak memory is always known.
	Peak bool
	// Granted says that the launcher does not choose the target's cores: another authority gives it
	// whole cores exclusively.
	Granted bool
	// Rotated says that the target's output is rotated by others, so that a flood loses lines.
	Rotated bool
	// Single says that the launcher refuses systems of several processes.
	Single bool
}

// Run runs the suite against the launchers that make returns.
func Run(t *testing.T, make func(t *testing.T) launch.Launcher, target Target) {
	s := &suite{make, target}
	t.Run("stops politely", s.stopsPolitely)
	t.Run("stops by force", s.stopsByForce)
	t.Run("leaves no child", s.leavesNoChild)
	t.Run("says how it ended", s.saysHowItEnded)
	if !target.Rotated {
		t.Run("bounds its log", s.boundsLog)
	}
	t.Run("passes only its own environment", s.passesEnvironment)
	t.Run("misses a program", s.missesProgram)
	t.Run("stop may come twice", s.stopsTwice)
	t.Run("is reached at its address", s.isReached)
	t.Run("holds its limits", s.holdsLimits)
	t.Run("says that memory killed it", s.saysMemory)
	t.Run("tells memory's kill from its own", s.tellsKills)
	if target.Single {
		t.Run("refuses systems", s.refusesSystems)
		return
	}
	t.Run("shares limits and network", s.shares)
	t.Run("knows its neighbours", s.knowsNeighbours)
}

type suite struct {
	make   func(t *testing.T) launch.Launcher
	target Target
}

func (s *suite) launch(t *testing.T, act string) launch.Process {
	t.Helper()
	return s.with(t, s.make(t), act, launch.Spec{})
}

// with launches an act with a spec, and fills in the fields that every spec has.
func (s *suite) with(t *testing.T, l launch.Launcher, act string, spec launch.Spec) launch.Process {
	t.Helper()
	spec.Name, spec.Dir, spec.Image = "t", cmp.Or(spec.Dir, t.TempDir()), s.target.Image
	spec.Args = []string{s.target.Program, act}
	spec.LogFile = filepath.Join(spec.Dir, "log")
	spec.Env = append(spec.Env, "PATH=/usr/bin:/bin", "PRONY_TEST=yes")
	if spec.Port > 0 {
		spec.Env = append(spec.Env, "HOST="+l.Listen(), fmt.Sprint("PORT=", spec.Port))
	}
	p, err := l.Launch(context.Background(), spec)
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

// bound only limits failures: the awaited events take far less time, except on a busy machine.
const bound = 20 * time.Second

// eventually waits until a condition holds that another process brings about.
func eventually(t *testing.T, subject string, ok func() bool) {
	t.Helper()
	for end := clock.Mono() + int64(bound); clock.Mono() < end; {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s did not happen within %v", subject, bound)
}

func (s *suite) stopsPolitely(t *testing.T) {
	before := clock.Mono()
	p := s.launch(t, "act-forever")
	if b := p.Began(); b < before || b > clock.Mono() {
		t.Errorf("began at %d, not between %d and now", b, before)
	}
	eventually(t, "start", func() bool { return slices.Contains(p.Log(9), "ready") })
	if err := p.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if !launch.HasExited(p) || p.Exit() != "exit status 0" {
		t.Errorf("ended %v with %q, want exit status 0", launch.HasExited(p), p.Exit())
	}
}

func (s *suite) stopsByForce(t *testing.T) {
	p := s.launch(t, "act-deaf")
	eventually(t, "start", func() bool { return slices.Contains(p.Log(9), "ready") })
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !launch.HasExited(p) || !strings.Contains(p.Exit(), "killed") {
		t.Errorf("ended %v with %q, want it killed", launch.HasExited(p), p.Exit())
	}
}

func (s *suite) leavesNoChild(t *testing.T) {
	p := s.launch(t, "act-forks")
	eventually(t, "fork", func() bool { return len(p.PIDs()) >= 2 })
	if err := p.Stop(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if remaining := p.PIDs(); len(remaining) > 0 {
		t.Errorf("processes %v are left", remaining)
	}
}

func (s *suite) saysHowItEnded(t *testing.T) {
	p := s.launch(t, "act-fails")
	eventually(t, "end", func() bool { return launch.HasExited(p) })
	if p.Exit() != "exit status 3" {
		t.Errorf("exit is %q, want status 3", p.Exit())
	}
	if log := p.Log(5); !slices.Contains(log, "cannot begin") {
		t.Errorf("log is %q", log)
	}
}

func (s *suite) passesEnvironment(t *testing.T) {
	t.Setenv("PRONY_SECRET", "x")
	p := s.launch(t, "act-prints")
	eventually(t, "end", func() bool { return launch.HasExited(p) })
	log := fmt.Sprint(p.Log(50))
	// The log must have its own variable, and no variable of this process.
	if !strings.Contains(log, "PRONY_TEST=yes") || strings.Count(log, "PRONY_") != 1 {
		t.Errorf("environment is %s", log)
	}
}

func (s *suite) missesProgram(t *testing.T) {
	dir := t.TempDir()
	_, err := s.make(t).Launch(context.Background(), launch.Spec{
		Name: "t", Dir: dir, Args: []string{"./no-such-program"}, Image: s.target.Image,
		LogFile: filepath.Join(dir, "log"),
	})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error is %v, want an error that names the program", err)
	}
}

func (s *suite) stopsTwice(t *testing.T) {
	p := s.launch(t, "act-forever")
	for range 2 {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	}
}

// boundsLog lets a target write far more than is kept.
func (s *suite) boundsLog(t *testing.T) {
	dir := t.TempDir()
	p := s.with(t, s.make(t), "act-floods", launch.Spec{Dir: dir})
	const kept = launch.LogHead + launch.LogTail
	eventually(t, "end of the flood", func() bool { return slices.Contains(p.Log(1), "ready") })
	eventually(t, "space", func() bool {
		var stat syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, "log"), &stat); err != nil {
			t.Fatal(err)
		}
		return stat.Blocks*512 < kept+2<<20 // while it runs: what the disk has of it
	})
	if err := p.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	checkFlood(t, filepath.Join(dir, "log"), p.LogDropped(), kept)
}

// checkFlood checks that the log has numbers from the first on, one line about the gap, and then
// numbers up to the last.
func checkFlood(t *testing.T, name string, dropped, retained int64) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want, size, gaps := 0, int64(0), 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		size += int64(len(line)) + 1
		if strings.Contains(line, "prony: ") {
			gaps++
			size -= int64(len(line)) + 1
			want += int(dropped / FloodLine)
			if !strings.Contains(line, fmt.Sprintf(" %d bytes ", dropped)) {
				t.Errorf("the log has the text %q, but %d bytes are missing", line, dropped)
			}
			continue
		}
		if want == FloodLines {
			break // its last words
		}
		if line != fmt.Sprintf("%0*d", FloodLine-1, want) {
			t.Fatalf("line %q, want %d", line, want)
		}
		want++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if gaps != 1 || want != FloodLines || dropped%FloodLine != 0 ||
		size < retained-1<<20 || size > retained+2<<20 {
		t.Errorf("the log has %d bytes and lacks %d, in %d gaps, up to line %d; want about %d "+
			"bytes, 1 gap, line %d",
			size, dropped, gaps, want, retained, FloodLines)
	}
}
