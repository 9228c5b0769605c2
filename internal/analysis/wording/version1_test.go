package wording

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"prony.example/record"
)

// TestRunOfVersion1 checks that the limits and findings of a run of version 1 are printed
// unchanged.
func TestRunOfVersion1(t *testing.T) {
	dir := filepath.Join("..", "..", "report", "runs", "testdata", "run")
	head, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || head.Version != 1 || len(records) == 0 {
		t.Fatalf("version %d, %d records, bad %v, %v", head.Version, len(records), bad, err)
	}
	f, err := os.Open(filepath.Join(dir, record.TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	findings, numbers := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for i := 0; lines.Scan(); i++ {
		var was struct {
			Limits  struct{ InForce, Missing []string }
			Verdict struct {
				Findings []struct{ Observed, Limit, Hint string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &was); err != nil {
			t.Fatal(err)
		}
		r := records[i]
		if got := Limits(r.Limits.InForce); !reflect.DeepEqual(got, was.Limits.InForce) {
			t.Errorf("%s: in force is %q, was %q", r.Trial, got, was.Limits.InForce)
		}
		for k, f := range r.Verdict.Findings {
			got, w := Finding(f), was.Verdict.Findings[k]
			if got.Observed != w.Observed || got.Limit != w.Limit || got.Hint != w.Hint {
				t.Errorf("%s: %s says %+v, was %+v", r.Trial, f.Rule, got, w)
			}
			findings++
			if got.Quantity {
				numbers++
				if got.Amount == "" || f.Value <= 0 || f.Limit <= 0 || f.Unit == "" {
					t.Errorf("%s: %s has no numbers: %+v", r.Trial, f.Rule, f)
				}
			}
		}
		if len(r.Verdict.Findings) != len(was.Verdict.Findings) {
			t.Errorf("%s: %d findings, were %d", r.Trial, len(r.Verdict.Findings),
				len(was.Verdict.Findings))
		}
	}
	if err := lines.Err(); err != nil || findings < 10 || numbers < 2 {
		t.Errorf("%d findings, %d with numbers, %v", findings, numbers, err)
	}
}

// TestFindingOfVersion1IsKept checks that a finding of version 1 is unchanged when it is written
// again.
func TestFindingOfVersion1IsKept(t *testing.T) {
	const text = `{"rule": "steal", "load": "half", "grade": "INVALID", "observed":
		"11.6 % stolen by the hypervisor", "limit": "10.0 %", "hint": "run again"}`
	var first, second record.Finding
	if err := json.Unmarshal([]byte(text), &first); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &second); err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%+v became %+v, %v", first, second, err)
	}
	if math.Abs(first.Value-0.116) > 1e-12 || first.Limit != 0.1 ||
		first.Unit != record.UnitShare || first.Side != record.Above {
		t.Errorf("its numbers are %+v", first)
	}
}
