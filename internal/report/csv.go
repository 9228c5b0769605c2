package report

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"

	"prony/internal/stats"
	"prony/internal/table"
)

var csvHeader = []string{
	"suite", "run", "scenario", "target", "load", "model", "metric", "unit", "n", "samples",
	"centre", "lo", "hi", "confidence", "assumption", "warning", "baseline", "ratio", "ratio_lo",
	"ratio_hi", "tier", "valid", "suspect", "invalid", "failed", "withheld",
}

// CSV prints the study in long form, one row per target × load × metric; docs/formats/report-csv.md
// describes it. A target without a usable trial has one row, which says so.
func CSV(w io.Writer, s table.Study) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeader); err != nil {
		return err
	}
	suite, run := origins(s)
	for _, sc := range s.Scenarios {
		for _, t := range sc.Targets {
			metrics := t.Metrics
			if len(metrics) == 0 {
				metrics = []table.Metric{{Withheld: "no good trial"}}
			}
			for _, m := range metrics {
				row := append([]string{suite, run, sc.Name, t.Name}, csvMetric(s, sc, t, m)...)
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvMetric(s table.Study, sc table.Scenario, t table.Target, m table.Metric) []string {
	row := []string{m.Load, m.Model, m.Name, m.Unit, strconv.Itoa(m.Summary.N)}
	row = append(row, positiveText(m.Samples))
	if m.Withheld != "" {
		row = append(row, "", "", "", "", "", "")
	} else {
		sum := m.Summary
		row = append(row, number(sum.Center), number(sum.Lo), number(sum.Hi),
			confidence(sum), sum.Assumption, sum.Warning)
	}
	if r := m.Ratio; r != nil {
		row = append(row, s.Options.Baseline, number(r.Center), number(r.Lo), number(r.Hi))
	} else {
		row = append(row, "", "", "", "")
	}
	tier := ""
	if m.Load == sc.Ranking.Load && m.Name == sc.Ranking.Metric && t.Tier > 0 {
		tier = strconv.Itoa(t.Tier)
	}
	c := t.Counts
	return append(row, tier, strconv.Itoa(c.Valid), strconv.Itoa(c.Suspect),
		strconv.Itoa(c.Invalid), strconv.Itoa(c.Failed), m.Withheld)
}

// origins are the suites and runs that the records came from, joined by "+".
func origins(s table.Study) (suite, run string) {
	var suites, runs []string
	for _, r := range s.Records {
		suites, runs = appendNew(suites, r.Suite), appendNew(runs, r.Run)
	}
	return strings.Join(suites, "+"), strings.Join(runs, "+")
}

func appendNew(words []string, w string) []string {
	for _, have := range words {
		if have == w {
			return words
		}
	}
	return append(words, w)
}

// number prints the shortest text that reads back as x; nothing when x is no number.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

func confidence(s stats.Summary) string {
	if !s.HasInterval() {
		return ""
	}
	return number(s.Confidence)
}

func positiveText(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
