package compare

import (
	"math"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/stats"
)

// TestSays checks that an outcome without a significant difference has the smallest detectable one,
// if that means anything.
func TestSays(t *testing.T) {
	check := func(outcome string, detectable float64, want string) {
		t.Helper()
		r := Row{Outcome: outcome, Text: "w", Detectable: detectable}
		if got := r.OutcomeText(); got != want {
			t.Errorf("%s, %v: %q, want %q", outcome, detectable, got, want)
		}
	}
	check(Better, 0.03, "w")
	check(Indistinguishable, 0.03, "w (would detect ≥ 3.0 %)")
	check(Indistinguishable, 2, "w (would detect ≥ 200 %)")
	check(Indistinguishable, 2.01, "w (too noisy)")
	check(Indistinguishable, math.NaN(), "w")
}

// TestInterval checks that a wide interval is printed only if it excludes 1.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{{0.94, 0.96, "−6.0 % to −4.0 %"}, {0.5, 1.6, "unknown"}, {0, 54997.22, "unknown"},
		{0.1, 0.31, "−90 % to −69 %"}, {1.2, 4, "+20 % to +300 %"}} {
		if got := Interval(stats.Ratio{Lo: c.lo, Hi: c.hi}); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
}

// TestStalledOnce checks that an answer has the reason of unknown response times once, below it.
func TestStalledOnce(t *testing.T) {
	why := table.NoteOf(table.NoteStalled, table.Stalled{Reason: stats.UnrecordedStalls})
	row := func(name string) Row {
		r := Row{Metric: name, Label: name, Unit: "ns", Better: Lower, unsliced: why}
		r.speak(0.05)
		return r
	}
	c := Comparison{Pairs: []Pair{{Rows: []Row{row("p50"), row("p99")}}}}
	const short = "unknown without the machine's stalls"
	if got := c.Sentence("a", "b"); got !=
		"b and a: no comparison of p50: "+short+". p99: "+short+"." {
		t.Errorf("sentence %q", got)
	}
	for _, texts := range c.Answers() {
		if texts[2] != short {
			t.Errorf("row %q, want %q", texts, short)
		}
	}
	below := strings.Join(c.Below(), "\n")
	if below != "U"+why.String()[1:]+"." {
		t.Errorf("below %q, want the reason once", below)
	}
	if r := c.Pairs[0].Rows[0]; r.Text != why.String() {
		t.Errorf("text for programs %q, want the reason", r.Text)
	}
}

// TestNoVerdictWithoutTest checks that sides that are not comparable have no ratio, and so neither
// a test nor a verdict.
func TestNoVerdictWithoutTest(t *testing.T) {
	side := func(center float64) Value {
		return Value{Summary: stats.Summary{Center: center}, Mean: math.NaN()}
	}
	r := Row{Metric: "p90", Unit: "ns", Better: Lower, A: side(1e6), B: side(2e6)}
	r.speak(0.05)
	if r.Outcome != Worse {
		t.Errorf("exact values: %s, want %s", r.Outcome, Worse)
	}
	r.unsliced = table.NoteOf(table.NoteVerbatim, "stalls were not recorded")
	r.speak(0.05)
	if r.Outcome != Silent || changeText(r) != units.Absent {
		t.Errorf("%s, %s: want no verdict and no change", r.Outcome, changeText(r))
	}
}

// TestMetricOfOneSide checks that nothing of a metric that only the other side has is in a side.
func TestMetricOfOneSide(t *testing.T) {
	points := []table.Point{{Trial: "b1-a", Block: 1, Value: 7}}
	m := of(&table.Target{Name: "b"}, table.Metric{Load: "peak", Name: "throughput", Unit: "1/s",
		Points: points, Sliced: points, Samples: 9, Ratio: &stats.Ratio{}, AtLeast: 5,
		Doubt: &table.Doubt{}})
	if m.Known() || len(m.Points)+len(m.Sliced) > 0 || m.Samples > 0 || m.Ratio != nil ||
		m.AtLeast > 0 || m.Doubt != nil || m.Load != "peak" || m.Unit != "1/s" {
		t.Errorf("it is %+v", m)
	}
}
