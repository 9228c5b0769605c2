package processes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// listen is a program that prints its environment, listens on its port with Python, after a moment,
// and answers 200. It exits at once if a fault was put in its way.
const listen = `import http.server, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *a): pass
print("name", os.environ["NAME"], "memory", os.environ["MEMORY_MIB"], "back", os.environ["BACK"],
      flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), H).serve_forever()
`

// three is a system of a database without a path, a back and a front.
func three(t *testing.T, change func(*service.Service)) processes.Order {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "listen.py"), []byte(listen), 0o644); err != nil {
		t.Fatal(err)
	}
	of := func(name, ready string, share float64) service.Process {
		return service.Process{Name: name, Ready: ready, Share: share,
			Command: []string{"python3", "listen.py"},
			Env:     map[string]string{"NAME": name, "BACK": "{back.port}"}}
	}
	s := &service.Service{Name: "python-three", Targets: []service.Target{{Name: "only"}}}
	s.Run.Ready = "/ready"
	s.Run.Processes = []service.Process{of("database", "", 2), of("back", "/ready", 1),
		of("front", "/ready", 1)}
	change(s)
	return processes.Order{
		Name: "t", Service: s, Target: s.Targets[0], Built: &service.Built{Dir: dir},
		Values:  service.Values{CPUs: 1, MemoryBytes: 400 << 20},
		LogFile: filepath.Join(dir, "t.log"),
	}
}

// start starts an order for real, and stops it at the test's end.
func start(t *testing.T, o processes.Order, noGroup bool) (*processes.System, error) {
	t.Helper()
	journal, _, err := process.OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	s := processes.Starter{
		Launcher: &process.Launcher{Journal: journal, NoGroup: noGroup}, Port: processes.FreePort,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	sys, err := s.Start(ctx, o)
	if sys != nil {
		t.Cleanup(func() {
			if err := errors.Join(sys.Stop(time.Second), journal.Close()); err != nil {
				t.Error(err)
			}
			if left := append(sys.PIDs(), sys.Backing()...); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
	return sys, err
}

// serving starts an order and waits until it serves: a python3 that selects among several versions
// has helper processes until it listens.
func serving(t *testing.T, o processes.Order, noGroup bool) *processes.System {
	t.Helper()
	sys, err := start(t, o, noGroup)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := service.WaitReady(t.Context(), nil, sys.Addr().String(),
		o.Service.Run.Ready, sys.Began(), sys.Exited()); err != nil {
		t.Fatal(err, sys.Log(20))
	}
	return sys
}

// marked returns the probe's current reading of a system.
func marked(t *testing.T, sys *processes.System) probe.Mark {
	t.Helper()
	subject := probe.Subject{PIDs: sys.PIDs, Backing: sys.Backing}
	for _, p := range sys.Parts {
		subject.Parts = append(subject.Parts, probe.Part{Name: p.Name, Group: p.PID})
	}
	s, err := probe.Start(probe.Config{}, subject)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	return s.Mark()
}

// Each process is ready before the next begins; all are one process for callers; each knows the
// others' ports and its share of the memory: 400 MiB in 2 + 1 + 1 parts.
func TestSystem(t *testing.T) {
	check := func(name string, noGroup bool) {
		t.Run(name, func(t *testing.T) {
			sys := serving(t, three(t, func(*service.Service) {}), noGroup)
			var names []string
			for i, p := range sys.Parts {
				names = append(names, p.Name)
				if i > 0 && sys.Parts[i-1].Began()+sys.Parts[i-1].ReadyNs > p.Began() {
					t.Errorf("%s began before %s was ready", p.Name, sys.Parts[i-1].Name)
				}
				if ready := p.ReadyNs > 0; ready != (i < 2) {
					t.Errorf("%s was ready after %d", p.Name, p.ReadyNs)
				}
				if !slices.Contains(sys.PIDs(), p.PID) {
					t.Errorf("%v lacks %d", sys.PIDs(), p.PID)
				}
			}
			if got := fmt.Sprint(names); got != "[database back front]" {
				t.Errorf("parts %s", got)
			}
			back := backPort(t, sys)
			want := []string{
				"database: name database memory 200 back " + back,
				"back: name back memory 100 back " + back,
				"front: name front memory 100 back " + back,
			}
			if got := sys.Log(1); !slices.Equal(got, want) {
				t.Errorf("log %q, want %q", got, want)
			}
			checkParts(t, sys)
			if noGroup { // each has its own limit
				checkLimit(t, sys.Parts[0].PID, 200<<20)
				checkLimit(t, sys.Parts[1].PID, 100<<20)
			}
		})
	}
	check("with groups", false)
	check("without groups", true)
}

// Backing processes have cores and memory of their own, are not counted with the others, and are
// all the same sampled as part of the trial.
func TestBacking(t *testing.T) {
	check := func(name string, noGroup bool) {
		t.Run(name, func(t *testing.T) {
			cores, err := host.Cores()
			if err != nil || len(cores) < 2 {
				t.Skipf("%d cores, %v", len(cores), err)
			}
			o := three(t, func(s *service.Service) { s.Run.Processes[0].Backing = true })
			o.Cores, o.Back = cores[1:2], cores[:1]
			sys := serving(t, o, noGroup)
			database, back, front := sys.Parts[0].PID, sys.Parts[1].PID, sys.Parts[2].PID
			within := sys.PIDs()
			slices.Sort(within)
			want := []int{back, front}
			slices.Sort(want)
			if !slices.Equal(within, want) || !slices.Equal(sys.Backing(), []int{database}) ||
				sys.Main() != back {
				t.Errorf("within %v, backing %v, main %d, of %d, %d, %d", within, sys.Backing(),
					sys.Main(), database, back, front)
			}
			on := func(what string, pid int, core ...int) {
				t.Helper()
				var set unix.CPUSet
				if err := unix.SchedGetaffinity(pid, &set); err != nil {
					t.Fatal(err)
				}
				if set.Count() != len(core) || !set.IsSet(core[0]) {
					t.Errorf("%s: %d cores, core %d: %v", what, set.Count(), core[0],
						set.IsSet(core[0]))
				}
			}
			on("database", database, cores[0])
			on("back", back, cores[1])
			on("front", front, cores[1])
			port := backPort(t, sys)
			log := []string{
				"database: name database memory 400 back " + port,
				"back: name back memory 200 back " + port,
				"front: name front memory 200 back " + port,
			}
			if got := sys.Log(1); !slices.Equal(got, log) {
				t.Errorf("log %q, want %q", got, log)
			}
			if noGroup {
				checkLimit(t, database, 400<<20)
				checkLimit(t, back, 200<<20)
			}
			checkBacked(t, sys)
			if err := sys.Move(cores[:2]); err != nil {
				t.Fatal(err)
			}
			on("database of moved ones", database, cores[0])
			on("back that moved", back, cores[0], cores[1])
		})
	}
	check("with groups", false)
	check("without groups", true)
}

// checkBacked checks the probe's reading of a system whose first part is a backing one.
func checkBacked(t *testing.T, sys *processes.System) {
	t.Helper()
	m := marked(t, sys)
	if len(m.Parts) != 3 || m.Processes != 2 {
		t.Fatalf("%d parts, %d processes", len(m.Parts), m.Processes)
	}
	outside := m.Parts[0]
	if outside.CPUNs <= 0 || outside.RSSBytes <= 0 ||
		m.RSSBytes != m.Parts[1].RSSBytes+m.Parts[2].RSSBytes {
		t.Errorf("parts %+v of %d bytes", m.Parts, m.RSSBytes)
	}
	// It is no other load: the lab's time includes its own.
	if own := probe.SelfCPUNs(); m.LabNs < outside.CPUNs || m.LabNs > own+outside.CPUNs {
		t.Errorf("the lab's %d ns, of which its own are %d at most and the database's %d", m.LabNs,
			own, outside.CPUNs)
	}
}

// backPort returns the port on which the process called back was to listen.
func backPort(t *testing.T, sys *processes.System) string {
	t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", sys.Parts[1].PID))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(string(env), "\x00") {
		if port, ok := strings.CutPrefix(name, "PORT="); ok {
			return port
		}
	}
	t.Fatal("back has no port")
	return ""
}

// checkParts compares the probe's parts with the whole: three interpreters have started.
func checkParts(t *testing.T, sys *processes.System) {
	t.Helper()
	m := marked(t, sys)
	if len(m.Parts) != 3 || m.Processes != 3 {
		t.Fatalf("%d parts of %d processes", len(m.Parts), m.Processes)
	}
	rss := int64(0)
	for i, p := range m.Parts {
		if p.Name != sys.Parts[i].Name || p.CPUNs <= 0 || p.Threads < 1 {
			t.Errorf("part %+v", p)
		}
		rss += p.RSSBytes
	}
	if rss != m.RSSBytes { // one reading serves both
		t.Errorf("parts have %d bytes, the whole %d", rss, m.RSSBytes)
	}
}

// checkLimit reads from the kernel how much private memory a process may have.
func checkLimit(t *testing.T, pid int, want int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Max data size"); ok {
			if got := strings.Fields(rest)[0]; got != fmt.Sprint(want) {
				t.Errorf("process %d may have %s bytes, want %d", pid, got, want)
			}
		}
	}
}

// Servers put their workers into groups of their own: they belong to the part all the same, and are
// counted and ended with it, with cgroups and without.
func TestWorkersWithGroupsOfTheirOwn(t *testing.T) {
	check := func(name string, noGroup bool) {
		t.Run(name, func(t *testing.T) {
			o := three(t, func(s *service.Service) {
				s.Run.Processes[0].Command = []string{"sh", "-c",
					"setsid python3 listen.py & wait"}
			})
			sys := serving(t, o, noGroup)
			m := marked(t, sys)
			// The shell, its interpreter and two more; the shell alone has 2 MiB at most.
			if m.Processes != 4 || m.Parts[0].Threads != 2 || m.Parts[0].RSSBytes < 5<<20 {
				t.Errorf("%d processes %v, the first part %+v", m.Processes, sys.PIDs(),
					m.Parts[0])
			}
			pids := sys.PIDs()
			if err := sys.Stop(time.Second); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				testsets.Eventually(t, fmt.Sprintf("the end of process %d", pid), func() bool {
					stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
					return err != nil || strings.Contains(string(stat), ") Z ")
				})
			}
		})
	}
	check("with groups", false)
	check("without groups", true)
}

// Errors of one process have its name and its own last output.
func TestSystemFaults(t *testing.T) {
	check := func(name string, change func(*service.Service), want, log string) {
		t.Run(name, func(t *testing.T) {
			o := three(t, change)
			sys, err := start(t, o, false)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want %s", err, want)
			}
			if sys == nil {
				if log != "" {
					t.Error("nothing is left to ask for its log")
				}
				return
			}
			lines := sys.Log(9)
			part, _, _ := strings.Cut(log, ":")
			if got := filepath.Base(sys.LogFile()); got != "t."+part+".log" {
				t.Errorf("the log is %s, want that of %s", got, part)
			}
			if got := lines[len(lines)-1]; !strings.Contains(got, log) {
				t.Errorf("the last line is %q, want %s", got, log)
			}
		})
	}
	fails := func(i int) func(*service.Service) {
		return func(s *service.Service) {
			s.Run.Processes[i].Command = []string{"sh", "-c", "echo cannot begin; exit 3"}
		}
	}
	check("the first ends", fails(0), "wait for process database: ", "database: cannot begin")
	check("a later one ends", fails(1), "wait for process back: ", "back: cannot begin")
	check("one is missing", func(s *service.Service) {
		s.Run.Processes[1].Command = []string{"./none"}
	}, "back: launch t: ", "database: name database")
	check("the first is missing", func(s *service.Service) {
		s.Run.Processes[0].Command = []string{"./none"}
	}, "database: launch t: ", "")
}

// When any part ends, the system has ended, and names it.
func TestSystemEnds(t *testing.T) {
	o := three(t, func(s *service.Service) {
		s.Run.Processes[0].Command = []string{"sh", "-c",
			"python3 listen.py & while [ ! -e end ]; do sleep 0.01; done; exit 4"}
	})
	sys, err := start(t, o, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Built.Dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	testsets.Eventually(t, "the end", func() bool {
		select {
		case <-sys.Exited():
			return true
		default:
			return false
		}
	})
	if got := sys.Exit(); got != "database: exit status 4" {
		t.Errorf("exit %q", got)
	}
}

// Stopping one part stops no other: the groups are the first one's.
func TestPartsStopAlone(t *testing.T) {
	sys, err := start(t, three(t, func(*service.Service) {}), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Parts[1].Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sys.Parts[0].Exited():
		t.Errorf("the first part ended with the second: %s", sys.Parts[0].Exit())
	default:
	}
	if pids := sys.PIDs(); !slices.Contains(pids, sys.Parts[0].PID) ||
		slices.Contains(pids, sys.Parts[1].PID) {
		t.Errorf("processes %v are left of %d and %d", pids, sys.Parts[0].PID, sys.Parts[1].PID)
	}
}

// A process cannot share the limits of another launcher's process: it would have them a second
// time.
func TestBesideAStranger(t *testing.T) {
	_, err := (&process.Launcher{}).Launch(t.Context(), launch.Spec{Name: "t",
		Args: []string{
			"sh",
		}, Beside: &processes.System{}, LogFile: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("error %v", err)
	}
}

// Limits of all are listed once, those of one with its name.
func TestLimitsOfASystem(t *testing.T) {
	sys, err := start(t, three(t, func(*service.Service) {}), true)
	if err != nil {
		t.Fatal(err)
	}
	inForce, missing := sys.Limits()
	held := wording.Limits(inForce)
	want := []string{"database: private memory 209715200 (rlimit)",
		"back: private memory 104857600 (rlimit)", "front: private memory 104857600 (rlimit)"}
	for _, limit := range want {
		if !slices.Contains(held, limit) {
			t.Errorf("in force %q, want %s", held, limit)
		}
	}
	// No cores were requested, so that no part is limited to one core: reported once.
	if len(missing) != 1 || missing[0].Kind != record.LimitCPU || missing[0].Value != 1 ||
		missing[0].Process != "" {
		t.Errorf("missing %+v", missing)
	}
}

// Ports are never returned twice, however often the kernel offers one.
func TestDistinct(t *testing.T) {
	offers := []int{7, 7, 7, 8, 7, 8, 9}
	next := processes.Distinct(func() (int, error) {
		p := offers[0]
		offers = offers[1:]
		return p, nil
	})
	for _, want := range []int{7, 8, 9} {
		if got, err := next(); got != want || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	stuck := processes.Distinct(func() (int, error) { return 7, nil })
	_, first := stuck()
	_, second := stuck()
	if first != nil || second == nil {
		t.Errorf("got %v, then %v", first, second)
	}
}

var _ launch.Process = (*processes.System)(nil)

// No returned port is in use, in UDP or TCP, or in the kernel's range for clients.
func TestFreePort(t *testing.T) {
	given := func() int {
		t.Helper()
		port, err := processes.FreePort()
		if err != nil || port < 10_000 || port >= 30_000 {
			t.Fatalf("port %d, error %v", port, err)
		}
		return port
	}
	var l net.ListenConfig
	for range 20 {
		port := given()
		at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
		tcp, err := l.Listen(t.Context(), "tcp", at(1))
		if err != nil {
			continue // in use by another program, or the last one
		}
		defer tcp.Close()
		if udp, err := l.ListenPacket(t.Context(), "udp", at(2)); err == nil {
			defer udp.Close()
		}
		if got := given(); got == port || got == port+1 || got == port+2 {
			t.Errorf("%d after %d, of which the next two are taken", got, port)
		}
	}
}
