package runs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"prony.example/record"
)

// TestRunsThatWereKilled checks that a run that was killed has planned trials without a record. A
// run with a time budget plans only its first block: it is unfinished until its schedule has the
// reason for its end. Sides of comparisons have both.
func TestRunsThatWereKilled(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "canonical")
	at := filepath.Join(dir, monday)
	shelf := open(t, dir, Options{}) // one for all: it reads again what has changed
	check := func(what string, missing int, unfinished bool) {
		t.Helper()
		want := Done
		if missing > 0 || unfinished {
			want = Stopped
		}
		if e, err := shelf.Entry(monday); err != nil || e.State != want {
			t.Errorf("%s: it is %s, %v; want %s", what, e.State, err, want)
		}
		r, err := Read(at)
		if err != nil {
			t.Fatal(err)
		}
		side, o := r.Side("go-nethttp"), r.Options()
		if len(side.Missing) != missing || side.Unfinished != unfinished ||
			len(o.Missing) != missing || o.Unfinished != unfinished {
			t.Errorf("%s: the side lacks %d, unfinished %v; options %d, %v; want %d, %v", what,
				len(side.Missing), side.Unfinished, len(o.Missing), o.Unfinished, missing,
				unfinished)
		}
		if side.Target != "go-nethttp" || side.Dir != at || side.Head.ID != monday ||
			len(side.Records) == 0 || side.Reproduce == "" || side.Slices == nil {
			t.Errorf("%s: %+v", what, side)
		}
	}
	check("whole", 0, false)
	records, err := os.ReadFile(filepath.Join(at, record.TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(records, []byte("\n"))
	put(t, string(bytes.Join(lines[:3], nil)), at, record.TrialsFile)
	check("killed in block 2", 1, false)
	for ended, unfinished := range map[string]bool{"": true, "time": false, "decided": false} {
		if err := record.SaveSchedule(at, record.Schedule{ForNs: 60e9, Ended: ended}); err != nil {
			t.Fatal(err)
		}
		check("for a time, ended by "+ended, 0, unfinished)
	}
}

// TestEntryOfStarts checks how long a run of starts took, whose trials share the time: two starts
// of three targets and 90 s each.
func TestEntryOfStarts(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	r := &Run{Dir: "x"}
	for i := range 6 {
		r.Records = append(r.Records, &record.Record{Trial: fmt.Sprint(i), Block: 1 + i/3,
			Time: noon.Add(time.Duration(i/3) * 90 * time.Second), DurationNs: 30e9,
			SideBySide: &record.SideBySide{With: []string{"x", "y"}}})
	}
	if e := r.Entry(); e.Seconds != 180 || !e.Ended.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("%v s, ended %v", e.Seconds, e.Ended)
	}
}
