package selftest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

// TestLindley checks response times that were computed by hand, in ms, for service times 4, 1, 5,
// 2.
func TestLindley(t *testing.T) {
	draw := func(n int64) time.Duration { return []time.Duration{4, 1, 5, 2}[n-1] * ms }
	check := func(due, want []int64) {
		t.Helper()
		for i := range due {
			due[i] *= 1e6
			want[i] *= 1e6
		}
		if got := lindley(due, draw); !slices.Equal(got, want) {
			t.Errorf("arrivals at %d take %d, want %d", due, got, want)
		}
	}
	check(nil, nil)
	check([]int64{10, 20, 30, 40}, []int64{4, 1, 5, 2}) // no waiting
	// 10–14, 14–15, 15–20, 20–22.
	check([]int64{10, 11, 12, 13}, []int64{4, 4, 8, 9})
	// 10–14, 14–15, idle, 18–23, 23–25.
	check([]int64{10, 12, 18, 18}, []int64{4, 3, 5, 7})
}

// TestLindleyComesToTheTextbook checks that the cases' formulas agree with half a million simulated
// arrivals within 2 %.
func TestLindleyComesToTheTextbook(t *testing.T) {
	check := func(name string, rho float64, draw func(int64) time.Duration, want float64) {
		t.Helper()
		const service, n = 8 * ms, 500_000
		spec := open(pace.Poisson, rho/service.Seconds(), 1,
			time.Duration(n*float64(service)/rho))
		sum := 0.0
		all := lindley(arrivals(&spec), draw)
		for _, x := range all {
			sum += float64(x)
		}
		if mean := sum / float64(len(all)) / float64(service); math.Abs(mean/want-1) > 0.02 {
			t.Errorf("%s: %d arrivals take %g services on average, want %g", name, len(all), mean,
				want)
		}
	}
	// 1 + 0.7/(2·0.3) and 1/0.4 services.
	check("M/D/1", 0.7, func(int64) time.Duration { return 8 * ms }, 1+0.7/0.6)
	check("M/M/1", 0.6, truth.Exponential(8*ms, seed), 2.5)
}

func TestArrivals(t *testing.T) {
	spec := lead(open(pace.Constant, 4, 1, sec), 500*ms)
	due := arrivals(&spec)
	if want := []int64{0, 250e6, 500e6, 750e6, 1000e6, 1250e6}; !slices.Equal(due, want) {
		t.Errorf("arrivals at %d, want %d", due, want)
	}
	if n := before(due, int64(spec.Lead)); n != 2 {
		t.Errorf("%d arrivals before the window, want 2", n)
	}
}

// TestRefusals checks two at once for 10 ms each, as in package truth: of 0, 1, 2, 10, 10.5 and 11
// ms two are refused.
func TestRefusals(t *testing.T) {
	due := []int64{0, 1e6, 2e6, 10e6, 10.5e6, 11e6}
	if n := len(refusals(due, 2, 10e6)); n != 2 {
		t.Errorf("%d are refused, want 2", n)
	}
	if n := len(refusals(due, 1, 10e6)); n != 4 { // all but the first and the one at 10
		t.Errorf("%d are refused of one, want 4", n)
	}
}

// TestErlangB checks B(1, 1) = 1/2, B(2, 1) = (1/2)/(1+1+1/2) = 1/5, B(4, 4) = 0.31068 (tables),
// B(0, a) = 1.
func TestErlangB(t *testing.T) {
	check := func(n int, a, want float64) {
		t.Helper()
		if got := erlangB(n, a); math.Abs(got-want) > 1e-5 {
			t.Errorf("B(%d, %g) = %g, want %g", n, a, got, want)
		}
	}
	check(0, 3, 1)
	check(1, 1, 0.5)
	check(2, 1, 0.2)
	check(4, 4, 0.31068)
}

// TestMedians checks a service time that falls from 100 ms to 20 ms in 2 s, 0.04 ms each ms. An
// arrival at t is answered at t + 100 − 0.04·t: in [1000, 1100) ms if it came from 937.5 (taking
// 62.5 ms) to 1041.7 (58.3 ms); the middle is 60.4.
func TestMedians(t *testing.T) {
	p := truth.Params{Cold: 100 * ms, Service: 20 * ms, After: 2 * sec}
	var due []int64
	for i := range int64(3000) {
		due = append(due, i*1e6)
	}
	got := medians(due, p, 100e6, 3e9)
	if len(got) != 30 || got[0] != 0 || math.Abs(float64(got[10])/60.4e6-1) > 0.002 ||
		math.Abs(float64(got[29])/20e6-1) > 0.001 {
		t.Errorf("medians are %d", got)
	}
	if got := medians(due, p, 0, 3e9); got != nil {
		t.Errorf("a series without a grain has medians %d", got)
	}
	// Intervals with fewer than ten responses have no median: 9 of the first 300 ms's.
	if got := medians(due[:9], p, 300e6, 3e9); got[0] != 0 {
		t.Errorf("nine answers have the median %d", got[0])
	}
	if got := medians(due[:10], p, 300e6, 3e9); got[0] == 0 {
		t.Error("ten answers have no median")
	}
}

func TestCountAbove(t *testing.T) {
	h := distribution([]int64{1e6, 49e6, 51e6, 70e6, 900e6})
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	if n := countAbove(&record.Dist{HDR: string(b)}, 50*ms); n != 3 {
		t.Errorf("%d above 50 ms, want 3", n)
	}
	if n := countAbove(&record.Dist{}, ms); n != -1 {
		t.Errorf("nothing has %d above 1 ms, want -1", n)
	}
}

func TestLine(t *testing.T) {
	check := func(known, got, limit float64, ok bool) {
		t.Helper()
		if l := line("x", "y", Ns, known, got, limit); l.OK != ok {
			t.Errorf("%g for %g within %g: %+v", got, known, limit, l)
		}
	}
	check(100, 102, 0.02, true)
	check(100, 102.1, 0.02, false)
	check(100, 98, 0.02, true)
	check(100, 97.9, 0.02, false)
	check(7, 7, 0, true)
	check(7, 8, 0, false)
	check(0, 0, 0, true)
	check(0, 1, 0, false)
	check(100, math.NaN(), 0.5, false)
	check(math.NaN(), 1, 0.5, false)
	check(100, math.Inf(1), 0.5, false)
}

// TestSpecsAreWhole checks that package load accepts the cases' loads.
func TestSpecsAreWhole(t *testing.T) {
	for _, c := range Cases() {
		s := c.Spec
		kind, ok := truth.Find(c.Kind)
		if !ok {
			t.Errorf("%s: there is no kind %q", c.Name, c.Kind)
			continue
		}
		if _, err := kind.Plan(c.Params); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if s.Window <= 0 || s.Timeout <= 0 || s.Drain <= 0 || s.Connections < 1 || c.Known == "" {
			t.Errorf("%s: %+v", c.Name, s)
		}
		if _, err := s.Schedule.Process(s.Seed); s.Model == record.Open && err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// TestTooFewRequestsProveNothing checks that a load without a single bad response does not pass.
func TestTooFewRequestsProveNothing(t *testing.T) {
	for _, c := range []Case{wrong(), reset(), silent(), keepalive()} {
		m := &measured{Result: &load.Result{}, server: truth.Report{Requests: 49}}
		m.Answered = 49
		m.ResponseTime = record.Dist{Count: 49, MeanNs: 20e6, P99Ns: 1e9}
		if o := c.judge(m); o.State != Wrong {
			t.Errorf("%s: %s with 49 good answers", c.Name, o.State)
		}
	}
}

// TestDelays checks results that were computed by hand for 10, 20, 30, 40 and 50 ms.
func TestDelays(t *testing.T) {
	sorted := []int64{10e6, 20e6, 30e6, 40e6, 50e6}
	for _, row := range []struct{ q, sum, want float64 }{
		{0.5, 0, 0},
		{0.5, 5e6, 5e6},    // 30 → 35
		{0.5, 10e6, 10e6},  // 30 → 40
		{0.5, 30e6, 20e6},  // 30, 40 → 50 each
		{0.5, 60e6, 30e6},  // all three → 60
		{0.9, 7e6, 7e6},    // 50 alone
		{0.2, 10e6, 10e6},  // 10 → 20
		{0.2, 30e6, 20e6},  // 10, 20 → 30 each
		{0.2, 150e6, 50e6}, // 150 in total: five of 60
	} {
		if got := raised(sorted, row.q, row.sum); math.Abs(got-row.want) > 1 {
			t.Errorf("%g ms raise the %g quantile by %g ms, want %g", row.sum/1e6, row.q, got/1e6,
				row.want/1e6)
		}
	}
	if got := raised(nil, 0.5, 1e6); got != 0 {
		t.Errorf("no answers are raised by %g", got)
	}
	for _, row := range []struct {
		threshold int64
		sum, want float64
	}{
		{45e6, 4e6, 0},
		{45e6, 6e6, 1},   // 40 → more than 45
		{45e6, 21e6, 2},  // also 30
		{45e6, 1e12, 4},  // all below
		{30e6, 5e6, 1},   // 30 is not above 30
		{50e6, 1e6, 1},   // 50 is not above 50
		{60e6, 9e6, 0},   // 50 lacks 10
		{5e6, 1e12, 0},   // all are above
		{15e6, 1e12, 1},  // all but one
		{45e6, 20e6, 1},  // 5 and 15, each 1 ns more
		{45e6, -1e12, 0}, // no delay
	} {
		if got := lifted(sorted, row.threshold, row.sum); got != row.want {
			t.Errorf("%g ms lift %g above %d ms, want %g", row.sum/1e6, got, row.threshold/1e6,
				row.want)
		}
	}
}

// TestStalledAnswers has stalls at 100–103 and 110–120 ms. Requests are due at 50 (answered in 10),
// 101 (in 5), 102 (in 8: sent at 103, it would be answered at 111), 108 (in 4) and 119 ms (in 1).
func TestStalledAnswers(t *testing.T) {
	m := &measured{Result: &load.Result{}}
	m.machine = Machine{StallsWay: "perf event",
		Stalls: []stats.Stall{{BeginNs: 100e6, EndNs: 103e6}, {BeginNs: 110e6, EndNs: 120e6}}}
	due := []int64{50e6, 101e6, 102e6, 108e6, 119e6}
	a := newAnswers(m, due, []int64{10e6, 5e6, 8e6, 4e6, 1e6}, 13e6, 0, 0)
	// 0, 2, 1 + 9, 8 and 1 ms: the last one leaves at 120 and is answered at 121.
	if a.limits.sumNs != 21e6 || a.limits.longestNs != 10e6 {
		t.Errorf("delays are %+v", a.limits)
	}
	m.machine.StallsWay, m.machine.Stalls = "", nil
	a = newAnswers(m, due, []int64{10e6, 5e6, 8e6, 4e6, 1e6}, 13e6, 2e6, 1e6)
	// Within 4 ms after 60, 106, 110, 112 and 120 ms, 1, 2, 2, 1 and 1 responses end.
	if per := a.perWait(4e6); per != 1.4 {
		t.Errorf("a wait delays %g answers, want 1.4", per)
	}
	if per := newAnswers(m, nil, nil, 13e6, 2e6, 1e6); per.limits.sumNs != 1e6 {
		t.Errorf("without responses, delays are %+v", per.limits)
	}
	if a.limits.sumNs != 13e6*1.4+1e6 || a.limits.longestNs != 14e6 ||
		a.quiet.sumNs != 2e6*1.4+1e6 {
		t.Errorf("delays are %+v, quiet %+v", a.limits, a.quiet)
	}
}

// TestWaits checks the longest wait of a thread, by each source and together.
func TestWaits(t *testing.T) {
	check := func(m Machine, delayNs int64, c Cores, want float64) {
		t.Helper()
		if got := m.waits(delayNs, c); got != want {
			t.Errorf("%+v, run delay %d, %+v: %g, want %g", m, delayNs, c, got, want)
		}
	}
	check(Machine{Ahead: true}, 3e6, Cores{OthersNs: 5e9}, 3e6)
	check(Machine{}, 3e6, Cores{OthersNs: 5e9}, 5e9)
	check(Machine{Ahead: true}, 3e6, Cores{StealNs: 20e6}, 33e6) // including a part of a step
	check(Machine{Ahead: true}, 3e6, Cores{StalledNs: 40e6}, 40e6)
	check(Machine{Ahead: true}, 3e6, Cores{StealNs: 20e6, StalledNs: 30e6}, 33e6)
}
