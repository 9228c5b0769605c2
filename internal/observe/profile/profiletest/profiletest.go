// Package profiletest checks every collector with a program whose work is split three to one
// between two functions with known names. It is only for tests.
package profiletest

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/profile"
)

// Limit is the time limit of everything that a test waits for.
const Limit = time.Minute

// tick is the resolution of processor time in /proc/PID/stat: 1/100 s on every Linux (proc(5),
// sysconf(_SC_CLK_TCK)).
const tick = 10 * time.Millisecond

// Start runs a program that prints "ready" and ends when its standard input does, even if this test
// is killed.
func Start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out := run(t, cmd, cmd.Wait)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the program printed %q, error %v", line, err)
	}
}

// Run runs any program, kills it at the test's end, and returns its output.
func Run(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	return run(t, cmd, func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	})
}

// run runs a program whose standard input ends with the test; then end waits for it.
func run(t *testing.T, cmd *exec.Cmd, end func() error) io.Reader {
	t.Helper()
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), end()); err != nil {
			t.Error(err)
		}
	})
	return out
}

// Take profiles a subject until it has spent some processor time, so that a busy machine does not
// reduce the number of samples.
func Take(t *testing.T, c profile.Collector, s profile.Subject, kind string,
	spend time.Duration) *pprof.Profile {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	session, err := c.Start(ctx, s, kind)
	if err != nil {
		t.Fatal(err)
	}
	spent := waitCPU(ctx, s.PID, spend)
	p, err := session.Stop(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if spent != nil {
		t.Fatal(spent)
	}
	if err := p.CheckValid(); err != nil {
		t.Error("not valid: ", err)
	}
	if profile.Tool(p) == "unknown" {
		t.Error("the profile does not name the profiler")
	}
	t.Logf("%s of %s: %q", kind, profile.Tool(p), profile.Notes(p))
	return p
}

// waitCPU waits until a process has spent some more processor time.
func waitCPU(ctx context.Context, pid int, spend time.Duration) error {
	from, err := cpuTime(pid)
	now := from
	for range clock.Every(ctx, tick) {
		if err != nil || now-from >= spend {
			return err
		}
		now, err = cpuTime(pid)
	}
	return fmt.Errorf("wait for %v of processor time: had %v: %w", spend, now-from, ctx.Err())
}

func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	var ticks int64
	// After the name in parentheses: state is field 3, utime 14, stime 15.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// fewest is the number of samples below which a split is not detectable.
const fewest = 60

// Split fails the test unless the two functions have three quarters and one quarter of their sum.
// The tolerance is four standard errors of independent samples, which a correct profile exceeds
// once in 16,000 cases: sqrt(0.75 x 0.25 / n), e.g. 0.12 for 200 samples.
func Split(t *testing.T, p *pprof.Profile, three, item string, n int64) {
	t.Helper()
	var a, b int64
	for _, row := range profile.Top(p, 0) {
		switch row.Name {
		case three:
			a = row.Cum
		case item:
			b = row.Cum
		}
	}
	if n < fewest || a+b == 0 {
		t.Fatalf("%d samples, %d in %s, %d in %s: too few to tell\n%s", n, a, three, b, item,
			profile.Folded(p))
	}
	got, allowed := float64(a)/float64(a+b), 4*math.Sqrt(0.75*0.25/float64(n))
	t.Logf("function %s has a share of %.4f of %d samples, allowed is 0.75 ± %.4f",
		three, got, n, allowed)
	if math.Abs(got-0.75) > allowed {
		t.Errorf("%s holds %.4f of both, want 0.75 ± %.4f of %d samples\n%s", three, got, allowed,
			n, profile.Folded(p))
	}
}

// Has fails the test unless a stack has the frames, outermost first, perhaps with others between
// them.
func Has(t *testing.T, p *pprof.Profile, frames ...string) {
	t.Helper()
	for line := range strings.Lines(string(profile.Folded(p))) {
		ok := true
		for _, f := range frames {
			var tail string
			if _, tail, ok = strings.Cut(line, f); !ok {
				break
			}
			line = tail
		}
		if ok {
			return
		}
	}
	t.Errorf("no stack has %q:\n%s", frames, profile.Folded(p))
}

// Versions of the tools that tests download.
const (
	asyncProfiler = "4.1"
	pySpy         = "0.4.3"
)

// AsyncProfiler returns the path of the library, which Maven downloads once and .prony keeps.
// Without Maven the test is skipped.
func AsyncProfiler(t *testing.T) string {
	t.Helper()
	name := "async-profiler-" + asyncProfiler + ".jar"
	platform := map[string]string{"amd64": "linux-x64", "arm64": "linux-arm64"}[runtime.GOARCH]
	return fetch(t, name, platform+"/libasyncProfiler.so", "mvn", "-q", "-B",
		"dependency:copy", "-Dartifact=tools.profiler:async-profiler:"+asyncProfiler+":jar",
		"-DoutputDirectory=.")
}

// PySpy returns the path of the program, which pip downloads once and .prony keeps.
func PySpy(t *testing.T) string {
	t.Helper()
	return fetch(t, "py_spy-"+pySpy+"-*.whl", "py_spy-"+pySpy+".data/scripts/py-spy", "python3",
		"-m", "pip", "download", "-q", "--no-deps", "-d", ".", "py-spy=="+pySpy)
}

// fetch runs a registry's client in the folder of tools, unless the file exists, and extracts one
// file from the archive.
func fetch(t *testing.T, archive, member, program string, args ...string) string {
	t.Helper()
	dir := filepath.Join(checkout(t), ".prony", "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, filepath.Base(member))
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("the test needs a tool that is downloaded: ", err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("the test needs a tool that is downloaded: %s: %v: %s", program, err, output)
	}
	matches, err := filepath.Glob(filepath.Join(dir, archive))
	if err != nil || len(matches) != 1 {
		t.Fatalf("download of %s has the files %q, error %v; want one %s",
			program, matches, err, archive)
	}
	if err := unpack(matches[0], member, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// unpack writes a temporary file and renames it, because another test may do the same.
func unpack(archive, member, file string) (err error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // opened only for reading
	from, err := z.Open(member)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	draft := file + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(draft, data, 0o755); err != nil {
		return err
	}
	return os.Rename(draft, file)
}

// checkout returns the nearest parent folder with a go.mod.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("find the checkout: no go.mod upwards")
	return ""
}
