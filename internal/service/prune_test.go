package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
)

// A build removes only earlier copies of the same build that are old and not locked.
func TestOldCopiesAreRemoved(t *testing.T) {
	w := newWorkshop(t, "out", []string{"cp", "main.txt", "out"})
	kept := filepath.Join(w.Root, ".prony", "build")
	old := clock.Wall().Add(-idleFor - time.Hour)
	// copied makes a copy with this time of last use; without a stamp for the zero time.
	copied := func(name string, then time.Time) string {
		t.Helper()
		folder := filepath.Join(kept, name)
		put(t, filepath.Join(folder, markFile), "{}")
		put(t, filepath.Join(folder, copyDir, "main.txt"), "earlier")
		if !then.IsZero() {
			put(t, folder+stampEnd, "")
			if err := os.Chtimes(folder+stampEnd, then, then); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	gone := []string{copied("sh-none-000000000001", old), copied("sh-none-abcdef000002", old)}
	stay := []string{
		copied("sh-none-000000000003", clock.Wall().Add(-idleFor+time.Hour)), // recent
		copied("sh-none-otel-000000000004", old),                             // of another build
		copied("sh-none-00000000005", old),                                   // not a copy
		copied("sh-none-x00000000006", old),
	}
	unknown := copied("sh-none-000000000007", time.Time{})
	used := copied("sh-none-000000000008", old)
	// As another lab would; TestHoldOfAnotherProgram uses another process.
	if err := cache.Hold(used+stampEnd, old); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, unknown, used)
	built := w.build()
	for _, folder := range gone {
		for _, path := range []string{folder, folder + stampEnd} {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s is still there", filepath.Base(path))
			}
		}
	}
	for _, folder := range append(stay, filepath.Dir(built.Dir)) {
		if got := read(t, folder, copyDir, "main.txt"); got == "" {
			t.Errorf("%s is empty", folder)
		}
	}
	if !w.said("build sh-none: earlier copies that were unused for 7 days and were removed: 2") {
		t.Errorf("it said %q", w.lines)
	}
	// The last use of the copy without a stamp is unknown, so its idle time begins now.
	info, err := os.Stat(unknown + stampEnd)
	if err != nil || clock.Wall().Sub(info.ModTime()) > time.Hour {
		t.Errorf("its stamp: %v, %v", info, err)
	}
}

// Each use of a copy updates its stamp, and copies used by this process stay during its life.
func TestUseOfACopyIsNoted(t *testing.T) {
	w := newWorkshop(t, "out", []string{"cp", "main.txt", "out"})
	first := filepath.Dir(w.build().Dir)
	long := clock.Wall().Add(-10 * idleFor)
	age := func() {
		t.Helper()
		if err := os.Chtimes(first+stampEnd, long, long); err != nil {
			t.Fatal(err)
		}
	}
	age()
	if built := w.build(); !built.Cached {
		t.Error("it was built anew")
	}
	info, err := os.Stat(first + stampEnd)
	if err != nil || info.ModTime().Equal(long) {
		t.Errorf("taking it was not noted: %v, %v", info, err)
	}
	age()
	put(t, filepath.Join(w.s.Dir, "main.txt"), "other")
	if second := filepath.Dir(w.build().Dir); second == first {
		t.Fatal("other sources are the same build")
	}
	if _, err := os.Stat(filepath.Join(first, copyDir, "out")); err != nil {
		t.Errorf("a copy that this lab may be running is gone: %v", err)
	}
}

// A failed build removes nothing, and a copy that cannot be removed fails no build.
func TestWhenCopiesStay(t *testing.T) {
	w := newWorkshop(t, "out", []string{"false"})
	folder := filepath.Join(w.Root, ".prony", "build", "sh-none-000000000001")
	put(t, filepath.Join(folder, markFile), "{}")
	put(t, folder+stampEnd, "")
	old := clock.Wall().Add(-2 * idleFor)
	if err := os.Chtimes(folder+stampEnd, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Build(t.Context(), w.s); err == nil {
		t.Fatal("a step that fails made a build")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error("a build that failed removed a copy")
	}
	// A folder in place of its mark cannot be removed as a file.
	if err := os.Remove(filepath.Join(folder, markFile)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, markFile, "in the way"), "")
	w.s.Build.Steps = [][]string{{"cp", "main.txt", "out"}}
	w.build()
	if !slices.ContainsFunc(w.lines, func(l string) bool {
		return strings.HasPrefix(l, "build sh-none: an earlier copy could not be removed: ")
	}) {
		t.Errorf("it said %q", w.lines)
	}
}
