package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/report/history"
	"prony.example/record"
)

// begun writes runs without a trial, which are read in no time.
func begun(t *testing.T, dir string, from, to int) {
	t.Helper()
	head, _ := real(t)
	for i := from; i < to; i++ {
		head.ID, head.Suite = fmt.Sprintf("2026-01-01T%02d-%02d-%02dZ", i/3600, i/60%60, i%60),
			fmt.Sprintf("suite-%d", i%3)
		head.Labels = map[string]string{"build": fmt.Sprint(i)}
		b, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		put(t, string(b), dir, head.ID, record.RunFile)
		put(t, "", dir, head.ID, record.TrialsFile)
	}
}

// counted opens a shelf that counts the runs it reads.
func counted(t *testing.T, dir string) (*Shelf, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	return open(t, dir, Options{Program: "one", Report: func(int, int) { n.Add(1) }}), &n
}

// pageOf returns a page once all runs are read.
func pageOf(t *testing.T, s *Shelf, f Filter, after string, limit int) Page {
	t.Helper()
	for {
		p, err := s.Page(t.Context(), f, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if p.Unread == 0 {
			return p
		}
		list(t, s)
	}
}

// TestOnlyChangedRunsAreRead checks that a second program reads only runs that changed, appeared or
// were resumed, that its next page has these changes, and that it forgets removed runs.
func TestOnlyChangedRunsAreRead(t *testing.T) {
	dir := t.TempDir()
	const many = maxUnsent + 20 // more than are written at once
	begun(t, dir, 0, many)
	s, n := counted(t, dir)
	first := list(t, s)
	if len(first.Entries) != many || n.Load() != many {
		t.Fatalf("%d runs, %d were read", len(first.Entries), n.Load())
	}
	s, n = counted(t, dir)
	check := func(what string, read int, f Filter, total int) {
		t.Helper()
		n.Store(0)
		p := pageOf(t, s, f, "", 10)
		if p.Total != total || int(n.Load()) != read {
			t.Errorf("%s: %d entries, want %d; %d runs were read, want %d", what, p.Total, total,
				n.Load(), read)
		}
	}
	check("nothing changed", 0, Filter{}, many)
	if got := list(t, s); !reflect.DeepEqual(got, first) {
		t.Error("the cache has other entries")
	}
	run(t, dir, "2026-02-01T00-00-00Z", "new")
	check("a new run", 1, Filter{Suite: "new"}, 1)
	run(t, dir, "2026-02-01T00-00-00Z", "changed")
	check("a changed run", 1, Filter{Suite: "changed"}, 1)
	name := filepath.Join(dir, "2026-02-01T00-00-00Z", record.TrialsFile)
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	put(t, string(bytes.Join(lines[:3], nil)), name)
	check("a run that lacks a trial", 1, Filter{Suite: "changed", Verdict: "missing"}, 1)
	put(t, string(all), name)
	check("a resumed run", 1, Filter{Suite: "changed", Verdict: "missing"}, 0)
	if err := s.Label("2026-02-01T00-00-00Z", map[string]string{"new": "label"}); err != nil {
		t.Fatal(err)
	}
	check("a labelled run", 1, Filter{Label: "new"}, 1)
	put(t, `{"seq":9,"kind":"end","outcome":"done"}`+"\n", dir, "2026-02-01T00-00-00Z",
		record.ProgressFile)
	check("a run that ended", 1, Filter{Label: "new"}, 1)
	s, n = counted(t, dir)
	check("another program", 0, Filter{Label: "new"}, 1)
	if err := s.Remove("2026-02-01T00-00-00Z"); err != nil {
		t.Fatal(err)
	}
	check("a removed run", 0, Filter{}, many)
	s, n = counted(t, dir)
	check("a third program", 0, Filter{}, many)
}

// TestPages checks that pages follow each other without gaps, and that text filters match any word.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, 25)
	s := open(t, dir, Options{Program: "one"})
	whole := list(t, s).Entries
	var got []Entry
	after := ""
	for range 3 {
		p := pageOf(t, s, Filter{}, after, 10)
		got = append(got, p.Entries...)
		after = got[len(got)-1].Place()
		if more := len(got) < len(whole); p.More != more || p.Total != 25 {
			t.Errorf("after %d entries: %+v", len(got), p)
		}
	}
	if !reflect.DeepEqual(got, whole) {
		t.Errorf("pages have %d entries, the list has %d", len(got), len(whole))
	}
	for text, want := range map[string]int{"SUITE-1": 8, "build=17": 1, "build=2": 6,
		"00-00-03z": 1, "nowhere": 0, "NODE-express": 25} {
		if p := pageOf(t, s, Filter{Text: text}, "", 1); p.Total != want {
			t.Errorf("%q matches %d runs, want %d", text, p.Total, want)
		}
	}
	if p := pageOf(t, s, Filter{Machine: "another"}, "", 1); p.Total != 0 {
		t.Errorf("%d runs of another machine", p.Total)
	}
}

// TestIncompletePage checks that a page comes before all of many runs are read, and counts them.
func TestIncompletePage(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, maxWait+1)
	hold := make(chan struct{})
	var once sync.Once
	s := open(t, dir, Options{Program: "one", Report: func(int, int) { <-hold }})
	p, err := s.Page(t.Context(), Filter{}, "", 5)
	once.Do(func() { close(hold) })
	if err != nil || p.Unread == 0 || p.Runs != maxWait+1 || p.Total > p.Runs {
		t.Errorf("while runs are read: %+v, %v", p, err)
	}
	if p := pageOf(t, s, Filter{}, "", 5); p.Total != maxWait+1 || p.Runs != maxWait+1 {
		t.Errorf("afterwards: %+v", p)
	}
}

// TestDamagedCache checks that a damaged line is read again, and that its program repairs the file.
func TestDamagedCache(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, 5)
	s, _ := counted(t, dir)
	want := list(t, s)
	name := filepath.Join(dir, record.Kept, cacheFile)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	check := func(read int, text string) {
		t.Helper()
		put(t, text, name)
		s, n := counted(t, dir)
		if got := list(t, s); !reflect.DeepEqual(got, want) || int(n.Load()) != read {
			t.Errorf("%.60q: %d runs were read, want %d; the list is right: %v", text, n.Load(),
				read, reflect.DeepEqual(got, want))
		}
		s, n = counted(t, dir)
		if got := list(t, s); !reflect.DeepEqual(got, want) || n.Load() != 0 {
			t.Errorf("%.60q: not repaired, %d runs were read", text, n.Load())
		}
	}
	check(0, string(good))
	check(1, strings.Replace(string(good), "suite-1", "suite-9", 1))
	check(1, string(good[:len(good)-9]))
	check(5, "")
	check(5, strings.Repeat("x", 5000))
	check(5, string(good[9:]))
	check(0, string(good)+"half a li")
}

// TestTwoPrograms checks that two programs at once write one cache, and that a third finds all
// runs in it.
func TestTwoPrograms(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, 40)
	a, _ := counted(t, dir)
	b, _ := counted(t, dir)
	for round := range 5 {
		var both sync.WaitGroup
		for _, s := range []*Shelf{a, b} {
			both.Go(func() {
				if x, err := s.List(t.Context()); err != nil || len(x.Entries) != 40+10*round {
					t.Errorf("round %d: %d runs, %v", round, len(x.Entries), err)
				}
			})
		}
		both.Wait()
		begun(t, dir, 40+10*round, 50+10*round)
	}
	want := list(t, a)
	if got := list(t, b); !reflect.DeepEqual(got, want) {
		t.Error("two programs have different lists")
	}
	c, n := counted(t, dir)
	if got := list(t, c); !reflect.DeepEqual(got, want) || n.Load() != 0 {
		t.Errorf("a third program read %d runs", n.Load())
	}
}

// TestCacheStaysSmall checks that outdated lines are removed, and that an open shelf survives it.
func TestCacheStaysSmall(t *testing.T) {
	testsets.Whole(t, "hundreds of runs")
	dir := t.TempDir()
	begun(t, dir, 0, 3)
	long := strings.Repeat("x", 3000)
	a, _ := counted(t, dir)
	b, _ := counted(t, dir)
	list(t, a)
	name := filepath.Join(dir, record.Kept, cacheFile)
	id := "2026-01-01T00-00-01Z"
	for i := range 2 * slack / 3000 {
		if err := a.Label(id, map[string]string{"n": fmt.Sprint(i), "long": long}); err != nil {
			t.Fatal(err)
		}
		list(t, a)
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() > 2*slack {
		t.Errorf("the cache has %d bytes, %v", info.Size(), err)
	}
	want := list(t, b)
	if got := list(t, a); !reflect.DeepEqual(got, want) {
		t.Error("after the file was replaced, the lists differ")
	}
}

// TestPasts checks that the cache has the same history as the records, and without it too.
func TestPasts(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	run(t, dir, tuesday, "small")
	put(t, "{", dir, "torn", record.RunFile)
	var want [][]history.Series
	for _, id := range []string{monday, tuesday} {
		head, records, _, err := record.Read(filepath.Join(dir, id))
		if err != nil {
			t.Fatal(err)
		}
		records = record.Compared(records)
		series := history.Of(history.Run{Head: head, Records: records},
			table.Analyze(records, table.Options{}), history.Options{})
		want = append(want, history.Join([][]history.Series{series}, history.Options{}).Series)
	}
	check := func(o Options) {
		t.Helper()
		pasts, shapes, err := open(t, dir, o).Pasts(t.Context())
		if err != nil || len(pasts) != 3 {
			t.Fatalf("%d runs, %v", len(pasts), err)
		}
		u := history.NewUnpacker(shapes)
		for i, id := range []string{monday, tuesday} {
			for _, p := range pasts {
				if p.ID != id {
					continue
				}
				series, err := u.Series(p.Past)
				if err != nil {
					t.Fatal(err)
				}
				got := history.Join([][]history.Series{series}, history.Options{})
				if fmt.Sprint(got.Series) != fmt.Sprint(want[i]) {
					t.Errorf("%s: %d series, the records have %d", id, len(got.Series),
						len(want[i]))
				}
			}
		}
		if problem := pasts[2].Problem + pasts[1].Problem + pasts[0].Problem; problem == "" {
			t.Error("a damaged run has no problem")
		}
	}
	check(Options{Program: "one"})
	check(Options{Program: "one"}) // of the cache
	check(Options{Pasts: true})
	check(Options{})
}

// TestUnfitFolders checks that runs that cannot be shown are listed with the reason: a name that is
// not suitable for an address, and a head that is a link.
func TestUnfitFolders(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, 2)
	const odd, linked = "50% of #1?", "linked"
	from := filepath.Join(dir, "2026-01-01T00-00-00Z")
	if err := os.Rename(from, filepath.Join(dir, odd)); err != nil {
		t.Fatal(err)
	}
	put(t, "", dir, linked, record.TrialsFile)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, linked, record.RunFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "not a run"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, _ := counted(t, dir)
	x := list(t, s)
	p := pageOf(t, s, Filter{}, "", 10)
	for _, left := range [][]LeftOut{x.Left, p.Unreadable} {
		if len(left) != 2 || left[0].ID != odd || !strings.Contains(left[0].Why, "rename it") ||
			left[1].ID != linked || !strings.Contains(left[1].Why, "is a link") {
			t.Errorf("left out %+v", left)
		}
	}
	if len(x.Entries) != 1 || len(p.Entries) != 1 {
		t.Errorf("%d and %d runs, want 1", len(x.Entries), len(p.Entries))
	}
}
