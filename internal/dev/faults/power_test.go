package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// call matches one of strace's lines: a completed system call, with the file of its first argument.
var call = regexp.MustCompile(`^\d+ +(write|pwrite64|fsync|rename\w*)\((.*)\) += \d+`)

// descriptor matches a number and the file behind it, as strace -y writes them.
var descriptor = regexp.MustCompile(`^\d+<([^>]*)>`)

// A file that replaces another is on the disk before it does, its folder after that, and a record
// before the program ends: the order of the system calls shows it.
func TestSyncs(t *testing.T) {
	testsets.Once(t, "the order of writes and syncs", programFiles)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here tells which system calls there were")
	}
	for _, row := range []struct{ args, file string }{
		{"report RUN -o OUT.html", "OUT.html"},
		{"report RUN --section x --update OUT.md", "OUT.md"},
		{"load URL -n 10 -c 1 --save=OUT", record.TrialsFile},
	} {
		t.Run(row.args, func(t *testing.T) {
			s := newScene(t)
			s.put("OUT.md", "<!-- prony:begin x -->\n<!-- prony:end x -->\n")
			p := s.begin("", s.arguments(row.args)...)
			p.cmd.Args = append([]string{strace, "-f", "-y", "-s", "0", "-o", s.path("calls"), "-e",
				"trace=write,pwrite64,fsync,rename,renameat,renameat2"}, p.cmd.Args...)
			p.cmd.Path = strace
			p.run(t)
			p.wait(t)
			text, err := os.ReadFile(s.path("calls"))
			if err != nil {
				t.Fatal(err)
			}
			inOrder(t, s, string(text), row.file)
		})
	}
}

// inOrder checks the order of the calls; file must be among them.
func inOrder(t *testing.T, s *scene, calls, file string) {
	t.Helper()
	open := map[string]bool{} // written, and not synced since
	seen := false
	begun := map[string]string{} // by thread: the unfinished call
	for line := range strings.Lines(calls) {
		thread, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if head, cut := strings.CutSuffix(line, " <unfinished ...>\n"); cut {
			begun[thread] = head
			continue
		}
		if _, tail, resumed := strings.Cut(rest, " resumed>"); resumed {
			line = begun[thread] + tail
		}
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := descriptor.FindStringSubmatch(m[2])
		switch {
		case strings.HasPrefix(m[1], "rename"):
			for _, w := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(m[2], -1) {
				seen = seen || filepath.Base(w[1]) == file
				if open[w[1]] {
					t.Errorf("%s takes a place before it is on the disk", w[1])
				}
				open[filepath.Dir(w[1])] = true // it has another entry
			}
		case name == nil || !strings.HasPrefix(name[1], s.dir) ||
			strings.HasPrefix(name[1], s.path("home")):
		case m[1] == "fsync":
			seen = seen || filepath.Base(name[1]) == file
			delete(open, name[1])
		default:
			open[name[1]] = true
		}
	}
	if !seen {
		t.Errorf("nothing is told of %s:\n%.2000s", file, calls)
	}
	for name := range open {
		t.Errorf("%s is not on the disk at the end", name)
	}
}

// After a power failure, everything that a run has reported is there: a copy of the disk at that
// moment (a mounted file) has the records of all reported trials.
func TestPowerLoss(t *testing.T) {
	testsets.Long(t, "a run, and its disk at each trial's end", programFiles)
	testsets.Measured(t)
	s := newScene(t)
	s.put("prony.yaml", "targets: {app: {command: '"+program(t, "prony")+
		" truth fixed --port {port}'}}\nrequests: [{request: GET /}]\n")
	disk := s.path("disk")
	at := s.mounted(disk, true)
	p := s.begin("", "run", "--blocks", "3", "--measure", "200ms", "--warmup", "500ms", "--out",
		filepath.Join(at, "run"))
	p.run(t)
	for i, trial := range []string{"b1-01", "b2-02", "b3-03"} {
		told := i + 1
		for began := time.Now(); !strings.Contains(s.said(), trial); {
			if time.Sleep(time.Millisecond); time.Since(began) > within {
				t.Fatalf("it has not told of trial %d:\n%s", told, s.said())
			}
		}
		// It stops so that the copy is of one moment.
		group := -p.cmd.Process.Pid
		_ = syscall.Kill(group, syscall.SIGSTOP) // it may have ended
		copied := s.path("copy" + strconv.Itoa(told))
		out, err := exec.Command("cp", "--sparse=always", disk, copied).CombinedOutput()
		_ = syscall.Kill(group, syscall.SIGCONT)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, records, bad, err := record.Read(filepath.Join(s.mounted(copied, false), "run"))
		if err != nil || len(bad) > 0 || len(records) < told {
			t.Errorf("%d trials were told of; the disk has %d records, bad %v, error %v\n%s", told,
				len(records), bad, err, s.said())
		}
	}
	if e := p.wait(t); e.code != 0 && e.code != 4 {
		t.Errorf("exit %d: %s", e.code, e.stderr)
	}
}

// mounted mounts a file as a disk until the test ends, and makes it if it is new.
func (s *scene) mounted(disk string, anew bool) (at string) {
	s.t.Helper()
	const size = 64 << 20
	do := func(words ...string) {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			s.t.Skipf("no disk can be made of a file here: %v: %v: %s", words, err, out)
		}
	}
	if anew {
		if err := os.WriteFile(disk, nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Truncate(disk, size); err != nil {
			s.t.Fatal(err)
		}
		do("mkfs.ext4", "-q", disk)
	}
	at = s.t.TempDir()
	do("mount", "-o", "loop", disk, at)
	s.t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			s.t.Errorf("%v: %s", err, out)
		}
	})
	return at
}

// said returns the output of a line so far.
func (s *scene) said() string {
	text, err := os.ReadFile(s.path("home/stderr"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
