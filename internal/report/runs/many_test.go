package runs

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// TestHundreds checks that hundreds of runs are read once, and that a second shelf reads the cache,
// except for changed runs and results of another program.
func TestHundreds(t *testing.T) {
	testsets.Whole(t, "hundreds of runs")
	dir := t.TempDir()
	const many = 250
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range many {
		at := begin.Add(time.Duration(i) * 7 * time.Hour)
		run(t, dir, at.Format("2006-01-02T15-04-05Z"), fmt.Sprintf("suite-%d", i%3))
	}
	cold := time.Now()
	first := list(t, open(t, dir, Options{Program: "one"}))
	t.Logf("%d runs were read in %v", many, time.Since(cold))
	if len(first.Entries) != many || len(first.Left) != 0 {
		t.Fatalf("%d runs, left out %v", len(first.Entries), first.Left)
	}
	for i, e := range first.Entries[1:] {
		if !e.Time.Before(first.Entries[i].Time) {
			t.Fatalf("%s comes after %s", e.ID, first.Entries[i].ID)
		}
	}
	warm := time.Now()
	s := open(t, dir, Options{Program: "one"})
	second := list(t, s)
	took := time.Since(warm)
	t.Logf("and again in %v", took)
	if !reflect.DeepEqual(first, second) {
		t.Error("the cache says something else than the runs")
	}
	// Runs are not read twice: the second result does not show that the records are gone.
	id := first.Entries[5].ID
	name := filepath.Join(dir, id, record.TrialsFile)
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	put(t, string(make([]byte, info.Size())), name)
	if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := list(t, open(t, dir, Options{Program: "one"})); !reflect.DeepEqual(first, got) {
		t.Error("a run was read again, and nothing of it had changed")
	}
	// The open shelf detects a change.
	run(t, dir, id, "changed")
	if e, err := s.Entry(id); err != nil || e.Suite != "changed" {
		t.Errorf("after its change the run is of suite %s, %v", e.Suite, err)
	}
	if err := s.Remove(id); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s); len(got.Entries) != many-1 {
		t.Errorf("%d runs after one was removed", len(got.Entries))
	}
}

// TestCacheOfAnother checks that a cache of another program, or a truncated one, is ignored.
func TestCacheOfAnother(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, monday, "small")
	name := filepath.Join(dir, record.Kept, cacheFile)
	list(t, open(t, dir, Options{Program: "one"}))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(b), `"suite":"small"`, `"suite":"forged"`, 1)
	check := func(want, text, program string) {
		t.Helper()
		put(t, resealed(text), name)
		x := list(t, open(t, dir, Options{Program: program}))
		if len(x.Entries) != 1 || x.Entries[0].Suite != want {
			t.Errorf("%.40s by %s: %+v, want %s", text, program, x, want)
		}
	}
	check("forged", forged, "one") // or the test would see nothing
	check("small", forged, "two")
	check("small", forged[:len(forged)/2], "one")
	version := fmt.Sprintf(`"version":%d`, cacheVersion)
	check("small", strings.Replace(forged, version, `"version":1`, 1), "one")
	check("small", "null", "one")
}

// resealed gives each line of a cache the checksum of its text.
func resealed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			sum := crc32.ChecksumIEEE([]byte(rest))
			line = fmt.Sprintf("%08x %s%s", sum, rest, line[len(strings.TrimSuffix(line, "\n")):])
		}
		out.WriteString(line)
	}
	return out.String()
}

// TestNowhere checks that a read-only folder can be listed, and that a missing one is empty.
func TestNowhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if x := list(t, open(t, dir, Options{Program: "one"})); len(x.Entries) != 0 {
		t.Errorf("runs in a folder that is not there: %v", x)
	}
	put(t, "", dir, "file")
	if _, err := Open(filepath.Join(dir, "file"), Options{}); err == nil {
		t.Error("a file was opened as a folder of runs")
	}
	run(t, dir, monday, "small")
	put(t, "in the way", dir, record.Kept)
	if x := list(t, open(t, dir, Options{Program: "one"})); len(x.Entries) != 1 {
		t.Errorf("without a cache: %v", x)
	}
}
