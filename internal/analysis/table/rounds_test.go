package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
)

// rawRun returns slicedRun with its raw slices: 40 rounds per start of a and b, launched
// alternately in either order. In every tenth round b serves less by the share rare, and slices of
// b lose the share steal of a core.
func rawRun(rare, steal float64) ([]record.Record, SlicesReader) {
	files := map[string][]record.Slice{}
	heads := map[string]record.SlicesHead{}
	records := slicedRun()
	for i := range moods {
		a, b := &records[2*i], &records[2*i+1]
		members := []*record.Record{a, b}
		if i%2 == 1 {
			slices.Reverse(members)
		}
		file := fmt.Sprintf("slices/s%d.ndjson", i+1)
		head := record.SlicesHead{SideBySide: *a.SideBySide}
		for _, r := range members {
			head.Trials = append(head.Trials, r.Trial)
			r.SideBySide.File = file
		}
		heads[file] = head
		for target, r := range members {
			s := r.Loads[0].Slices
			perSlice := s.Requests / 40
			s.Requests, s.CPUNs = 0, 0
			r.Loads[0].Service.CPUPerRequestNs = 0 // of the window: unknown
			for round := range 40 {
				x := record.Slice{Round: round + 1, Target: target, ClosedNs: 40e6,
					EndedNs: 60e6, Requests: perSlice + int64(round%3), CPUNs: 39e6}
				if r == b && round%10 == 0 {
					x.Requests = int64(float64(x.Requests) * (1 - rare))
				}
				if r == b {
					x.StealNs = int64(steal * 60e6)
				}
				s.Requests, s.CPUNs = s.Requests+x.Requests, s.CPUNs+x.CPUNs
				files[file] = append(files[file], x)
			}
		}
	}
	return records, func(file string) (record.SlicesHead, []record.Slice, error) {
		if files[file] == nil {
			return record.SlicesHead{}, nil, fmt.Errorf("no file %s", file)
		}
		return heads[file], files[file], nil
	}
}

// rules returns the rules of a scenario's findings, with their grades.
func rules(sc *Scenario) string {
	var out []string
	for _, f := range sc.Findings {
		out = append(out, f.Rule+" "+f.Grade)
	}
	return strings.Join(out, ", ")
}

// TestRawSlices checks that raw slices show rare events and the machine's effect, and that the
// ratio still comes from sums.
func TestRawSlices(t *testing.T) {
	check := func(rare, steal float64, want string) {
		t.Helper()
		records, read := rawRun(rare, steal)
		study := analyze(records, Options{Baseline: "a", Slices: read})
		without := analyze(records, Options{Baseline: "a"})
		sc := study.Scenarios[0]
		if got := rules(sc); got != want {
			t.Errorf("rare %v, steal %v: %q, want %q\n%v", rare, steal, got, want,
				Texts(sc.FindingNotes()))
		}
		m, _ := sc.Target("b").Metric("peak", metric.Throughput)
		n, _ := without.Scenarios[0].Target("b").Metric("peak", metric.Throughput)
		if math.Abs(m.Ratio.Center-n.Ratio.Center) > 1e-12 || len(sc.Starts.Raw) != 5 {
			t.Errorf("ratio %v with raw slices of %d starts, %v without", m.Ratio.Center,
				len(sc.Starts.Raw), n.Ratio.Center)
		}
	}
	check(0, 0, "")
	check(0.4, 0, "rare events VALID") // a tenth of 40 %: 4 %
	check(0, 0.02, "balance SUSPECT")
	check(0, 0.001, "balance VALID")
	// Steal time that is unknown (-1 ns) is in balance, although slices of b are shorter.
	records, read := rawRun(0, 0)
	study := analyze(records, Options{Baseline: "a",
		Slices: func(file string) (record.SlicesHead, []record.Slice, error) {
			head, all, err := read(file)
			all = slices.Clone(all)
			for i := range all {
				all[i].StealNs = -1
				if strings.HasSuffix(head.Trials[all[i].Target], "-b") {
					all[i].EndedNs = 50e6
				}
			}
			return head, all, err
		}})
	if got := rules(study.Scenarios[0]); got != "" || len(study.Scenarios[0].Starts.Raw) != 5 {
		t.Errorf("unknown steal time: %q", got)
	}
}

// TestWarmupMovesRatioByItsEnd plants a window that ends 10 % above its mean. In the ratio only the
// change counts that slices show in pairs, and the compilers' share.
func TestWarmupMovesRatioByItsEnd(t *testing.T) {
	check := func(faster float64, compilerNs int64, readable bool, want string) {
		t.Helper()
		records, read := rawRun(0, 0)
		for i := range records {
			r := &records[i]
			if r.Target.Name != "b" {
				continue
			}
			usage := &r.Loads[0].Service
			usage.CPUNs, usage.WindowNs = 1e9, 1e9
			usage.Roles = &record.Roles{CompilerNs: compilerNs}
			r.Verdict.Findings = []record.Finding{{Rule: "warm-up", Load: "peak",
				Grade: record.Suspect, PossibleBias: []record.Bias{
					{Metric: metric.Throughput, Share: 0.1}}}}
			if !readable {
				continue
			}
			_, all, err := read(r.SideBySide.File)
			if err != nil {
				t.Fatal(err)
			}
			for j := range all {
				if all[j].Target == 1-i/2%2 && all[j].Round > 30 { // b
					all[j].Requests = int64(float64(all[j].Requests) * (1 + faster))
				}
			}
		}
		if !readable {
			read = nil
		}
		study := analyze(records, Options{Baseline: "a", Slices: read})
		if got := suspects(study.Scenarios[0], metric.Throughput); got != want {
			t.Errorf("%v faster at the end, compilers %d ns, raw slices %v: %q, want %q", faster,
				compilerNs, readable, got, want)
		}
	}
	check(0, 0, true, record.Valid)
	check(0.02, 0, true, record.Suspect+" warm-up")
	check(0, 1e8, true, record.Suspect+" warm-up")
	check(0, 0, false, record.Suspect+" warm-up")
}

// TestRawSlicesNameTargets checks that each slice belongs to the target that the file names,
// whatever the order of launch.
func TestRawSlicesNameTargets(t *testing.T) {
	records, read := rawRun(0, 0)
	study := analyze(records, Options{Baseline: "a", Slices: read})
	for i, raw := range study.Scenarios[0].Starts.Raw {
		want := []string{"a", "b"}
		if i%2 == 1 {
			want = []string{"b", "a"}
		}
		if raw.Block != i+1 || !slices.Equal(raw.Rows, want) {
			t.Errorf("start %d has %v, want %v", raw.Block, raw.Rows, want)
		}
	}
	// A file that cannot be read changes no number.
	records[0].SideBySide.File, records[1].SideBySide.File = "gone", "gone"
	study = analyze(records, Options{Baseline: "a", Slices: read})
	m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.Throughput)
	if m.Ratio.N != 5 || len(study.Scenarios[0].Starts.Raw) != 4 {
		t.Errorf("%d starts in the ratio, %d read", m.Ratio.N, len(study.Scenarios[0].Starts.Raw))
	}
	says := func(want string) {
		t.Helper()
		if got := strings.Join(Texts(study.Scenarios[0].slicedNote()), " "); !strings.Contains(got,
			want) {
			t.Errorf("the notes are %q, want %q", got, want)
		}
	}
	says("The slices of 1 start cannot be used, the first of them start 1: no file gone.")
	// Nor does one that is not that of its records: a slice is there twice.
	records, read = rawRun(0, 0)
	study = analyze(records, Options{Baseline: "a",
		Slices: func(file string) (record.SlicesHead, []record.Slice, error) {
			head, all, err := read(file)
			if file == "slices/s2.ndjson" {
				all = append(slices.Clone(all), all[0])
			}
			return head, all, err
		}})
	if n := len(study.Scenarios[0].Starts.Raw); n != 4 {
		t.Errorf("%d starts are used", n)
	}
	says("the first of them start 2: slices/s2.ndjson has 41 slices of trial ")
}

// TestControlWidens checks that the control widens an interval that it contradicts.
func TestControlWidens(t *testing.T) {
	width := func(noise float64) float64 {
		records := slicedRun()
		for i, m := range moods {
			r := slicedTrial("a-again", i+1, 50e3, 50e3*m.start*(1+noise*float64(i%2)), 20e3)
			r.Target.ControlOf = "a"
			records = append(records, r)
		}
		study := analyze(records, Options{Baseline: "a"})
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.Throughput)
		return m.Ratio.Hi - m.Ratio.Lo
	}
	if quiet, loud := width(0.0001), width(0.1); !(loud > 20*quiet) {
		t.Errorf("intervals are %v wide with a quiet control, %v with a loud one", quiet, loud)
	}
}

// TestControlServesRatios checks by hand that ratios divide by the mean of both instances of the
// baseline where the control ran, and that the control itself is compared with one of them.
func TestControlServesRatios(t *testing.T) {
	records := slicedRun()
	want := math.Log(0.95 * 1.0008)
	control := 0.0
	for i, m := range moods {
		if i == 0 { // without a control
			continue
		}
		by := 1 + 0.02*float64(i)
		r := slicedTrial("a-again", i+1, 50e3, 50e3*m.start*by, 20e3)
		r.Target.ControlOf = "a"
		records = append(records, r)
		want -= math.Log(by) / 2 / float64(len(moods))
		control += math.Log(by) / float64(len(moods)-1)
	}
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	check := func(name string, log float64) {
		t.Helper()
		m, _ := sc.Target(name).Metric("peak", metric.Throughput)
		if m.Ratio == nil || math.Abs(math.Log(m.Ratio.Center)-log) > 1e-4 {
			t.Errorf("%s: %+v, want %v", name, m.Ratio, math.Exp(log))
		}
	}
	check("b", want)
	check("a-again", control)
	a, b := sc.Target("a"), sc.Target("b")
	got := sc.StartRatio(a, b, "peak", metric.Throughput, 5)
	if ratio := 0.95 * 1.001 / math.Sqrt(1.08); math.Abs(got-ratio) > 1e-4 {
		t.Errorf("start 5: %v, want %v", got, ratio)
	}
}
