package table

import (
	"math"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// rateRun is slicedRun with stalls in the windows, whose throughput is a tenth higher for b without
// them.
func rateRun(change func(r *record.Record, x *record.WithoutStalls)) []record.Record {
	records := slicedRun()
	for i := range records {
		l := &records[i].Loads[0]
		x := &record.WithoutStalls{PerS: l.ThroughputPerS, RanShare: 1}
		if records[i].Target.Name == "b" {
			x.PerS, x.RanShare = 1.1*l.ThroughputPerS, 0.92
		}
		x.LowestPerS, x.HighestPerS = l.ThroughputPerS, 1.01*x.PerS
		l.WithoutStalls = x
		change(&records[i], x)
	}
	return records
}

// A note says what stalls did to the throughput of the target that they moved most, and a column
// has it on request.
func TestThroughputWithoutStalls(t *testing.T) {
	check := func(o Options, change func(*record.Record, *record.WithoutStalls), want float64,
		note string) {
		t.Helper()
		study := analyze(rateRun(change), o)
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.ThroughputWithoutStalls)
		got := 0.0
		if m.Known() {
			got = m.Summary.Center
		}
		if math.Abs(got-want) > 1 {
			t.Errorf("throughput without stalls %v, want %v", got, want)
		}
		tab := only(t, study.Sheet())
		text := strings.Join(Texts(tab.Notes), "\n")
		if note == "" && strings.Contains(text, "Stalls of the machine took") ||
			!strings.Contains(text, note) {
			t.Errorf("%s, want %q", text, note)
		}
		for _, c := range tab.Columns {
			if asked := len(o.Columns) > 0; c.Key == "peak/withoutStalls" && !asked {
				t.Error("the column is there without a request")
			} else if c.Key == "peak/withoutStalls" {
				return
			}
		}
		if len(o.Columns) > 0 {
			t.Error("the column is missing")
		}
	}
	same := func(*record.Record, *record.WithoutStalls) {}
	const note = "Stalls of the machine took, in windows of peak, 8.0 % of the time; with them, " +
		"throughput of b is 50.0k/s, and 55.0k/s (50k/s to 55.55k/s) in the time in which all " +
		"cores ran."
	check(Options{Baseline: "a"}, same, 55e3, note)
	check(Options{Columns: []string{"withoutStalls"}}, same, 55e3, note)
	check(Options{Stalls: KeepStalls}, same, 55e3, "")
	quiet := func(_ *record.Record, x *record.WithoutStalls) { x.RanShare = 0.999 }
	check(Options{}, quiet, 55e3, "")
	// The median of 30, 40, 50 and 65 thousand: an INVALID window counts nowhere.
	check(Options{}, func(r *record.Record, x *record.WithoutStalls) {
		if r.Target.Name == "b" && r.Block == 1 {
			x.Unknown, x.RanShare = stats.StallsDepend, 0.1
			*r = invalidIn(*r, "peak", record.PhaseWindow)
		}
	}, 49.5e3, "8.0 % of the time; with them, throughput of b is 45.0k/s, and 49.5k/s")
	check(Options{}, func(r *record.Record, x *record.WithoutStalls) {
		if r.Target.Name == "b" {
			x.Unknown = stats.StallsDepend
		}
	}, 0, "The values of req/s in windows of peak include the machine's stalls, because without "+
		"them those of b are unknown.")
	check(Options{}, func(r *record.Record, x *record.WithoutStalls) {
		if r.Target.Name == "b" {
			x.Unknown, x.RanShare = stats.TooMuchExcluded, 0.45
		}
	}, 0, "all cores in use ran for 45 % of the time, and at least 60 % are needed")
}

// Steal does not make a throughput without stalls SUSPECT, and a service that is not warm does.
func TestDoubtsOfThroughputWithoutStalls(t *testing.T) {
	check := func(rule string, stallFree *float64, want bool) {
		t.Helper()
		study := analyze(rateRun(func(r *record.Record, _ *record.WithoutStalls) {
			r.Verdict.Findings = []record.Finding{{Rule: rule, Load: "peak", Grade: record.Suspect,
				PossibleBias: []record.Bias{{Metric: metric.Throughput, Share: 5,
					StallFree: stallFree}}}}
		}), Options{})
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.ThroughputWithoutStalls)
		if (m.Doubt != nil) != want {
			t.Errorf("%s: %+v", rule, m.Doubt)
		}
	}
	check("steal", new(float64), false)
	check("warm-up", nil, true)
}
