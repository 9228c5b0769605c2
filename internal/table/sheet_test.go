package table

import (
	"fmt"
	"slices"
	"testing"
)

// What several rows say alike is said once, and "unknown" by no row at all.
func TestGeneral(t *testing.T) {
	const why = "steady after: in %s no steady state is known (allow it more)"
	rows := [][]string{
		{"half may be off: p50 by up to 34 % (lag)", unknownNote,
			fmt.Sprintf(why, "1 of 3 trials")},
		{fmt.Sprintf(why, "2 of 3 trials"), "p99.9: in 2 of 3 trials nothing was known"}, nil,
	}
	want := []string{
		"Unknown: the interval spans more than a factor of 3 (raise --blocks).",
		"No steady after where in some trial no steady state is known (allow it more).",
	}
	if got := general(rows); !slices.Equal(got, want) {
		t.Errorf("said of all: %q", got)
	}
	if left := fmt.Sprint(rows); left != "[[half may be off: p50 by up to 34 % (lag)] "+
		"[p99.9: in 2 of 3 trials nothing was known] []]" {
		t.Errorf("said of rows: %s", left)
	}
}
