package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// watchedTrials returns trials of one target in two blocks, with and without an agent, with all
// measurements.
func watchedTrials() []record.Record {
	var out []record.Record
	for _, v := range []struct {
		variant string
		perS    []float64
		alloc   int64
		spans   int64
	}{
		{"none", []float64{100, 200}, 1000, 0},
		{"agent", []float64{90, 180}, 1500, 300},
	} {
		rs := riding("x", v.variant, "", "", v.perS...)
		for i := range rs {
			l := &rs[i].Loads[0]
			l.Done, l.WindowNs = 100, 1e9
			l.GC = &record.GC{AllocatedBytes: v.alloc * 100, HeapAfterBytes: 1 << 20, PauseNs: 5e6}
			l.Telemetry = &record.WindowTelemetry{Spans: v.spans, WindowNs: 1e9}
			rs[i].Start.ReadyNs = 1e9 + v.spans*1e6
			rs[i].Telemetry = &record.Telemetry{Signals: []record.Signal{
				{Name: record.Spans, Received: v.spans, Bytes: v.spans * 100}},
				Sources: []record.TelemetrySource{{Service: "x", LostSpans: -1},
					{LostSpans: v.spans / 100}}}
			rs[i].Warmup.Requests = 50
		}
		out = append(out, rs...)
	}
	return out
}

// tableOf returns the table of a kind.
func tableOf(t *testing.T, s Sheet, kind string) Table {
	t.Helper()
	for _, tab := range s.Tables {
		if tab.Kind == kind {
			return tab
		}
	}
	t.Fatalf("there is no table of kind %s", kind)
	return Table{}
}

// Spans that senders lost are the sum over those that report them: 0 is a report.
func TestLostSpans(t *testing.T) {
	check := func(want float64, lost ...int64) {
		t.Helper()
		r := &record.Record{Telemetry: &record.Telemetry{}}
		for _, n := range lost {
			r.Telemetry.Sources = append(r.Telemetry.Sources, record.TelemetrySource{LostSpans: n})
		}
		if got := lostSpans(r); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("lost %d: %v, want %v", lost, got, want)
		}
	}
	check(math.NaN())
	check(math.NaN(), -1, -1)
	check(0, 0)
	check(0, -1, 0)
	check(7, 3, -1, 4)
}

// Changes are paired within blocks: 90/100 and 180/200 are both −10 %, so that the interval is
// narrow though the blocks differ by a factor of two; 1500/1000 bytes are +50 %.
func TestOverhead(t *testing.T) {
	tab := tableOf(t, sheetOf(watchedTrials(), Options{}), OverheadKind)
	if len(tab.Rows) != 2 || tab.Rows[0].Name != "x" || tab.Rows[1].Name != "x +agent" {
		t.Fatalf("rows %+v", tab.Rows)
	}
	check := func(row, column, want string) {
		t.Helper()
		if got := find(t, tab, row, "overhead/"+column).Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: %q, want %q", row, column, got, want)
		}
	}
	check("x", "throughput", "150")
	check("x +agent", "throughput", "−10 % [−10, −10]")
	check("x +agent", metric.Allocated, "+50 %")
	check("x +agent", metric.HeapAfterGC, "+0.0 %")
	check("x +agent", metric.GCPaused, "0.5 %") // 5 ms of a second
	check("x +agent", metric.SpansEach, "3")    // 300 of 100 requests
	check("x", metric.SpansEach, "0")
	check("x +agent", "ready", "+30 %")    // 1.3 s after 1 s
	check("x +agent", "p50", units.Absent) // the load is closed
	if said := strings.Join(Texts(tab.Notes), " "); !strings.Contains(said, "peak is a closed "+
		"load") {
		t.Errorf("notes %q", said)
	}
}

// TestDoubtfulChanges checks that a change from one block has no interval, and that the interval
// from ratios of 0.1 and 10 is unknown.
func TestDoubtfulChanges(t *testing.T) {
	check := func(want string, agent ...float64) {
		t.Helper()
		records := riding("x", "none", "", "", 100, 100)[:len(agent)]
		records = append(records, riding("x", "agent", "", "", agent...)...)
		tab := tableOf(t, sheetOf(records, Options{}), OverheadKind)
		if got := find(t, tab, "x +agent", "overhead/throughput").Text(); got != want {
			t.Errorf("%v: %q, want %q", agent, got, want)
		}
	}
	check("−10 % (one trial)", 90)
	check("unknown", 10, 1000)
}

// TestThinkingUsersAreLabelled checks the note that a closed load with think time does not measure
// capacity.
func TestThinkingUsersAreLabelled(t *testing.T) {
	records := watchedTrials()
	for i := range records {
		records[i].Loads[0].Think = "constant 1s"
	}
	tab := tableOf(t, sheetOf(records, Options{}), OverheadKind)
	if said := strings.Join(Texts(tab.Notes), " "); !strings.Contains(said, "does not show "+
		"the capacity") {
		t.Errorf("notes %q", said)
	}
}

// 30,000 bytes of 150 requests, 50 of them of the warm-up, are 200 each. One process reports 3 lost
// spans, and the other reports none.
func TestTold(t *testing.T) {
	tab := tableOf(t, sheetOf(watchedTrials(), Options{}), ToldKind)
	for column, want := range map[string]string{
		"spans": "300", "each": "200 B", "lost": "3", "refused": "0", "logs": "0",
	} {
		if got := find(t, tab, "x +agent", "told/"+column).Text(); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
	records := watchedTrials()[:2] // the bare ones: nobody sends
	for _, tab := range sheetOf(records, Options{}).Tables {
		if tab.Kind == ToldKind {
			t.Errorf("a table of silence: %+v", tab)
		}
	}
}

// TestToldOfObservedTrials checks that observed trials appear in the table of telemetry, failed
// ones with the reason, and that incomplete telemetry is noted. A collector without a response
// counts as unknown.
func TestToldOfObservedTrials(t *testing.T) {
	records := watchedTrials()
	mute := records[3] // the agent's second
	mute.Telemetry = &record.Telemetry{Partial: "it is gone"}
	records[3] = mute
	seen, failed := records[2], records[2]
	seen.Role, seen.Trial = record.Observed, "observed-1"
	failed.Role, failed.Failure = record.Observed, &record.Failure{Step: "ready", Error: "no"}
	tab := tableOf(t, sheetOf(append(records, seen, failed), Options{}), ToldKind)
	if got := find(t, tab, "x +agent", "told/spans"); got.Text() != "300" || got.N != 1 {
		t.Errorf("spans %+v, want those of the one trial that was heard", got)
	}
	if got := find(t, tab, "x +agent, observed", "told/spans").Text(); got != "300" {
		t.Errorf("spans of the observed trial %q", got)
	}
	if last := tab.Rows[len(tab.Rows)-1]; len(last.Cells) != len(tab.Columns) {
		t.Errorf("the last row is %+v", last)
	}
	if said := strings.Join(Texts(tab.Notes), " "); !strings.Contains(said, "(it is gone)") ||
		!strings.Contains(said, "failed in step ready: no.") {
		t.Errorf("notes %q", said)
	}
}

// TestToldOfNobody checks that a collector that reported on no trial leaves a table without numbers
// and with the reason.
func TestToldOfNobody(t *testing.T) {
	records := watchedTrials()[2:3]
	records[0].Telemetry = &record.Telemetry{Partial: "it was killed"}
	seen := records[0]
	seen.Role, seen.Trial = record.Observed, "observed-1"
	for name, some := range map[string][]record.Record{"x +agent": records,
		"x +agent, observed": {seen, watchedTrials()[0]}} {
		tab := tableOf(t, sheetOf(some, Options{}), ToldKind)
		if got := find(t, tab, name, "told/spans"); got.State == Known {
			t.Errorf("%s: spans %+v", name, got)
		}
		if said := strings.Join(Texts(tab.Notes), " "); !strings.Contains(said, "(it was killed)") {
			t.Errorf("%s: notes %q", name, said)
		}
	}
}

// TestTrialsBeside checks that trials outside the comparison are in none of its numbers.
func TestTrialsBeside(t *testing.T) {
	records := rates("a", 100, 100)
	pilot := trial("a", 1, 1)
	pilot.Role = record.Pilot
	study := analyze(append(records, pilot), Options{})
	if n := len(study.Scenarios[0].Targets[0].Trials); n != 2 || len(study.Beside) != 1 {
		t.Errorf("%d trials in the comparison, %d beside", n, len(study.Beside))
	}
}

// TestOverheadNotesByLoad checks which remark explains a closed load: users that think determine
// its throughput, and otherwise the number of connections.
func TestOverheadNotesByLoad(t *testing.T) {
	check := func(model, think string, want ...NoteKind) {
		t.Helper()
		r := trial("a", 1, 1000)
		r.Loads[0].Model, r.Loads[0].Think = model, think
		study := analyze([]record.Record{r}, Options{})
		var got []NoteKind
		for _, n := range study.Scenarios[0].overheadNotes(study.Options)[1:] {
			got = append(got, n.Kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s, think %q: notes %v, want %v", model, think, got, want)
		}
	}
	check(record.Closed, "", NoteLoadIsClosed)
	check(record.Closed, "1s", NoteUsersThink)
	check(record.Open, "")
}
