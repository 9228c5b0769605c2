package dashboardtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"prony.example/internal/telemetry/boards"
)

// The first samples are at noon.

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// data is Prometheus' database with the series of a file, and its engine.
type data struct {
	db     *tsdb.DB
	engine *promql.Engine
	parser parser.Parser
	end    time.Time // of the last sample
}

// open reads the recorded series and those of a file into a new database.
func open(t *testing.T, file string) *data {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), promslog.NewNopLogger(), nil, tsdb.DefaultOptions(),
		tsdb.NewDBStats())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &data{db: db, parser: parser.NewParser(parser.Options{}), end: noon}
	d.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: d.parser, NoStepSubqueryIntervalFn: func(int64) int64 { return 1000 },
	})
	recorded, err := filepath.Glob(filepath.Join(root, boards.Folder, "*.txt"))
	if err != nil || len(recorded) == 0 {
		t.Fatalf("%s has no recorded series: %v", boards.Folder, err)
	}
	for _, one := range append(recorded, file) {
		if err := d.read(one); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *data) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	app := d.db.Appender(context.Background())
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		series, values, err := d.parser.ParseSeriesDesc(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
		for i, v := range values {
			at := noon.Add(time.Duration(i) * boards.Step)
			if v.Histogram != nil {
				_, err = app.AppendHistogram(0, series, at.UnixMilli(), nil, v.Histogram)
			} else {
				_, err = app.Append(0, series, at.UnixMilli(), v.Value)
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
			if at.After(d.end) {
				d.end = at
			}
		}
	}
	return errors.Join(lines.Err(), app.Commit())
}

// ask evaluates PromQL at the end of the data.
func (d *data) ask(expr string) (promql.Vector, error) {
	q, err := d.engine.NewInstantQuery(context.Background(), d.db, nil, expr, d.end)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(context.Background())
	if r.Err != nil {
		return nil, r.Err
	}
	if len(r.Warnings) > 0 {
		warnings, _ := r.Warnings.AsStrings(expr, 10, 0)
		if len(warnings) > 0 {
			return nil, fmt.Errorf("the engine warns: %s", strings.Join(warnings, "; "))
		}
	}
	switch v := r.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil // the engine reuses its memory
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("the answer is a %s, which no panel shows", r.Value.Type())
}

// selected returns the labels of the series that a selector finds.
func (d *data) selected(matchers []*labels.Matcher) ([]labels.Labels, error) {
	q, err := d.db.Querier(noon.UnixMilli(), d.end.UnixMilli())
	if err != nil {
		return nil, err
	}
	var all []labels.Labels
	set := q.Select(context.Background(), true, nil, matchers...)
	for set.Next() {
		all = append(all, set.At().Labels())
	}
	return all, errors.Join(set.Err(), q.Close())
}

// values returns the same series for every data source.
func (d *data) Values(_, selector, label string) ([]string, error) {
	matchers, err := d.parser.ParseMetricSelector(selector)
	if err != nil {
		return nil, err
	}
	found, err := d.selected(matchers)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, l := range found {
		if v := l.Get(label); v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all, nil
}

// metrics returns the names of all metrics.
func (d *data) metrics(t *testing.T) []string {
	t.Helper()
	all, err := d.Values("", `{__name__!=""}`, labels.MetricName)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
