package lab

import (
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/trial"
	"prony.example/record"
)

// listener keeps what it is heard.
type listener struct {
	Observer
	lines []string
}

func (l *listener) Say(line string)   { l.lines = append(l.lines, line) }
func (l *listener) Trial(trial.Event) {}

// liveLines are what is said of five starts, of which one is lost, with these CPU times of the new
// service.
func liveLines(t *testing.T, newNs func(block int) float64) []string {
	t.Helper()
	heard := &listener{}
	a := &liveAnswer{Observer: heard, first: "old", planned: 6,
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
					CPUNs: int64(cpu)}}}}
			if name == "old-again" {
				r.Target.ControlOf = "old"
			}
			if block == 3 && name == "old" { // its start counts for no target
				r.Outcome = record.Failed
			}
			a.Trial(trial.Event{Trial: fmt.Sprint(block, name), Record: r})
		}
	}
	return heard.lines
}

// TestLiveAnswer reports an interval from the fourth start on, and none of the control.
func TestLiveAnswer(t *testing.T) {
	lines := liveLines(t, func(int) float64 { return 1.05e6 })
	if len(lines) != 1 || !strings.HasPrefix(lines[0],
		"4 of 6 starts: new uses 4.7 % more CPU per request than old (95 % CI +") ||
		!strings.Contains(lines[0], "Ctrl-C") {
		t.Errorf("lines %q", lines)
	}
	// An interval that holds 0 is no difference.
	lines = liveLines(t, func(block int) float64 { return 1e6 + float64(block-3)*5e4 })
	if len(lines) != 1 || !strings.HasPrefix(lines[0],
		"4 of 6 starts: no significant difference between new and old so far in CPU per request: ") {
		t.Errorf("lines %q", lines)
	}
}
