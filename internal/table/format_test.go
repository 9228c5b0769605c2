package table

import (
	"strings"
	"testing"

	"prony/internal/result"
)

func TestFormat(t *testing.T) {
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, wanted %q", what, got, want)
		}
	}
	for x, want := range map[float64]string{
		0: "0", 0.5: "0.50", 3.14159: "3.14", 42.42: "42.4", 320: "320", 999.4: "999",
		999.6: "1.00k", 48_249: "48.2k", 999_499: "999k", 999_501: "1.00M", 1_214_000: "1.21M",
	} {
		check("rate", Rate(x), want)
	}
	for ns, want := range map[float64]string{
		0: "0 s", 850: "850 ns", 4_120: "4.12 µs", 310e6: "310 ms", 1.24e9: "1.24 s",
		999.9e3: "1.00 ms",
	} {
		check("duration", Duration(ns), want)
	}
	for n, want := range map[float64]string{
		512: "512 B", 1024: "1.0 KiB", 9 << 20: "9.0 MiB", 142 << 20: "142 MiB",
		1023.6 * (1 << 20): "1.0 GiB",
	} {
		check("bytes", Bytes(n), want)
	}
	for share, want := range map[float64]string{
		0: "0 %", 0.019: "1.9 %", 0.12: "12 %", 0.0004: "0.04 %", -0.03: "-3.0 %", 1: "100 %",
	} {
		check("percent", Percent(share), want)
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 3838: "3,838", 1234567: "1,234,567", -1000: "-1,000",
	} {
		check("count", Count(n), want)
	}
}

// TestScale: one unit and one number of decimals for all, two digits for the least.
func TestScale(t *testing.T) {
	for _, row := range []struct {
		ns   []float64
		want string
	}{
		{[]float64{0.21e6, 0.74e6, 5.4e6}, "0.21 ms 0.74 ms 5.40 ms"},
		{[]float64{4.2e6, 310e6}, "4.2 ms 310.0 ms"},
		{[]float64{45e6, 310e6}, "45 ms 310 ms"},
		{[]float64{21e3, 60e3, 99e3}, "21 µs 60 µs 99 µs"}, // median below 0.1 ms
		{[]float64{0.2e9, 1.5e9, 3e9}, "0.20 s 1.50 s 3.00 s"},
		{[]float64{1e3, 1e6, 2e6}, "0.001 ms 1.000 ms 2.000 ms"}, // at most three decimals
	} {
		var got []string
		s := scaleFor(row.ns)
		for _, x := range row.ns {
			got = append(got, s.print(x))
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%v: %s, wanted %s", row.ns, text, row.want)
		}
	}
}

func TestBlocksText(t *testing.T) {
	for _, row := range []struct {
		blocks []int
		want   string
	}{
		{[]int{3}, "block 3"}, {[]int{2, 1}, "blocks 1, 2"}, {[]int{1, 2, 3}, "blocks 1–3"},
		{[]int{5, 1, 2, 3, 3, 8}, "blocks 1–3, 5, 8"},
	} {
		if got := blocksText(row.blocks); got != row.want {
			t.Errorf("%v: %s, wanted %s", row.blocks, got, row.want)
		}
	}
}

// TestGrid: ascending, and even on the axis log(1/(1-q)) from the median to 99.99 %.
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

// A row names who offered the loads, where that was not Prony.
func TestRowNames(t *testing.T) {
	check := func(target result.Target, want string) {
		t.Helper()
		if got := RowName(target); got != want {
			t.Errorf("%+v is called %q, want %q", target, got, want)
		}
	}
	check(result.Target{Name: "a", Variant: "none"}, "a")
	check(result.Target{Name: "a", Variant: "noop"}, "a +noop")
	check(result.Target{Name: "a", Variant: "none", Driver: "wrk"}, "a by wrk")
	check(result.Target{Name: "a", Variant: "noop", Driver: "hey"}, "a +noop by hey")
}
