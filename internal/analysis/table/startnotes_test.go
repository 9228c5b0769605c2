package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
)

// TestNotesOfStarts checks the notes on the source of the starts' scatter and on the rarest event.
func TestNotesOfStarts(t *testing.T) {
	records, read := rawRun(0, 0)
	check := func(o Options, want, lacks string) {
		t.Helper()
		o.Baseline = "a"
		text := strings.Join(Texts(only(t, sheetOf(records, o)).Notes), "\n")
		if !strings.Contains(text, want) || lacks != "" && strings.Contains(text, lacks) {
			t.Errorf("want %q, and nothing of %q, in\n%s", want, lacks, text)
		}
	}
	// 40 windows of 40 ms, by 5 events.
	check(Options{Slices: read}, "rarer than one in 0.32 s of load", "Intervals of")
	// All rounds of a start are alike but for two requests, so its 0.1 % are between starts.
	check(Options{Slices: read}, "Noise of peak req/s within starts explains ", "control")
	check(Options{}, "Ratios and tiers", "rarer than") // without the raw slices, both are unknown
	check(Options{}, "Ratios and tiers", "Noise of")
	// A control that differs from a by 10 % from start to start, while their mean stays the same.
	for i, m := range moods {
		by := math.Sqrt(1 + 0.1*float64(i%2))
		again := slicedTrial("a-again", i+1, 50e3*m.window, 50e3*m.start*by, 20e3)
		again.Target.ControlOf = "a"
		a := records[2*i].Loads[0].Slices
		a.Requests = int64(float64(a.Requests) / by)
		records = append(records, again)
	}
	check(Options{}, "Intervals of b use the scatter of the control", "Intervals of b, ")
}

// TestHighScatter checks the note on ratios that vary by more than 10 % between starts or blocks.
func TestHighScatter(t *testing.T) {
	check := func(records []record.Record, o Options, want string) {
		t.Helper()
		o.Baseline = "a"
		got := ""
		for _, n := range only(t, sheetOf(records, o)).Notes {
			if n.Kind == NoteHighScatter {
				got = n.String()
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	a := rates("a", 100, 100, 100)
	// Logarithms of 1, 1.25 and 0.9 have an SD of 0.17, those of 1, 1.15 and 1 of 0.08.
	check(append(rates("b", 100, 125, 90), a...), Options{},
		"Ratios of peak req/s vary by more than 10 % between blocks (standard deviation; up to 5 %")
	check(append(rates("b", 100, 115, 100), a...), Options{}, "")
	check(append(rates("b", 100, 150), a...), Options{}, "") // too few for an SD
	records, read := rawRun(0, 0)
	check(records, Options{Slices: read}, "")
	for i := range records {
		if s := records[i].Loads[0].Slices; i%4 == 1 {
			s.Requests = s.Requests * 13 / 10
		}
	}
	check(records, Options{}, "Ratios of peak req/s vary by more than 10 % between starts")
}

// TestPlanSDOfStarts checks that further starts are planned by the scatter of the rounds, of the
// pair and of the control together, or by the interval's without raw slices, without a control, and
// if the control's scatter makes the interval.
func TestPlanSDOfStarts(t *testing.T) {
	check := func(want bool, control float64, add, raw bool) {
		t.Helper()
		records, read := rawRun(0, 0)
		for i, m := range moods {
			by := math.Sqrt(1 + control*float64(i%2))
			again := slicedTrial("a-again", i+1, 50e3, 50e3*m.start*by, 20e3)
			again.Target.ControlOf = "a"
			slower(&records[2*i], read, by)
			again.SideBySide.File = records[2*i].SideBySide.File
			if add {
				records = append(records, again)
			}
		}
		o := Options{Baseline: "a"}
		if raw {
			o.Slices = withControl(records, read)
		}
		sc := analyze(records, o).Scenarios[0]
		sd := sc.PlanSD(sc.Target("a"), sc.Target("b"), "peak", metric.Throughput)
		if (sd > 0 && sd < 0.1) != want || !want && !math.IsNaN(sd) {
			t.Errorf("control %v, added %v, raw %v: %v, want one %v", control, add, raw, sd, want)
		}
	}
	check(true, 0.002, true, true)
	check(false, 0.002, true, false)
	check(false, 0, false, true)
	check(false, 0.5, true, true)
}

// slower divides the requests of a target by a factor, in its record and in the raw slices.
func slower(r *record.Record, read SlicesReader, by float64) {
	head, all, _ := read(r.SideBySide.File)
	sum := r.Loads[0].Slices
	sum.Requests = 0
	for i := range all {
		if all[i].Target == slices.Index(head.Trials, r.Trial) {
			all[i].Requests = int64(float64(all[i].Requests) / by)
			sum.Requests += all[i].Requests
		}
	}
}

// withControl reads slices of a-again together with those of a, which differ by a request in every
// second one, and by what makes their sum that of the record.
func withControl(records []record.Record, read SlicesReader) SlicesReader {
	return func(file string) (record.SlicesHead, []record.Slice, error) {
		head, all, err := read(file)
		for _, r := range records {
			at := slices.Index(head.Trials, r.Trial)
			if r.SideBySide.File != file || r.Target.Name != "a" || at < 0 {
				continue
			}
			again := strings.Replace(r.Trial, "a", "a-again", 1)
			head.Trials = append(slices.Clone(head.Trials), again)
			var added []record.Slice
			left := int64(0)
			for _, x := range all {
				if x.Target == at {
					x.Target, x.Requests = len(head.Trials)-1, x.Requests+int64(x.Round%2)
					added, left = append(added, x), left-x.Requests
				}
			}
			for _, other := range records {
				if other.Trial == again {
					left += other.Loads[0].Slices.Requests
				}
			}
			for i := range added { // without a record, nothing compares their sum
				part := left / int64(len(added)-i)
				added[i].Requests, left = added[i].Requests+part, left-part
			}
			all = append(slices.Clone(all), added...)
		}
		return head, all, err
	}
}
