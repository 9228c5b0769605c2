package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A record that differs from the plan of its run is left out by name; the program saves it INVALID.
func TestPlanIsFollowed(t *testing.T) {
	head := Run{ID: "r1", Loads: []string{"half"}, Trials: []string{"b1-01-a"},
		Planned: []Planned{{Trial: "b1-01-a", Row: "a +agent", Scenario: "read", Block: 1}}}
	for _, row := range []struct {
		want   string // empty: the record follows the plan
		change func(*Record)
	}{
		{"", func(*Record) {}},
		{"block is 9, but run.json plans block 1", func(r *Record) { r.Block = 9 }},
		{`scenario is "write", but run.json plans "read"`, func(r *Record) {
			r.Scenario = "write"
		}},
		{`target is "b +agent", but run.json plans "a +agent"`, func(r *Record) {
			r.Target.Name = "b"
		}},
		{`role is "pilot", but run.json plans ""`, func(r *Record) { r.Role = Pilot }},
		{"load half is missing: run.json plans it", func(r *Record) { r.Loads[0].Name = "peak" }},
		{"load peak is not in the plan of run.json", func(r *Record) {
			peak := r.Loads[0]
			peak.Name = "peak"
			r.Loads = append(r.Loads, peak)
		}},
		{"", func(r *Record) { r.Outcome, r.Loads = Failed, nil }}, // it ended before its load
	} {
		r := proven()
		r.Scenario, r.Target = "read", Target{Name: "a", Variant: "agent"}
		row.change(r)
		r.Version, r.Run = Version, "r1"
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		w, err := Create(dir, head)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
		_, records, bad, err := Read(dir)
		if err != nil || len(records) != 1 || len(bad) > 0 {
			t.Errorf("%s: %d records, bad %v, error %v", row.want, len(records), bad, err)
		} else if named := findings(records[0]); !strings.Contains(named, row.want) ||
			(named == "") != (row.want == "") {
			t.Errorf("the saved record has the finding %q, want %q", named, row.want)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, TrialsFile), line, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, bad, err = Read(dir)
		if err != nil || (row.want == "") != (len(bad) == 0) {
			t.Errorf("%s: bad %v, error %v", row.want, bad, err)
		} else if row.want != "" && !strings.Contains(bad[0].Error(),
			"run r1, trial b1-01-a contradicts the plan: "+row.want+"; it is left out") {
			t.Errorf("%v, want %q", bad[0], row.want)
		}
	}
}

// findings returns the identities that a saved record violates.
func findings(r *Record) (out string) {
	for _, f := range r.Verdict.Findings {
		if f.Rule == Identities && r.Verdict.Grade == Invalid {
			out += strings.Join(f.Facts.Messages, "; ")
		}
	}
	return out
}
