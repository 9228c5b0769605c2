package report

import (
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report/compare"
	"prony.example/record"
	"prony.example/stats"
)

// The first sentence of a comparison names what changed, and counts what did not.
func TestComparisonSays(t *testing.T) {
	alike := compare.Row{Load: "peak", Label: "p50", Outcome: compare.Indistinguishable}
	slower := compare.Row{Load: "peak", Label: "req/s", Outcome: compare.Worse, Text: "slower",
		Ratio: &stats.Ratio{Center: 0.8}}
	pair := func(target string, rows ...compare.Row) compare.Pair {
		return compare.Pair{B: compare.Subject{Target: target}, Rows: rows}
	}
	check := func(want string, published bool, pairs ...compare.Pair) {
		t.Helper()
		got := compareSays(compare.Comparison{Pairs: pairs, Published: published})
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("No metric could be compared.", false, pair("b"))
	check("No metric has a verdict, because these are single runs.", true, pair("b", alike))
	check("B compared with A: no significant difference in 2 metrics.", false,
		pair("b", alike, alike))
	check("B against A: peak req/s −20 % (slower). No significant difference in 1 other metric.",
		false, pair("b", slower, alike))
	check("B against A: b: peak req/s −20 % (slower).", false, pair("b", slower), pair("c"))
	doubtful := slower
	doubtful.Grade, doubtful.Doubt = record.Suspect, &table.Doubt{Rules: []string{"steal"}}
	check("B against A: peak req/s −20 % (slower; SUSPECT (steal)).", false, pair("b", doubtful))
}
