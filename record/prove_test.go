package record

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// A record whose numbers contradict each other is saved INVALID, with the identities, and can be
// read again; its other loads keep their grade.
func TestAppendProves(t *testing.T) {
	for _, row := range []struct {
		load, want string // of the finding; empty: there is none
		change     func(*Record, *Load)
	}{
		{"", "", func(*Record, *Load) {}},
		{"half", "scheduled ≥ sent: 1000, but sent is 1001", func(_ *Record, l *Load) {
			l.Sent = 1001
		}},
		{"half", "throughputPerS: the number NaN", func(_ *Record, l *Load) {
			l.ThroughputPerS = math.NaN()
		}},
		{"half", "series: p99Ns: the number 4e+18", func(_ *Record, l *Load) {
			l.Series.P99Ns = []int64{1, 4e18, 1, 1}
		}},
		{"", "probe: cpuShare: the number +Inf", func(r *Record, _ *Load) {
			r.Probe.CPUShare = math.Inf(1)
		}},
		{"", "durationNs is -1", func(r *Record, _ *Load) { r.DurationNs = -1 }},
		{"", "loads: it has none", func(r *Record, _ *Load) { r.Loads = nil }},
		{"", `outcome "" is neither`, func(r *Record, _ *Load) { r.Outcome = "" }},
		{"", "block -1", func(r *Record, _ *Load) { r.Outcome, r.Block = Failed, -1 }},
	} {
		r := proven()
		peak := r.Loads[0]
		peak.Name = "peak"
		r.Loads = append(r.Loads, peak)
		row.change(r, &r.Loads[0])
		dir := filepath.Join(t.TempDir(), "run")
		w, err := Create(dir, Run{ID: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(r); err != nil {
			t.Errorf("%s: %v", row.want, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, records, bad, err := Read(dir)
		if err != nil || len(records) != 1 || len(bad) > 0 {
			t.Errorf("%s: %d records, bad %v, error %v", row.want, len(records), bad, err)
			continue
		}
		v := records[0].Verdict
		switch {
		case row.want == "" && (v.Grade != Valid || len(v.Findings) > 0):
			t.Errorf("a good record has the verdict %+v", v)
		case row.want == "":
		case v.Grade != Invalid || len(v.Findings) == 0 || v.Findings[0].Rule != Identities ||
			v.Findings[0].Load != row.load ||
			!strings.Contains(v.Findings[0].Facts.Messages[0], row.want):
			t.Errorf("verdict %+v, want %q on load %q", v, row.want, row.load)
		}
	}
}

// A finding of another load, or of slices alone, does not excuse a contradiction.
func TestCheckExcusesInvalid(t *testing.T) {
	check := func(want bool, f Finding) {
		t.Helper()
		r := proven()
		r.Loads[0].Sent = 1001
		r.Verdict = Verdict{Grade: Invalid, Findings: []Finding{f}}
		if err := r.Check(); (err == nil) != want {
			t.Errorf("%+v: error %v", f, err)
		}
	}
	check(true, Finding{Rule: "sums", Load: "half", Grade: Invalid})
	check(true, Finding{Rule: Identities, Grade: Invalid})
	check(false, Finding{Rule: "sums", Load: "peak", Grade: Invalid})
	check(false, Finding{Rule: "sums", Load: "half", Grade: Suspect})
	check(false, Finding{Rule: "slice lag", Load: "half", Grade: Invalid, Phase: PhaseSlices})
}
