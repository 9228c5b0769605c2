package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"prony.example/internal/base/cli"
	"prony.example/internal/launch/process"
	"prony.example/record"
)

// Limits for every line.
const (
	within   = 2 * time.Minute  // until its end; most take a tenth of a second, and other tests run
	toil     = 10 * time.Second // of CPU time, which other work may triple
	memory   = 256 << 20        // bytes of peak resident memory
	says     = 32 << 10         // bytes of standard error
	sentence = 1200             // bytes of one line of it, without given names
	lines    = 40               // of standard error
	ending   = 2 * time.Minute  // from a signal to the end, which takes a second or two
)

// ended is how a command line ended.
type ended struct {
	code           int // -1: by a signal
	signal         syscall.Signal
	stdout, stderr string
	peak           int64         // bytes
	toil           time.Duration // CPU time, with that of children
	late, large    bool          // killed for this reason
	left           bool          // processes of its own
}

// start is a running program.
type start struct {
	cmd         *exec.Cmd
	out, errs   *os.File
	piped       [2]strings.Builder
	done        chan struct{}
	bound       time.Duration // its maximum time
	late, large bool
}

// begin starts a command line, under limits in words of sh's ulimit if given.
func (s *scene) begin(limits string, args ...string) *start {
	s.t.Helper()
	words := append([]string{program(s.t, "prony")}, args...)
	if limits != "" {
		words = append([]string{"sh", "-c", limits + `; exec "$@"`, "sh"}, words...)
	}
	p := &start{cmd: exec.Command(words[0], words[1:]...), done: make(chan struct{}),
		bound: within}
	p.cmd.Dir = s.dir
	p.cmd.Env = append(os.Environ(), "HOME="+s.path("home"), "XDG_CACHE_HOME="+s.path("home/cache"),
		"XDG_RUNTIME_DIR="+s.path("home/run"), "PRONY_ROOT=",
		"TMPDIR="+s.path("home/tmp"), process.Beside+"=1") // numbers do not matter here
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, name := range []string{"home/run", "home/tmp"} {
		if err := os.MkdirAll(s.path(name), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	for name, to := range map[string]**os.File{"stdout": &p.out, "stderr": &p.errs} {
		file, err := os.Create(s.path("home/" + name))
		if err != nil {
			s.t.Fatal(err)
		}
		*to = file
	}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	if limits != "" { // through pipes, to which no file limit applies
		p.cmd.Stdout, p.cmd.Stderr = &p.piped[0], &p.piped[1]
	}
	return p
}

// run starts the program and watches it: it kills a program that grows or lasts too long.
func (p *start) run(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		bound := time.After(p.bound)
		for {
			select {
			case <-p.done:
				return
			case <-bound:
				p.late = true
			case <-tick.C:
				p.large = resident(p.cmd.Process.Pid) > 2*memory
			}
			if p.late || p.large {
				_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may just have ended
				<-p.done
				return
			}
		}
	}()
}

// resident returns the memory of a process, or 0 if it has ended.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// wait returns how it ended.
func (p *start) wait(t *testing.T) ended {
	t.Helper()
	err := p.cmd.Wait()
	close(p.done)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	e := ended{code: status.ExitStatus(), late: p.late, large: p.large,
		toil: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()}
	if status.Signaled() {
		e.signal = status.Signal()
	}
	e.peak = p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	if e.peak <= highest(t) {
		e.peak = 0 // unknown: it starts with the peak of its parent (getrusage(2))
	}
	e.stdout = content(t, p.out) + p.piped[0].String()
	e.stderr = content(t, p.errs) + p.piped[1].String()
	e.left = syscall.Kill(-p.cmd.Process.Pid, 0) == nil
	if e.left {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // they may just have ended
	}
	return e
}

// highest is the peak of this process's own resident memory, in bytes.
func highest(t *testing.T) int64 {
	t.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	return own.Maxrss << 10
}

// content returns the beginning of the output.
func content(t *testing.T, file *os.File) string {
	t.Helper()
	data := make([]byte, 1<<20)
	n, err := file.ReadAt(data, 0)
	if n == 0 && err != nil && err.Error() != "EOF" {
		t.Fatal(err)
	}
	file.Close()
	return string(data[:n])
}

var (
	dump = regexp.MustCompile(`goroutine \d+|^panic:|runtime error|SIG[A-Z]+: `)
	// An error that ends before its cause, or a formatting error of fmt.
	hollow = regexp.MustCompile(`: *;|%!|<nil>|context canceled`)
)

// check checks the conditions of every end.
func (e ended) check(t *testing.T) {
	t.Helper()
	switch {
	case e.late:
		t.Error("it has not ended in time")
	case e.large || e.peak > memory:
		t.Errorf("it took more than %d MiB: %d", memory>>20, e.peak>>20)
	case e.signal == syscall.SIGKILL:
		t.Errorf("the kernel killed it, for more than %d MiB", small>>20)
	case e.left:
		t.Error("it left processes behind")
	}
	if at := dump.FindString(e.stderr); at != "" {
		t.Errorf("it shows its insides at %q", at)
	}
	if len(e.stderr) > says || strings.Count(e.stderr, "\n") > lines {
		t.Errorf("it says %d bytes in %d lines", len(e.stderr), strings.Count(e.stderr, "\n"))
	}
	for _, r := range e.stdout + e.stderr {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			t.Errorf("it prints the control character %U", r)
			break
		}
	}
	if t.Failed() {
		t.Logf("exit %d %v, %d MiB\n%.2000s%.2000s", e.code, e.signal, e.peak>>20, e.stdout,
			e.stderr)
	}
}

// refused requires an error with one of the codes, and a sentence about it.
func (e ended) refused(t *testing.T, codes ...int) {
	t.Helper()
	if e.late || e.large {
		return // already reported
	}
	if !slices.Contains(codes, e.code) {
		t.Errorf("exit %d %v, want one of %v", e.code, e.signal, codes)
	}
	text := strings.TrimSpace(e.stderr)
	if e.code == cli.Invalid && text == "" {
		text = e.stdout // a table, which shows why a number is INVALID
	}
	if text == "" || strings.HasSuffix(text, ":") {
		t.Error("it does not say why")
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) > sentence || hollow.MatchString(line) {
			t.Errorf("no sentence with a cause: %.600q", line)
		}
	}
	if t.Failed() {
		t.Logf("%.1000s%.2000s", e.stdout, e.stderr)
	}
}

// words matches the words of a line; a quoted one may be empty or contain blanks.
var words = regexp.MustCompile(`'[^']*'|\S+`)

// arguments replaces placeholder words by paths and the server's URL.
func (s *scene) arguments(text string) []string {
	var out []string
	for _, w := range words.FindAllString(text, -1) {
		w = strings.Trim(w, "'")
		for _, name := range []string{"ROOT", "RUN", "BAD", "OUT", "FOREIGN", "SERVED", "SERVICE",
			"OTHER"} {
			w = strings.ReplaceAll(w, name, s.path(name))
		}
		out = append(out, strings.ReplaceAll(w, "URL", s.url))
	}
	return out
}

// look returns every file of a scene except caches and streams: its metadata, and the content of
// small ones.
func (s *scene) look() map[string]string {
	s.t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == s.path("home") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen[path] = fmt.Sprint(info.Mode(), info.Size())
		if info.Mode().IsRegular() && info.Size() < 1<<16 {
			data, err := os.ReadFile(path)
			seen[path] += string(data)
			return err
		} else if info.IsDir() {
			seen[path] = "a folder"
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

// lookAfter looks at a scene after a line, without the index that the line keeps.
func (s *scene) lookAfter(l line) map[string]string {
	s.t.Helper()
	seen := s.look()
	if l.index {
		kept := filepath.Join(filepath.Dir(s.path("RUN")), record.Kept)
		maps.DeleteFunc(seen, func(path, _ string) bool {
			return path == kept || strings.HasPrefix(path, kept+string(filepath.Separator))
		})
	}
	return seen
}

// same requires unchanged files.
func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s is another: %.80q, was %.80q", path, after[path], was)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is left behind", path)
		}
	}
}

// spoil puts an input where a line reads it.
func (s *scene) spoil(l line, in input) {
	s.t.Helper()
	at := s.path(l.at)
	if l.at == "" {
		at = s.path("BAD")
		if strings.Contains(l.args, "--update") {
			s.put("BAD", "x\n")
		}
	}
	sound, err := os.ReadFile(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(at), in.make(at, sound)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) try(limits string, args ...string) ended {
	s.t.Helper()
	p := s.begin(limits, args...)
	p.run(s.t)
	return p.wait(s.t)
}

// small is the memory in bytes of a machine on which all inputs must be readable.
const small = 512 << 20

// confined makes a memory cgroup of a small machine's size for a line, in which the kernel kills
// larger processes; empty if impossible, which is logged.
func (s *scene) confined() (limits string) {
	s.t.Helper()
	name, size := "prony-faults-"+filepath.Base(s.dir), fmt.Sprint(small)
	for _, group := range []struct{ parent, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // v1
		{"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(group.parent, name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		s.t.Cleanup(func() { s.remove(dir, os.Remove) })
		limit, err := os.OpenFile(filepath.Join(dir, group.limit), os.O_WRONLY, 0)
		if err != nil {
			continue // the hierarchy has no memory
		}
		_, err = limit.WriteString(size)
		if errors.Join(err, limit.Close()) == nil {
			return "echo $$ >" + dir + "/cgroup.procs"
		}
	}
	s.t.Log("no memory cgroup can be made here: it runs with all memory")
	return ""
}
