package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// TestFiguresSayFindings checks that the page's texts have no number with a wide interval.
func TestFiguresSayFindings(t *testing.T) {
	check := func(lo, hi float64, want string) {
		t.Helper()
		m := table.Metric{Unit: "1/s", Summary: stats.Summary{N: 3, Center: 200, Lo: lo, Hi: hi}}
		if got := withInterval(m); got != want {
			t.Errorf("from %v to %v it says %q, want %q", lo, hi, got, want)
		}
	}
	check(150, 300, "200 [150 – 300]")
	check(1, 3e15, "200 [unknown]")
	check(math.NaN(), math.NaN(), "200")

	floor := table.Floor{Target: "a", Load: "peak", Metric: "throughput", Unit: "1/s",
		Detects: 1e15, Ratio: stats.Ratio{N: 2, Center: 1, Lo: 0.001, Hi: 1000, SDLog: 1}}
	s := floorStrip(&table.Scenario{Floors: []table.Floor{floor}})
	if row := s.Groups[0].Rows[0]; !strings.HasSuffix(row.Range, "resolution unknown") {
		t.Errorf("the row says %q", row.Range)
	}
	if !strings.HasSuffix(s.Says, "too few blocks to know which difference they detect.") {
		t.Errorf("the figure says %q", s.Says)
	}
	floor.Ratio = stats.Ratio{N: 1, Center: 1.2, Lo: math.NaN(), Hi: math.NaN()}
	s = floorStrip(&table.Scenario{Floors: []table.Floor{floor}})
	if !strings.HasPrefix(s.Says, "No ratio has an interval.") {
		t.Errorf("one block: the figure says %q", s.Says)
	}
}

// TestFiguresLeaveOutUnknown checks that the text and the table of response times have no number of
// a target whose p99 is withheld, or that has none at this load.
func TestFiguresLeaveOutUnknown(t *testing.T) {
	target := func(name, load string, withheld table.Note) *table.Target {
		return &table.Target{Name: name, Metrics: []table.Metric{{Load: load, Name: "p99",
			Unit: "ns", Withheld: withheld, Summary: stats.Summary{N: 3, Center: 2e6, Lo: 1.5e6,
				Hi: 2.5e6}}}}
	}
	check := func(said, first string, targets ...*table.Target) {
		t.Helper()
		sc, half := &table.Scenario{Targets: targets}, pageLatency{Load: "half", Title: "half"}
		if got := latencySays(sc, half); !strings.HasSuffix(got, said) {
			t.Errorf("the figure says %q, want %q", got, said)
		}
		if got := latencyTables(sc, []pageLatency{half})[0].Rows[0][3]; got != first {
			t.Errorf("the table has p99 %q, want %q", got, first)
		}
	}
	withheld := target("b", "half", table.NoteOf(table.NoteOneTrial))
	check("p99 at half: a 2.00 ms.", "2.00 ms [1.50 ms – 2.50 ms]",
		target("a", "half", table.Note{}), withheld, target("c", "peak", table.Note{}))
	check("no target has a known p99.", units.Absent, withheld)
	check("no target has a known p99.", units.Absent, target("c", "peak", table.Note{}))
}

// TestFiguresSplitProcessorTime checks that a JVM's windows have a table of CPU time by purpose,
// and that others have none.
func TestFiguresSplitProcessorTime(t *testing.T) {
	trial := func(silentAtNs int64, roles *record.Roles) *record.Record {
		u := record.Usage{CPUNs: 1000, Roles: roles}
		return &record.Record{Block: 2, Loads: []record.Load{{Name: "peak", Service: u}},
			Warmup: record.Warmup{DurationNs: 1, CompilersIdleAtNs: silentAtNs}}
	}
	tables := func(r *record.Record) []dataTable {
		return warmupTables(&table.Scenario{Targets: []*table.Target{{Name: "a",
			Trials: []*record.Record{r}}}})
	}
	check := func(r *record.Record, want ...string) {
		t.Helper()
		got := tables(r)
		if len(got) != 2 || !slices.Equal(got[1].Rows[0], want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	check(trial(4e9, &record.Roles{CompilerNs: 60, GCNs: 30}), "a", "2", "peak",
		"91 % service, 6 % compiler, 3 % collector", "after 4s")
	check(trial(-1, &record.Roles{CompilerOrGCNs: 60}), "a", "2", "peak",
		"94 % service, 6 % compiler or collector", "–")
	if got := tables(trial(0, nil)); len(got) != 1 {
		t.Errorf("nothing is known: %+v", got)
	}
}
