package compare

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/schema"
	"prony.example/record"
	"prony.example/stats"
)

func TestParseLimits(t *testing.T) {
	check := func(metrics, limits string, want ...Limit) {
		t.Helper()
		got, err := ParseLimits(strings.Fields(metrics), strings.Fields(limits))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q %q is %v, error %v", metrics, limits, got, err)
		}
		for i := range want {
			if got[i].name() != want[i].name() || math.Abs(got[i].Most-want[i].Most) > 1e-12 {
				t.Errorf("%q %q is %v, want %v", metrics, limits, got, want)
			}
		}
	}
	check("", "", Limit{Most: 0.05})
	check("", "3%", Limit{Most: 0.03})
	check("throughput half/p99", "0.02", Limit{"", "throughput", 0.02}, Limit{"half", "p99", 0.02})
	// A limit for one metric does not remove the limit for the ranking metric.
	check("", "5% p99=10%", Limit{Most: 0.05}, Limit{"", "p99", 0.1})
	check("throughput p99", "5% p99=10%", Limit{"", "p99", 0.1}, Limit{"", "throughput", 0.05})
	bad := func(limit, words string) {
		t.Helper()
		_, err := ParseLimits(nil, strings.Fields(limit))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error of %q is %v", limit, err)
		}
	}
	bad("five", `"five" is not a number; write a limit such as 5% or p99=10%`)
	bad("p99=", `"" is not a number`)
	bad("-1%", "at least 0%")
	bad("100%", "below 100%")
	bad("NaN", "at least 0%")
	bad("5% 10%", `read limit "10%": there is another limit for the same metrics`)
	bad("p99=5% p99=10%", "another limit")
	bad("=5%", "a metric is missing before =")
}

// gate returns the gate of a run whose new rows have these throughputs relative to the old ones.
func gate(t *testing.T, metrics, limits []string, by ...float64) Gate {
	t.Helper()
	s := runOf("r", noon, rows{"old": drifting, "new": scaled(drifting, by...)})
	return judged(t, at(s, "old"), at(s, "new"), metrics, limits, 0)
}

func judged(t *testing.T, a, b Side, metrics, limits []string, invalid int) Gate {
	t.Helper()
	ls, err := ParseLimits(metrics, limits)
	if err != nil {
		t.Fatal(err)
	}
	names, err := Judged(compare(t, a, b, Options{Metrics: []string{"all"}}), ls)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Judge(compare(t, a, b, Options{Metrics: names}), ls, invalid)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGateHasThreeOutcomes(t *testing.T) {
	check := func(want, words string, limits []string, by ...float64) {
		t.Helper()
		g := gate(t, nil, limits, by...)
		if g.Outcome != want || len(g.Checks) != 1 || g.Checks[0].Row.Load != "peak" ||
			g.Checks[0].Row.Metric != "throughput" {
			t.Fatalf("%v is %s with %d checks, want %s", by, g.Outcome, len(g.Checks), want)
		}
		has(t, "the sentence", g.Sentence(), words)
	}
	// With 0.99 and 1.01 alternately the interval is 1 ± 0.9 %: within 5 %, and across 0.5 %.
	check(stats.Pass, "PASS: peak throughput changed by −0.01 % (−0.9", []string{"5%"}, 0.99, 1.01)
	check(stats.Inconclusive, "its confidence interval includes the allowed −0.5 %; about",
		[]string{"0.5%"},
		0.99, 1.01)
	// 0.9 ± 1 %.
	check(stats.Fail,
		"FAIL: peak throughput changed by −10 % (−11 % to −9.1 %), more than the allowed −5.0 %",
		[]string{"5%"}, 0.89, 0.91)
	check(stats.Pass, "within the allowed −15 %", []string{"15%"}, 0.89, 0.91)
	check(stats.Pass, "+10 %", []string{"0%"}, 1.09, 1.11)
	// At the limit no number of blocks decides.
	check(stats.Inconclusive, "no sensible number of blocks", []string{"5%"}, 0.94, 0.95*0.95/0.94)
}

// TestGateSaysHowLong checks the time of further blocks: two trials of a minute each, of which the
// second begins a minute after the first, take two minutes a block.
func TestGateSaysHowLong(t *testing.T) {
	var records []*record.Record
	for block := range 3 {
		for i := range 2 {
			at := noon.Add(time.Duration(block)*time.Hour + time.Duration(i)*time.Minute)
			records = append(records, &record.Record{Block: block, Time: at, DurationNs: 60e9})
		}
	}
	each := blockTime(records)
	if each != 2*time.Minute || blockTime(nil) != 0 {
		t.Errorf("a block takes %v, want 2m; without records %v", each, blockTime(nil))
	}
	// The trials of a start begin together, and share its time: three of half a minute each.
	beside := &record.SideBySide{With: []string{"x", "y"}}
	if got := blockTime([]*record.Record{{Time: noon, DurationNs: 30e9, SideBySide: beside},
		{Time: noon, DurationNs: 30e9, SideBySide: beside}}); got != 90*time.Second {
		t.Errorf("a start takes %v, want 90 s", got)
	}
	check := func(want string, paired bool, more int, each time.Duration) {
		t.Helper()
		side := Subject{blockTime: each}
		k := Check{Pair: &Pair{A: side, B: side}, More: more}
		if got := k.more(Comparison{Paired: paired}); got != want {
			t.Errorf("%d blocks of %v: %q, want %q", more, each, got, want)
		}
	}
	check("about 1 more block (2 min) would decide in 8 of 10 cases", true, 1, each)
	check("about 723 more blocks (24 h) would decide in 8 of 10 cases", true, 723, each)
	check("about 723 more blocks of each run (2.0 days) would decide in 8 of 10 cases", false, 723,
		each)
	check("about 7 more blocks would decide in 8 of 10 cases", true, 7, 0) // published results
}

// TestGateOfALatency checks that a latency may rise by the limit: 9 % more is within 10 %, and
// 1/0.9 = 11 % more is not, although its inverse is 0.9.
func TestGateOfALatency(t *testing.T) {
	p99 := []string{"half/p99"}
	check := func(want string, by float64, limit string) {
		t.Helper()
		g := gate(t, p99, []string{limit}, 1/by*0.999, 1/by*1.001)
		if g.Outcome != want || g.Checks[0].Row.Better != Lower {
			t.Errorf("%v more is %s, want %s: %s", by, g.Outcome, want, g.Sentence())
		}
	}
	check(stats.Pass, 1.09, "10%")
	check(stats.Inconclusive, 1.1, "10%")
	check(stats.Fail, 1.108, "10%")
	check(stats.Pass, 0.5, "10%")
	check(stats.Fail, 2, "90%")
	g := gate(t, p99, []string{"10%"}, 0.5, 0.501)
	has(t, "the sentence", g.Sentence(), "half p99 changed by +100 %",
		"more than the allowed +10 %")
}

// TestGateWarnsOfStalls checks that a check that passes only without the machine's stalls has a
// note, and is a warning for GitHub.
func TestGateWarnsOfStalls(t *testing.T) {
	check := func(free, raw float64, want bool, outcome, kind string) {
		t.Helper()
		p99, limits := []string{"half/p99"}, []string{"10%"}
		g := gate(t, p99, limits, 1/free*0.999, 1/free*1.001)
		g.WarnOfStalls(gate(t, p99, limits, 1/raw*0.999, 1/raw*1.001))
		k := g.Checks[0]
		if k.FailsWithStalls != want || g.Outcome != outcome {
			t.Errorf("%v, and %v with stalls: %s, %+v", free, raw, g.Outcome, k)
		}
		if strings.Contains(k.Why,
			"including the machine's stalls (--stalls keep), it changed by ") != want {
			t.Errorf("%v, and %v with stalls: %s", free, raw, k.Why)
		}
		var b strings.Builder
		if err := Annotations(&b, g); err != nil || !strings.HasPrefix(b.String(), "::"+kind+" ") {
			t.Errorf("%v, and %v with stalls: %s, want %s, %v", free, raw, b.String(), kind, err)
		}
		b.Reset()
		if err := GateJSON(&b, g); err != nil ||
			strings.Contains(b.String(), `"failsWithStalls": true`) != want {
			t.Errorf("%v, and %v with stalls: %s, %v", free, raw, b.String(), err)
		}
	}
	check(1.02, 1.3, true, stats.Pass, "warning")
	check(1.02, 1.03, false, stats.Pass, "notice")
	check(1.02, 1.1, false, stats.Pass, "notice") // undecided with them
	check(1.3, 1.4, false, stats.Fail, "error")
}

// TestWhichRowsAreGated checks the loads of bare names: p99 means open loads, throughput closed
// ones.
func TestWhichRowsAreGated(t *testing.T) {
	check := func(metric string, want ...string) {
		t.Helper()
		var got []string
		for _, k := range gate(t, []string{metric}, nil, 1, 1.01).Checks {
			got = append(got, k.Row.Load+"/"+k.Row.Metric)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	check("p99", "half/p99")
	check("peak/p99", "peak/p99")
	check("throughput", "peak/throughput")
	check("half/throughput", "half/throughput")
	check("ready", "/ready")
	s := runOf("r", noon, rows{"old": drifting, "new": drifting})
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	_, err := Judge(c, []Limit{{Metric: "p98", Most: 0.05}}, 0)
	if err == nil || !strings.HasPrefix(err.Error(),
		`gate: no metric is called "p98"; the metrics are `) {
		t.Errorf("error is %v", err)
	}
	for _, r := range s.Records {
		r.Loads = r.Loads[1:]
	}
	g := judged(t, at(s, "old"), at(s, "new"), nil, nil, 0)
	if len(g.Checks) != 1 || g.Checks[0].Row.Metric != "p99" {
		t.Errorf("without a closed load it judges %d rows", len(g.Checks))
	}
}

// TestGateOfSeveralMetrics checks that the gate has the worst outcome, in the order pass,
// inconclusive, insufficient data, fail.
func TestGateOfSeveralMetrics(t *testing.T) {
	g := gate(t, []string{"throughput", "p99"}, []string{"throughput=20%", "p99=5%"}, 0.89, 0.91)
	if g.Outcome != stats.Fail || len(g.Checks) != 2 {
		t.Fatalf("%s of %d checks", g.Outcome, len(g.Checks))
	}
	if s := g.Sentence(); !strings.Contains(s, "p99") || strings.Contains(s, "throughput") {
		t.Errorf("the sentence tells of what did not fail: %s", s)
	}
	// 0.943 ± 0.6 % alone is slightly beyond 5 %: at 95 % its upper end is 0.9487, at 99.5 % (of
	// ten) 0.9516.
	alone := gate(t, []string{"throughput"}, nil, 0.937, 0.949)
	ten := []string{"throughput", "p50", "p90", "half/p99", "peak/p50", "peak/p90", "peak/p99",
		"ready", "peak/rss_max", "peak/cpu_per_request"}
	many := gate(t, ten, []string{"50%", "throughput=5%"}, 0.937, 0.949)
	if alone.Outcome != stats.Fail || many.Outcome != stats.Inconclusive || many.More < 1 {
		t.Errorf("alone it is %s, of %d %s with %d more", alone.Outcome, len(many.Checks),
			many.Outcome, many.More)
	}
	// It has the reason, and does not claim that the limit lies inside the printed interval.
	if s := many.Sentence(); !strings.Contains(s,
		"but not significantly at the 99.5 % confidence level") {
		t.Errorf("the sentence is %q", s)
	}
}

// TestGateTakesWhatDecided checks that the metric that decided a run replaces the ranking metric,
// with its limit, and no metric that is named; and that the next one with a number replaces it if
// it has none.
func TestGateTakesWhatDecided(t *testing.T) {
	s := runOf("r", noon, rows{"old": drifting, "new": drifting})
	c := compare(t, at(s, "old"), at(s, "new"), Options{Metrics: []string{"all"}})
	usual, named := Limit{Most: 0.07}, Limit{Load: "half", Metric: "p50", Most: 0.1}
	check := func(word string, want Limit) {
		t.Helper()
		limits := []Limit{named, usual}
		if got := DecidedLimits(limits, c, word); got[0] != named || got[1] != want {
			t.Errorf("%q: %+v, want %+v", word, got, want)
		}
		if limits[1] != usual {
			t.Errorf("%q changes the limits that it was given", word)
		}
	}
	check("", usual)
	check("p98", usual)
	check("throughput", Limit{Load: "peak", Metric: "throughput", Most: 0.07})
	check("p99", Limit{Load: "half", Metric: "p99", Most: 0.07})
	check("capacity", Limit{Load: "peak", Metric: "cpu_per_request", Most: 0.07})
	c.Pairs = nil
	check("p99", usual)
}

// TestGateRefusesWhatIsMissing checks that a gate requires all rows: a missing one must not pass.
func TestGateRefusesWhatIsMissing(t *testing.T) {
	a := runOf("a", noon, rows{"x": drifting, "gone": drifting})
	b := runOf("b", noon, rows{"x": drifting})
	c := compare(t, a, b, Options{Metrics: []string{"peak/throughput"}})
	_, err := Judge(c, []Limit{{Most: 0.5}}, 0)
	if err == nil || !strings.Contains(err.Error(), "gone is only in A") {
		t.Errorf("error is %v", err)
	}
}

func TestGateRefusesWhatIsUnfit(t *testing.T) {
	spoil := func(s Side, blocks ...int) Side {
		for _, r := range s.Records {
			for _, b := range blocks {
				if r.Target.Name == "new" && r.Block == b {
					r.Verdict.Grade = record.Invalid
				}
			}
		}
		return s
	}
	check := func(want, words string, s Side, invalid int) {
		t.Helper()
		g := judged(t, at(s, "old"), at(s, "new"), nil, nil, invalid)
		if g.Outcome != want {
			t.Errorf("%s, want %s", g.Sentence(), want)
		}
		has(t, "the sentence", g.Sentence(), words)
	}
	fresh := func() Side {
		return runOf("r", noon, rows{"old": drifting, "new": scaled(drifting, 0.99, 1.01)})
	}
	const lost = "1 trial of one side was INVALID, failed or stopped"
	check(InsufficientData, lost, spoil(fresh(), 2), 0)
	stopped := fresh()
	for _, r := range stopped.Records {
		if r.Block == 8 && r.Target.Name == "new" {
			r.Outcome, r.Loads = record.Failed, nil
			r.Failure = &record.Failure{Step: "measure", Interrupted: true}
		}
	}
	check(InsufficientData, lost, stopped, 0)
	check(stats.Pass, "PASS", stopped, 1)
	c := compare(t, at(stopped, "old"), at(stopped, "new"), Options{})
	if text := c.Pairs[0].B.counts(); text != "VALID 7, stopped 1" {
		t.Errorf("the trials of a stopped run are %q", text)
	}
	check(stats.Pass, "PASS", spoil(fresh(), 2), 1)
	check(InsufficientData, "allow them with --allow-invalid 2", spoil(fresh(), 2, 4), 1)
	check(InsufficientData, "B has no peak throughput", spoil(fresh(), 1, 2, 3, 4, 5, 6, 7, 8), 9)
	one := runOf("r", noon, rows{"old": {1e4}, "new": {1e4}})
	check(InsufficientData, "there is no interval: needs n >= 2", one, 0)
}

// TestFailedTrialsHaveNoMethod checks that a target without any load does not make a comparison
// impossible: nothing is known of its loads, so that they do not differ. A gate does not pass.
func TestFailedTrialsHaveNoMethod(t *testing.T) {
	s := runOf("r", noon, rows{"old": drifting, "new": drifting, "also": drifting})
	for _, r := range s.Records {
		if r.Target.Name == "new" {
			r.Outcome, r.Loads, r.Verdict.Grade = record.Failed, nil, record.Invalid
			r.Failure = &record.Failure{Step: "ready", Error: "no answer"}
			r.Limits.InForce = nil
		}
	}
	c := compare(t, at(s, "old"), at(s, "new"), Options{})
	g, err := Judge(c, []Limit{{Most: 0.05}}, len(drifting))
	if err != nil || g.Outcome != InsufficientData {
		t.Errorf("%+v, %v", g, err)
	}
	other := at(runOf("s", noon, rows{"old": drifting}), "old")
	if _, err := Compare(at(s, "also"), other, Options{}); err != nil {
		t.Error(err)
	}
}

func TestGateOfWhatIsExact(t *testing.T) {
	check := func(want string, size int64) {
		t.Helper()
		s := runOf("r", noon, rows{"old": drifting, "new": drifting})
		for _, r := range s.Records {
			if r.Target.Name == "new" {
				r.Artifact.SizeBytes = size
			}
		}
		g := judged(t, at(s, "old"), at(s, "new"), []string{"artifact_size"}, nil, 0)
		if g.Outcome != want {
			t.Errorf("%d bytes: %s", size, g.Sentence())
		}
	}
	check(stats.Pass, 1<<20)
	check(stats.Pass, 1<<20+1<<19/10)
	check(stats.Fail, 1<<20+1<<20/10)
	check(stats.Pass, 1<<10)
}

func TestGateIsToldInEveryForm(t *testing.T) {
	g := gate(t, nil, nil, 0.89, 0.91)
	var text, md, js, notes strings.Builder
	for _, err := range []error{GateText(&text, g), GateMarkdown(&md, g), GateJSON(&js, g),
		Annotations(&notes, g)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	has(t, "text", text.String(), "new against old\n", "allowed  gate\n",
		"−10 % (−11 % to −9.1 %)  −5.0 %   fail\n", "\nFAIL: ")
	has(t, "Markdown", md.String(), "❌ **new against old**", "| peak throughput |", "| fail |",
		"$ prony run r")
	want := "::error title=prony gate fail%3A new peak throughput::peak throughput changed by " +
		"−10 %25 (−11 %25 to −9.1 %25), more than the allowed −5.0 %25\n"
	if notes.String() != want {
		t.Errorf("annotations are %q, want %q", notes.String(), want)
	}
	schema.Valid(t, "gate", []byte(js.String()))
	var doc struct {
		Outcome    string
		Checks     []struct{ Metric, Outcome string }
		Comparison struct{ Paired bool }
	}
	if err := json.Unmarshal([]byte(js.String()), &doc); err != nil || doc.Outcome != stats.Fail ||
		len(doc.Checks) != 1 || doc.Checks[0].Metric != "throughput" || !doc.Comparison.Paired {
		t.Errorf("JSON is %+v, error %v", doc, err)
	}
}

// TestGateOfFailedSide checks that a side whose trials all failed before a load, or the second
// one, is no other configuration: the data are insufficient.
func TestGateOfFailedSide(t *testing.T) {
	for loads := range 2 {
		s := runOf("r", noon, rows{"a": drifting, "b": drifting})
		for _, r := range s.Records {
			if r.Target.Name == "b" {
				r.Outcome, r.Loads = record.Failed, r.Loads[:loads]
				r.Failure = &record.Failure{Step: "warmup", Error: "it died"}
			}
		}
		c := compare(t, at(s, "a"), at(s, "b"), Options{})
		g, err := Judge(c, []Limit{{Metric: "throughput", Most: 0.02}}, 0)
		if err != nil || g.Outcome != InsufficientData {
			t.Errorf("%d loads: %s, %v", loads, g.Outcome, err)
		}
		if got := c.Sentences("a", "b")[0]; got !=
			"b and a: no comparison of throughput: no number." {
			t.Errorf("%d loads: %s", loads, got)
		}
	}
}
