package launchtest

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/launch"
	"prony.example/record"
)

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func ready(t *testing.T, p launch.Process) {
	t.Helper()
	eventually(t, "start", func() bool {
		if launch.HasExited(p) {
			t.Fatalf("the process ended with %q and printed %q", p.Exit(), p.Log(9))
		}
		return slices.Contains(p.Log(9), "ready")
	})
}

// answer connects to a target and returns its answer. The path to it, such as the rules of a
// Kubernetes Service, may need a moment.
func answer(t *testing.T, p launch.Process) string {
	t.Helper()
	var c net.Conn
	eventually(t, "connection to "+p.Addr().String(), func() bool {
		var err error
		c, err = net.Dial("tcp", p.Addr().String())
		return err == nil
	})
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func (s *suite) isReached(t *testing.T) {
	port := freePort(t)
	p := s.with(t, s.make(t), "act-listens", launch.Spec{Port: port})
	ready(t, p)
	if got := answer(t, p); got != "hello\n" || int(p.Addr().Port()) != port {
		t.Errorf("%s answered %q, want hello, at port %d", p.Addr(), got, port)
	}
}

// grouped skips tests that need a control group if there are none. Other limits apply to the memory
// that a Go program reserves, and may be too low for it to start.
func grouped(t *testing.T, p launch.Process) {
	t.Helper()
	if len(p.Groups()) == 0 {
		t.Skip("control groups are not permitted on this machine")
	}
}

// half is half a core, which needs a quota, and a limit on memory.
var half = launch.Spec{Cores: []int{0}, CPUs: 0.5, MemoryBytes: 256 << 20}

func (s *suite) holdsLimits(t *testing.T) {
	spec := half
	if s.target.Granted {
		spec.CPUs = 1
	}
	p := s.with(t, s.make(t), "act-burns", spec)
	grouped(t, p)
	ready(t, p)
	inForce, missing := p.Limits()
	got := map[string]string{}
	for _, l := range inForce {
		source := l.By
		if byCgroup(l) {
			source = "cgroup"
		}
		got[l.Kind+" by "+source] = fmt.Sprint(l.Value, l.Cores)
	}
	want := map[string]string{"cores by affinity": "0 [0]", "cores by cgroup": "0 [0]",
		"cpu by cgroup": "0.5 []", "memory by cgroup": "2.68435456e+08 []"}
	if s.target.Granted { // another authority chooses the core, and may need no quota
		want["cpu by cgroup"] = "1 []"
		if got["cpu by cgroup"] == "" {
			delete(want, "cpu by cgroup")
		}
		for _, source := range []string{"cores by affinity", "cores by cgroup"} {
			var core int
			if n, err := fmt.Sscanf(got[source], "0 [%d]", &core); n == 1 && err == nil {
				want[source] = fmt.Sprintf("0 [%d]", core)
			}
		}
	}
	if !maps.Equal(got, want) || len(missing) > 0 {
		t.Errorf("in force is %v, want %v; missing is %+v", got, want, missing)
	}
	if !slices.Contains(p.PIDs(), p.Main()) {
		t.Errorf("its main process %d is not among its processes %v", p.Main(), p.PIDs())
	}
}

func byCgroup(l record.Limit) bool { return l.By == record.ByCgroup1 || l.By == record.ByCgroup2 }

func (s *suite) saysMemory(t *testing.T) {
	spec := launch.Spec{MemoryBytes: 256 << 20, Port: freePort(t)}
	p := s.with(t, s.make(t), "act-eats", spec)
	grouped(t, p)
	ready(t, p)
	answer(t, p)
	eventually(t, "end", func() bool { return launch.HasExited(p) })
	want := `^killed by the kernel: out of memory \(limit 256 MiB(, peak 25[56](\.\d)? MiB)?\)$`
	if s.target.Peak {
		want = strings.Replace(want, ")?\\)$", ")\\)$", 1)
	}
	if !regexp.MustCompile(want).MatchString(p.Exit()) {
		t.Errorf("the process ended with %q, want %s", p.Exit(), want)
	}
}

// tellsKills checks Exit after the memory limit killed a child and Stop ended the rest.
func (s *suite) tellsKills(t *testing.T) {
	spec := launch.Spec{MemoryBytes: 256 << 20, Port: freePort(t)}
	p := s.with(t, s.make(t), "act-feeds", spec)
	grouped(t, p)
	eventually(t, "start of both", func() bool {
		return len(slices.DeleteFunc(p.Log(9), func(s string) bool { return s != "ready" })) == 2
	})
	answer(t, p)
	eventually(t, "the child's end", func() bool {
		return slices.Contains(p.Log(9), "child: signal: killed")
	})
	if err := p.Stop(0); err != nil {
		t.Fatal(err)
	}
	const want = "signal: killed; the kernel had killed a process of this target: out of memory " +
		"(limit "
	if !strings.HasPrefix(p.Exit(), want) {
		t.Errorf("the process ended with %q, want %q", p.Exit(), want)
	}
}

// shares starts a system of two processes: one limit holds both, and the second reaches the first
// on the same machine.
func (s *suite) shares(t *testing.T) {
	l, port := s.make(t), freePort(t)
	spec := half
	spec.ShareBytes, spec.Port = 128<<20, port
	first := s.with(t, l, "act-listens", spec)
	grouped(t, first)
	ready(t, first)
	spec.Port, spec.Beside = 0, first
	spec.Env = []string{fmt.Sprint("PEER=127.0.0.1:", port)}
	second := s.with(t, l, "act-dials", spec)
	eventually(t, "answer", func() bool { return slices.Contains(second.Log(9), "heard hello") })
	if second.Addr().Addr() != first.Addr().Addr() {
		t.Errorf("the processes have addresses %v and %v, want one address",
			first.Addr(), second.Addr())
	}
	if !slices.Equal(first.Groups(), second.Groups()) {
		t.Errorf("groups are %v and %v, want the same", first.Groups(), second.Groups())
	}
	if all := first.PIDs(); !slices.Contains(all, second.Main()) {
		t.Errorf("control groups of the first process contain %v, but not process %d", all,
			second.Main())
	}
	if ownPIDs := second.PIDs(); !slices.Equal(ownPIDs, []int{second.Main()}) {
		t.Errorf("the second process has the processes %v, want only %d", ownPIDs, second.Main())
	}
	for _, p := range []launch.Process{first, second} {
		inForce, missing := p.Limits()
		rounded := func(l record.Limit) bool {
			return l.Kind == record.LimitMemory && l.Value == 256<<20 && byCgroup(l)
		}
		if !slices.ContainsFunc(inForce, rounded) || len(missing) > 0 {
			t.Errorf("in force is %+v, missing %+v; want the whole system's memory", inForce,
				missing)
		}
	}
}

func (s *suite) knowsNeighbours(t *testing.T) {
	stranger := s.launch(t, "act-forever")
	spec := half
	spec.Args = []string{s.target.Program, "act-forever"}
	spec.Name, spec.Image, spec.Beside = "t", s.target.Image, struct{ launch.Process }{stranger}
	if _, err := s.make(t).Launch(t.Context(), spec); err == nil ||
		!strings.Contains(err.Error(), "did not start") {
		t.Errorf("error is %v, want an error about limits of a foreign process", err)
	}
}

// refusesSystems checks that launching a system fails with a message and starts nothing.
func (s *suite) refusesSystems(t *testing.T) {
	spec := half
	spec.Name, spec.Image, spec.ShareBytes = "t", s.target.Image, 128<<20
	if _, err := s.make(t).Launch(t.Context(), spec); err == nil ||
		!strings.Contains(err.Error(), "a system of several processes cannot be") {
		t.Errorf("error is %v, want an error about a system of processes", err)
	}
}
