package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// moved is a finding with a bound on the throughput of peak.
func moved(rule string, by float64) record.Finding {
	return record.Finding{Rule: rule, Load: "peak", Grade: record.Valid,
		PossibleBias: []record.Bias{{Metric: metric.Throughput, Share: by}}}
}

// TestDoubt: a number is doubted where the mean of its trials' bounds is more than its own interval
// and the resolution, by those rules without which it would not be.
func TestDoubt(t *testing.T) {
	const interval = 0.05 // of 100, 101 and 102, at most
	check := func(name string, want []string, by float64, findings ...[]record.Finding) {
		t.Helper()
		records := rates("a", 100, 101, 102)
		for i := range findings {
			records[i].Verdict = record.Verdict{Grade: record.Valid, Findings: findings[i]}
		}
		study := analyze(records, Options{})
		m, _ := study.Scenarios[0].Targets[0].Metric("peak", metric.Throughput)
		if w := halfWidth(m.Summary.Center, m.Summary.Lo, m.Summary.Hi); w > interval {
			t.Fatalf("%s: the interval is ±%.4f", name, w)
		}
		var rules []string
		got := 0.0
		if m.Doubt != nil {
			rules, got = m.Doubt.Rules, m.Doubt.Share
		}
		if !slices.Equal(rules, want) || got < by-1e-9 || got > by+1e-9 {
			t.Errorf("%s: %q by %.4f, want %q by %.4f", name, rules, got, want, by)
		}
		sheet := study.Sheet()
		suspect := 0
		if len(want) > 0 {
			suspect = 1
		}
		if sheet.Numbers.Suspect != suspect || sheet.Numbers.Valid == 0 && suspect == 0 {
			t.Errorf("%s: numbers %+v", name, sheet.Numbers)
		}
		said := fmt.Sprint(sheet.Tables[0].Footnotes)
		if by > 0 && !strings.Contains(said, "peak may be off: req/s by up to ") {
			t.Errorf("%s: footnotes %q", name, said)
		}
	}
	one := func(fs ...record.Finding) []record.Finding { return fs }
	drift, steal := moved("drift", 0.09), moved("steal", 0.06)
	check("nothing", nil, 0)
	check("one of three", nil, 0, one(drift))
	check("the same in all", []string{"drift"}, 0.09, one(drift), one(drift), one(drift))
	check("below the interval", nil, 0, one(moved("drift", 0.025)), one(moved("drift", 0.025)))
	check("two together, either alone too much", []string{"drift", "steal"}, 0.15,
		one(drift, steal), one(drift, steal), one(drift, steal))
	check("two together, and one is enough", []string{"drift"}, 0.11,
		one(drift, moved("steal", 0.02)), one(drift, moved("steal", 0.02)),
		one(drift, moved("steal", 0.02)))
	open := record.Finding{Rule: "limits", Grade: record.Suspect}
	check("what nobody bounds", []string{"limits"}, 0, one(open))
	other := moved("lag", 0.5)
	other.PossibleBias[0].Metric = "p99"
	check("another number", nil, 0, one(other), one(other), one(other))
	// A suite that asks for no more than 20 % gets it.
	records := rates("a", 100, 101, 102)
	for i := range records {
		records[i].Verdict = record.Verdict{Grade: record.Valid, Resolution: 0.2,
			Findings: one(drift, steal)}
	}
	m, _ := analyze(records, Options{}).Scenarios[0].Targets[0].Metric("peak", metric.Throughput)
	if m.Doubt != nil {
		t.Errorf("with a resolution of 20 %%: %+v", *m.Doubt)
	}
}

// A warm-up that did not end moves no start, which was over before it.
func TestWarmUpDoubtsNoStart(t *testing.T) {
	records := rates("a", 100, 101, 102)
	for i := range records {
		records[i].Start = record.Start{ReadyNs: 30e6 + int64(i)}
		records[i].Warmup = record.Warmup{SteadyAtNs: 1e9 + int64(i), Steady: true}
		records[i].Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{
			{Rule: "warm-up", Grade: record.Suspect}}}
	}
	target := analyze(records, Options{}).Scenarios[0].Targets[0]
	ready, _ := target.Metric("", metric.Ready)
	if !ready.Known() || ready.Grade() != record.Valid {
		t.Errorf("ready is %s (%s), and was over before the warm-up", ready.Grade(), ready.Withheld)
	}
	steady, _ := target.Metric("", metric.SteadyAt)
	if !steady.Known() || steady.Grade() != record.Suspect {
		t.Errorf("the steady state is %s (%s)", steady.Grade(), steady.Withheld)
	}
}

// A number whose interval says nothing is not known: it is neither VALID nor SUSPECT. Of a and b,
// 100 and 310 span more than a factor of three, 100 and 102 do not.
func TestUnknownIsNotValid(t *testing.T) {
	check := func(summary stats.Summary, doubt *Doubt, grade string) {
		t.Helper()
		m := Metric{Summary: summary, Doubt: doubt}
		if m.Grade() != grade {
			t.Errorf("%v to %v is %q, want %q", summary.Lo, summary.Hi, m.Grade(), grade)
		}
	}
	between := func(lo, hi float64) stats.Summary {
		return stats.Summary{N: 2, Center: 200, Lo: lo, Hi: hi}
	}
	nan, doubt := math.NaN(), &Doubt{Rules: []string{"lag"}}
	check(between(100, 300), nil, record.Valid)
	check(between(100, 300), doubt, record.Suspect)
	check(between(100, 301), nil, UnknownGrade)
	check(between(100, 301), doubt, UnknownGrade)
	check(between(nan, nan), nil, UnknownGrade)
	check(between(nan, nan), doubt, record.Suspect)
	check(between(0, 0), nil, record.Valid)

	records := append(rates("a", 100, 310), rates("b", 100, 100)...)
	sheet := sheetOf(records, Options{})
	wide := find(t, sheet.Tables[0], "a", "peak/throughput")
	if wide.Interval.State != Unknown || wide.Grade != UnknownGrade {
		t.Errorf("a has %+v", wide)
	}
	if n := sheet.Numbers; n.Unknown == 0 || n.Valid == 0 || n.Suspect != 0 {
		t.Errorf("numbers %+v", n)
	}
}

// Trials of several runs can have the same name. Each point is doubted for its own trial.
func TestDoubtOfRunsWithEqualTrials(t *testing.T) {
	records := rates("a", 100, 101, 102)
	for i := range records {
		records[i].Verdict = record.Verdict{Grade: record.Valid}
	}
	records[0].Verdict.Findings = []record.Finding{moved("drift", 0.09)}
	second := rates("a", 100, 101, 102)
	for i := range second {
		second[i].Run = "another"
		second[i].Verdict = record.Verdict{Grade: record.Valid,
			Findings: []record.Finding{moved("drift", 0.09)}}
	}
	m, _ := analyze(append(records, second...), Options{}).Scenarios[0].Targets[0].
		Metric("peak", metric.Throughput)
	if len(m.Points) != 6 || m.Doubt == nil || math.Abs(m.Doubt.Share-0.06) > 1e-9 {
		t.Errorf("%d points, doubt %+v, want 6 points and a doubt of 0.06", len(m.Points), m.Doubt)
	}
}
