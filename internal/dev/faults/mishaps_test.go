package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// settled is how long services are under load before a fault: longer than the warm-up of a second
// in their lines.
const settled = 3 * time.Second

// hung is the maximum time of a line whose service hangs: it gets one more request, with a timeout
// of half a minute.
const hung = 50 * time.Second

// mishap is a fault from outside during a line's work.
type mishap struct {
	name, args string
	strike     func(s *scene, p *start) // called once every named service has been up for settled
	named      []string                 // services
	code       int
	says       []string // parts of the failure in the record of each
}

const measured = "--root ROOT run --targets go-two --blocks 1 --warmup 1s --measure 4s --out OUT"

var mishaps = []mishap{
	{"it dies", measured, signalled(syscall.SIGKILL, "go-two"), []string{"go-two"}, cli.Invalid,
		[]string{"signal: killed"}},
	{"it hangs", measured, signalled(syscall.SIGSTOP, "go-two"), []string{"go-two"}, cli.Invalid,
		[]string{"no whole answer"}},
}

// signalled sends a signal to services.
func signalled(sig syscall.Signal, names ...string) func(*scene, *start) {
	return func(s *scene, p *start) {
		for _, name := range names {
			for _, pid := range s.serving(p, name) {
				_ = syscall.Kill(pid, sig) // it may have ended, which its record shows
			}
		}
	}
}

// serving returns the processes of a service.
func (s *scene) serving(p *start, name string) []int {
	return slices.DeleteFunc(s.processes(p.cmd.Process.Pid), func(pid int) bool {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // empty if it has ended
		return filepath.Base(exe) != name
	})
}

// served waits until services have been up for settled.
func (s *scene) served(p *start, names []string) {
	s.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !slices.ContainsFunc(names, func(n string) bool { return len(s.serving(p, n)) == 0 }) {
			time.Sleep(settled)
			return
		}
	}
	s.t.Errorf("%v never were up", names)
}

// Faults of services in their window are in the record of each, and nothing of them remains.
func TestMishaps(t *testing.T) {
	testsets.Once(t, "a service that ends while it is measured", programFiles)
	more := testsets.More(t, programFiles)
	for i, m := range mishaps {
		if !more && i > 0 {
			break
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.furnish(m.args)
			p := s.begin("", s.arguments(m.args)...)
			p.bound = hung
			p.run(t)
			s.served(p, m.named)
			m.strike(s, p)
			e := p.wait(t)
			e.check(t)
			e.refused(t, m.code)
			s.tidy(p.cmd.Process.Pid)
			_, records, bad, err := record.Read(s.path("OUT"))
			if err != nil || len(bad) > 0 || len(records) != len(m.says) {
				t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
			}
			for _, r := range records {
				want := m.says[slices.Index(m.named, r.Target.Name)]
				if r.Failure == nil || !strings.Contains(r.Failure.Error, want) ||
					r.Verdict.Grade != record.Invalid {
					t.Errorf("%s is %s, by %+v, want %q", r.Trial, r.Verdict.Grade, r.Failure, want)
				}
			}
		})
	}
}

// repository makes a repository of the scene's folder, with one commit.
func (s *scene) repository() {
	s.t.Helper()
	s.put(".gitignore", "/*\n!/app\n")
	s.put("app", "#!/bin/sh\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "app"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one"}} {
		s.git(args...)
	}
}

func (s *scene) git(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// A revision or another checkout that is missing, or does not build, gives a sentence with the last
// lines of its build, and the repository stays unchanged.
func TestRevisions(t *testing.T) {
	testsets.Once(t, "revisions and checkouts that do not build", programFiles)
	for _, row := range []struct {
		args string
		code int
		says []string
	}{
		{"versus --git HEAD --git nothing --build true --run ./app --get /", 2,
			[]string{"--git nothing: ", "is not in a Git repository with the revision"}},
		{"versus --git HEAD --build 'echo last words; exit 7' --run ./app --get /", 1,
			[]string{"exit status 7", "last words"}},
		{"versus --git HEAD --build true --run ./none --get /", 1, []string{"none"}},
		{"--root ROOT run --against old=OTHER --targets go-two --blocks 1 --measure 100ms " +
			"--warmup 100ms --out OUT", 4, []string{"go-two@old", "exit status 7", "last words"}},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.furnish(row.args)
			p := s.begin("", s.arguments(row.args)...)
			p.run(t)
			e := p.wait(t)
			e.check(t)
			e.refused(t, row.code)
			for _, text := range row.says {
				if !strings.Contains(e.stderr, text) {
					t.Errorf("it does not say %q: %s", text, e.stderr)
				}
			}
			s.tidy(p.cmd.Process.Pid)
		})
	}
}
