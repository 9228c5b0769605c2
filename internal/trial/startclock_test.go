package trial_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"prony.example/record"
)

// targetClock hides the freezer's Close.
type targetClock struct{ *target }

func (c targetClock) Grouped() bool  { return false }
func (c targetClock) Complete() bool { return !strings.HasSuffix(c.name, "-"+c.crew.incomplete) }
func (c targetClock) Close()         { c.crew.clocksClosed++ }

// TestStartWithoutCPUTime checks that CPU time in slices is unknown if too much of it was used by
// processes that began and ended within slices.
func TestStartWithoutCPUTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		c.incomplete = "b"
		records, err := c.run(context.Background(), c.experiment("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			known := r.Target.Name == "a"
			for _, l := range r.Loads {
				if (l.Slices.CPUNs > 0) != known {
					t.Errorf("%s: CPU time %d in slices of %s", r.Target.Name, l.Slices.CPUNs,
						l.Name)
				}
			}
			if (r.SideBySide.Clock == record.ClockProcess) != known {
				t.Errorf("%s: clock %q", r.Target.Name, r.SideBySide.Clock)
			}
		}
		head, all, err := record.ReadSlices(c.dir, records[0].SideBySide.File)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if known := strings.HasSuffix(head.Trials[x.Target], "-a"); (x.CPUNs > 0) != known {
				t.Fatalf("%s: CPU time %d in a slice", head.Trials[x.Target], x.CPUNs)
			}
		}
		if c.clocksClosed != 2 {
			t.Errorf("%d clocks were closed, want 2", c.clocksClosed)
		}
	})
}
