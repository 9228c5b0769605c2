package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// TestOtherTablesOnThePage checks that a scenario's tables of processes and of its noise floor
// appear once, at the scenario, under their own titles.
func TestOtherTablesOnThePage(t *testing.T) {
	var records []record.Record
	for _, r := range sample() {
		for _, arm := range []string{"a", "b"} {
			x := r
			x.Trial, x.Target.Arm = x.Trial+arm, arm
			x.Loads = slices.Clone(r.Loads)
			for i := range x.Loads {
				x.Loads[i].Service.Parts = []record.Part{{Name: "back", CPUNs: 1e9},
					{Name: "gateway", CPUNs: 3e9}}
			}
			records = append(records, x)
		}
	}
	study := analyze(records, table.Options{})
	v := viewOf(study, HTMLOptions{}, dataOf(study, HTMLOptions{}))
	for i, sc := range v.Scenarios {
		if len(sc.Others) != 2 || !strings.HasPrefix(sc.Others[0].Title(), "Resource usage") ||
			!strings.HasPrefix(sc.Others[1].Title(), "Noise floor") {
			t.Errorf("scenario %d: other tables %+v", i, sc.Others)
		}
	}
	// A terminal prints a ratio and its interval in one text; the page separates them.
	for _, row := range v.Scenarios[0].Others[1].Rows {
		if c := row.Cells[2]; strings.Contains(c.Text, "[") || !strings.Contains(c.Range, " – ") {
			t.Errorf("the noise floor of %s is %q, its interval %q", row.Name, c.Text, c.Range)
		}
	}
	var page bytes.Buffer
	if err := HTML(&page, study, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "<caption>Resource usage"); n != len(v.Scenarios) {
		t.Errorf("the page has %d tables of processes for %d scenarios", n, len(v.Scenarios))
	}
}
