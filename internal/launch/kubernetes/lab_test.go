package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/launchtest"
	"prony.example/internal/observe/probe"
)

// labEnv makes this binary a lab that a test kills. Its value is a namespace, an image and a
// folder.
const labEnv = "PRONY_TEST_KUBERNETES_LAB"

// otherLab launches a pod, announces itself and waits to be killed.
func otherLab(text string) error {
	f := strings.Fields(text)
	o, err := OptionsOf(os.Getenv)
	if err != nil {
		return err
	}
	o.Namespace, o.Dir, o.Service = f[0], f[2], true
	l, _, err := New(context.Background(), o)
	if err != nil {
		return err
	}
	p, err := l.Launch(context.Background(), launch.Spec{Name: "t", Image: f[1], Port: 8080,
		Args: []string{"/act", "act-deaf"}, LogFile: filepath.Join(f[2], "log")})
	if err != nil {
		return err
	}
	return launchtest.Announce(os.Stdout, l.self.ID, l.guard.PID(), p.(*proc).sighting.PID)
}

// stranger is a lab in another process, and the main process of its pod.
type stranger struct {
	*launchtest.Lab
	main int
}

func startLab(t *testing.T) stranger {
	t.Helper()
	needsCluster(t)
	s := stranger{Lab: launchtest.StartLab(t, labEnv, home.namespace+" "+home.image)}
	var err error
	if s.main, err = strconv.Atoi(s.Said); err != nil || s.main == 0 {
		t.Fatalf("the lab said %q", s.Said)
	}
	return s
}

// The guard of a killed lab removes what the lab has left, also after the signals of a Ctrl-C or a
// shutdown. Streams of kubectl end too.
func TestKilledLab(t *testing.T) {
	s := startLab(t)
	if names := left(t); len(names) != 3 {
		t.Fatalf("%q are there, want a job, a pod and a service", names)
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if err := unix.Kill(s.Guard, signal); err != nil {
			t.Fatal(err)
		}
	}
	var streams []int
	testsets.Eventually(t, "stream of the log", func() bool {
		streams = children(s.Cmd.Process.Pid)
		return len(streams) > 0
	})
	s.Kill(t)
	testsets.Eventually(t, "removal", func() bool { return len(left(t)) == 0 })
	testsets.Eventually(t, "the guard's end", func() bool { return cgroup.Born(s.Guard) == "" })
	for _, pid := range append(streams, s.main) {
		if cgroup.Born(pid) != "" {
			t.Errorf("process %d is left: %q", pid, cgroup.Stat(pid))
		}
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, "kubernetes-guard.log"))
	if text := string(b); strings.Count(text, "\n") != 1 || err != nil ||
		!strings.Contains(text, "lab "+s.ID+" has ended: removed [\"job prony-"+s.ID) {
		t.Errorf("the guard noted %q, error %v", text, err)
	}
}

// children lists the live processes that a process has started, except its guard.
func children(parent int) (out []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat := cgroup.Stat(pid)
		if len(stat) > 1 && stat[1] == strconv.Itoa(parent) &&
			cgroup.Value("/proc/"+e.Name(), "comm") == "kubectl" {
			out = append(out, pid)
		}
	}
	return out
}

// Two running labs in one namespace do not affect each other. If a lab and its guard are killed,
// the next lab removes what is left.
func TestTwoLabs(t *testing.T) {
	s := startLab(t)
	if err := unix.Kill(s.Guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l, reaped, err := New(t.Context(), Options{Namespace: home.namespace})
	if err != nil || len(reaped) > 0 {
		t.Fatalf("a second lab reaped %q, error %v", reaped, err)
	}
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	if names := left(t); len(names) != 5 {
		t.Errorf("there are %q, want two jobs and pods and a service", names)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
	if names := left(t); len(names) != 3 || cgroup.Born(s.main) == "" {
		t.Errorf("the other lab has %q, want all three and its process", names)
	}
	s.Kill(t)
	if names := left(t); len(names) != 3 {
		t.Fatalf("%q are left without a guard: this test proves nothing", names)
	}
	l, reaped, err = New(t.Context(), Options{Namespace: home.namespace})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if len(reaped) != 1 || !strings.HasSuffix(reaped[0], " of lab "+s.ID) {
		t.Errorf("reaped %q, want the job of lab %s", reaped, s.ID)
	}
	testsets.Eventually(t, "removal", func() bool { return len(left(t)) == 0 })
}

// Without its lab, a pod is ended by its node at the deadline.
func TestDeadline(t *testing.T) {
	l := launcher(t, Options{Lifetime: 3 * time.Second})
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	testsets.Eventually(t, "end", p.Ended)
	if want := regexp.MustCompile(`; the node reported DeadlineExceeded: `); !want.MatchString(
		p.Exit()) {
		t.Errorf("the process ended with %q, want %s", p.Exit(), want)
	}
}

// TestIsConfined checks the rights that a pod detects itself.
func TestIsConfined(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, launcher(t, Options{}), launch.Spec{MemoryBytes: 512 << 20,
		Args:   []string{"/act", "act-tells", "/open", "/tmp", dir},
		Mounts: []launch.Mount{{Path: dir, Write: true}, {Path: "/etc"}}})
	says(t, p, "done")
	const none = "0000000000000000"
	want := []string{"Uid: 1001 1001 1001 1001", "CapBnd: " + none, "NoNewPrivs: 1",
		"write /open false", "write /tmp true", "write " + dir + " true"}
	if got := p.Log(99); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "written")); err != nil {
		t.Error(err)
	}
}

// A flood stays within the bounds of every log, which begins with the first line.
func TestBoundsLog(t *testing.T) {
	p := start(t, launcher(t, Options{}), launch.Spec{Args: []string{"/act", "act-floods"}})
	const enough = launch.LogHead + launch.LogTail/2
	testsets.Eventually(t, "a flood", func() bool {
		info, err := os.Stat(p.Spec.LogFile)
		return err == nil && info.Size() > enough
	})
	if err := p.Stop(0); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(p.Spec.LogFile)
	if first := fmt.Sprintf("%0*d\n", launchtest.FloodLine-1, 0); err != nil ||
		!strings.HasPrefix(string(b), first) || len(b) > launch.LogHead+launch.LogTail+2<<20 {
		t.Errorf("%d bytes are kept, and begin with %.20q, error %v", len(b), b, err)
	}
}

// Samples of a pod contain processor time, memory and network, and what its kubelet granted:
// exclusive cores for whole processors, and throttling by the quota for less.
func TestIsSampled(t *testing.T) {
	l := launcher(t, Options{})
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-burns"}, Cores: []int{0}, CPUs: 1,
		MemoryBytes: 64 << 20})
	says(t, p, "ready")
	got := p.Pod(t.Context())
	if len(got.CoresSharedWith) > 0 || len(got.Cores) != 1 || got.QoS != "Guaranteed" ||
		got.Node == "" ||
		got.Kubelet == "" || got.Runtime == "" || got.Server == "" || len(got.APIOutages) > 0 ||
		!strings.Contains(got.Image, "sha256:") {
		t.Errorf("its pod is %+v, want one with a core of its own", got)
	}
	if before, ok := cgroup.Age(p.Main()); !ok || clock.Mono()-p.Began() > before {
		t.Errorf("it began %d ns ago, and its process %d", clock.Mono()-p.Began(), before)
	}
	if err := p.Stop(0); err != nil {
		t.Fatal(err)
	}
	p = start(t, l, launch.Spec{Args: []string{"/act", "act-burns"}, Cores: []int{0}, CPUs: 0.05,
		MemoryBytes: 64 << 20})
	says(t, p, "ready")
	var groups []probe.Group
	for _, g := range p.Groups() {
		groups = append(groups, probe.Group(g))
	}
	s, err := probe.Start(probe.Config{Period: 10 * time.Millisecond},
		probe.Subject{PIDs: p.PIDs, Groups: groups, Network: p.Main()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := s.Mark()
	testsets.Eventually(t, "throttling", func() bool {
		now := s.Mark()
		return now.CPUNs > before.CPUNs && now.ThrottledNs > before.ThrottledNs &&
			before.ThrottledNs >= 0 && now.ChargedBytes > 0 && now.Processes == 1 &&
			strings.HasPrefix(now.Source, "cgroup v")
	})
	if got := p.Pod(t.Context()); len(got.CoresSharedWith) == 0 {
		t.Errorf("a twentieth of a core is one of its own: %+v", got)
	}
}
