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
	"prony.example/record/metric"
)

// planningRun is a run that plans starts by the scatter of the first ones. The CPU time of b,
// relative to that of a, alternates by sd percent.
type planningRun struct {
	first, most int
	within      float64 // in s; a start takes 30
	sd          float64 // in %
	lost        string  // blocks in which b fails
	unknownCPU  bool
	invalid     int // block in which the slices of b are INVALID, and far slower
}

func (p planningRun) further() *further {
	f := &further{first: p.first, most: p.most, baseline: "a", reported: map[series]bool{},
		precision: suite.Precision{Half: 0.01, Metric: metric.CPU,
			Within: suite.Duration(p.within * 1e9)}}
	for block := p.first + 1; block <= p.most+suite.Repetitions(p.most); block++ {
		f.reserve = append(f.reserve, startSpecs(block)[:2]...)
	}
	return f
}

// records returns the records of a start.
func (p planningRun) records(block int, origin trial.Origin) []*record.Record {
	lost := ""
	if slices.Contains(strings.Fields(p.lost), fmt.Sprint(block)) {
		lost = "b"
	}
	out := startRecords(block, "ready", lost)[:2]
	n := float64(p.first)
	for i, x := range out {
		x.DurationNs = 15e9
		x.SideBySide = &record.SideBySide{Repeats: origin.Repeats, Stage: origin.Stage,
			Planned: origin.Planned}
		ns := 1e6
		if i == 1 {
			ns *= math.Exp(p.sd / 100 * math.Sqrt((n-1)/n) * float64(block%2*2-1))
		}
		s := &record.Sliced{Requests: 1000, TimeNs: int64(1e3 * ns), CPUNs: int64(1e3 * ns)}
		if p.unknownCPU {
			s.CPUNs = -1
		}
		x.Loads = []record.Load{{Name: "peak", Slices: s}}
		if block == p.invalid && i == 1 {
			s.CPUNs *= 3
			failsInSlices(x, record.PhaseSlices)
		}
	}
	return out
}

// play returns the number of starts without repetitions, the blocks of repetitions, and the run's
// reports.
func (p planningRun) play(t *testing.T) (starts int, repeated, text string) {
	t.Helper()
	f := p.further()
	f.report = func(line string) { text += line + "\n" }
	var done []*record.Record
	for block := 1; block <= p.first; block++ {
		done = append(done, p.records(block, trial.Origin{Stage: 1})...)
	}
	starts = p.first
	for todo := f.next(done); len(todo) > 0; todo = f.next(done) {
		origin := todo[0].Origin
		if origin.Repeats {
			repeated += fmt.Sprint(todo[0].Block, " ")
		} else {
			starts++
		}
		resumed := p.further() // a resumed run continues in the same way
		resumed.report = func(string) {}
		again := resumed.next(done)
		if again[0].ID != todo[0].ID || again[0].Origin != origin {
			t.Errorf("%+v: %+v, resumed %+v", p, todo[0], again[0])
		}
		done = append(done, p.records(todo[0].Block, origin)...)
	}
	return starts, strings.TrimSpace(repeated), text
}

func TestPrecisionPlansStarts(t *testing.T) {
	check := func(p planningRun, want int, repeated, said string) {
		t.Helper()
		starts, blocks, text := p.play(t)
		if starts != want || blocks != repeated || !strings.Contains(text, said) {
			t.Errorf("%+v: %d starts, want %d; repeated %q, want %q: %s", p, starts, want, blocks,
				repeated, text)
		}
	}
	// t(0.975, 5) = 2.571: (2.571 * 2 / 0.995)² = 26.7.
	check(planningRun{first: 6, most: 60, sd: 2}, 27, "", "planned 27 starts in total, 21 "+
		"more: according to the scatter of the first 6 starts, this is needed for ± 1.0 % of "+
		"CPU per request")
	check(planningRun{first: 6, most: 60, sd: 0.3}, 6, "",
		"the first 6 starts are enough for ± 1.0 % of CPU per request")
	check(planningRun{first: 6, most: 60, sd: 4}, 60, "", "planned 60 starts in total, 54 "+
		"more, which is the maximum for this run: ± 1.0 % of CPU per request would take 107 "+
		"starts")
	check(planningRun{first: 6, most: 20, sd: 50}, 20, "", "cannot be reached")
	check(planningRun{first: 6, most: 60, sd: 2, within: 600}, 20, "", "planned 20 starts in "+
		"total, 14 more, which is the maximum for this run: ")
	check(planningRun{first: 6, most: 60, sd: 2, within: 60}, 6, "", "planned 6 starts in "+
		"total, 0 more")
	check(planningRun{first: 6, most: 60, sd: 2, unknownCPU: true}, 27, "", "of throughput")
	// Of five starts, the SD is 2 * sqrt(1.2 * 5/6) = 2 %: (2.776 * 2 / 0.995)² = 31.1.
	check(planningRun{first: 6, most: 60, sd: 2, invalid: 6}, 32, "", "of the first 6 starts")
	// Start 2 is repeated before the others are planned, start 20 after all.
	check(planningRun{first: 6, most: 60, sd: 2, lost: "2 20"}, 24, "7 26", "start 20 lost b, so "+
		"the start is repeated (repetition 2 of at most 5)")
}
