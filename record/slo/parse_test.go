package slo

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		text string
		want Objective
		back string // canonical; empty: text
	}{
		{"p99<50ms", Objective{Metric: "p99", Quantile: 0.99, Op: "<", Limit: 50e6}, ""},
		{"p99.9<=1.5s", Objective{Metric: "p99.9", Quantile: 0.999, Op: "<=", Limit: 1.5e9}, ""},
		{"p99.90<5m", Objective{Metric: "p99.9", Quantile: 0.999, Op: "<", Limit: 300e9},
			"p99.9<5m"},
		{"p5<1us", Objective{Metric: "p5", Quantile: 0.05, Op: "<", Limit: 1e3}, "p5<1µs"},
		{"p05<1ms", Objective{Metric: "p5", Quantile: 0.05, Op: "<", Limit: 1e6}, "p5<1ms"},
		{"p0.5<1ms", Objective{Metric: "p0.5", Quantile: 0.005, Op: "<", Limit: 1e6}, ""},
		{" mean < 1ms ", Objective{Metric: "mean", Op: "<", Limit: 1e6}, "mean<1ms"},
		{"max<1m30s", Objective{Metric: "max", Op: "<", Limit: 90e9}, ""},
		{"max<1ns", Objective{Metric: "max", Op: "<", Limit: 1}, ""},
		{"max<1099511627776ns", Objective{Metric: "max", Op: "<", Limit: 1 << 40},
			"max<18m19.511627776s"},
		{"errors<0.1%", Objective{Metric: "errors", Op: "<", Limit: 0.001}, ""},
		{"errors<0.07", Objective{Metric: "errors", Op: "<", Limit: 0.07}, "errors<7%"},
		{"errors<=0", Objective{Metric: "errors", Op: "<=", Limit: 0}, "errors<=0%"},
		{"delivered>99%", Objective{Metric: "delivered", Op: ">", Limit: 0.99}, ""},
		{"throughput>=1000", Objective{Metric: "throughput", Op: ">=", Limit: 1000},
			"throughput>=1000/s"},
		{"throughput>0.5/s", Objective{Metric: "throughput", Op: ">", Limit: 0.5}, ""},
		{"service.p90<2ms", Objective{Time: "service", Metric: "p90", Quantile: 0.9, Op: "<",
			Limit: 2e6}, ""},
		{"lag.max<2ms", Objective{Time: "lag", Metric: "max", Op: "<", Limit: 2e6}, ""},
		{"connect.mean<2ms", Objective{Time: "connect", Metric: "mean", Op: "<", Limit: 2e6}, ""},
		{"route GET /owners/{id} p99<5ms", Objective{Route: "GET /owners/{id}", Metric: "p99",
			Quantile: 0.99, Op: "<", Limit: 5e6}, ""},
		{`route "a,b <c>" service.p50<5ms`, Objective{Route: "a,b <c>", Time: "service",
			Metric: "p50", Quantile: 0.5, Op: "<", Limit: 5e6}, ""},
		{`route "plain" errors<1%`, Objective{Route: "plain", Metric: "errors", Op: "<",
			Limit: 0.01}, "route plain errors<1%"},
	} {
		got, err := Parse(row.text)
		if err != nil || len(got) != 1 || got[0] != row.want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", row.text, got, err, row.want)
			continue
		}
		back := row.back
		if back == "" {
			back = row.text
		}
		if s := got[0].String(); s != back {
			t.Errorf("Parse(%q).String() = %q, want %q", row.text, s, back)
		}
	}
}

func TestParseSeveral(t *testing.T) {
	const text = `p99<50ms,route "a,b" p50<1ms,errors<0.1%`
	got, err := Parse(" p99 < 50ms , route \"a,b\" p50<1ms,errors<0.1% ")
	if err != nil || Text(got) != text {
		t.Errorf("Parse: %q, %v, want %q", Text(got), err, text)
	}
}

func TestParseErrors(t *testing.T) {
	check := func(text string, parts ...string) {
		t.Helper()
		got, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, got)
			return
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Parse(%q): %q does not say %q", text, err, part)
			}
		}
	}
	check("", "empty", example)
	check("p99<5ms,", `parse objective ""`, "empty")
	check("p99", `parse objective "p99"`, "<, <=, >, >=")
	check("p99=5ms", "<, <=, >, >=")
	check("p99<5ms<6ms", `"p99<5ms" is not a metric`)
	check("q99<5ms", `"q99" is not a metric`, allMetrics, allTimes)
	check("p99.99999<5ms", "is not a metric")
	check("p100<5ms", `"p100" is not a metric`, "max")
	check("p0<5ms", "p0 lies below every answer")
	check("p<5ms", "is not a metric")
	check("p99<50", "the time 50 has no unit", "50ms")
	check("p99<0ms", "is not a time")
	check("p99<-1ms", "is not a time")
	check("p99<1h", "is not a time", "18m")              // 3600 s above 2^40 ns = 1100 s
	check("p99<1099511627777ns", "is not a time", "18m") // 2^40 + 1
	check("p99<5 parsecs", "is not a time")
	check("p99>5ms", "promised from above", "p99<")
	check("errors>1%", "promised from above", "errors<")
	check("throughput<5/s", "promised from below", "throughput>")
	check("delivered<5%", "promised from below")
	check("errors<5", "is not a share", "0.1%")
	check("errors<-1%", "is not a share")
	check("errors<1e-3", "is not a share")
	check("errors<101%", "is not a share")
	check("errors<0", "no share is below 0", "errors<=0%")
	check("errors<1", "1 is 1% or 100%; write the percent sign")
	check("delivered>=1.0", "1.0 is 1% or 100%; write the percent sign")
	check("delivered>100%", "no share is above 100%", "delivered>=100%")
	check("throughput>0/s", "is not a rate")
	check("throughput>10k/s", "is not a rate", "1000/s")
	check("service.errors<1%", "before times only")
	check("lag.throughput>1/s", "before times only")
	check("service.lag.p99<1ms", "is not a metric")
	check("route p99<1ms", "a route has a name and a metric")
	check(`route "" p99<1ms`, "name is empty")
	check(`route "x p99<1ms`, "a quote is not closed")
	check("route x lag.p99<1ms", "lag is not kept by route")
	check("route x connect.p99<1ms", "connect is not kept by route")
	check("route x throughput>1/s", "throughput is not kept by route")
	check("route x delivered>1%", "delivered is not kept by route")
}

// FuzzParse requires that no text makes Parse panic, and that the canonical text of accepted
// objectives has the same meaning and is stable.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"p99<50ms,errors<0.1%", "service.p99.9<=1.5s,delivered>=99.5%", "throughput>1000/s",
		`route "a,\"b" p50<1µs`, "route GET /x service.mean<2m", "errors<=0",
		`route "\xff" max<1ns`,
		"p0.0001<1ms", "errors<0.000000000000001", "route route x p99 p99<1ms", "lag.p5<3ns",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(Text(first))
		if err != nil || Text(again) != Text(first) || len(again) != len(first) {
			t.Fatalf("%q became %q, then %q, %v", text, Text(first), Text(again), err)
		}
		for i := range first {
			a, b := first[i], again[i]
			if d := a.Limit - b.Limit; d > 1e-11*a.Limit || d < -1e-11*a.Limit {
				t.Errorf("%q: limit %v became %v", text, a.Limit, b.Limit)
			}
			if b.Limit = a.Limit; a != b {
				t.Errorf("%q: %+v became %+v", text, a, b)
			}
			if a.Needs() < 1 {
				t.Errorf("%q needs %d", text, a.Needs())
			}
		}
	})
}
