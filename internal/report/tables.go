package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/internal/report/rows"
	"prony.example/record"
)

// FlatTables lists the tables of Flat; docs/formats/report-parquet.md describes them.
var FlatTables = []string{"trials", "summary", "series"}

// Flat writes one table of a run for analysts in the format of package rows, for conversion to
// Parquet: trials (a row per trial and load, with all fields of the records), summary (the rows of
// CSV) or series (a row per interval).
func Flat(w io.Writer, s table.Study, kind string) error {
	switch kind {
	case "trials":
		return writeFlat(w, kind, trialColumns(), trialRows(&s))
	case "summary":
		return writeFlat(w, kind, summaryColumns(), summaryRows(&s))
	case "series":
		return writeFlat(w, kind, seriesColumns(), seriesRows(&s))
	}
	return fmt.Errorf("no table is called %q; the tables are %s",
		kind, strings.Join(FlatTables, ", "))
}

func writeFlat[R any](w io.Writer, name string, columns []column[R], rowList []R) error {
	h := rows.Head{Table: name, Version: record.Version}
	for _, c := range columns {
		h.Columns = append(h.Columns, rows.Column{Name: c.name, Kind: c.kind})
	}
	return rows.Write(w, h, len(rowList), func(i int) []any {
		row := make([]any, len(columns))
		for k, c := range columns {
			row[k] = c.value(&rowList[i])
		}
		return row
	})
}

func trialRows(s *table.Study) []trialRow {
	var rows []trialRow
	for _, r := range s.Records {
		for k := range r.Loads {
			l := &r.Loads[k]
			rows = append(rows, trialRow{r, l, percentilesOf(l)})
		}
		if len(r.Loads) == 0 {
			rows = append(rows, trialRow{record: r})
		}
	}
	return rows
}

func (r *trialRow) offered() bool { return r.load != nil }

func (r *trialRow) findings() string {
	var out []string
	matches := r.record.Verdict.Findings
	if r.load != nil {
		matches = table.FindingsOn(r.record, r.load.Name)
	}
	for _, f := range matches {
		out = append(out, fmt.Sprintf("%s %s: %s (%s)", f.Grade, f.Rule,
			wording.Finding(f).Observed, wording.Against(f)))
	}
	return strings.Join(out, "; ")
}

// trialColumns returns the trial's name and grade, the fields of the record and of the load, and
// values from its histogram.
func trialColumns() []column[trialRow] {
	type row = trialRow
	ownColumns := []column[row]{
		label("target", func(r *row) string { return table.RowName(r.record.Target) }),
		label("grade", func(r *row) string { return table.Grade(r.record) }),
		where((*row).offered, label("load_grade", func(r *row) string {
			return table.LoadGrade(r.record, r.load.Name)
		})),
		label("findings", (*row).findings),
	}
	all := slices.Concat(ownColumns,
		recordColumns("", func(r *row) *record.Record { return r.record }),
		recordColumns("load_", func(r *row) *record.Load { return r.load }))
	for i, name := range []string{"p50", "p90", "p99", "p999"} {
		valueAt := func(r *row) table.Percentile { return r.percentiles[i] }
		prefix := "load_response_time_" + name
		all = append(all,
			where((*row).offered, decimal(prefix+"_lo_ns", func(r *row) float64 {
				return valueAt(r).Lo
			})),
			where((*row).offered, decimal(prefix+"_hi_ns", func(r *row) float64 {
				return valueAt(r).Hi
			})))
	}
	return append(all,
		where((*row).offered, whole("load_independent_answers", func(r *row) int64 {
			return independent(r.load)
		})),
		where((*row).offered, column[row]{"load_independence_assumed", rows.Flag, func(r *row) any {
			_, known := r.load.Autocorrelation.Worth()
			return !known
		}}))
}

// percentilesOf returns the percentiles of a load's response times, with their intervals within the
// trial.
func percentilesOf(l *record.Load) []table.Percentile {
	return table.Percentiles(l, &l.ResponseTime, table.DefaultConfidence)
}

// independent returns the effective number of independent response times.
func independent(l *record.Load) int64 {
	share, _ := l.Autocorrelation.Worth()
	return int64(share * float64(l.ResponseTime.Count))
}

// seriesRow is an interval of a load's window, or of the warm-up if the load is nil.
type seriesRow struct {
	record     *record.Record
	load       *record.Load
	pos        int
	intervalNs int64
}

func seriesRows(s *table.Study) []seriesRow {
	var rows []seriesRow
	for _, r := range s.Records {
		for k := range r.Warmup.RatePerS {
			rows = append(rows, seriesRow{r, nil, k, r.Warmup.IntervalNs})
		}
		for j := range r.Loads {
			l := &r.Loads[j]
			for k := range l.Series.Done {
				rows = append(rows, seriesRow{r, l, k, l.Series.IntervalNs})
			}
		}
	}
	return rows
}

func (r *seriesRow) inWindow() bool { return r.load != nil }

func (r *seriesRow) offsetNs() int64 { return int64(r.pos) * r.intervalNs }

func (r *seriesRow) lengthNs() int64 {
	if r.load == nil {
		return r.intervalNs
	}
	return min(r.intervalNs, r.load.WindowNs-r.offsetNs())
}

func (r *seriesRow) ratePerS() float64 {
	if r.load == nil {
		return r.record.Warmup.RatePerS[r.pos]
	}
	if r.lengthNs() <= 0 {
		return math.NaN()
	}
	return float64(r.load.Series.Done[r.pos]) / (float64(r.lengthNs()) / 1e9)
}

// of returns a column's value in this interval; a time is nil without a response.
func (r *seriesRow) of(values []int64, isTime bool) any {
	if r.pos >= len(values) || isTime && values[r.pos] == 0 {
		return nil
	}
	return values[r.pos]
}

func seriesColumns() []column[seriesRow] {
	type row = seriesRow
	all := []column[row]{
		label("run", func(r *row) string { return r.record.Run }),
		label("trial", func(r *row) string { return r.record.Trial }),
		label("scenario", func(r *row) string { return r.record.Scenario }),
		label("target", func(r *row) string { return table.RowName(r.record.Target) }),
		whole("block", func(r *row) int64 { return int64(r.record.Block) }),
		label("phase", func(r *row) string {
			if r.load == nil {
				return "warmup"
			}
			return "window"
		}),
		where((*row).inWindow, label("load", func(r *row) string { return r.load.Name })),
		where((*row).inWindow, label("model", func(r *row) string { return r.load.Model })),
		where((*row).inWindow, label("load_grade", func(r *row) string {
			return table.LoadGrade(r.record, r.load.Name)
		})),
		whole("offset_ns", (*row).offsetNs),
		whole("length_ns", (*row).lengthNs),
		decimal("rate_per_s", (*row).ratePerS),
	}
	for _, c := range []struct {
		name   string
		isTime bool
		value  func(*record.Series) []int64
	}{
		{"scheduled", false, func(s *record.Series) []int64 { return s.Scheduled }},
		{"sent", false, func(s *record.Series) []int64 { return s.Sent }},
		{"done", false, func(s *record.Series) []int64 { return s.Done }},
		{"failed", false, func(s *record.Series) []int64 { return s.Failed }},
		{"p50_ns", true, func(s *record.Series) []int64 { return s.P50Ns }},
		{"p99_ns", true, func(s *record.Series) []int64 { return s.P99Ns }},
		{"max_ns", true, func(s *record.Series) []int64 { return s.MaxNs }},
	} {
		all = append(all, where((*row).inWindow, column[row]{c.name, rows.Count, func(r *row) any {
			return r.of(c.value(&r.load.Series), c.isTime)
		}}))
	}
	return all
}

// column is a column of a flat table for programs, which CSV and Flat print. An unknown value is
// nil: an empty field, or null.
type column[R any] struct {
	name  string
	kind  rows.Kind
	value func(*R) any // nil, or a value of that kind
}

// label returns a column of text; an empty text is nil.
func label[R any](name string, value func(*R) string) column[R] {
	return column[R]{name, rows.Text, func(r *R) any {
		if v := value(r); v != "" {
			return v
		}
		return nil
	}}
}

// whole returns a column of integers.
func whole[R any](name string, value func(*R) int64) column[R] {
	return column[R]{name, rows.Count, func(r *R) any { return value(r) }}
}

// decimal returns a column of numbers; NaN and infinities are nil.
func decimal[R any](name string, value func(*R) float64) column[R] {
	return column[R]{name, rows.Real, func(r *R) any {
		if v := value(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
		return nil
	}}
}

// where leaves a column empty in rows that do not match.
func where[R any](matches func(*R) bool, c column[R]) column[R] {
	value := c.value
	c.value = func(r *R) any {
		if !matches(r) {
			return nil
		}
		return value(r)
	}
	return c
}

// printed formats a value for CSV: numbers have the shortest text that parses to the same value.
func printed(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

// CSV prints the study in long form, one row per target × load × metric; docs/formats/report-csv.md
// describes it. A target without a usable trial has one row with the reason.
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
		rows = append(rows, row(func(c column[summaryRow]) string { return printed(c.value(&r)) }))
	}
	return format.CSV(w, rows)
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
				none := &table.Metric{Withheld: table.NoteOf(table.NoteNoneGood)}
				rows = append(rows, summaryRow{none, suite, run, sc, t})
			}
		}
	}
	return rows
}

func (r *summaryRow) has() bool      { return r.Known() }
func (r *summaryRow) interval() bool { return r.has() && r.Summary.HasInterval() }
func (r *summaryRow) compared() bool { return r.Ratio != nil }

// ranks reports whether this is the metric of the tiers.
func (r *summaryRow) ranks() bool {
	ranking := &r.scenario.Ranking
	return r.Load == ranking.Load && r.Name == ranking.Metric
}

// summaryColumns returns the columns in the documented order; new ones come last, so that positions
// stay the same.
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
		where((*row).has, decimal("center", func(r *row) float64 { return r.Summary.Center })),
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
		label("withheld", func(r *row) string { return r.Withheld.String() }),
		where((*row).ranks, decimal("noise_between", func(r *row) float64 {
			return r.target.Variance.Between
		})),
		where((*row).ranks, decimal("noise_within", func(r *row) float64 {
			return r.target.Variance.Within
		})),
		where((*row).ranks, decimal("noise_between_share", func(r *row) float64 {
			return r.target.Variance.Share
		})),
		where((*row).compared, label("ratio_source", func(r *row) string {
			return string(r.Source)
		})),
		where((*row).compared, label("ratio_grade", func(r *row) string {
			return r.RatioGrade()
		})),
	}
}

// origins returns the suites and runs of the records, joined by "+".
func origins(s table.Study) (suite, run string) {
	suites := table.Distinct(s.Records, func(r *record.Record) string { return r.Suite })
	runs := table.Distinct(s.Records, func(r *record.Record) string { return r.Run })
	return strings.Join(suites, "+"), strings.Join(runs, "+")
}
