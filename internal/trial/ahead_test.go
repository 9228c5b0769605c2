package trial_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	"prony.example/internal/observe/host"
	"prony.example/load"
)

// Load threads have priority in windows if they have cores of their own, and never in warm-ups,
// whose service may also have those cores.
func TestAheadInWindowsAlone(t *testing.T) {
	check := func(layout host.Layout, windows bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.lab.Layout = layout
			got, offer := map[string]bool{}, w.offer
			w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
				got[s.Name] = s.Ahead
				return offer(ctx, s)
			}
			if _, err := w.run(context.Background(), w.experiment("a")); err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{"warmup": false, "peak": windows, "half": windows}
			if !maps.Equal(got, want) {
				t.Errorf("%s go first, want %s", fmt.Sprint(got), fmt.Sprint(want))
			}
		})
	}
	check(host.Layout{Service: []int{1}, Load: []int{0}}, true)
	check(host.Layout{Service: []int{0}, Load: []int{0}, Shared: true}, false)
}
