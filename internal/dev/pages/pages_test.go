package pages

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

	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/launch/process"
)

const (
	standsFor = 5 * time.Second  // how long a command without an end must run
	ending    = 20 * time.Second // from an interrupt to the end
)

// Every command of the pages ends as it should, in a fresh checkout of this commit with the changes
// of the working tree. Results are in results, one file a page.
func TestPages(t *testing.T) {
	testsets.Whole(t, "all commands of the pages on containers and clusters")
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	var fresh string // made for the first page that is typed
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			p.reachable(t)
			testsets.Long(t, "the commands of docs/"+p.name+".md", p.depends())
			if fresh == "" {
				fresh = checkout(t, root)
			}
			p.run(t, root, fresh)
		})
	}
	if fresh != "" && !t.Failed() { // services of a failed page may still use it
		if err := os.RemoveAll(filepath.Dir(fresh)); err != nil {
			t.Error(err)
		}
	}
}

// reachable skips a page without a program that its commands need.
func (p page) reachable(t *testing.T) {
	t.Helper()
	for _, tool := range p.on {
		words := strings.Fields(tool.check)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("its commands need %s: %v: %s", tool.check, err, out)
		}
	}
}

// depends returns what a page depends on: itself, the programs and the files of deploy.
func (p page) depends() testsets.Needs {
	needs := testsets.Needs{Files: []string{"docs/" + p.name + ".md", "cmd", "deploy", "home",
		"internal", "load", "record", "services/go-nethttp", "stats", "suites"}}
	if len(p.on) > 0 {
		needs.Facts = append(needs.Facts,
			testsets.Version("docker", "version", "--format", "{{.Server.Version}}"))
	}
	return needs
}

// checkout clones the repository, with the changes of the working tree, and builds prony in it.
func checkout(t *testing.T, root string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prony-pages-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // services run as another user
		t.Fatal(err)
	}
	s := newShell(t, root, t.TempDir())
	fresh := filepath.Join(dir, "checkout")
	for _, line := range []string{
		fmt.Sprintf("git clone --quiet . %s", fresh),
		fmt.Sprintf("git diff HEAD --binary | git -C %s apply --allow-empty", fresh),
		fmt.Sprintf("make -C %s build", fresh),
	} {
		if code, _ := s.run(line, usual); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, s.output())
		}
	}
	return fresh
}

// run types the commands of a page in a checkout, and writes their results.
func (p page) run(t *testing.T, root, fresh string) {
	s := newShell(t, fresh, t.TempDir())
	if p.name == "ci" {
		env, dir := testsets.S3(t)
		if err := os.Mkdir(filepath.Join(dir, "bench"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, value := range env {
			s.env = append(s.env, name+"="+value)
		}
	}
	text, err := os.ReadFile(filepath.Join(fresh, "docs", p.name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, files := read(string(text))
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, line := range p.after {
			s.run(line, usual)
		}
	}()
	for _, line := range p.before {
		if code, _ := s.run(line, usual); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, s.output())
		}
	}
	results := time.Now().UTC().Format(time.DateOnly) + ", " + s.versions(p, fresh) + "\n"
	for _, c := range commands {
		result := fmt.Sprintf("%4d  %s: %s", c.line, s.typeIn(p.rule(c), c), c.text)
		t.Log(result)
		results += result + "\n"
		file := filepath.Join(root, "internal/dev/pages/results", p.name+".txt")
		if err := os.WriteFile(file, []byte(results), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// typeIn types a command, and returns how it ended in a few words.
func (s *shell) typeIn(r rule, c command) string {
	if r.skip != "" {
		return "skipped: " + r.skip
	}
	bound := max(r.bound, usual)
	if r.needs != "" {
		if code, _ := s.run("("+string(r.needs)+")", bound); code != 0 {
			return "skipped: " + strings.TrimSpace(s.output())
		}
	}
	if r.before != "" {
		if code, _ := s.run(r.before, bound); code != 0 {
			s.t.Errorf("before line %d: %s: exit code %d: %s", c.line, r.before, code, s.output())
			return "failed: what comes before it"
		}
	}
	if r.stays {
		bound = standsFor
	}
	code, elapsed := s.run(strings.NewReplacer(r.own...).Replace(c.text), bound)
	took := fmt.Sprintf("%.0f s", elapsed.Seconds())
	switch {
	case r.stays && elapsed >= bound:
		return "ok, runs until Ctrl-C"
	case code == 0 && elapsed < bound:
		return "ok, " + took
	case slices.Contains(r.exits, code) && elapsed < bound:
		return fmt.Sprintf("ok, exit code %d, %s", code, took)
	case r.or != "":
		if other, _ := s.run(r.or, bound); other == 0 {
			return fmt.Sprintf("ok, exit code %d, INVALID, %s", code, took)
		}
	}
	s.t.Errorf("line %d: %s: exit code %d after %s: %s", c.line, c.text, code, took, s.output())
	return fmt.Sprintf("failed: exit code %d, %s", code, took)
}

// shell is a shell whose folder and variables last from line to line.
type shell struct {
	t     *testing.T
	state string // files of folder, variables and output
	env   []string
}

func newShell(t *testing.T, dir, state string) *shell {
	t.Helper()
	// Numbers do not matter here, so other measurements may run beside.
	s := &shell{t: t, state: state, env: append(os.Environ(), process.Beside+"=1", "PRONY_ROOT=",
		"XDG_RUNTIME_DIR="+t.TempDir(),
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))}
	for name, text := range map[string]string{"dir": dir, "variables": ""} {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// line reads and keeps folder and variables around a typed line.
const line = `. "$1/variables"; cd "$(cat "$1/dir")"; eval "$2"; code=$?
export -p >"$1/variables"; pwd >"$1/dir"; exit $code`

// run runs a line until its end or, after a bound of time, interrupts it.
func (s *shell) run(text string, bound time.Duration) (code int, elapsed time.Duration) {
	s.t.Helper()
	out, err := os.Create(filepath.Join(s.state, "output"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("bash", "-c", line, "bash", s.state, text)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	interrupt := time.AfterFunc(bound, func() { signalGroup(cmd, syscall.SIGINT) })
	end := time.AfterFunc(bound+ending, func() { signalGroup(cmd, syscall.SIGKILL) })
	cmd.Wait() //nolint:errcheck // its exit code says it
	interrupt.Stop()
	end.Stop()
	return cmd.ProcessState.ExitCode(), time.Since(begin)
}

// signalGroup signals a line and all that it started.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) {
	syscall.Kill(-cmd.Process.Pid, signal) //nolint:errcheck // it may have ended
}

// output returns the end of what the last line printed.
func (s *shell) output() string {
	text, err := os.ReadFile(filepath.Join(s.state, "output"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// versions returns the commit of a checkout, and the versions of what a page's commands run on.
func (s *shell) versions(p page, fresh string) string {
	lines := "git -C " + fresh + " log -1 --format='commit %h'"
	for _, tool := range p.on {
		lines += "\n" + tool.version
	}
	if p.name == "compose" {
		lines += "\ntest -z \"$GRAFANA_IMAGE\" || echo 'stand-ins for images of the stack'"
	}
	s.run(lines, usual)
	return strings.Join(strings.Split(strings.TrimSpace(s.output()), "\n"), ", ")
}
