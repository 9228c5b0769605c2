package lab

import (
	"slices"
	"testing"

	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

// TestToRepeat checks which trials of an interrupted run are run again although they have a record.
func TestToRepeat(t *testing.T) {
	spec := func(id, start string) trial.Spec {
		return trial.Spec{Trial: suite.Trial{ID: id, Start: start}}
	}
	plan := []trial.Spec{spec("pilot", ""), spec("alone", ""), spec("b1-a", "b1"),
		spec("b1-b", "b1"), spec("b2-a", "b2"), spec("b2-b", "b2")}
	good := func(id string) *record.Record { return &record.Record{Trial: id} }
	failed := func(id string) *record.Record {
		return &record.Record{Trial: id, Failure: &record.Failure{Step: "measure"}}
	}
	stopped := func(id string) *record.Record {
		return &record.Record{Trial: id, Failure: &record.Failure{Interrupted: true}}
	}
	check := func(records []*record.Record, want ...string) {
		t.Helper()
		if got := toRepeat(plan, records); !slices.Equal(got, want) {
			t.Errorf("%q run again, want %q", got, want)
		}
	}
	check(nil)
	check([]*record.Record{good("pilot"), failed("alone"), good("b1-a"), failed("b1-b")})
	check([]*record.Record{good("pilot"), stopped("alone")}, "alone")
	// The other trials of a start were measured beside the interrupted one.
	check([]*record.Record{good("b1-a"), good("b1-b"), failed("b2-a"), stopped("b2-b")}, "b2-a",
		"b2-b")
	// Prony was killed while it saved the records of a start.
	check([]*record.Record{good("b1-a"), good("b1-b"), good("b2-b")}, "b2-b")
}
