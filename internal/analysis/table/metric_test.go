package table

import (
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
)

// TestExact checks that a metric without noise is exact only if all trials have the same value, not
// if its median is one end.
func TestExact(t *testing.T) {
	check := func(want bool, sizes ...int64) {
		t.Helper()
		var offered []offer
		for i, size := range sizes {
			offered = append(offered, offer{record: &record.Record{
				Artifact: record.Artifact{SizeBytes: size}}, block: i + 1, grade: record.Valid})
		}
		m := across(metric.Named("artifact_size", "B"), offered, 0.95)
		if got := m.Summary.Assumption == Exact; got != want {
			t.Errorf("%v: exact %v, %+v", sizes, got, m.Summary)
		}
	}
	check(true, 7, 7, 7)
	check(false, 7, 7, 9)
	check(false, 5, 7, 7)
	check(false, 5, 7, 9)
}
