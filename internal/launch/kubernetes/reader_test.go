package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/launchtest"
	"prony.example/internal/observe/probe"
)

// readers holds the image of prony for the readers of this process's tests.
var readers struct {
	sync.Once
	image string
}

// farLauncher returns a launcher that uses a reader, which is prony itself.
func farLauncher(t testing.TB, o Options) *Launcher {
	t.Helper()
	needsCluster(t)
	readers.Do(func() {
		program, err := launchtest.Build("prony.example/cmd/prony")
		if err != nil {
			t.Fatal(err)
		}
		image := fmt.Sprintf("prony-test-reader:%d", os.Getpid())
		load := exec.Command("ctr", "images", "import", "-")
		load.Stdin = bytes.NewReader(launchtest.ImageOf(t, image, "prony", program,
			map[string]any{"Entrypoint": []string{"/prony"}}))
		if out, err := load.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		launchtest.AfterAll(func() {
			rm := exec.Command("ctr", "images", "rm", "docker.io/library/"+image)
			if out, err := rm.CombinedOutput(); err != nil {
				panic(fmt.Sprintf("%v: %s", err, out))
			}
		})
		readers.image = image
	})
	if readers.image == "" {
		t.Skip("there is no image of a reader")
	}
	o.Reader, o.ReaderImage = inPod, readers.image
	return launcher(t, o)
}

// A reader in a pod reads the same about another pod as this machine, its node, reads itself.
func TestReaderInPod(t *testing.T) {
	l := farLauncher(t, Options{})
	testsets.Measured(t)
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-burns"}, Cores: []int{0}, CPUs: 1,
		MemoryBytes: 64 << 20})
	says(t, p, "ready")
	if p.Main() != 0 || len(p.PIDs()) > 0 || len(p.Groups()) > 0 {
		t.Errorf("of another machine it tells %d, %v, %v", p.Main(), p.PIDs(), p.Groups())
	}
	got := p.Pod(t.Context())
	if len(got.CoresSharedWith) > 0 || len(got.Cores) != 1 || got.Node == "" || got.Kubelet == "" ||
		got.Reader == nil || !strings.Contains(got.Reader.Image, "sha256:") {
		t.Errorf("its pod is %+v, its reader %+v", got, got.Reader)
	}
	// The same pod, read directly.
	e := watchNode(p.pod.Metadata.UID)
	told := p.told(t.Context())
	at := e.find(told.containerID())
	e.close()
	want := (here{}).facts(at, limitsOf(p.Spec))
	inForce, missing := p.Limits()
	if at.PID != p.sighting.PID || at.PID == 0 || !reflect.DeepEqual(inForce, want.InForce) ||
		len(inForce) < 2 || len(missing) > 0 || !slices.Equal(got.Cores, want.Cores) {
		t.Errorf("limits are %+v without %+v on %v, want %+v on %v; process %d, want %d", inForce,
			missing, got.Cores, want.InForce, want.Cores, p.sighting.PID, at.PID)
	}
	age, ok := cgroup.Age(at.PID)
	since := clock.Mono() - p.Began()
	if !ok || since > age+int64(50*time.Millisecond) || since < age/2 {
		t.Errorf("it began %d ns ago, and its process %d", since, age)
	}
	sameUse(t, p)
	if err := p.Stop(0); err != nil || cgroup.Born(at.PID) != "" {
		t.Errorf("stopped with %v; %q", err, cgroup.Stat(at.PID))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if names := left(t); len(names) > 0 {
		t.Errorf("%q are left", names)
	}
}

// The reader also detects throttling by a quota, and one reader suffices for two pods.
func TestReaderSeesThrottling(t *testing.T) {
	l := farLauncher(t, Options{})
	var names []string
	for range 2 {
		p := start(t, l, launch.Spec{Args: []string{"/act", "act-burns"}, CPUs: 0.05,
			MemoryBytes: 64 << 20})
		says(t, p, "ready")
		s, err := p.Sample(0)
		if err != nil {
			t.Fatal(err)
		}
		before := s.Mark()
		testsets.Eventually(t, "throttling", func() bool {
			now := s.Mark()
			return now.ThrottledNs > before.ThrottledNs && before.ThrottledNs >= 0 &&
				now.ChargedBytes > 0 && now.Processes == 1
		})
		names = append(names, p.Pod(t.Context()).Reader.Pod)
		s.Stop()
		if err := p.Stop(0); err != nil {
			t.Fatal(err)
		}
	}
	if names[0] != names[1] || names[0] == "" {
		t.Errorf("readers are %q, want one", names)
	}
}

// A window in which the API server goes away and comes back is complete; a reading during the
// outage is lost.
func TestReaderWithoutAPI(t *testing.T) {
	needsCluster(t)
	w := byWay(t)
	t.Cleanup(func() { w.close() })
	p := start(t, farLauncher(t, Options{}), launch.Spec{Args: []string{"/act", "act-burns"},
		CPUs: 1, MemoryBytes: 64 << 20})
	says(t, p, "ready")
	s, err := p.Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Mark()
	w.close()
	testsets.Eventually(t, "the stream's end", func() bool { return s.f.lost() != nil })
	b := s.Mark()
	w.open(t)
	testsets.Eventually(t, "the stream's return", func() bool { return s.f.lost() == nil })
	var c probe.Mark
	testsets.Eventually(t, "a mark", func() bool { c = s.Mark(); return !c.Lost })
	lost, _ := probe.Between(a, b, s.Series(), 1, 1)
	whole, _ := probe.Between(a, c, s.Series(), 1, 1)
	if a.Lost || !b.Lost || lost.CPUNs != -1 || whole.CPUNs <= 0 || whole.RSSMaxBytes <= 0 {
		t.Errorf("use is %+v up to the lost reading, %+v in all", lost, whole)
	}
	if n := len(s.Series().TNs); int64(n) < (c.TNs-a.TNs)/int64(150*time.Millisecond) {
		t.Errorf("there are %d samples of %d ns", n, c.TNs-a.TNs)
	}
	r := p.Pod(t.Context()).Reader
	if len(r.Lost) == 0 || !strings.Contains(r.Lost[0], ": ") {
		t.Errorf("the record says %+v", r)
	}
}

// A killed reader ends no trial: the pod goes on, the cluster reports its end, and the next launch
// starts a new reader.
func TestReaderIsKilled(t *testing.T) {
	l := farLauncher(t, Options{})
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	s, err := p.Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	first := p.Pod(t.Context()).Reader.Pod
	kubectl(t, "", "delete", "pod", first, "--namespace="+home.namespace, "--grace-period=1")
	select {
	case <-s.f.gone():
	case <-time.After(testsets.Patience):
		t.Fatal("nobody noticed")
	}
	if m := s.Mark(); !m.Lost {
		t.Errorf("a dead reader marks %+v", m)
	}
	if r := p.Pod(t.Context()).Reader; len(r.Lost) != 1 || p.Ended() {
		t.Errorf("the record says %+v; %q", r, p.Exit())
	}
	if err := p.Stop(5 * time.Second); err != nil || p.Exit() != "exit status 0" {
		t.Errorf("it ended with %q, %v", p.Exit(), err)
	}
	p = start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	if next := p.Pod(t.Context()).Reader.Pod; next == first || next == "" {
		t.Errorf("the reader is %q, before it was %q", next, first)
	}
}

// The guard of a killed lab also removes the lab's reader.
func TestKilledLabHasReader(t *testing.T) {
	farLauncher(t, Options{}) // loads its image
	t.Setenv("PRONY_KUBERNETES_READER_IMAGE", readers.image)
	t.Setenv("PRONY_KUBERNETES_READER", inPod)
	s := startLab(t)
	if names := left(t); len(names) != 5 {
		t.Fatalf("%q are there, want two jobs, two pods and a service", names)
	}
	s.Kill(t)
	testsets.Eventually(t, "removal", func() bool { return len(left(t)) == 0 })
	if b, err := os.ReadFile(filepath.Join(s.Dir, "kubernetes-guard.log")); err != nil ||
		strings.Count(string(b), "job prony-"+s.ID) != 2 {
		t.Errorf("the guard noted %q, error %v", b, err)
	}
}

// A lab on a machine that is no node, or none with the labels, uses a reader.
func TestElsewhereHasReader(t *testing.T) {
	l := launcher(t, Options{})
	l.nodes = nil
	if err := l.meetNode(t.Context()); err != nil || l.far || l.node.Metadata.Name == "" {
		t.Errorf("on a node: %t, %v", l.far, err)
	}
	l.nodes = map[string]string{"prony.test/disk": "none"}
	if err := l.meetNode(t.Context()); err != nil || !l.far {
		t.Errorf("for another node: %t, %v", l.far, err)
	}
	l.nodes, l.self.Boot = nil, "another"
	if err := l.meetNode(t.Context()); err != nil || !l.far {
		t.Errorf("on another machine: %t, %v", l.far, err)
	}
}

// Errors say which limit of a reader's namespace, node or image applies.
func TestReaderCannotStart(t *testing.T) {
	l := farLauncher(t, Options{})
	l.options.ReaderImage = "no/such:reader"
	refuses(t, l, launch.Spec{}, `start the reader of limits and use on the pod's node: `+
		`ErrImageNeverPull: .*no/such:reader`)
	l.options.ReaderImage = home.image
	refuses(t, l, launch.Spec{}, `start the reader.*: CreateContainerError: .*no command`)
	namespace := space(t, "baseline")
	kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline")
	l = farLauncher(t, Options{Namespace: namespace})
	refuses(t, l, launch.Spec{}, `the reader.*violates PodSecurity "baseline.*hostPID.*; the `+
		`namespace does not admit the pod`)
}
