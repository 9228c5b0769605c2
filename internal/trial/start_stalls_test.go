package trial_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/observe/stalls"
	"prony.example/internal/suite"
	"prony.example/record"
)

// stallWatch has a stall of 2 ms at the end of each slice, by another process, or of half of the
// slice if it is disturbed.
type stallWatch struct {
	*crew
	began     int64
	on        bool
	disturbed func(length time.Duration) bool // nil: none is
}

func (w *stallWatch) Begin() error {
	if w.on || w.running > 1 { // in windows alone, one runs
		w.t.Errorf("a watch begins while it is on (%v) or %d targets run", w.on, w.running)
	}
	w.on, w.began = true, clock.Mono()
	return nil
}

func (w *stallWatch) End() error {
	w.on = false
	return nil
}

func (w *stallWatch) Read() []stalls.Stall {
	end := clock.Mono()
	length := int64(2e6)
	if w.disturbed != nil && w.disturbed(time.Duration(end-w.began)) {
		length = (end - w.began) / 2
	}
	return []stalls.Stall{
		{BeginNs: end - length, EndNs: end, LeastNs: 1e6, Core: 1, Cause: stalls.Process,
			Name: "hog"},
		{BeginNs: w.began, EndNs: end, Core: 1, Cause: stalls.Kernel, Name: "ksoftirqd/1"},
	}
}

func (w *stallWatch) Way() stalls.Way { return stalls.Way{Name: "fake", ShortestNs: 1e6} }
func (w *stallWatch) Lost() int       { return 0 }
func (w *stallWatch) Close() error    { w.stallsClosed++; return nil }

// TestStartWatchesStalls watches open slices and windows, and leaves out what is near stalls.
func TestStartWatchesStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		c.launcher.Processes = []int{1<<22 + 1} // an id of no process
		c.lab.Slicing.Stalls = func(cores []int, _ time.Duration, ours func(core, pid int) bool) (
			stallfree.Watch, error) {
			if len(cores) == 0 || !ours(c.lab.Layout.Load[0], os.Getpid()) || ours(cores[0], 1) {
				t.Errorf("cores %v, or processes are taken for what they are not", cores)
			}
			return &stallWatch{crew: c}, nil
		}
		records, err := c.run(context.Background(), c.experiment("a", "b"))
		if err != nil || records[0].Outcome != record.Measured {
			t.Fatal(err, records[0].Failure)
		}
		x := records[0].SideBySide.Open
		n := 2 * x.Rounds // one slice of each target
		if x.Stalls == nil || x.Stalls.Way != "fake" || x.Stalls.Count != n ||
			x.Stalls.StalledNs != int64(n)*2e6 || len(x.Stalls.Causes) != 1 ||
			x.Stalls.Causes[0].Name != "hog" || c.stallsClosed != 5 {
			t.Errorf("stalls %+v in %d slices, closed %d times", x.Stalls, n, c.stallsClosed)
		}
		for _, r := range records {
			for _, l := range r.Loads {
				if l.Stalls == nil || l.Stalls.Count != 1 {
					t.Errorf("%s: stalls in the window of %s: %+v", r.Trial, l.Name, l.Stalls)
				}
			}
			if x := r.Loads[0].WithoutStalls; x == nil || x.PerS < r.Loads[0].ThroughputPerS {
				t.Errorf("%s: throughput without stalls %+v", r.Trial, x)
			}
			free := r.Loads[1].Slices.StallFree
			if len(free) < 2 || free[0].KeptShare >= 1 || free[0].KeptShare < 0.9 ||
				free[0].Ns != free[0].RawNs || free[0].Unknown != "" {
				t.Errorf("%s: %+v", r.Trial, free)
			}
		}
		text, err := os.ReadFile(filepath.Join(c.dir, record.StallsFile("s1")))
		if err != nil || strings.Count(string(text), "hog") != n {
			t.Errorf("%d stalls are on disk, error %v", strings.Count(string(text), "hog"), err)
		}
	})
}

// TestStartDisturbed leaves out rounds and repeats windows in which the machine stalled for long.
func TestStartDisturbed(t *testing.T) {
	const window = time.Second // and slices are shorter
	for _, x := range []struct {
		name            string
		slices, windows int // that are disturbed
		rounds, again   int // left out; windows that were repeated
	}{
		{"none", 0, 0, 0, 0},
		{"one slice of a round, the windows of one target", 1, 2, 1, 1},
		{"two rounds", 4, 0, 2, 0},
		{"all", math.MaxInt, math.MaxInt, -1, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t)
			c.launcher.Processes = []int{1<<22 + 1} // an id of no process
			slicesLeft, windowsLeft := x.slices, x.windows
			c.lab.Slicing.Stalls = func([]int, time.Duration, func(core, pid int) bool) (
				stallfree.Watch, error) {
				return &stallWatch{crew: c, disturbed: func(length time.Duration) bool {
					left := &slicesLeft
					if length >= window {
						left = &windowsLeft
					}
					*left--
					return *left >= 0
				}}, nil
			}
			e := c.experiment("a", "b")
			half := &e.Plan.Suite.Loads[1] // of 10 s, the longest that is repeated
			half.Lead, half.Measure = suite.Duration(time.Second), suite.Duration(10*time.Second)
			records, err := c.run(context.Background(), e)
			if err != nil || records[0].Outcome != record.Measured {
				t.Fatal(err, records[0].Failure)
			}
			open := records[0].SideBySide.Open
			planned, again := open.Rounds-open.Disturbed, 0
			for _, r := range records {
				again += r.Loads[1].Disturbed
				if r.Loads[0].Disturbed > 0 {
					t.Errorf("%s: a closed window is repeated", x.name)
				}
				for _, s := range r.Loads[1].Slices.StallFree {
					if known := s.Unknown == ""; known != (x.rounds >= 0) {
						t.Errorf("%s: %s: %+v", x.name, r.Trial, s)
					}
				}
			}
			if want := x.rounds; want >= 0 && open.Disturbed != want ||
				want < 0 && open.Disturbed != planned || again != x.again {
				t.Errorf("%s: %d rounds of %d are left out, %d windows repeated", x.name,
					open.Disturbed, open.Rounds, again)
			}
			_, all, err := record.ReadSlices(c.dir, records[0].SideBySide.File)
			for _, s := range all {
				if want := s.Open && s.Round <= open.Disturbed; err != nil || s.Disturbed != want {
					t.Errorf("%s: slice %+v, error %v", x.name, s, err)
				}
			}
		})
	}
}
