package slo

import (
	"math"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// count times value, in ns.
type times struct{ count, ns int64 }

// distOf returns a distribution as the generator records it.
func distOf(t *testing.T, parts ...times) record.Dist {
	t.Helper()
	h := hdrhistogram.New(1, 1<<40, 3)
	for _, p := range parts {
		if err := h.RecordValues(p.ns, p.count); err != nil {
			t.Fatal(err)
		}
	}
	blob, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return record.Dist{Count: h.TotalCount(), MeanNs: h.Mean(), MaxNs: h.Max(), HDR: string(blob)}
}

// good returns a load with responses to all requests.
func good(t *testing.T, parts ...times) *record.Load {
	d := distOf(t, parts...)
	return &record.Load{
		Scheduled: d.Count, Sent: d.Count, Done: d.Count, Answered: d.Count, DrainNs: 5e9,
		ThroughputPerS: float64(d.Count) / 2, ResponseTime: d, ServiceTime: d,
	}
}

// silence adds requests without a response.
func silence(l *record.Load, n int64) *record.Load {
	l.Scheduled, l.Sent, l.Censored = l.Scheduled+n, l.Sent+n, l.Censored+n
	return l
}

const ms = int64(1e6)

func TestCheck(t *testing.T) {
	check := func(text string, l *record.Load, word, part string) {
		t.Helper()
		all, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := all[0].Check(l)
		if line := got.Line(); !strings.HasPrefix(line, word+" ") || !strings.Contains(line, part) {
			t.Errorf("%s: %q, want %s … %s", text, line, word, part)
		}
	}
	// 1000 answers: the first 985 take 10 ms, the next 10 take 40 ms, the last 5 take 90 ms. Ranks:
	// p98.5 is the 985th, p99 the 990th, p99.5 the 995th.
	l := good(t, times{985, 10 * ms}, times{10, 40 * ms}, times{5, 90 * ms})
	check("p99<50ms", l, "met", "40ms")
	check("p99<40ms", l, "missed", "40ms")
	check("p98.5<11ms", l, "met", "10ms")
	check("p98.6<11ms", l, "missed", "40ms")
	check("p99.5<50ms", l, "met", "40ms") // needs 3.84*0.995/0.005 = 765
	check("max<91ms", l, "met", "90ms")
	check("max<90ms", l, "missed", "90ms") // a bucket's end, 90.05 ms
	// Mean: (985*10 + 10*40 + 5*90)/1000 = 10.7 ms.
	check("mean<10.8ms", l, "met", "10.7ms")
	check("mean<10.6ms", l, "missed", "10.7ms")
	check("throughput>499/s", l, "met", "500/s")
	check("throughput>500/s", l, "missed", "500/s")
	check("throughput>=500/s", l, "met", "500/s")
	check("service.p99<50ms", l, "met", "40ms")
	check("lag.p99<50ms", l, "unknown", "only an open load has a lag")
	check("connect.max<50ms", l, "unknown", "no connection was opened in the window")
	check("route x p99<50ms", l, "unknown", "no route x")
	check("errors<=0", l, "met", "0% (0 of 1000)")
	check("errors<0.1%", l, "met", "0% (0 of 1000)") // one of 1000 would be 0.1 %
	check("errors<0.09%", l, "unknown", "needs n ≥ 1112, has 1000")
	check("delivered>99.9%", l, "met", "100% (1000 of 1000)")
	check("delivered>99.91%", l, "unknown", "needs n ≥ 1112, has 1000")
	// Of 3838 responses, p99.9 is the 3834th, so 5 above 50 ms miss the objective whatever the
	// others are; there are 5. Four would not suffice.
	check("p99.9<89ms", l, "missed", "90ms")
	check("p99.9<89ms", good(t, times{996, 10 * ms}, times{4, 90 * ms}), "unknown", "3838")

	l.Done += 10 // responses to requests from before the window
	check("delivered>=100%", l, "met", "100% (1000 of 1000)")

	few := good(t, times{380, 10 * ms})
	check("p99<50ms", few, "unknown", "needs n ≥ 381, has 380")
	check("p99<50ms", good(t, times{381, 10 * ms}), "met", "10ms")
	check("mean<50ms", good(t, times{1, 10 * ms}), "met", "10ms")
	none := good(t)
	check("p99<50ms", none, "unknown", "no answers")
	check("errors<1%", none, "unknown", "no requests")
	check("delivered>1%", none, "unknown", "no requests")
	check("throughput>1/s", none, "missed", "0/s")
}

func TestCheckErrors(t *testing.T) {
	all, err := Parse("errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		answered, status, censored int64
		held, known                bool
		observed                   float64
	}{
		{991, 9, 0, true, true, 0.009},
		{990, 10, 0, false, true, 0.01},
		{990, 0, 10, false, true, 0.01}, // no response counts as an error
		{995, 2, 2, true, true, 4.0 / 999},
		{99, 0, 0, false, false, 0},
		{50, 10, 0, false, true, 10.0 / 60}, // too few samples, but missed anyway
		{100, 0, -1, true, true, 0},         // responses to requests from before the window
	} {
		l := &record.Load{Answered: row.answered, Censored: row.censored,
			Errors: record.Errors{Status: row.status}}
		c := all[0].Check(l)
		if c.Met != row.held || c.Known != row.known || c.Observed != row.observed {
			t.Errorf("%+v: %+v", row, c)
		}
	}
}

// TestCheckSilent has requests without a response: 980 responses of 10 ms, 20 requests without.
func TestCheckSilent(t *testing.T) {
	l := silence(good(t, times{980, 10 * ms}), 20)
	check := func(text string, held, known bool, observed float64) {
		t.Helper()
		all, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := all[0].Check(l)
		off := math.Abs(c.Observed - observed)
		if c.Met != held || c.Known != known || off > 0.001*observed {
			t.Errorf("%s: %+v, want met %v, known %v, %v", text, c, held, known, observed)
		}
	}
	check("p98<50ms", true, true, 10e6) // the 980th of 1000
	check("p99<50ms", false, true, 5e9) // the 990th: longer than the drain of 5 s
	check("p99<6s", false, false, 0)    // longer than 5 s, but perhaps shorter than 6 s
	check("max<1s", false, true, 5e9)   //
	check("mean<50ms", false, true, 0.98*10e6+0.02*5e9)
	check("mean<200ms", false, false, 0) // at least 109.8 ms
	check("service.p99<1s", false, true, 5e9)
	l.Sent -= 20 // they waited for a connection, so they have no service time
	check("service.p99<1s", true, true, 10e6)
	check("lag.p99<1s", false, false, 0)
}

func TestCheckRoutes(t *testing.T) {
	fast, slow := distOf(t, times{500, ms}), distOf(t, times{480, 30 * ms})
	l := good(t, times{500, ms}, times{500, 30 * ms})
	l.Routes = []record.Route{
		{Name: "GET /a", Sent: 500, Answered: 500, ResponseTime: fast, ServiceTime: fast},
		{Name: "GET /b", Sent: 500, Answered: 480, Failed: 10, ResponseTime: slow,
			ServiceTime: fast},
	}
	l.DrainNs = 20e9
	for text, held := range map[string]bool{
		"route GET /a p99<5ms":         true,
		"route GET /b p90<31ms":        true,
		"route GET /b p90<29ms":        false,
		"route GET /b p99<31ms":        false, // 10 of 490 got no response
		"route GET /b service.p90<5ms": true,
		"route GET /a errors<1%":       true,
		"route GET /b errors<5%":       true, // 20 of 500
		"route GET /b errors<4%":       false,
	} {
		all, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if c := all[0].Check(l); c.Met != held || !c.Known {
			t.Errorf("%s: %+v, want met %v", text, c, held)
		}
	}
}

// TestCheckForeign has a load generator that reports four percentiles and no histogram.
func TestCheckForeign(t *testing.T) {
	l := &record.Load{ResponseTime: record.Dist{Count: 5000, P50Ns: ms, P90Ns: 2 * ms,
		P99Ns: 3 * ms, P999Ns: 4 * ms}}
	for text, want := range map[string]float64{
		"p50<9ms": 1e6, "p90<9ms": 2e6, "p99<9ms": 3e6, "p99.9<9ms": 4e6, "p95<9ms": 0,
	} {
		all, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if c := all[0].Check(l); c.Observed != want || c.Known != (want > 0) {
			t.Errorf("%s: %+v", text, c)
		}
	}
	l.ResponseTime.HDR = "broken"
	l.Censored = 1
	p99 := Objective{Metric: "p99", Quantile: 0.99, Op: "<", Limit: 1}
	if c := CheckAll([]Objective{p99}, l); c[0].Known {
		t.Errorf("no rank without a histogram: %+v", c[0])
	}
}

// Percentiles that the report withholds are unknown: 1,000 correlated responses are worth 80, and
// p99 needs 381. An objective missed by far more than that is still missed.
func TestQuotedPercentiles(t *testing.T) {
	check := func(text string, effective float64, known, held bool, says string) {
		t.Helper()
		objectives, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		l := good(t, times{985, 1e6}, times{15, 60e6})
		l.Autocorrelation.EffectiveShare = effective
		if c := CheckQuoted(objectives, l)[0]; c.Known != known || c.Met != held ||
			!strings.Contains(c.Text, says) {
			t.Errorf("%s at %v: %+v", text, effective, c)
		}
	}
	check("p99<100ms", 1, true, true, "60")
	check("p99<100ms", 0.08, false, false, "has 1000 that are worth 80 independent ones")
	check("p99<50ms", 0.08, false, false, "needs n ≥ 381")
	check("p99<0.5ms", 0.08, true, false, "60")
	check("p50<50ms", 0.08, true, true, "1")
	check("errors<1%", 0.08, true, true, "0")
}

// A percentile without the machine's stalls decides, if it is known. If it is unknown, an objective
// that is met with stalls is met, and one that is missed even without all delays of stalls is
// missed.
func TestCheckWithoutStalls(t *testing.T) {
	check := func(text string, x record.StallFree, word, says string, withStalls float64) {
		t.Helper()
		objectives, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		l := good(t, times{9800, 1e6}, times{200, 60e6})
		x.Quantile, x.RawNs = 0.99, 60e6
		l.StallFree = []record.StallFree{{Quantile: 0.5, Ns: 1, RawNs: 1e6, KeptShare: 0.9}, x}
		c := CheckAll(objectives, l)[0]
		if line := c.Line(); !strings.HasPrefix(line, word+" ") ||
			!strings.HasSuffix(line, " "+says) || c.WithStalls != withStalls {
			t.Errorf("%s: %q, %v with stalls, want %s … %s, %v", text, line, c.WithStalls, word,
				says, withStalls)
		}
	}
	free := record.StallFree{Ns: 2e6, KeptShare: 0.93}
	raw := c60(t)
	check("p99<50ms", free, "met", "2ms (60ms with the machine's stalls, which would miss it)", raw)
	check("p99<100ms", free, "met", "2ms (60ms with the machine's stalls)", raw)
	check("p99<1ms", free, "missed", "2ms (60ms with the machine's stalls)", raw)
	check("service.p99<50ms", free, "missed", "60ms", 0)
	free.KeptShare = 0.03 // 300 responses remain, and p99 needs 381
	check("p99<50ms", free, "unknown",
		"60ms with the machine's stalls, unknown without them: too few arrivals", raw)
	same := record.StallFree{Ns: 60e6, KeptShare: 1}
	check("p99<50ms", same, "missed", "60ms", 0)
	unknown := record.StallFree{Ns: 2e6, KeptShare: 0.5, Unknown: stats.TooMuchExcluded}
	check("p99<100ms", unknown, "met", "60ms", 0)
	check("p99<50ms", unknown, "unknown",
		"60ms with the machine's stalls, unknown without them: too much excluded", raw)
	short := record.StallFree{Ns: 40e6, LowestNs: 30e6, KeptShare: 0.9,
		Unknown: stats.UnrecordedStalls}
	check("p99<35ms", short, "unknown",
		"60ms with the machine's stalls, unknown without them: stalls too short to record", raw)
	check("p99<20ms", short, "missed", "60ms", 0)

	// Requests without a response count as the slowest, with stalls or without.
	l := silence(good(t, times{9800, 1e6}), 200)
	l.StallFree = []record.StallFree{{Quantile: 0.99, Ns: 1e6, RawNs: 2e6, KeptShare: 0.9}}
	o := Objective{Metric: "p99", Quantile: 0.99, Op: "<", Limit: 1e9}
	if c := o.Check(l); !c.Known || c.Met || c.WithStalls != 0 {
		t.Errorf("%+v", c)
	}
}

// c60 is 60 ms as returned by a histogram.
func c60(t *testing.T) float64 {
	t.Helper()
	h, err := good(t, times{1, 60e6}).ResponseTime.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	return float64(h.Max())
}

func TestQuantiles(t *testing.T) {
	objectives, err := Parse("p99<1s,errors<1%,p99.99<2s,service.p50<1s,mean<1s,route a p90<1s")
	if err != nil {
		t.Fatal(err)
	}
	got := Quantiles(objectives)
	if len(got) != 2 || got[0] != 0.99 || math.Abs(got[1]-0.9999) > 1e-12 {
		t.Errorf("%v", got)
	}
}

// A lag of some ms does not affect an objective of half a second, but a tighter one.
func TestDoubtsThatCouldChangeTheAnswer(t *testing.T) {
	check := func(text string, by float64, want string) {
		t.Helper()
		objectives, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := objectives[0].Check(good(t, times{1000, 3e6}))
		if got := objectives[0].Doubt(c, []record.Finding{{Rule: "lag", Grade: record.Suspect,
			PossibleBias: []record.Bias{{Metric: "p99", Share: by}}}}); got != want {
			t.Errorf("%s moved by %v: %q, want %q", text, by, got, want)
		}
	}
	check("p99<500ms", 0.8, "")
	check("p99<5ms", 0.8, "which lag can have changed (by 80 %)")
	check("p99<2ms", 0.8, "which lag can have changed (by 80 %)") // perhaps missed only by lag
	check("p99<2ms", 0.1, "")
	check("p50<4ms", 0.8, "") // it affects another metric

	// A value without stalls has the bound without stalls.
	free := 0.0
	steal := record.Finding{Rule: "steal", Grade: record.Suspect, PossibleBias: []record.Bias{
		{Metric: "p99", Share: 0.8, StallFree: &free}}}
	l := good(t, times{1000, 3e6})
	l.StallFree = []record.StallFree{{Quantile: 0.99, Ns: 2e6, RawNs: 3e6, KeptShare: 0.9}}
	o, err := Parse("p99<2.5ms")
	if err != nil {
		t.Fatal(err)
	}
	c := o[0].Check(l)
	if got := o[0].Doubt(c, []record.Finding{steal}); got != "" || !c.Met {
		t.Errorf("%s: %q", c.Text, got)
	}
	free = 0.3
	steal.PossibleBias[0].StallFree = &free
	if got := o[0].Doubt(c, []record.Finding{steal}); got !=
		"which steal can have changed (by 30 %)" {
		t.Errorf("%s: %q", c.Text, got)
	}
}
