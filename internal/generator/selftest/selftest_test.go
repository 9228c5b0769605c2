package selftest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/record"
)

func quiet(string) {}

// run runs the whole selftest in a world.
func run(t *testing.T, w *world) map[string]selftest.Outcome {
	t.Helper()
	w.t = t
	cases := selftest.Cases()
	outcomes, err := w.setup(quiet).Run(context.Background(), cases)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]selftest.Outcome{}
	for _, o := range outcomes {
		all[o.Case] = o
	}
	if len(all) != len(cases) || w.stopped < len(cases) {
		t.Fatalf("%d cases, %d outcomes by name, %d servers stopped", len(cases), len(all),
			w.stopped)
	}
	return all
}

// TestGeneratorPasses checks that the real generator passes every case in virtual time, with 100 µs
// on the wire in each direction. Times deviate by both directions and half an interval between
// arrivals, 1 ms at most; a timeout is detected within a tick of 10 ms. Rates deviate by the wire's
// part in a service time of 25 ms, 1 % at most. Counts are exact, except for requests at the edges
// of a freeze and the last new connection of each of eight.
func TestGeneratorPasses(t *testing.T) {
	for name, o := range run(t, &world{cpu: 1}) {
		if o.State != selftest.OK || o.Attempts != 1 || o.Disturbed != "" || len(o.Lines) == 0 {
			t.Errorf("%s: %s in %d attempts, disturbed %q, %d lines", name, o.State, o.Attempts,
				o.Disturbed, len(o.Lines))
		}
		for _, l := range o.Lines {
			most := 0.0 // counts
			switch {
			case l.Unit == selftest.Ns && name == "timeouts":
				most = 10e6
			case l.Unit == selftest.Ns:
				most = 1e6
			case l.Unit == selftest.PerS:
				most = l.Known / 100
			case strings.HasPrefix(l.What, "delayed > "):
				most = 4
			case l.What == "new connections":
				most = 8
			case l.What == "server busy": // except for the first request's way
				most = 0.001
			}
			if math.Abs(l.Measured-l.Known) > most {
				t.Errorf("%s: off by %g, at most %g: %+v", name, l.Measured-l.Known, most, l)
			}
		}
	}
}

// every returns the names of all cases.
func every() (all []string) {
	for _, c := range selftest.Cases() {
		all = append(all, c.Name)
	}
	return all
}

// clocked lists the cases that measure durations.
var clocked = []string{"stall", "pause", "M/D/1", "M/M/1", "capacity", "fixed service time",
	"concurrency cap", "slow warm-up", "timeouts", "load shedding", "drip"}

// lies lists known faults of generators, and the cases that must detect each: no others, because
// correct numbers must pass.
var lies = []struct {
	name  string
	world world
	fails []string
}{
	{"it counts from the sending", world{cpu: 1, forgets: func(l *record.Load) {
		l.ResponseTime, l.Lag = l.ServiceTime, record.Dist{}
	}}, []string{"stall", "pause", "own lag"}},

	{"it leaves timeouts out of the latency", world{cpu: 1, forgets: func(l *record.Load) {
		if l.Errors.Timeout > 0 {
			l.ResponseTime = dist([]int64{2e5, 2e5})
		}
	}}, []string{"timeouts"}},

	{"it forgets timeouts altogether", world{cpu: 1, forgets: func(l *record.Load) {
		l.Errors.Timeout = 0
	}}, []string{"timeouts"}},

	{"it counts errors as answers", world{cpu: 1, forgets: func(l *record.Load) {
		l.Answered += l.Errors.Total()
		l.Errors = record.Errors{}
	}}, []string{"wrong bodies", "resets", "timeouts", "load shedding"}},

	{"it does not look at bodies", world{cpu: 1, drops: overlooks(isWrongBody)},
		[]string{"wrong bodies"}},

	{"it does not look at status codes", world{cpu: 1, drops: overlooks(isRefusal)},
		[]string{"load shedding"}},

	{"it misses one wrong body", world{cpu: 1, forgets: func(l *record.Load) {
		if l.Errors.Body > 0 {
			l.Errors.Body--
			l.Answered++
		}
	}}, []string{"wrong bodies"}},

	{"it is silent on what it did not hear of", world{cpu: 1, forgets: func(l *record.Load) {
		l.Censored = 0
	}}, []string{"hang"}},

	{"it does not tell reconnects", world{cpu: 1, forgets: func(l *record.Load) {
		l.Reconnects = 0
	}}, []string{"resets", "keep-alive limit"}},

	{"its clock runs fast by 4 %", world{cpu: 1, clock: 1.04}, clocked},

	{"its clock runs slow by 4 %", world{cpu: 1, clock: 0.96}, clocked},

	{"it tells the mean as every percentile", world{cpu: 1, forgets: func(l *record.Load) {
		r := &l.ResponseTime
		r.P50Ns, r.P90Ns, r.P99Ns = int64(r.MeanNs), int64(r.MeanNs), int64(r.MeanNs)
	}}, []string{"stall", "pause", "M/D/1", "M/M/1", "timeouts"}},

	{"it tells 5 % more than it did", world{cpu: 1, forgets: func(l *record.Load) {
		l.ThroughputPerS *= 1.05
	}}, []string{"capacity", "overload", "fixed service time", "concurrency cap"}},

	{"it sees no backlog", world{cpu: 1, forgets: func(l *record.Load) {
		l.BacklogPerS = 0
	}}, []string{"overload"}},

	{"it does not send what it cannot", world{cpu: 1, forgets: func(l *record.Load) {
		l.Scheduled = l.Answered + l.Errors.Total()
		l.Censored = 0
	}}, []string{"overload", "hang"}},

	{"it takes the whole answer for its first byte", world{cpu: 1, forgets: func(l *record.Load) {
		l.FirstByte = l.ServiceTime
	}}, []string{"drip"}},

	{"it takes the first byte for the whole answer", world{cpu: 1, forgets: func(l *record.Load) {
		l.ServiceTime = l.FirstByte
	}}, []string{"drip"}},

	{"it has no lag", world{cpu: 1, forgets: func(l *record.Load) {
		l.Lag = record.Dist{}
	}}, []string{"stall", "own lag"}},

	{"it draws one median for all of a run", world{cpu: 1, forgets: func(l *record.Load) {
		for i := range l.Series.P50Ns {
			l.Series.P50Ns[i] = l.ResponseTime.P50Ns
		}
	}}, []string{"slow warm-up"}},

	{"it keeps no series", world{cpu: 1, forgets: func(l *record.Load) {
		l.Series = record.Series{}
	}}, []string{"slow warm-up"}},

	{"it sees half of the server's processor time", world{cpu: 0.5}, []string{"processor time"}},

	{"it measures nothing", world{forgets: func(l *record.Load) { *l = record.Load{} }},
		every()},
}

func TestLiesAreFound(t *testing.T) {
	testsets.Whole(t, "many simulated cases")
	for i := range lies {
		lie := &lies[i]
		t.Run(lie.name, func(t *testing.T) {
			var fails []string
			for name, o := range run(t, &lie.world) {
				if o.State == selftest.Wrong {
					fails = append(fails, name)
				}
			}
			slices.Sort(fails)
			want := slices.Sorted(slices.Values(lie.fails))
			if !slices.Equal(fails, want) {
				t.Errorf("fails %q\nwant %q", fails, want)
			}
		})
	}
}

// TestEachCaseFindsALie checks that every case detects a fault, not only the one of a generator
// that reports nothing.
func TestEachCaseFindsALie(t *testing.T) {
	found := map[string]bool{}
	for _, lie := range lies[:len(lies)-1] {
		for _, name := range lie.fails {
			found[name] = true
		}
	}
	for _, name := range every() {
		if !found[name] {
			t.Errorf("%s finds none", name)
		}
	}
}

// named returns the case with a name.
func named(t *testing.T, name string) []selftest.Case {
	t.Helper()
	for _, c := range selftest.Cases() {
		if c.Name == name {
			return []selftest.Case{c}
		}
	}
	t.Fatalf("there is no case %q", name)
	return nil
}

// TestErrorsEndIt checks that a case that cannot run ends the selftest with the earlier outcomes,
// and leaves no server running.
func TestErrorsEndIt(t *testing.T) {
	w := &world{t: t, cpu: 1}
	cases := selftest.Cases()
	n := 0
	offer := func(ctx context.Context, s load.Spec) (*load.Result, error) {
		if n++; n == 2 {
			return nil, errors.New("no connection")
		}
		return w.offer(ctx, s)
	}
	setup := w.setup(quiet)
	setup.Offer = offer
	out, err := setup.Run(context.Background(), cases)
	want := fmt.Sprintf("selftest %s: no connection", cases[1].Name)
	if err == nil || err.Error() != want || len(out) != 1 || w.stopped != 2 {
		t.Errorf("%d outcomes, %d stopped, %v; want 1, 2, %s", len(out), w.stopped, err, want)
	}
	setup = w.setup(quiet)
	setup.Start = func(context.Context, string, truth.Params, truth.Options) (selftest.Server,
		error) {
		return nil, errors.New("no such program")
	}
	if out, err := setup.Run(context.Background(), cases); err == nil || len(out) != 0 {
		t.Errorf("%d outcomes without a server, %v", len(out), err)
	}
}

// TestItTakesAMinute checks the sum of all windows, lead-ins and used drains.
func TestItTakesAMinute(t *testing.T) {
	var sum time.Duration
	for _, c := range selftest.Cases() {
		sum += c.Spec.Lead + c.Spec.Window
		if c.Name == "timeouts" || c.Name == "hang" || c.Name == "overload" {
			sum += c.Spec.Drain
		}
	}
	if sum > 60*time.Second || sum < 45*time.Second {
		t.Errorf("the loads take %v", sum)
	}
}
