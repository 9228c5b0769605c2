package summary

import (
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/stats"
)

// TestTextOfStalls checks that response times without stalls are below those with stalls, each
// unknown one with its reason.
func TestTextOfStalls(t *testing.T) {
	check := func(s *record.Stalls, free []record.StallFree, want string) {
		t.Helper()
		l := open()
		l.Stalls, l.StallFree = s, free
		text := textOf(t, of(l), Options{})
		_, text, found := strings.Cut(text, "  stalls       ")
		if want == "" {
			if found {
				t.Errorf("without a record: %s", text)
			}
			return
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s, want\n%s", text, want)
		}
	}
	check(nil, nil, "")
	check(&record.Stalls{Way: "x"}, nil, "") // the sample was too large
	check(&record.Stalls{Missing: "no right"}, nil, "not recorded: no right\n")
	s := &record.Stalls{Way: "x", TimeNs: 10e9, StalledNs: 4.1e8, Causes: []record.StallCause{
		{Cause: "hypervisor", Ns: 3e8}, {Cause: "process", Name: "cc1", Ns: 1e8},
		{Cause: "kernel", Ns: 1e7}, {Cause: "process", Name: "sh", Ns: 1e6}}}
	const causes = "               caused by hypervisor (3.0 %), process cc1 (1.0 %), kernel " +
		"(0.1 %)\n"
	check(s, []record.StallFree{{Quantile: 0.5, Ns: 56e3, RawNs: 57e3, KeptShare: 0.97},
		{Quantile: 0.99, Ns: 230e3, RawNs: 11e6, KeptShare: 0.93},
		{Quantile: 0.999, Ns: 1.2e6, RawNs: 16e6, KeptShare: 0.93,
			LowestNs: 800e3, Unknown: stats.UnrecordedStalls}},
		"the machine stalled 4.1 % of the time; without the 7.0 % of requests near stalls:\n   "+
			"            p50 56.0 µs, p99 230 µs\n               unknown without stalls: p99.9 "+
			"between 800 µs and 1.20 ms (stalls too short to record)\n"+causes)
	check(s, []record.StallFree{{Quantile: 0.99, Ns: 5.332e6, KeptShare: 0.95},
		{Quantile: 0.999, Ns: 5.087e6, KeptShare: 0.9}},
		"the machine stalled 4.1 % of the time; without the 5.0 % of requests near stalls:\n   "+
			"            p99 5.33 ms\n"+
			"               unknown without stalls: p99.9 (below a lower percentile)\n"+causes)
	check(s, []record.StallFree{{Quantile: 0.5, KeptShare: 0.3, Unknown: stats.TooMuchExcluded},
		{Quantile: 0.9, KeptShare: 0.3, Unknown: stats.TooMuchExcluded}},
		"the machine stalled 4.1 % of the time\n"+
			"               unknown without stalls: p50, p90 (too much excluded)\n"+causes)
}

// TestTextOfClosedStalls checks the throughput of a closed load in the time in which all cores ran.
func TestTextOfClosedStalls(t *testing.T) {
	check := func(x *record.WithoutStalls, want string) {
		t.Helper()
		l := open()
		l.Model, l.WithoutStalls = record.Closed, x
		l.Stalls = &record.Stalls{Way: "x", TimeNs: 10e9,
			Causes: []record.StallCause{{Cause: "hypervisor", Ns: 3e8}}}
		_, text, _ := strings.Cut(textOf(t, of(l), Options{}), "  stalls       ")
		if !strings.HasPrefix(text, want+"\n               caused by hypervisor (3.0 %)\n") {
			t.Errorf("%s, want\n%s", text, want)
		}
	}
	check(&record.WithoutStalls{PerS: 53390, LowestPerS: 53100, HighestPerS: 53620,
		RanShare: 0.959},
		"the machine stalled 4.1 % of the time\n               while all cores ran: 53.4k "+
			"requests/s (53.1k to 53.62k)")
	check(&record.WithoutStalls{PerS: 53390, RanShare: 0.959, Unknown: stats.StallsDepend},
		"the machine stalled 4.1 % of the time\n               throughput is unknown without "+
			"stalls (stalls depend on the service)")
}

// A percentile that too few independent arrivals support is not printed without stalls either.
func TestTextOfStallsWithoutRefusedPercentiles(t *testing.T) {
	l := open()
	l.Autocorrelation.EffectiveShare = 0.1 // a thousand, and p99.9 needs 3,838
	l.Stalls = &record.Stalls{Way: "x", TimeNs: 10e9}
	l.StallFree = []record.StallFree{{Quantile: 0.99, Ns: 230e3, KeptShare: 1},
		{Quantile: 0.999, Ns: 1.2e6, KeptShare: 1}}
	_, text, _ := strings.Cut(textOf(t, of(l), Options{}), "  stalls       ")
	if !strings.Contains(text, "p99 230 µs") || strings.Contains(text, "p99.9") {
		t.Error(text)
	}
}
