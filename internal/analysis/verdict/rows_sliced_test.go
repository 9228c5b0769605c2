package verdict_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
	"prony.example/stats"
)

// inSlices adds 40 slices of 60 ms to a load, of which 40 ms count: 1,600 requests in 1.6 s, with
// 1.2 s of processor time, while two other targets had 4.8 s. The service has one core.
func inSlices(change func(*record.SideBySide, *record.Sliced)) func(rec, ld) {
	return func(r rec, l ld) {
		r.SideBySide = &record.SideBySide{Rounds: 40, LeadInNs: 20 * ms, WindowNs: 40 * ms,
			Freeze: record.FreezeSignals}
		l.Slices = &record.Sliced{Slices: 40, Requests: 1600, TimeNs: 1.6 * sec, CPUNs: 1.2 * sec,
			IdleTimeNs: 4.8 * sec}
		if l.Model == record.Open {
			l.Slices.RatePerS, l.Slices.ResponseTime = 1000, flat(10000, 2*ms)
			l.Slices.Requests, l.Slices.TimeNs = 10000, 10*sec
		}
		change(r.SideBySide, l.Slices)
	}
}

var slicedRows = []row{
	{"slice answers", peak, valid, inSlices(func(*record.SideBySide, *record.Sliced) {})},
	// Failures count in all 60 ms of a slice, in which there are 2,400 good responses: 2 of 2,402
	// are 0.08 %, and move throughput by as much.
	{"slice answers", peak, noted, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.Failed = 2
	})},
	{"slice answers", peak, invalid, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.Failed = 3 // 0.12 %
	})},
	{"slice answers", peak, invalid, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.Requests = 0
	})},
	// 10 of 10,000 failed, 0.1 %, and p99.9 lies below the ten slowest: it may be anything.
	{"slice answers", half, suspect, inSlices(func(b *record.SideBySide, s *record.Sliced) {
		b.LeadInNs, s.Requests, s.Failed = 0, 9990, 10
	})},

	// 12 ms of 4.8 s are 0.25 % of the core, and two thirds of 12 ms 0.67 % of 1.2 s.
	{"idle work", peak, noted, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.IdleCPUNs = 12 * ms
	})},
	// 60 ms: 1.25 % of the core, and 40 ms are 3.3 % of 1.2 s.
	{"idle work", peak, suspect, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.IdleCPUNs = 60 * ms
	})},
	{"idle work", peak, valid, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.IdleCPUNs = -1 // it was stopped
	})},
	{"idle work", peak, suspect, inSlices(func(b *record.SideBySide, s *record.Sliced) {
		b.Freeze, s.IdleCPUNs = record.FreezeOff, -1
	})},

	// 291 ms of 10 s are 2.91 % of the core, 2.997 % of what it would have had without.
	{"idle targets", peak, noted, idlers(291 * ms)},
	{"idle targets", peak, suspect, idlers(292 * ms)},
	{"idle targets", peak, suspect, idlers(150*ms, 142*ms)},
	{"idle targets", peak, noted, func(r rec, l ld) { // on two cores
		idlers(580*ms)(r, l)
		r.Limits.ServiceCores = []int{1, 2}
	}},
	// Of 200 times of 4 ms without 80 p99 is one of them, and without 102 one of 2 ms.
	{"idle targets", half, valid, slowest(200, 4*ms, func(l ld) { idlers(40*ms)(nil, l) })},
	{"idle targets", half, suspect, slowest(200, 4*ms, func(l ld) { idlers(51*ms)(nil, l) })},
	// 200 ms are 1 % of two cores: others used 0.45 %, 0.9 % of the service's core.
	{"neighbors", peak, noted, func(r rec, l ld) {
		idlers(200*ms)(r, l)
		r.Provenance.Cores, l.Host.OtherCPUShare = 2, 0.0145
	}},

	// Two thirds of 50 ms are 2.8 % of 1.2 s, and the whole is 4.2 %, if no lead-in is known.
	{"idle work", peak, noted, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.IdleCPUNs = 50 * ms
	})},
	{"idle work", peak, suspect, func(r rec, l ld) {
		inSlices(func(_ *record.SideBySide, s *record.Sliced) { s.IdleCPUNs = 50 * ms })(r, l)
		r.SideBySide = nil
	}},
	{"idle work", peak, suspect, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.IdleCPUNs, s.Slices = 50*ms, 0
	})},

	// The load thread is busy for 80 % of 1.6 s, or for more of it while the service has requests.
	{"slice generator", peak, valid, effort(1.28*sec, 1.28*sec)},
	{"slice generator", peak, valid, effort(1.5*sec, 0)},
	// 46 ms of 1.6 s are 2.9 %, so that 3.0 % more was possible; 48 ms are 3.1 %.
	{"slice generator", peak, noted, effort(1.5*sec, 46*ms)},
	{"slice generator", peak, suspect, effort(1.5*sec, 48*ms)},
	// The service used 75 % of its core, and 33 % more was possible; or 1.57 of 1.6 s, and 1.9 %.
	{"slice generator", peak, suspect, effort(1.5*sec, -1)},
	{"slice generator", peak, noted, func(r rec, l ld) {
		effort(1.5*sec, 1.5*sec)(r, l)
		l.Slices.CPUNs = 1.57 * sec
	}},
	{"slice generator", peak, suspect, func(r rec, l ld) {
		effort(1.5*sec, -1)(r, l)
		l.Slices.CPUNs = -1
	}},
	// 1,438 requests/s are above 70 % of 2,000, which the window does not reach.
	{"slice generator", peak, suspect, func(r rec, l ld) {
		effort(1.2*sec, 48*ms)(r, l)
		l.Slices.Requests = 2300
	}},
	{"slice generator", half, valid, effort(8*sec, -1)},
	{"slice generator", half, suspect, effort(8.1*sec, -1)},

	// If sent on time, response times stay the same, or they are 10 % too high.
	{"slice lag", half, valid, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.PunctualTime = s.ResponseTime
	})},
	{"slice lag", half, suspect, inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.PunctualTime = flat(10000, 1.8*ms)
	})},
	// p99.9 is 5.5 ms with an interval of 5.05 to 5.95 ms, ±8 %: 5 % are within it, 10 % are not.
	{"slice lag", half, noted, climbing(0.95)},
	{"slice lag", half, suspect, climbing(0.9)},
}

// effort is what the load thread counted in slices.
func effort(cpuNs, starvedNs int64) func(rec, ld) {
	return inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		s.LoadCPUNs, s.StarvedNs = cpuNs, starvedNs
	})
}

// idlers are other targets that used processor time in a window.
func idlers(ns ...int64) func(rec, ld) {
	return func(_ rec, l ld) {
		for _, used := range ns {
			l.IdleTargets = append(l.IdleTargets, record.IdleTarget{Target: "other",
				Freeze: record.FreezeSignals, CPUNs: used})
		}
	}
}

// climbing has 10,000 responses in slices: 9,900 take 1 ms, the others 1.05, 1.1, … 6 ms. Sent on
// time, the slow ones take this share of their times. Half of them are independent, so that the
// interval of p99.9 has the ranks 9,981 and 9,999.
func climbing(onTime float64) func(rec, ld) {
	return inSlices(func(_ *record.SideBySide, s *record.Sliced) {
		times := func(share float64) record.Dist {
			h := hdrhistogram.New(1, sec, 3)
			err := h.RecordValues(ms, 9900)
			for k := range 100 {
				slow := share * ms * (1 + float64(k+1)/20)
				err = errors.Join(err, h.RecordValue(int64(slow)))
			}
			text, failed := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err := errors.Join(err, failed); err != nil {
				panic(err)
			}
			at := h.ValueAtPercentile
			return record.Dist{Count: 10000, MinNs: h.Min(), MeanNs: h.Mean(), P50Ns: at(50),
				P90Ns: at(90), P99Ns: at(99), P999Ns: at(99.9), MaxNs: h.Max(), HDR: string(text)}
		}
		s.ResponseTime, s.PunctualTime = times(1), times(onTime)
	})
}

// The finding on late requests in slices names the percentile that decides, and what lag adds to
// it: 10 % of 5.5 ms.
func TestSliceLagNamesWhatDecides(t *testing.T) {
	r := healthy()
	climbing(0.9)(r, &r.Loads[0])
	v := verdict.Judge(r)
	if len(v.Findings) != 1 {
		t.Fatalf("%+v", v.Findings)
	}
	f := v.Findings[0]
	if f.Facts.Subject != "p99.9" || math.Abs(f.Value/(0.55*ms)-1) > 0.01 ||
		!strings.HasSuffix(wording.Finding(f).Observed, " to p99.9") {
		t.Errorf("%+v reads %q", f, wording.Finding(f).Observed)
	}
}

// TestPhases checks that a finding on the window of a load with slices has that phase, as one on
// slices has its own, and that findings on the whole trial have none.
func TestPhases(t *testing.T) {
	r := healthy()
	inSlices(func(_ *record.SideBySide, s *record.Sliced) { s.Failed = 20 })(r, &r.Loads[1])
	r.Loads[1].Host.StealShare = 0.2
	r.Loads[0].Host.StealShare = 0.2 // of a load without slices
	r.Limits.Missing = []record.Limit{{Kind: record.LimitCPU}}
	r.Loads[1].Generator.CPUShare = 0.95
	want := map[string]string{"peak steal": record.PhaseWindow, "half steal": "",
		"peak slice answers": record.PhaseSlices, " limits": "", "peak generator": ""}
	for _, f := range verdict.Judge(r).Findings {
		key := f.Load + " " + f.Rule
		phase, ok := want[key]
		if !ok || f.Phase != phase {
			t.Errorf("%s is of phase %q", key, f.Phase)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

// TestGeneratorByPhase checks that a generator that is the limit only in the window has no finding
// on ratios, one that is the limit only in slices has one, and one that did not count in slices has
// the window's finding on both.
func TestGeneratorByPhase(t *testing.T) {
	check := func(window float64, inSlices int64, want ...string) {
		t.Helper()
		r := healthy()
		effort(inSlices, inSlices)(r, &r.Loads[1])
		r.Loads[1].Generator.CPUShare, r.Loads[1].Service.CPUShare = window, 0.938
		var got []string
		for _, f := range verdict.Judge(r).Findings {
			got = append(got, f.Rule+" "+f.Phase)
		}
		if !slices.Equal(got, want) {
			t.Errorf("busy for %.2f of the window, %d ns of slices: %q, want %q", window, inSlices,
				got, want)
		}
	}
	check(0.95, 1.2*sec, "generator window")
	check(0.7, 1.5*sec, "slice generator slices")
	check(0.95, 1.5*sec, "generator window", "slice generator slices")
	check(0.95, 0, "generator ")
}

// TestIdleWorkBounds checks that idle work moves numbers by its share of the core and of the
// target's own processor time, and that it moves no number of the window.
func TestIdleWorkBounds(t *testing.T) {
	r := healthy()
	idle := inSlices(func(_ *record.SideBySide, s *record.Sliced) { s.IdleCPUNs = 60 * ms })
	idle(r, &r.Loads[1])
	v := verdict.Judge(r)
	if len(v.Findings) != 1 || len(v.Findings[0].PossibleBias) != 2 {
		t.Fatalf("%+v", v.Findings)
	}
	// 0.0125/(1-0.0125) = 0.01266; 60·(40/60)/1200 = 0.03333; both rounded up to four digits.
	for i, want := range []record.Bias{{Metric: "throughput", Share: 0.0127},
		{Metric: "cpu_per_request", Share: 0.0334}} {
		if got := v.Findings[0].PossibleBias[i]; got.Metric != want.Metric ||
			math.Abs(got.Share-want.Share) > 1e-9 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestJudgeStarts checks the rules on all starts together.
func TestJudgeStarts(t *testing.T) {
	nan := math.NaN()
	check := func(s verdict.Starts, pairs []verdict.Pair, want ...string) {
		t.Helper()
		var got []string
		for _, f := range verdict.JudgeStarts(s, pairs, 0.05) {
			got = append(got, f.Rule+" "+f.Grade)
			w := wording.Finding(f)
			if w.Observed == "" || w.Hint == "" || w.Limit == "" || f.Phase != record.PhaseSlices {
				t.Errorf("%+v reads %+v", f, w)
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%+v, %+v: %v, want %v", s, pairs, got, want)
		}
	}
	check(verdict.Starts{Count: 5}, nil)
	check(verdict.Starts{Count: 5, Lost: 1, LostBy: "a"}, nil, "starts VALID")
	check(verdict.Starts{Count: 9, Lost: 2, LostBy: "a"}, nil, "starts INVALID") // 22 %
	control := verdict.Pair{Load: "peak", Metric: "throughput", A: "a", B: "a-again", Control: true,
		Ratio: 1.04, P: 0.04, Windows: nan, WindowsP: nan}
	check(verdict.Starts{Count: 5}, []verdict.Pair{control}, "control SUSPECT")
	second := control
	second.Metric, second.P = "cpu_per_request", 0.3
	check(verdict.Starts{Count: 5}, []verdict.Pair{control, second}) // 0.04 of 0.025 allowed
	levels := verdict.Pair{Load: "peak", Metric: "throughput", A: "a", B: "b", Ratio: 0.95,
		P: 0.001, Windows: 1.05, WindowsP: 0.01}
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels}, "levels SUSPECT")
	levels.WindowsP = 0.05 // all that is allowed
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels, control}, "levels SUSPECT",
		"control SUSPECT")
	unknown := levels
	unknown.Metric, unknown.Windows, unknown.WindowsP = "p99", nan, nan
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels, unknown}, "levels SUSPECT")
	third := levels
	third.Metric, third.WindowsP = "cpu_per_request", 0.025 // half of it, of two
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels, third}, "levels SUSPECT")
	// 0.9 % is not worth asking about.
	levels.Windows, levels.WindowsP = 1.009, 0.01
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels})
	levels.Windows, levels.WindowsP = 1.2, 0.06
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels})
	levels.Windows, levels.WindowsP = nan, nan
	check(verdict.Starts{Count: 5}, []verdict.Pair{levels})
	// Rare events of the reference are the same in each pair with it.
	rare := levels
	rare.Rare = stats.RareEvents{Significant: true, Difference: -0.04, EventsA: 9}
	second = rare
	second.B = "c"
	check(verdict.Starts{Count: 5}, []verdict.Pair{rare, second}, "rare events VALID")
	second.Rare.EventsA, second.Rare.EventsB = 1, 9
	check(verdict.Starts{Count: 5}, []verdict.Pair{rare, second}, "rare events VALID",
		"rare events VALID")
}

// TestBoundsWithoutStalls checks that percentiles without the machine's stalls have no bound for
// steal, and a smaller one for the generator's lateness. Without records of stalls, all bounds
// stay.
func TestBoundsWithoutStalls(t *testing.T) {
	check := func(way, unknown string, steal, lag float64) {
		t.Helper()
		r := healthy()
		l := &r.Loads[0]
		l.Host.StealShare = 0.05
		l.ResponseTime = record.Dist{Count: 10000, MinNs: ms, P50Ns: ms, P90Ns: ms, P99Ns: 4 * ms,
			P999Ns: 8 * ms, MaxNs: 9 * ms, MeanNs: 1.1 * ms}
		l.PunctualTime, l.OwnLag = flat(10000, ms), flat(10000, ms)
		l.Stalls = &record.Stalls{Way: way, TimeNs: 10 * sec}
		l.StallFree = []record.StallFree{
			{Quantile: 0.99, Ns: 1e6, PunctualNs: 0.9e6, Unknown: unknown},
		}
		found := 0
		for _, f := range verdict.Judge(r).Findings {
			want, judged := map[string]float64{"steal": steal, "lag": lag}[f.Rule]
			if judged && f.Load == l.Name {
				found++
			}
			for _, b := range f.PossibleBias {
				if judged && f.Load == l.Name && b.Metric == "p99" &&
					math.Abs(b.Bound(true)-want) > 1e-6 && !(want < 0 && b.StallFree == nil) {
					t.Errorf("%s: %+v without stalls %v, want %v", f.Rule, b, b.Bound(true), want)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d findings of steal and lag", found)
		}
	}
	check("perf event", "", 0, 0.1)
	check("any other way", "", 0, 0.1)
	check("", "", -1, 0.1)
	check("perf event", "stalls too short to record", 0, 0.1) // all trials together may decide
	check("perf event", "too much excluded", -1, -1)
}
