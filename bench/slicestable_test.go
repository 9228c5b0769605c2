package bench

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/stats"
)

var updateSlices = flag.Bool("update.slices", false, "write the table of docs/slices.md")

// TestSlicesTable compares the table of real comparisons in docs/slices.md with slicesFile. It also
// checks the one bound that must hold at any time: of n comparisons of equal services at most 4 +
// n/20 are significant, 9 of 100 (a binomial count of 5 % is above that in 3 % of series).
func TestSlicesTable(t *testing.T) {
	var names []string
	all := map[string][]slicesResult{}
	for _, r := range readSlicesResults(t) {
		if all[r.Case] == nil {
			names = append(names, r.Case)
		}
		all[r.Case] = append(all[r.Case], r)
	}
	slices.Sort(names)
	rows := []string{"| case | comparisons | CPU significant | throughput significant | CPU ± | " +
		"throughput ± | seconds | load average | failed |", "|---|---|---|---|---|---|---|---|---|"}
	for _, name := range names {
		row, alarms, n := slicesRow(name, all[name])
		rows = append(rows, row)
		if strings.HasSuffix(name, "-aa") && n >= 50 && alarms > 4+n/20 {
			t.Errorf("%s: %d of %d comparisons of equal services differ", name, alarms, n)
		}
	}
	testsets.Table(t, filepath.Join("..", "docs", "slices.md"), "<!-- real slices -->", rows,
		*updateSlices)
}

// slicesRow returns a case's row of the table, with the number of significant CPU ratios.
func slicesRow(name string, results []slicesResult) (row string, alarms, n int) {
	var widths, rates, seconds, loads []float64
	throughput, failed := 0, 0
	significant := func(r slicesRatio) bool { return r.Lo > 1 || r.Hi < 1 }
	for _, r := range results {
		if r.Error != "" {
			failed++
			continue
		}
		n++
		if significant(r.CPU) {
			alarms++
		}
		if significant(r.Throughput) {
			throughput++
		}
		widths = append(widths, (r.CPU.Hi-r.CPU.Lo)/2)
		rates = append(rates, (r.Throughput.Hi-r.Throughput.Lo)/2)
		seconds, loads = append(seconds, r.Seconds), append(loads, (r.Load[0]+r.Load[1])/2)
	}
	if n == 0 {
		return fmt.Sprintf("| %s | 0 | | | | | | | %d |", name, failed), 0, 0
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %.2f %% | %.2f %% | %.0f | %.1f | %d |", name, n,
		alarms, throughput, 100*stats.Median(widths), 100*stats.Median(rates),
		stats.Median(seconds), stats.Median(loads), failed), alarms, n
}
