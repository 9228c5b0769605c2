package spanstore

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"prony.example/internal/telemetry"
	"prony.example/record"
)

const second = int64(1e9)

var one = record.WindowTelemetry{Spans: 1}

// A window includes its opening and excludes its closing, whenever its marks arrive.
func TestWindowEdges(t *testing.T) {
	const now = 1000 * second
	marks := []telemetry.Mark{
		{Kind: telemetry.Phase, Name: "warmup", WallNs: 1},
		{Kind: telemetry.Open, Name: "a", WallNs: now + 100},
		{Kind: telemetry.Close, Name: "a", WallNs: now + 200},
		{Kind: telemetry.Open, Name: "b", WallNs: now + 200},
		{Kind: telemetry.Close, Name: "b", WallNs: now + 300},
	}
	// a: 100 and 199. b: 200, 299. Neither: 99, 300, the past, the far future.
	moments := []int64{0, now + 99, now + 100, now + 199, now + 200, now + 299, now + 300,
		math.MaxInt64}
	want := map[string]record.WindowTelemetry{"a": {Spans: 2}, "b": {Spans: 2}}
	for late := range len(marks) + 1 { // number of marks before the moments
		var w Windows
		for _, m := range marks[:late] {
			if err := w.Mark(m); err != nil {
				t.Fatal(err)
			}
		}
		for _, ns := range moments {
			w.Add(ns, now, one)
		}
		for _, m := range marks[late:] {
			if err := w.Mark(m); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.End(now + second); !reflect.DeepEqual(got, want) {
			t.Errorf("%d marks before: %v, want %v", late, got, want)
		}
	}
}

// An open window ends with the trial and excludes later moments.
func TestWindowLeftOpen(t *testing.T) {
	var w Windows
	if err := w.Mark(telemetry.Mark{Kind: telemetry.Open, Name: "a", WallNs: 10}); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []int64{10, 499, 500, 501} {
		w.Add(ns, 400, one)
	}
	if got := w.End(500)["a"].Spans; got != 2 { // 10 and 499
		t.Errorf("%d moments, want 2", got)
	}
}

// If too many moments wait, the earlier half is decided, and all are counted once.
func TestWindowsOverflow(t *testing.T) {
	const now = 1000 * second
	r := rand.New(rand.NewPCG(3, 5))
	var w Windows
	mark := func(kind string, ns int64) {
		t.Helper()
		if err := w.Mark(telemetry.Mark{Kind: kind, Name: "a", WallNs: ns}); err != nil {
			t.Fatal(err)
		}
	}
	mark(telemetry.Open, now)
	want := int64(0)
	for range 3 * maxMoments {
		ns := now - second + r.Int64N(2*second)
		if ns >= now {
			want++
		}
		w.Add(ns, now, one)
		if len(w.recent) > maxMoments {
			t.Fatalf("%d moments wait", len(w.recent))
		}
	}
	mark(telemetry.Close, now+2*second)
	if got := w.End(now + 3*second)["a"].Spans; got != want {
		t.Errorf("%d moments, want %d", got, want)
	}
}

func TestWindowsRefuse(t *testing.T) {
	check := func(want string, marks ...telemetry.Mark) {
		t.Helper()
		var w Windows
		var err error
		for _, m := range marks {
			err = w.Mark(m)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", marks[len(marks)-1], err, want)
		}
	}
	open := telemetry.Mark{Trial: "t", Kind: telemetry.Open, Name: "a", WallNs: 1}
	shut := telemetry.Mark{Trial: "t", Kind: telemetry.Close, Name: "a", WallNs: 2}
	check("open window a of t: the window is already open", open, open)
	check("close window a of t: the window is not open", shut)
	check("close window a of t: the window is not open", open, shut, shut)
	var many []telemetry.Mark
	for range maxWindows {
		many = append(many, open, shut)
	}
	check("already has the maximum of 1000 windows", append(many, open)...)
}
