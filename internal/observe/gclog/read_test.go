package gclog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/record"
)

func read(t *testing.T, name string) Log {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Read(f)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const (
	always = int64(1) << 60
	mib    = 1 << 20
)

// TestRead reads logs of JDK 25 and one of JDK 17, cut after a few collections. Sums were added by
// hand from the totals of lines with the tag safepoint.
func TestRead(t *testing.T) {
	tests := []struct {
		file  string
		want  record.GC
		first Event // first pause of the collector
		all   int   // number of pauses, also of others
	}{
		{"g1.log", record.GC{Collector: "G1",
			// Collections 0, 1, 2, 3 and 5; 4 is a concurrent mark, which has not paused yet.
			Collections: 5,
			// 15987829 + 33388025 + 6089919 + 8097057 + 3614889
			PauseNs: 67177719, PauseMaxNs: 33388025, HeapAfterBytes: 13 * mib},
			// 35514984073894 - 15987829 = 35514968086065
			Event{35514968086065, 15987829, true, "Young (Normal)", "G1 Evacuation Pause"}, 5},
		{"g1-17.log", record.GC{Collector: "G1", Collections: 2,
			// 11753373 + 5386577
			PauseNs: 17139950, PauseMaxNs: 11753373, HeapAfterBytes: 9 * mib},
			// 35428749991129 - 11753373 = 35428738237756
			Event{35428738237756, 11753373, true, "Young (Normal)", "G1 Evacuation Pause"}, 2},
		{"serial.log", record.GC{Collector: "Serial", Collections: 4,
			// 31444837 + 16605412 + 16710969 + 11896610
			PauseNs: 76657828, PauseMaxNs: 31444837, HeapAfterBytes: 42 * mib},
			// 35518717616898 - 31444837 = 35518686172061
			Event{35518686172061, 31444837, true, "Full", "System.gc()"}, 4},
		{"parallel.log", record.GC{Collector: "Parallel", Collections: 4,
			// 49952370 + 24204119 + 15972761 + 12975535
			PauseNs: 103104785, PauseMaxNs: 49952370, HeapAfterBytes: 48 * mib},
			// 35520954044846 - 49952370 = 35520904092476
			Event{35520904092476, 49952370, true, "Full", "System.gc()"}, 4},
		{"shenandoah.log", record.GC{Collector: "Shenandoah", Collections: 3,
			// 119172 + 4211763 + 16190 + 47930 + 125084 + 2721944 + 39123 + 879563; the safepoint
			// CleanClassLoaderDataMetaspaces, 129231, is not the collector's
			PauseNs: 8160769, PauseMaxNs: 4211763, HeapAfterBytes: 71 * mib},
			// 35526412266135 - 119172 = 35526412146963
			Event{35526412146963, 119172, true, "Init Mark (unload classes)", ""}, 9},
		{"zgc.log", record.GC{Collector: "ZGC", Collections: 4, PauseNs: zPauses,
			PauseMaxNs: 2531666, HeapAfterBytes: 58 * mib},
			// 35522748302147 - 135052 = 35522748167095
			Event{35522748167095, 135052, true, "ZMarkStartYoungAndOld", ""}, 26},
	}
	for _, tt := range tests {
		l := read(t, tt.file)
		if len(l.Problems) > 0 {
			t.Errorf("%s: %q", tt.file, l.Problems)
		}
		tt.want.AllocatedBytes = -1 // of an infinite window, too little is known
		if got := l.Window(0, always); got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.file, got, tt.want)
		}
		i := slices.IndexFunc(l.Events, func(e Event) bool { return e.GC })
		if i < 0 || l.Events[i] != tt.first {
			t.Errorf("%s: the first is event %d,\n of %+v\nwant %+v", tt.file, i, l.Events,
				tt.first)
		}
		if len(l.Events) != tt.all {
			t.Errorf("%s: %d pauses of any part, want %d", tt.file, len(l.Events), tt.all)
		}
	}
}

// zPauses is the sum of the totals of all safepoints of zgc.log whose operation begins with Z.
const zPauses = 7432107

// TestAllocated checks the allocation between the ends of two heaps, in a window with these edges.
func TestAllocated(t *testing.T) {
	tests := []struct {
		file     string
		from, to int64
		want     int64 // MiB
	}{
		// From the end of collection 0 to the end of 2, with 1 and 2 inside:
		// (20-4) + (8-3) = 21
		{"g1.log", 35514980480347, 35515623613710, 21},
		// From the end of 0 to the end of 3, by the lines' times: (37-3) + (53-19) + (65-31) = 102
		{"serial.log", 35518717591060, 35518820674727, 102},
		// (35-3) + (54-21) + (67-35) = 97
		{"parallel.log", 35520953995694, 35521062301751, 97},
		// Of the young generation, from the end of collection 0's table: 26-12 until the mark's
		// start and 8 until the end; 36-18 and 0; 0-0 and 0; 36-0 and 9: 22 + 18 + 0 + 45 = 85
		{"zgc.log", 35522757193538, 35523556524783, 85},
		// 30-27 + 79-3 + 121-67 = 133
		{"shenandoah.log", 35526521466892, 35526705450938, 133},
	}
	for _, tt := range tests {
		got := read(t, tt.file).Window(tt.from, tt.to).AllocatedBytes
		// A pause's begin is a thousandth of a millisecond off; 1 % of a window is far more.
		if d := float64(got)/float64(tt.want*mib) - 1; d < -0.01 || d > 0.01 {
			t.Errorf("%s: %.2f MiB, want %d", tt.file, float64(got)/mib, tt.want)
		}
	}
}

func line(ns int64, tags, text string) string {
	return fmt.Sprintf("[%dns][%s] %s\n", ns, tags, text)
}

func TestReadTellsOfBadLines(t *testing.T) {
	good := line(100, "gc", "Using G1") +
		line(5_000_000, "gc", "GC(0) Pause Young (Normal) (G1 Evacuation Pause) 9M->4M(32M) "+
			"2.000ms") +
		line(5_000_100, "safepoint", `Safepoint "G1CollectForAllocation", At safepoint: 9 ns, `+
			`Total: 2000100 ns`)
	tests := []struct {
		name, add string
		problem   string // a part of it
		skipped   int64
	}{
		{"nothing bad", "", "", 0},
		{"of no interest", line(6, "gc,heap", "GC(1) Eden regions: 3->0(2)") +
			line(7, "gc,init", "Version: 25") + line(8, "safepoint", "Entering") + "\n",
			"line 7", 1},
		{"torn", "[6000000ns][gc] GC(1) Pause You", "line 4: the line is incomplete", 1},
		{"torn within its time", "[60000", "line 4: the line is incomplete", 1},
		{"of another program", "Picked up JAVA_TOOL_OPTIONS: -Xlog\n",
			"line 4: the line has no time and tags",
			1},
		{"of two JVMs", "[6000000ns][gc] GC(1) Pause You[6000001ns][gc] GC(1) Pause Full\n",
			"line 4: two lines are merged", 1},
		{"endless", strings.Repeat("x", 3*maxLine) + "\n", "line 4: the line is longer than", 1},
		{"endless and torn", strings.Repeat("x", 3*maxLine), "line 4: the line is incomplete", 1},
		{"a time of 30 digits", "[" + strings.Repeat("9", 30) + "ns][gc] GC(1) Pause Full\n",
			"line 4: no time", 1},
		{"many", strings.Repeat("x\n", 100), "line 4: the line has no time", 100},
	}
	for _, tt := range tests {
		l, err := Read(strings.NewReader(good + tt.add))
		if err != nil || l.Skipped != tt.skipped || len(l.Problems) != min(int(tt.skipped), 20) {
			t.Errorf("%s: %v, %d skipped, %q", tt.name, err, l.Skipped, l.Problems)
		}
		if tt.skipped > 0 && !strings.HasPrefix(strings.Join(l.Problems, ""), tt.problem) {
			t.Errorf("%s: %q, want %q", tt.name, l.Problems, tt.problem)
		}
		if len(l.Events) != 1 || l.Events[0].PauseNs != 2_000_100 || l.Collector != "G1" {
			t.Errorf("%s: the good lines were lost: %+v", tt.name, l)
		}
	}
}

func TestReadARotatedLog(t *testing.T) {
	l, err := Read(strings.NewReader(
		line(9, "gc", "GC(7) Pause Full (System.gc()) 9M->4M(32M) 0.001ms")))
	if err != nil || len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "collection 7") ||
		len(l.Events) != 1 {
		t.Errorf("%v, %+v", err, l)
	}
}

// TestTwoCollectionsInOneSafepoint checks that two collections in one safepoint share its time:
// from 1000 to 9000, and the first ended at 4000.
func TestTwoCollectionsInOneSafepoint(t *testing.T) {
	l, err := Read(strings.NewReader(
		line(4000, "gc", "GC(0) Pause Young (Allocation Failure) 9M->9M(32M) 0.002ms") +
			line(8500, "gc", "GC(1) Pause Full (Ergonomics) 9M->4M(32M) 0.004ms") +
			line(9000, "safepoint", `Safepoint "ParallelCollectForAllocation", Total: 8000 ns`)))
	if err != nil || len(l.Events) != 2 {
		t.Fatalf("%v, %+v", err, l)
	}
	if a, b := l.Events[0], l.Events[1]; a.StartNs != 1000 || a.PauseNs != 3000 ||
		b.StartNs != 4000 || b.PauseNs != 5000 || b.Kind != "Full" {
		t.Errorf("%+v", l.Events)
	}
}

// TestPausesWithoutSafepoints checks that without safepoints, as with -Xlog:gc alone, pauses are as
// long as the collector logs.
func TestPausesWithoutSafepoints(t *testing.T) {
	l, err := Read(strings.NewReader(
		line(4_000_000, "gc", "GC(0) Pause Young (Allocation Failure) 9M->9M(32M) 1.500ms") +
			line(9_000_000, "gc", "GC(1) Pause Young (Allocation Failure) 9M->9M(32M) 0.250ms")))
	if err != nil || len(l.Events) != 2 || l.Events[0].StartNs != 2_500_000 ||
		l.Events[1].PauseNs != 250_000 {
		t.Errorf("%v, %+v", err, l)
	}
}

func TestKindAndCause(t *testing.T) {
	for _, tt := range [][3]string{
		{"Young (Normal) (G1 Evacuation Pause)", "Young (Normal)", "G1 Evacuation Pause"},
		{"Young (Concurrent Start) (System.gc())", "Young (Concurrent Start)", "System.gc()"},
		{"Young (Allocation Failure)", "Young", "Allocation Failure"},
		{"Full (System.gc())", "Full", "System.gc()"},
		{"Remark", "Remark", ""},
		{"Init Mark (unload classes)", "Init Mark (unload classes)", ""},
		{"Degenerated GC (Mark)", "Degenerated GC (Mark)", ""},
		{"Final Update Refs", "Final Update Refs", ""},
	} {
		if kind, cause := kindAndCause(tt[0]); kind != tt[1] || cause != tt[2] {
			t.Errorf("%s: %q, %q", tt[0], kind, cause)
		}
	}
}

// TestLogsOfATrial checks that logs of other trials and other files are ignored; names of earlier
// versions have no part.
func TestLogsOfATrial(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{LogName("b1-1-x", "gateway", "1"), LogName("b1-1-x", "vets", "1"),
		"b1-1-x.77.gc.log", LogName("b1-1-x-agent", "vets", "1"), "b1-1-x.log", "b1-1-x.vets.log",
		"b1-1-x.vets.1.gc.log.0"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if logs, err := ReadTrial(dir, "b1-1-x"); err != nil || len(logs) != 3 {
		t.Errorf("%d logs, %v; want three", len(logs), err)
	}
	// A pipe that a service has put there is not waited for.
	if err := unix.Mkfifo(filepath.Join(dir, LogName("b1-1-x", "pipe", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrial(dir, "b1-1-x"); err == nil ||
		!strings.Contains(err.Error(), "it is not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}
