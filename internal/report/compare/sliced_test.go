package compare

import (
	"math"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// inSlices gives a run's trials slices, in which they serve as many requests a second as perS has
// by block, and use 1 s of processor time a second.
func inSlices(s Side, perS rows) Side {
	for _, r := range s.Records {
		requests := int64(10 * perS[r.Target.Name][r.Block-1])
		r.DurationNs = int64(15 * time.Second)
		r.SideBySide = &record.SideBySide{Rounds: 40, LeadNs: 20e6, WindowNs: 40e6,
			Freeze: record.FreezeSignals, Clock: record.ClockProcess}
		r.Loads[0].Slices = &record.Sliced{Slices: 40, Requests: requests, TimeNs: 10e9,
			CPUNs: 10e9, IdleTimeNs: 10e9}
	}
	return s
}

// slicedRows are two targets whose windows drift apart and whose slices do not: b is 5 % slower.
func slicedRows() Side {
	slower := scaled(drifting, 0.95, 0.951, 0.949)
	windows := scaled(drifting, 1.3, 0.7)
	return inSlices(runOf("r", noon, rows{"a": drifting, "b": windows}),
		rows{"a": drifting, "b": slower})
}

// Within a run a ratio comes from slices, and the levels beside it from windows.
func TestRatiosFromSlices(t *testing.T) {
	s := slicedRows()
	c := compare(t, at(s, "a"), at(s, "b"), Options{})
	r := rowOf(t, c.Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromSlices || r.Outcome != Worse || math.Abs(r.Ratio.Center-0.95) > 0.001 {
		t.Errorf("%s from %q: %+v", r.Outcome, r.Source, r.Ratio)
	}
	near(t, "level of a", r.A.Mean, geometric(drifting))
	near(t, "ratio of block 2", r.Blocks[1].Ratio, 0.951)
	if cpu := rowOf(t, c.Pairs[0], "peak", metric.CPU); cpu.Outcome != Worse ||
		math.Abs(cpu.Ratio.Center-1/0.95) > 0.001 {
		t.Errorf("CPU %s: %+v", cpu.Outcome, cpu.Ratio)
	}
	if p99 := rowOf(t, c.Pairs[0], "half", "p99"); p99.Source != table.FromWindows {
		t.Errorf("p99 comes from %q", p99.Source)
	}
}

// A gate decides by slices also where no window is usable.
func TestGateBySlices(t *testing.T) {
	s := slicedRows()
	for _, r := range s.Records {
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{Rule: "steal",
			Load: "peak", Phase: record.PhaseWindow, Grade: record.Invalid}}}
	}
	c := compare(t, at(s, "a"), at(s, "b"), Options{})
	for most, want := range map[float64]string{0.02: stats.Fail, 0.1: stats.Pass} {
		g, err := Judge(c, []Limit{{Metric: metric.Throughput, Most: most}}, 0)
		if err != nil || g.Outcome != want {
			t.Errorf("a loss of %v allowed: %s, %v: %s", most, g.Outcome, err, g.Checks[0].Why)
		}
	}
}

// Between runs levels are compared; with a control, each run's slices against the control's.
func TestSlicesOfTwoRuns(t *testing.T) {
	a := slicedRows()
	later := scaled(drifting, 1.5)
	b := inSlices(runOf("s", noon.Add(time.Hour), rows{"a": later, "b": later}),
		rows{"a": later, "b": scaled(later, 0.90, 0.901, 0.899)})
	r := rowOf(t, compare(t, at(a, "b"), at(b, "b"), Options{}).Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromWindows {
		t.Errorf("runs are compared by %q", r.Source)
	}
	c := compare(t, at(a, "b"), at(b, "b"), Options{Control: "a"})
	r = rowOf(t, c.Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromSlices || math.Abs(r.Ratio.Center-0.90/0.95) > 0.001 {
		t.Errorf("with a control, by %q: %+v", r.Source, r.Ratio)
	}
}
