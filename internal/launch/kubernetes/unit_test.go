package kubernetes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/record"
)

// fakeCluster returns a cluster whose kubectl is a shell script.
func fakeCluster(t *testing.T, script string) *cluster {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &cluster{Program: program, Namespace: "n"}
}

// TestAsk returns kubectl's output, or an error with kubectl's own text.
func TestAsk(t *testing.T) {
	check := func(script, want, fails string) {
		t.Helper()
		got, err := fakeCluster(t, script).ask(t.Context(), nil, "get", "pods")
		if string(got) != want || (err == nil) != (fails == "") ||
			err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: %q, error %v; want %q, %s", script, got, err, want, fails)
		}
	}
	check(`echo "$@"`, "get pods "+requestBound+" --namespace=n\n", "")
	check(`echo no such cluster >&2; exit 1`, "", "no such cluster")
}

// blind is a search that finds nothing.
type blind struct{}

func (blind) seen() <-chan sighting { return nil }
func (blind) find(string) sighting  { return sighting{} }
func (blind) close()                {}

// TestFindDeleted names the cause if a pod is deleted before its process is found.
func TestFindDeleted(t *testing.T) {
	c := fakeCluster(t, `echo 'Error from server (NotFound): pods "a" not found' >&2; exit 1`)
	p := &proc{l: &Launcher{cluster: c}, site: here{}, sight: blind{}}
	if err := p.find(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "another user or program deleted the pod") {
		t.Errorf("error is %v", err)
	}
}

// TestEndDeleted names the cause if a pod is deleted before its node reports how it ended.
func TestEndDeleted(t *testing.T) {
	c := fakeCluster(t, `echo '{"type": "DELETED", "object": {"metadata": {"name": "a", `+
		`"uid": "0123-abcd", "ownerReferences": [{"uid": "j"}]}}}'; exec sleep 1000`)
	p := &proc{l: &Launcher{cluster: c}, uid: "j"}
	if _, _, err := p.howEnded(endBound); !errors.Is(err, errDeleted) {
		t.Errorf("error is %v", err)
	}
}

// TestBringEnds checks that a program that leaves a process with its output ends with the context.
func TestBringEnds(t *testing.T) {
	dir := t.TempDir()
	program, left := filepath.Join(dir, "load"), filepath.Join(dir, "left")
	script := "#!/bin/sh\nsleep 1000 &\necho $! >" + left + ".new\nmv " + left + ".new " + left +
		"\nexec sleep 1000\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- (&Launcher{options: Options{Load: program}}).bring(ctx, "image") }()
	var pid int
	testsets.Eventually(t, "the process", func() bool {
		text, err := os.ReadFile(left)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it exists
	cancel()
	testsets.Eventually(t, "the end", func() bool { return len(ended) > 0 })
	if err := <-ended; err == nil {
		t.Error("an interrupted program is no error")
	}
}

// TestKeptOutput keeps the first bytes of a program's output.
func TestKeptOutput(t *testing.T) {
	for bound, want := range map[int]string{0: "", 4: "1234", 9: "123456789", 10: "123456789\n"} {
		out := &kept{bound: bound}
		cmd := exec.Command("echo", "123456789")
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if got := out.text.String(); got != want || out.cut != (bound < 10) {
			t.Errorf("at most %d bytes: %q, cut %v; want %q", bound, got, out.cut, want)
		}
	}
}

// TestLifetime is long enough for a trial if nothing is set.
func TestLifetime(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 2 * time.Hour,
		3 * time.Minute: 3 * time.Minute} {
		l := &Launcher{options: Options{Lifetime: set}}
		if got := l.lifetime(); got != want {
			t.Errorf("set to %v: %v, want %v", set, got, want)
		}
	}
}

// TestSampledWithoutSampler reports a pod that the reader does not sample.
func TestSampledWithoutSampler(t *testing.T) {
	for _, do := range []string{"series", "roles", "mark", "pss"} {
		_, err := new(reader).sampled(&podRead{}, question{Do: do, UID: "u"})
		if err == nil || err.Error() != "pod u is not sampled by this reader" {
			t.Errorf("%s: %v", do, err)
		}
	}
}

// TestNoteLimits reports memory that may be swapped out, if the memory is limited.
func TestNoteLimits(t *testing.T) {
	check := func(memory int64, swaps bool, want ...string) {
		t.Helper()
		p := &proc{Common: launch.NewCommon(launch.Spec{MemoryBytes: memory}),
			sighting: sighting{PID: 7}}
		p.noteLimits(facts{Swaps: swaps, InForce: []record.Limit{
			{Kind: record.LimitMemory, By: record.ByCgroup2, Value: float64(memory)}}})
		_, missing := p.Limits()
		var kinds []string
		for _, l := range missing {
			kinds = append(kinds, l.Kind)
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%d bytes, swaps %v: missing %q, want %q", memory, swaps,
				kinds, want)
		}
	}
	check(1<<30, true, record.LimitSwap)
	check(1<<30, false)
	check(0, true)
}

// TestMay names the rights that the user lacks.
func TestMay(t *testing.T) {
	need := []right{rights[0], rights[1]}
	check := func(says string, want ...string) {
		t.Helper()
		script := "cat >/dev/null; echo '" + says + "'"
		err := (&Launcher{cluster: fakeCluster(t, script)}).may(t.Context(), need)
		if len(want) == 0 && err != nil || len(want) > 0 && err == nil {
			t.Fatalf("%s: %v", says, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", says, err, w)
			}
		}
		for _, r := range need {
			if err != nil && !slices.Contains(want, r.words()) &&
				strings.Contains(err.Error(), r.words()) {
				t.Errorf("%s: %v names %s", says, err, r.words())
			}
		}
	}
	const yes, no = `{"status": {"allowed": true}}`, `{"status": {"allowed": false}}`
	check(yes + yes)
	check(yes+no, need[1].words())
	check(no+yes, need[0].words())
	check(no+no, need[0].words(), need[1].words())
	check(yes, "the cluster reported only 1 of 2 rights")
}
