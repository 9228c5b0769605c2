package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// openRun is slicedRun with an open load, of which b's p99 is 4 ms with stalls and 2 ms without.
func openRun(change func(r *record.Record, s *record.Sliced)) (records []record.Record) {
	for _, r := range slicedRun() {
		h := hdrhistogram.New(1, 60e9, 3)
		free, raw := int64(1e6), int64(1e6)
		if r.Target.Name == "b" {
			free, raw = 2e6, 4e6
		}
		_ = h.RecordValues(raw, 10000) // in range
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			panic(err)
		}
		s := &record.Sliced{Slices: 3, RatePerS: 1000, Requests: 10000, TimeNs: 10e9,
			ResponseTime: record.Dist{Count: 10000, P50Ns: raw, P99Ns: raw, HDR: string(hdr)}}
		for _, q := range []float64{0.5, 0.99, 0.9} {
			s.StallFree = append(s.StallFree, record.StallFree{Quantile: q, Ns: free, RawNs: raw,
				KeptShare: 0.9})
		}
		r.SideBySide.Open = &record.OpenSlices{Rounds: 3, RatePerS: 1000,
			Stalls: &record.Stalls{TimeNs: 100e9, StalledNs: 4e9}}
		change(&r, s)
		half := r.Loads[0]
		half.Name, half.Model, half.RatePerS, half.ResponseTime = "half", record.Open, 1000,
			s.ResponseTime
		half.Slices = s
		r.Loads = append(r.Loads, half)
		records = append(records, r)
	}
	return records
}

// checkOpenRatio checks the ratio of p99 from slices after a change to openRun, and the notes.
func checkOpenRatio(t *testing.T) func(bool, func(*record.Record, *record.Sliced), float64,
	...string) {
	t.Helper()
	return func(keep bool, change func(*record.Record, *record.Sliced), want float64,
		notes ...string,
	) {
		t.Helper()
		study := analyze(
			openRun(change),
			Options{Baseline: "a", Stalls: map[bool]string{true: KeepStalls}[keep]},
		)
		m, _ := study.Scenarios[0].Target("b").Metric("half", "p99")
		got := 0.0
		if m.Ratio != nil {
			got = m.Ratio.Center
		}
		if m.Source != FromSlices || math.Abs(got-want) > 0.01*want {
			t.Errorf("ratio %v from %q, want %v", got, m.Source, want)
		}
		tab := only(t, study.Sheet())
		text := strings.Join(Texts(tab.Notes), "\n")
		if m.Unsliced.Is() {
			text += "\n" + strings.Join(Texts([]Note{m.Unsliced}), "\n")
		}
		for _, note := range notes {
			if !strings.Contains(text, note) {
				t.Errorf("%q is not in\n%s", note, text)
			}
		}
		if keep && strings.Contains(text, "stalls") {
			t.Errorf("stalls are kept, and the notes are\n%s", text)
		}
	}
}

// invalidIn returns a record in which a window of a load, or its slices, do not count.
func invalidIn(r record.Record, load, phase string) record.Record {
	r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
		{Rule: "errors", Load: load, Grade: record.Invalid, Phase: phase}}}
	return r
}

// lowerFrom are shares of the time from which on short stalls can have made a difference.
var lowerFrom = []float64{0.005, 0.0052, 0.0054, 0.0056, 0.006, 0.0062, 0.0064}

// Stalls too short to be recorded can have made both percentiles too high, by up to 30 % each. So
// the ratio may be too high by 30 %, or too low by 30 / 70 %.
func TestRatioDoubtedForShortStalls(t *testing.T) {
	records := openRun(func(r *record.Record, s *record.Sliced) {
		s.StallFree[1].LowerFrom = lowerFrom
		s.StallFree[1].LowestNs = 1 // of one window
		s.Unseen = &record.Unseen{Ns: 5_800_000, TimeNs: 1e9}
	})
	study := analyze(records, Options{Baseline: "a"})
	m, _ := study.Scenarios[0].Target("b").Metric("half", "p99")
	if d := m.RatioDoubt; d == nil || math.Abs(d.Share-(0.3+0.3/0.7)) > 1e-6 ||
		!slices.Equal(d.Rules, []string{shortStalls}) || m.RatioGrade() != record.Suspect {
		t.Errorf("ratio %+v, grade %q, doubt %+v", m.Ratio, m.RatioGrade(), d)
	}
	p50, _ := study.Scenarios[0].Target("b").Metric("half", "p50")
	if p50.RatioDoubt != nil {
		t.Errorf("p50 has no such bounds, and its doubt is %+v", p50.RatioDoubt)
	}
}

// Ratios of response times are without the machine's stalls, or with them if asked for; they are
// unknown if too few arrivals remain.
func TestRatiosWithoutStalls(t *testing.T) {
	check := checkOpenRatio(t)
	same := func(*record.Record, *record.Sliced) {}
	check(false, same, 2, "stalls took 4.0 % of the time, and 10 % of arrivals are left out; "+
		"with them, p99 of b is 4.00 ms instead of 2.00 ms")
	check(true, same, 4)
	few := func(r *record.Record, s *record.Sliced) {
		if r.Block == 2 && r.Target.Name == "a" {
			s.StallFree[1].Unknown, s.StallFree[1].KeptShare = stats.TooMuchExcluded, 0.45
		}
	}
	check(false, few, 0,
		"unknown without the machine's stalls: 45 % of arrivals remain")
	check(true, few, 4)
	// Shares of arrivals that remain must be alike: on average they are 10 points apart, or 10.2.
	apart := func(kept float64) func(*record.Record, *record.Sliced) {
		return func(r *record.Record, s *record.Sliced) {
			if r.Target.Name == "b" {
				s.StallFree[1].KeptShare = kept
			}
		}
	}
	check(false, apart(0.8), 2)
	check(false, apart(0.798), 0, "unknown without the machine's stalls: the shares of "+
		"arrivals that the two targets keep are more than 10 percentage points apart")
	check(true, apart(0.7), 4)
	// INVALID slices count nowhere.
	check(false, func(r *record.Record, s *record.Sliced) {
		if r.Target.Name == "b" && r.Block == 2 {
			*r = invalidIn(*r, "half", record.PhaseSlices)
			for i := range s.StallFree {
				s.StallFree[i].KeptShare, s.StallFree[i].RawNs = 0.1, 90e6
			}
		}
	}, 2, "and 10 % of arrivals are left out; with them, p99 of b is 4.00 ms instead of 2.00 ms")
	check(false, func(r *record.Record, s *record.Sliced) {
		if r.Target.Name == "b" && r.Block == 2 {
			*r = invalidIn(*r, "half", record.PhaseSlices)
			s.StallFree, s.RatePerS = nil, 1
		}
	}, 2, "at the same rate for all targets (1.00k/s to 1.00k/s)")
	// Stalls too short to be recorded are estimated from all starts. That of one start alone, by
	// which it decided, is mostly chance. A target that certainly has more of them counts alone.
	unseen := func(a, b record.Unseen) func(*record.Record, *record.Sliced) {
		return func(r *record.Record, s *record.Sliced) {
			s.StallFree[1].LowerFrom = lowerFrom
			if r.Block == 2 {
				s.StallFree[1].Unknown = stats.UnrecordedStalls
			}
			s.Unseen = map[string]*record.Unseen{"a": &a, "b": &b}[r.Target.Name]
		}
	}
	quiet := record.Unseen{Ns: 1e6, ErrNs: 5e6, TimeNs: 1e9}
	check(false, unseen(quiet, quiet), 2)
	short := "unknown without the machine's stalls: many stalls are too short to be recorded"
	noisy := record.Unseen{Ns: 6e6, ErrNs: 1e6, TimeNs: 1e9}
	check(false, unseen(noisy, noisy), 0, short)
	// That of each start alone was too little, and that of all is too much.
	check(false, func(r *record.Record, s *record.Sliced) {
		s.StallFree[1].LowerFrom, s.Unseen = lowerFrom, &noisy
	}, 0, short)
	check(false, unseen(quiet, record.Unseen{Ns: 20e6, ErrNs: 2e6, TimeNs: 1e9}), 0, short)
	// One start without a record of stalls has none left out, so the others have not either.
	check(false, func(r *record.Record, s *record.Sliced) {
		if r.Block == 2 {
			s.StallFree = nil
		}
	}, 4)
}

// Levels are without the machine's stalls if all trials of their target are. Bounds of what
// the machine did are then those that remain. Rows with stalls say so if others are without.
func TestLevelsWithoutStalls(t *testing.T) {
	zero := 0.0
	check := func(keep bool, change func(*record.Record), want float64, note string) {
		t.Helper()
		records := openRun(func(*record.Record, *record.Sliced) {})
		for i := range records {
			half := &records[i].Loads[1]
			half.StallFree = slices.Clone(half.Slices.StallFree)
			half.Stalls = records[i].SideBySide.Open.Stalls
			records[i].Verdict = record.Verdict{Grade: record.Valid, Findings: []record.Finding{
				{Rule: "steal", Load: "half", Grade: record.Valid, Phase: record.PhaseWindow,
					PossibleBias: []record.Bias{{Metric: "p99", Share: 2, StallFree: &zero}}}}}
			change(&records[i])
		}
		study := analyze(
			records,
			Options{Baseline: "a", Stalls: map[bool]string{true: KeepStalls}[keep]},
		)
		m, _ := study.Scenarios[0].Target("b").Metric("half", "p99")
		if math.Abs(m.Summary.Center/want-1) > 0.01 || (m.Doubt == nil) != m.StallFree {
			t.Errorf("p99 %v, want %v; doubt %+v", m.Summary.Center, want, m.Doubt)
		}
		tab := only(t, study.Sheet())
		text := strings.Join(Texts(tab.Notes), "\n")
		for _, f := range tab.Footnotes {
			text += "\n" + f.String()
		}
		if note == "" && strings.Contains(text, "stalls") || !strings.Contains(text, note) {
			t.Errorf("%q is not in\n%s", note, text)
		}
	}
	check(
		false,
		func(*record.Record) {},
		2e6,
		"in windows of half leave out the arrivals near stalls of the machine: stalls took "+
			"4.0 % of the time",
	)
	check(true, func(*record.Record) {}, 4e6, "")
	// INVALID windows count nowhere.
	check(false, func(r *record.Record) {
		if r.Block == 2 {
			*r = invalidIn(*r, "half", record.PhaseWindow)
			x := &r.Loads[1].StallFree[1]
			x.RawNs, x.KeptShare = 90e6, 0.1
		}
	}, 2e6, "in windows of half leave out the arrivals near stalls of the machine: stalls took "+
		"4.0 % of the time, and 10 % of arrivals are left out")
	check(false, func(r *record.Record) {
		if r.Block == 2 && r.Target.Name == "a" {
			x := &r.Loads[1].StallFree[1]
			x.Unknown, x.KeptShare = stats.TooMuchExcluded, 0.45
		}
	}, 2e6, "half p99: includes the machine's stalls\n")
	// Too few arrivals remain, also if all trials show that few stalls are too short to record.
	check(false, func(r *record.Record) {
		if r.Block == 2 {
			x := &r.Loads[1].StallFree[1]
			x.Unknown, x.LowerFrom = stats.TooFewArrivals, lowerFrom
		}
	}, 4e6, "include the machine's stalls, because without them those of a are unknown.\n"+
		"Stalls cannot be left out of some values: too few arrivals remain")
	check(false, func(r *record.Record) {
		if r.Block == 2 {
			x := &r.Loads[1].StallFree[1]
			x.Unknown, x.KeptShare = stats.TooMuchExcluded, 0.45
		}
	}, 4e6, "include the machine's stalls, because without them those of a are unknown.\n"+
		"Stalls cannot be left out of some values: 45 % of arrivals")
}

// A ratio from windows is unknown if one side alone is without the machine's stalls.
func TestWindowsWithAndWithoutStalls(t *testing.T) {
	check := func(change func(*record.Load), ratio float64, why string) {
		t.Helper()
		records := openRun(func(*record.Record, *record.Sliced) {})
		for i := range records {
			r := &records[i]
			half := &r.Loads[1]
			half.StallFree = slices.Clone(half.Slices.StallFree)
			if half.Slices, r.SideBySide = nil, nil; r.Target.Name == "a" {
				change(half)
			}
			r.Loads[0].Slices = nil
		}
		sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
		m, _ := sc.Target("b").Metric("half", "p99")
		got := 0.0
		if m.Ratio != nil {
			got = m.Ratio.Center
		}
		if math.Abs(got-ratio) > 0.01 || !strings.Contains(m.Unsliced.String(), why) {
			t.Errorf("ratio %v, want %v; %q, want %q", got, ratio, m.Unsliced, why)
		}
	}
	check(func(*record.Load) {}, 2, "")
	check(func(l *record.Load) { l.StallFree = nil }, 0, "of one side were not recorded")
	check(func(l *record.Load) {
		l.StallFree[1].Unknown, l.StallFree[1].KeptShare = stats.TooMuchExcluded, 0.45
	}, 0, "45 % of arrivals remain")
}
