package docker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/launchtest"
)

// labEnv makes this binary a lab that a test kills. Its value is the image and a folder.
const labEnv = "PRONY_TEST_DOCKER_LAB"

// otherLab launches a system of two containers, announces itself and waits to be killed.
func otherLab(text string) error {
	ref, dir, _ := strings.Cut(text, " ")
	l, _, err := New(context.Background(), Options{Dir: dir})
	if err != nil {
		return err
	}
	var first launch.Process
	for _, name := range []string{"first", "second"} {
		p, err := l.Launch(context.Background(), launch.Spec{Name: name, Image: ref,
			Args: []string{"/act", "act-deaf"}, LogFile: filepath.Join(dir, name+".log"),
			MemoryBytes: 64 << 20, ShareBytes: 32 << 20, Beside: first})
		if err != nil {
			return err
		}
		if first == nil {
			first = p
		}
	}
	group := "none"
	if g := first.Groups(); len(g) > 0 {
		group = g[0].Dir
	}
	return launchtest.Announce(os.Stdout, l.self.ID, l.guard.PID(), group)
}

// stranger is a lab in another process. It announces its control group.
type stranger struct{ *launchtest.Lab }

func startLab(t *testing.T) stranger {
	t.Helper()
	return stranger{launchtest.StartLab(t, labEnv, plainImage(t))}
}

func (s stranger) owns(labels map[string]string) bool { return labels[labelLab] == s.ID }

func (s stranger) groupGone() bool {
	_, err := os.Stat(s.Said)
	return err != nil
}

// The guard of a killed lab removes what the lab has left, also after the signals of a Ctrl-C or a
// shutdown.
func TestKilledLab(t *testing.T) {
	s := startLab(t)
	if names := left(t, s.owns); len(names) != 3 {
		t.Fatalf("it has %q, want two containers and a network", names)
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if err := unix.Kill(s.Guard, signal); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill(t)
	testsets.Eventually(t, "removal", func() bool {
		return len(left(t, s.owns)) == 0 && s.groupGone()
	})
	testsets.Eventually(t, "the guard's end", func() bool { return cgroup.Born(s.Guard) == "" })
	b, err := os.ReadFile(filepath.Join(s.Dir, "docker-guard.log"))
	if text := string(b); strings.Count(text, "\n") != 1 || err != nil ||
		!strings.Contains(text, "lab "+s.ID+" has ended: removed [\"container prony-") {
		t.Errorf("the guard noted %q, error %v", text, err)
	}
}

// If the guard is killed too, the next lab removes what is left. A running lab loses nothing to
// another one.
func TestKilledGuard(t *testing.T) {
	s := startLab(t)
	if err := unix.Kill(s.Guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {Host: true}} {
		l, reaped, err := New(t.Context(), o)
		if err != nil || len(reaped) > 0 {
			t.Fatalf("a second lab reaped %q, error %v", reaped, err)
		}
		p := start(t, l, launch.Spec{Args: []string{"/act", "act-deaf"}})
		if err := l.Close(); err != nil || p.Exit() != "signal: killed" {
			t.Errorf("closed with %v, its container with %q", err, p.Exit())
		}
	}
	if names := left(t, s.owns); len(names) != 3 {
		t.Errorf("the other lab has %q, want all three", names)
	}
	s.Kill(t)
	if names := left(t, s.owns); len(names) != 3 {
		t.Fatalf("%q are left without a guard: this test proves nothing", names)
	}
	l, reaped, err := New(t.Context(), Options{Host: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if len(reaped) != 3 || !slices.ContainsFunc(reaped, func(text string) bool {
		return strings.HasPrefix(text, "network prony-") && strings.HasSuffix(text, " of lab "+s.ID)
	}) {
		t.Errorf("reaped %q, want two containers and the network", reaped)
	}
	if names := left(t, s.owns); len(names) > 0 || !s.groupGone() {
		t.Errorf("%q are left, its group %s is gone: %t", names, s.Said, s.groupGone())
	}
}

// Labels alone decide whether a lab has ended.
func TestOutlived(t *testing.T) {
	self, err := thisLab()
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, l lab, want bool) {
		t.Helper()
		if got := self.outlived(l.labels()); got != want {
			t.Errorf("%s: gone is %t, want %t", what, got, want)
		}
	}
	with := func(id string) lab { return lab{ID: id, Boot: self.Boot, Namespace: self.Namespace} }
	born := cgroup.Born(os.Getpid())
	check("itself", self, false)
	check("another launcher of this lab", with(fmt.Sprintf("%d-%s-99", os.Getpid(), born)), false)
	check("an earlier one of its number", with(fmt.Sprintf("%d-%s0-1", os.Getpid(), born)), true)
	check("one that ended", with(fmt.Sprintf("%d-1-1", dead.Process.Pid)), true)
	check("one before this boot", lab{ID: self.ID, Boot: "x", Namespace: self.Namespace}, true)
	check("one in a container", lab{ID: "1-1-1", Boot: self.Boot, Namespace: "pid:[1]"}, false)
	check("a label of somebody else", with("mine"), false)
	check("a label of somebody else", with("1-2"), false)
	if other := with(self.ID + "0"); self.owns(other.labels()) || !self.owns(self.labels()) {
		t.Error("a launcher owns what is another's, or not what is its own")
	}
}

// A guard notes that the engine is missing, and refuses orders that it cannot read.
func TestGuardClears(t *testing.T) {
	const w = `{"socket": "/nowhere", "lab": {"id": "1-1-1"}}`
	if err := clearUp([]byte(w)); err == nil ||
		!strings.Contains(err.Error(), "no engine was found") {
		t.Errorf("error is %v, want that the engine is not there", err)
	}
	if err := clearUp([]byte("{")); err == nil {
		t.Error("orders that cannot be read are followed")
	}
}

// A frozen system of a killed lab is thawed before its containers are removed: version 1 does not
// end frozen processes.
func TestSweepThaws(t *testing.T) {
	mounts := cgroup.OwnMounts()
	i := slices.IndexFunc(mounts, func(m cgroup.Mount) bool { return m.Freezer && m.Root == "/" })
	if i < 0 {
		t.Skip("no freezer of version 1 is mounted from its root")
	}
	name := fmt.Sprintf("%s%d-%d", podPrefix, os.Getpid(), count.Add(1))
	dir := filepath.Join(mounts[i].Dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := cgroup.Write(dir, cgroup.StateFile, "FROZEN"); err != nil {
		t.Fatal(err)
	}
	f, state := startFake(t), ""
	f.fail("GET /containers/json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `[{"Id": "id1", "Names": ["/x"], "Labels": {"%s": "%s"}}]`, labelGroup, name)
	})
	f.fail("DELETE /containers/X", func(w http.ResponseWriter, _ *http.Request) {
		state = cgroup.Value(dir, cgroup.StateFile)
		w.WriteHeader(http.StatusNoContent)
	})
	engine, err := connect(t.Context(), f.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	_, err = sweep(t.Context(), engine, func(map[string]string) bool { return true })
	if err != nil || state != "THAWED" {
		t.Errorf("at the removal, the group was %q; error %v", state, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// Labs of two PID namespaces may have the same process number.
func TestNamesOfTwoLabs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"7-100-1", "7-200-1"} {
		count.Store(5)
		seen[(&Launcher{self: lab{ID: id}}).nextName()] = true
	}
	if len(seen) != 2 {
		t.Errorf("two labs have the same name: %v", seen)
	}
}
