// Package summary writes the result of a load: the request, the measurements and their precision,
// as text for people and as JSON, CSV and HdrHistogram log for programs.
//
//	record.Load, verdict ─► Text · JSON · CSV          load.Interval ─► HLog
//
// All writers are pure functions of their arguments. Text omits numbers that would mislead:
// percentiles of too few responses, and all latencies of a load that the server could not keep up
// with. JSON, CSV and HLog are raw and omit nothing.
//
// Non-goals: it computes nothing that a record lacks, compares no loads (package report does), and
// judges nothing (package verdict does).
package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/load"
	"prony.example/record"
)

// Report is a finished load with its verdict.
type Report struct {
	Target  string // the URL
	Load    *record.Load
	Verdict record.Verdict
	Command []string // command that repeats it

	// Ran is the length of the window if the load was interrupted. Zero: it was complete.
	Ran time.Duration
}

// CutShort adds to a verdict that only a part of the window, or of a number of requests, was
// measured. requests is 0 for a load that ends with its window. The user who
// interrupted the load may have seen intermediate results, and a threshold that held so far says
// nothing about the complete window.
func CutShort(v record.Verdict, load string, ran, window time.Duration,
	requests int64) record.Verdict {
	f := record.Finding{Rule: wording.Whole, Load: load, Grade: record.Invalid,
		Value: float64(ran), Unit: record.UnitNs}
	if requests > 0 {
		f.Facts.Total = requests
	} else {
		f.Limit, f.Side = float64(window), record.Below
	}
	v.Grade, v.Findings = record.Invalid, append([]record.Finding{f}, v.Findings...)
	return v
}

// JSON writes load and verdict completely, and the load's percentiles with their intervals:
// docs/formats/load-json.md.
func JSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // people also read "≥ 5 <"
	v, l := r.Verdict, *r.Load
	v.Findings = wording.WithWords(v.Findings)
	l.Generators = slices.Clone(l.Generators)
	for i := range l.Generators {
		l.Generators[i].Findings = wording.WithWords(l.Generators[i].Findings)
	}
	return e.Encode(document{&l, v, percentiles(r)})
}

type document struct {
	Load        *record.Load   `json:"load"`
	Verdict     record.Verdict `json:"verdict"`
	Percentiles []Percentile   `json:"percentiles"`
}

// CSV writes a row for each interval of the window: docs/formats/load-csv.md. The histograms of
// intervals provide the ends of the percentiles' intervals; without them these columns are empty.
func CSV(w io.Writer, l *record.Load, intervals []load.Interval) error {
	s := &l.Series
	rows := [][]string{{"offset_ns", "length_ns", "scheduled", "sent", "done", "failed",
		"p50_ns", "p99_ns", "max_ns", "p50_lo_ns", "p50_hi_ns", "p99_lo_ns", "p99_hi_ns"}}
	for i := range s.Done {
		offset := int64(i) * s.IntervalNs
		answered := i < len(s.MaxNs) && s.MaxNs[i] > 0
		row := []string{
			strconv.FormatInt(offset, 10),
			strconv.FormatInt(min(s.IntervalNs, l.WindowNs-offset), 10),
			field(s.Scheduled, i, true), field(s.Sent, i, true), field(s.Done, i, true),
			field(s.Failed, i, true), field(s.P50Ns, i, answered), field(s.P99Ns, i, answered),
			field(s.MaxNs, i, answered),
		}
		rows = append(rows, append(row, endsAt(l, intervals, offset)...))
	}
	return format.CSV(w, rows)
}

// endsAt returns the ends of the p50's and p99's intervals for the interval that begins at an
// offset; empty texts if it has too few responses.
func endsAt(l *record.Load, intervals []load.Interval, offsetNs int64) []string {
	ends := make([]string, 4)
	for _, iv := range intervals {
		if int64(iv.Offset) != offsetNs || iv.Response == nil {
			continue
		}
		share, _ := l.Autocorrelation.Worth()
		qs := table.PercentilesIn(iv.Response, share, confidence)
		for k, q := range []table.Percentile{qs[0], qs[2]} {
			if q.HasInterval() {
				ends[2*k], ends[2*k+1] = fmt.Sprintf("%.0f", q.Lo), fmt.Sprintf("%.0f", q.Hi)
			}
		}
	}
	return ends
}

// field returns a column's value, or "" if it is unknown: a zero would be a value.
func field(column []int64, i int, known bool) string {
	if !known || i >= len(column) {
		return ""
	}
	return strconv.FormatInt(column[i], 10)
}

// HLog writes the interval histograms in HdrHistogram's log format, version 1.3, which its plotter
// and every port read: docs/formats/load-hlog.md. Values are nanoseconds, times are seconds since
// the window opened; the title is a comment in the log.
func HLog(w io.Writer, title string, intervals []load.Interval) error {
	out := hdrhistogram.NewHistogramLogWriter(w)
	for _, write := range []func() error{
		out.OutputLogFormatVersion,
		func() error { return out.OutputComment("[" + title + "]") },
		out.OutputLegend,
	} {
		if err := write(); err != nil {
			return err
		}
	}
	// The library's lines have times in whole milliseconds, so a shorter interval would have none.
	for _, iv := range intervals {
		coded, err := iv.Response.EncodeV2()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%.6f,%.6f,%.6f,%s\n", iv.Offset.Seconds(),
			max(iv.Length, time.Microsecond).Seconds(), float64(iv.Response.Max())/1e6, coded)
		if err != nil {
			return err
		}
	}
	return nil
}

// HLogTitle returns the title of a log for a trial's load or a single load.
func HLogTitle(subject string) string {
	return "response time in ns, by the time of the response, of " + subject
}

// SaveHLog writes the log of a trial's load to hdr/TRIAL.LOAD.hlog in a run's folder.
func SaveHLog(dir, trial, name string, intervals []load.Interval) error {
	dir = filepath.Join(dir, "hdr")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, trial+"."+name+".hlog"), func(w io.Writer) error {
		return HLog(w, HLogTitle(trial), intervals)
	})
}

// Spectrum writes the percentile spectrum of the response times in milliseconds, in the format of
// wrk2 and HdrHistogram's other tools, for their plotter.
func Spectrum(w io.Writer, l *record.Load) error {
	h, err := l.ResponseTime.Histogram()
	if err == nil && h == nil {
		err = errors.New("the load has no histogram")
	}
	if err != nil {
		return fmt.Errorf("write the spectrum: %w", err)
	}
	_, err = h.PercentilesPrint(w, 5, 1e6)
	return err
}

// page collects a load's text.
type page struct{ format.Page }

// row adds a line with a name before it; further lines if it is too wide.
func (p *page) row(name, text string, args ...any) {
	head, text := fmt.Sprintf("  %-*s ", nameWidth, name), fmt.Sprintf(text, args...)
	if line := head + text; format.Columns(line) <= format.Width {
		p.Line("%s", line)
		return
	}
	p.Line("%s", format.Wrap(head, text, format.Width, len(head)))
}
