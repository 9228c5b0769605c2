package history

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
)

// TestKeep checks that kept series join to the original history: changes, values without intervals,
// and differences of methods.
func TestKeep(t *testing.T) {
	runs := history(steps(100, 120)...)
	runs[9].Records[0].Loads[0].Connections = 32
	var whole, again [][]Series
	for _, r := range runs {
		of := Of(r, table.Analyze(r.Records, table.Options{}), throughput)
		var b bytes.Buffer
		if err := Keep(&b, of); err != nil {
			t.Fatal(err)
		}
		kept, err := Kept(&b)
		if err != nil || len(kept) != len(of) {
			t.Fatalf("%d series of %d: %v", len(kept), len(of), err)
		}
		if p := kept[0].Points[0]; !math.IsNaN(p.Lo) {
			t.Errorf("a point is kept as %+v", p)
		}
		whole, again = append(whole, of), append(again, kept)
	}
	var want, got bytes.Buffer
	if err := JSON(&want, Join(whole, throughput)); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&got, Join(again, throughput)); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() || !strings.Contains(want.String(), "32") {
		t.Errorf("kept:\n%s\nwanted:\n%s", got.String(), want.String())
	}
	if _, err := Kept(strings.NewReader("no series")); err == nil {
		t.Error("anything is a series")
	}
}
