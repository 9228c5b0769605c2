package processes_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// stops are numbers of stops of a service and their lengths, under a steady load.
type stops []struct {
	times     int
	stop, run time.Duration
}

// short stops are those of slices, long ones those of the warm-up of others.
var (
	short = stops{{35, 100 * time.Millisecond, running}, {8, 300 * time.Millisecond, running},
		{5, time.Second, running}, {2, 5 * time.Second, running}}
	long = stops{{3, 35 * time.Second, 5 * time.Second}}
)

// stoppedTargets include each language, each framework's own watchdog and each runtime of the
// catalog.
var stoppedTargets = []string{
	"go-nethttp", "go-fiber", "java-netty", "java-vertx", "java-tomcat:virtual",
	"java-spring:platform", "java-spring:aot-platform", "java-quarkus:reactive", "java-pekko",
	"java-petclinic:h2", "java-petclinic:postgres", "node-express", "node-fastify",
	"python-flask", "python-django:platform", "python-django:reactive", "python-fastapi",
	"rust-axum", "rust-ntex",
}

// A service that is stopped repeatedly, for up to 5 s, answers all requests, including the running
// ones, in the same processes; docs/slices.md has the figures.
func TestStoppedServices(t *testing.T) {
	eachStopped(t, func(t *testing.T, s *service.Service, target service.Target,
		built *service.Built, way string) {
		stopAgainAndAgain(t, s, target, built, way, short)
	})
}

// Services also survive longer stops if they doze: after half a minute without CPU time Gunicorn
// kills its workers, Uvicorn after 5 s.
func TestServicesStoppedForLong(t *testing.T) {
	eachStopped(t, func(t *testing.T, s *service.Service, target service.Target,
		built *service.Built, way string) {
		stopAgainAndAgain(t, s, target, built, way, long)
	})
}

// eachStopped calls do for each target, with each way to stop it.
func eachStopped(t *testing.T, do func(t *testing.T, s *service.Service, target service.Target,
	built *service.Built, way string)) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	services, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	tools := service.FindTools(t.Context())
	for _, full := range stoppedTargets {
		t.Run(full, func(t *testing.T) {
			s, target := find(t, services, full)
			testsets.Long(t, "services that are stopped", testsets.Needs{
				Files: []string{"services/" + s.Name, "internal/launch/freeze"}})
			b := &service.Builder{Root: root, Tools: tools, Progress: func(l string) { t.Log(l) }}
			built, err := b.Build(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Parallel()
			for _, way := range []string{record.FreezeCgroup, record.FreezeSignals} {
				t.Run(way, func(t *testing.T) {
					t.Parallel()
					do(t, s, target, built, way)
				})
			}
		})
	}
}

// find returns the target with a name, SERVICE or SERVICE:TARGET, and its service: each of several
// builds is a service.
func find(t *testing.T, services []*service.Service, full string) (*service.Service,
	service.Target) {
	t.Helper()
	name, targetName, _ := strings.Cut(full, ":")
	for _, s := range services {
		for _, target := range s.Targets {
			if s.Name == name && (targetName == "" || target.Name == targetName) {
				return s, target
			}
		}
	}
	t.Fatalf("there is no target %s", full)
	return nil, service.Target{}
}

func stopAgainAndAgain(t *testing.T, s *service.Service, target service.Target,
	built *service.Built, way string, all stops) {
	n := len(s.Processes(target))
	sys := serving(t, processes.Order{Name: "stopped", Service: s, Target: target, Built: built,
		LogFile: filepath.Join(t.TempDir(), "t.log"), Copies: t.TempDir(),
		Values: service.Values{CPUs: 2, MemoryBytes: int64(n) << 30}}, false)
	f, err := freeze.New(sys, way)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	settle(t, sys)
	before, said := sys.PIDs(), len(sys.Log(1000))
	idle := idleShare(sys, time.Second)
	result := underWay(t, s, target, sys, all)
	var freezes []int64
	for _, x := range all {
		for range x.times {
			freezes = append(freezes, stopFor(t, f, x.stop))
			time.Sleep(x.run)
		}
	}
	r := <-result
	stopFor(t, f, 5*time.Second)
	after := idleShare(sys, time.Second)
	slices.Sort(freezes)
	lines := sys.Log(1000)
	t.Logf("| %s | %s | %d processes, %d threads | %d answers | %d errors | %d reconnects | idle "+
		"%.1f %%, after 5 s stopped %.1f %% | freeze %d µs, at most %d µs |", s.Full(target), way,
		len(before), threadsOf(before), r.Answered, r.Errors.Total(), r.Reconnects, 100*idle,
		100*after, freezes[len(freezes)/2]/1000, freezes[len(freezes)-1]/1000)
	for _, line := range lines[min(said, len(lines)):] {
		t.Logf("it wrote: %s", line)
	}
	if r.Errors.Total() > 0 || r.Answered == 0 {
		t.Errorf("%d answers, errors %+v", r.Answered, r.Errors)
	}
	if now := sys.PIDs(); !slices.Equal(before, now) {
		t.Errorf("its processes were %v, now %v", before, now)
	}
}

// running is how long a service runs between two short stops.
const running = 150 * time.Millisecond

// underWay offers 100 requests a second for the time of all stops.
func underWay(t *testing.T, s *service.Service, target service.Target,
	sys *processes.System, all stops) <-chan *load.Result {
	t.Helper()
	path := s.Run.Health
	if slices.Contains(s.Contracts, "hello") {
		path = "/hello/" + target.Mode + "?key=7"
	}
	var total time.Duration
	for _, x := range all {
		total += time.Duration(x.times) * (x.stop + x.run)
	}
	result := make(chan *load.Result, 1)
	go func() {
		r, err := load.Run(t.Context(), load.Spec{Address: sys.Addr(), Model: record.Open,
			Connections: 8, Most: 8, Seed: 1, Window: total, Drain: 20 * time.Second,
			Timeout:  time.Minute,
			Schedule: pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(100)},
			Scenario: load.Scenario{Requests: []load.Request{{Method: "GET", Path: path,
				WantSize: -1}}}})
		if err != nil {
			t.Error(err)
			r = &load.Result{}
		}
		result <- r
	}()
	return result
}

// stopFor stops a target for a time, and returns how long it took until it was stopped, in ns.
func stopFor(t *testing.T, f *freeze.Freezer, d time.Duration) int64 {
	t.Helper()
	began := clock.Mono()
	err := f.Freeze()
	ns := clock.Mono() - began
	for ; d > 4*time.Second; d -= 4 * time.Second { // as trials do
		time.Sleep(4 * time.Second)
		err = errors.Join(err, f.Thaw())
		time.Sleep(100 * time.Millisecond)
		err = errors.Join(err, f.Freeze())
	}
	time.Sleep(d)
	if err := errors.Join(err, f.Thaw()); err != nil {
		t.Fatal(err)
	}
	return ns
}

// settle waits until a target has had the same processes, and written nothing, for two seconds.
func settle(t *testing.T, sys *processes.System) {
	t.Helper()
	last, since := "", clock.Mono()
	for end := clock.Mono() + int64(2*time.Minute); clock.Mono() < end; {
		now := fmt.Sprint(sys.PIDs(), len(sys.Log(1000)))
		if now != last {
			last, since = now, clock.Mono()
		} else if clock.Mono()-since > int64(2*time.Second) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it does not come to rest")
}

// idleShare returns the share of a core that a target uses in a time without load.
func idleShare(sys *processes.System, d time.Duration) float64 {
	c := cpuclock.New(sys.PIDs)
	before, began := c.Read(), clock.Mono()
	time.Sleep(d)
	c.Refresh()
	return float64(c.Read()-before) / float64(clock.Mono()-began)
}

func threadsOf(pids []int) (n int) {
	return len(cgroup.Tasks(pids, func(int, int) bool { return true }))
}
