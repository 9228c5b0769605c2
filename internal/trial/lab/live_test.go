package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

// listener stores the lines that it receives.
type listener struct {
	Observer
	lines []string
}

func (l *listener) Say(line string)   { l.lines = append(l.lines, line) }
func (l *listener) Trial(trial.Event) {}

// liveLines simulates five starts, of which one is lost, with these CPU times of the new service.
// It returns the printed lines, and the ratios for observers.
func liveLines(t *testing.T, prints bool, planned int, newNs func(block int) float64,
	changes ...func(*record.Record)) (lines []string, ratios []record.LiveRatio) {
	t.Helper()
	heard, base := &listener{}, &record.Record{Target: record.Target{Name: "old"}}
	for _, change := range changes {
		change(base)
	}
	a := &liveAnswer{Observer: heard, first: base.Target.Row(), planned: planned, prints: prints,
		ratio:  func(r record.LiveRatio) { ratios = append(ratios, r) },
		starts: map[startKey]*liveStart{}}
	for block := 1; block <= 5; block++ {
		for i, name := range []string{"new", "old", "old-again"} {
			cpu := 1e6 + float64(block*i)*1e3
			if name == "new" {
				cpu = newNs(block)
			}
			r := &record.Record{Block: block, Outcome: record.Measured,
				Target:     record.Target{Name: name},
				SideBySide: &record.SideBySide{With: []string{"x", "y"}},
				Loads: []record.Load{{Name: "peak", Slices: &record.Sliced{Requests: 100,
					TimeNs: 2 * int64(cpu), CPUNs: int64(cpu)}}}}
			if name == "old-again" {
				r.Target.ControlOf = "old"
			}
			if block == 3 && name == "old" { // its start counts for no target
				r.Outcome = record.Failed
			}
			for _, change := range changes {
				change(r)
			}
			a.Trial(trial.Event{Trial: fmt.Sprint(block, name), Record: r})
		}
	}
	return heard.lines, ratios
}

// TestLiveAnswer reports an interval from the fourth start on, and none of the control.
func TestLiveAnswer(t *testing.T) {
	lines, ratios := liveLines(t, true, 6, func(int) float64 { return 1.05e6 })
	if len(lines) != 1 || !strings.HasPrefix(lines[0],
		"4 of 6 starts: new uses 4.5 % more CPU per request than old (95 % CI +") ||
		!strings.Contains(lines[0], "Ctrl-C") {
		t.Errorf("lines %q", lines)
	}
	// The mean of old and its control is 1e6 + 1.5e3 · block ns, in blocks 1, 2, 4, 5.
	// Throughput is the reciprocal here: CPU time is half of all time.
	if len(ratios) != 2 || ratios[0].Metric != "cpu_per_request" || ratios[0].Target != "new" ||
		ratios[0].Baseline != "old" || ratios[0].Starts != 4 || ratios[0].Lo > 1.0453 ||
		ratios[0].Hi < 1.0453 || ratios[1].Metric != "throughput" ||
		math.Abs(ratios[1].Lo*ratios[0].Hi-1) > 1e-9 {
		t.Errorf("ratios %+v", ratios)
	}
	// Suites print nothing, and write the same ratios.
	lines, unsaid := liveLines(t, false, 6, func(int) float64 { return 1.05e6 })
	if len(lines) > 0 || !slices.Equal(unsaid, ratios) {
		t.Errorf("a suite prints %q and writes %+v", lines, unsaid)
	}
	// An interval that includes 0 is no significant difference.
	lines, _ = liveLines(t, true, 6, func(block int) float64 { return 1e6 + float64(block-3)*5e4 })
	if len(lines) != 1 || !strings.HasPrefix(
		lines[0],
		"4 of 6 starts: no significant difference between new and old so far in CPU per request: ",
	) {
		t.Errorf("lines %q", lines)
	}
	// After the last planned start, the answer follows, which has another interval.
	lines, last := liveLines(t, true, 4, func(int) float64 { return 1.05e6 })
	if len(lines) > 0 || !slices.Equal(last, ratios) {
		t.Errorf("the last start prints %q and writes %+v", lines, last)
	}
}

// TestLiveAnswerGoesOn counts the starts of a run that was interrupted and goes on.
func TestLiveAnswerGoesOn(t *testing.T) {
	var records []*record.Record
	_, want := liveLines(t, true, 6, func(int) float64 { return 1.05e6 },
		func(r *record.Record) { records = append(records, r) })
	var got []record.LiveRatio
	a := &liveAnswer{Observer: &listener{}, first: "old", planned: 6, prints: true,
		ratio:  func(r record.LiveRatio) { got = append(got, r) },
		starts: map[startKey]*liveStart{}}
	for i, r := range records[1:] { // the first is no record of the run
		if i < 12 {
			a.note(r)
		} else {
			a.Trial(trial.Event{Record: r})
		}
	}
	if len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestLiveAnswerOfContainers names rows as the table does: those of containers have the launcher's
// name, and the control is that of the baseline's row.
func TestLiveAnswerOfContainers(t *testing.T) {
	_, plain := liveLines(t, true, 6, func(int) float64 { return 1.05e6 })
	lines, ratios := liveLines(t, true, 6, func(int) float64 { return 1.05e6 },
		func(r *record.Record) { r.Target.Launcher = "docker" })
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "4 of 6 starts: new in docker uses 4.5 % "+
		"more CPU per request than old in docker") || len(ratios) != 2 ||
		ratios[0].Center != plain[0].Center {
		t.Errorf("lines %q, ratios %+v, want %+v", lines, ratios, plain)
	}
	trials := []suite.Trial{{Target: "a", Launcher: "docker"}, {Target: "b"}, {Target: "b",
		Variant: "otel"}}
	for target, want := range map[string]string{"a": "a in docker", "b": "b", "c": "c"} {
		if got := rowOf(trials, target); got != want {
			t.Errorf("the row of %s is %q, want %q", target, got, want)
		}
	}
}

// failsInSlices makes the slices of a record INVALID, or only its window.
func failsInSlices(r *record.Record, phase string) {
	r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
		{Rule: "errors", Load: "peak", Grade: record.Invalid, Phase: phase}}}
}

// TestLiveAnswerExcludesInvalid checks that a start counts during the run only if it counts in the
// table: its slices are valid, also if its window is not.
func TestLiveAnswerExcludesInvalid(t *testing.T) {
	play := func(fifthNs float64, phase string) []record.LiveRatio {
		_, ratios := liveLines(t, true, 6, func(block int) float64 {
			if block == 5 {
				return fifthNs
			}
			return 1.05e6
		}, func(r *record.Record) {
			if r.Block == 5 && r.Target.Name == "new" {
				failsInSlices(r, phase)
			}
		})
		return ratios
	}
	if ratios := play(3e6, record.PhaseSlices); len(ratios) > 0 { // three starts remain
		t.Errorf("INVALID slices count: %+v", ratios)
	}
	r := &record.Record{Outcome: record.Measured, Loads: []record.Load{{Name: "peak",
		Model: record.Closed, ThroughputPerS: 7, Slices: &record.Sliced{Requests: 9, TimeNs: 1e9}}}}
	for phase, want := range map[string]float64{record.PhaseWindow: 9, record.PhaseSlices: 0} {
		if failsInSlices(r, phase); worth(r) != want {
			t.Errorf("with a time budget, it counts as %v if its %s is INVALID", worth(r), phase)
		}
	}
	if ratios := play(1.05e6, record.PhaseWindow); len(ratios) != 2 || ratios[0].Starts != 4 {
		t.Errorf("slices beside an INVALID window: %+v", ratios)
	}
}
