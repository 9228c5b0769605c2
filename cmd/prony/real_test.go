package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/launch/process"
	"prony.example/internal/trial/machine"
	"prony.example/record"
)

// A short real run of a real service results in a complete record.
func TestRealRun(t *testing.T) {
	testsets.Measured(t)
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	testsets.Reads(t, filepath.Join(repo, "services", "go-nethttp"))
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	root := checkout(t)
	dir := filepath.Join(root, "r")
	stdout, stderr, exit := reallyIn(machine.World{}, "run", "--root", root, "--out", dir,
		"--targets", "go-nethttp", "--blocks", "1", "--measure", "500ms", "--warmup", "1s", "-x")
	// The machine may be busy, as the verdict then says; the run itself must work.
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "what is done outside", strings.ReplaceAll(stderr, "')", ")"), "+ (cd ",
		"/bin/go-nethttp)", "+ kill -TERM -- -")
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != 1 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	keepsSchemas(t, dir)
	r := records[0]
	if r.Outcome != record.Measured || len(r.Loads) != 2 {
		t.Fatalf("outcome %s, %d loads, failure %+v", r.Outcome, len(r.Loads), r.Failure)
	}
	p := r.Provenance
	for what, ok := range map[string]bool{
		"provenance": p.SuiteHash != "" && p.PlanHash != "" && p.Kernel != "" && p.CPUModel != "" &&
			p.Commit != "" && len(p.Command) > 1 && len(p.ServiceArgs) > 0 && p.Tools["go"] != "",
		"artifact":  len(r.Artifact.SHA256) == 64 && r.Artifact.SizeBytes > 1<<20,
		"limits":    len(r.Limits.InForce) > 0 && len(r.Limits.ServiceCores) == 1,
		"rights":    strings.HasSuffix(r.Limits.Privileges, ", no capabilities, no new privileges"),
		"start":     0 < r.Start.ListenNs && r.Start.ListenNs <= r.Start.ReadyNs,
		"first":     r.Start.ReadyNs < r.Start.FirstResponseNs,
		"warm-up":   r.Warmup.Requests > 0 && len(r.Warmup.RatePerS) > 0,
		"probe":     r.Probe.Samples > 5 && r.Probe.CPUNs > 0,
		"schedule":  r.Loads[1].TraceHash != "" && r.Loads[1].Scheduled > 0,
		"lag":       r.Loads[1].Lag.Count > 0,
		"ceiling":   r.Loads[0].CeilingPerS > 0,
		"histogram": r.Loads[0].ResponseTime.HDR != "" && r.Loads[1].ResponseTime.HDR != "",
	} {
		if !ok {
			t.Errorf("the record's %s is not whole", what)
		}
	}
	for _, l := range r.Loads {
		u := l.Service
		if l.Done == 0 || u.CPUNs <= 0 || u.CPUPerRequestNs <= 0 || u.RSSMaxBytes < 1<<20 ||
			u.ThreadsMax < 1 || u.NetworkBytes <= 0 || l.Generator.CPUNs <= 0 {
			t.Errorf("load %s: %d answers, usage %+v, generator %+v", l.Name, l.Done, u,
				l.Generator)
		}
	}
	for _, f := range []string{"hdr/" + r.Trial + ".half.hlog", "series/" + r.Trial + ".peak.json",
		"logs/" + r.Trial + ".log", "report.html"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}

// prony is this program as a separate process with a long trial.
type prony struct {
	*exec.Cmd
	t    *testing.T
	root string
	dir  string
	errs *bytes.Buffer
}

func startRun(t *testing.T, root, runtime string) *prony {
	t.Helper()
	p := &prony{t: t, root: root, dir: filepath.Join(root, "r"), errs: &bytes.Buffer{}}
	p.Cmd = exec.Command(os.Args[0], "run", "--root", root, "--out", p.dir,
		"--targets", "go-nethttp", "--blocks", "1", "--measure", "60s")
	p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1", "XDG_RUNTIME_DIR="+runtime)
	p.Stderr = p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) //nolint:errcheck // it may have ended
	return p
}

// service1 waits until the journal names a running service and returns its process.
func service1(t *testing.T, runtime string) int {
	t.Helper()
	end := clock.Mono() + int64(testsets.Patience)
	for ; clock.Mono() < end; time.Sleep(10 * time.Millisecond) {
		var note struct {
			Processes map[string]struct {
				PID int `json:"pid"`
			} `json:"processes"`
		}
		b, err := os.ReadFile(filepath.Join(runtime, "prony", "lab.json"))
		if err != nil || json.Unmarshal(b, &note) != nil {
			continue
		}
		for noted, p := range note.Processes {
			if strings.HasPrefix(noted, "step-") {
				continue // of its build
			}
			name, err := os.ReadFile(filepath.Join("/proc", itoa(p.PID), "cmdline"))
			if err == nil && p.PID > 0 && strings.Contains(string(name), "go-nethttp") {
				return p.PID
			}
		}
	}
	t.Fatal("no service came up")
	return 0
}

func itoa(n int) string {
	b, _ := json.Marshal(n) // encoding a number cannot fail
	return string(b)
}

func gone(t *testing.T, pid int) {
	t.Helper()
	end := clock.Mono() + int64(testsets.Patience)
	for ; clock.Mono() < end; time.Sleep(time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	t.Errorf("service %d is still there", pid)
}

// The tools in suites/generators.yaml support its loads: each installed one measures its trial.
func TestRealGenerators(t *testing.T) {
	testsets.Once(t, "other load generators", testsets.Needs{Files: []string{
		"suites/generators.yaml", "services/go-nethttp"}})
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{""}
	for _, tool := range []string{"wrk", "hey"} {
		if _, err := exec.LookPath(tool); err == nil {
			want = append(want, tool)
		}
	}
	if len(want) == 1 {
		t.Skip("neither wrk nor hey is installed")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	root := checkout(t)
	dir := filepath.Join(root, "r")
	stdout, stderr, exit := really("run",
		filepath.Join(repo, "suites", "generators.yaml"), "--root", root, "--out", dir,
		"--targets", "go-nethttp", "--blocks", "1", "--measure", "1s", "--warmup", "1s")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	_, records, _, err := record.Read(dir)
	if err != nil || len(records) != len(want) {
		t.Fatalf("%d records of %q, error %v", len(records), want, err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured || len(r.Loads) != 1 || r.Loads[0].Done == 0 {
			t.Errorf("%q: outcome %s, failure %+v", r.Target.Driver, r.Outcome, r.Failure)
		}
	}
}

// Labs of other users, with their own journals, also take turns.
func TestLabOfAnotherUser(t *testing.T) {
	other, err := os.Open(process.Processors)
	if err != nil {
		t.Skip("no lab can be kept out: ", err)
	}
	defer other.Close()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(process.Beside, "")
	root, mine, exit, stderr := checkout(t), false, cli.Fine, ""
	for !mine && exit == cli.Fine { // a real lab also counts, until it has ended
		mine = syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
		_, stderr, exit = really("verify", "go-nethttp", "--root", root)
	}
	if exit != cli.Failed {
		t.Errorf("it exits %d, want %d", exit, cli.Failed)
	}
	who := ""
	if mine {
		who = itoa(os.Getpid()) + " of user " + itoa(os.Getuid())
	}
	has(t, "stderr", stderr, "another prony is measuring on this machine: process "+who,
		"set PRONY_BESIDE=1")
}

// A waiting lab reports for which one it waits, gives up at the bound, and continues when the other
// ends.
func TestRunWaitsForItsTurn(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(process.Beside, "1") // ignore the turns of other labs
	other, _, err := process.OpenJournal(process.DefaultDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	project := "targets: {a: {command: 'false'}}\nrequests: [{request: GET /}]\n"
	if err := os.WriteFile("prony.yaml", []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	versus := []string{"versus", "false", "--get", "/"}
	check := func(line []string, bound string, then func(), wants ...string) {
		t.Helper()
		said := hearing{words: "waiting for", then: then}
		exit := cli.Code(run(t.Context(), machine.World{}, append(line, "--wait="+bound), &said,
			&said))
		if exit != cli.Failed {
			t.Errorf("it exits %d, want %d", exit, cli.Failed)
		}
		has(t, "what it says", said.text.String(), append(wants, "waiting for the machine, for at "+
			"most "+bound+": it is used by process "+itoa(os.Getpid()))...)
	}
	check([]string{"run"}, "100ms", func() {}, "waited 100ms: open journal",
		"another prony is measuring")
	check(versus, "100ms", func() {}, "waited 100ms: open journal")
	leave := func() { other.Close() } //nolint:errcheck // it was only read
	check(versus, "1m0s", leave, "the service exited before it was ready")
	queue, err := os.ReadDir(filepath.Join(process.DefaultDir(), "queue"))
	if err != nil || len(queue) > 0 {
		t.Errorf("in the queue are %v, error %v", queue, err)
	}
}

// hearing calls a function when certain words are printed.
type hearing struct {
	text  bytes.Buffer
	words string
	then  func()
}

func (h *hearing) Write(p []byte) (int, error) {
	n, err := h.text.Write(p)
	if strings.Contains(h.text.String(), h.words) {
		h.then()
		h.then = func() {} // once
	}
	return n, err
}

// SIGKILL cannot be handled; the service ends all the same, and the next lab finds nothing in its
// way.
func TestKilledLab(t *testing.T) {
	testsets.Once(t, "a lab that is killed", needs(t, "", "go-nethttp"))
	runtime, root := t.TempDir(), checkout(t)
	p := startRun(t, root, runtime)
	pid := service1(t, runtime)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	second := []string{"run", "--root", root, "--targets", "go-nethttp", "--loads", "peak",
		"--blocks", "1", "--measure", "300ms", "--warmup", "300ms"}
	_, stderr, exit := really(second...)
	if exit != cli.Failed {
		t.Errorf("a second lab exits %d, want %d", exit, cli.Failed)
	}
	has(t, "stderr", stderr, "wait for the other process",
		"another prony is measuring on this machine: process "+itoa(p.Process.Pid))
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait() //nolint:errcheck // it was killed
	gone(t, pid)
	_, stderr, exit = really(second...)
	if exit != cli.Fine && exit != cli.Invalid { // the machine may be busy
		t.Errorf("the next lab exits %d\n%s", exit, stderr)
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*/prony-" + itoa(p.Process.Pid) + "-*")
	if err != nil || len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
}
