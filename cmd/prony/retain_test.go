package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/service"
	"prony.example/internal/trial"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

// grouped is a fake process in a cgroup, with a number.
type grouped struct{ launch.Process }

func (grouped) Main() int              { return 4711 }
func (grouped) Groups() []launch.Group { return []launch.Group{{Dir: "/cgroup/prony"}} }

// boxed is such a process in a container.
type boxed struct{ grouped }

func (boxed) Container() string { return "prony-1-2" }

// heldOf returns a failed trial's service, which starts after a moment or cannot.
func heldOf(t *testing.T, wrap func(launch.Process) launch.Process, err error) trial.Held {
	t.Helper()
	l := &fake.Launcher{Note: func(string) {}}
	l.Start = func(launch.Spec) (http.Handler, time.Duration, error) {
		return fake.Hello("virtual"), 0, err
	}
	s := &service.Service{Name: "a", Run: service.Run{Command: []string{"a"}},
		Targets: []service.Target{{Name: "a"}}}
	sys, err := processes.Starter{Launcher: wrapping{l, wrap}, Port: func() (int, error) {
		return 8080, nil
	}}.Start(t.Context(), processes.Order{Name: "b1-01-a", Service: s, Target: s.Targets[0],
		Built: &service.Built{Dir: "/built"}, LogFile: "/run/a.log",
		Values: service.Values{CPUs: 1, MemoryBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	return trial.Held{Trial: "b1-01-a", Service: sys, Dir: "/built",
		Failure: record.Failure{Step: "verify", Error: "it lies"}}
}

type wrapping struct {
	launch.Launcher
	wrap func(launch.Process) launch.Process
}

func (w wrapping) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p, err := w.Launcher.Launch(ctx, s)
	return w.wrap(p), err
}

// The leftovers of a failed trial are named, and the program waits while the service runs: until a
// line is typed, the run is interrupted or the service ends.
func TestHold(t *testing.T) {
	process := func(p launch.Process) launch.Process { return grouped{p} }
	container := func(p launch.Process) launch.Process { return boxed{grouped{p}} }
	const failed = "b1-01-a failed in step verify: it lies\n"
	const runs = failed + "  listens  127.0.0.1:8080\n  process  4711\n  log      /run/a.log\n"
	check := func(name, want string, wrap func(launch.Process) launch.Process, fails error,
		end func(r *retainer, h trial.Held, interrupt func())) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				var out bytes.Buffer
				null, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				defer null.Close()
				r := &retainer{tell: &progressLine{w: &out}, in: null}
				h := heldOf(t, wrap, fails)
				synctest.Wait()
				if name == "Enter" {
					r.typed = make(chan struct{})
				}
				done := make(chan struct{})
				go func() { r.hold(ctx, h); close(done) }()
				synctest.Wait()
				if end != nil {
					select {
					case <-done:
						t.Fatalf("it did not wait: %s", &out)
					default:
					}
					end(r, h, interrupt)
				}
				<-done
				if !strings.Contains(out.String(), want) {
					t.Errorf("it said\n%swant\n%s", &out, want)
				}
				if err := h.Service.Stop(time.Second); err != nil {
					t.Error(err)
				}
			})
		})
	}
	interrupted := func(_ *retainer, _ trial.Held, interrupt func()) { interrupt() }
	check("Ctrl-C", runs+"  folder   /built\n  cgroup   /cgroup/prony\n"+
		"  the service still runs; Ctrl-C ends the service and the run\n", process, nil,
		interrupted)
	check("container", runs+"  named    prony-1-2\n  cgroup   /cgroup/prony\n", container, nil,
		interrupted)
	check("Enter", "Enter ends the service and continues the run, Ctrl-C ends the service and "+
		"the run\n", process, nil,
		func(r *retainer, _ trial.Held, _ func()) { r.typed <- struct{}{} })
	check("killed", "the run\n  the service has ended: exit status 0\n", process, nil,
		func(_ *retainer, h trial.Held, _ func()) {
			h.Service.Stop(time.Second) //nolint:errcheck // stopping a fake one cannot fail
		})
	check("gone", failed+"  log      /run/a.log\n  folder   /built\n  cgroup   /cgroup/prony\n"+
		"  the service has ended: exit status 1\n", process, errors.New("no"), nil)
}
