package table

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// finding returns a finding of version 1 on a load (empty: the whole trial).
func finding(grade, load, rule, observed, limit string) record.Finding {
	b, err := json.Marshal(map[string]string{"rule": rule, "load": load, "grade": grade,
		"observed": observed, "limit": limit})
	var f record.Finding
	if err = cmp.Or(err, json.Unmarshal(b, &f)); err != nil {
		panic(err)
	}
	return f
}

func invalid(load string) record.Finding {
	return finding(record.Invalid, load, "errors", "7 went wrong", "0.1 %")
}

func suspect(load string) record.Finding {
	return finding(record.Suspect, load, "run delay", "4.4 % of the window", "2.0 %")
}

// judged gives a record findings, and the worst of their grades.
func judged(r record.Record, findings ...record.Finding) record.Record {
	r.Verdict = record.Verdict{Grade: record.Valid, Findings: findings}
	for _, f := range findings {
		r.Verdict.Grade = worse(r.Verdict.Grade, f.Grade)
	}
	return r
}

// three returns trials of one target in three blocks, with the values 1, 100 and 3 in a unit of
// each metric. The median of all three is 3, and that without the second block is 2.
func three() []record.Record {
	var records []record.Record
	for i, x := range []int64{1, 100, 3} {
		r := with(trial("a", i+1, float64(x)), 5000, x*1e6)
		r.Loads[0].Service.CPUPerRequestNs = float64(x)
		r.Start.ReadyNs = x
		records = append(records, r)
	}
	return records
}

// TestWhatFalls checks that an INVALID load excludes only its own numbers. Cost and start depend on
// the closed load, and an open load depends on the closed one that its rate is a share of.
func TestWhatFalls(t *testing.T) {
	check := func(name string, second func(*record.Record), peak, half, start float64) {
		t.Helper()
		records := three()
		second(&records[1])
		study := analyze(records, Options{})
		target := study.Scenarios[0].Targets[0]
		for _, m := range []struct {
			load, metric string
			want         float64
		}{
			{"peak", metric.Throughput, peak}, {"peak", metric.CPU, peak},
			{"half", "p50", half * 1e6}, {"half", "p99", half * 2e6}, {"", metric.Ready, start},
		} {
			got, ok := target.Metric(m.load, m.metric)
			if !ok || got.Summary.Center != m.want {
				t.Errorf("%s: %s of %q is %v (%s), wanted %v", name, m.metric, m.load,
					got.Summary.Center, got.Withheld, m.want)
			}
		}
	}
	findings := func(fs ...record.Finding) func(*record.Record) {
		return func(r *record.Record) { *r = judged(*r, fs...) }
	}
	const all, two = 3, 2
	check("nothing", findings(), all, all, all)
	check("half", findings(invalid("half")), all, two, all)
	check("half beside a doubt on peak", findings(suspect("peak"), invalid("half")), all, two, all)
	check("peak, and half is a share of it", findings(invalid("peak")), two, two, two)
	check("peak is in doubt only", findings(suspect("peak"), suspect("half")), all, all, all)
	check("peak, and half has a rate of its own", func(r *record.Record) {
		*r = judged(*r, invalid("peak"))
		r.Loads[1].RateOf, r.Loads[1].RateBase = "", ""
	}, two, all, two)
	check("peak, and half is a share of another", func(r *record.Record) {
		*r = judged(*r, invalid("peak"))
		r.Loads[1].RateOf, r.Loads[1].RateBase = "50% of speak", "speak"
	}, two, all, two)
	check("peak, and it is open", func(r *record.Record) {
		*r = judged(*r, invalid("peak"))
		r.Loads[0].Model = record.Open // the scenario has the model of the first block
	}, two, all, two)
	check("the trial", findings(invalid("")), two, two, two)
	check("a load that the record has not", findings(invalid("ramp")), two, two, two)
	check("failed", func(r *record.Record) { r.Outcome = record.Failed }, two, two, two)
	check("INVALID, and no finding says so", func(r *record.Record) {
		*r = judged(*r, suspect("peak"))
		r.Verdict.Grade = record.Invalid
	}, two, two, two)
	check("a finding without a grade has the trial's", func(r *record.Record) {
		r.Verdict = record.Verdict{Grade: record.Invalid,
			Findings: []record.Finding{{Rule: "errors", Load: "half"}}}
	}, all, two, all)
}

// TestInvalidLoadIsSaid checks that a withheld number names the load, the block and the reason, and
// that the trial counts as INVALID.
func TestInvalidLoadIsSaid(t *testing.T) {
	capacity := finding(record.Invalid, "half", "capacity", "the backlog of requests grows by 80/s",
		"52/s")
	check := func(name string, records []record.Record, key, text, note string) {
		t.Helper()
		tab := only(t, sheetOf(records, Options{}))
		c := find(t, tab, "a", key)
		if c.Text() != text || notes(tab, c) != note {
			t.Errorf("%s: %s is %s: %q, wanted %s: %q", name, key, c.Text(), notes(tab, c), text,
				note)
		}
	}
	one := []record.Record{judged(with(trial("a", 1, 1000), 5000, 1e6), capacity)}
	const why = "half INVALID: capacity (the backlog of requests grows by 80/s > 52/s)"
	for _, key := range []string{"half/p50", "half/p99", "half/p99.9", "half/achieved"} {
		check("one trial", one, key, units.Absent, why)
	}
	check("one trial", one, "peak/throughput", "1.00k", "")

	some := three()
	some[1] = judged(some[1], capacity)
	check("one of three", some, "half/p50", "2.0 ms",
		"half INVALID in block 2, excluded from results: capacity (the backlog of requests grows "+
			"by 80/s > 52/s)")
	check("one of three", some, "half/p99", "4.0 ms", "")
	check("one of three", some, "peak/throughput", "3.00", "")
	s := sheetOf(some, Options{})
	if !slices.Equal(s.Verdicts, []Tally{
		{record.Valid, 2, ""}, {record.Suspect, 0, ""}, {record.Invalid, 1, "capacity"},
	}) {
		t.Errorf("tallies %+v", s.Verdicts)
	}

	share := three()
	share[1] = judged(share[1], invalid("peak"))
	check("a share of it", share, "half/p50", "2.0 ms", "half INVALID in block 2, excluded from "+
		"results: rate (50 % of peak, INVALID by errors)")
	check("a share of it", share, "peak/throughput", "2.00",
		"peak INVALID in block 2, excluded from results: errors (7 went wrong, limit 0.1 %)")

	all := three()
	for i := range all {
		all[i] = judged(all[i], invalid([]string{"half", "peak", "half"}[i]))
	}
	check(
		"all",
		all,
		"half/p50",
		units.Absent,
		"half INVALID in blocks 1–3: errors in blocks 1, 3 "+
			"(7 went wrong, limit 0.1 %), rate in block 2 (50 % of peak, INVALID by errors)",
	)
	for i := range all {
		all[i] = judged(all[i], invalid("peak"))
	}
	tab := only(t, sheetOf(all, Options{}))
	const span = "no good trial: peak INVALID in blocks 1–3: errors (7 went wrong, limit 0.1 %); " +
		"half INVALID in blocks 1–3: rate (50 % of peak, INVALID by errors)"
	if tab.Rows[0].Span.String() != span {
		t.Errorf("no load is left: %q", tab.Rows[0].Span)
	}
}

// TestLostPeak checks that a target without a good closed load has no tier, no cost and no start,
// and keeps the latency at a rate of its own.
func TestLostPeak(t *testing.T) {
	records := rates("b", 10, 11, 12)
	for _, r := range three() {
		r = judged(r, invalid("peak"))
		r.Loads[1].RateOf, r.Loads[1].RateBase = "", ""
		records = append(records, r)
	}
	tab := only(t, sheetOf(records, Options{Baseline: "b"}))
	if names(tab) != "b a" || tab.Rows[1].Tier != 0 {
		t.Errorf("rows %s, tier %d", names(tab), tab.Rows[1].Tier)
	}
	const why = "peak INVALID in blocks 1–3: errors (7 went wrong, limit 0.1 %)"
	for _, key := range []string{
		"peak/throughput", "peak/interval", "peak/ratio", "cost/cpu", "cost/rss", "start/ready",
	} {
		if c := find(t, tab, "a", key); c.Text() != units.Absent || notes(tab, c) != why {
			t.Errorf("%s is %s: %q", key, c.Text(), notes(tab, c))
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(tab.Footnotes), func(f Footnote) bool {
		return strings.Count(f.String(), why) != 1
	})); n != 1 {
		t.Errorf("the note stands %d times", n)
	}
	if c := find(t, tab, "a", "half/p50"); c.Text() != "3.0 ms" {
		t.Errorf("half/p50 is %s: %q", c.Text(), notes(tab, c))
	}
}

// TestOpenOnlyLost checks that a target without the ranking load does not change the ranking metric
// of the others, although its other load keeps it in the table.
func TestOpenOnlyLost(t *testing.T) {
	var records []record.Record
	for _, name := range []string{"a", "b"} {
		for block := 1; block <= 2; block++ {
			r := with(with(trial(name, block, 1), 5000, 1e6), 5000, 1e6)
			r.Loads = r.Loads[1:]
			r.Loads[1].Name = "more"
			if name == "b" {
				r = judged(r, invalid("half"))
			}
			records = append(records, r)
		}
	}
	sc := analyze(records, Options{}).Scenarios[0]
	if sc.Ranking.Metric != "p99" || sc.Targets[1].Name != "b" || sc.Targets[1].Tier != 0 {
		t.Errorf("ranking %+v, last %s in tier %d", sc.Ranking, sc.Targets[1].Name,
			sc.Targets[1].Tier)
	}
}

// TestRemark checks that a remark, for example on an unreadable counter, appears once, with its
// target, and leaves the numbers valid.
func TestRemark(t *testing.T) {
	records := three()
	for i := range records {
		f := finding(record.Valid, "peak", "backend calls", "db is not known: refused", "a counter")
		f.Text.Hint, f.Note = "nobody has seen", true
		g := f
		g.Load = "half"
		records[i] = judged(records[i], f, g)
	}
	study := analyze(records, Options{})
	tab := only(t, study.Sheet())
	const want = "peak, half: db is not known: refused (nobody has seen)"
	if got := notes(tab, find(t, tab, "a", "target")); got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
}

// TestDoubtsOnTheirLoad checks that a doubt is noted at the load that it concerns, as are its dots.
func TestDoubtsOnTheirLoad(t *testing.T) {
	records := three()
	records[1] = judged(records[1], suspect("half"))
	records[2] = judged(records[2], finding(record.Suspect, "", "warm-up",
		"the service was not steady after 5s of warm-up", "steady"))
	study := analyze(records, Options{})
	tab := only(t, study.Sheet())
	for key, want := range map[string]string{
		"target": "SUSPECT in block 3, kept: warm-up (the service was not steady after " +
			"5s of warm-up)",
		"peak/throughput": "",
		"half/p50":        "half SUSPECT in block 2, kept: run delay (4.4 % > 2.0 %)",
		"half/p99":        "",
		"cost/cpu":        "",
	} {
		if got := notes(tab, find(t, tab, "a", key)); got != want {
			t.Errorf("%s: %q, wanted %q", key, got, want)
		}
	}
	grades := func(load, metric string) (words []string) {
		m, _ := study.Scenarios[0].Targets[0].Metric(load, metric)
		for _, p := range m.Points {
			words = append(words, p.Verdict)
		}
		return words
	}
	const v, s = record.Valid, record.Suspect
	if got := grades("peak", metric.Throughput); !slices.Equal(got, []string{v, v, s}) {
		t.Errorf("dots of peak %v", got)
	}
	if got := grades("half", "p50"); !slices.Equal(got, []string{v, s, s}) {
		t.Errorf("dots of half %v", got)
	}
}

// TestObserve checks the short texts of findings; an INVALID finding keeps its full text.
func TestObserve(t *testing.T) {
	check := func(brief, full string, f record.Finding) {
		t.Helper()
		if got := observe(f, true).text(); got != brief {
			t.Errorf("%+v in brief: %q, wanted %q", f, got, brief)
		}
		if got := observe(f, false).text(); got != full {
			t.Errorf("%+v: %q, wanted %q", f, got, full)
		}
	}
	throttled := record.Finding{Rule: "throttled", Value: 0.315, Limit: 0.01,
		Unit: record.UnitShare, Side: record.Above}
	check("31.5 % > 1.0 %", "the service was throttled for 31.5 % of the window > 1.0 %", throttled)
	throttled.Value = 0.01 * (1 + 1e-9) // the excess is less than is printed
	check("1.0 %, limit 1.0 %", "the service was throttled for 1.0 % of the window, limit 1.0 %",
		throttled)
	check("96.2 % < 99.0 %", "share of due requests sent: 96.2 % < 99.0 %",
		record.Finding{Rule: "delivered",
			Value: 0.962, Limit: 0.99, Unit: record.UnitShare, Side: record.Below})
	check("200 < 381", "64438 responses, equivalent to 200 independent responses < 381",
		record.Finding{
			Rule: "samples", Case: "in company", Value: 200, Limit: 381, Unit: record.UnitCount,
			Side: record.Below, Facts: record.Facts{Count: 64438}})
	// The text has no share to compare with the limit.
	check("7 of 500 requests failed, limit 0.1 %", "7 of 500 requests failed, limit 0.1 %",
		record.Finding{
			Rule: "errors", Case: "many", Value: 0.014, Limit: 0.001, Unit: record.UnitShare,
			Side: record.Above, Facts: record.Facts{Count: 7, Total: 500}})
	check("the service was not steady after 5s of warm-up",
		"the service was not steady after 5s of warm-up",
		record.Finding{Rule: "warm-up",
			Case: "never steady", Value: 5e9, Unit: record.UnitNs})
}

// TestObserveOldWords checks that sentences of version 1 keep their meaning.
func TestObserveOldWords(t *testing.T) {
	for _, row := range []struct{ observed, limit, brief, full string }{
		// The second number is compared with the limit, not the first.
		{"64438 answers, worth 200 independent ones", "381", "200 < 381",
			"64438 answers, worth 200 independent ones < 381"},
		{"12 answers", "381", "12 < 381", "12 answers < 381"},
		{"31.5 % of the window", "2.0 %", "31.5 % > 2.0 %", "31.5 % of the window > 2.0 %"},
		{"96.2 % sent", "99.0 %", "96.2 % < 99.0 %", "96.2 % sent < 99.0 %"},
		{"p99 2.959ms", "1.606ms", "2.959ms > 1.606ms", "p99 2.959ms > 1.606ms"},
		{"p99 1m2.5s", "850ms", "1m2.5s > 850ms", "p99 1m2.5s > 850ms"},
		{"p99 1.2ms", "220µs", "1.2ms > 220µs", "p99 1.2ms > 220µs"}, // 1200 µs
		{"backlog grows by 80/s", "52/s", "80/s > 52/s", "backlog grows by 80/s > 52/s"},
		{"300 answers", "381", "300 < 381", "300 answers < 381"},
		// 2.04 of 2.00: the excess is less than is printed.
		{"2.0 % of the window", "2.0 %", "2.0 %, limit 2.0 %", "2.0 % of the window, limit 2.0 %"},
		// Values that are not in the limit's unit, or limits that are not numbers.
		{"7 of 500 wrong", "0.1 %", "7 of 500 wrong, limit 0.1 %", "7 of 500 wrong, limit 0.1 %"},
		{"not steady after 5s", "steady", "not steady after 5s", "not steady after 5s"},
		{"no good answer", "at least 1", "no good answer", "no good answer"},
		{"", "", "", ""},
	} {
		f := finding("", "", "", row.observed, row.limit)
		if got := observe(f, true).text(); got != row.brief {
			t.Errorf("%q of %q in brief: %q, wanted %q", row.observed, row.limit, got, row.brief)
		}
		if got := observe(f, false).text(); got != row.full {
			t.Errorf("%q of %q: %q, wanted %q", row.observed, row.limit, got, row.full)
		}
	}
}

// TestSeveral checks that of one rule's values in several trials, the worst one relative to its own
// limit is printed.
func TestSeveral(t *testing.T) {
	check := func(want string, seen ...string) {
		t.Helper()
		var all []observed
		for _, s := range seen {
			value, limit, _ := strings.Cut(s, " of ")
			all = append(all, observe(finding("", "", "", value, limit), true))
		}
		if got := several(all); got != want {
			t.Errorf("%q: %q, wanted %q", seen, got, want)
		}
	}
	check("4.0 % > 2.0 %", "4.0 % of 2.0 %", "4.0 % of 2.0 %")
	check("at worst 6.0 % > 2.0 %", "4.0 % of 2.0 %", "6.0 % of 2.0 %", "5.0 % of 2.0 %")
	check("at worst 90 < 99", "98 of 99", "90 of 99")
	check("at worst 1ms > 100µs", "2ms of 1ms", "1ms of 100µs") // 2 times, 10 times
	check("e.g. one wrong", "one wrong of none", "two wrong of none")
	check("e.g. 5 > 4", "5 of 4", "3 of 4") // on both sides: neither is the worse
}

// TestTools checks that each tool version that can move a number of a present target is listed
// once.
func TestTools(t *testing.T) {
	check := func(want string, targets ...record.Target) {
		t.Helper()
		var records []record.Record
		for i, target := range targets {
			r := trial("x", i+1, 1)
			r.Target = target
			r.Provenance.Tools = map[string]string{
				"cargo": "1.95.0", "go": "go1.26.8", "java": "openjdk 25.0.3 2026-10-20",
				"mvn": "3.8.7", "native-image": "25 (Mandrel)", "node": "v20.20.2",
				"npm": "11.19.1", "python": "Python 3.11.7", "ruby": "unknown",
			}
			records = append(records, r)
		}
		s := sheetOf(records, Options{})
		if s.Tools != want {
			t.Errorf("tools %q, wanted %q", s.Tools, want)
		}
		if head := s.Head.String(); strings.Contains(head, "25.0.3") ||
			strings.Contains(head, "1.26.8") {
			t.Errorf("the head names tools: %q", head)
		}
	}
	target := func(language, runtime string) record.Target {
		return record.Target{Name: language, Language: language, Runtime: runtime}
	}
	check("go 1.26.8", target("Go", "native"), target("Go", "native"))
	check("cargo 1.95.0, java 25.0.3", target("Rust", "native"), target("Java", "jvm"))
	check("java 25.0.3, native-image 25 (Mandrel)", target("Java", "native"))
	check("java 25.0.3", target("Kotlin", "jvm"))
	check("node 20.20.2, python 3.11.7", target("Python", "cpython"), target("JavaScript", "node"))
	check("", target("Ruby", "cruby"))
}

// TestLoadGrade checks the grade of one load, for JSON and the page.
func TestLoadGrade(t *testing.T) {
	r := judged(three()[0], suspect("peak"), invalid("half"))
	if a, b := LoadGrade(&r, "peak"), LoadGrade(&r, "half"); a != record.Suspect ||
		b != record.Invalid || Grade(&r) != record.Invalid {
		t.Errorf("peak %s, half %s, trial %s", a, b, Grade(&r))
	}
	// A share of peak inherits the findings that make peak INVALID, but not those that make it
	// SUSPECT.
	r = judged(three()[0], suspect("peak"), invalid("peak"))
	if fs := FindingsOn(&r, "half"); len(fs) != 1 || fs[0].Rule != "errors" {
		t.Errorf("bearing on half: %+v", fs)
	}
	r.Verdict = record.Verdict{}
	if got := LoadGrade(&r, "half"); got != record.Suspect {
		t.Errorf("unjudged: %s", got)
	}
	m := lostMetric(metric.Metric{Name: "x", Unit: units.Ns}, NoteOf(NoteNoTrial))
	if !math.IsNaN(m.Summary.Center) || m.Summary.N != 0 {
		t.Errorf("lost metric %+v", m)
	}
}

// TestReasonsByFrequency lists the rules that broke in most trials first.
func TestReasonsByFrequency(t *testing.T) {
	var records []*record.Record
	for _, rules := range [][]string{{"steal", "drift"}, {"cores", "drift"}, {"cores", "drift"}} {
		r := &record.Record{Outcome: record.Measured,
			Verdict: record.Verdict{Grade: record.Suspect}}
		for _, rule := range rules {
			r.Verdict.Findings = append(r.Verdict.Findings,
				record.Finding{Rule: rule, Grade: record.Suspect})
		}
		records = append(records, r)
	}
	if got := reasons(record.Suspect, records); got != "drift in 3, cores in 2, steal in 1" {
		t.Errorf("reasons %q", got)
	}
}

// TestRatioDoubtOfFindings checks which findings of a scenario make a ratio doubtful: those about a
// side and its metric, those of the control, and an unbalanced machine.
func TestRatioDoubtOfFindings(t *testing.T) {
	a, b := &Target{Name: "a"}, &Target{Name: "b"}
	m := &Metric{Load: "peak", Name: "throughput"}
	check := func(want string, f record.Finding) {
		t.Helper()
		sc := &Scenario{Findings: []record.Finding{f}}
		got := ""
		if d := sc.RatioDoubt(a, b, m, &stats.Ratio{Center: 1}); d != nil {
			got = strings.Join(d.Rules, ", ")
		}
		if got != want {
			t.Errorf("%+v: doubt %q, want %q", f, got, want)
		}
	}
	about := func(rule, grade, name, load, metric string) record.Finding {
		return record.Finding{Rule: rule, Grade: grade, Load: load,
			Facts: record.Facts{Name: name, Subject: metric}}
	}
	check("balance", about("balance", record.Suspect, "", "", ""))
	check("", about("balance", record.Valid, "", "", ""))
	check("windows", about("windows", record.Suspect, "a", "peak", "throughput"))
	check("windows", about("windows", record.Suspect, "b", "peak", "throughput"))
	check("", about("windows", record.Suspect, "c", "peak", "throughput"))
	check("", about("windows", record.Suspect, "b", "half", "throughput"))
	check("", about("windows", record.Suspect, "b", "peak", "cpu_per_request"))
	check("control", about("control", record.Suspect, "c", "peak", "throughput"))
	check("", about("control", record.Suspect, "c", "half", "throughput"))
}
