package selftest

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/generator/truth"
	"prony.example/internal/generator/truth/virtual"
	"prony.example/load"
	"prony.example/record"
	"prony.example/record/metric"
)

// answersOf returns a load with a number of responses of equal duration.
func answersOf(t *testing.T, took time.Duration) *measured {
	t.Helper()
	h := hdrhistogram.New(1, 1<<40, 3)
	if err := h.RecordValues(int64(took), 4000); err != nil {
		t.Fatal(err)
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	m := &measured{Result: &load.Result{Load: record.Load{Model: record.Open}}}
	m.Load.ResponseTime = record.Dist{Count: 4000, P99Ns: int64(took), HDR: string(text)}
	return m
}

// TestDoubted checks that a number that moved by more than its uncertainty must be doubted, and
// that other numbers may be if there was a fault.
func TestDoubted(t *testing.T) {
	for _, c := range []struct {
		name    string
		took    time.Duration
		doubted bool
		fault   bool
		want    bool
	}{
		{"nothing was done", 10 * ms, false, false, true},
		{"a false alarm", 10 * ms, true, false, false},
		{"too little to matter", 10 * ms, false, true, true},
		{"doubted all the same", 10 * ms, true, true, true},
		{"missed", 12 * ms, false, true, false},
		{"missed, and nothing was done", 12 * ms, false, false, false},
		{"found", 12 * ms, true, true, true},
	} {
		has := 0.0
		if c.doubted {
			has = 1
		}
		lines := held(answersOf(t, c.took), "p99", int64(10*ms), c.fault, has)
		if got := lines[0].OK && lines[1].OK; got != c.want {
			t.Errorf("%s: %v, want %v: %+v", c.name, got, c.want, lines)
		}
	}
}

// TestDoubts checks that doubts about other numbers don't count, and that doubts without a named
// number count for all.
func TestDoubts(t *testing.T) {
	check := func(want bool, grade string, moves ...record.Bias) {
		t.Helper()
		v := record.Verdict{Findings: []record.Finding{{Grade: grade, PossibleBias: moves}}}
		if got := doubts(v, "p99"); got != want {
			t.Errorf("%s %v: %v", grade, moves, got)
		}
	}
	check(false, record.Valid, record.Bias{Metric: "p99", Share: 1})
	check(true, record.Suspect, record.Bias{Metric: "p99", Share: 1})
	check(false, record.Suspect, record.Bias{Metric: metric.Throughput, Share: 1})
	check(true, record.Suspect)
	check(true, record.Invalid)
}

// TestVerdictsTakeAMinute checks the duration, that each fault begins with none, and unique names.
func TestVerdictsTakeAMinute(t *testing.T) {
	var sum time.Duration
	names := map[string]bool{}
	for _, c := range append(Verdicts(), Cases()...) {
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
	}
	for _, c := range Verdicts() {
		sum += c.Spec.Lead + c.Spec.Window
	}
	if sum > 60*time.Second {
		t.Errorf("the loads take %v", sum)
	}
}

// TestVerdictsMeetFaults runs the faults of the verdicts' cases in virtual time: a number that
// moved by more than its uncertainty is doubted, and a number that did not move is not. A neighbor
// preempts the engine.
func TestVerdictsMeetFaults(t *testing.T) {
	check := func(c Case, wrap func(load.Engine) load.Engine, moves bool) {
		t.Helper()
		k, ok := truth.Find(c.Kind)
		if !ok {
			t.Fatalf("there is no kind %q", c.Kind)
		}
		plan, err := k.Plan(c.Params)
		if err != nil {
			t.Fatal(err)
		}
		w := &virtual.World{Serve: virtual.Plan(plan), Wrap: wrap}
		lines := c.lines(&c, &measured{Result: w.Good(t, c.Spec)})
		moved, doubted := lines[0], lines[1]
		if !moved.OK || !doubted.OK || doubted.Measured == 1 != moves {
			t.Errorf("%s: want a doubt %v; %+v", c.Name, moves, lines)
		}
	}
	for _, busy := range []time.Duration{0, 2 * ms, 20 * ms, 80 * ms} {
		check(neighbour(busy), virtual.Preempted(busy, 200*ms), busy > 2*ms)
	}
	check(crowd(64), nil, false)
	check(crowd(7), nil, true)
	check(crowd(6), nil, true)
	check(settling(20*ms), nil, false)
	check(settling(25*ms), nil, true)
	check(settling(40*ms), nil, true)
}

// TestSpinning checks that the other thread runs until it is stopped.
func TestSpinning(t *testing.T) {
	spinning(0, ms)()
	stop := spinning(ms, 2*ms)
	time.Sleep(5 * ms)
	stop()
}
