package generator

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

func imported(t *testing.T, file string) (*record.Load, []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	l, notes, err := Import("some/"+file, string(b))
	if err != nil {
		t.Fatal(err)
	}
	return l, Sentences(notes)
}

// Text in colors is read as the text alone.
func TestImportColors(t *testing.T) {
	const text = "\x1b[32m✓\x1b[0m http_req_duration..: avg=2ms min=1ms med=2ms max=3ms p(90)=3ms" +
		"\n" +
		"       http_req_failed....: \x1b[36m10.00%\x1b[0m 1 out of 10\n" +
		"\x1b[1mhttp_reqs\x1b[0m..........: \x1b[36m10\x1b[0m 5/s\n" +
		"iterations: 10 5/s\n"
	l, _, err := Import("k6.txt", text)
	if err != nil || l.Driver != "k6" || l.Done != 9 || l.Errors.Status != 1 ||
		l.ServiceTime.P90Ns != 3e6 {
		t.Errorf("it is %+v, %v", l, err)
	}
}

// Logs put the same before each line; the text after it is read. A text in which only some lines
// begin so is read as it is.
func TestImportPrefixes(t *testing.T) {
	const text = "Running 1s test @ http://127.0.0.1/\n" +
		"  1 threads and 2 connections\n" +
		"  Thread Stats   Avg      Stdev     Max   +/- Stdev\n" +
		"    Latency     1.00ms    0.10ms   2.00ms   90.00%\n" +
		"    Req/Sec    10.00      1.00    20.00     90.00%\n" +
		"\n" +
		"  10 requests in 1.00s, 1.00KB read\n" +
		"Requests/sec:     10.00\n"
	for _, prefix := range []string{"2024-05-01T12:00:00.1234567Z ", "wrk-1  | ", "> ",
		"bench\tRun wrk\t2024-05-01T12:00:00.1234567Z ", "[pod/wrk-abc/wrk] "} {
		in := prefix + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+prefix) + "\n"
		for _, in := range []string{in, strings.ReplaceAll(in, prefix+"\n",
			strings.TrimSpace(prefix)+"\n")} {
			l, _, err := Import("wrk.txt", in)
			if err != nil || l.Done != 10 || l.ResponseTime.MaxNs != 2e6 {
				t.Errorf("%q: it is %+v, %v", prefix, l, err)
			}
		}
	}
	if in := "> a\n> b\nc\n"; cleaned(in) != in {
		t.Errorf("it is %q", cleaned(in))
	}
}

// saved holds a file's expected numbers, which were read by eye.
type saved struct {
	file, tool, model string
	good              int64
	errors            record.Errors
	censored          int64
	window            float64 // seconds
	response, service record.Dist
	notes             string // words in one of the notes
}

const (
	us = 1_000
	ms = 1_000_000
)

var savedFiles = []saved{
	{file: "wrk-latency.txt", tool: "wrk", model: record.Closed, window: 2.49,
		good: 16517 - 826, errors: record.Errors{Status: 826}, notes: "synthetic",
		service: record.Dist{Count: 16517, MeanNs: 230.51 * ms, P50Ns: 738 * us,
			P90Ns: 945_550 * us, P99Ns: 1410 * ms, MaxNs: 1490 * ms}},
	{file: "wrk-plain.txt", tool: "wrk", model: record.Closed, window: 2.41, good: 14695,
		service: record.Dist{Count: 14695, MeanNs: 185.60 * ms, MaxNs: 1030 * ms}},
	{file: "wrk-timeout.txt", tool: "wrk", model: record.Closed, window: 4.03,
		good: 3669 - 4, errors: record.Errors{Timeout: 4}, notes: "later than wrk's timeout",
		service: record.Dist{Count: 3665, MeanNs: 2.57 * ms, P50Ns: 98 * us, P90Ns: 476 * us,
			P99Ns: 66_830 * us, MaxNs: 145_940 * us}},
	// Its timeout is of an idle connection.
	{file: "wrk2-full.txt", tool: "wrk2", model: record.Open, window: 12,
		good: 11923 - 597, errors: record.Errors{Status: 597}, notes: "excludes the first 10 s",
		response: record.Dist{Count: 2382, MinNs: 109 * us, MeanNs: 615.920 * ms,
			P50Ns: 496_130 * us, P90Ns: 1540 * ms, P99Ns: 2050 * ms, P999Ns: 2100 * ms,
			MaxNs: 2_101_248 * us},
		service: record.Dist{Count: 2382, MinNs: 34 * us, MeanNs: 0.351 * ms, P50Ns: 234 * us,
			P90Ns: 558 * us, P99Ns: 1460 * us, P999Ns: 15_950 * us, MaxNs: 20_928 * us}},
	{file: "wrk2-short.txt", tool: "wrk2", model: record.Open, window: 2,
		good: 201 - 10, errors: record.Errors{Status: 10},
		response: record.Dist{Count: 201, MeanNs: 1.24 * ms, MaxNs: 3720 * us}},
	{file: "hey.txt", tool: "hey", window: 0.1747, good: 1900,
		errors: record.Errors{Status: 100}, notes: "0.1 ms",
		service: record.Dist{Count: 2000, MinNs: 100 * us, MeanNs: 0.8 * ms, P50Ns: 700 * us,
			P90Ns: 1400 * us, P99Ns: 3100 * us, MaxNs: 7300 * us}},
	{file: "hey-timeout.txt", tool: "hey", window: 1.0555, good: 499,
		errors: record.Errors{Timeout: 1},
		service: record.Dist{Count: 499, MinNs: 100 * us, MeanNs: 0.5 * ms, P50Ns: 400 * us,
			P90Ns: 900 * us, P99Ns: 2000 * us, MaxNs: 3000 * us}},
	{file: "oha.json", tool: "oha", window: 1.502306484, good: 712,
		errors: record.Errors{Status: 38}, notes: "including responses with an error status",
		service: record.Dist{Count: 750, MinNs: 77_474, MeanNs: 481_648, P50Ns: 172_993,
			P90Ns: 374_820, P99Ns: 9_706_121, P999Ns: 20_992_893, MaxNs: 20_992_893}},
	{file: "oha-deadline.json", tool: "oha", window: 1.001863184, good: 129, censored: 3,
		service: record.Dist{Count: 129, MinNs: 20_503_880, MeanNs: 22_971_367,
			P50Ns: 21_123_928, P90Ns: 27_027_179, P99Ns: 58_959_897, P999Ns: 58_974_284,
			MaxNs: 58_974_284}},
	{file: "oha.txt", tool: "oha", window: 0.5015318, good: 9831, censored: 4,
		errors: record.Errors{Status: 518},
		service: record.Dist{Count: 10349, MinNs: 44_100, MeanNs: 191_100, P50Ns: 139_700,
			P90Ns: 309_100, P99Ns: 1_024_900, P999Ns: 2_673_300, MaxNs: 7_913_700}},
	{file: "k6-export.json", tool: "k6", model: record.Open, window: 2.001019, good: 526,
		censored: 448, errors: record.Errors{Status: 27}, notes: "k6 dropped 448 iterations",
		service: record.Dist{Count: 526, MinNs: 123_660, MeanNs: 437_609, P50Ns: 348_421,
			P90Ns: 523_867, P99Ns: 3_081_646, P999Ns: 7_186_007, MaxNs: 7_220_490}},
	{file: "k6-summary.json", tool: "k6", model: record.Open, window: 2.000498676, good: 626,
		censored: 342, errors: record.Errors{Status: 33},
		service: record.Dist{Count: 626, MinNs: 108_312, MeanNs: 2_032_007, P50Ns: 248_685,
			P90Ns: 606_713, P99Ns: 32_090_259, P999Ns: 162_522_943, MaxNs: 162_987_786}},
	{file: "k6-text.txt", tool: "k6", model: record.Open, window: 2.001019, good: 526,
		censored: 448, errors: record.Errors{Status: 27},
		service: record.Dist{Count: 526, MinNs: 123_660, MeanNs: 437_600, P50Ns: 348_420,
			P90Ns: 523_860, P99Ns: 3080 * us, P999Ns: 7180 * us, MaxNs: 7220 * us}},
	{file: "k6-plain.txt", tool: "k6", window: 1.000621, good: 5120 - 256,
		errors: record.Errors{Status: 256}, notes: "closed (users) or open (a rate)",
		service: record.Dist{Count: 4864, MinNs: 48_230, MeanNs: 503_080, P50Ns: 321_080,
			P90Ns: 715_410, MaxNs: 26_090 * us}},
	// 22109 done at 14739.33/s.
	{file: "h2load.txt", tool: "h2load", window: 1.5, good: 21004, notes: "no percentiles",
		errors:  record.Errors{Status: 1105},
		service: record.Dist{Count: 22109, MinNs: 25 * us, MeanNs: 269 * us, MaxNs: 479_190 * us}},
	// 400 in total over 1.989972 s, and 5.466 ms for the last response.
	{file: "vegeta.json", tool: "vegeta", model: record.Open, window: 1.995438359, good: 380,
		errors: record.Errors{Status: 20}, notes: "t-digest",
		service: record.Dist{Count: 400, MinNs: 177_050, MeanNs: 483_652, P50Ns: 422_661,
			P90Ns: 601_127, P99Ns: 1_934_341, MaxNs: 10_381_767}},
	// 933 at 433.6/s.
	{file: "jmeter.txt", tool: "jmeter", window: 2.151753, good: 886,
		errors: record.Errors{Status: 47}, notes: "save the log",
		service: record.Dist{Count: 933, MeanNs: 3 * ms, MaxNs: 87 * ms}},
	{file: "hey.csv", tool: "hey", window: 0.0056, good: 57, errors: record.Errors{Status: 3},
		service: record.Dist{Count: 57, MinNs: 100 * us, P50Ns: 200 * us, MaxNs: 900 * us}},
	{file: "oha.csv", tool: "oha", window: 0.020489824, good: 57,
		errors:  record.Errors{Status: 3},
		service: record.Dist{Count: 57, MinNs: 87_103, P50Ns: 337_117, MaxNs: 7_243_000}},
	// From 1795261925088604 to 1795261925092761 + 44 µs.
	{file: "h2load.tsv", tool: "h2load", window: 0.004201, good: 57,
		errors:  record.Errors{Status: 3},
		service: record.Dist{Count: 57, MinNs: 44 * us, P50Ns: 136 * us, MaxNs: 871 * us}},
	// Some of its samples took less than a millisecond.
	{file: "jmeter.jtl", tool: "jmeter", window: 0.359, good: 57,
		errors: record.Errors{Status: 3}, notes: "less than 1 ms",
		service: record.Dist{Count: 57, P50Ns: 4 * ms, P99Ns: 269 * ms, MaxNs: 282 * ms}},
}

// TestImport checks the numbers of real outputs. In files with a row per response, unset values are
// not checked; in others they must be unknown.
func TestImport(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range savedFiles {
		l, notes := imported(t, row.file)
		seen[row.file] = true
		fail := func(what string, got, want any) {
			t.Errorf("%s: %s is %+v, want %+v", row.file, what, got, want)
		}
		if l.Driver != row.tool || l.Model != row.model {
			fail("tool", l.Driver+" "+l.Model, row.tool+" "+row.model)
		}
		l.Errors.Example = ""
		if l.Done != row.good || l.Errors != row.errors || l.Censored != row.censored {
			fail("count", []any{l.Done, l.Errors, l.Censored},
				[]any{row.good, row.errors, row.censored})
		}
		if got := float64(l.WindowNs) / 1e9; math.Abs(got-row.window) > 1e-6*row.window+1e-9 {
			fail("window", got, row.window)
		}
		if row.model == record.Closed {
			row.response = row.service // they are equal
		}
		rows := strings.HasSuffix(row.file, ".csv") || strings.HasSuffix(row.file, ".jtl") ||
			strings.HasSuffix(row.file, ".tsv")
		checkDist(t, row.file+" response", l.ResponseTime, row.response, rows)
		checkDist(t, row.file+" service", l.ServiceTime, row.service, rows)
		if !strings.Contains(strings.Join(notes, "\n"), row.notes) {
			fail("notes", notes, row.notes)
		}
	}
	all, err := filepath.Glob("testdata/*.*")
	if err != nil || len(all) != len(seen) {
		t.Errorf("%d files of testdata are looked at, of %d, %v", len(seen), len(all), err)
	}
}

// checkDist permits the histogram of rows an error of 3 digits.
func checkDist(t *testing.T, what string, got, want record.Dist, rows bool) {
	t.Helper()
	tolerance := 1.0
	if rows {
		tolerance = 2e-3
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"count", float64(got.Count), float64(want.Count)},
		{"least", float64(got.MinNs), float64(want.MinNs)},
		{"mean", got.MeanNs, want.MeanNs},
		{"p50", float64(got.P50Ns), float64(want.P50Ns)},
		{"p90", float64(got.P90Ns), float64(want.P90Ns)},
		{"p99", float64(got.P99Ns), float64(want.P99Ns)},
		{"p99.9", float64(got.P999Ns), float64(want.P999Ns)},
		{"max", float64(got.MaxNs), float64(want.MaxNs)},
	} {
		near := tolerance
		if rows {
			near = tolerance * v.want
		}
		if math.Abs(v.got-v.want) > near && !(rows && v.want == 0) {
			t.Errorf("%s: %s is %v, want %v", what, v.name, v.got, v.want)
		}
	}
}

// TestImportOldK6 checks that k6 before 1.0 ticked the failed requests.
func TestImportOldK6(t *testing.T) {
	b, err := os.ReadFile("testdata/k6-text.txt")
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(b), "27 out of 553", "✓ 27         ✗ 526", 1)
	if old == string(b) {
		t.Fatal("the file has no share of failed requests")
	}
	l, _, err := Import("old.txt", old)
	if err != nil || l.Errors.Status != 27 || l.Done != 526 {
		t.Errorf("%d good and %+v, %v; want 526 and 27", l.Done, l.Errors, err)
	}
}

func TestImportRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "the file is empty",
		"hello":                          "the format was not recognized as one of oha: its JSON",
		"{":                              "begins like JSON but is not valid JSON",
		"{}":                             "the format was not recognized as one of",
		`{"metrics":{}}`:                 "no http_reqs",
		`{"latencies":null}`:             `no "latencies"`,
		`{"statusCodeDistribution":1}`:   `no "summary"`,
		"<?xml version=\"1.0\"?>":        "configure JMeter to save CSV",
		"<testResults version=\"1.2\">":  "configure JMeter to save CSV",
		"timeStamp,elapsed,label\n1,2,3": `no column "responseCode"`,
		"Thread Stats requests in x":     "does not have the numbers",
		"Thread Stats\n 1 requests in 1s, 1B read\n": "check that it is complete",
		"Summary: Requests/sec: 1":                   "check that it is complete",
		"response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code," +
			"offset\n": "received no responses",
	} {
		_, _, err := Import("x.txt", text)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "import x.txt") {
			t.Errorf("of %q: error %v, want %q", text, err, want)
		}
	}
}

// TestImportTakesOtherEncodings checks other line ends and byte order marks.
func TestImportTakesOtherEncodings(t *testing.T) {
	for _, row := range savedFiles {
		b, err := os.ReadFile(filepath.Join("testdata", row.file))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := imported(t, row.file)
		bent := "\xef\xbb\xbf" + strings.ReplaceAll(string(b), "\n", "\r\n")
		got, _, err := Import("some/"+row.file, bent)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: it is %+v, %v", row.file, got, err)
		}
	}
}

// TestParse checks that numbers out of range or without meaning are errors, never 0.
func TestParse(t *testing.T) {
	check := func(what string, got int64, err error, want int64, reason string) {
		t.Helper()
		if said := fmt.Sprint(err); got != want || (err == nil) != (reason == "") ||
			err != nil && !strings.Contains(said, reason) {
			t.Errorf("%s is %d, %v, want %d, %q", what, got, err, want, reason)
		}
	}
	n, err := integer("42")
	check("a count", n, err, 42, "")
	n, err = integer("-1")
	check("a negative count", n, err, 0, "negative")
	n, err = integer("1000000000000001")
	check("a count beyond all", n, err, 0, "too large")
	n, err = integer("99999999999999999999")
	check("a count beyond int64", n, err, 0, "too large")
	n, err = integer("1.5")
	check("a part of a request", n, err, 0, "not a whole number")
	n, err = span("1.5", 1e6)
	check("milliseconds", n, err, 1_500_000, "")
	n, err = span("NaN", 1e6)
	check("no number", n, err, 0, "not a number")
	n, err = span("1e999", 1e6)
	check("seconds without end", n, err, 0, "too large")
	n, err = span("-1", 1e6)
	check("a negative time", n, err, 0, "negative")
	n, err = span("0,5", 1e6)
	check("a decimal comma", n, err, 0, "comma")
	n, err = scaled(1e10, 1e9)
	check("more than a century", n, err, 0, "century")
	n, err = nanoseconds(" 1.23ms ")
	check("a duration", n, err, 1_230_000, "")
	n, err = nanoseconds("-1s")
	check("a negative duration", n, err, 0, "negative")
	n, err = nanoseconds("5")
	check("a time without a unit", n, err, 0, "not a time")
	n, err = nanoseconds("-nanus")
	check("the mean of nothing", n, err, 0, "")
}

// TestOrdered checks that values slightly above the largest are reduced to it, and that impossible
// ones are dropped.
func TestOrdered(t *testing.T) {
	check := func(in, want record.Dist, notes int) {
		t.Helper()
		got := &tally{service: in}
		got.ordered()
		if got.service != want || len(got.notes) != notes {
			t.Errorf("of %+v came %+v, %q", in, got.service, got.notes)
		}
	}
	check(record.Dist{P50Ns: 2, P99Ns: 3, MaxNs: 4}, record.Dist{P50Ns: 2, P99Ns: 3, MaxNs: 4}, 0)
	check(record.Dist{P99Ns: 1005, MaxNs: 1000}, record.Dist{P99Ns: 1000, MaxNs: 1000}, 0)
	check(record.Dist{P99Ns: 1007, MaxNs: 1000}, record.Dist{}, 1)
	check(record.Dist{P50Ns: 3, P99Ns: 2}, record.Dist{}, 1)
	check(record.Dist{P50Ns: 3, P90Ns: 0, P99Ns: 3}, record.Dist{P50Ns: 3, P99Ns: 3}, 0)
	check(record.Dist{MeanNs: 5, MaxNs: 4}, record.Dist{MaxNs: 4}, 1)
	check(record.Dist{MeanNs: 1005, MaxNs: 1000}, record.Dist{MeanNs: 1000, MaxNs: 1000}, 0)
}

func TestBlame(t *testing.T) {
	check := func(text string, want record.Errors) {
		t.Helper()
		var got record.Errors
		blame(&got, text, 3)
		got.Example = ""
		if got != want {
			t.Errorf("%q is booked as %+v, want %+v", text, got, want)
		}
	}
	check("dial tcp 127.0.0.1:1: connect: connection refused", record.Errors{Connect: 3})
	check("dial tcp: i/o timeout", record.Errors{Connect: 3})
	check("Non HTTP response code: java.net.ConnectException", record.Errors{Connect: 3})
	check("context deadline exceeded (Client.Timeout exceeded)", record.Errors{Timeout: 3})
	check("request timed out", record.Errors{Timeout: 3})
	check("read: connection reset by peer", record.Errors{Read: 3})
	check("unexpected EOF on the connection", record.Errors{Read: 3})
	check("connection closed before message completed", record.Errors{Read: 3})
	check("write: broken pipe", record.Errors{Write: 3})
	check("malformed HTTP response", record.Errors{Parse: 3})
	check("who knows", record.Errors{Read: 3})
}

// FuzzImport checks that any file gives an error or a possible load.
func FuzzImport(f *testing.F) {
	all, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	const jtl = "timeStamp,elapsed,label,responseCode,responseMessage,success,URL\n"
	f.Add([]byte(jtl + "1700000000000,9,a,500,\"broken,false,null\n1700000001000,9,a,200,OK,t,\n"))
	f.Add([]byte(jtl + "2026/11/27 10:00:00.000,-1,a,x,OK,maybe,\n1e400,NaN,,,,,\n"))
	f.Add([]byte(`{"metric":"http_reqs","type":"Point","data":{"time":"x","value":1e999}}` + "\n"))
	f.Add([]byte(`{"results":{"metrics":[{"name":"http_reqs","values":{"count":-1}}]}}`))
	f.Add([]byte("\xff\xfeR\x00u\x00n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, notes, err := Import("x", string(b))
		if err != nil {
			return
		}
		e := l.Errors
		for _, n := range []int64{l.Done, l.Sent, l.Scheduled, l.Censored, l.WindowNs, l.BytesIn,
			l.BytesOut, e.Connect, e.Write, e.Read, e.Timeout, e.Parse, e.Status, e.Body} {
			if n < 0 {
				t.Errorf("a count is %d in %+v", n, l)
			}
		}
		if l.Done+e.Total() == 0 || len(notes) == 0 || !(l.ThroughputPerS >= 0) ||
			math.IsInf(l.ThroughputPerS, 0) {
			t.Errorf("it is %+v with notes %q", l, notes)
		}
		for _, d := range []record.Dist{l.ResponseTime, l.ServiceTime, l.FirstByte, l.ConnectTime} {
			last := int64(0)
			for _, ns := range []int64{d.MinNs, d.P50Ns, d.P90Ns, d.P99Ns, d.P999Ns, d.MaxNs} {
				if ns < 0 || ns > 0 && ns < last {
					t.Errorf("times do not ascend in %+v", d)
				}
				last = max(last, ns)
			}
			if !(d.MeanNs >= 0) || math.IsInf(d.MeanNs, 0) || d.Count < 0 {
				t.Errorf("mean or count cannot be in %+v", d)
			}
		}
	})
}

// TestOwnK6Summary checks that the script's own counters divide failures by class, and that wrong
// bodies are noted, because response times include them.
func TestOwnK6Summary(t *testing.T) {
	text, err := os.ReadFile("testdata/k6-summary.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(want record.Errors, noted bool, counters string) {
		t.Helper()
		j := &job{dir: t.TempDir()}
		own := strings.Replace(string(text), `"metrics":{`, `"metrics":{`+counters, 1)
		err := os.WriteFile(filepath.Join(j.dir, "summary.json"), []byte(own), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readK6(j, nil)
		if err != nil {
			t.Fatal(err)
		}
		errors := got.errors
		errors.Example = ""
		if has := slices.ContainsFunc(got.notes, func(n Note) bool {
			return n.Kind == NoteK6BodyIncluded
		}); errors != want || got.good != 659-want.Total() || has != noted {
			t.Errorf("%s: %+v, %d good, noted %v; want %+v, %v", counters, errors, got.good, has,
				want, noted)
		}
	}
	check(record.Errors{}, false, "")
	check(record.Errors{Connect: 1, Write: 2, Read: 3, Timeout: 4, Status: 5}, false,
		`"prony_connect":{"values":{"count":1}},"prony_write":{"values":{"count":2}},`+
			`"prony_read":{"values":{"count":3}},"prony_timeout":{"values":{"count":4}},`+
			`"prony_status":{"values":{"count":5}},`)
	check(record.Errors{Body: 1}, true, `"prony_body":{"values":{"count":1}},`)
}
