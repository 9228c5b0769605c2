package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report/rows"
	"prony.example/record"
)

// stored is a table read back: its columns in order, and its rows by column, nil for null.
type stored struct {
	names []string
	rows  []map[string]any
}

// readBack checks that each value is null, or of its column's kind.
func readBack(t *testing.T, from io.Reader) (s stored) {
	t.Helper()
	in := json.NewDecoder(from)
	in.UseNumber()
	var h rows.Head
	if err := in.Decode(&h); err != nil {
		t.Fatal(err)
	}
	for _, c := range h.Columns {
		s.names = append(s.names, c.Name)
	}
	for in.More() {
		var values []any
		if err := in.Decode(&values); err != nil || len(values) != len(h.Columns) {
			t.Fatalf("row %d: %d values, %v", len(s.rows), len(values), err)
		}
		row := map[string]any{}
		for i, c := range h.Columns {
			v, ok := typed(c.Kind, values[i])
			if !ok {
				t.Fatalf("row %d: %s is %v, which is no %s", len(s.rows), c.Name, values[i], c.Kind)
			}
			row[c.Name] = v
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func typed(kind rows.Kind, v any) (any, bool) {
	n, isNumber := v.(json.Number)
	switch {
	case isNumber && (kind == rows.Count || kind == rows.Instant):
		i, err := n.Int64()
		return i, err == nil
	case isNumber && kind == rows.Real:
		x, err := n.Float64()
		return x, err == nil
	}
	_, isText := v.(string)
	_, isFlag := v.(bool)
	return v, v == nil || isText && kind == rows.Text || isFlag && kind == rows.Flag
}

func flatOf(t *testing.T, records []record.Record, which string) stored {
	t.Helper()
	var rows bytes.Buffer
	if err := Flat(&rows, analyze(records, fixtureOptions()), which); err != nil {
		t.Fatal(err)
	}
	return readBack(t, &rows)
}

// has checks values in a row; NaN here means null there.
func (s stored) has(t *testing.T, row map[string]any, want map[string]any) {
	t.Helper()
	for name, w := range want {
		got, ok := row[name]
		if !ok || !slices.Contains(s.names, name) {
			t.Errorf("there is no column %s", name)
		} else if got != w {
			t.Errorf("%s is %v (%T), want %v (%T)", name, got, got, w, w)
		}
	}
}

func TestFlatTrials(t *testing.T) {
	records := made()[:3]
	one := slices.Clone(records)
	l := &one[0].Loads[1]
	l.Autocorrelation = record.Autocorrelation{Samples: 65_536, Lag1: 0.5, EffectiveShare: 0.25}
	one[0].Loads = slices.Clone(one[0].Loads)
	one[0].Time = time.Date(2026, 11, 21, 3, 40, 11, 250_000, time.UTC)
	s := flatOf(t, one, "trials")
	rows := 0
	for _, r := range one {
		rows += max(1, len(r.Loads))
	}
	if len(s.rows) != rows {
		t.Fatalf("%d rows, want %d", len(s.rows), rows)
	}
	first, half := one[0], one[0].Loads[1]
	at := slices.IndexFunc(s.rows, func(r map[string]any) bool {
		return r["trial"] == first.Trial && r["load_name"] == half.Name
	})
	// The interval of the p99 is twice as wide if a response counts as a quarter: both are in the
	// histogram, whose ranks package table tests.
	p := table.Percentiles(&half, &half.ResponseTime, 0.95)[2]
	s.has(t, s.rows[at], map[string]any{
		"target": first.Target.Name, "grade": table.Grade(&first), "suite": "canonical",
		"time": first.Time.UnixMicro(), "block": int64(1), "outcome": "measured",
		"failure_step": nil, "target_language": first.Target.Language,
		"limits_service_cores": "0",
		"limits_in_force":      "cpuset 1 (cgroup v1); memory 1073741824 (cgroup v1)",
		"provenance_seed":      "42", "provenance_cpu_model": "Example CPU @ 2.00GHz",
		"provenance_tools":             "go=go1.26.8; java=openjdk 25.0.3 2026-10-20; node=v24.9.0",
		"provenance_command":           "prony run suites/canonical.yaml --seed 42 --blocks 5",
		"provenance_cores":             int64(2),
		"warmup_steady_at_ns":          int64(6e9),
		"load_model":                   "open",
		"load_done":                    half.Done,
		"load_throughput_per_s":        half.ThroughputPerS,
		"load_response_time_p99_ns":    half.ResponseTime.P99Ns,
		"load_response_time_p99_lo_ns": p.Lo, "load_response_time_p99_hi_ns": p.Hi,
		"load_response_time_hdr":    half.ResponseTime.HDR,
		"load_independent_answers":  half.ResponseTime.Count / 4,
		"load_independence_assumed": false, "load_autocorrelation_lag1": 0.5,
		"load_host_pressure_cpu": 0.2, "load_host_pressure_memory": nil, // -1: unknown
		"load_service_cpu_per_request_ns": half.Service.CPUPerRequestNs,
		"load_tls_time_p99_ns":            nil, // there was no TLS
		"load_errors_status":              int64(0),
	})
	if p.Hi-p.Lo <= 0 || math.IsNaN(p.Lo) {
		t.Fatalf("the fixture's p99 has no interval: %+v", p)
	}
	for i, n := range s.names {
		if slices.Index(s.names, n) != i {
			t.Errorf("two columns are named %s", n)
		}
		if n != strings.ToLower(n) || strings.ContainsAny(n, " .-") {
			t.Errorf("column %q is not a plain name", n)
		}
		if strings.HasSuffix(n, "_hdr") && n != keptHistogram {
			t.Errorf("histogram %s is in it", n)
		}
	}
}

// TestFlatFailed checks that a trial without a load has a row.
func TestFlatFailed(t *testing.T) {
	at := slices.IndexFunc(made(), func(r record.Record) bool { return r.Failure != nil })
	s := flatOf(t, made()[at:at+1], "trials")
	if len(s.rows) != 1 {
		t.Fatalf("%d rows, want 1", len(s.rows))
	}
	s.has(t, s.rows[0], map[string]any{
		"grade": "failed", "outcome": "failed", "failure_step": made()[at].Failure.Step,
		"load_name": nil, "load_grade": nil, "load_done": nil, "load_independence_assumed": nil,
		"start_ready_ns": nil, "load_response_time_p99_lo_ns": nil,
	})
}

// TestFlatSummary checks that the typed summary prints the same values as the CSV.
func TestFlatSummary(t *testing.T) {
	study := analyze(made(), fixtureOptions())
	rows := summaryRows(&study)
	s := flatOf(t, made(), "summary")
	if len(s.rows) != len(rows) {
		t.Fatalf("%d rows, want %d", len(s.rows), len(rows))
	}
	for i, c := range summaryColumns() {
		if s.names[i] != c.name {
			t.Errorf("column %d is %s, want %s", i, s.names[i], c.name)
		}
		for k := range rows {
			if got, want := printed(s.rows[k][c.name]), printed(c.value(&rows[k])); got != want {
				t.Errorf("row %d: %s is %s, want %s", k, c.name, got, want)
			}
		}
	}
}

func TestFlatSeries(t *testing.T) {
	r := made()[0]
	r.Loads = slices.Clone(r.Loads[:1])
	l := &r.Loads[0]
	// Three intervals of a second in a window of 2.5 s; the second one has no response.
	l.WindowNs = 2.5e9
	l.Series = record.Series{IntervalNs: 1e9, Done: []int64{100, 0, 50}, P99Ns: []int64{5, 0, 7}}
	r.Warmup = record.Warmup{IntervalNs: 5e8, RatePerS: record.Rates{70, 80.5}}
	s := flatOf(t, []record.Record{r}, "series")
	if len(s.rows) != 5 {
		t.Fatalf("%d rows, want 2 of the warm-up and 3 of the window", len(s.rows))
	}
	s.has(t, s.rows[1], map[string]any{"phase": "warmup", "load": nil, "offset_ns": int64(5e8),
		"length_ns": int64(5e8), "rate_per_s": 80.5, "done": nil, "trial": r.Trial})
	s.has(t, s.rows[3], map[string]any{"phase": "window", "load": "peak", "offset_ns": int64(1e9),
		"rate_per_s": 0.0, "done": int64(0), "p99_ns": nil, "scheduled": nil})
	// 50 in the last half second are 100 a second.
	s.has(t, s.rows[4], map[string]any{"offset_ns": int64(2e9), "length_ns": int64(5e8),
		"rate_per_s": 100.0, "p99_ns": int64(7), "load_grade": table.LoadGrade(&r, "peak")})
}

func TestFlatOfNothing(t *testing.T) {
	for _, which := range FlatTables {
		if s := flatOf(t, nil, which); len(s.rows) != 0 || len(s.names) == 0 {
			t.Errorf("%s: %d rows, %d columns", which, len(s.rows), len(s.names))
		}
	}
	err := Flat(&bytes.Buffer{}, table.Study{}, "trial")
	if err == nil || !strings.Contains(err.Error(), "the tables are trials, summary, series") {
		t.Errorf("error is %v", err)
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"p999Ns": "p999_ns", "otherCPUShare": "other_cpu_share",
		"throughputPerS": "throughput_per_s",
		"pressureIO":     "pressure_io", "sha256": "sha256", "temperatureC": "temperature_c",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s", fmt.Sprint(name, " is ", got, ", want ", want))
		}
	}
}
