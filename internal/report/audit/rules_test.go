package audit

import (
	"slices"
	"strings"
	"testing"
)

// rowOf returns a row of printed cells, each "quantity value unit".
func rowOf(t *testing.T, name string, cells ...string) *Row {
	t.Helper()
	r := &Row{Name: name, Line: 7, Values: map[Quantity]Value{}}
	for _, c := range cells {
		q, text, ok := strings.Cut(c, ": ")
		if !ok {
			switch key, value, _ := strings.Cut(c, "="); key {
			case "tool":
				r.Tool = value
			case "model":
				r.Model = value
			default:
				t.Fatalf("cell %q", c)
			}
			continue
		}
		v, ok := parseValue(text, "", Quantity(q))
		if !ok {
			t.Fatalf("cell %q is not a value", c)
		}
		if strings.HasPrefix(q, "asked ") || q == "offered" {
			v.Slack = 0
		}
		v.Line = 7
		r.Values[Quantity(q)] = v
	}
	return r
}

func ruleNamed(t *testing.T, name string) *rule {
	t.Helper()
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("there is no rule %q", name)
	}
	return &rules[i]
}

// says checks the findings of a rule: none for "fine", missing values for "unchecked", else one of
// the severity with the words.
func says(t *testing.T, name string, found []Finding, checked bool, want string) {
	t.Helper()
	severity, words, _ := strings.Cut(want, ": ")
	switch {
	case severity == "unchecked":
		if checked || len(found) > 0 {
			t.Errorf("%s is checked (%v) and finds %+v, want it unchecked", name, checked, found)
		}
		return
	case !checked:
		t.Errorf("%s is not checked, want %s", name, want)
	case severity == "fine":
		if len(found) > 0 {
			t.Errorf("%s finds %+v, want nothing", name, found)
		}
	case !slices.ContainsFunc(found, func(f Finding) bool {
		return f.Severity == Severity(severity) && strings.Contains(f.Cases[0].Arithmetic, words)
	}):
		t.Errorf("%s finds %+v, want %s", name, found, want)
	}
}

// rowRule applies a rule to one row.
func rowRule(t *testing.T, name, want string, cells ...string) {
	t.Helper()
	r := ruleNamed(t, name)
	d := &Document{Tables: []*Table{{Rows: []*Row{rowOf(t, "a", cells...)}}}}
	found, checked := r.apply(d)
	says(t, name+" "+strings.Join(cells, ", "), found, checked, want)
}

func TestCountsRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	// 1000/s × 30 s = 30,000
	check("count", "fine", "rate: 1000.0", "duration: 30.0s", "requests: 30000")
	// 900 fewer is 3 %: above 2, below 5
	check("count", "doubt: 29,100", "rate: 970.0", "duration: 30.0s", "requests: 30001")
	check("count", "contradiction: 2 times as many", "rate: 2000.0", "duration: 30.0s",
		"requests: 30001")
	// 2k/s may be 1k to 3k
	check("count", "fine", "rate: 2k", "duration: 30s", "requests: 30000")
	// the rate is of the 20,000 good ones
	check("count", "fine", "rate: 666.7", "duration: 30.0s", "requests: 30000", "errors: 10000")
	check("count", "unchecked", "rate: 1000.0", "requests: 30000")

	check("asked requests", "fine", "asked requests: 10000", "rate: 792", "duration: 12.619s")
	check("asked requests", "contradiction: 10 times as many", "asked requests: 100000",
		"rate: 38356", "duration: 26.071s")
	check("asked requests", "contradiction: 40 % less", "asked requests: 100", "requests: 60")
	// hey sends 60 × 1 on 60 connections of 100
	check("asked requests", "fine", "asked requests: 100", "requests: 60", "connections: 60",
		"tool=hey")
	check("asked requests", "unchecked", "asked requests: 100", "rate: 60")

	check("asked duration", "fine", "asked duration: 30s", "duration: 30.05s")
	check("asked duration", "contradiction: the configured duration is 30.0 s",
		"asked duration: 30s",
		"duration: 10.10s")
	check("asked duration", "doubt: ", "asked duration: 30s", "duration: 29.1s")
	check("asked duration", "doubt: ", "asked duration: 30s", "duration: 61s")
	// 10,000 / 1000/s = 10 s
	check("asked duration", "contradiction: = 9.99 s", "asked duration: 30s", "requests: 10000",
		"rate: 1001.0")
	check("asked duration", "unchecked", "asked duration: 30s")

	// 432.44/s × 800.7 s = 346,255; × 1.43 s = 618 of 700
	check("iterations", "fine", "iterations: 346255", "iterations/s: 432.441882",
		"duration: 13m20.7s", "users: 700", "iteration mean: 1.43s")
	check("iterations", "contradiction: 618 users", "iterations: 346255",
		"iterations/s: 432.441882", "duration: 13m20.7s", "users: 500", "iteration mean: 1.43s")
	check("iterations", "contradiction: 346,256 iterations", "iterations: 246255",
		"iterations/s: 432.441882", "duration: 13m20.7s")

	check("bytes", "fine", "bytes: 428 MB", "bytes/s: 534 kB/s", "duration: 13m20.7s")
	check("bytes", "contradiction: = 428 MB", "bytes: 328 MB", "bytes/s: 534 kB/s",
		"duration: 13m20.7s")
	check("bytes", "contradiction: at least", "bytes: 1.1 MB", "size: 1024 B", "requests: 2000")
	check("bytes", "fine", "bytes: 3.1 MB", "size: 1024 B", "requests: 2000") // with headers
	check("bytes", "unchecked", "bytes: 3.1 MB", "duration: 3s")
}

func TestLittleRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	// 110,638.58/s × 885.05 µs = 97.9
	check("little", "fine", "rate: 110638.58", "mean: 885.05us", "connections: 100", "model=closed")
	check("little", "contradiction: 196 requests", "rate: 221277", "mean: 885.05us",
		"connections: 100", "model=closed")
	check("little", "doubt: 196 requests", "rate: 221277", "mean: 885.05us", "connections: 100")
	check("little", "doubt: 196 requests", "rate: 221277", "mean: 885.05us", "connections: 100",
		"tool=wrk", "model=closed")
	check("little", "unchecked", "rate: 221277", "mean: 885.05us", "connections: 100",
		"tool=h2load")
	check("little", "fine", "rate: 221277", "mean: 885.05us", "connections: 100", "streams: 2",
		"model=closed")
	// 34,909/s × 2.9 ms = 101.2, and 2.8 ms rounds to it: 97.7
	check("little", "fine", "rate: 34909", "mean: 2.9ms", "connections: 100", "model=closed")
	check("little", "doubt: 49 requests", "rate: 50000", "mean: 0.980ms", "connections: 100")
	// half of the requests took 30 ms: a mean of at least 15 ms, × 50,001/s = 750 (p50 ≥ 29.9)
	check("little", "contradiction: at least 748 requests under way", "rate: 50001", "p50: 30.0ms",
		"connections: 64", "model=closed")
	check("little", "unchecked", "rate: 50001", "p50: 30.0ms", "connections: 64", "model=open")
}

func TestDistributionRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	check("order", "fine", "min: 1ms", "p50: 2ms", "mean: 2ms", "p99: 2ms", "max: 2ms")
	check("order", "contradiction: p50 4.9ms is above p99 1.8ms", "p50: 4.9 ms", "p99: 1.8 ms")
	check("order", "contradiction: mean 30ms is above max 20ms", "mean: 30ms", "max: 20ms")
	check("order", "contradiction: min 4ms is above mean 1ms", "min: 4ms", "mean: 1ms")
	check("order", "fine", "p99: 2.0ms", "max: 1.9ms") // rounded
	check("order", "unchecked", "p99: 2.0ms")
	check("order", "contradiction: p50 12ms is above p99 10ms", "p50: 12ms", "p99: 10ms")
	check("order", "contradiction: p50 1.2ms is above p99 1.0ms", "p50: 1.2ms", "p99: 1.0ms")
	check("order", "fine", "p50: 11ms", "p99: 10ms") // both may be 10.5, or 10.99 and 11.0
	check("order", "fine", "p50: 3ms", "p99: 2.1ms") // 3 may be rounded up

	// .5 × 0 + .49 × 2 + .01 × 10 = 1.08 ms at least
	check("mean", "fine", "mean: 1.80ms", "p50: 2.00ms", "p99: 10.0ms", "max: 50ms")
	check("mean", "contradiction: a mean of at least 1.07 ms", "mean: 0.50ms", "p50: 2.00ms",
		"p99: 10.0ms")
	// .5 × 2.01 + .49 × 10.1 + .01 × 52 = 6.474 ms at most
	check("mean", "contradiction: at most 6.47 ms", "mean: 7.00ms", "p50: 2.00ms", "p99: 10.0ms",
		"max: 51ms")
	check("mean", "fine", "mean: 0.50ms", "p50: 2.00ms", "p99: 10.0ms", "requests: 100")
	// (29.9 − .99 × 10.1) / .01 = 1990 ms
	check("mean", "note: at least 1.99 s on average", "mean: 30.0ms", "p50: 2.00ms", "p99: 10.0ms")
	check("mean", "unchecked", "mean: 30.0ms", "max: 40ms")

	check("deviation", "fine", "mean: 10.0ms", "stdev: 5.0ms", "p50: 7.0ms")
	check("deviation", "contradiction: further apart", "mean: 20.0ms", "stdev: 5.0ms", "p50: 7.0ms")
	// (1.01 ms × √99 = 10.05 ms) × 1.05 are 10.6 ms
	check("deviation", "contradiction: 19.8 ms above the mean", "mean: 400.1ms", "stdev: 1.00ms",
		"max: 420.1ms", "requests: 100")
	check("deviation", "fine", "mean: 400.1ms", "stdev: 1.00ms", "max: 410.1ms", "requests: 100")
	check("deviation", "unchecked", "mean: 20.0ms", "stdev: 5.0ms")

	check("flat", "fine", "p50: 1.0ms", "p99: 1.1ms")
	check("flat", "unchecked", "p50: 1.0ms", "p95: 1.0ms", "requests: 19")
	check("flat", "doubt: p50 = p99 = 1.0ms", "p50: 1.0ms", "p99: 1.0ms")
	check("flat", "fine", "p50: 1.0ms", "p75: 1.0ms")
}

func TestDoubtsRules(t *testing.T) {
	check := func(name, want string, cells ...string) {
		t.Helper()
		rowRule(t, name, want, cells...)
	}
	check("errors", "fine", "errors: 0", "requests: 1000")
	check("errors", "fine", "errors: 1", "requests: 745507")
	check("errors", "note: 2270 of 1385020 requests failed, 0.16 %", "errors: 2270",
		"requests: 1385020", "error share: 0.16%")
	check("errors", "doubt: 25.8 % of all", "errors/s: 17,656", "rate: 50,870")
	check("errors", "contradiction: but the file states 0.16%", "errors: 22700",
		"requests: 1385020",
		"error share: 0.16%")
	check("errors", "contradiction: 990 good + 20 failed", "errors: 20", "good: 990",
		"requests: 1000")
	check("errors", "unchecked", "errors: 20")

	check("tail", "fine", "max: 48ms", "p99: 1ms")
	check("tail", "note: 38 times p99", "max: 89.174ms", "p99: 2.331ms", "duration: 10.1s")
	// 1339 ms of 27.849 s are 4.8 %; 1339 − 278 = 1060 ms
	check("tail", "doubt: up to 1.06 s", "max: 1339ms", "p99: 52.3ms", "duration: 27.849s",
		"rate: 3600")
	check("tail", "note: (TCP takes 3 s to replace lost SYN packets)", "max: 3.01s", "p99: 5ms")
	check("tail", "unchecked", "max: 3.01s", "p50: 5ms")

	check("samples", "fine", "requests: 381", "p99: 5ms")
	check("samples", "doubt: needs 381", "requests: 380", "p99: 5ms")
	check("samples", "unchecked", "requests: 380", "p90: 5ms")

	// 30 s × (1 − .5) = 15 s
	check("overload", "doubt: = 15.0 s behind its schedule, 7.50 s", "offered: 20000",
		"rate: 10001.0",
		"asked duration: 30s", "p99: 14.9s")
	check("overload", "note: ", "offered: 20000", "rate: 10001.0")
	check("overload", "doubt: is 97 %", "offered: 20000", "rate: 19401.0", "p99: 1s")
	check("overload", "fine", "offered: 20000", "rate: 19901.0", "p99: 1s")
	// 18,001/s and 60,000 / 30 s failed
	check("overload", "fine", "offered: 20000", "rate: 18001.0", "errors: 60000", "duration: 30s")
	check("overload", "unchecked", "rate: 18001.0")
}

// tableRule applies a rule to a table of rows; a first row "spread" gives it a spread.
func tableRule(t *testing.T, name, want string, rows ...[]string) {
	t.Helper()
	table := &Table{Title: "t", Line: 3, context: "Results (best of 3 executions)"}
	for _, r := range rows {
		table.Rows = append(table.Rows, rowOf(t, r[0], r[1:]...))
	}
	table.spread = rows[0][0] == "spread"
	found, checked := ruleNamed(t, name).apply(&Document{Tables: []*Table{table}})
	says(t, name, found, checked, want)
}

func TestThinkTimeRule(t *testing.T) {
	check := func(name, want string, rows ...[]string) {
		t.Helper()
		tableRule(t, name, want, rows...)
	}
	r := func(cells ...string) []string { return cells }

	k6 := func(name, rate, mean, iteration string) []string {
		return r(name, "rate: "+rate, "mean: "+mean, "min: 1.26ms", "iteration mean: "+iteration,
			"iteration min: 1s", "users: 700")
	}
	// 1.43 / 1.60 − 1 = −10.6 %
	check("think time", "doubt: by -10.5 %; the change of iteration times from 1.43s to 1.6s "+
		"alone explains 1.43s / 1.6s − 1 = -10.6 %", k6("a", "1729.77", "338.93ms", "1.43s"),
		k6("b", "1548.22", "461.38ms", "1.6s"))
	check("think time", "doubt: about 999 ms", k6("a", "1729.77", "338.93ms", "1.43s"))
	check("think time", "fine", r("a", "rate: 100.0", "min: 900ms", "iteration mean: 1.43s",
		"iteration min: 1s", "users: 700"))
	// 100 / (1 s + 0.25 s) = 80/s
	check("think time", "doubt: 80/s, which equals the stated rate",
		r("a", "users: 100", "think: 1000 ms",
			"mean: 250 ms", "rate: 80.0"))
	check("think time", "contradiction: but the file states 160.0/s", r("a", "users: 100",
		"think: 1001 ms", "mean: 249 ms", "rate: 160.0"))
	check("think time", "unchecked", r("a", "users: 100", "rate: 160.0"))
}

func TestTableRules(t *testing.T) {
	check := func(name, want string, rows ...[]string) {
		t.Helper()
		tableRule(t, name, want, rows...)
	}
	r := func(cells ...string) []string { return cells }

	check("windows", "doubt: a 2.23 s; the longest run took 12 times", r("a", "duration: 2.232s"),
		r("b", "duration: 27.8s"))
	check("windows", "doubt: a 5.00 s", r("a", "requests: 5000", "rate: 1000"))
	check("windows", "fine", r("a", "duration: 12s"), r("b", "duration: 90s"))
	check("windows", "unchecked", r("a", "rate: 12"))

	check("best of",
		"doubt: “best of 3 executions”: for normally distributed runs, this best run is 0.85",
		r("a", "rate: 12"))

	check("repetitions", "note: 2 rates", r("a", "rate: 12"), r("b", "rate: 13"))
	check("repetitions", "fine", r("spread", "rate: 12"), r("b", "rate: 13"))
	check("repetitions", "unchecked", r("a", "rate: 12"))

	check("sums", "fine", r("a", "requests: 10"), r("b", "requests: 15"), r("Total",
		"requests: 25"))
	check("sums", "contradiction: add up to 25 requests, but the file states 27",
		r("a", "requests: 10"),
		r("b", "requests: 15"), r("Total", "requests: 27"))
	check("sums", "unchecked", r("a", "requests: 10"), r("b", "requests: 15"))

	check("cpu", "contradiction: 450% of CPU used on 4 cores", r("a", "cpu: 450%", "cores: 4"))
	check("cpu", "doubt: a 78%, less than half", r("a", "cpu: 78%", "rate: 10"),
		r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "fine", r("a", "cpu: 378%", "rate: 10"), r("b", "cpu: 390%", "rate: 10"))
	check("cpu", "unchecked", r("a", "rate: 10"))
}

func TestComparisonRules(t *testing.T) {
	check := func(name, want string, rows ...[]string) {
		t.Helper()
		tableRule(t, name, want, rows...)
	}
	r := func(cells ...string) []string { return cells }

	check("ranks", "doubt: in 1 of 2 cases, rows with neighboring ranks differ by less than 10 "+
		"%: b 1372/s and a 1364/s (0.59 %)",
		r("a", "rate: 1364"), r("b", "rate: 1372"), r("c", "rate: 606"))
	check("ranks", "fine", r("a", "rate: 110"), r("b", "rate: 100")) // 10.0 % is not less
	check("ranks", "unchecked", r("a", "rate: 110"), r("a", "rate: 109"))
	check("ranks", "unchecked", r("spread", "rate: 110"), r("b", "rate: 109"))

	check("plateau", "doubt: 5 of 6", r("a", "rate: 97401"), r("b", "rate: 97011"),
		r("c", "rate: 96803"), r("d", "rate: 96222"), r("e", "rate: 96001"), r("f", "rate: 50001"))
	check("plateau", "fine", r("a", "rate: 97401"), r("b", "rate: 97011"),
		r("c", "rate: 96803"), r("d", "rate: 96222"), r("e", "rate: 95001"), r("f", "rate: 50001"))
	check("plateau", "unchecked", r("a", "rate: 97k"), r("b", "rate: 97k"), r("c", "rate: 97k"),
		r("d", "rate: 97k"), r("e", "rate: 96k"))

	// 3 of 5 in 201 places: 10 / 201² = 0.0002 groups by chance
	check("identical", "doubt: memory 495 MB, is in 3 rows: a, b, c", r("a", "memory: 495 MB"),
		r("b", "memory: 495 MB"), r("c", "memory: 495 MB"), r("d", "memory: 301 MB"),
		r("e", "memory: 501 MB"))
	check("identical", "fine", r("a", "memory: 495 MB"), r("b", "memory: 495 MB"),
		r("d", "memory: 301 MB"), r("e", "memory: 501 MB"))
	// rounded to thousands, coincidences mean nothing
	check("identical", "unchecked", r("a", "rate: 21k"), r("b", "rate: 21k"), r("c", "rate: 21k"))

	check("relative", "contradiction: 500/s / 1000/s = 50 %, but the file states 60%",
		r("a", "rate: 1000", "relative: 100%"), r("b", "rate: 500", "relative: 60%"))
	check("relative", "note: a is 1 by definition", r("a", "rate: 1000", "relative: 100%"),
		r("b", "rate: 501", "relative: 50%"))
	check("relative", "unchecked", r("a", "rate: 1000"), r("b", "rate: 501"))
}
