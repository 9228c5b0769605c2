package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// Events after a fixed number of requests, for example garbage collections, can synchronize with
// slices of a fixed length. On a machine with constant speed they then begin in lead-ins more often
// than in windows, or less often, in all rounds and starts.

// offBy returns the error of the log ratio of starts, for evenly spaced events that cost 4 % and
// occur this often in the windows of a start of 6 s.
func offBy(d design, perStart float64, starts int) float64 {
	d.machine = still
	d.rounds = int(6000 / (d.lead + d.shift/2 + d.window*(1+d.vary/2)))
	services := equal(2)
	services[1] = design{rounds: 100, window: 40}.eventful(services[1], perStart, 0.04, true)
	r := rand.New(rand.NewPCG(5, 1))
	sum := 0.0
	for range starts {
		got := d.start(r, services).Compare([]int{0}, []int{1}, Throughput)
		sum += got.LogRatio - math.Log(0.96)
	}
	return sum / float64(starts)
}

// windowLengths are ways to choose window lengths; the last one is that of docs/slices.md.
var windowLengths = []struct {
	name string
	design
}{
	{"40 ms, shifted by up to 1 ms", design{lead: 20, window: 40, shift: 1}},
	{"40 ms, shifted by up to 20 ms", design{lead: 20, window: 40, shift: 20}},
	{"40 ms, shifted by up to 40 ms", design{lead: 20, window: 40, shift: 40}},
	{"drawn, 40 to 60 ms", design{lead: 20, window: 40, vary: 0.5}},
	{"drawn, 40 to 80 ms", design{lead: 20, window: 40, vary: 1}},
}

func TestResonanceRoughly(t *testing.T) {
	for _, perStart := range []float64{3, 4} {
		fixed := offBy(windowLengths[0].design, perStart, 200)
		drawn := offBy(windowLengths[4].design, perStart, 200)
		if math.Abs(fixed) < 0.012 || math.Abs(drawn) > 0.004 {
			t.Errorf("%v events: fixed windows are off by %+.4f, drawn ones by %+.4f", perStart,
				fixed, drawn)
		}
	}
}

// TestResonance: windows with a random length between one and two times the shortest have an error
// of at most 0.2 points for any distance of events.
func TestResonance(t *testing.T) {
	testsets.Long(t, "events in step with slices",
		testsets.Needs{Files: []string{"docs/" + decisionSlices}})
	events := []float64{2, 3, 4, 5, 7, 10, 20}
	lines := []string{"| windows |", "|---|"}
	for _, perStart := range events {
		lines[0] += fmt.Sprintf(" %v events |", perStart)
		lines[1] += "---|"
	}
	for i, row := range windowLengths {
		line := "| " + row.name + " |"
		for _, perStart := range events {
			off := offBy(row.design, perStart, 1000)
			line += fmt.Sprintf(" %+.1f |", 100*off)
			if i == len(windowLengths)-1 && math.Abs(off) > 0.002 {
				t.Errorf("%s, %v events: off by %+.4f", row.name, perStart, off)
			}
		}
		lines = append(lines, line)
	}
	documentedIn(t, decisionSlices, "resonance", lines)
}
