package trial_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// crew is the world of starts: targets whose responses take a known CPU time, and of which only one
// may run while load is offered.
type crew struct {
	*world
	targets map[string]*target // by trial
	running int
	opened  int
	perS    map[string]float64 // by the target's name
	broken  string             // its third slice fails
	seeds   map[uint64]int     // of arrivals
	runsOn  []bool             // arguments of Freeze

	stallsClosed int
	wakeNs       int64  // processor time that a target uses each time it is resumed
	incomplete   string // target whose clock is not complete
	clocksClosed int

	interrupts       int // of cores, each before a clock is read
	interruptsClosed int
}

type target struct {
	crew      *crew
	name      string
	frozen    bool
	cpuNs     int64
	slices    int
	loaderEnd int
	windows   [][2]int64 // of open slices
}

// newCrew makes a lab with slices.
func newCrew(t *testing.T) *crew {
	c := &crew{world: newWorld(t), targets: map[string]*target{}, seeds: map[uint64]int{},
		perS: map[string]float64{"a": 2000, "b": 1000}}
	port := 8080
	c.lab.Port = func() (int, error) { port++; return port, nil }
	c.lab.Slicing = trial.Slicing{
		Open: func(_ context.Context, s load.Spec, _ string, _ *nethttp.Config) (trial.Loader,
			error,
		) {
			c.opened++
			for _, x := range c.targets {
				switch {
				case x.frozen:
				case s.Model == record.Closed:
					return loader{target: x}, nil
				default:
					return loader{target: x, perS: s.Schedule.Rate.At(0)}, nil
				}
			}
			return nil, errors.New("a load is connected while all targets are stopped")
		},
		Freeze: func(_ launch.Process, runsOn bool) (trial.Freezer, error) {
			c.runsOn = append(c.runsOn, runsOn)
			return c.add(), nil
		},
		Clock: func(func() []int, []launch.Group) trial.CPUClock {
			return targetClock{c.last()}
		},
		Machine:   func() (trial.Machine, error) { return machine{}, nil },
		Interrupt: func([]int) (trial.Interrupter, error) { return interrupter{c}, nil },
	}
	return c
}

type interrupter struct{ *crew }

func (i interrupter) Interrupt()   { i.interrupts++ }
func (i interrupter) Close() error { i.interruptsClosed++; return nil }

type machine struct{}

func (machine) Read() cpuclock.Reading { return cpuclock.Reading{} }
func (machine) Close()                 {}

// add is called when a target has warmed up.
func (c *crew) add() *target {
	name := ""
	for _, note := range c.notes {
		if rest, ok := strings.CutPrefix(note, "launch "); ok {
			name = rest
		}
	}
	c.targets[name] = &target{crew: c, name: name}
	c.running++
	c.targets[name].note("add")
	return c.targets[name]
}

func (c *crew) last() *target {
	for i := len(c.notes) - 1; ; i-- {
		if rest, ok := strings.CutPrefix(c.notes[i], "add "); ok {
			return c.targets[rest]
		}
	}
}

func (x *target) note(s string) { x.crew.note(s + " " + x.name) }

func (x *target) Freeze() error {
	if !x.frozen {
		x.crew.running--
	}
	x.frozen = true
	return nil
}

func (x *target) Thaw() error {
	if x.frozen {
		x.crew.running++
		x.cpuNs += x.crew.wakeNs
	}
	x.frozen = false
	return nil
}

func (x *target) Way() string       { return record.FreezeSignals }
func (x *target) Refresh()          {}
func (x *target) Read() int64       { return x.cpuNs }
func (x *target) Reconnects() int64 { return 0 }

// Close implements Freezer: the target ends.
func (x *target) Close() error { return x.Freeze() }

// Slice offers one slice. Each response takes 10 µs of CPU time of "a", 20 µs of "b".
func (l loader) Slice(ctx context.Context, s load.Slice) (load.Sliced, error) {
	x := l.target
	if x.frozen || x.crew.running != 1 {
		x.crew.t.Errorf("%s is loaded, frozen %v, while %d targets run", x.name, x.frozen,
			x.crew.running)
	}
	x.slices++
	if l.perS > 0 {
		x.crew.seeds[s.Seed]++
	}
	began := clock.Mono()
	select {
	case <-time.After(s.Lead + s.Window):
	case <-ctx.Done():
		return load.Sliced{}, context.Cause(ctx)
	}
	if l.perS > 0 {
		x.windows = append(x.windows, [2]int64{began + int64(s.Lead), clock.Mono()})
	}
	key := x.name[strings.LastIndex(x.name, "-")+1:]
	if key == x.crew.broken && x.slices == 8 {
		return load.Sliced{}, errors.New("no answer")
	}
	perS := cmp.Or(l.perS, x.crew.perS[key])
	n := int64(math.Round(perS * s.Window.Seconds()))
	each := int64(2e7 / x.crew.perS[key])
	x.cpuNs += int64(perS*s.Lead.Seconds()) * each
	from := s.CPU()
	x.cpuNs += n * each
	starved := n * 100
	if l.perS > 0 {
		starved = -1
	}
	if cores := len(x.crew.lab.Layout.Service); s.Cores != cores {
		x.crew.t.Errorf("a slice for a target with %d cores, want %d", s.Cores, cores)
	}
	return load.Sliced{BeganNs: began, OpenedNs: began + int64(s.Lead), ClosedNs: clock.Mono(),
		EndedNs: clock.Mono(), Requests: n, CPUNs: s.CPU() - from, LoadCPUNs: n * 1000,
		StarvedNs: starved}, nil
}

// loader hides the result of Close, which a loader does not have.
type loader struct {
	*target
	perS float64 // of an open load; 0: closed
}

func (l loader) Close() { l.loaderEnd++ }

// Sample has a request each millisecond of the windows, answered after 2 and 4 ms.
func (l loader) Sample() (t arrivalcheck.Times) {
	if l.perS == 0 {
		l.crew.t.Error("the sample of closed slices is used")
	}
	response := int64(4e9 / l.crew.perS[l.name[len(l.name)-1:]])
	for _, window := range l.windows {
		for due := window[0]; due < window[1]; due += 1e6 {
			t.Due, t.Left = append(t.Due, due), append(t.Left, due)
			t.Response = append(t.Response, response)
		}
	}
	return t
}

// ResponseTimes returns 1 ms for the first target and 2 ms for the second, at one rate.
func (l loader) ResponseTimes() (all, punctual record.Dist) {
	if l.perS == 0 {
		l.crew.t.Error("response times of closed slices are used")
	}
	all = record.Dist{Count: 1000, P50Ns: int64(2e9 / l.crew.perS[l.name[len(l.name)-1:]])}
	return all, all
}

// TestStart takes two targets through starts side by side.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		e := c.experiment("a", "b")
		records, err := c.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) != 2 || c.opened != 4 {
			t.Fatalf("%d records, %d loaders opened", len(records), c.opened)
		}
		for i, r := range records {
			if r.Outcome != record.Measured || r.SideBySide == nil || r.SideBySide.Rounds < 20 ||
				!slices.Equal(r.SideBySide.With, []string{records[1-i].Trial}) {
				t.Fatalf("record %+v, %+v, %+v", r.Outcome, r.Failure, r.SideBySide)
			}
			sum := r.Loads[0].Slices
			perS := c.perS[r.Target.Name[:1]]
			if sum == nil || math.Abs(sum.ThroughputPerS()/perS-1) > 0.02 ||
				sum.CPUPerRequestNs() != 2e7/perS || sum.Slices != r.SideBySide.Rounds ||
				sum.LoadCPUNs != sum.Requests*1000 || sum.StarvedNs != sum.Requests*100 {
				t.Errorf("%s: slices %+v", r.Target.Name, sum)
			}
			// Both get half of the slower one's throughput.
			open := r.Loads[1].Slices
			if open == nil || math.Abs(open.RatePerS/500-1) > 0.02 ||
				math.Abs(float64(open.Requests)/open.RatePerS/float64(open.TimeNs)*1e9-1) > 0.02 ||
				open.CPUPerRequestNs() != 2e7/perS || open.Slices != r.SideBySide.Open.Rounds ||
				open.ResponseTime.P50Ns != int64(2e9/perS) || open.IdleCPUNs != 0 ||
				open.LoadCPUNs != open.Requests*1000 || open.StarvedNs != -1 {
				t.Errorf("%s: open slices %+v, %+v", r.Target.Name, open, r.SideBySide.Open)
			}
			if sum.IdleCPUNs != 0 || sum.IdleTimeNs == 0 {
				t.Errorf("%s used %d ns in %d ns of others", r.Target.Name, sum.IdleCPUNs,
					sum.IdleTimeNs)
			}
			if c.targets[r.Trial].loaderEnd != 2 {
				t.Errorf("%s: its loader was closed %d times", r.Trial,
					c.targets[r.Trial].loaderEnd)
			}
		}
		head, all, err := record.ReadSlices(c.dir, records[0].SideBySide.File)
		if err != nil || len(head.Trials) != 2 || len(all) != 2*(head.Rounds+head.Open.Rounds) {
			t.Errorf("%d slices of %+v, error %v", len(all), head, err)
		}
		// Closed slices, also those that decide the lengths, read exact clocks twice.
		if closed := 2 * (head.Rounds + 5); c.interrupts != 2*closed || c.interruptsClosed != 1 {
			t.Errorf("%d interrupts in %d closed slices, ended %d times", c.interrupts, closed,
				c.interruptsClosed)
		}
		seeds := len(c.seeds)
		if seeds != head.Open.Rounds {
			t.Errorf("%d seeds of arrivals in %d rounds", seeds, head.Open.Rounds)
		}
		all = all[:2*head.Rounds]
		// Lengths of windows are random, from once to twice the shortest.
		least, most := int64(math.MaxInt64), int64(0)
		for _, slice := range all {
			least = min(least, slice.ClosedNs-slice.OpenedNs)
			most = max(most, slice.ClosedNs-slice.OpenedNs)
		}
		if w := head.WindowNs; least < w || least > w*5/4 || most > 2*w || most < w*7/4 {
			t.Errorf("windows of %d to %d ns, want %d to %d", least, most, w, 2*w)
		}
	})
}

// TestStartSharesItsTime divides the time of a start equally among its trials, also the time in
// which its targets end one after another: 3 s each.
func TestStartSharesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		c.launcher.Note = func(note string) {
			if strings.HasPrefix(note, "stop ") {
				time.Sleep(3 * time.Second)
			}
			c.note(note)
		}
		began := clock.Mono()
		records, err := c.run(context.Background(), c.experiment("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		took := clock.Mono() - began
		for _, r := range records {
			if r.DurationNs != took/2 {
				t.Errorf("%s: %d ns of %d", r.Trial, r.DurationNs, took)
			}
		}
	})
}

// TestStartIdleTargets records what other targets used in windows: stopped ones run twice in 10 s,
// and not in a window of 1 s.
func TestStartIdleTargets(t *testing.T) {
	for length, wakes := range map[time.Duration]int64{time.Second: 0, 10 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t)
			c.wakeNs = 56e6
			e := c.experiment("a", "b", "c")
			for i := range e.Plan.Suite.Loads {
				e.Plan.Suite.Loads[i].Measure = suite.Duration(length)
			}
			c.perS["c"] = 1000
			records, err := c.run(context.Background(), e)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				var want []record.IdleTarget
				for _, other := range records {
					if other != r && wakes > 0 {
						want = append(want, record.IdleTarget{Target: other.Target.Name,
							Freeze: record.FreezeSignals, CPUNs: wakes * 56e6})
					}
				}
				if got := r.Loads[0].IdleTargets; !slices.Equal(got, want) {
					t.Errorf("%s, %v: %+v, want %+v", r.Trial, length, got, want)
				}
			}
		})
	}
}

// TestStartRunsOn stops no target of a suite with freeze: off.
func TestStartRunsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		e := c.experiment("a", "b")
		e.Plan.Suite.Freeze = "off"
		if _, err := c.run(context.Background(), e); err != nil ||
			!slices.Equal(c.runsOn, []bool{true, true}) {
			t.Errorf("runs on %v, error %v", c.runsOn, err)
		}
	})
}

// TestStartRecordsNoCopy records why a target works in its original folder: these targets were not
// built.
func TestStartRecordsNoCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for dir, want := range map[string]string{"": "", t.TempDir(): record.NoCopyGiven} {
			c := newCrew(t)
			c.lab.Slicing.Copies = dir
			records, err := c.run(context.Background(), c.experiment("a", "b"))
			if err != nil || len(records) != 2 || records[0].Artifact.NoCopy != want ||
				records[1].Artifact.NoCopy != want {
				t.Errorf("copies in %q: %+v, error %v, want %q", dir, records[0].Artifact, err,
					want)
			}
		}
	})
}

// TestStartFails fails all trials of a start because of one target, and continues.
func TestStartFails(t *testing.T) {
	check := func(name, whose string, spoil func(*crew), step, text string, alone bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t)
				spoil(c)
				records, err := c.run(context.Background(), c.experiment("a", "b"))
				if err != nil || len(records) != 2 {
					t.Fatal(len(records), err)
				}
				at := slices.IndexFunc(records, func(r *record.Record) bool {
					return r.Target.Name == whose
				})
				own, others := records[at], records[1-at]
				if own.Failure == nil || own.Failure.Step != step ||
					!strings.Contains(own.Failure.Error, text) {
					t.Errorf("failure %+v, want step %s: %s", own.Failure, step, text)
				}
				if alone && (others.Failure != nil || others.Loads[0].Slices != nil ||
					others.Loads[1].Slices != nil) {
					t.Errorf("the other's failure %+v, slices %+v", others.Failure,
						others.Loads[0].Slices)
				} else if !alone && (others.Failure == nil || !strings.Contains(
					others.Failure.Error, "target b of the same start failed in step "+step)) {
					t.Errorf("the other's failure %+v", others.Failure)
				}
				launched, stopped := 0, 0
				for _, note := range c.notes {
					switch {
					case strings.HasPrefix(note, "launch "):
						launched++
					case strings.HasPrefix(note, "stop "):
						stopped++
					}
				}
				if launched != stopped {
					t.Errorf("%d launched, %d stopped", launched, stopped)
				}
			})
		})
	}
	check("no answer in a slice", "b", func(c *crew) { c.broken = "b" }, "slices", "no answer",
		false)
	check("wrong answer", "a", func(c *crew) {
		good := c.handler
		c.handler = func(name string) (http.Handler, time.Duration, error) {
			if strings.HasSuffix(name, "-a") {
				return fake.Hello("wrong"), time.Millisecond, nil
			}
			return good(name)
		}
	}, "verify", "violates the contract", true)
}

// TestStartInterrupted ends a start with its context and stops all of it.
func TestStartInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		records, err := c.run(ctx, c.experiment("a", "b"))
		if err == nil || len(records) != 2 || records[0].Failure == nil ||
			records[0].Failure.Error != "interrupted" {
			t.Fatalf("%d records, error %v", len(records), err)
		}
	})
}

// TestFurtherStart runs a start that More returns after the planned ones, and reads its records.
func TestFurtherStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		e := c.experiment("a", "b")
		all := e.resolve()
		for _, p := range e.Plan.Trials {
			all.Head.Trials = append(all.Head.Trials, p.ID)
		}
		for _, p := range e.Plan.Reserve {
			all.Head.Reserve = append(all.Head.Reserve, record.Planned{Trial: p.ID})
		}
		added := 0
		c.lab.Observe = func(e trial.Event) { added += e.Added }
		all.More = func(done []*record.Record) []trial.Spec {
			if len(done) > 2 {
				return nil
			}
			todo := slices.Clone(all.Reserve)
			for i := range todo {
				todo[i].Origin = trial.Origin{Repeats: true, Stage: 2, Planned: 4}
			}
			return todo
		}
		if _, err := c.lab.Run(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		_, records, bad, err := record.Read(c.dir)
		if err != nil || len(bad) > 0 || len(records) != 4 || added != 6 {
			t.Fatalf("%d records, %d added, %v, error %v", len(records), added, bad, err)
		}
		for i, r := range records {
			if r.Outcome != record.Measured || r.SideBySide.Repeats != (i > 1) ||
				r.SideBySide.Planned != 4*(i/2) || r.Block != i/2+1 {
				t.Errorf("%s: %s, repeats %v", r.Trial, r.Outcome, r.SideBySide.Repeats)
			}
		}
	})
}

// TestStartWithoutAnswers has no slices if a target gives no response in its pilot slices. The
// windows still count.
func TestStartWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		c.perS["b"] = 0
		records, err := c.run(context.Background(), c.experiment("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			x := r.SideBySide
			if r.Outcome != record.Measured || x == nil || x.Rounds != 0 || x.WindowNs != 0 ||
				x.Open != nil || r.Loads[0].Slices != nil || r.Loads[1].Slices != nil {
				t.Errorf("%s: %s, %+v, slices %+v and %+v", r.Trial, r.Outcome, x,
					r.Loads[0].Slices, r.Loads[1].Slices)
			}
		}
	})
}

// blindMachine does not know its processor time.
type blindMachine struct{ machine }

func (blindMachine) Read() cpuclock.Reading { return cpuclock.Reading{BusyNs: -1, StealNs: -1} }

// TestStartOnBlindMachine records unknown processor time of others as unknown, and checks the host
// once, before the first trial of the start.
func TestStartOnBlindMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		c.lab.Slicing.Machine = func() (trial.Machine, error) { return blindMachine{}, nil }
		c.lab.Quiet = func(context.Context) record.Before {
			c.note("quiet")
			return record.Before{Quiet: true}
		}
		var quiet []string
		other := c.lab.Observe
		c.lab.Observe = func(e trial.Event) {
			if e.Step == "quiet" {
				quiet = append(quiet, e.Trial)
			}
			other(e)
		}
		records, err := c.run(context.Background(), c.experiment("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(quiet, []string{records[0].Trial}) || c.notes[0] != "quiet" ||
			!records[1].HostBefore.Quiet {
			t.Errorf("checked for %q, before %q, %+v", quiet, c.notes[1], records[1].HostBefore)
		}
		_, all, err := record.ReadSlices(c.dir, records[0].SideBySide.File)
		if err != nil || len(all) == 0 {
			t.Fatal(len(all), err)
		}
		for _, slice := range all {
			if slice.OthersNs != -1 || slice.StealNs != -1 {
				t.Fatalf("others %d ns, steal %d ns, want unknown", slice.OthersNs, slice.StealNs)
			}
		}
	})
}
