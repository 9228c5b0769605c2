package selftest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/selftest"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

const ms = time.Millisecond

// TestDisturbedIsTriedAgain checks that a deviation that the machine explains is measured again, up
// to twice, and that a larger one counts only in two attempts.
func TestDisturbedIsTriedAgain(t *testing.T) {
	check := func(name string, bad func(attempt int, l *record.Load, w *world), state string,
		attempts int) {
		t.Helper()
		w := &world{t: t, cpu: 1}
		attempt := 0
		w.forgets = func(l *record.Load) { attempt++; bad(attempt, l, w) }
		var said []string
		out, err := w.setup(func(s string) { said = append(said, s) }).
			Run(context.Background(), named(t, "capacity"))
		if err != nil {
			t.Fatal(err)
		}
		o := out[0]
		if o.State != state || o.Attempts != attempts ||
			(state == selftest.Disturbed) != (o.Disturbed != "") {
			t.Errorf("%s: %s in %d attempts, disturbed by %q; want %s in %d", name, o.State,
				o.Attempts, o.Disturbed, state, attempts)
		}
		text := strings.Join(said, "\n")
		again := strings.Contains(text, "disturbed: ") || strings.Contains(text, "recorded reason")
		if again != (attempts > 1) {
			t.Errorf("%s: said %q", name, said)
		}
	}
	// The mean is 16 ms: 4 % are 0.64 ms, and a wait delays the answers of eight connections.
	off := func(l *record.Load) { l.ResponseTime.MeanNs *= 1.04 }
	waits := func(l *record.Load) { l.Generator.RunDelayNs = l.Answered * 90_000 }
	check("good", func(int, *record.Load, *world) {}, selftest.OK, 1)
	check("off", func(_ int, l *record.Load, _ *world) { off(l) }, selftest.Wrong, 2)
	check("off in one attempt, without a reason", func(attempt int, l *record.Load, _ *world) {
		if attempt == 1 {
			off(l)
		}
	}, selftest.Disturbed, 2)
	check("off, disturbed, off", func(attempt int, l *record.Load, _ *world) {
		off(l)
		if attempt == 2 {
			waits(l)
		}
	}, selftest.Wrong, 3)
	check("disturbed twice, then off", func(attempt int, l *record.Load, _ *world) {
		off(l)
		if attempt < 3 {
			waits(l)
		}
	}, selftest.Wrong, 4)
	check("off once", func(attempt int, l *record.Load, _ *world) {
		if attempt == 1 {
			off(l)
			waits(l)
		}
	}, selftest.OK, 2)
	check("off always", func(_ int, l *record.Load, _ *world) { off(l); waits(l) },
		selftest.Disturbed, 3)
	check("disturbed, then off", func(attempt int, l *record.Load, _ *world) {
		off(l)
		if attempt == 1 {
			waits(l)
		}
	}, selftest.Wrong, 3)
	check("good in spite of it", func(_ int, l *record.Load, _ *world) { waits(l) }, selftest.OK, 1)
	check("too short", func(_ int, l *record.Load, _ *world) {
		l.ResponseTime.MeanNs *= 0.96
		waits(l)
	}, selftest.Wrong, 2)
	// The server's waiting is included in its times.
	check("the server waited", func(_ int, l *record.Load, w *world) { off(l); w.waits = 9e6 },
		selftest.Wrong, 2)
}

// stalls stops the load's thread at known times, like a hypervisor.
type stalls struct {
	load.Engine
	length, period int64
	next, until    int64 // begin of the next stall, end of the latest
	began          bool
	add            func(stats.Stall)
}

// stalling stops an engine for length at the begin of each period, from the second one on.
func stalling(length, period time.Duration, add func(stats.Stall)) func(load.Engine) load.Engine {
	return func(e load.Engine) load.Engine {
		return &stalls{Engine: e, length: int64(length), period: int64(period), add: add}
	}
}

// Wait sleeps during a stall, and then waits at most until the next one.
func (s *stalls) Wait(deadline int64, h load.Handler) error {
	now := clock.Mono()
	if !s.began {
		s.began, s.next, s.until = true, now+s.period, now
	}
	for ; now >= s.next; s.next += s.period {
		s.until = s.next + s.length
		s.add(stats.Stall{BeginNs: s.next, EndNs: s.until})
	}
	if s.until > now {
		time.Sleep(time.Duration(s.until - now))
	}
	return s.Engine.Wait(min(deadline, s.next), h)
}

// runStalled runs cases with stalls. Function know returns the Machine for the actual stalls.
func runStalled(t *testing.T, w *world, cases []selftest.Case, length, period time.Duration,
	know func([]stats.Stall) selftest.Machine) []selftest.Outcome {
	t.Helper()
	w.t = t
	var all []stats.Stall
	w.wrap = stalling(length, period, func(s stats.Stall) { all = append(all, s) })
	w.machine = func() selftest.Machine {
		m := know(all)
		all = nil
		return m
	}
	outcomes, err := w.setup(quiet).Run(context.Background(), cases)
	if err != nil || len(outcomes) != len(cases) {
		t.Fatalf("%d outcomes of %d cases, %v", len(outcomes), len(cases), err)
	}
	return outcomes
}

func total(all []stats.Stall) (ns int64) {
	for _, s := range all {
		ns += s.EndNs - s.BeginNs
	}
	return ns
}

// recorded returns a Machine with the stalls.
func recorded(all []stats.Stall) selftest.Machine {
	return selftest.Machine{StallsWay: "perf event", Stalls: slices.Clone(all),
		Load: selftest.Cores{StalledNs: total(all)}}
}

// counted returns a Machine with only the stolen time.
func counted(all []stats.Stall) selftest.Machine {
	return selftest.Machine{Load: selftest.Cores{StealNs: total(all)}}
}

// unknown returns a Machine without stalls.
func unknown([]stats.Stall) selftest.Machine { return selftest.Machine{} }

// TestStallsAreNoFault checks stalls at known times on the load's core: if they are recorded or
// counted, no case of a correct generator is wrong. If they are unknown, some are.
func TestStallsAreNoFault(t *testing.T) {
	testsets.Whole(t, "many simulated cases")
	for _, s := range []struct {
		name           string
		length, period time.Duration
		know           func([]stats.Stall) selftest.Machine
		wrong          bool
		disturbed      int // largest number of cases
	}{
		{"3 ms, recorded", 3 * ms, 97 * ms, recorded, false, 3},
		{"3 ms, counted", 3 * ms, 97 * ms, counted, false, 6},
		{"20 ms, recorded", 20 * ms, 397 * ms, recorded, false, 6},
		{"20 ms, counted", 20 * ms, 397 * ms, counted, false, 10},
		{"20 ms, unknown", 20 * ms, 397 * ms, unknown, true, 0},
	} {
		t.Run(s.name, func(t *testing.T) {
			states := map[string][]string{}
			outcomes := runStalled(t, &world{cpu: 1}, selftest.Cases(), s.length, s.period, s.know)
			for _, o := range outcomes {
				states[o.State] = append(states[o.State], o.Case)
				if o.State == selftest.Wrong {
					t.Logf("%s: %+v", o.Case, o.Lines)
				}
			}
			if got := len(states[selftest.Wrong]) > 0; got != s.wrong {
				t.Errorf("wrong are %q", states[selftest.Wrong])
			}
			if n := len(states[selftest.Disturbed]); n > s.disturbed {
				t.Errorf("%d are disturbed, at most %d: %q", n, s.disturbed,
					states[selftest.Disturbed])
			}
			t.Logf("disturbed are %q", states[selftest.Disturbed])
		})
	}
}

// TestFaultsAreNoDisturbance checks that each faulty generator is still wrong in each case that
// detects its fault, with stalls of half a percent of the time and with other processes that always
// run on the cores in use.
func TestFaultsAreNoDisturbance(t *testing.T) {
	testsets.Whole(t, "many simulated cases")
	for i := range lies {
		lie := &lies[i]
		t.Run(lie.name, func(t *testing.T) {
			w := lie.world
			busy := func(all []stats.Stall) selftest.Machine {
				m := recorded(all)
				m.Load.OthersNs, m.Service.OthersNs = 8e9, 8e9
				return m
			}
			var all []selftest.Case
			for _, name := range lie.fails {
				all = append(all, named(t, name)...)
			}
			for _, o := range runStalled(t, &w, all, 2*ms, 397*ms, busy) {
				if o.State != selftest.Wrong {
					t.Errorf("%s is %s: %+v", o.Case, o.State, o.Lines)
				}
			}
		})
	}
}
