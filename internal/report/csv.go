package report

import (
	"io"
	"strings"

	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/table"
)

// CSV prints the study in long form, one row per target × load × metric; docs/formats/report-csv.md
// describes it. A target without a usable trial has one row, which says so.
func CSV(w io.Writer, s table.Study) error {
	columns := summaryColumns()
	row := func(cell func(column[summaryRow]) string) (cells []string) {
		for _, c := range columns {
			cells = append(cells, cell(c))
		}
		return cells
	}
	rows := [][]string{row(func(c column[summaryRow]) string { return c.name })}
	for _, r := range summaryRows(&s) {
		rows = append(rows, row(func(c column[summaryRow]) string { return printed(c.of(&r)) }))
	}
	return print.CSV(w, rows)
}

// summaryRow is a metric of a target.
type summaryRow struct {
	*table.Metric
	suite, run string
	scenario   *table.Scenario
	target     *table.Target
}

func summaryRows(s *table.Study) []summaryRow {
	var rows []summaryRow
	suite, run := origins(*s)
	for _, sc := range s.Scenarios {
		for _, t := range sc.Targets {
			for j := range t.Metrics {
				rows = append(rows, summaryRow{&t.Metrics[j], suite, run, sc, t})
			}
			if len(t.Metrics) == 0 {
				none := &table.Metric{Withheld: "no good trial"}
				rows = append(rows, summaryRow{none, suite, run, sc, t})
			}
		}
	}
	return rows
}

func (r *summaryRow) has() bool      { return r.Withheld == "" }
func (r *summaryRow) interval() bool { return r.has() && r.Summary.HasInterval() }
func (r *summaryRow) compared() bool { return r.Ratio != nil }

// ranks tells whether this is the metric that the tiers were made with.
func (r *summaryRow) ranks() bool {
	of := &r.scenario.Ranking
	return r.Load == of.Load && r.Name == of.Metric
}

// summaryColumns are in the order of the page; new ones come last, so that none changes its place.
func summaryColumns() []column[summaryRow] {
	type row = summaryRow
	ranked := func(r *row) bool { return r.ranks() && r.target.Tier > 0 }
	sampled := func(r *row) bool { return r.Samples > 0 }
	return []column[row]{
		label("suite", func(r *row) string { return r.suite }),
		label("run", func(r *row) string { return r.run }),
		label("scenario", func(r *row) string { return r.scenario.Name }),
		label("target", func(r *row) string { return r.target.Name }),
		label("load", func(r *row) string { return r.Load }),
		label("model", func(r *row) string { return r.Model }),
		label("metric", func(r *row) string { return r.Name }),
		label("unit", func(r *row) string { return r.Unit }),
		whole("n", func(r *row) int64 { return int64(r.Summary.N) }),
		where(sampled, whole("samples", func(r *row) int64 { return r.Samples })),
		where((*row).has, decimal("centre", func(r *row) float64 { return r.Summary.Center })),
		where((*row).has, decimal("lo", func(r *row) float64 { return r.Summary.Lo })),
		where((*row).has, decimal("hi", func(r *row) float64 { return r.Summary.Hi })),
		where((*row).interval, decimal("confidence", func(r *row) float64 {
			return r.Summary.Confidence
		})),
		where((*row).has, label("assumption", func(r *row) string { return r.Summary.Assumption })),
		where((*row).has, label("warning", func(r *row) string { return r.Summary.Warning })),
		where((*row).compared, label("baseline", func(r *row) string {
			return r.target.Reference
		})),
		where((*row).compared, decimal("ratio", func(r *row) float64 { return r.Ratio.Center })),
		where((*row).compared, decimal("ratio_lo", func(r *row) float64 { return r.Ratio.Lo })),
		where((*row).compared, decimal("ratio_hi", func(r *row) float64 { return r.Ratio.Hi })),
		where(ranked, whole("tier", func(r *row) int64 { return int64(r.target.Tier) })),
		whole("valid", func(r *row) int64 { return int64(r.target.Counts.Valid) }),
		whole("suspect", func(r *row) int64 { return int64(r.target.Counts.Suspect) }),
		whole("invalid", func(r *row) int64 { return int64(r.target.Counts.Invalid) }),
		whole("failed", func(r *row) int64 { return int64(r.target.Counts.Failed) }),
		label("withheld", func(r *row) string { return r.Withheld }),
		where((*row).ranks, decimal("noise_between", func(r *row) float64 {
			return r.target.Variance.Between
		})),
		where((*row).ranks, decimal("noise_within", func(r *row) float64 {
			return r.target.Variance.Within
		})),
		where((*row).ranks, decimal("noise_between_share", func(r *row) float64 {
			return r.target.Variance.Share
		})),
	}
}

// origins are the suites and runs that the records came from, joined by "+".
func origins(s table.Study) (suite, run string) {
	suites := table.Distinct(s.Records, func(r *result.Record) string { return r.Suite })
	runs := table.Distinct(s.Records, func(r *result.Record) string { return r.Run })
	return strings.Join(suites, "+"), strings.Join(runs, "+")
}
