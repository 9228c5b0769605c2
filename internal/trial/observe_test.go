package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/profile"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/record"
)

// listener is a collector that notes its calls, and has 10 spans in each window.
type listener struct {
	w     *world
	trial telemetry.Trial
	fails bool
}

func (h *listener) Endpoints() telemetry.Endpoints {
	return telemetry.Endpoints{GRPC: "127.0.0.1:1", HTTP: "127.0.0.1:2", Zipkin: "127.0.0.1:3"}
}

func (h *listener) Begin(_ context.Context, t telemetry.Trial) error {
	h.trial = t
	h.w.note("begin " + t.ID)
	if h.fails {
		return errors.New("it is gone")
	}
	return nil
}

func (h *listener) Scrape(_ context.Context, t telemetry.Trial) error {
	h.trial = t
	h.w.note("scrape")
	return nil
}

func (h *listener) Mark(m telemetry.Mark) { h.w.note(m.Kind + " " + m.Name) }

func (h *listener) End(context.Context) telemetry.Report {
	h.w.note("end")
	return telemetry.Report{
		Telemetry: record.Telemetry{Signals: []record.Signal{{Name: record.Spans, Received: 20}}},
		Loads:     map[string]record.WindowTelemetry{"peak": {Spans: 10}},
	}
}

// sampler takes a profile of one sample, or fails.
type sampler struct {
	w     *world
	fails bool
}

func (s *sampler) Name() string               { return "sampler" }
func (s *sampler) Kinds() []string            { return []string{"cpu"} }
func (s *sampler) Fits(profile.Subject) error { return nil }
func (s *sampler) Start(context.Context, profile.Subject, string) (profile.Session, error) {
	s.w.note("profile")
	if s.fails {
		return nil, errors.New("not permitted")
	}
	return s, nil
}

func (s *sampler) Stop(context.Context) (*pprof.Profile, error) {
	s.w.note("profiled")
	stacks := profile.NewStacks(profile.CPU)
	stacks.Add([]string{"main", "work"}, 7, 7e6)
	p := stacks.Profile()
	profile.Describe(p, "sampler 1")
	return p, nil
}

// watching is an experiment with further lines in its suite.
func (w *world) watching(more string, change func(*suite.Suite)) experiment {
	w.t.Helper()
	e := w.experiment("a")
	s, err := suite.Read("test.yaml", []byte(suiteText+more))
	if err != nil {
		w.t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	if e.Plan, err = s.Plan([]suite.Target{{Name: "a", Service: "a", Mode: "virtual",
		Runtime: "jvm", Builds: []string{"otel"}, Contracts: []string{"hello"}}}); err != nil {
		w.t.Fatal(err)
	}
	subject := e.Subjects["a"]
	subject.Target.Runtime = "jvm"
	e.Subjects["a"] = subject
	return e
}

// An agent and observers: the collector is called before the processes start and after they ended;
// the profile is taken around the load, and the garbage collector's log is read.
func TestObservedLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		home := &listener{w: w}
		w.lab.Home = home
		w.lab.Profiler = func(profile.Subject, string, string) (profile.Collector, error) {
			return &sampler{w: w}, nil
		}
		var env []string
		var shares []float64
		plain := w.launcher.Start
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			env = s.Env
			return plain(s)
		}
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if !trialtest.IsWarmUp(s) {
				shares = append(shares, s.Trace.Share)
				s.Observer = load.Observers{s.Observer, load.WindowFunc(func(open bool) {
					if open && s.Name == "peak" {
						w.collect(t)
					}
				})}
			}
			return w.steadyLoad(ctx, s)
		}
		e := w.watching("observe: {telemetry: true, gc: true, traces: 10%, "+
			"profile: [cpu]}\nvariants: "+
			"[{name: agent, env: {X: '{otlpGrpc} {trial} {service} {agent}'}}]\n",
			func(s *suite.Suite) { s.Variants[0].Scrape = "/metrics" })
		e.Plan.Trials = e.Plan.Trials[slices.IndexFunc(e.Plan.Trials, func(x suite.Trial) bool {
			return x.Variant == "agent"
		}):][:1]
		e.Rides = map[string]trial.Ride{"agent": {Path: "/a.jar", Agent: &record.Agent{Name: "x"}}}
		records, err := w.run(context.Background(), e)
		if err != nil || records[0].Failure != nil {
			t.Fatal(err, records[0].Failure)
		}
		r := records[0]
		want := []string{"begin", "launch", "phase ready", "watch", "phase warmup", "profile",
			"open peak", "close peak", "profiled", "open half", "stop", "end"}
		at := 0
		for _, n := range w.notes {
			if at < len(want) && strings.HasPrefix(n, want[at]) {
				at++
			}
		}
		if at < len(want) {
			t.Errorf("the life was %q: it lacks %q", w.notes, want[at])
		}
		id := r.Trial
		if got := "X=127.0.0.1:1 " + id + " a /a.jar"; !slices.Contains(env, got) {
			t.Errorf("the environment is %q, want %q in it", env, got)
		}
		if fmt.Sprint(shares) != "[0.1 0.1]" {
			t.Errorf("shares %v of requests are traced", shares)
		}
		checkObserved(t, w, r)
	})
}

// collect writes a line of a JVM's garbage collector: a pause of 4 ms has just ended.
func (w *world) collect(t *testing.T) {
	t.Helper()
	offset, err := clock.Kernel()
	at := offset + clock.Mono() + 5e6
	log := fmt.Sprintf("[%dns][gc] Using G1\n", at-1e6)
	log += fmt.Sprintf("[%dns][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) "+
		"24M->4M(64M) 3.900ms\n", at)
	log += fmt.Sprintf("[%dns][safepoint] Safepoint \"G1CollectForAllocation\", Time since last: "+
		"100 ns, Reaching safepoint: 50000 ns, Cleanup: 0 ns, At safepoint: 3950000 ns, "+
		"Total: 4000000 ns\n", at+1000)
	dir := filepath.Join(w.dir, "logs")
	for _, id := range []string{"b1-01-a-agent", "b1-02-a-agent"} {
		file := filepath.Join(dir, id+".a.7.gc.log")
		err = errors.Join(err, os.WriteFile(file, []byte(log), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func checkObserved(t *testing.T, w *world, r *record.Record) {
	t.Helper()
	if r.Telemetry == nil || r.Telemetry.Signals[0].Received != 20 {
		t.Errorf("telemetry %+v", r.Telemetry)
	}
	// In this world the marks are at the window's edges: a second.
	if told := r.Loads[0].Telemetry; told == nil || told.Spans != 10 || told.WindowNs != 1e9 ||
		r.Loads[1].Telemetry != nil {
		t.Errorf("told of the windows: %+v, %+v", told, r.Loads[1].Telemetry)
	}
	if len(r.Profiles) != 2 || r.Profiles[0].Samples != 7 || r.Profiles[0].Tool != "sampler 1" {
		t.Fatalf("profiles %+v", r.Profiles)
	}
	if _, err := os.Stat(filepath.Join(w.dir, r.Profiles[0].File)); err != nil {
		t.Error(err)
	}
	if g := r.Loads[0].GC; g == nil || g.PauseNs != 4e6 || g.Collections != 1 ||
		g.HeapAfterBytes != 4<<20 {
		t.Errorf("collections %+v", g)
	}
	if len(r.Provenance.Agents) != 1 || strings.Join(r.Instruments, "; ") !=
		"GC logs; 10% of requests traced; home of telemetry; profiled: cpu by sampler" {
		t.Errorf("agents %+v, watched %q", r.Provenance.Agents, r.Instruments)
	}
	if home := w.lab.Home.(*listener); len(home.trial.Scrape) != 0 {
		t.Errorf("pages %+v of a variant without a port for them", home.trial.Scrape)
	}
}

// Failures of observers fail no trial, and the record describes them.
func TestWatchingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Home = &listener{w: w, fails: true}
		w.lab.Profiler = func(profile.Subject, string, string) (profile.Collector, error) {
			return &sampler{w: w, fails: true}, nil
		}
		records, err := w.run(context.Background(),
			w.watching("observe: {gc: true, profile: [cpu]}\n", nil))
		if err != nil || records[0].Outcome != record.Measured {
			t.Fatal(err, records[0].Failure)
		}
		if p := records[0].Profiles; len(p) != 2 || p[0].Failed != "not permitted" ||
			p[0].File != "" {
			t.Errorf("profiles %+v", p)
		}
		if gc := records[0].Loads[0].GC; gc != nil {
			t.Errorf("collections %+v out of nothing", gc)
		}
	})
}

// An agent that sends telemetry, without a collector: the trial fails before anything is launched.
func TestNoHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.watching("variants: [{name: agent, env: {X: y}}]\n",
			func(s *suite.Suite) { s.Variants[0].Home = true })
		records, err := w.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, r := range records {
			if r.Failure != nil && r.Target.Variant == "agent" &&
				strings.Contains(r.Failure.Error, "telemetry collector does not run") {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d trials say that there is no home, want 1", failed)
		}
	})
}

// low is a load that is a share of the capacity.
const low = "  - {name: low, model: open, rate: 20% of capacity, connections: 2}\n"

// All variants get shares of the pilot's throughput, 1,000 a second: 200.
func TestSharesOfTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.watching(low, nil)
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 2 {
			t.Fatal(err, len(records))
		}
		if p := records[0]; p.Role != record.Pilot || len(p.Loads) != 1 ||
			p.Loads[0].Name != suite.CapacityLoad {
			t.Errorf("the pilot is %+v", p)
		}
		l := records[1].Loads[2]
		if l.RatePerS != rate/5 || l.RateOf != "20% of capacity" {
			t.Errorf("offered %g/s, %s", l.RatePerS, l.RateOf)
		}
	})
}

// The collector gets no calls for trials without telemetry.
func TestHomeLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Home = &listener{w: w}
		records, err := w.run(context.Background(), w.watching("observe: {gc: true}\n", nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range w.notes {
			if n == "end" || strings.HasPrefix(n, "begin") || strings.HasPrefix(n, "open") {
				t.Errorf("the home was told %q", n)
			}
		}
		if records[0].Telemetry != nil {
			t.Errorf("telemetry %+v of a trial that sends none", records[0].Telemetry)
		}
	})
}

// The rate of an INVALID pilot is no capacity: here it delivered half of what was sent.
func TestInvalidPilot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			res, err := w.steadyLoad(ctx, s)
			if s.Name == suite.CapacityLoad && err == nil {
				res.Errors.Status = res.Done / 2
				trialtest.Answer(&res.Load, res.Done-res.Errors.Status)
			}
			return res, err
		}
		records, err := w.run(context.Background(), w.watching(low, nil))
		if err != nil {
			t.Fatal(err)
		}
		if g := records[0].Verdict.Grade; g != record.Invalid {
			t.Fatalf("the pilot is %s", g)
		}
		if f := records[1].Failure; f == nil || !strings.Contains(f.Error, "is INVALID") {
			t.Errorf("failure %+v", f)
		}
	})
}

// Without a pilot's rate there is no share to offer.
func TestFailedPilot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.watching(low, nil)
		first := true
		w.handler = func(string) (http.Handler, time.Duration, error) {
			if first {
				first = false
				return nil, 0, errors.New("no")
			}
			return fake.Hello("virtual"), 0, nil
		}
		records, err := w.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if f := records[1].Failure; f == nil || !strings.Contains(f.Error, "the calibration run") {
			t.Errorf("failure %+v", f)
		}
	})
}
