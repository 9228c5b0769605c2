package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// A disk that becomes full in the middle of a run costs the trial under way: the error names what
// could not be written and the command that continues, which runs it and the others once there is
// space.
func TestDiskFillsInRun(t *testing.T) {
	testsets.Once(t, "a disk that fills while a run measures", programFiles)
	for name, left := range map[string]int64{"no byte": 0, "space for a record": 40 << 10} {
		t.Run(name, func(t *testing.T) {
			if left > 0 {
				testsets.Long(t, "a disk that fills while a record is written", programFiles)
			}
			s := newScene(t)
			s.furnish("go-two")
			disk := s.path("disk")
			s.onTmpfs(disk)
			p := s.begin("", append(s.arguments("--root ROOT run --targets go-two --blocks 2 "+
				"--interleave blocks"+brief+"--out"), disk+"/run")...)
			p.bound = 3 * within
			p.run(t)
			s.recorded("disk/run", 1)
			s.fill(filepath.Join(disk, "filler"), left)
			first := p.wait(t)
			first.refused(t, 1)
			s.tidy(p.cmd.Process.Pid)
			for _, text := range []string{"no space left on device", "b2-02-go-two",
				"; free some space", "; continue with prony run --resume " + disk + "/run\n"} {
				if !strings.Contains(first.stderr, text) {
					t.Errorf("it does not say %q: %s", text, first.stderr)
				}
			}
			if _, records, bad, err := record.Read(disk + "/run"); err != nil || len(bad) > 0 ||
				len(records) == 0 || records[0].Outcome != record.Measured || len(records) > 2 {
				t.Errorf("%d records, bad %v, error %v", len(records), bad, err)
			}
			if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
				t.Fatal(err)
			}
			s.resumed("disk/run", 2, false, first)
		})
	}
}

// onTmpfs makes a folder a small disk of its own until the test ends.
func (s *scene) onTmpfs(dir string) {
	s.t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		s.t.Skipf("no disk can be mounted here: %v", err)
	}
	s.t.Cleanup(func() {
		s.remove(dir, func(dir string) error { return unix.Unmount(dir, 0) })
	})
}

// fill writes a file until its disk has this many free bytes.
func (s *scene) fill(name string, left int64) {
	s.t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(name), &fs); err != nil {
		s.t.Fatal(err)
	}
	data := make([]byte, max(0, int64(fs.Bavail)*fs.Bsize-left))
	err := os.WriteFile(name, data, 0o600)
	if err != nil && left > 0 {
		s.t.Fatal(err)
	}
	if left == 0 { // what the run wrote or removed meanwhile
		if out, err := exec.Command("sh", "-c", "cat /dev/zero >>\"$1\"", "sh",
			name).CombinedOutput(); err == nil {
			s.t.Fatalf("the disk is not full: %s", out)
		}
	}
}

// A run whose terminal closes ends as with Ctrl-C: the kernel sends SIGHUP, and nothing can be read
// or written any more.
func TestClosedTerminal(t *testing.T) {
	testsets.Once(t, "a run whose terminal closes", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	user, tty := openTerminal(t)
	p := s.begin("", s.arguments("--root ROOT run --targets go-two --blocks 3 --interleave blocks"+
		brief+"--out OUT")...)
	p.bound = 3 * within
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.run(t)
	tty.Close()
	go func() {
		for buf := make([]byte, 4096); ; {
			if _, err := user.Read(buf); err != nil {
				return
			}
		}
	}()
	s.halt(p, "OUT", 1)
	began := time.Now()
	user.Close() // the kernel also sends SIGCONT
	first := p.wait(t)
	if took := time.Since(began); took > ending {
		t.Errorf("it ended %v after its terminal", took)
	}
	first.check(t)
	if first.code != 1 {
		t.Errorf("exit %d %v, want 1", first.code, first.signal)
	}
	s.tidy(p.cmd.Process.Pid)
	_, records, bad, err := record.Read(s.path("OUT"))
	if err != nil || len(bad) > 0 || len(records) == 0 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	if f := records[len(records)-1].Failure; f == nil || !f.Interrupted {
		t.Errorf("the trial under way ends with %+v", f)
	}
	if _, err := os.Stat(s.path("OUT/report.html")); err != nil {
		t.Error("no report of what there is:", err)
	}
	s.resumed("OUT", 3, false, first)
}

// halt stops a run in the warm-up of a trial, after at least n others, so that this trial cannot
// end before the next signal, on a busy machine either.
func (s *scene) halt(p *start, dir string, n int) {
	s.t.Helper()
	pid := p.cmd.Process.Pid
	testsets.Eventually(s.t, "a warm-up", func() bool {
		if !s.warmsUp(dir, n) {
			return false
		}
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		testsets.Eventually(s.t, "the stop", func() bool {
			stat := cgroup.Stat(pid)
			return len(stat) == 0 || stat[0] == "T"
		})
		if s.warmsUp(dir, n) {
			return true
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		return false
	})
}

// warmsUp reports whether a run with at least n records is in a warm-up.
func (s *scene) warmsUp(dir string, n int) bool {
	text, err := os.ReadFile(s.path(dir + "/" + record.ProgressFile))
	if err != nil {
		return false // it has not begun
	}
	trials, step := 0, ""
	for line := range strings.Lines(string(text)) {
		var p record.Progress
		if json.Unmarshal([]byte(line), &p) != nil {
			return false // it is being written
		}
		switch p.Kind {
		case record.Steps:
			step = p.Step
		case record.TrialEnds:
			trials++
			step = ""
		}
	}
	return trials >= n && step == "warmup"
}

// openTerminal returns both ends of a terminal.
func openTerminal(t *testing.T) (user, tty *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs pseudo-terminals: ", err)
	}
	t.Cleanup(func() { user.Close() })
	conn, err := user.SyscallConn() // Fd would make reads block its end
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		n, _, errno := unix.Syscall6(unix.SYS_IOCTL, fd, unix.TIOCGPTPEER,
			unix.O_RDWR|unix.O_NOCTTY, 0, 0, 0)
		if errno != 0 {
			t.Error(errno)
			return
		}
		tty = os.NewFile(n, "tty")
	})
	if err != nil || tty == nil {
		t.Fatal("no terminal: ", err)
	}
	t.Cleanup(func() { tty.Close() })
	return user, tty
}

// A reboot ends a run with its services, and removes its lock, its journal and its control groups.
// The run is resumed as after a kill.
func TestVanishedRun(t *testing.T) {
	testsets.Long(t, "a run that vanished with all that it had", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two --blocks 3 --interleave blocks"+
		brief+"--out OUT")...)
	p.bound = 3 * within
	p.run(t)
	s.recorded("OUT", 1)
	s.served(p, []string{"go-two"})
	pid := p.cmd.Process.Pid
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	first := p.wait(t)
	for _, other := range s.processes(pid) {
		_ = syscall.Kill(other, syscall.SIGKILL) // it may have ended with the run
	}
	if err := os.RemoveAll(s.path("home/run")); err != nil {
		t.Fatal(err)
	}
	groups, err := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/prony-%d-*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range groups {
		s.remove(dir, os.Remove)
	}
	e := s.resumed("OUT", 3, true, first)
	if strings.Contains(e.stderr, "left running") {
		t.Errorf("it names what is not there: %s", e.stderr)
	}
	s.tidy(pid)
}
