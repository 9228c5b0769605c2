package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/stats"
)

// course is a simulated run: trials of a second for each target, at speeds that scatter by block
// and target, without chance.
type course struct {
	t     *testing.T
	speed map[string]float64
	takes map[string]time.Duration // default: a second
	bad   func(trial.Spec) bool
	start bool // the trials of a block share a start
	done  []*record.Record
	saved []record.Schedule
	fails error
}

func (c *course) run(most time.Duration, blocks int, names ...string) *budget {
	c.t.Helper()
	var left []trial.Spec
	add := func(block int, name, role string) {
		left = append(left, trial.Spec{Trial: suite.Trial{
			ID: fmt.Sprintf("%s%d-%s", role, block, name), Block: block, Target: name,
			Scenario: "read", Variant: "none", Role: role,
		}})
	}
	add(0, names[0], record.Pilot)
	for block := range blocks {
		for _, name := range names {
			add(block+1, name, "")
		}
	}
	add(0, names[0], record.Observed)
	for i := range left {
		if c.start && left[i].Block > 0 {
			left[i].Start = fmt.Sprint("start-", left[i].Block)
		}
	}
	b := newBudget(most, 0.03, func(s record.Schedule) error {
		c.saved = append(c.saved, s)
		return c.fails
	})
	for left = b.next(nil, left); len(left) > 0; left = b.next(c.done, left) {
		t := left[0]
		took := time.Second
		if d, ok := c.takes[t.Target]; ok {
			took = d
		}
		time.Sleep(took)
		r := &record.Record{Trial: t.ID, Block: t.Block, Outcome: record.Measured,
			DurationNs: int64(took)}
		// Within 1 %, in a different way for each target and block.
		noise := 1 + 0.01*math.Sin(float64(7*t.Block)+10*c.speed[t.Target])
		r.Loads = []record.Load{{Model: record.Closed, ThroughputPerS: noise * c.speed[t.Target]}}
		if c.bad != nil && c.bad(t) {
			r.Verdict.Grade, r.Loads[0].ThroughputPerS = record.Invalid, 1
		}
		c.done, left = append(c.done, r), left[1:]
	}
	return b
}

// count returns the number of a target's trials in the comparison, and of others.
func (c *course) count(name string) (compared, beside int) {
	for _, r := range c.done {
		switch {
		case !strings.HasSuffix(r.Trial, "-"+name):
		case r.Block == 0:
			beside++
		default:
			compared++
		}
	}
	return compared, beside
}

func TestBudget(t *testing.T) {
	within := func(f func(*testing.T)) { synctest.Test(t, f) }
	within(func(t *testing.T) {
		// a and b differ by 1 %, which five blocks cannot detect and which does not matter: they
		// come last, and c with them for the drift.
		c := &course{t: t, speed: map[string]float64{"a": 100, "b": 101, "c": 200, "d": 400}}
		b := c.run(60*time.Second, 30, "a", "b", "c", "d")
		na, beside := c.count("a")
		nb, _ := c.count("b")
		nd, _ := c.count("d")
		s := c.scene(b)
		if b.reported.Ended != "decided" || na != nb || nd >= na || beside != 2 || b.err != nil ||
			s.Decided("a", "d") != stats.Apart || s.Decided("a", "b") != stats.Alike {
			t.Errorf("a %d, b %d, d %d, beside %d, %v; %+v", na, nb, nd, beside, b.err, b.reported)
		}
		last := c.saved[len(c.saved)-1]
		if last.Ended != "decided" || last.Next == nil || last.Next.Open != 0 ||
			last.Next.BlockNs != 4e9 || last.Next.Blocks != 75 || len(last.Next.Targets) != 4 ||
			!(last.Next.Would < last.Next.Resolves) {
			t.Errorf("saved %+v, %+v", last, last.Next)
		}
	})
	within(func(t *testing.T) {
		// Without slices, two blocks decide; ratios from slices need four starts.
		speed := map[string]float64{"a": 100, "b": 300, "c": 900}
		for start, want := range map[bool]int{false: 2, true: stats.LeastStarts} {
			c := &course{t: t, speed: speed, start: start}
			b := c.run(14*time.Second, 30, "a", "b", "c")
			if n, _ := c.count("b"); n != want || b.reported.Ended != "decided" {
				t.Errorf("starts %v: %d blocks, want %d, %+v", start, n, want, b.reported)
			}
		}
	})
	within(func(t *testing.T) {
		// A block of 1 + 5 s; the pilot's second also counts: 3 of them are 19 s, a fourth would
		// end at 25.
		c := &course{t: t, speed: map[string]float64{"a": 100, "b": 101},
			takes: map[string]time.Duration{"b": 5 * time.Second}}
		b := c.run(24*time.Second, 30, "a", "b")
		if n, _ := c.count("b"); n != 3 || b.reported.Ended != "time" ||
			b.reported.SpentNs != 19e9 {
			t.Errorf("%d blocks, %+v", n, b.reported)
		}
		if next := b.reported.Next; next.BlockNs != 6e9 || next.Blocks != 50 || next.Open != 1 {
			t.Errorf("%+v", next)
		}
	})
	within(func(t *testing.T) {
		// INVALID trials do not count: b has too few trials to differ significantly.
		c := &course{t: t, speed: map[string]float64{"a": 100, "b": 300, "c": 900},
			bad: func(t trial.Spec) bool { return t.Target == "b" && t.Block > 1 }}
		b := c.run(40*time.Second, 30, "a", "b", "c")
		if s := c.scene(b); s.Decided("a", "b") != "" || s.Decided("a", "c") != stats.Apart ||
			b.reported.Ended != "time" {
			t.Errorf("%+v", b.reported)
		}
	})
	within(func(t *testing.T) {
		c := &course{t: t, speed: map[string]float64{"a": 100, "b": 300}, fails: errors.New("full")}
		if b := c.run(20*time.Second, 2, "a", "b"); b.err == nil ||
			b.reported.Ended != "all blocks" ||
			b.reported.Next.Blocks != 150 {
			t.Errorf("%v, %+v", b.err, b.reported)
		}
	})
}

func (c *course) scene(b *budget) *scene { return b.scenes["read"] }

func TestContender(t *testing.T) {
	spec := trial.Spec{Trial: suite.Trial{Target: "x", Variant: "none", Driver: "prony"}}
	other := trial.Spec{Trial: suite.Trial{Target: "x", Variant: "agent", Driver: "wrk",
		Launcher: "docker"}}
	got := []string{contender(spec), contender(other)}
	if !slices.Equal(got, []string{"x", "x agent wrk docker"}) {
		t.Errorf("%q", got)
	}
}
