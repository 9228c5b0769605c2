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

// TestLiveAnswer reports an interval from the fourth start on, and none of the control.
func TestLiveAnswer(t *testing.T) {
	heard := &listener{}
	a := &liveAnswer{Observer: heard, first: "old", planned: 6,
		starts: map[startKey]*liveStart{}}
	for block := 1; block <= 5; block++ {
		for i, name := range []string{"new", "old", "old-again"} {
			cpu := []float64{1.05e6, 1e6, 1e6}[i] + float64(block*i)*1e3
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
	if len(heard.lines) != 1 || !strings.HasPrefix(heard.lines[0],
		"4 of 6 starts: new uses 4.7 % more CPU per request than old (95 % CI +") ||
		!strings.Contains(heard.lines[0], "Ctrl-C") {
		t.Errorf("lines %q", heard.lines)
	}
}
