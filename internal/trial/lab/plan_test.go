package lab

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch/process"
	"prony.example/internal/suite"
)

// slicedSuite compares targets side by side.
var slicedSuite = strings.Replace(wholeSuite, "interleave: blocks\n", "", 1)

// TestPlanOfStarts has no starts if targets listen on the same port, or if memory does not suffice.
func TestPlanOfStarts(t *testing.T) {
	check := func(blockwise string, change func(*Wish)) {
		t.Helper()
		w := wholeWish(t, slicedSuite, "a", "b")
		change(&w)
		p, err := (&Lab{World: simulated{}, Tell: &listener{}}).Plan(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Trials {
			if (x.Start == "") != (blockwise != "") || !strings.Contains(p.Blockwise, blockwise) {
				t.Errorf("start %q, blocks because %q, want %q", x.Start, p.Blockwise, blockwise)
			}
		}
	}
	check("", func(*Wish) {})
	check("several targets listen on the fixed port 9000", func(w *Wish) {
		w.Own.Services[0].Port, w.Own.Services[1].Port = 9000, 9000
	})
	check("", func(w *Wish) { w.Own.Services[0].Port, w.Own.Services[1].Port = 9000, 9001 })
	check("", func(w *Wish) { w.Own.Services[0].Port = 9000 })
	check("2 targets of up to ", func(w *Wish) {
		w.Override.Limits = suite.Limits{Memory: 1 << 40}
	})
	check("telemetry can be collected from only one target at a time", func(w *Wish) {
		w.Telemetry.Wanted = true
	})
}

// TestRivals reads the services of another checkout under a name.
func TestRivals(t *testing.T) {
	root, _, _ := ours(t)
	l := &Lab{World: simulated{}, Tell: &listener{}}
	check := func(against, origin, fails string) {
		t.Helper()
		got, err := l.rivals(against)
		if (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: error %v, want %s", against, err, fails)
		}
		for _, s := range got {
			if s.Origin != origin {
				t.Errorf("%s: %s is of %q, want %q", against, s.Name, s.Origin, origin)
			}
		}
		if err == nil && (len(got) > 0) != (origin != "") {
			t.Errorf("%s: %d services", against, len(got))
		}
	}
	check("", "", "")
	check(root, "base", "")
	check("old="+root, "old", "")
	check("o d="+root, "", `"o d" is not a valid name`)
	check("old=", "", "the folder after the = is missing")
	check(filepath.Join(root, "docs"), "", "read the other checkout of --against")
}

// turns is a world in which another lab has the machine for some time.
type turns struct {
	simulated
	busy *int // number of refusals that are left
}

func (w turns) Enter() (*process.Journal, []string, error) {
	if *w.busy--; *w.busy >= 0 {
		return nil, nil, &process.Busy{Who: "process 7"}
	}
	return nil, []string{"process 8"}, nil
}

// cleaned is a world that ends what an earlier lab left, and is then not free.
type cleaned struct{ simulated }

func (cleaned) Enter() (*process.Journal, []string, error) {
	return nil, []string{"process 8"}, errors.New("not free")
}

// TestLeftoversOfARefusal checks that leftovers that were ended are reported although the lab does
// not get the machine.
func TestLeftoversOfARefusal(t *testing.T) {
	heard := &listener{}
	_, _, err := (&Lab{World: cleaned{}, Tell: heard}).Take(t.Context(), nil, "")
	if err == nil || len(heard.lines) != 1 ||
		!strings.HasPrefix(heard.lines[0], "ended process 8") {
		t.Errorf("it says %q, error %v", heard.lines, err)
	}
}

// TestTakeWaits for another lab, if the user permits it, and reports once for which.
func TestTakeWaits(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	check := func(busy int, wait, took time.Duration, fails string, said ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			heard := &listener{}
			l := &Lab{World: turns{busy: &busy}, Tell: heard, Wait: wait}
			began := time.Now()
			ownLab, leave, err := l.Take(t.Context(), nil, "")
			wrong := err != nil && !strings.Contains(err.Error(), fails)
			if wrong || (err == nil) != (fails == "") || time.Since(began) != took ||
				!slices.Equal(heard.lines, said) {
				t.Errorf("after %v: error %v, said %q; want %v, %s, %q", time.Since(began), err,
					heard.lines, took, fails, said)
			}
			if err != nil {
				return
			}
			if first, err := ownLab.enter(t.Context()); err != nil || len(first.reaped) != 1 {
				t.Errorf("the first step finds %q, %v", first.reaped, err)
			}
			if next, err := ownLab.enter(t.Context()); err != nil || len(next.reaped) > 0 {
				t.Errorf("the next step finds %q, %v", next.reaped, err)
			}
			if err := leave(); err != nil {
				t.Error(err)
			}
		})
	}
	const waits = "waiting for the machine, for at most 5s: it is used by process 7"
	check(0, 0, 0, "")
	check(1, 0, 0, process.ErrBusy.Error())
	check(0, 5*time.Second, 0, "")
	check(3, 5*time.Second, 3*time.Second, "", waits)
	check(100, 5*time.Second, 5*time.Second, "waited 5s: ", waits)
}
