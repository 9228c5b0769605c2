package compare

import (
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// A comparison of sides that were measured under different conditions says so below its answer.
func TestBelowMismatches(t *testing.T) {
	c := Comparison{
		Pairs:      []Pair{{A: Subject{Target: "a"}, B: Subject{Target: "b"}}},
		Mismatches: []table.Difference{{Aspect: "launcher", A: "process", B: "docker"}},
	}
	const want = "WARNING: a and b were measured under different conditions: launcher: process " +
		"against docker. The results may show these differences instead of those of the services."
	if got := c.Below(); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	if c.Mismatches = nil; len(c.Below()) != 0 {
		t.Errorf("equal conditions: %q", c.Below())
	}
}

// If the control differs significantly from itself, the other answers of the run in this metric say
// so; answers in other metrics, and those from slices, stay as they are.
func TestDoubtByTheControl(t *testing.T) {
	row := func(name, outcome string, source table.Source, center float64) Row {
		return Row{Load: "peak", Metric: name, Label: name, Outcome: outcome, Text: outcome,
			Source: source, Ratio: &stats.Ratio{N: 5, Center: center, Lo: center - 0.01,
				Hi: center + 0.01}}
	}
	of := func(rows ...Row) Comparison { return Comparison{Pairs: []Pair{{Rows: rows}}} }
	check := func(control Comparison, want ...string) {
		t.Helper()
		c := of(row(metric.CPU, Better, "", 0.9), row(metric.Throughput, Better, "", 1.1))
		c.Pairs[0].Rows[0].Grade, c.Pairs[0].Rows[0].Doubt = record.Suspect,
			&table.Doubt{Rules: []string{"neighbors"}}
		c.DoubtBy(control, "old-again")
		got := strings.Join(c.Below(), "\n")
		for _, r := range c.Answers() {
			got += "\n" + r[2]
		}
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("lacks %q:\n%s", text, got)
			}
		}
		if len(want) == 0 && strings.Contains(got, "control") {
			t.Errorf("a control without a difference is reported:\n%s", got)
		}
	}
	check(of(row(metric.CPU, Indistinguishable, "", 1.01)))
	check(of(row(metric.CPU, Worse, table.FromSlices, 1.04)))
	check(of(row(metric.CPU, Worse, "", 1.04)), "SUSPECT: the control old-again differs by +4.0 % "+
		"from itself in peak CPU per request", "better; SUSPECT (neighbors, control)\nbetter")
}
