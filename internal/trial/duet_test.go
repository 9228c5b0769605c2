package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// stage is a world with room for two services at once, one a port.
type stage struct {
	t     *testing.T
	lab   *trial.Lab
	dir   string
	offer func(ctx context.Context, core int, s load.Spec) (*load.Result, error)
	serve func(target string) (http.Handler, time.Duration, error)

	mu      sync.Mutex
	notes   []string
	ports   int
	on      map[int]*fake.Launcher // by the service's first core
	targets map[int]string         // likewise, of the trial under way
	windows map[string][]int64     // opened, by load
}

// Cores: the loads are on 0 and 2, the services on 1 and 3; so are the ports 8081 and 8083.
func newStage(t *testing.T) *stage {
	g := &stage{t: t, dir: t.TempDir(), on: map[int]*fake.Launcher{}, windows: map[string][]int64{},
		targets: map[int]string{}}
	g.serve = func(string) (http.Handler, time.Duration, error) {
		return fake.Hello("virtual"), 40 * time.Millisecond, nil
	}
	g.offer = g.steady
	sides, err := host.DivideSides([]int{0, 1, 2, 3}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	g.lab = &trial.Lab{
		Launcher: g, Dir: g.dir, Dial: g.dial, Layout: sides.Whole(), Sides: &sides,
		Port: func() (int, error) {
			g.ports++
			return []int{8081, 8081, 8083}[(g.ports-1)%3], nil // the kernel may repeat itself
		},
		Driver: func(string, string, *nethttp.Config) (trial.Driver, error) { return g, nil },
		Beside: func(_ launch.Process, l host.Layout, other func() []int) (trial.Watcher, error) {
			if ps := other(); !slices.Equal(ps, []int{4 - l.Service[0]}) {
				g.note(fmt.Sprintf("watch %v beside %v", l.Service, ps))
			}
			return &watcher{w: &world{}}, nil
		},
		Observe: func(e trial.Event) {
			if e.Record != nil {
				g.note("record " + e.Record.Outcome)
			}
		},
	}
	return g
}

func (g *stage) note(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, s)
}

func (*stage) Listen() string { return "127.0.0.1" }

// Launch implements launch.Launcher: a fake world of its own on each side.
func (g *stage) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	core := s.Cores[0]
	target := s.Name[strings.LastIndexByte(s.Name, '-')+1:]
	l := &fake.Launcher{Note: g.note, Start: func(launch.Spec) (http.Handler, time.Duration,
		error) {
		return g.serve(target)
	}}
	g.mu.Lock()
	g.on[core], g.targets[core] = l, target
	g.mu.Unlock()
	p, err := l.Launch(ctx, s)
	return numbered{p, core}, err
}

// numbered is a process whose number is its core's.
type numbered struct {
	launch.Process
	core int
}

func (p numbered) PIDs() []int { return []int{p.core} }

func (g *stage) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	l := g.on[int(address[len(address)-1]-'0')]
	g.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l.Dial(ctx, network, address)
}

// Offer implements trial.Driver.
func (g *stage) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	g.mu.Lock()
	g.windows[s.Name+" offered"] = append(g.windows[s.Name+" offered"], clock.Mono())
	g.mu.Unlock()
	return g.offer(ctx, s.Cores[0], s)
}

// steady takes a while to connect, longer on the right, and begins when both may.
func (g *stage) steady(ctx context.Context, core int, s load.Spec) (*load.Result, error) {
	return g.paced(ctx, core, s, func(time.Duration) float64 { return rate })
}

func (g *stage) paced(ctx context.Context, core int, s load.Spec,
	rateAt func(time.Duration) float64) (*load.Result, error) {
	l := trialtest.Load{Rate: rate, RateAt: rateAt,
		Connect: time.Duration(core) * 100 * time.Millisecond}
	res, err := l.Offer(ctx, s)
	if err != nil {
		return res, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Watch != nil {
		g.windows[s.Name+" ended"] = append(g.windows[s.Name+" ended"], clock.Mono())
		return res, nil
	}
	g.windows[s.Name] = append(g.windows[s.Name], res.FromNs)
	res.OpenedNs += int64(core) * 1000 // the right one 2 µs later than the left one
	return res, nil
}

// duets plans the targets bad and good two at a time.
func (g *stage) duets(blocks int) experiment {
	g.t.Helper()
	w := &world{t: g.t, dir: g.dir}
	e := w.experiment("bad", "good")
	s := *e.Plan.Suite
	if err := s.Override(suite.Override{Duet: suite.Apart, Blocks: blocks}); err != nil {
		g.t.Fatal(err)
	}
	var err error
	e.Plan, err = s.Plan([]suite.Target{
		{Name: "bad", Service: "bad", Mode: "virtual", Contracts: []string{"hello"}},
		{Name: "good", Service: "good", Mode: "virtual", Contracts: []string{"hello"}},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func (g *stage) run(ctx context.Context, e experiment) ([]*record.Record, error) {
	return (&world{t: g.t, dir: g.dir, lab: g.lab}).run(ctx, e)
}

func TestDuets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		g.serve = func(target string) (http.Handler, time.Duration, error) {
			return fake.Hello("virtual"), time.Duration(len(target)) * time.Second, nil
		}
		looked := 0
		g.lab.Quiet = func(context.Context) record.Before {
			looked++
			return record.Before{Quiet: true, WindowNs: int64(looked)}
		}
		records, err := g.run(context.Background(), g.duets(2))
		if err != nil || len(records) != 4 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		for i, r := range records {
			checkSide(t, i, r, records[i^1])
		}
		for load, at := range g.windows {
			slack := int64(0)
			if load == "warmup ended" {
				slack = 100e6 // each looks that often
			}
			if len(at) != 4 || at[1]-at[0] > slack || at[3]-at[2] > slack {
				t.Errorf("%s on both sides: %v; want them at the same moments", load, at)
			}
		}
		slices.Sort(g.notes[:2])
		want := []string{"launch b1-01-bad", "launch b1-02-good"}
		if !slices.Equal(g.notes[:2], want) || looked != 2 {
			t.Errorf("it went %q, looked at the host %d times", g.notes, looked)
		}
		slices.Sort(g.notes[2:4])
		want = []string{"stop b1-01-bad", "stop b1-02-good", "record measured", "record measured"}
		if !slices.Equal(g.notes[2:6], want) {
			t.Errorf("after the launches it went %q, want %q", g.notes[2:6], want)
		}
	})
}

// checkSide wants the i-th record of two blocks as a duet makes it.
func checkSide(t *testing.T, i int, r, other *record.Record) {
	t.Helper()
	target := []string{"bad", "good", "good", "bad"}[i] // sides swap
	core := []int{1, 3}[i%2]
	want := record.Duet{With: other.Trial, Side: []string{"left", "right"}[i%2],
		SkewNs: []int64{-2000, 2000}[i%2]}
	if r.Duet == nil || *r.Duet != want {
		t.Errorf("record %d: duet is %+v, want %+v", i, r.Duet, want)
	}
	if r.Target.Name != target || r.Order != i+1 || r.Block != i/2+1 {
		t.Errorf("record %d is of %s, order %d, block %d", i, r.Target.Name, r.Order, r.Block)
	}
	if !slices.Equal(r.Limits.ServiceCores, []int{core}) ||
		!slices.Equal(r.Limits.LoadCores, []int{core - 1}) {
		t.Errorf("record %d has cores %v, load %v", i, r.Limits.ServiceCores, r.Limits.LoadCores)
	}
	if r.HostBefore.WindowNs != int64(i/2+1) {
		t.Errorf("record %d: before it was %+v", i, r.HostBefore)
	}
	if r.Outcome != record.Measured || r.Verdict.Grade != record.Valid || len(r.Loads) != 2 {
		t.Errorf("record %d: %s, %+v, %+v", i, r.Outcome, r.Failure, r.Verdict)
		return
	}
	if r.Warmup.Kind == "" {
		t.Errorf("record %d: nobody looked at its warm-up: %+v", i, r.Warmup)
	}
	if u := r.Loads[0].Service; u.NetworkBytes != -1 || u.NetworkBytesPerRequest != -1 {
		t.Errorf("record %d counts %d bytes that are of both sides", i, u.NetworkBytes)
	}
}

// A warm-up goes on until both sides are steady; each notes its own moment.
func TestDuetWarmsUpTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		g.offer = func(ctx context.Context, core int, s load.Spec) (*load.Result, error) {
			return g.paced(ctx, core, s, func(elapsed time.Duration) float64 {
				if core == 2 && elapsed < 2*time.Second {
					return rate / 2 * (1 + elapsed.Seconds()/2)
				}
				return rate
			})
		}
		records, err := g.run(context.Background(), g.duets(1))
		if err != nil || len(records) != 2 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		fast, slow := records[0].Warmup, records[1].Warmup
		if !fast.Steady || !slow.Steady || slow.SteadyAtNs <= fast.SteadyAtNs+1e9 {
			t.Errorf("steady after %d and %d ns", fast.SteadyAtNs, slow.SteadyAtNs)
		}
		if fast.DurationNs < slow.SteadyAtNs {
			t.Errorf("the faster side was loaded for %d ns only", fast.DurationNs)
		}
		// The first one to be steady sees at its next look, 100 ms later at most, that both are.
		if at := g.windows["warmup ended"]; len(at) != 2 || at[1]-at[0] > 100e6 {
			t.Errorf("warm-ups ended at %v", at)
		}
	})
}

// Whatever ends one side ends the other, both records say why, and the next duet has its turn.
func TestDuetFaults(t *testing.T) {
	check := func(name, step, words string, arrange func(*stage, *experiment)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkDuetFault(t, step, words, arrange) })
		})
	}
	check("does not build", "build", "step 1 failed", func(_ *stage, e *experiment) {
		e.Lacking["bad"] = errors.New("build bad: step 1 failed")
	})
	serving := func(h http.Handler, err error) func(*stage, *experiment) {
		return func(g *stage, _ *experiment) {
			fine := g.serve
			g.serve = func(target string) (http.Handler, time.Duration, error) {
				if target == "bad" {
					return h, 0, err
				}
				return fine(target)
			}
		}
	}
	check("ends at once", "ready", "exit status 1", serving(nil, errors.New("no memory")))
	check("answers wrongly", "verify", "body differs", serving(lying(), nil))
	check("dies in the middle", "measure", "signal: killed",
		func(g *stage, _ *experiment) {
			g.offer = g.during("peak", func(ctx context.Context, l *fake.Launcher) {
				l.Crash("signal: killed")
				<-ctx.Done()
			})
		})
	check("answers wrongly once warm", "reverify", "body differs",
		func(g *stage, _ *experiment) {
			g.offer = g.during("half", func(_ context.Context, l *fake.Launcher) {
				l.Replace(lying())
			})
		})
}

// during does something to the bad target's service before one of its loads.
func (g *stage) during(name string, do func(context.Context, *fake.Launcher)) func(
	context.Context, int, load.Spec) (*load.Result, error) {
	return func(ctx context.Context, core int, s load.Spec) (*load.Result, error) {
		g.mu.Lock()
		l, target := g.on[core+1], g.targets[core+1]
		g.mu.Unlock()
		if target == "bad" && s.Name == name {
			do(ctx, l)
		}
		return g.steady(ctx, core, s)
	}
}

func checkDuetFault(t *testing.T, step, words string, arrange func(*stage, *experiment)) {
	t.Helper()
	g := newStage(t)
	e := g.duets(2)
	arrange(g, &e)
	g.lab.Hold = func(_ context.Context, h trial.Held) { g.note("held " + h.Trial) }
	records, err := g.run(context.Background(), e)
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, error %v; want 4 and none", len(records), err)
	}
	for _, r := range records {
		f := r.Failure
		if f == nil || !strings.Contains(f.Error, words) || r.Verdict.Grade != record.Invalid {
			t.Errorf("%s: failure %+v, want %q; verdict %s", r.Trial, f, words, r.Verdict.Grade)
			continue
		}
		if blames := strings.Contains(f.Error, "the other side of the duet, "+r.Duet.With+
			", failed in step "+step); blames != (r.Target.Name == "good") {
			t.Errorf("%s says %q", r.Trial, f.Error)
		}
		if held := slices.Contains(g.notes, "held "+r.Trial); held !=
			(r.Target.Name == "bad" && step != "build") {
			t.Errorf("%s, which failed in %s, was held: %t", r.Trial, step, held)
		}
		if r.Target.Name == "bad" && f.Step != step {
			t.Errorf("%s failed in %s, want %s", r.Trial, f.Step, step)
		}
	}
	checkStopped(t, g.notes)
}

func checkStopped(t *testing.T, notes []string) {
	t.Helper()
	launched, stopped := 0, 0
	for _, n := range notes {
		if strings.HasPrefix(n, "launch") {
			launched++
		} else if strings.HasPrefix(n, "stop") {
			stopped++
		}
	}
	if launched != stopped {
		t.Errorf("%d launches, %d stops: %q", launched, stopped, notes)
	}
}

func TestInterruptedDuet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		ctx, cancel := context.WithCancel(context.Background())
		g.offer = g.during("peak", func(context.Context, *fake.Launcher) { cancel() })
		records, err := g.run(ctx, g.duets(2))
		if err == nil || !strings.Contains(err.Error(), "interrupted after 2 of 4 trials") {
			t.Errorf("error is %v", err)
		}
		if len(records) != 2 {
			t.Fatalf("%d records", len(records))
		}
		for _, r := range records {
			if r.Failure == nil || r.Failure.Error != "interrupted" {
				t.Errorf("%s ends with %+v", r.Trial, r.Failure)
			}
		}
		checkStopped(t, g.notes)
	})
}

// Polling would take a service's own core from it.
func TestSharedDuetDoesNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		sides, err := host.DivideSides([]int{1, 3}, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		g.lab.Sides = &sides
		g.offer = func(ctx context.Context, core int, s load.Spec) (*load.Result, error) {
			if s.Pacing != load.Frugal && s.Watch == nil {
				t.Errorf("load %s waits by %q", s.Name, s.Pacing)
			}
			return g.steady(ctx, core, s)
		}
		records, err := g.run(context.Background(), g.duets(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			v := r.Verdict
			if !r.Duet.Shared || v.Grade != record.Suspect || v.Findings[0].Rule != "cores" {
				t.Errorf("%s: %+v, verdict %+v", r.Trial, r.Duet, v)
			}
		}
	})
}
