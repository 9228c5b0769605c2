package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

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
func liveLines(t *testing.T, prints bool, planned int, newNs func(block int) float64) (
	lines []string, ratios []record.LiveRatio) {
	t.Helper()
	heard := &listener{}
	a := &liveAnswer{Observer: heard, first: "old", planned: planned, prints: prints,
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
				Loads: []record.Load{{Slices: &record.Sliced{Requests: 100,
					TimeNs: 2 * int64(cpu), CPUNs: int64(cpu)}}}}
			if name == "old-again" {
				r.Target.ControlOf = "old"
			}
			if block == 3 && name == "old" { // its start counts for no target
				r.Outcome = record.Failed
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
		"4 of 6 starts: new uses 4.7 % more CPU per request than old (95 % CI +") ||
		!strings.Contains(lines[0], "Ctrl-C") {
		t.Errorf("lines %q", lines)
	}
	// Throughput is the reciprocal here: CPU time is half of all time.
	if len(ratios) != 2 || ratios[0].Metric != "cpu_per_request" || ratios[0].Target != "new" ||
		ratios[0].Baseline != "old" || ratios[0].Starts != 4 || ratios[0].Lo > 1.047 ||
		ratios[0].Hi < 1.047 || ratios[1].Metric != "throughput" ||
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
