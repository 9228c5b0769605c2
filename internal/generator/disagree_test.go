package generator

import (
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

// closed100 is a closed load of ours: 10,000 good answers in 10 s after a lead.
func closed100() *record.Load {
	d := record.Dist{Count: 10000, P50Ns: 1 * ms, P99Ns: 5 * ms, MaxNs: 9 * ms, HDR: "x"}
	return &record.Load{Model: record.Closed, Connections: 10, WindowNs: 10e9, LeadInNs: 1e9,
		Done: 10000, Answered: 10000, Scheduled: 10000, ThroughputPerS: 1000,
		ResponseTime: d, ServiceTime: d}
}

func said(all []Disagreement) (out []string) {
	for _, d := range all {
		out = append(out, d.Text)
	}
	return out
}

// The same thing with other numbers is of the same kind, and nothing else is.
func TestKindsOfDisagreement(t *testing.T) {
	kinds := func(perS float64, p99 int64) (out []string) {
		b := closed100()
		b.Driver, b.ThroughputPerS, b.ResponseTime.P99Ns = "jmeter", perS, p99
		for _, d := range Disagree(closed100(), b) {
			out = append(out, d.Kind)
		}
		return out
	}
	first, second := kinds(500, 40*ms), kinds(700, 50*ms)
	if !slices.Equal(first, second) || len(first) != 4 ||
		len(slices.Compact(slices.Sorted(slices.Values(first)))) != 4 {
		t.Errorf("kinds are %q and %q", first, second)
	}
}

func TestDisagree(t *testing.T) {
	// check compares ours with what another tool's load is after a change; wants are parts of the
	// sentences, in order, of which there are as many.
	check := func(driver string, change func(*record.Load), wants ...string) {
		t.Helper()
		b := closed100()
		b.Driver = driver
		change(b)
		got := said(Disagree(closed100(), b))
		ok := len(got) == len(wants)
		for i := range min(len(got), len(wants)) {
			ok = ok && strings.Contains(got[i], wants[i])
		}
		if !ok {
			t.Errorf("%s:\n%s\nwant\n%s", driver, strings.Join(got, "\n"),
				strings.Join(wants, "\n"))
		}
	}
	check("wrk 4.1.0", func(*record.Load) {}) // they agree, whatever the tool is like
	check("wrk 4.1.0", func(l *record.Load) { l.ThroughputPerS = 960 })
	check("wrk 4.1.0", func(l *record.Load) { l.ServiceTime.P99Ns = 1 }) // closed: not looked at
	check("wrk 4.1.0", func(l *record.Load) { l.ThroughputPerS = 940 },
		"throughput: prony 1000/s, wrk 4.1.0 940/s (0.94 of it)")
	// 300 of 10,000 were 503s: what wrk itself would have counted.
	check("wrk 4.1.0", func(l *record.Load) {
		l.Done, l.Errors.Status, l.Errors.Timeout = 9700, 299, 1
	}, "failed requests: prony 0.0 %, wrk 4.1.0 3.0 %",
		"wrk 4.1.0 itself counts answers whatever their status: 3.0 % of its requests",
		"wrk 4.1.0 leaves answers later than its timeout out")
	check("wrk", func(l *record.Load) {
		l.ResponseTime.P99Ns, l.ServiceTime.HDR = 40*ms, ""
	}, "p99 of response time: prony 5ms, wrk 40ms", "wrk fills its percentiles up with invented")
	check("hey", func(l *record.Load) {
		l.ResponseTime.P50Ns, l.LeadInNs, l.Generator.CPUShare = 2*ms, 0, 0.97
		l.ServiceTime.Count = heyMost
	}, "p50 of response time: prony 1ms, hey 2ms", "hey used 97.0 % of its cores",
		"hey counts from its first request", "hey keeps its first million answers")
	check("k6 1.8.1", func(l *record.Load) {
		l.Model, l.ResponseTime, l.Censored, l.RatePerS = record.Open, record.Dist{}, 500, 2000
	}, "prony offered a closed load, k6 1.8.1 an open one", "starts its clock when a request is",
		"came to 50.0 % of the rate", "had no answer to 500 requests", "leaves waiting for a conn")
	check("wrk2 4.0.0", func(l *record.Load) { l.ResponseTime.MaxNs, l.LeadInNs = 20*ms, 0 },
		"largest of response time: prony 9ms, wrk2 4.0.0 20ms", "wakes up in whole milliseconds",
		"leaves its first 10 s out")
	check("jmeter", func(l *record.Load) { l.Connections = 20 },
		"prony used 10 connections, jmeter 20", "counts whole milliseconds", "a Java machine")
	check("oha", func(l *record.Load) { l.Protocol = "h2c" }, "prony spoke HTTP/1.1, oha h2c")
	// Unknown values are no difference.
	check("h2load", func(l *record.Load) {
		l.ResponseTime.P50Ns, l.ResponseTime.P99Ns, l.ResponseTime.MaxNs = 0, 0, 0
		l.Model, l.Connections, l.ThroughputPerS = "", 0, 0
	})
	if got := Disagree(closed100(), closed100()); got != nil {
		t.Errorf("a load disagrees with itself: %q", got)
	}
}

// Of two open loads the rates and the arrivals must be the same, and a clock that both have is
// used.
func TestDisagreeOfOpenLoads(t *testing.T) {
	a, b := closed100(), closed100()
	a.Model, b.Model, b.Driver = record.Open, record.Open, "h2load 1.52.0"
	a.RatePerS, b.RatePerS, a.Arrivals, b.Arrivals = 1000, 1020, "poisson", "constant"
	b.ResponseTime, b.ServiceTime.P99Ns = record.Dist{}, 50*ms
	got := strings.Join(said(Disagree(a, b)), "\n")
	for _, w := range []string{"asked for 1000/s, h2load 1.52.0 for 1020/s", "prony had poisson",
		"p99 of service time: prony 5ms, h2load 1.52.0 50ms", "h2load 1.52.0 starts its clock",
		"h2load 1.52.0 came to 98.0 %", "paces each connection for itself"} {
		if !strings.Contains(got, w) {
			t.Errorf("%s\nlacks %q", got, w)
		}
	}
}
