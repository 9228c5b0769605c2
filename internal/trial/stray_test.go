package trial_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"prony.example/load"
	"prony.example/record"
)

// The usage of a service that leaves its control groups during a measurement is unknown, and the
// record says that its limits were not in force.
func TestServiceThatLeavesItsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		why := record.Unenforced(record.Limit{Kind: record.LimitGroup, PIDs: []int{7}},
			record.Strayed, "")
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if s.Name == "half" {
				w.launcher.Missing = []record.Limit{why}
			}
			return w.steadyLoad(ctx, s)
		}
		records, err := w.run(context.Background(), w.experiment("a"))
		if err != nil || len(records) != 1 || len(records[0].Loads) != 2 {
			t.Fatal(records, err)
		}
		r := records[0]
		if r.Loads[0].Service.CPUNs == 0 || r.Loads[1].Service.WindowNs != 0 ||
			r.Loads[1].Service.Source != "" {
			t.Errorf("used %+v, then %+v", r.Loads[0].Service, r.Loads[1].Service)
		}
		found := slices.ContainsFunc(r.Verdict.Findings, func(f record.Finding) bool {
			return f.Rule == "limits" && f.Grade == record.Suspect
		})
		if !reflect.DeepEqual(r.Limits.Missing, []record.Limit{why}) || !found {
			t.Errorf("limits %+v, findings %+v", r.Limits, r.Verdict.Findings)
		}
	})
}
