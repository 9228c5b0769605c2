package metric_test

import (
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/report"
	"prony.example/internal/telemetry"
	"prony.example/record"
	"prony.example/record/metric"
)

var update = flag.Bool("update", false, "write the list of metrics into the documentation")

const page = "../../docs/formats/report-csv.md"

// The documentation of the CSV report has a line for every metric.
func TestDocumentation(t *testing.T) {
	var p format.Page
	p.Line("| metric | unit | column of a suite | meaning |\n|---|---|---|---|")
	for _, m := range metric.All {
		column := ""
		if m.Column != nil {
			column = "`" + m.Column.Name + "`"
		}
		p.Line("| `%s` | %s | %s | %s |", m.Name, m.Unit, column, m.Doc)
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "metrics", []byte(p.String()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(have) != string(want) {
		t.Errorf("%s lacks a metric, or tells another tale of it: bless it with go test "+
			"./record/metric -update", page)
	}
}

// Every row has all texts that readers need.
func TestRowsAreWhole(t *testing.T) {
	names, columns, told := map[string]bool{}, map[string]bool{}, map[string]bool{}
	unitList := []string{units.PerS, units.Ns, units.Octet, units.J, units.One}
	for _, m := range metric.All {
		if names[m.Name] || strings.ToLower(m.Name) != m.Name {
			t.Errorf("%s: a name stands once, in small letters", m.Name)
		}
		names[m.Name] = true
		if !slices.Contains(unitList, m.Unit) || m.Label == "" || m.Better == "" || m.Worse == "" ||
			m.Better == m.Worse || m.Doc == "" {
			t.Errorf("%s: a unit, words or its line for the documentation lack: %+v", m.Name, m)
		}
		ways := 0
		for _, has := range []bool{m.Load != nil, m.Trial != nil, m.Quantile > 0} {
			if has {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s is read from records or from histograms, and from one of them", m.Name)
		}
		if m.Column != nil {
			if columns[m.Column.Name] {
				t.Errorf("column %s stands twice", m.Column.Name)
			}
			columns[m.Column.Name] = true
		}
		if m.Told == "" {
			continue
		}
		if told[m.Told] || m.Trial != nil || m.Quantile > 0 ||
			!slices.ContainsFunc(telemetry.Metrics, func(of telemetry.Metric) bool {
				return of.Name == m.Told && of.Labels == nil && of.Of == telemetry.Load
			}) {
			t.Errorf("%s: %s is not a series of a load that telemetry knows, or is told twice",
				m.Name, m.Told)
		}
		told[m.Told] = true
	}
}

// Unrecorded values are unknown: no metric turns them into zero, except counts of failed and
// successful requests.
func TestNothingIsKnownOfNothing(t *testing.T) {
	known := []string{metric.Throughput}
	for _, m := range metric.All {
		if m.Quantile > 0 {
			continue
		}
		v := m.Value(&record.Record{}, &record.Load{})
		if math.IsNaN(v) == slices.Contains(known, m.Name) {
			t.Errorf("%s of an empty record is %v", m.Name, v)
		}
	}
}

// The order of columns is well defined: ranks count from 1 in each place.
func TestColumns(t *testing.T) {
	ranks := map[metric.Place]int{}
	for _, m := range metric.Columns() {
		if ranks[m.Column.Place]++; m.Column.Rank != ranks[m.Column.Place] {
			t.Errorf("column %s has rank %d among those of its place, want %d", m.Column.Name,
				m.Column.Rank, ranks[m.Column.Place])
		}
	}
}
