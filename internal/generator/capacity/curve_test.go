package capacity

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/record"
	"prony.example/stats"
)

func TestCurve(t *testing.T) {
	s := newServer(1, 1000, 0)
	s.whole = true
	o := s.options("p99<50ms,errors<0.001%", 1) // needs more responses than the test has
	o.Progress = func(step Tried) {
		if step.Outcome != "" || step.Reason != "" {
			t.Errorf("a curve was to keep something: %s", step.Line())
		}
	}
	o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
		l, err := s.offer(ctx, step)
		if step.RatePerS == 90 {
			l.Host.OtherCPUShare = 0.5
		}
		return l, err
	}
	points, err := Curve(context.Background(), o, 900, Shares, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		rate := Shares[i] * 900
		mean := 1e9 / (1000 - rate)
		if p.Share != Shares[i] || p.RatePerS != rate || p.Replicates != 2 || p.Excluded != 0 ||
			math.Abs(p.ThroughputPerS/rate-1) > 0.01 || p.CPUPerRequest != 4000 {
			t.Errorf("point %d: %+v", i, p)
		}
		// 2 s at 90/s are too few for p99, which needs 381: 1.3 × 381 / 90 = 5.5 s, twice: 990.
		if n := float64(p.Answers); n < 990 || math.Abs(n-2*max(2, 495.3/rate)*rate) > 2 {
			t.Errorf("point %d has %d answers", i, p.Answers)
		}
		for k, want := range []float64{math.Ln2, math.Log(10), math.Log(100), math.Log(1000)} {
			q := p.Quantiles[k]
			// p99.9 needs 3838; 2 × 2 s have that many from 960/s on, which no point reaches.
			if k == 3 {
				if q.Ns != 0 || q.RequiredSamples != 3838 {
					t.Errorf("point %d: %+v of %d", i, q, p.Answers)
				}
				continue
			}
			if math.Abs(float64(q.Ns)/(want*mean)-1) > 0.03 { // of 495 values
				t.Errorf("point %d: %s %d, want %.0f", i, q.Name, q.Ns, want*mean)
			}
		}
	}
	var rates []float64
	for _, step := range s.steps {
		if step.Phase == AtShare {
			rates = append(rates, step.RatePerS)
		}
	}
	if len(rates) != 20 || slices.IsSorted(rates) {
		t.Errorf("order %v", rates)
	}
	var b strings.Builder
	if err := CurveText(&b, points); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{" 10 % ", "90.0 ", "855", "– p99.9: needs at least 3,838 " +
		"responses", "░",
		"doubt at 10 %: neighbors\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

// TestCurveWithoutStalls has stalls in all windows, and percentiles without them at half of the
// values. p99.9 of single windows is unknown, and one p99 of the second rate.
func TestCurveWithoutStalls(t *testing.T) {
	s := newServer(1, 1000, 0)
	s.whole = true
	o, windows := s.options("p99<50ms", 1), map[float64]int64{}
	o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
		l, err := s.offer(ctx, step)
		windows[step.RatePerS]++
		l.Stalls = &record.Stalls{Way: "test", TimeNs: l.WindowNs, StalledNs: l.WindowNs / 50}
		for i, raw := range []int64{l.ResponseTime.P50Ns, l.ResponseTime.P90Ns,
			l.ResponseTime.P99Ns} {
			ns := raw/2 + windows[step.RatePerS]
			x := record.StallFree{Quantile: curveQuantiles[i].q, Ns: ns, PunctualNs: ns, RawNs: raw,
				KeptShare: 0.9}
			if i == 2 && step.RatePerS == 450 && windows[450] == 2 {
				x.Unknown = stats.TooMuchExcluded
			}
			l.StallFree = append(l.StallFree, x)
		}
		return l, err
	}
	points, err := Curve(context.Background(), o, 900, []float64{0.25, 0.5}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		mean := 1e9 / (1000 - p.RatePerS)
		for k, want := range []float64{math.Ln2, math.Log(10), math.Log(100)} {
			q, with := p.Quantiles[k], i == 1 && k == 2
			if !with {
				want /= 2
			}
			if math.Abs(float64(q.Ns)/(want*mean)-1) > 0.03 || q.WithStalls != with {
				t.Errorf("%v/s %s: %+v, want %.0f", p.RatePerS, q.Name, q, want*mean)
			}
		}
	}
	var b strings.Builder
	if err := CurveText(&b, points); err != nil || strings.Count(b.String(), "stalls") != 1 ||
		!strings.Contains(b.String(), "p99 at 50 %: with the machine's stalls, unknown without "+
			"them\n") {
		t.Errorf("%s, %v", b.String(), err)
	}
	// Nor may a percentile be below a lower one.
	p := Point{Replicates: 1, stalled: true, free: map[string][]float64{"p99": {5}}}
	if ns, with := p.withoutStalls("p99", 9, 7); ns != 9 || !with {
		t.Errorf("a p99 of 5 ns above a p90 of 7 ns is %d, %v", ns, with)
	}
}

// TestCurveLeavesOut uses a wrong capacity: 95 % of 1100/s is above 1000/s.
func TestCurveLeavesOut(t *testing.T) {
	s := newServer(1, 1000, 0)
	s.whole = true
	points, err := Curve(context.Background(), s.options("p99<50ms", 1), 1100,
		[]float64{0.5, 0.95}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if p := points[0]; p.Replicates != 3 || p.Excluded != 0 {
		t.Errorf("%+v", p)
	}
	p := points[1]
	if p.Replicates != 0 || p.Excluded != 3 || !strings.Contains(p.Reason,
		"only 90.0 % of the due requests") ||
		p.Quantiles[0].Ns != 0 {
		t.Errorf("%+v", p)
	}
	var b strings.Builder
	if err := CurveText(&b, points); err != nil || !strings.Contains(b.String(),
		"left out at 95 %: 3 of 3 windows: only 90.0 % of the due requests") {
		t.Errorf("%s, %v", b.String(), err)
	}
	// A point without responses does not say how many a percentile needs.
	if got := strings.Count(b.String(), "needs at least"); got != 1 {
		t.Errorf("%d percentiles need more responses, want p99.9 alone:\n%s", got, b.String())
	}
	if _, err := Curve(context.Background(), s.options("p99<50ms", 1), 0, Shares, 1); err == nil {
		t.Error("a capacity of 0 was taken")
	}
}

func TestCurveWithoutHistograms(t *testing.T) {
	s := newServer(1, 1000, 0)
	points, err := Curve(context.Background(), s.options("p99<50ms", 1), 900, []float64{0.5}, 1)
	if err != nil || points[0].Excluded != 1 || !strings.Contains(points[0].Reason,
		"no histogram") {
		t.Errorf("%+v, %v", points, err)
	}
}

func TestConcurrency(t *testing.T) {
	s := newServer(1, 1000, 0)
	numbers := []int{1, 2, 4, 8, 16, 32}
	rows, err := Concurrency(context.Background(), s.options("p99<1s", 5), numbers)
	if err != nil {
		t.Fatal(err)
	}
	const most = 3 // steps before Ctrl-C
	cut, n := newServer(1, 1000, 0), 0
	o := cut.options("p99<1s", 5)
	offer := o.Offer
	o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
		if step.Phase == Sweep {
			n++
		}
		if n > most {
			return nil, context.Canceled
		}
		return offer(ctx, step)
	}
	some, err := Concurrency(context.Background(), o, numbers)
	if len(some) != most || err == nil || !slices.IsSortedFunc(some, func(a, b Tried) int {
		return a.Connections - b.Connections
	}) {
		t.Errorf("an interrupted sweep has %d of its %d steps, error %v", len(some), most, err)
	}
	var got, order []int
	for _, row := range rows {
		got = append(got, row.Connections)
		if row.Outcome != Met || row.ThroughputPerS != 1000 {
			t.Errorf("%+v", row)
		}
	}
	for _, step := range s.steps {
		if step.Phase == Sweep {
			order = append(order, step.Connections)
		}
	}
	if !slices.Equal(got, numbers) || slices.IsSorted(order) {
		t.Errorf("rows %v, order %v", got, order)
	}
	var b strings.Builder
	if err := SweepText(&b, rows, nil); err != nil ||
		!strings.Contains(b.String(), "32 conn") || !strings.Contains(b.String(), "Little's law") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

func TestStress(t *testing.T) {
	check := func(objectives string, lateFrom float64, words ...string) {
		t.Helper()
		s := newServer(1, 1000, 0)
		s.lateFrom = lateFrom
		o := s.options("p99<50ms", 1)
		if objectives == "" {
			o.SLO = nil
		}
		rows, err := Stress(context.Background(), o, []float64{200, 500, 800, 950, 1100, 2000})
		var got []string
		for _, row := range rows {
			got = append(got, row.Outcome)
		}
		if err != nil || !slices.Equal(got, words) {
			t.Errorf("%q: %v, %v, want %v", objectives, got, err, words)
		}
		var b strings.Builder
		err = SweepText(&b, rows, o.SLO)
		if err != nil || !strings.Contains(b.String(), "ended at") {
			t.Errorf("%s, %v", b.String(), err)
		}
	}
	check("p99<50ms", 0, Met, Met, Met, Missed) // p99 at 950/s is 4.6/50 = 92 ms
	check("", 0, Met, Met, Met, Met, Missed)
	check("p99<50ms", 700, Met, Met, Invalid, Invalid, Invalid)
}

func TestLine(t *testing.T) {
	for want, step := range map[string]Tried{
		" 12  falling       907/s  met      p99 41.2 ms": {N: 12, Outcome: Met, P99Ns: 41.2e6,
			Step: Step{Phase: Falling, RatePerS: 907}},
		"  3  bracket     1.20k/s  missed   only 90.0 % of the due " +
			"requests": {N: 3, Outcome: Missed,
			Reason: "only 90.0 % of the due requests", Step: Step{Phase: Bracket, RatePerS: 1200}},
		"  1  warm-up      closed           1.00k/s": {N: 1, ThroughputPerS: 1000,
			Step: Step{Phase: Warmup}},
		"  2  quiet        1 conn": {N: 2, Step: Step{Phase: Quiet, Connections: 1}},
	} {
		if got := step.Line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestText(t *testing.T) {
	s := newServer(1, 1000, 0.1)
	o := s.options("p99<50ms", 1)
	o.CeilingPerS = 1200
	f := find(t, s, o)
	var b strings.Builder
	if err := f.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"capacity ", " at 95 % confidence",
		"meets p99<50ms in half of the",
		"windows of 2.2s", "hysteresis  not detected", "83 % of the generator limit", "seed 1",
		"rate  met", " of "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\nlacks %q", b.String(), want)
		}
	}
	if time.Duration(f.ElapsedNs) > o.Budget {
		t.Errorf("took %v", time.Duration(f.ElapsedNs))
	}
}

func TestTextHysteresis(t *testing.T) {
	for want, h := range map[string]Hysteresis{
		"hysteresis  not checked": {},
		"hysteresis  not detected: rising against falling rates +1.0 % [-0.5 – " +
			"+2.5]": {Checked: true,
			Shift: 0.01, Lo: -0.005, Hi: 0.025},
		"hysteresis  900/s if the rate rises, 800/s if it falls: +12.5 % [+9.0 – " +
			"+16.0]": {Checked: true,
			Differs: true, Shift: 0.125, Lo: 0.09, Hi: 0.16, BelowPerS: 900, AbovePerS: 800},
	} {
		var b strings.Builder
		f := &Found{Found: true, Hysteresis: h, WindowNs: 2e9}
		err := f.Text(&b)
		if err != nil || !strings.Contains(b.String(), want) ||
			!strings.Contains(b.String(), "windows of 2s") {
			t.Errorf("%s, %v lacks %q", b.String(), err, want)
		}
	}
}
