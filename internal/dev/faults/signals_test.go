package faults

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// All work ends cleanly in each of the ways in which a user ends it: with the documented code and
// the results so far, and without leftovers. A closed terminal reads no more output, and neither
// does "| tee" after Ctrl-C.
func TestSignalsAtWork(t *testing.T) {
	testsets.Once(t, "verbs that work for long, ended by a signal each", programFiles)
	more, works := testsets.More(t, programFiles), 0
	for _, v := range verbs {
		for _, w := range v.works {
			works++
			for i, sig := range endings {
				if !more && (i != works%3 || works%2 != 0) {
					continue
				}
				t.Run(w.args+"/"+sig.String(), func(t *testing.T) {
					t.Parallel()
					atWork(t, w, sig)
				})
			}
		}
	}
}

func atWork(t *testing.T, w work, sig syscall.Signal) {
	var asked atomic.Int64
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "ok")
	}))
	defer at.Close()
	s := newScene(t)
	s.furnish(w.args)
	p := s.begin("", s.arguments(strings.ReplaceAll(w.args, "ASKED", at.URL+"/"))...)
	if sig == syscall.SIGHUP {
		p.unheard(t)
	}
	p.run(t)
	s.await(p, w, &asked)
	_ = syscall.Kill(p.cmd.Process.Pid, sig) // it may have ended, which its code shows
	began := time.Now()
	e := p.wait(t)
	if took := time.Since(began); took > ending {
		t.Errorf("it ended %s after %s", took, sig)
	}
	e.check(t)
	if e.code != w.code {
		t.Errorf("exit %d %v, want %d\n%s%s", e.code, e.signal, w.code, e.stdout, e.stderr)
	}
	if sig != syscall.SIGHUP {
		e.refused(t, w.code)
		if w.saved != "" && !strings.Contains(e.stderr, "interrupted after 1 of ") {
			t.Errorf("it does not say how far it came: %s", e.stderr)
		}
	}
	s.tidy(p.cmd.Process.Pid)
	if w.saved != "" {
		s.saved(w.saved)
	}
}

// unheard closes the reader of the output.
func (p *start) unheard(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	p.cmd.Stdout, p.cmd.Stderr = w, w
}

// await waits until a line works, and then until its window or its warm-up.
func (s *scene) await(p *start, w work, asked *atomic.Int64) {
	s.t.Helper()
	end := time.Now().Add(within)
	for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(s.path(w.saved + "/run.json")); w.saved != "" && err != nil {
			asked.Store(0) // it checks its services, or builds them
		} else if asked.Load() > 100 || len(s.processes(p.cmd.Process.Pid)) > 0 {
			time.Sleep(2 * time.Second)
			return
		}
	}
	s.t.Error("it never was under way")
}

// processes returns the processes in the scene, without the program itself.
func (s *scene) processes(own int) (pids []int) {
	s.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range all {
		cwd, _ := os.Readlink(dir + "/cwd") // empty if it has ended
		exe, _ := os.Readlink(dir + "/exe")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != own && strings.Contains(cwd+"/ "+exe, s.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tidy requires that a program leaves nothing: no process, group, temporary or half-written file.
func (s *scene) tidy(pid int) {
	s.t.Helper()
	for end := time.Now().Add(ending); len(s.processes(pid)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("processes are left: %v", s.processes(pid))
			break
		}
	}
	left, err := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/prony-%d-*", pid))
	temporary, err1 := filepath.Glob(s.path("home/tmp/*"))
	if left = append(left, temporary...); len(left) > 0 || err != nil || err1 != nil {
		s.t.Errorf("left behind: %v, %v, %v", left, err, err1)
	}
	if _, err := os.Stat(s.path(".git")); err == nil {
		if left := s.git("worktree", "list") + s.git("status", "--porcelain"); strings.Count(left,
			"\n") > 1 {
			s.t.Errorf("the repository was left with %s", left)
		}
	}
	err = filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".new") {
			s.t.Errorf("%s is left behind", path)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// saved requires the one interrupted trial, and a report of it.
func (s *scene) saved(dir string) {
	s.t.Helper()
	_, records, bad, err := record.Read(s.path(dir))
	if err != nil || len(bad) > 0 || len(records) != 1 || records[0].Failure == nil ||
		records[0].Failure.Error != "interrupted" {
		s.t.Errorf("records %v, bad %v, error %v", records, bad, err)
	}
	if _, err := os.Stat(s.path(dir + "/report.html")); err != nil {
		s.t.Error("no report of what there is:", err)
	}
}
