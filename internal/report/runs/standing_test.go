package runs

import (
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/stats"
)

// ranked returns a scenario of some starts with these tiers and ratios to the first target of the
// last tier.
func ranked(starts int, name string, tiers [][]string,
	ratios map[string]float64) *table.Scenario {
	last := tiers[len(tiers)-1][0]
	sc := &table.Scenario{Name: "hello", Starts: &table.Starts{},
		Ranking: table.Ranking{Load: "peak", Metric: name, Tiers: tiers, Source: table.FromSlices},
		Versus:  table.Versus{Kind: table.VersusBaseline, Name: last}}
	for _, names := range tiers {
		for _, target := range names {
			m := table.Metric{Load: "peak", Name: name, Source: table.FromSlices}
			for block := range starts {
				m.Sliced = append(m.Sliced, table.Point{Block: block + 1})
			}
			if x := ratios[target]; x > 0 {
				m.Ratio = &stats.Ratio{Center: x, Lo: x - 0.1, Hi: x + 0.1, N: 5, Confidence: 0.95}
			}
			if target == "suspect" {
				m.RatioDoubt = &table.Doubt{}
			}
			sc.Targets = append(sc.Targets, &table.Target{Name: target,
				Metrics: []table.Metric{m}})
		}
	}
	return sc
}

// TestStanding checks that a ranking is described by what its tests found, and no more.
func TestStanding(t *testing.T) {
	for _, row := range []struct {
		metric string
		tiers  [][]string
		ratios map[string]float64
		want   string
	}{
		{"throughput", [][]string{{"a"}, {"suspect"}, {"c"}},
			map[string]float64{"a": 2.09, "suspect": 1.5},
			"a has the highest throughput: 2.09 times that of c (95 % CI 1.99 to 2.19). Relative " +
				"to c: suspect 1.50 (1.40 to 1.60; SUSPECT)."},
		{"throughput", [][]string{{"a", "b"}, {"c", "d", "e"}},
			map[string]float64{"a": 2, "d": 1.05},
			"a and b have the highest throughput, with no significant difference between them. " +
				"Relative to c: a 2.00 (1.90 to 2.10), d 1.05 (0.95 to 1.15). No significant " +
				"difference: between c, d and e."},
		{"throughput", [][]string{{"a", "b"}}, map[string]float64{"b": 1.02},
			"No significant difference in throughput between a and b."},
		{"mean", [][]string{{"a"}, {"b"}}, nil, "a has the lowest mean response time."},
		{"throughput", [][]string{{"a"}}, nil, ""},
		{"throughput", [][]string{strings.Fields("a b c d e f g h i")}, nil,
			"No significant difference in throughput between a, b, c, d, e, f and 3 other " +
				"targets."},
	} {
		one := strings.Join(Standing(ranked(1, row.metric, row.tiers, row.ratios)), " ")
		if row.want != "" && !strings.HasSuffix(one, "needs at least 2 starts: raise --blocks.") {
			t.Errorf("%v: %s", row.tiers, one)
		}
		got := strings.Join(Standing(ranked(2, row.metric, row.tiers, row.ratios)), " ")
		if got != row.want {
			t.Errorf("%v:\n%s\nwant:\n%s", row.tiers, got, row.want)
		}
	}
}
