package audit

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

func TestParseValue(t *testing.T) {
	check := func(cell, unit string, q Quantity, v, slack float64) {
		t.Helper()
		got, ok := parseValue(cell, unit, q)
		if !ok || math.Abs(got.V-v) > 1e-9*v || math.Abs(got.Slack-slack) > 1e-6*slack {
			t.Errorf("%q (%s) is %v ± %v (%v), want %v ± %v", cell, unit, got.V, got.Slack, ok, v,
				slack)
		}
	}
	check("38356", "", Rate, 38356, 1)
	check("**39,241**", "", Rate, 39241, 1)
	check("86,000", "", Rate, 86000, 1000)
	check("21k", "", Rate, 21000, 1000)
	check("64.5k²", "", Rate, 64500, 100)
	check("1.2M req/s", "", Rate, 1.2e6, 1e5)
	check("1'234'567", "", Rate, 1234567, 1)
	check("1.234,5", "", Rate, 1234.5, .1)
	check("0,5", "ms", Mean, 5e5, 1e5)
	check("~ 60k", "", Rate, 60000, 6000)
	check("120 /min", "", Rate, 2, 0.1) // zeros at the end: 5 %
	check("12k/min", "", Rate, 200, 1e3/60.)
	check("6001", "req/min", Rate, 6001/60., 1/60.)
	check("12k", "req/min", Rate, 200, 1e3/60.)
	check("5 req/s", "req/min", Rate, 5, 1)
	check("5", "requests per second", Rate, 5, 1)
	check("61", "per minute", Rate, 61/60., 1/60.)
	check("0", unsaid, ErrorShare, 0, 0)
	check("2%", unsaid, ErrorShare, .02, .01)
	check("12 MBps", "", ByteRate, 12e6, 1e6)
	check("2.6ms", "", Mean, 2.6e6, 1e5)
	check("2.6 ± 0.3", "ms", Mean, 2.6e6, 1e5)
	check("833", "us", P50, 833e3, 1e3)
	check("1.5 s", "ms", Max, 1.5e9, 1e8)
	check("13m20.7s", "", Duration, 800.7e9, 1e8)
	check("00:13:20", "", Duration, 800e9, 1e9)
	check("1.41e-3", "s", Mean, 1.41e6, 1e4)
	check("0.16%", "", ErrorShare, .0016, 1e-4)
	check("110%", "", CPU, 1.1, .01*5.5)
	check("2 cores", "", CPU, 2, 1)
	check("12 MB", "", Memory, 12e6, 1e6)
	check("534 kB/s", "", ByteRate, 534e3, 1e3)
	check("1.17MiB", "", ByteRate, 1.17*(1<<20), .01*(1<<20))
	check("100 connections", "", Connections, 100, 0)
	check("100000", "", Requests, 100000, 5000)
	check("1117484", "", Requests, 1117484, 0)
	check("114,120 (+17,656 failures/s)", "", Rate, 114120, 10)
	for cell, q := range map[string]Quantity{"TOO SLOW": Rate, "TBA": Rate, "–": Rate, "": Rate,
		"2.6": Mean, "N/A": P99, "<1ms": P50, "12 parsecs": Max, "12 MB": Mean,
		"2%": Errors, "10-20": Connections, "10 – 20": Requests, "12 Mbps": ByteRate,
		"12 Mb/s": ByteRate} {
		if v, ok := parseValue(cell, "", q); ok {
			t.Errorf("%q is %+v, want no value", cell, v)
		}
	}
}

func TestHeadOf(t *testing.T) {
	check := func(text string, q Quantity, unit string) {
		t.Helper()
		h, ok := headOf(text)
		if h.quantity != q || h.unit != unit || ok != (q != "") {
			t.Errorf("%q is %q in %q (%v), want %q in %q", text, h.quantity, h.unit, ok, q, unit)
		}
	}
	check("p99 (ms)", P99, "ms")
	check("**Latency avg**", Mean, "")
	check("avg_latency_us", Mean, "us")
	check("p999_us", P999, "us")
	check("99th percentile [ms]", P99, "ms")
	check("P99.9 latency, ms", P999, "ms")
	check("p(95)", P95, "")
	check("Max response time (s)", Max, "s")
	check("Latency (p50)", P50, "")
	check("Req/s", Rate, "")
	check("Requests/sec", Rate, "")
	check("RPS", Rate, "")
	check("Errors/s", ErrorRate, "")
	check("Error %", ErrorShare, "%")
	check("Errors (%)", ErrorShare, "%")
	check("Error rate", ErrorShare, unsaid)
	check("Requests (per second)", Rate, "/sec")
	check("Requests (/min)", Rate, "/min")
	check("Failures [1/s]", ErrorRate, "/s")
	check("Throughput (req/min)", Rate, "req/min")
	check("Throughput (requests per second)", Rate, "requests per second")
	check("Duration (s)", Duration, "s")
	check("VUs", Users, "")
	check("Peak Mem (MB)", Memory, "mb")
	check("CPU (%)", CPU, "%")
	check("duration_us", Duration, "us")
	// Unknown heads are ignored.
	for _, text := range []string{"Image Size (MB)", "Avg", "Max", "Mode", "Max memory pool",
		"Timeout (s)", "p99 memory", "50", "Latency", "Response", "Max-Age (s)", "Users (/s)",
		"Transfer rate (Mbps)", ""} {
		check(text, "", "")
	}
}

func TestCommandAt(t *testing.T) {
	check := func(line string, want map[Quantity]float64, more ...string) {
		t.Helper()
		c := commandAt(line, 1, more)
		if (c == nil) != (len(want) == 0) {
			t.Errorf("%q is %+v, want %v", line, c, want)
			return
		}
		for q, v := range want {
			if c.values[q].V != v {
				t.Errorf("%q: %s is %v, want %v", line, q, c.values[q].V, v)
			}
		}
		if c != nil && len(c.values) != len(want) {
			t.Errorf("%q: %v, want %v", line, c.values, want)
		}
	}
	type m = map[Quantity]float64
	check("``hey -c 100 -n 100000 http://x``", m{Connections: 100, AskedRequests: 100000})
	check("$ wrk -t12 -c400 -d30s http://x", m{Connections: 400, AskedDuration: 30e9})
	check("wrk2 -t 8 \\   # threads", m{Connections: 200, Offered: 80000, AskedDuration: 180e9},
		"  -c 200 \\ # connections", "-d 180s \\", " -R 80000 \\", "http://x")
	check("oha -z 1m --latency-correction -q 100 http://x", m{AskedDuration: 60e9, Offered: 100})
	check("bombardier --connections=125 -d 10s http://x", m{Connections: 125, AskedDuration: 10e9})
	check("k6 run --vus 10 --duration 30s s.js", m{Users: 10, AskedDuration: 30e9})
	check("ab -n 1000 -c 10 http://x/ > out.txt -n 5", m{AskedRequests: 1000, Connections: 10})
	check("wrk -c $conn http://x", nil)
	check("wrk -c", nil)
	check("hey -n 1000 -c", m{AskedRequests: 1000})
	check("we use wrk for load", nil)
	check("they say hey -", nil)
}

// TestWhichCommandIsATables checks that commands apply to the tables below them under the same
// heading, and only if there is one command.
func TestWhichCommandIsATables(t *testing.T) {
	const table = "\n| a | RPS | Duration |\n|--|--|--|\n| x | 1001.5 | 30.01s |\n\n"
	const ten, twenty = "`hey -n 10000 -c 10 u`\n", "`hey -n 20000 -c 10 u`\n"
	check := func(name, text string, want ...float64) {
		t.Helper()
		d := readMarkdown(name, text, nil)
		if len(d.Tables) != len(want) {
			t.Fatalf("%s: %d tables, want %d", name, len(d.Tables), len(want))
		}
		for i, table := range d.Tables {
			if got := table.Rows[0].Values[AskedRequests].V; got != want[i] {
				t.Errorf("%s: table %d was asked for %v requests, want %v", name, i, got, want[i])
			}
		}
	}
	check("above", "# A\n"+ten+table, 10000)
	check("fenced", "# A\n```\n$ "+strings.Trim(ten, "`\n")+"\n```\n"+table, 10000)
	check("for two", "# A\n"+ten+table+table, 10000, 10000)
	check("each its own", "# A\n"+ten+table+twenty+table, 10000, 20000)
	check("two at once", "# A\n"+ten+twenty+table, 0)
	check("other heading", "# A\n"+ten+"# B\n"+table, 0)
	check("below", "# A\n"+table+ten, 0)
}

func TestTablesInMarkdown(t *testing.T) {
	text := "# Speed\n\nWords | with a bar\n\n| n | Server | Req/s | p99 (ms) |\n|--:|:--|--:|" +
		"--:|\n" +
		"| 1 | **a** | 1.5k | 2.0 |\n| 2 | b | TBA | |\n\n" +
		"| Option | Default |\n|---|---|\n| threads | 4 |\n\n" +
		"```\n| not | a table |\n```\n"
	d := readMarkdown("x.md", text, nil)
	if len(d.Tables) != 1 || len(d.Tables[0].Rows) != 1 {
		t.Fatalf("tables are %+v, want one of one row", d.Tables)
	}
	r := d.Tables[0].Rows[0]
	if r.Name != "a" || r.Line != 7 || r.Values[Rate].V != 1500 || r.Values[P99].V != 2e6 ||
		d.Tables[0].Title != "Speed" {
		t.Errorf("the row is %+v of %q", r, d.Tables[0].Title)
	}
	// A table that lists its metrics downwards is transposed; lines are those of its cells.
	text = "| Metric | Go | Node |\n|---|---|---|\n| Requests/s | 10 | 20 |\n| Latency p99 | " +
		"1ms | 2ms |\n"
	rows := readMarkdown("x.md", text, nil).Tables[0].Rows
	if len(rows) != 2 || rows[1].Name != "Node" || rows[1].Values[P99].V != 2e6 ||
		rows[1].Values[P99].Line != 4 {
		t.Errorf("turned rows are %+v", rows)
	}
	cols, err := ParseColumns([]string{"Speed=rate", "Lat=p99:ms"})
	if err != nil {
		t.Fatal(err)
	}
	text = "| who | speed | Lat |\n|---|---|---|\n| x | 7 | 3 |\n"
	r = readMarkdown("x.md", text, cols).Tables[0].Rows[0]
	if r.Values[Rate].V != 7 || r.Values[P99].V != 3e6 {
		t.Errorf("named columns are %+v", r.Values)
	}
	for _, bad := range []string{"Speed", "Speed=velocity", "=x"} {
		if _, err := ParseColumns([]string{bad}); err == nil ||
			!strings.Contains(err.Error(), "meanings are") {
			t.Errorf("--column %q: %v", bad, err)
		}
	}
}

// TestHeadingsAndRatios checks that the connections in a heading apply to its table, and that "vs
// x" is a ratio if its cells are.
func TestHeadingsAndRatios(t *testing.T) {
	check := func(heading, column, cell string, connections, relative float64) {
		t.Helper()
		text := "# " + heading + "\n| who | RPS | " + column + " |\n|--|--|--|\n| x | 7 | " + cell +
			" |\n"
		got := readMarkdown("x.md", text, nil).Tables[0].Rows[0].Values
		if got[Connections].V != connections || got[Relative].V != relative {
			t.Errorf("%q, %q %q: %v connections, relative %v", heading, column, cell,
				got[Connections].V, got[Relative].V)
		}
	}
	check("Stress (1,000 concurrent connections)", "vs a", "50%", 1000, .5)
	check("64 clients", "vs. a", "1.5x", 64, 1.5)
	check("Many connections", "vs a", "+5 %", 0, 0)
	check("Speed", "vs a", "5 ms", 0, 0)
	check("Speed", "c", "12", 12, 0)
}

// TestNoAlarmOnWhatToolsPrint checks that real output of tools causes no finding.
func TestNoAlarmOnWhatToolsPrint(t *testing.T) {
	files, err := filepath.Glob("../../generator/testdata/*")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		d, err := Open(file, nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		r := Audit(d)
		for _, f := range r.Findings {
			if f.Severity == Contradiction || f.Rule == "count" {
				t.Errorf("%s: %+v", file, f)
			}
		}
		if r.Checked < 5 {
			t.Errorf("%s: only %d rules had what they need", file, r.Checked)
		}
	}
}

func TestReadTellsWhatItCannot(t *testing.T) {
	check := func(name, text string, wants ...string) {
		t.Helper()
		d, err := Read(name, text, nil)
		if err == nil {
			t.Errorf("%s is %+v, want an error", name, d)
			return
		}
		for _, w := range append(wants, "audit "+name) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", name, err, w)
			}
		}
	}
	check("empty.txt", " \n", "is empty")
	check("words.txt", "nothing to see", "known formats are", "wrk: its text", "CSV or TSV")
	check("bytes", "\x7fELF\x00\x00", "not a text file", "known formats are")
	check("none.md", "# Title\n\nwords\n", "has no results", "--column")
	check("cut.json", `{"results": [`, "known formats are")
	check("other.json", `{"a": [1, 2]}`, "known formats are")
	check("report.md", "words\n```\n$ prony run x.yaml\n```\n", "report.json")
	check("report.csv", "suite,run,scenario,x\na,b,c,1\n", "report.json")
	check("deep.json", strings.Repeat("[", 100)+strings.Repeat("]", 100), "known formats are")
	if _, err := Open(filepath.Join(t.TempDir(), "absent"), nil); err == nil {
		t.Error("an absent file is read")
	}
	if _, err := Open(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "run.json") {
		t.Errorf("a folder without a run: %v", err)
	}
}

// ownLoad has 1000 responses in a second on 10 connections, 9 ms each.
func ownLoad() record.Load {
	return record.Load{Name: "peak", Model: "closed", Connections: 10, WindowNs: 1e9, Done: 1000,
		Scheduled: 1000, Sent: 1000, Answered: 1000, ThroughputPerS: 1000,
		ResponseTime: record.Dist{Count: 1000, MinNs: 5e6, MeanNs: 9e6,
			P50Ns: 9e6, P90Ns: 10e6, P99Ns: 12e6, P999Ns: 13e6, MaxNs: 14e6}}
}

func TestOwnRun(t *testing.T) {
	check := func(want string, change func(*record.Record)) {
		t.Helper()
		r := &record.Record{Trial: "b1-01-a", Scenario: "s", Outcome: record.Measured,
			Loads: []record.Load{ownLoad()}, Verdict: record.Verdict{Grade: record.Valid}}
		change(r)
		dir := filepath.Join(t.TempDir(), "run")
		w, err := record.Create(dir, record.Run{ID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := text(t, dir)
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) { // wrapped by its path
			t.Errorf("it says\n%s\nwant %q", got, want)
		}
	}
	// p99.9 of 1000 needs 3838
	check("0 contradictions, 1 doubt, 0 notes", func(*record.Record) {})
	check("CONTRADICTION: little", func(r *record.Record) { r.Loads[0].ResponseTime.MeanNs = 11e6 })
	check("CONTRADICTION: count", func(r *record.Record) { r.Loads[0].ThroughputPerS = 2000 })
	check("load peak: throughputPerS is -5: must be at least 0 means", func(r *record.Record) {
		r.Loads[0].ThroughputPerS = -5
	})
	check("verdict.grade \"\"", func(r *record.Record) {
		r.Verdict = record.Verdict{}
	})
	check("CONTRADICTION: histogram", func(r *record.Record) { r.Loads[0].ResponseTime.HDR = "x" })
	check("1 doubt", func(r *record.Record) {
		r.Loads[0].Think, r.Loads[0].Connections = "1s", 1000 // they think
	})
	check("DOUBT: little", func(r *record.Record) { r.Loads[0].Connections = 1000 })
	check("DOUBT: verdict", func(r *record.Record) {
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
			{Rule: "lag", Load: "peak", Grade: record.Invalid}}}
	})
	check("0 contradictions, 1 doubt, 0 notes", func(r *record.Record) {
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
			{Rule: "lag", Load: "another", Grade: record.Invalid}}}
	})
}

// TestOwnLoadIsHeldToItsArrivals checks that the arrivals due count, not the requested rate,
// because Poisson arrivals are more or fewer. Of the requested 1,000/s 980 were due and had a
// response.
func TestOwnLoadIsHeldToItsArrivals(t *testing.T) {
	check := func(scheduled int64, want int) {
		t.Helper()
		l := ownLoad()
		l.Model, l.RatePerS, l.Scheduled = "open", 1000, scheduled
		l.Done, l.ThroughputPerS, l.ResponseTime.Count = 980, 980, 980
		r := &Row{Values: map[Quantity]Value{}}
		r.take(&l, 1, false)
		v, known := r.all(Offered, Rate)
		if !known {
			t.Fatalf("%d due: %v lacks what was offered", scheduled, r.Values)
		}
		h, ok := checkOverload(r, v)
		if !ok || (h.arithmetic != "") != (want > 0) {
			t.Errorf("%d due: %v, %+v", scheduled, ok, h)
		}
	}
	check(980, 0)
	check(1000, 1)
}

// TestIdenticalGoesByValue checks that values with the same first three digits may differ.
func TestIdenticalGoesByValue(t *testing.T) {
	check := func(want int, ns ...float64) {
		t.Helper()
		var rows []*Row
		for _, x := range ns {
			rows = append(rows, &Row{Values: map[Quantity]Value{P50: {V: x, Text: "15.3 ms"}}})
		}
		if got := identical(P50, rows, 1e6); len(got) != want {
			t.Errorf("%v: %d findings, want %d", ns, len(got), want)
		}
	}
	check(0, 15_269_887, 15_310_847, 15_278_079)
	check(1, 15_278_079, 15_278_079, 15_278_079)
}

func TestOwnLoadAsJSON(t *testing.T) {
	const load = `{"load": {"name": "x", "model": "open", "ratePerS": 2000, "windowNs": 1000000000,
		"done": 1000, "throughputPerS": 1000, "responseTime": {"count": 1000, "meanNs": 250000000,
		"p99Ns": 490000000, "maxNs": 500000000}}, "verdict": {"grade": "INVALID"}}`
	d, err := Read("l.json", load, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Audit(d)
	if d.Kind != "a load of Prony" || r.Count(Doubt) != 2 || r.Findings[0].Rule != "overload" {
		t.Errorf("%s: %+v", d.Kind, r.Findings)
	}
	whole := strings.NewReplacer(`"done": 1000`, `"scheduled": 1000, "sent": 1000, "answered": `+
		`1000, "done": 1000`, "INVALID", "VALID").Replace(load)
	for from, to := range map[string]string{"x": "y", `"done": 1000`: `"done": 900`,
		`"sent": 1000`: `"sent": 2000`, `"answered": 1000`: `"answered": -1`} {
		if d, err = Read("l.json", strings.Replace(whole, from, to, 1), nil); err != nil {
			t.Fatal(err)
		}
		contradicts := slices.ContainsFunc(Audit(d).Findings, func(f Finding) bool {
			return f.Rule == "identities"
		})
		if contradicts != (from != "x") {
			t.Errorf("%s: %+v", to, Audit(d).Findings)
		}
	}
	for keys, want := range map[string]string{
		`"done": 9, "done"`: `the key "done" occurs twice in one object`,
		`"Done": 9, "done"`: `the key "Done" must be written "done"`,
	} {
		want = "audit l.json: line 2: " + want
		_, err = Read("l.json", strings.Replace(load, `"done"`, keys, 1), nil)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestRepetitionsAreNotRanked checks that two results of one name are repetitions: no ranks, no
// plateau.
func TestRepetitionsAreNotRanked(t *testing.T) {
	d, err := Read("r.csv", "server,rps\na,1001\na,1002\nb,1003\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Audit(d).Findings {
		t.Errorf("%+v", f)
	}
}

func TestEachRuleHasASource(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		if r.name == "" || r.needs == "" || r.source == "" || seen[r.name] {
			t.Errorf("rule %+v", r)
		}
		seen[r.name] = true
		n := 0
		for _, set := range []bool{r.row != nil, r.table != nil, r.document != nil} {
			if set {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s looks at %d kinds of things", r.name, n)
		}
	}
	page, err := os.ReadFile("../../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range seen {
		if !strings.Contains(string(page), "| "+name+" |") {
			t.Errorf("docs/audit.md has no row on %s", name)
		}
	}
	format, err := os.ReadFile("../../../docs/formats/audit-json.md")
	if err != nil {
		t.Fatal(err)
	}
	for q, names := range synonyms {
		row := ""
		for line := range strings.Lines(string(format)) {
			if strings.HasPrefix(line, "| `"+string(q)+"` |") {
				row = line
			}
		}
		for name := range strings.SplitSeq(names, "|") {
			if q != rateWithSpread && !strings.Contains(row, " "+name) {
				t.Errorf("audit-json.md does not list %q among the heads of %s", name, q)
			}
		}
	}
}

// TestValuesAreBounded checks that Read refuses files that would take gigabytes to read.
func TestValuesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"nodes.json": "[" + strings.Repeat("{},", maxParts) + "{}]",
		"rows.json":  "[" + strings.Repeat(`{"rps":1},`, maxParts) + `{"rps":1}]`,
		"rows.csv":   "name,rps\n" + strings.Repeat("a,1\n", maxParts),
		"rows.md":    "| name | rps |\n|---|---|\n" + strings.Repeat("|a|1|\n", maxParts),
		"lines":      strings.Repeat(`{"version":1}`+"\n", 2*maxParts),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(name, text, nil)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%s took %d MiB", name, took>>20)
		}
		if err == nil || !strings.Contains(err.Error(), "the file has more than 131072 values") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Locust and JMeter write times in ms and do not say so; the row of totals is not compared.
func TestTablesInMilliseconds(t *testing.T) {
	for _, text := range []string{
		"Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time," +
			"Max Response Time,Requests/s,50%,99%\nGET,/a,600,0,10,12.5,100,60.0,10,80\n" +
			"GET,/b,400,0,10,12.5,100,60.1,10,80\n,Aggregated,1001,0,10,12.5,100,60.2,10,80\n",
		"Label,# Samples,Average,Median,99% Line,Max,Error %,Throughput\n" +
			"/a,600,12.5,10,80,100,0.00%,60.0\n/b,400,12.5,10,80,100,0.00%,60.1\n" +
			"TOTAL,1001,12.5,10,80,100,0.00%,60.2\n",
	} {
		file, err := Read("a.csv", text, nil)
		if err != nil || len(file.Tables) != 1 || len(file.Tables[0].Rows) != 3 {
			t.Fatalf("%+v, %v", file, err)
		}
		table := file.Tables[0]
		row := table.Rows[0]
		for q, want := range map[Quantity]float64{Mean: 12.5e6, P50: 10e6, P99: 80e6, Max: 100e6,
			Requests: 600} {
			if v, ok := row.get(q); !ok || v.V != want {
				t.Errorf("%s is %v, want %v: %s", q, v.V, want, text)
			}
		}
		if hits, ok := checkRanks(table); !ok || len(hits) != 1 ||
			!strings.Contains(hits[0].arithmetic, "1 of 1 cases") {
			t.Errorf("ranks %v, %+v", ok, hits)
		}
		if hits, _ := checkSums(table); len(hits) != 1 {
			t.Errorf("sums %+v", hits)
		}
	}
}

// The columns of h2load's times depend on its version: the third is the mean or the median.
func TestTimesOfH2load(t *testing.T) {
	const begin = "finished in 1.00s, 1000.00 req/s, 1.20MB/s\n" +
		"requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, " +
		"0 timeout\nstatus codes: 1000 2xx, 0 3xx, 0 4xx, 0 5xx\n" +
		"traffic: 1.20MB (1258291) total, 10B (10) headers (space savings 90.00%), 1.10MB " +
		"(1153433) data\n"
	for _, c := range []struct{ table, want string }{
		{"                     min         max         mean         sd        +/- sd\n" +
			"time for request:    100us      9.00ms      1.20ms       500us    90.00%\n",
			"min 100000 max 9e+06 mean 1.2e+06 stdev 500000"},
		{"                     min         max         median      p95         p99         mean" +
			"         sd        +/- sd\n" +
			"time for request:      100us      9.00ms      1.00ms      5.00ms      7.00ms      " +
			"1.20ms       500us    90.00%\n",
			"min 100000 max 9e+06 mean 1.2e+06 stdev 500000 p50 1e+06 p95 5e+06 p99 7e+06"},
		{"time for request:    100us      9.00ms      1.20ms       500us    90.00%\n",
			"min 100000 max 9e+06 mean 1.2e+06 stdev 500000"},
	} {
		row, err := readSaved("a.txt", begin+c.table, 1)
		if err != nil || row == nil {
			t.Fatalf("%v, %v", row, err)
		}
		var got []string
		for _, q := range []Quantity{Min, Max, Mean, Deviation, P50, P95, P99} {
			if v, ok := row.get(q); ok {
				got = append(got, fmt.Sprintf("%s %g", q, v.V))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s\nhas  %s\nwant %s", c.table, text, c.want)
		}
	}
}

// The rate of h2load is of the part after the warm-up.
func TestRateOfH2load(t *testing.T) {
	row, err := readSaved("a.txt", "spawning thread #0: 4 total client(s). Timing-based test with "+
		"5s of warm-up time and 10s of main duration for measurements.\n"+
		"finished in 15.00s, 90.00 req/s, 1.20KB/s\nrequests: 1000 total, 1000 started, "+
		"1000 done, 850 succeeded, 150 failed, 100 errored, 0 timeout\n"+
		"status codes: 850 2xx, 0 3xx, 50 4xx, 0 5xx\n", 1)
	if err != nil || row == nil {
		t.Fatalf("%v, %v", row, err)
	}
	h, _ := checkCount(row, []Value{row.Values[Rate], row.Values[Duration], row.Values[Requests]})
	if h.arithmetic != "" {
		t.Error(h.arithmetic)
	}
}

// oha's rate has requests that its end aborted: 1,050 in 10 s, of which 990 were good.
func TestGoodRateOfOha(t *testing.T) {
	row, err := readSaved("a.json", `{"summary":{"successRate":1.0,"total":10.0,"slowest":0.5,
		"fastest":0.001,"average":0.01,"requestsPerSec":105.0},"latencyPercentiles":{"p50":0.005},
		"statusCodeDistribution":{"200":990,"503":10},
		"errorDistribution":{"aborted due to deadline":50}}`, 1)
	if err != nil || row == nil {
		t.Fatalf("%v, %v", row, err)
	}
	h, _ := checkErrors(row, nil)
	const want = "oha includes 10 failures and 50 requests that its end aborted in its rate of " +
		"105.0/s, so that good responses are 99/s"
	if !strings.HasSuffix(h.arithmetic, want) {
		t.Errorf("%s\nwant %s", h.arithmetic, want)
	}
}
