package host_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/observe/host"
)

func layout(service, load []int, shared bool) host.Layout {
	return host.Layout{Service: service, Load: load, Shared: shared}
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestDivideSides(t *testing.T) {
	check := func(cores []int, cpus float64, shared bool, left, right host.Layout) {
		t.Helper()
		got, err := host.DivideSides(cores, cpus, shared)
		if want := (host.Sides{Left: left, Right: right}); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%v for %g CPUs: %+v, error %v; want %+v", cores, cpus, got, err, want)
		}
		all := slices.Concat(got.Left.Cores(), got.Right.Cores())
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Errorf("%v for %g CPUs: a core is on both sides: %+v", cores, cpus, got)
		}
	}
	check(upTo(4), 1, false, layout([]int{1}, []int{0}, false), layout([]int{3}, []int{2}, false))
	// Half a processor takes a whole core; 2·2 + 2 = 6 of eight, the rest idle.
	check(upTo(8), 1.5, false, layout([]int{1, 2}, []int{0}, false),
		layout([]int{4, 5}, []int{3}, false))
	check([]int{2, 3, 6, 7}, 0.5, false, layout([]int{3}, []int{2}, false),
		layout([]int{7}, []int{6}, false))
	check(upTo(2), 1, true, layout([]int{0}, []int{0}, true), layout([]int{1}, []int{1}, true))
	check(upTo(4), 2, true, layout([]int{0, 1}, []int{0, 1}, true),
		layout([]int{2, 3}, []int{2, 3}, true))
}

func TestDivideSidesRefuses(t *testing.T) {
	check := func(cores int, cpus float64, shared bool, words ...string) {
		t.Helper()
		_, err := host.DivideSides(upTo(cores), cpus, shared)
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%d cores for %g CPUs: %v\nwant %q in it", cores, cpus, err, w)
			}
		}
	}
	check(2, 1, false, "duet takes 4 (", "--duet=shared", "without --duet")
	check(5, 2, false, "duet takes 6 (", "--duet=shared")
	check(3, 2, false, "duet takes 6 (", "; measure one target at a time")
	check(1, 1, true, "duet takes 2;", "without --duet")
	check(4, 0, false, "does not fit")
}

func TestWholeOfSides(t *testing.T) {
	s, err := host.DivideSides(upTo(4), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	want := layout([]int{1, 3}, []int{0, 2}, false)
	if got := s.Whole(); !reflect.DeepEqual(got, want) {
		t.Errorf("both sides are %+v, want %+v", got, want)
	}
}
