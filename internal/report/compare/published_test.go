package compare

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/base/files"
	"prony.example/internal/report/audit"
)

// entry is one result in the format of java-http's load tests.
const entry = `{"server": %q, "tool": %q, "protocol": "http/1.1", "scenario": "baseline",
 "config": {"threads": 12, "connections": %d, "duration": "10s", "endpoint": "/"},
 "metrics": {"requests": 1000000, "duration_us": 10000000, "rps": %g, "avg_latency_us": 885.05,
  "p50_us": 833, "p90_us": 979, "p99_us": 2331, "max_us": 89174, "errors_connect": 0,
  "errors_read": 0, "errors_write": 0, "errors_timeout": %d}}`

// javaHTTP returns a file of such results on a machine.
func javaHTTP(t *testing.T, name, cpu string, results ...string) *audit.Document {
	t.Helper()
	d, err := audit.Read(name, fmt.Sprintf(`{"version": 1, "timestamp": "2026-02-18T16:35:25Z",
"system": {"os": "Darwin", "cpuModel": %q, "cpuCores": 10, "javaVersion": "21.0.10 of %s",
"description": %q}, "tools": {"selected": "wrk", "wrkVersion": "wrk 4.2.0 [kqueue]"},
"results": [%s]}`, cpu, name, name, strings.Join(results, ",")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func javaResult(server string, rps float64) string {
	return fmt.Sprintf(entry, server, "wrk", 100, rps, 0)
}

// publishedText returns the complete comparison as text, its lines joined.
func publishedText(t *testing.T, a, b *audit.Document, nameA, nameB string, o Options) string {
	t.Helper()
	c, err := Published(a, b, nameA, nameB, o)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Text(&out, c); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func wantAll(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it lacks %q:\n%s", w, text)
		}
	}
}

// TestSingleRunsHaveNoVerdict checks that single runs have figures and their ratio, but no outcome:
// 110k to 105k is −4.5 %.
func TestSingleRunsHaveNoVerdict(t *testing.T) {
	a := javaHTTP(t, "a.json", "M4", javaResult("self", 110000.5), javaResult("netty", 120000.5))
	b := javaHTTP(t, "b.json", "M4", javaResult("self", 105000.5), javaResult("jetty", 90000.5))
	text := publishedText(t, a, b, "", "", Options{})
	wantAll(t, text, "throughput 110k/s 105k/s −4.5 % no verdict: single runs",
		"errors 0 % 0 % – the same", "Single runs have no interval", "Prony did not measure "+
			"these values",
		"Its noise is unknown", "baseline · netty is only in A",
		"baseline · jetty is only in B", "javaVersion: 21.0.10 of a.json against 21.0.10 of b.json")
	for _, not := range []string{"faster", "slower:", "± ", "description"} {
		if strings.Contains(text, not) {
			t.Errorf("it says %q of single runs:\n%s", not, text)
		}
	}
	// Two rows of one file; one metric only.
	wantAll(t, publishedText(t, a, a, "self", "netty", Options{Metrics: []string{"throughput"}}),
		"netty against self", "+9.1 % no verdict")
}

// TestRepetitionsHaveAVerdict checks that repetitions have an interval and an outcome: 9 %
// difference with a noise of 1 %.
func TestRepetitionsHaveAVerdict(t *testing.T) {
	a := javaHTTP(t, "a.json", "M4", javaResult("self", 110000.5), javaResult("self", 111000.5),
		javaResult("self", 109000.5))
	b := javaHTTP(t, "b.json", "M4", javaResult("self", 100000.5), javaResult("self", 101000.5),
		javaResult("self", 99000.5))
	text := publishedText(t, a, b, "", "", Options{Metrics: []string{"throughput"}})
	wantAll(t, text, "−9.1 % (−11 % to −7.1 %)", "slower", "Welch's t-test on logarithms")
	if strings.Contains(text, "Single runs") {
		t.Errorf("repetitions are called single runs:\n%s", text)
	}
}

// TestPublishedUnlike checks that results of different methods are refused: another tool, other
// connections, another machine. Aspects that one side does not state are unknown.
func TestPublishedUnlike(t *testing.T) {
	a := javaHTTP(t, "a.json", "M4", javaResult("self", 110000.5))
	check := func(b *audit.Document, want ...string) {
		t.Helper()
		_, err := Published(a, b, "", "", Options{Refused: "insist"})
		var unlike *UnlikeError
		if !errors.As(err, &unlike) {
			t.Fatalf("error %v", err)
		}
		wantAll(t, err.Error(), want...)
		wantAll(t, publishedText(t, a, b, "", "", Options{Unlike: true}), "WARNING: A and B "+
			"were measured")
	}
	check(javaHTTP(t, "b.json", "M4", fmt.Sprintf(entry, "self", "wrk", 200, 1e5, 0)),
		"connections: 100 against 200", "insist")
	check(javaHTTP(t, "b.json", "M4", fmt.Sprintf(entry, "self", "fusionauth", 100, 1e5, 0)),
		"tool: wrk against fusionauth")
	check(javaHTTP(t, "b.json", "i9", javaResult("self", 1e5)), "system cpuModel: M4 against i9")
	wrk := opened(t, "../../generator/testdata/wrk-latency.txt")
	check(wrk, "connections: 100 against 10")
	wantAll(t, publishedText(t, a, wrk, "", "", Options{Unlike: true}),
		"system cpuModel: M4 against unknown")
}

func opened(t *testing.T, name string) *audit.Document {
	t.Helper()
	text, err := files.String(name, files.Results)
	if err != nil {
		t.Fatal(err)
	}
	d, err := audit.Read(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPublishedFormats compares the output of each tool with itself, and published tables with
// themselves.
func TestPublishedFormats(t *testing.T) {
	for name, want := range map[string]string{
		"wrk-latency.txt": "p99", "wrk2-full.txt": "p99.9",
		"hey.txt": "the rate includes 100 failures", "oha.json": "p99.9",
		"k6-text.txt": "the rate includes 27 failures", "k6-summary.json": "mean response time",
		"vegeta.json": "throughput", "h2load.txt": "mean response time", "jmeter.jtl": "p99",
	} {
		name = "../../generator/testdata/" + name
		one, other := opened(t, name), opened(t, name)
		wantAll(t, publishedText(t, one, other, "", "", Options{}), want,
			"no verdict: single runs")
	}
	tables := opened(t, "../audit/testdata/docker-microservices.md")
	wantAll(t, publishedText(t, tables, tables, "Go", "Spring", Options{}),
		"JSON serialization · Spring against Go", "38.4k/s 34.9k/s −9.0 %",
		"contradicts itself in 5 places", "memory 11 MiB")
	k6 := opened(t, "../audit/testdata/easeagent-k6.md")
	wantAll(t, publishedText(t, k6, k6, "Baseline", "Agent", Options{}),
		"throughput 1.73k/s 1.55k/s −10 %", "errors 0.2 % 0.2 %")
}

func TestPublishedRefusals(t *testing.T) {
	a := javaHTTP(t, "a.json", "M4", javaResult("self", 1e5), javaResult("netty", 1e5))
	check := func(b *audit.Document, nameA, nameB string, o Options, want string) {
		t.Helper()
		if _, err := Published(a, b, nameA, nameB, o); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(a, "", "", Options{}, "name two rows with --targets A,B; the rows are self, netty")
	single := javaHTTP(t, "s.json", "M4", javaResult("self", 1e5))
	if _, err := Published(single, single, "", "", Options{}); err == nil ||
		!strings.Contains(err.Error(), "compare s.json with itself: its only row is self") {
		t.Errorf("a file twice: %v", err)
	}
	check(a, "self", "jetty", Options{}, `find "jetty" in a.json: no row has this name`)
	check(a, "self", "netty", Options{Control: "self"}, "leave out --control")
	b := javaHTTP(t, "b.json", "M4", javaResult("jetty", 1e5), javaResult("tomcat", 1e5))
	check(b, "", "", Options{}, "no row is in both files; A has self, netty; B has jetty, tomcat")
}
