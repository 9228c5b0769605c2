package table

import (
	"testing"

	"prony.example/record"
)

func TestBlocksText(t *testing.T) {
	for _, row := range []struct {
		blocks []int
		want   string
	}{
		{[]int{3}, "block 3"}, {[]int{2, 1}, "blocks 1, 2"}, {[]int{1, 2, 3}, "blocks 1–3"},
		{[]int{5, 1, 2, 3, 3, 8}, "blocks 1–3, 5, 8"},
	} {
		if got := blocksText("block", row.blocks); got != row.want {
			t.Errorf("%v: %s, wanted %s", row.blocks, got, row.want)
		}
	}
}

// TestGrid checks that the grid is ascending, and even on the axis log(1/(1-q)) from the median to
// 99.99 %.
func TestGrid(t *testing.T) {
	if grid[0] != 0.5 || grid[len(grid)-1] != 0.9999 {
		t.Errorf("from %v to %v", grid[0], grid[len(grid)-1])
	}
	for i := 1; i < len(grid); i++ {
		if step := (1 - grid[i-1]) / (1 - grid[i]); step <= 1 || step > 1.7 {
			t.Errorf("step %d, %v to %v, is %v", i, grid[i-1], grid[i], step)
		}
	}
}

// TestRowNames checks that a row names the load generator unless that is Prony.
func TestRowNames(t *testing.T) {
	check := func(target record.Target, want string) {
		t.Helper()
		if got := RowName(target); got != want {
			t.Errorf("%+v is called %q, want %q", target, got, want)
		}
	}
	check(record.Target{Name: "a", Variant: "none"}, "a")
	check(record.Target{Name: "a", Variant: "noop"}, "a +noop")
	check(record.Target{Name: "a", Variant: "none", Driver: "wrk"}, "a by wrk")
	check(record.Target{Name: "a", Variant: "noop", Driver: "hey"}, "a +noop by hey")
}
