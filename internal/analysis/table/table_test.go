package table

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// trial returns a good and VALID record with one closed load, "peak", of perS requests/s.
func trial(target string, block int, perS float64) record.Record {
	return record.Record{
		Run: "run", Trial: fmt.Sprintf("b%d-%s", block, target), Suite: "s", Scenario: "hello",
		Time:  time.Unix(int64(block)*1000+int64(len(target)), 0).UTC(),
		Block: block, Target: record.Target{Name: target, Variant: "none"},
		Outcome: record.Measured, Verdict: record.Verdict{Grade: record.Valid},
		Loads: []record.Load{{
			Name: "peak", Model: record.Closed, Connections: 64, WindowNs: 10e9,
			ThroughputPerS: perS, Done: int64(10 * perS),
		}},
	}
}

// with adds an open load, "half", whose response times are samples of the same value.
func with(r record.Record, samples int64, ns int64) record.Record {
	r.Loads = append(r.Loads, record.Load{
		Name: "half", Model: record.Open, Arrivals: "poisson", RateOf: "50% of peak",
		RateBase: "peak", WindowNs: 9e9,
		Scheduled: samples, Done: samples,
		ResponseTime: record.Dist{
			Count: samples, P50Ns: ns, P90Ns: ns, P99Ns: 2 * ns, P999Ns: 3 * ns,
		},
	})
	return r
}

// analyze calls Analyze for records that a test has as values.
func analyze(records []record.Record, o Options) Study {
	of := make([]*record.Record, len(records))
	for i := range records {
		of[i] = &records[i]
	}
	return Analyze(of, o)
}

func sheetOf(records []record.Record, o Options) Sheet {
	study := analyze(records, o)
	return study.Sheet()
}

// rates returns a trial of a target for each of the rates, one per block.
func rates(target string, perS ...float64) []record.Record {
	var rs []record.Record
	for i, x := range perS {
		rs = append(rs, trial(target, i+1, x))
	}
	return rs
}

// find returns a row's cell; it fails the test without one.
func find(t *testing.T, tab Table, row, key string) Cell {
	t.Helper()
	column := slices.IndexFunc(tab.Columns, func(c Column) bool { return c.Key == key })
	for _, r := range tab.Rows {
		if r.Name == row && !r.Span.Is() && column >= 0 {
			return r.Cells[column]
		}
	}
	t.Fatalf("no cell %s of %s", key, row)
	return Cell{}
}

// notes returns the notes on a cell, or the footnotes of a table without notes of rows.
func notes(tab Table, c Cell) string {
	if len(c.Notes) > 0 {
		return strings.Join(Texts(c.Notes), "\n")
	}
	var texts []string
	for _, ref := range c.Refs {
		texts = append(texts, tab.Footnotes[ref-1].String())
	}
	return strings.Join(texts, "\n")
}

func only(t *testing.T, s Sheet) Table {
	t.Helper()
	if len(s.Tables) != 1 {
		t.Fatalf("%d tables, wanted 1", len(s.Tables))
	}
	return s.Tables[0]
}

func names(tab Table) string {
	var all []string
	for _, r := range tab.Rows {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestRowsAndTiers(t *testing.T) {
	records := slices.Concat(
		rates("slow", 100, 101, 102, 103), // a tenth: told apart
		rates("fast", 1000, 1010, 1020, 1030),
		rates("same", 1003, 1007, 1023, 1027), // ratios to fast: +0.3 %, -0.3 %, +0.3 %, -0.3 %
	)
	tab := only(t, sheetOf(records, Options{}))
	if got := names(tab); got != "fast same slow" {
		t.Errorf("rows %s", got)
	}
	for i, tier := range []int{1, 1, 2} {
		if tab.Rows[i].Tier != tier || tab.Rows[i].Cells[0].Text() != fmt.Sprint(tier) {
			t.Errorf("%s is in tier %d, wanted %d", tab.Rows[i].Name, tab.Rows[i].Tier, tier)
		}
	}
	c := find(t, tab, "fast", "peak/throughput")
	if c.Value != 1015 || c.N != 4 || c.Text() != "1.01k" { // (1010 + 1020) / 2, 1.015 to even
		t.Errorf("fast: %+v", c)
	}
	got := tab.Columns[2]
	if got.Group.Heading() != "peak (closed, 64 connections)" || got.Heading() != "req/s" {
		t.Errorf("column %+v", got)
	}
}

// TestOrderOfRecordsIsNothing checks that the report does not depend on the order of the records.
func TestOrderOfRecordsIsNothing(t *testing.T) {
	records := slices.Concat(rates("a", 100, 110, 90), rates("b", 99, 111, 92), rates("c", 50, 51))
	want := fmt.Sprintf("%+v", sheetOf(records, Options{Baseline: "a"}))
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, seed))
	for range 20 {
		rng.Shuffle(len(records), func(i, k int) {
			records[i], records[k] = records[k], records[i]
		})
		if got := fmt.Sprintf("%+v", sheetOf(records, Options{Baseline: "a"})); got != want {
			t.Fatalf("seed %d: %s\nwanted %s", seed, got, want)
		}
	}
}

// TestTooFewSamples checks that a percentile without enough requests in a trial is withheld, with a
// hint for that trial.
func TestTooFewSamples(t *testing.T) {
	var records []record.Record
	for i, n := range []int64{5000, 2900, 5000} {
		records = append(records, with(trial("a", i+1, 1000), n, 1e6))
	}
	tab := only(t, sheetOf(records, Options{}))
	// p99 needs 381: there. p99.9 needs 3838, and 3838 + 3·√3838 = 4023.9 arrivals take
	// 4023.9 / 2900 · 9 s = 12.49 s.
	if c := find(t, tab, "a", "half/p99"); c.Text() != "2.0 ms" {
		t.Errorf("p99 %+v", c)
	}
	c := find(t, tab, "a", "half/p99.9")
	const want = "an interval needs n ≥ 3,838 responses in each trial; n was 2,900 (raise " +
		"--measure to 13s)"
	if c.Text() != units.Absent || !math.IsNaN(c.Value) || notes(tab, c) != want {
		t.Errorf("p99.9 %+v: %s", c, notes(tab, c))
	}
}

// TestUnanswered checks that requests without a response count as slower than all others.
func TestUnanswered(t *testing.T) {
	check := func(censored int64, key, want string) {
		t.Helper()
		r := with(trial("a", 1, 1000), 9990, 1e6)
		r.Loads[1].Censored = censored
		tab := only(t, sheetOf([]record.Record{r}, Options{}))
		if c := find(t, tab, "a", key); c.Text() != want {
			t.Errorf("%d censored: %s is %s (%s)", censored, key, c.Text(), notes(tab, c))
		}
	}
	check(9, "half/p99.9", "3.0 ms")      // 9 of 9999 are less than 0.1 %
	check(11, "half/p99.9", units.Absent) // 11 of 10001 are more
	check(11, "half/p99", "2.0 ms")
	check(102, "half/p99", units.Absent) // 102 of 10092 are more than 1 %
}

// TestOverload checks that an open load that a target could not serve has no latency. If the record
// has a verdict, that decides, because it allows for randomness and the window's edges.
func TestOverload(t *testing.T) {
	r := with(trial("a", 1, 1000), 9000, 1e6)
	r.Loads[1].Done = 8900 // 98.9 %, VALID
	judged := only(t, sheetOf([]record.Record{r}, Options{}))
	if c := find(t, judged, "a", "half/p50"); c.Text() != "1.0 ms" {
		t.Errorf("p50 of a VALID load %+v: %s", c, notes(judged, c))
	}
	r.Verdict = record.Verdict{}
	r.Loads[1].Done = 6300 // 70 %; 2,700 in 9 s stay behind: 300/s
	tab := only(t, sheetOf([]record.Record{r}, Options{}))
	c := find(t, tab, "a", "half/p50")
	if c.Text() != units.Absent ||
		!strings.Contains(notes(tab, c), "1.00k/s were offered and 70 % of these requests ended "+
			"in the window: the backlog grew by 300/s") {
		t.Errorf("p50 %+v: %s", c, notes(tab, c))
	}
	if got := find(t, tab, "a", "half/achieved").Text(); got != "70.0 %" {
		t.Errorf("achieved %s", got)
	}
	r.Loads[1].Errors.Status = 2700 // now all ended, though badly: no backlog
	tab = only(t, sheetOf([]record.Record{r}, Options{}))
	if c := find(t, tab, "a", "half/p50"); c.Text() != "1.0 ms" {
		t.Errorf("p50 with errors %+v: %s", c, notes(tab, c))
	}
}

func TestVerdicts(t *testing.T) {
	records := slices.Concat(rates("a", 100, 102, 900, 104), rates("b", 50, 50, 51))
	finding := func(grade string) []record.Finding {
		return []record.Finding{{Rule: "steal", Grade: grade, Value: 0.04, Limit: 0.01,
			Unit: record.UnitShare, Side: record.Above}}
	}
	records[2].Verdict = record.Verdict{Grade: record.Invalid, Findings: finding(record.Invalid)}
	records[3].Verdict = record.Verdict{Grade: record.Suspect, Findings: finding(record.Suspect)}
	for i := 4; i < 7; i++ {
		records[i].Outcome, records[i].Loads = record.Failed, nil
		records[i].Failure = &record.Failure{Step: "ready", Error: "refused\nsecond line"}
	}
	s := sheetOf(records, Options{Skipped: []record.Skipped{{Target: "c", Reason: "no compiler"}}})
	tab := only(t, s)
	c := find(t, tab, "a", "peak/throughput")
	if c.Value != 102 || c.N != 3 { // the middle of 100, 102, 104: 900 is INVALID
		t.Errorf("a: %+v", c)
	}
	const want = "INVALID in block 3, excluded from results: steal (the hypervisor took 4.0 % of " +
		"the processor time > 1.0 %)\nSUSPECT in block 4, kept: steal (4.0 % > 1.0 %)"
	if got := notes(tab, find(t, tab, "a", "target")); got != want {
		t.Errorf("footnotes of a:\n%s\nwanted\n%s", got, want)
	}
	if names(tab) != "a b c" || tab.Rows[1].Span.String() !=
		"no good trial: failed in blocks 1–3: ready (refused)" ||
		tab.Rows[2].Span.String() != "skipped: no compiler" {
		t.Errorf("rows without numbers: %+v", tab.Rows[1:])
	}
	if want := []Tally{
		{record.Valid, 2, ""}, {record.Suspect, 1, "steal"}, {record.Invalid, 1, "steal"},
		{FailedGrade, 3, "ready in 3"},
	}; !reflect.DeepEqual(s.Verdicts, want) {
		t.Errorf("verdicts %+v", s.Verdicts)
	}
}

// TestUnlike checks for a note on trials of different methods.
func TestUnlike(t *testing.T) {
	cpuset := record.Limit{Kind: record.LimitCores, By: record.ByCgroup2}
	memory := record.Limit{Kind: record.LimitMemory, By: record.ByRlimit}
	records := slices.Concat(rates("a", 100, 101), rates("b", 90, 91), rates("c", 80, 81))
	for i := range records {
		records[i].Provenance.PlanHash = "one"
		records[i].Limits.InForce = []record.Limit{memory, cpuset}
	}
	tab := only(t, sheetOf(records, Options{}))
	said := fmt.Sprint(tab.Footnotes, tab.Notes)
	if strings.Contains(said, "varies") || strings.Contains(said, "differ in") {
		t.Errorf("like trials: %q %q", tab.Footnotes, tab.Notes)
	}
	records[1].Provenance.PlanHash = "two"                     // inside a's row
	records[2].Limits.InForce = []record.Limit{cpuset}         // all of b's row
	records[3].Limits.InForce = []record.Limit{cpuset}         //
	records[4].Limits.InForce = []record.Limit{cpuset, memory} // the same as the others', reordered
	tab = only(t, sheetOf(records, Options{}))
	if got := notes(tab, find(t, tab, "a", "target")); got != "varies in planHash: one | two" {
		t.Errorf("footnote %q", got)
	}
	if len(tab.Notes) == 0 || tab.Notes[0].String() !=
		"Rows differ in limits in force, so they are not comparable: cpuset (cgroup v2), "+
			"private memory 0 (rlimit) (a, c); cpuset (cgroup v2) (b)." {
		t.Errorf("notes %q", tab.Notes)
	}
}

// TestUnlikeTools checks for a note on rows of one language with different versions of its tools,
// and for none on other languages and on tools that move no number.
func TestUnlikeTools(t *testing.T) {
	records := slices.Concat(rates("a", 100, 101), rates("b", 90, 91), rates("c", 80, 81))
	for i := range records {
		r := &records[i]
		r.Target.Language, r.Target.Runtime = "Go", "native"
		r.Provenance.Tools = map[string]string{"go": "1.26.8", "java": "25.0.3", "npm": "11"}
		if r.Target.Name == "c" {
			r.Target.Language, r.Target.Runtime = "Java", "jvm"
		}
	}
	said := func() string {
		return strings.Join(Texts(only(t, sheetOf(records, Options{})).Notes), "\n")
	}
	if got := said(); strings.Contains(got, "vary") {
		t.Errorf("like tools: %s", got)
	}
	for _, i := range []int{2, 3} { // all of b's row
		records[i].Provenance.Tools = map[string]string{"go": "1.26.5", "npm": "10"}
	}
	if got := said(); !strings.Contains(got, "Rows have different versions of go, which is "+
		"part of their difference: 1.26.8 (a); 1.26.5 (b).") || strings.Contains(got, "java") ||
		strings.Contains(got, "npm") {
		t.Errorf("notes %s", got)
	}
}

// TestSweep checks that a swept property is noted as a sweep, and not as a fault of the rows.
func TestSweep(t *testing.T) {
	records := slices.Concat(rates("a", 100, 101), rates("b", 90, 91))
	for i := range records {
		n := 8 << (i / 2)
		records[i].Loads[0].Connections = n
		records[i].Target.Matrix = record.MatrixRow{Connections: n, BodyBytes: 1000}
	}
	tab := only(t, sheetOf(records, Options{}))
	if len(tab.Notes) == 0 || tab.Notes[0].String() !=
		"Rows have different loads, as requested: 8 connections, bodies of 1000 B (a); 16 "+
			"connections, bodies of 1000 B (b)." {
		t.Errorf("notes %q", tab.Notes)
	}
	if said := strings.Join(Texts(tab.Notes), "\n"); strings.Contains(said, "differ in") {
		t.Errorf("a sweep is told as a fault: %s", said)
	}
	records[2].Target.Matrix, records[3].Target.Matrix = record.MatrixRow{}, record.MatrixRow{}
	tab = only(t, sheetOf(records, Options{}))
	if said := strings.Join(Texts(tab.Notes), "\n"); !strings.Contains(said, "Rows differ in "+
		"load") {
		t.Errorf("unlike loads are not told: %s", said)
	}
}

// TestRatio checks that blocks are paired within a run, and only blocks that both targets have.
func TestRatio(t *testing.T) {
	// Blocks 1–4 of a, 2–5 of b: three pairs, each b/a = 2. Unpaired medians would give another.
	records := rates("a", 10, 100, 1000, 10_000)
	for i, x := range []float64{200, 2000, 20_000, 1e6} {
		records = append(records, trial("b", i+2, x))
	}
	// A second run has its own block 2, with another pair of ratio 2.
	for _, r := range []record.Record{trial("a", 2, 7), trial("b", 2, 14)} {
		r.Run = "later"
		records = append(records, r)
	}
	study := analyze(records, Options{Baseline: "a"})
	b := study.Scenarios[0].Targets[0]
	m, _ := b.Metric("peak", metric.Throughput)
	if b.Name != "b" || m.Ratio == nil || m.Ratio.N != 4 || math.Abs(m.Ratio.Center-2) > 1e-9 {
		t.Errorf("%s: %+v", b.Name, m.Ratio)
	}
	tab := only(t, study.Sheet())
	if c := find(t, tab, "a", "peak/ratio"); c.Text() != "1" {
		t.Errorf("baseline %+v", c)
	}
	if c := find(t, tab, "b", "peak/ratio"); c.Text() != "2.000 [2.000, 2.000]" {
		t.Errorf("ratio %+v", c)
	}
	// Without a baseline there is no such column.
	for _, c := range only(t, sheetOf(records, Options{})).Columns {
		if strings.Contains(c.Key, "ratio") {
			t.Errorf("column %s without a baseline", c.Key)
		}
	}
}

// TestOpenOnly checks that without a closed load, the lower p99 ranks higher.
func TestOpenOnly(t *testing.T) {
	var records []record.Record
	for block := 1; block <= 4; block++ {
		for name, ns := range map[string]int64{"quick": 1e6, "slow": 5e6} {
			r := with(trial(name, block, 1), 5000, ns+int64(block)*1000)
			r.Loads = r.Loads[1:]
			records = append(records, r)
		}
	}
	study := analyze(records, Options{})
	sc := study.Scenarios[0]
	if sc.Ranking.Metric != "p99" || sc.Ranking.Load != "half" ||
		!reflect.DeepEqual(sc.Ranking.Tiers, [][]string{{"quick"}, {"slow"}}) {
		t.Errorf("ranking %+v", sc.Ranking)
	}
	if got := names(only(t, study.Sheet())); got != "quick slow" {
		t.Errorf("rows %s", got)
	}
}

func TestScenariosAndVariants(t *testing.T) {
	records := rates("a", 100, 101)
	records[1].Target.Variant = "otel-full"
	second := trial("a", 1, 5)
	second.Scenario = "compute"
	s := sheetOf(append(records, second), Options{Reproduce: "prony run x", Report: "r.html"})
	if len(s.Tables) != 3 || s.Tables[0].Title() != "compute" || names(s.Tables[1]) !=
		"a +otel-full a" || s.Tables[2].Title() != "Cost of agents and protocols, hello" {
		t.Errorf("tables %+v", s.Tables)
	}
	if s.Reproduce != "prony run x" || s.Report != "r.html" {
		t.Errorf("closing lines %+v", s)
	}
	records[0].Provenance.Command = []string{"prony", "run", "my suite.yaml", "it's", ""}
	got := sheetOf(records[:1], Options{}).Reproduce
	if want := `prony run 'my suite.yaml' 'it'\''s' ''`; got != want {
		t.Errorf("command %s, wanted %s", got, want)
	}
}

// TestUnjudged checks that a measured record without a grade is SUSPECT.
func TestUnjudged(t *testing.T) {
	r := trial("a", 1, 100)
	r.Verdict = record.Verdict{}
	if got := Grade(&r); got != record.Suspect {
		t.Errorf("grade %s", got)
	}
}
