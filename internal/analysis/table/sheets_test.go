package table

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

var update = flag.Bool("update", false, "write testdata/sheets.txt")

// everyTarget returns a run with all that tables show.
func everyTarget() (records []record.Record) {
	for block := range 6 {
		for i, name := range []string{"a", "b", "c"} {
			r := with(full(block+1), 5000, int64(1e6+1e5*i+1e4*block))
			r.Target.Name, r.Trial = name, fmt.Sprintf("b%d-%s", block+1, name)
			r.Loads[0].ThroughputPerS = 100 + 20*float64(i) + float64(block*block%5)
			r.Loads[0].Done = int64(10 * r.Loads[0].ThroughputPerS)
			records = append(records, r)
		}
	}
	return records
}

// studies are the runs of this package's tests.
var studies = []struct {
	name    string
	records func() []record.Record
	options Options
}{
	{"all columns", everyTarget, Options{Baseline: "a", Columns: metric.ColumnNames()}},
	{"ranking", everyTarget, Options{}},
	{"few trials", func() []record.Record { return everyTarget()[:6] }, Options{Baseline: "c"}},
	{"one block", func() []record.Record { return everyTarget()[:3] }, Options{Baseline: "a"}},
	{"three values", three, Options{}},
	{"starts", slicedRun, Options{Baseline: "a"}},
	{"groups", groupedRun, Options{Baseline: "a"}},
	{"open slices", func() []record.Record {
		return openRun(func(*record.Record, *record.Sliced) {})
	}, Options{Baseline: "a"}},
	{"open slices with stalls", func() []record.Record {
		return openRun(func(*record.Record, *record.Sliced) {})
	}, Options{Baseline: "a", Stalls: KeepStalls}},
	{"windows of one target without stalls", func() []record.Record {
		records := tailed([2]float64{4, 8}, [2]string{})
		for i := range records {
			if records[i].Target.Name == "a" {
				records[i].Loads[1].StallFree = nil
			}
		}
		return records
	}, Options{Baseline: "a"}},
	{"windows without stalls", func() []record.Record {
		return tailed([2]float64{4, 8}, [2]string{})
	}, Options{Baseline: "a"}},
	{"windows with stalls", func() []record.Record {
		return tailed([2]float64{4, 8}, [2]string{"", stats.TooMuchExcluded})
	}, Options{Baseline: "a"}},
	{"throughput without stalls", func() []record.Record {
		return rateRun(func(*record.Record, *record.WithoutStalls) {})
	}, Options{Baseline: "a", Columns: []string{"withoutStalls"}}},
	{"variants", watchedTrials, Options{Baseline: "x"}},
	{"checkouts", func() []record.Record {
		return slices.Concat(riding("a", "none", "", "", 100, 101, 102),
			riding("a", "none", "", "old", 90, 92, 93))
	}, Options{Baseline: "a"}},
	{"system", func() []record.Record {
		return []record.Record{system(1), system(2), full(1), full(2)}
	}, Options{}},
	{"capacity", func() (records []record.Record) {
		for block := 1; block <= 4; block++ {
			records = append(records, searched("slow", block, 300+float64(block)),
				searched("quick", block, float64(block%4*100)))
		}
		return records
	}, Options{Baseline: "slow"}},
	{"doubts", func() []record.Record {
		records := everyTarget()
		records[1] = judged(records[1], suspect("peak"))
		records[4] = judged(records[4], suspect("half"))
		records[5].Verdict.Grade = record.Invalid
		return records
	}, Options{Baseline: "a", Missing: []record.Planned{{Trial: "b7-a", Row: "a"}}}},
}

// sheetText returns all texts of a sheet.
func sheetText(s Sheet) string {
	var b strings.Builder
	line := func(form string, args ...any) { fmt.Fprintf(&b, form+"\n", args...) }
	for _, a := range s.Answers {
		line("%s", a)
	}
	line("%s", s.Head)
	for _, tab := range s.Tables {
		line("- %s", tab.Title())
		for _, c := range tab.Columns {
			line("  %s: %s", c.Key, c.FullHeading())
		}
		for _, r := range tab.Rows {
			line("  %s, tier %d, %s", r.Name, r.Tier, r.Span)
			for _, c := range r.Cells {
				line("    %s {%s} %s n=%d %s %v", c.Text(), c.Range(), c.State, c.N, c.Grade,
					c.Refs)
			}
		}
		for _, f := range tab.Footnotes {
			line("  %s", f)
		}
		for _, n := range Texts(tab.Notes) {
			line("  %s", n)
		}
	}
	line("%+v %+v", s.Numbers, s.Verdicts)
	return b.String()
}

// TestSheets checks all texts of the tables of this package's runs, and their numbers.
func TestSheets(t *testing.T) {
	var b strings.Builder
	for _, x := range studies {
		study := analyze(x.records(), x.options)
		fmt.Fprintf(&b, "== %s\n%s", x.name, sheetText(study.Sheet()))
		for _, sc := range study.Scenarios {
			for target, m := range sc.Metrics() {
				s := m.Summary
				fmt.Fprintf(&b, "%s %s %s: %.6g %.6g %.6g", target.Name, m.Load, m.Name, s.Center,
					s.Lo, s.Hi)
				if r := m.Ratio; r != nil {
					fmt.Fprintf(&b, ", ratio %.6g %.6g %.6g of %d", r.Center, r.Lo, r.Hi, r.N)
				}
				fmt.Fprintln(&b)
			}
		}
	}
	testsets.Golden(t, *update, "testdata/sheets.txt", b.String())
}
