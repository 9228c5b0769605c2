package audit

import "testing"

// TestLimitsOfRowRules checks both sides of the limits of rules about one result.
func TestLimitsOfRowRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	// 999.9/s × 29.9 s = 29,897 to 1000.1/s × 30.1 s = 30,103, and 2 % or 5 % more or less
	for requests, want := range map[string]string{"29311": "fine", "29310": "doubt: 2.4 % more",
		"28474": "doubt: ", "28473": "contradiction: 5.4 % more", "30705": "fine",
		"30706": "doubt: 2.3 % less", "31608": "doubt: ", "31609": "contradiction: "} {
		check("count", want, "rate: 1000.0", "duration: 30.0s", "requests: "+requests)
	}
	for ran, want := range map[string]string{"26.995s": "contradiction: ", "27.005s": "doubt: ",
		"29.395s": "doubt: ", "29.405s": "fine", "33.995s": "fine", "34.005s": "doubt: "} {
		check("asked duration", want, "asked duration: 30s", "duration: "+ran)
	}
	// hey sends 33 × 3 of 100 on 3 connections, and no other tool does: 100 / 1.02 = 98.04.
	check("asked requests", "fine", "asked requests: 100", "requests: 98", "connections: 3",
		"tool=hey")
	check("asked requests", "doubt: ", "asked requests: 100", "requests: 98", "connections: 3")

	check("order", "fine", "p50: 10.2ms", "p99: 10.0ms") // 10.2 is 1 % above 10.1
	check("order", "contradiction: ", "p50: 10.3ms", "p99: 10.0ms")
	check("order", "unchecked", "mean: 10.0ms")
	check("order", "fine", "mean: 10.0ms", "min: 9.0ms")

	check("mean", "fine", "mean: 0.50ms", "p50: 2.00ms", "p99: 10.0ms", "requests: 199")
	check("mean", "contradiction: ", "mean: 0.50ms", "p50: 2.00ms", "p99: 10.0ms",
		"requests: 200")
	check("mean", "fine", "mean: 30.0ms", "p75: 2.00ms")
	// (29.9 − .9 × 2.01) / .1
	check("mean", "note: the slowest 10 % of requests took at least 281 ms", "mean: 30.0ms",
		"p90: 2.00ms")

	// Of two requests the slower one is one standard deviation above the mean.
	check("deviation", "contradiction: ", "mean: 2.00ms", "stdev: 1.00ms", "max: 3.10ms",
		"requests: 2")
	check("deviation", "fine", "mean: 2.00ms", "stdev: 1.00ms", "max: 3.05ms", "requests: 2")
	check("deviation", "unchecked", "mean: 2.00ms", "stdev: 1.00ms", "max: 9.00ms",
		"requests: 2", "tool=wrk")
	// The median is 5.25 ms from the mean, or a little more.
	check("deviation", "fine", "mean: 10.00ms", "stdev: 5.00ms", "p50: 15.25ms")
	check("deviation", "contradiction: ", "mean: 10.00ms", "stdev: 5.00ms", "p50: 15.31ms")

	check("flat", "doubt: ", "p50: 1.0ms", "p95: 1.0ms", "requests: 20")
	check("flat", "fine", "p50: 0.0ms", "p99: 0.0ms")
	check("flat", "unchecked", "p99: 1.0ms")
}

// TestLimitsOfOtherRowRules checks both sides of the limits of further rules about one result.
func TestLimitsOfOtherRowRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	// From 50 ms and 20 times p99 on, regardless of percentiles above it.
	check("tail", "note: 20 times p99", "max: 50.0ms", "p99: 2.5ms", "p99.9: 49ms")
	check("tail", "fine", "max: 49.9ms", "p99: 1.0ms")
	check("tail", "fine", "max: 50.0ms", "p99: 2.6ms")
	check("tail", "note: 100 times p90", "max: 100ms", "p90: 1.0ms")
	check("tail", "unchecked", "max: 100ms", "p75: 1.0ms")
	check("tail", "fine", "max: 100ms", "p99: 0.0ms")
	check("tail", "note: ", "max: 100ms", "p99: 1.0ms", "duration: 10.0s") // 1 % of the run
	check("tail", "doubt: p99 would be up to 1.00 ms", "max: 100ms", "p99: 1.0ms",
		"duration: 9.9s") // 100 − 1 % of 9,900
	check("tail", "note: ", "max: 100ms", "p99: 1.0ms", "duration: 9.9s", "model=open")
	check("tail", "note: (TCP takes 1 s", "max: 1.00s", "p99: 5ms")
	check("tail", "note: (TCP takes 7 s", "max: 7.27s", "p99: 5ms")
	check("tail", "note: max 1.04s is 208 times p99 5ms", "max: 1.04s", "p99: 5ms")

	check("errors", "note: ", "errors: 1", "requests: 10000")
	check("errors", "fine", "errors: 1", "requests: 10001")
	check("errors", "note: 0.99 %", "errors: 99", "requests: 10000")
	check("errors", "doubt: 1 %", "errors: 100", "requests: 10000")
	check("errors", "doubt: 20 failures of 10 requests", "errors: 20", "requests: 10")
	check("errors", "doubt: 10 of 10 requests failed", "errors: 10", "requests: 10")
	check("errors", "doubt: 2% of requests failed", "error share: 2%")
	check("errors", "unchecked", "errors/s: 0", "rate: 0")

	// The file states 100 MB; 8 % for units of 1000 or 1024 bytes.
	check("bytes", "fine", "bytes: 100.0 MB", "bytes/s: 1.08 MB/s", "duration: 100.0s")
	check("bytes", "contradiction: = 110 MB", "bytes: 100.0 MB", "bytes/s: 1.10 MB/s",
		"duration: 100.0s")
	check("bytes", "contradiction: ", "bytes: 100.0 MB", "bytes/s: 0.90 MB/s",
		"duration: 100.0s")
	check("bytes", "fine", "bytes: 1.84 MB", "size: 1000.0 B", "requests: 2000")
	check("bytes", "contradiction: ", "bytes: 1.82 MB", "size: 1000.0 B", "requests: 2000")
	// Failures may have had no body.
	check("bytes", "fine", "bytes: 1.0 MB", "size: 1000 B", "requests: 2000", "errors: 1000")

	check("little", "fine", "rate: 1000.0", "mean: 80.0ms", "connections: 100") // 80 of 100
	check("little", "doubt: 79 requests", "rate: 1000.0", "mean: 79.0ms", "connections: 100")
	check("little", "fine", "rate: 1000.0", "mean: 105.0ms", "connections: 100", "model=closed")
	check("little", "contradiction: 106 requests", "rate: 1000.0", "mean: 106.0ms",
		"connections: 100", "model=closed")
	check("little", "fine", "rate: 1000.0", "mean: 10.0ms", "think: 90ms", "connections: 100",
		"model=closed")

	check("overload", "fine", "offered: 10000", "rate: 9900.0")
	check("overload", "doubt: is 98.9 %", "offered: 10000", "rate: 9889.0")
	check("overload", "doubt: ", "offered: 10000", "rate: 9500.0")
	check("overload", "note: ", "offered: 10000", "rate: 9499.0")
}

// TestLimitsOfTableRules checks both sides of the limits of rules about several results.
func TestLimitsOfTableRules(t *testing.T) {
	check := func(name, want string, rows ...[]string) {
		t.Helper()
		tableRule(t, name, want, rows...)
	}
	r := func(cells ...string) []string { return cells }
	check("windows", "fine", r("a", "duration: 10.0s"))
	check("windows", "doubt: only a 9.90 s", r("a", "duration: 9.9s"), r("b", "duration: 29.7s"))
	check("windows", "doubt: longest run took 3 times", r("a", "duration: 9.9s"),
		r("b", "duration: 29.8s"))

	check("cpu", "unchecked", r("a", "cpu: 78%"))
	check("cpu", "fine", r("a", "cpu: 195%", "rate: 10"), r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "doubt: a 194%, less than half of the available CPU (b in \"t\" (line 7) used "+
		"390%)", r("a", "cpu: 194%", "rate: 10"), r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "fine", r("a", "cpu: 194%", "rate: 10", "model=open"),
		r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "fine", r("a", "cpu: 194%"), r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "doubt: (the cores that the file states)", r("a", "cpu: 194%", "cores: 4",
		"rate: 10"))
	check("cpu", "fine", r("a", "cpu: 420%", "cores: 4"))
	check("cpu", "contradiction: 422%", r("a", "cpu: 422%", "cores: 4"))

	k6 := func(iteration, least string) []string {
		return r("a", "rate: 100.0", "min: 10ms", "iteration mean: "+iteration,
			"iteration min: "+least, "users: 7")
	}
	check("think time", "doubt: about 50.0 ms", k6("100ms", "60ms"))
	check("think time", "fine", k6("90ms", "59ms")) // 49 ms
	check("think time", "fine", k6("202ms", "110ms"))

	check("sums", "unchecked", r("a", "requests: 10"), r("Total", "requests: 12"))
	check("sums", "contradiction: 25 requests", r("Total", "requests: 24"),
		r("a", "requests: 10"), r("b", "requests: 15"))
	check("sums", "contradiction: 3 errors", r("a", "errors: 1"), r("b", "errors: 2"),
		r("all", "errors: 2"))

	check("plateau", "unchecked", r("a", "rate: 97401"), r("b", "rate: 97011"),
		r("c", "rate: 96803"), r("d", "rate: 96222"))
	check("relative", "note: c is 1 by definition", r("a", "rate: 1000.0"),
		r("b", "rate: 505.0", "relative: 50.0%"),
		r("c", "rate: 1000.0", "relative: 1.00"))
}

func TestWordsOfFactors(t *testing.T) {
	for f, want := range map[float64]string{1.95: "1.95 times as many", 1.94: "94 % more",
		1: "0 % less", 0.5: "50 % less", 0.1: "90 % less", 0.08: "one 12.5th of it"} {
		if got := times(f, 1); got != want {
			t.Errorf("times(%v, 1) = %q, want %q", f, got, want)
		}
	}
	for share, want := range map[float64]string{1.234: "123 %", 1: "100 %", 0.1234: "12.3 %",
		0.1: "10 %", 0.0999: "10 %", 0.01234: "1.2 %", -0.1056: "-10.6 %"} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %q, want %q", share, got, want)
		}
	}
	for n, want := range map[float64]string{1e9: "1 GB", 999.9e6: "1e+03 MB", 1e6: "1 MB",
		1e3: "1 kB", 999: "999 B"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%v) = %q, want %q", n, got, want)
		}
	}
}
