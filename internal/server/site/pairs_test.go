package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/report"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// TestPairsOf checks that each run is compared with the previous one of its suite and machine, and
// with the newest one that has the baseline label.
func TestPairsOf(t *testing.T) {
	var entries []runs.Entry
	add := func(id, suite, machine string, labels ...string) {
		e := runs.Entry{ID: id, Suite: suite, Machine: runs.Machine{Key: machine}, Blocks: 1,
			Labels: map[string]string{}}
		for _, l := range labels {
			e.Labels[l] = "yes"
		}
		entries = append([]runs.Entry{e}, entries...) // the newest is the first
	}
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range pairsOf(entries) {
			got = append(got, fmt.Sprintf("%s-%s %s", p.B, p.A, p.Kind))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check()
	add("1", "s", "m", "note")
	check()
	add("2", "s", "m", Baseline)
	add("3", "s", "other")
	add("4", "else", "m", Baseline)
	add("5", "s", "m")
	check("5-2 previous", "2-1 previous")
	add("6", "s", "m")
	entries[0].Blocks = 0 // under way, without a record
	add("7", "s", "m", Baseline)
	add("8", "s", "m")
	add("9", "s", "m")
	check("9-8 previous", "9-7 baseline", "8-7 previous", "7-5 previous", "7-2 baseline",
		"5-2 previous", "2-1 previous")
}

// pairSite is a site of four runs, each of which is compared with the previous one.
type pairSite struct {
	*testing.T
	*runs.Shelf
	to  string
	ids []string // the newest is the first
}

func newPairSite(t *testing.T) *pairSite {
	t.Helper()
	x := &pairSite{t, makeRuns(t, 4), filepath.Join(t.TempDir(), "public"), nil}
	write(t, x.Shelf, x.to)
	list, err := x.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Entries {
		x.ids = append(x.ids, e.ID)
	}
	return x
}

// page returns the file that compares run b with run a.
func (x *pairSite) page(b, a int) string {
	return filepath.Join(x.to, runsDir, x.ids[b], pairPrefix+x.ids[a]+".html")
}

// TestPairIsAComparison checks that a site's comparison is the page of prony compare.
func TestPairIsAComparison(t *testing.T) {
	x := newPairSite(t)
	a, errA := side(x.Shelf, x.ids[1])
	b, errB := side(x.Shelf, x.ids[0])
	c, err := compare.Compare(a, b, compare.Options{})
	var want bytes.Buffer
	if err == nil {
		err = report.Compare(&want, c, report.HTMLOptions{})
	}
	if errA != nil || errB != nil || err != nil {
		t.Fatal(errA, errB, err)
	}
	if got := read(t, x.page(0, 1)); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the page of %d bytes is not that of prony compare, of %d", len(got), want.Len())
	}
}

// TestPairsAgain checks that a comparison is made again only if one of its runs has changed, and
// that it is removed with a run.
func TestPairsAgain(t *testing.T) {
	x := newPairSite(t)
	old := time.Now().Add(-time.Hour)
	for i := range 3 {
		if err := os.Chtimes(x.page(i, i+1), old, old); err != nil {
			t.Fatal(err)
		}
	}
	made := func() (again []int) {
		t.Helper()
		write(t, x.Shelf, x.to)
		for i := range 3 {
			info, err := os.Stat(x.page(i, i+1))
			if err == nil && info.ModTime().After(old.Add(time.Minute)) {
				again = append(again, i)
			}
		}
		return again
	}
	if again := made(); again != nil {
		t.Errorf("nothing has changed, and comparisons %v were made again", again)
	}
	run(t, x.Dir(), 1, 2) // ids[2]
	if again := made(); !slices.Equal(again, []int{1, 2}) {
		t.Errorf("run 2 has changed, and comparisons %v were made again, not 1 and 2", again)
	}
	if err := x.Remove(x.ids[2]); err != nil {
		t.Fatal(err)
	}
	write(t, x.Shelf, x.to)
	left, err := filepath.Glob(filepath.Join(x.to, runsDir, x.ids[1], pairPrefix+"*.html"))
	if err != nil || !slices.Equal(left, []string{x.page(1, 3)}) {
		t.Errorf("once run 2 is gone, run 1 has %v, %v", left, err)
	}
}

// TestPairIsRefused checks that a refused comparison has a reason, also if the site is written
// again.
func TestPairIsRefused(t *testing.T) {
	x := newPairSite(t)
	unlike(t, filepath.Join(x.Dir(), x.ids[0]))
	for range 2 {
		write(t, x.Shelf, x.to)
		var pairs []pair
		document(t, x.to, "data/pairs", &pairs)
		if len(pairs) != 3 || pairs[1].Refused != "" ||
			!strings.Contains(pairs[0].Refused, "measured with different configurations") {
			t.Errorf("the comparisons are %+v", pairs)
		}
		if _, err := os.Stat(x.page(0, 1)); err == nil {
			t.Error("a comparison that is refused has its page still")
		}
	}
}

// TestPairOfCopies checks that a comparison of two copies of one run warns of that.
func TestPairOfCopies(t *testing.T) {
	x := newPairSite(t)
	from := os.DirFS(filepath.Join(x.Dir(), x.ids[0]))
	if err := os.CopyFS(filepath.Join(x.Dir(), "zcopy"), from); err != nil {
		t.Fatal(err)
	}
	write(t, x.Shelf, x.to)
	pages, err := filepath.Glob(filepath.Join(x.to, runsDir, "*", pairPrefix+"*"))
	if err != nil || !slices.ContainsFunc(pages, func(name string) bool {
		return bytes.Contains(read(t, name), []byte("copies of one run"))
	}) {
		t.Errorf("no comparison of %q warns of copies, %v", pages, err)
	}
}

// unlike changes the connections of a run's loads.
func unlike(t *testing.T, dir string) {
	t.Helper()
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	var lines bytes.Buffer
	for _, r := range records {
		for i := range r.Loads {
			r.Loads[i].Connections++
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	save(t, filepath.Join(dir, record.TrialsFile), lines.Bytes())
}
