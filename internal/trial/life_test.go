package trial_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
	"prony.example/stats"
)

// world is a lab in which nothing is real: services are handlers in this process, load is
// arithmetic, time is the bubble's. It notes events in order.
type world struct {
	t        *testing.T
	dir      string
	notes    []string
	handler  func(name string) (http.Handler, time.Duration, error)
	launcher *fake.Launcher
	offer    func(ctx context.Context, s load.Spec) (*load.Result, error)
	roles    func() probe.Roles // the compilers' usage; nil: unknown

	unfavoured func(on bool) error // result of favouring threads
	lab        *trial.Lab
}

const rate = 1000 // rate of the mock load in requests/s

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	hello, after := fake.Hello("virtual"), 40*time.Millisecond
	w.handler = func(string) (http.Handler, time.Duration, error) { return hello, after, nil }
	start := func(s launch.Spec) (http.Handler, time.Duration, error) { return w.handler(s.Name) }
	w.launcher = &fake.Launcher{Start: start, Note: w.note}
	w.offer = w.steadyLoad
	w.lab = &trial.Lab{
		Launcher: w.launcher, Driver: w.driver, Dial: w.launcher.Dial, Dir: w.dir,
		Layout: host.Layout{Service: []int{1}, Load: []int{0}},
		Port:   func() (int, error) { return 8080, nil },
		Watch: func(launch.Process, time.Duration) (trial.Watcher, error) {
			w.note("watch")
			x := newWatcher(w)
			return &x, nil
		},
		Observe: func(e trial.Event) {
			if e.Record != nil {
				w.note("record " + e.Record.Outcome)
			}
		},
	}
	return w
}

func (w *world) note(s string) { w.notes = append(w.notes, s) }

// driver returns the world's only driver.
func (w *world) driver(name, _ string, _ *nethttp.Config) (trial.Driver, error) {
	if name != "" {
		return nil, fmt.Errorf("find driver %q: there is none", name)
	}
	return w, nil
}

// Offer implements trial.Driver.
func (w *world) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	w.note("load " + s.Name)
	return w.offer(ctx, s)
}

// steadyLoad responds at a constant rate.
func (w *world) steadyLoad(ctx context.Context, s load.Spec) (*load.Result, error) {
	return trialtest.Load{Rate: rate}.Offer(ctx, s)
}

type watcher struct {
	w  *world
	at int64
}

// newWatcher returns a watcher whose mark before the first load is at 0, and whose further ones are
// at 2, 4, 6 … s.
func newWatcher(w *world) watcher { return watcher{w: w, at: -2e9} }

func (x *watcher) Mark() probe.Mark {
	x.at += 2e9
	return probe.Mark{TNs: x.at, CPUNs: x.at / 2, Source: "proc", RSSBytes: 7 << 20}
}
func (x *watcher) MarkPSS() probe.Mark  { return x.Mark() }
func (x *watcher) Series() probe.Series { return probe.Series{} }
func (x *watcher) Roles() probe.Roles {
	if x.w == nil || x.w.roles == nil {
		return probe.Roles{}
	}
	return x.w.roles()
}
func (x *watcher) Stop() (probe.Series, record.Cost) {
	x.w.note("unwatch")
	return probe.Series{}, record.Cost{}
}

const suiteText = `
name: test
question: Does the lab live?
contract: hello
blocks: 1
timeout: 1s
limits: {cpus: 1, memory: 64MiB}
warmup: {connections: 2, min: 1s, max: 5s}
scenarios:
  - name: read
    keys: [1, 50000]
    requests:
      - request: GET /hello/{mode}?key={key}
        expect: {body: "Hello from REST value-{key}"}
loads:
  - {name: peak, model: closed, connections: 2, measure: 1s}
  - {name: half, model: open, rate: 50% of peak, connections: 2, measure: 1s}
`

// experiment has parts that a test may change before its trials are resolved.
type experiment struct {
	Plan     *suite.Plan
	Subjects map[string]trial.Subject // by target
	Rides    map[string]trial.Ride    // by variant
	Lacking  map[string]error         // by target or trial
}

func (e experiment) resolve() trial.Experiment {
	out := trial.Experiment{Head: record.Run{ID: "r"}}
	for _, t := range e.Plan.Trials {
		x := trial.Resolve(e.Plan.Suite, t)
		x.Subject, x.Ride = e.Subjects[t.Target], e.Rides[t.Variant]
		x.Lacking = cmp.Or(e.Lacking[t.Target], e.Lacking[t.ID])
		out.Trials = append(out.Trials, x)
	}
	for _, t := range e.Plan.Reserve {
		x := trial.Resolve(e.Plan.Suite, t)
		x.Subject = e.Subjects[t.Target]
		out.Reserve = append(out.Reserve, x)
	}
	return out
}

func (w *world) experiment(names ...string) experiment {
	w.t.Helper()
	s, err := suite.Read("test.yaml", []byte(suiteText))
	if err != nil {
		w.t.Fatal(err)
	}
	e := experiment{Subjects: map[string]trial.Subject{}, Lacking: map[string]error{}}
	var catalog []suite.Target
	for _, n := range names {
		svc := &service.Service{Name: n, Contracts: []string{"hello"}, Run: service.Run{
			Command: []string{n}, Ready: "/ready", Health: "/ready"}}
		t := service.Target{Name: "virtual", Mode: "virtual", Runtime: "native"}
		svc.Targets = []service.Target{t}
		e.Subjects[n] = trial.Subject{Service: svc, Target: t, Built: &service.Built{Dir: w.dir}}
		catalog = append(catalog, suite.Target{
			Name: n, Service: n, Mode: "virtual", Contracts: svc.Contracts})
	}
	if e.Plan, err = s.Plan(catalog); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// run runs the experiment in a bubble and returns its records as they are on disk.
func (w *world) run(ctx context.Context, e experiment) ([]*record.Record, error) {
	w.t.Helper()
	_, err := w.lab.Run(ctx, e.resolve())
	_, records, bad, readErr := record.Read(w.dir)
	if readErr != nil || len(bad) > 0 {
		w.t.Fatal(readErr, bad)
	}
	return records, err
}

// A warm-up without time beyond its minimum is also judged.
func TestWarmUpOfAFixedLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.experiment("a")
		// A real load reports last before its end, so that no report comes after the minimum.
		e.Plan.Suite.Warmup.Min = e.Plan.Suite.Warmup.Max + 1
		records, err := w.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if got := records[0].Warmup; !got.Steady ||
			got.DurationNs != int64(e.Plan.Suite.Warmup.Max) {
			t.Errorf("warm-up %+v, want steady after all of it", got)
		}
	})
}

// The rate is steady from the beginning; the compilers are busy for a while.
func TestWarmUpWaitsForCompilers(t *testing.T) {
	check := func(turn string, busy, want time.Duration, steady bool, silentAt time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			began := int64(0)
			w.roles = func() probe.Roles { // half a core while they are busy
				if began == 0 {
					began = clock.Mono()
				}
				ran := min(clock.Mono()-began, int64(busy))
				return probe.Roles{Named: true, CompilerNs: 1 + ran/2}
			}
			e := w.experiment("a")
			e.Plan.Suite.Warmup.Compilers = turn
			records, err := w.run(context.Background(), e)
			if err != nil {
				t.Fatal(err)
			}
			got := records[0].Warmup
			if took := time.Duration(got.DurationNs); took != want || got.Steady != steady ||
				got.CompilersIdleAtNs != int64(silentAt) {
				t.Errorf("busy for %v: warm after %v, want %v; %+v", busy, took, want, got)
			}
		})
	}
	const tick = 100 * time.Millisecond // from the load's begin to the first reading
	check("equal", 0, 2*time.Second+tick, true, tick)
	// Their last 100 ms take 50 ms of a core, which is more than 2 % of two seconds.
	check("equal", time.Second, 3*time.Second+tick, true, time.Second+tick)
	check("equal", time.Minute, 5*time.Second, false, -1)
	// Once they are idle, or two fifths of the time are over, the connections are renewed, twice.
	check("", 0, 4*time.Second+6*tick, true, 2*time.Second+6*tick)
	check("", time.Second, 4*time.Second+6*tick, true, 2*time.Second+6*tick)
	check("", time.Minute, 5*time.Second, false, -1)
}

// Compilers are busy for the first second. With all cores the load continues until they have been
// idle for two seconds, then on the service's own until the rate keeps its level for two more.
func TestWarmUpOnAllCores(t *testing.T) {
	check := func(name, runtime string, most time.Duration, change func(*world), moves []string,
		want func(*record.Record) bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				began := int64(0)
				w.roles = func() probe.Roles {
					if began == 0 {
						began = clock.Mono()
					}
					ran := min(clock.Mono()-began, int64(time.Second))
					return probe.Roles{Named: true, CompilerNs: 1 + ran/2}
				}
				change(w)
				e := w.experiment("a")
				e.Plan.Suite.Warmup.Cores = suite.AllCores
				e.Plan.Suite.Warmup.Max = suite.Duration(most)
				subject := e.Subjects["a"]
				subject.Target.Runtime = runtime
				e.Subjects["a"] = subject
				records, err := w.run(context.Background(), e)
				if err != nil {
					t.Fatal(err)
				}
				got := slices.DeleteFunc(w.notes, func(s string) bool {
					return !strings.HasPrefix(s, "move ") && !strings.HasPrefix(s, "load ")
				})
				if !slices.Equal(got, moves) || !want(records[0]) {
					t.Errorf("%q, want %q; %+v, %+v, %+v", got, moves, records[0].Warmup,
						records[0].Limits, records[0].Failure)
				}
			})
		})
	}
	nothing := func(*world) {}
	loads := []string{"load peak", "load half"}
	wide := append([]string{"move b1-01-a to [0 1]", "load warmup", "move b1-01-a to [1]"},
		loads...)
	again := slices.Insert(slices.Clone(wide), 3, "load warmup", "load warmup") // new connections
	own := append([]string{"load warmup", "load warmup", "load warmup"}, loads...)
	check("until silent", "jvm", 10*time.Second, nothing, again, func(r *record.Record) bool {
		w := r.Warmup
		return w.Steady && w.CoresReducedAtNs == 31e8 && w.DurationNs == 57e8 &&
			w.CompilersIdleAtNs == 37e8 &&
			w.SteadyAtNs == 31e8 && slices.Equal(w.Cores, []int{0, 1}) &&
			slices.Equal(wording.Limits(w.InForce), []string{"affinity 0,1"}) &&
			slices.Equal(wording.Limits(r.Limits.InForce), []string{"affinity 1"})
	})
	// 6 s less half of them, if the compilers are never idle: 3 s.
	check("until it must", "jvm", 6*time.Second, nothing, again, func(r *record.Record) bool {
		return r.Warmup.Steady && r.Warmup.CoresReducedAtNs == 3e9 && r.Warmup.DurationNs == 56e8
	})
	// A service with unknown threads is warm when its rate is: after 2 s, and 2 s more.
	check("until level", "node", 5*time.Second, func(w *world) { w.roles = nil }, wide,
		func(r *record.Record) bool {
			return r.Warmup.Steady && r.Warmup.CoresReducedAtNs == 2e9 && r.Warmup.DurationNs == 4e9
		})
	none := func(r *record.Record) bool { return r.Warmup.Cores == nil }
	check("nothing compiles", "native", 5*time.Second, nothing, own, none)
	check("one core", "jvm", 5*time.Second, func(w *world) {
		w.lab.Layout = host.Layout{Service: []int{0}, Load: []int{0}, Shared: true}
	}, own, none)
	check("cannot be moved", "jvm", 5*time.Second, func(w *world) {
		w.lab.Launcher = bound{w.lab.Launcher}
	}, nil, func(r *record.Record) bool {
		return r.Failure != nil && strings.Contains(r.Failure.Error, "cannot move")
	})
}

func TestLifeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		records, err := w.run(context.Background(), w.experiment("a"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"launch b1-01-a", "watch", "load warmup", "load peak", "load half",
			"unwatch", "stop b1-01-a", "record measured"}
		if !slices.Equal(w.notes, want) {
			t.Errorf("the life was\n%q, want\n%q", w.notes, want)
		}
		if len(records) != 1 {
			t.Fatalf("%d records", len(records))
		}
		r := records[0]
		if r.Failure != nil {
			t.Fatalf("failed: %+v", r.Failure)
		}
		if r.Verdict.Grade != record.Valid {
			t.Errorf("verdict is %+v", r.Verdict)
		}
		// The fake service listens 40 ms after its start, on a clock that only sleeping moves. The
		// wait between two requests grows to 20 ms at most.
		if r.Start.RSSBytes != 7<<20 {
			t.Errorf("%d bytes before the load, want 7 MiB", r.Start.RSSBytes)
		}
		if ms := r.Start.ReadyNs / 1e6; ms < 40 || ms > 60 {
			t.Errorf("ready after %d ms, want 40 to 60", ms)
		}
		// Its responses take no time.
		if first := r.Start.FirstResponseNs; first != r.Start.ReadyNs {
			t.Errorf("the first response after %d ns, want %d", first, r.Start.ReadyNs)
		}
		// Steady from the start, which is known after two seconds.
		if w := r.Warmup; !w.Steady || w.SteadyAtNs != 0 || w.DurationNs != 2000e6 ||
			w.Kind != stats.Flat {
			t.Errorf("warm-up %+v, want flat, known after 1.5 s", w)
		}
		// The marks are 2 s apart around a window of 1 s with 1,000 requests, so 2,000 between
		// them, and half a core was in use: 1 s of CPU time, 500 µs a request.
		if got := r.Loads[0].Service.CPUPerRequestNs; got != 500e3 {
			t.Errorf("%g ns of CPU a request, want 500,000", got)
		}
		if l := r.Loads[1]; l.RatePerS != rate/2 || l.RateOf != "50% of peak" ||
			l.RateBase != "peak" {
			t.Errorf("second load at %g/s of %q, want 500 of peak", l.RatePerS, l.RateOf)
		}
	})
}

// fault breaks something in a world, or in its experiment.
type fault func(*world, *experiment)

// Every failure of a trial results in one record that describes it, the service is stopped, and the
// next target runs.
func TestFaults(t *testing.T) {
	check := func(name string, f fault, step, words, hint string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkFault(t, f, step, words, hint) })
		})
	}
	check("does not build", func(_ *world, e *experiment) {
		e.Lacking["bad"] = errors.New("build bad: step 1 failed")
	}, "build", "step 1 failed", "")
	check("ends at once", serves(nil, 0, errors.New("address already in use")),
		"ready", "the service ended (exit status 1)", "the whole log is")
	check("never ready", serves(http.NotFoundHandler(), 0, nil), "ready", "404", "see ")
	late := serves(fake.Hello("virtual"), time.Hour, nil)
	check("never listens", late, "ready", "connection refused", "see ")
	check("ends before it is watched", unwatched("signal: killed"), "ready",
		"the service ended (signal: killed)", "the whole log is")
	check("cannot be watched", unwatched(""), "ready", "start probe: no such file", "")
	check("breaks off its first response", serves(breaking(), 0, nil), "ready",
		"read the first response of bad: unexpected EOF", "")
	check("answers wrongly", serves(lying(), 0, nil), "verify", `body differs`, "prony verify bad")
	check("hangs in the warm-up", during("warmup",
		func(_ *world, ctx context.Context, _ load.Spec) (*load.Result, error) {
			time.Sleep(time.Second)
			return &load.Result{}, ctx.Err()
		}), "warmup", "no good response", "see ")
	check("stands still under peak", during("peak",
		func(w *world, ctx context.Context, s load.Spec) (*load.Result, error) {
			res, err := w.steadyLoad(ctx, s)
			res.Done, res.Answered, res.ThroughputPerS = 0, 0, 0
			return res, err
		}), "measure", "no good response in 1s: every request is still waiting", "see ")
	check("changes its responses", during("peak",
		func(w *world, ctx context.Context, s load.Spec) (*load.Result, error) {
			res, err := w.steadyLoad(ctx, s)
			res.Errors.Body, res.Done, res.Answered, res.ThroughputPerS = res.Done, 0, 0, 0
			return res, err
		}), "measure", "no good response in 1s", "--ignore-body")
	check("dies in the middle", during("peak",
		func(w *world, ctx context.Context, _ load.Spec) (*load.Result, error) {
			w.launcher.Crash("signal: killed")
			<-ctx.Done()
			return nil, ctx.Err()
		}), "measure", "the service ended (signal: killed)", "the whole log is")
	check("answers wrongly once warm", during("half",
		func(w *world, ctx context.Context, s load.Spec) (*load.Result, error) {
			w.launcher.Replace(lying())
			return w.steadyLoad(ctx, s)
		}), "reverify", `body differs`, "prony verify bad")
}

// checkFault runs two targets, of which a fault concerns only the one named bad.
func checkFault(t *testing.T, arrange fault, step, words, hint string) {
	t.Helper()
	w := newWorld(t)
	e := w.experiment("bad", "good")
	arrange(w, &e)
	records, err := w.run(context.Background(), e)
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, error %v; want 2 and none", len(records), err)
	}
	for _, r := range records {
		if r.Target.Name == "good" {
			if r.Outcome != record.Measured {
				t.Errorf("the good target failed too: %+v", r.Failure)
			}
			continue
		}
		f := r.Failure
		if f == nil || f.Step != step || !strings.Contains(f.Error, words) ||
			!strings.Contains(f.Hint, hint) {
			t.Errorf("failure is %+v\nwant step %s, words %q, hint %q", f, step, words, hint)
		}
		if r.Verdict.Grade != record.Invalid {
			t.Errorf("verdict is %s", r.Verdict.Grade)
		}
	}
	launched, stopped := 0, 0
	for _, n := range w.notes {
		if strings.HasPrefix(n, "launch") {
			launched++
		} else if strings.HasPrefix(n, "stop") {
			stopped++
		}
	}
	if launched != stopped {
		t.Errorf("%d launches, %d stops: %q", launched, stopped, w.notes)
	}
}

func isBad(name string) bool { return strings.HasSuffix(name, "-bad") }

// serves makes the bad target this handler, which listens after the delay or cannot start.
func serves(h http.Handler, delay time.Duration, err error) fault {
	return func(w *world, _ *experiment) {
		fine := w.handler
		w.handler = func(name string) (http.Handler, time.Duration, error) {
			if isBad(name) {
				return h, delay, err
			}
			return fine(name)
		}
	}
}

// unwatched makes sampling of the bad target fail, as for a service whose control group is gone.
// The value beside the error is not a usable watcher. The launcher learns of the end later.
func unwatched(ended string) fault {
	return func(w *world, _ *experiment) {
		fine := w.lab.Watch
		w.lab.Watch = func(p launch.Process, every time.Duration) (trial.Watcher, error) {
			if !isBad(lastLaunch(w.notes)) {
				return fine(p, every)
			}
			if ended != "" {
				time.AfterFunc(time.Second, func() { w.launcher.Crash(ended) })
			}
			return (*watcher)(nil), errors.New("start probe: no such file or directory")
		}
	}
}

// offering is a driver's work in a world.
type offering func(*world, context.Context, load.Spec) (*load.Result, error)

// during offers one load of the bad target in another way.
func during(name string, offer offering) fault {
	return func(w *world, _ *experiment) {
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if isBad(lastLaunch(w.notes)) && s.Name == name {
				return offer(w, ctx, s)
			}
			return w.steadyLoad(ctx, s)
		}
	}
}

func lastLaunch(notes []string) string {
	for _, n := range slices.Backward(notes) {
		if strings.HasPrefix(n, "launch ") {
			return n
		}
	}
	return ""
}

// lying is ready and gives responses that are wrong in one digit.
func lying() http.Handler {
	fine := fake.Hello("virtual")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("key") == "31415" {
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte("Hello from REST value-31416")) //nolint:errcheck // likewise
			return
		}
		fine.ServeHTTP(w, r)
	})
}

func TestInterruptKeepsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if s.Name == "peak" && strings.Contains(lastLaunch(w.notes), "-02-") {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return w.steadyLoad(ctx, s)
		}
		records, err := w.run(ctx, w.experiment("a", "b", "c"))
		if err == nil || !strings.Contains(err.Error(), "interrupted after 2 of 3 trials") {
			t.Errorf("error is %v", err)
		}
		if len(records) != 2 || records[0].Outcome != record.Measured ||
			records[1].Failure == nil || records[1].Failure.Error != "interrupted" {
			t.Errorf("%d records, the last one %+v", len(records), records[len(records)-1].Failure)
		}
		stop := "stop b1-02-" + records[1].Target.Name
		if w.notes[len(w.notes)-1] != "record failed" || !slices.Contains(w.notes, stop) {
			t.Errorf("the service was not stopped: %q", w.notes)
		}
	})
}

// breaking is ready, and ends each response to a request before its end.
func breaking() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			return
		}
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("Hello")) //nolint:errcheck // a client that has gone needs no response
	})
}
