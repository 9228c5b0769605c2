package summary

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// counting returns each of 1 to n microseconds once, so that ranks equal values.
func counting(t *testing.T, n int64) record.Dist {
	t.Helper()
	h := hdrhistogram.New(1, n*1000, 4) // four digits: values stay distinct
	for us := range n {
		if err := h.RecordValue((us + 1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return record.Dist{Count: n, MaxNs: n * 1000, MeanNs: 1, P50Ns: n * 500, P90Ns: n * 900,
		P99Ns: n * 990, P999Ns: n * 999, HDR: string(b)}
}

func p99Of(t *testing.T, r Report) Percentile {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var got struct{ Percentiles []Percentile }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Percentiles {
		if p.Distribution == "responseTime" && p.Name == "p99" {
			return p
		}
	}
	t.Fatalf("there is no p99 in %s", b.String())
	return Percentile{}
}

// TestPercentiles checks ends of intervals, which are ranks here, in microseconds. Of 10,000 the
// p99 has rank 9900; its interval reaches 1.96 sqrt(10000 x 0.99 x 0.01) = 19.501 ranks,
// 1/sqrt(share) times as far if only a share of the responses is independent.
func TestPercentiles(t *testing.T) {
	check := func(name string, effective float64, lo, hi float64, assumption, withheld string,
		change ...func(*Report)) {
		t.Helper()
		l := open()
		l.ResponseTime, l.Autocorrelation.EffectiveShare = counting(t, 10_000), effective
		r := of(l)
		for _, f := range change {
			f(&r)
		}
		p := p99Of(t, r)
		textOf(t, r, Options{}) // holds it to the width
		quoted := p.Ns != nil
		if p.Assumption != assumption || p.Withheld != withheld || quoted != (withheld == "") {
			t.Errorf("%s: assumes %q, withheld %q, ns %v", name, p.Assumption, p.Withheld, p.Ns)
		}
		if withheld != "" {
			if p.LoNs != nil || p.HiNs != nil {
				t.Errorf("%s: an interval of nothing: %+v", name, p)
			}
			return
		}
		const digits = 512 // the histogram's resolution near it, in ns
		if p.LoNs == nil || p.HiNs == nil || *p.LoNs-lo*1000 > digits || *p.HiNs-hi*1000 > digits ||
			lo*1000-*p.LoNs > digits || hi*1000-*p.HiNs > digits {
			t.Errorf("%s: it is %+v, want %v to %v µs", name, p, lo, hi)
		}
	}
	const free, assumed = "nothing", "independence"
	check("unknown", 0, 9880, 9920, assumed, "")  // 9880.5 and 9919.5, outwards
	check("independent", 1, 9880, 9920, free, "") //
	check("a half is chance", 0.5, 9880, 9920, free, "")
	check("a quarter", 0.25, 9860, 9940, free, "") // 9900 -+ 39.003 is 9860.997 and 9939.003
	// 64 independent ones of 381 in 2 s: (381 + 3 sqrt(381))/64 x 2 s is 13.7 s.
	check("too few", 0.0064, 0, 0, free,
		"an interval needs n ≥ 381 independent responses; n was 64 (raise --duration to 14s)")
	check("unanswered", 1, 0, 0, free,
		"200 of 10,200 requests got no response, more than the share of requests above this "+
			"percentile",
		func(r *Report) { r.Load.Censored = 200 })
	check("above capacity", 1, 0, 0, free, "capacity: the backlog of requests grows by 812.3/s; "+
		"above the capacity, latency depends on the length of the test: lower the rate",
		func(r *Report) { r.Verdict = of(r.Load, tooMuch).Verdict })
}

// TestWorth checks that text also omits imprecise percentiles, and states the assumption.
func TestWorth(t *testing.T) {
	check := func(name string, effective float64, want, not string) {
		t.Helper()
		l := open()
		l.ResponseTime, l.Autocorrelation.EffectiveShare = counting(t, 10_000), effective
		text := textOf(t, of(l), Options{})
		if !strings.Contains(text, want) {
			t.Errorf("%s: there is no %q in\n%s", name, want, text)
		}
		if not != "" && strings.Contains(text, not) {
			t.Errorf("%s: there is a %q in\n%s", name, not, text)
		}
	}
	check("unknown", 0, "; the intervals assume that responses are independent\n", "are worth")
	check("all", 1, "[95 % intervals] for this window\n", "needs n")
	check("p99", 1, "  p99            9.90 ms [9.88, 9.92]", "")
	check("some", 0.04, "; the 10,000 responses are worth 400 independent ones\n",
		"p99: an interval needs n")
	check("wider", 0.04, "  p99            9.90 ms [9.80, 10.0]", "") // 9900 -+ 97.5
	check("none left", 0.0064,
		"p99: an interval needs n ≥ 381 independent responses; n was 63\n"+
			"               (raise --duration to 14s)\n",
		"p99            9.90")
}

// A refusal names its columns unless it applies to every column that has intervals and responses.
func TestColumnsOfRefusals(t *testing.T) {
	one, none := &record.Dist{Count: 1}, &record.Dist{}
	columns := []column{{name: "a", interval: true, dist: one},
		{name: "b", interval: true, dist: one}, {name: "c", interval: true, dist: none},
		{name: "d", dist: one}}
	check := func(want string, refused ...string) {
		t.Helper()
		var all refusals
		for _, name := range refused {
			all.add(table.Percentile{Name: "p99"}, name, "few")
		}
		if got := all.texts(columns); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("p99 of a: few", "a")
	check("p99 of b: few", "b")
	check("p99: few", "a", "b")
}
