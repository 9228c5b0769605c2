package gclog

import (
	"strings"
	"testing"

	"prony.example/record"
)

// synthetic returns a log in milliseconds: pauses from 100 to 110, 200 to 220 and 300 to 305. The
// heap had 10, 30 and 50 MiB before and 5, 6 and 8 MiB after them.
func synthetic(t *testing.T) Log {
	t.Helper()
	const ms = 1_000_000
	l, err := Read(strings.NewReader(
		line(110*ms, "gc", "GC(0) Pause Young (Allocation Failure) 10M->5M(64M) 10.000ms") +
			line(220*ms, "gc", "GC(1) Pause Young (Allocation Failure) 30M->6M(64M) 20.000ms") +
			line(250*ms, "safepoint", `Safepoint "HandshakeAllThreads", Total: 2000000 ns`) +
			line(305*ms, "gc", "GC(2) Pause Full (System.gc()) 50M->8M(64M) 5.000ms")))
	if err != nil || len(l.Events) != 4 {
		t.Fatalf("%v, %+v", err, l)
	}
	return l
}

func TestWindow(t *testing.T) {
	const ms, none = 1_000_000, -1
	tests := []struct {
		name     string
		from, to int64 // ms
		want     record.GC
	}{
		{"before all", 0, 100, record.GC{AllocatedBytes: none}},
		{"one", 90, 190, record.GC{Collections: 1, PauseNs: 10 * ms, PauseMaxNs: 10 * ms,
			HeapAfterBytes: 5 * mib, AllocatedBytes: none}},
		// The part from 200 to 205 of the pause from 200 to 220. Its heap is known only at 220, so
		// the previous heap counts.
		{"ends in a pause", 150, 205, record.GC{Collections: 1, PauseNs: 5 * ms,
			PauseMaxNs: 5 * ms, HeapAfterBytes: 5 * mib, AllocatedBytes: none}},
		// The part from 215 to 220; the collection counts where it begins.
		{"begins in a pause", 215, 240, record.GC{PauseNs: 5 * ms, PauseMaxNs: 5 * ms,
			HeapAfterBytes: 6 * mib, AllocatedBytes: none}},
		{"of another part of the JVM", 230, 290, record.GC{HeapAfterBytes: 6 * mib,
			AllocatedBytes: none}},
		// From 110 to 200 it grew by 30-5 = 25, from 220 to 300 by 50-6 = 44; the pauses between
		// are known to have allocated nothing: 69 in 110 to 305, which is the whole window.
		{"from end to end", 110, 306, record.GC{Collections: 2, PauseNs: 25 * ms,
			PauseMaxNs: 20 * ms, HeapAfterBytes: 8 * mib, AllocatedBytes: 69 * mib * 196 / 195}},
		// The stretch from 110 to 200 counts from 155 on, a half: 12.5 + 44 = 56.5 in 155 to 305.
		{"cuts a stretch", 155, 306, record.GC{Collections: 2, PauseNs: 25 * ms,
			PauseMaxNs: 20 * ms, HeapAfterBytes: 8 * mib,
			AllocatedBytes: 113 * mib / 2 * 151 / 150}},
		// 195 of 300 are known: extrapolated to 69*300/195.
		{"speaks for the rest", 110, 410, record.GC{Collections: 2, PauseNs: 25 * ms,
			PauseMaxNs: 20 * ms, HeapAfterBytes: 8 * mib, AllocatedBytes: 69 * mib * 300 / 195}},
		// 195 of 400 are less than half.
		{"too little to speak for it", 110, 510, record.GC{Collections: 2, PauseNs: 25 * ms,
			PauseMaxNs: 20 * ms, HeapAfterBytes: 8 * mib, AllocatedBytes: none}},
		{"after all", 400, 500, record.GC{HeapAfterBytes: 8 * mib, AllocatedBytes: none}},
	}
	l := synthetic(t)
	for _, tt := range tests {
		got := l.Window(tt.from*ms, tt.to*ms)
		if d := got.AllocatedBytes - tt.want.AllocatedBytes; d >= -1 && d <= 1 { // of rounding
			got.AllocatedBytes = tt.want.AllocatedBytes
		}
		if got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}

func TestAWindowOfAnEmptyLog(t *testing.T) {
	if got, want := (Log{}).Window(0, 100), (record.GC{AllocatedBytes: -1}); got != want {
		t.Errorf("%+v", got)
	}
}

func TestDuring(t *testing.T) {
	const ms = 1_000_000
	l := synthetic(t)
	for _, tt := range []struct {
		from, to int64 // ms
		want     string
	}{
		{0, 99, ""},
		{0, 100, "Young"},
		{105, 106, "Young"},
		{110, 190, "Young"},
		{111, 199, ""},
		{240, 260, "HandshakeAllThreads"},
		{215, 301, "Young HandshakeAllThreads Full"},
	} {
		var kinds []string
		for _, e := range l.During(tt.from*ms, tt.to*ms) {
			kinds = append(kinds, e.Kind)
		}
		if got := strings.Join(kinds, " "); got != tt.want {
			t.Errorf("%d to %d: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestSum(t *testing.T) {
	a := record.GC{Collector: "ZGC", Collections: 2, PauseNs: 10, PauseMaxNs: 6, HeapAfterBytes: 3,
		AllocatedBytes: 100}
	b := record.GC{Collector: "G1", Collections: 1, PauseNs: 5, PauseMaxNs: 5, HeapAfterBytes: 4,
		AllocatedBytes: 50}
	c := record.GC{Collector: "G1", AllocatedBytes: -1}
	for _, tt := range []struct {
		of   []record.GC
		want record.GC
	}{
		{nil, record.GC{}},
		{[]record.GC{a}, a},
		{[]record.GC{a, b}, record.GC{Collector: "G1, ZGC", Collections: 3, PauseNs: 15,
			PauseMaxNs: 6, HeapAfterBytes: 7, AllocatedBytes: 150}},
		{[]record.GC{c, a}, record.GC{Collector: "G1, ZGC", Collections: 2, PauseNs: 10,
			PauseMaxNs: 6, HeapAfterBytes: 3, AllocatedBytes: -1}},
	} {
		if got := Sum(tt.of); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.of, got, tt.want)
		}
	}
}
