package tsdb

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"prony.example/internal/base/format"
)

const clockFormat = "2006-01-02 15:04:05"

// Text prints a line for each series: its labels and last value and, over time, minimum, mean,
// maximum and course.
func (a *Answer) Text(w io.Writer) error {
	if a.Step == 0 {
		fmt.Fprintf(w, "at %s UTC\n", a.To.UTC().Format(clockFormat))
	} else {
		fmt.Fprintf(w, "%s to %s UTC, every %s\n", a.From.UTC().Format(clockFormat),
			a.To.UTC().Format(time.TimeOnly), a.Step)
	}
	if !a.Common.IsEmpty() {
		fmt.Fprintf(w, "all: %s\n", a.Common)
	}
	_, err := fmt.Fprintln(w)
	if len(a.Rows) > 0 {
		err = a.table(w)
	} else if err == nil {
		_, err = fmt.Fprintln(w, "No series. Run prony query RUN --list for a list of metrics.")
	}
	if err != nil {
		return err
	}
	for _, n := range a.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
	return nil
}

func (a *Answer) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if a.Step == 0 {
		fmt.Fprintln(t, "SERIES\tVALUE")
	} else {
		fmt.Fprintln(t, "SERIES\tLAST\tMIN\tMEAN\tMAX\tCOURSE")
	}
	for _, r := range a.Rows {
		cells := []string{r.title(), number(r.Last)}
		if a.Step > 0 {
			cells = append(cells, number(r.Min), number(r.Mean), number(r.Max), r.Spark)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

func (r Row) title() string {
	if r.Labels.IsEmpty() && r.Name != "" {
		return r.Name
	}
	return r.Name + r.Labels.String()
}

// number prints integers exactly, and other numbers with six digits.
func number(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1e15, size >= 1e6 && size < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// JSON prints the answer of Prometheus' HTTP API (its documentation, "HTTP API"): a matrix, or a
// vector for a single moment.
func (a *Answer) JSON(w io.Writer) error {
	result := []any{}
	for i, r := range a.Rows {
		var values []point
		for _, p := range r.Points {
			values = append(values, point{moment(p.Time.UnixMilli()), float(p.Value)})
		}
		of := labels.FromMap(a.labels(i))
		if a.Step == 0 {
			result = append(result, instant{Metric: of, Value: &values[0]})
		} else {
			result = append(result, course{Metric: of, Values: values})
		}
	}
	kind := "matrix"
	if a.Step == 0 {
		kind = "vector"
	}
	out := map[string]any{"status": "success",
		"data": map[string]any{"resultType": kind, "result": result}}
	if len(a.Notes) > 0 {
		out["infos"] = a.Notes
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// labels returns all labels of a row, with its name as in Prometheus.
func (a *Answer) labels(row int) map[string]string {
	out := a.Common.Map()
	maps.Copy(out, a.Rows[row].Labels.Map())
	if name := a.Rows[row].Name; name != "" {
		out[labels.MetricName] = name
	}
	return out
}

// CSV prints a line for each point: time, value, the metric's name, and a column for each label.
func (a *Answer) CSV(w io.Writer) error {
	names := map[string]bool{}
	for i := range a.Rows {
		for name := range a.labels(i) {
			names[name] = true
		}
	}
	delete(names, labels.MetricName)
	columns := slices.Sorted(maps.Keys(names))
	rows := [][]string{append([]string{"time", "value", "metric"}, columns...)}
	for i, r := range a.Rows {
		of := a.labels(i)
		for _, p := range r.Points {
			cells := []string{p.Time.UTC().Format(time.RFC3339Nano),
				strconv.FormatFloat(p.Value, 'g', -1, 64), r.Name}
			for _, c := range columns {
				cells = append(cells, of[c])
			}
			rows = append(rows, cells)
		}
	}
	return format.CSV(w, rows)
}

// PrintList prints a line for each metric.
func PrintList(w io.Writer, list []Listed) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "METRIC\tSERIES\tTYPE\tHELP")
	for _, l := range list {
		help, _, _ := strings.Cut(l.Help, "\n")
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", l.Name, l.Series, l.Type, help)
	}
	return t.Flush()
}
