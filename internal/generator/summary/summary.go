// Package summary has the last word on a load: what was asked, what came of it, what that is worth,
// as text for people and as JSON, CSV and HdrHistogram log for programs.
//
//	record.Load, verdict ─► Text · JSON · CSV          load.Interval ─► HLog
//
// All writers are pure functions of what they are given. Text says less than it could where the
// numbers would mislead: a percentile of too few answers is not printed, nor is any latency of a
// load that the server could not keep up with. JSON, CSV and HLog are raw: they leave nothing out.
//
// Non-goals: nothing is computed that a record does not hold, no two loads are compared (package
// report does), and nothing is judged (package verdict does).
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

// Report is a load that has ended, and what is known about it.
type Report struct {
	Target  string // the URL
	Load    *record.Load
	Verdict record.Verdict
	Command []string // that repeats it

	// Ran is how much of the window was offered where it was ended by hand, which the load's own
	// window then is. Zero: all that was asked for.
	Ran time.Duration
}

// CutShort adds to a verdict that only a part of the window was offered: whoever ended it may have
// seen how it went, and a threshold that held so far says nothing of the window that was asked for.
func CutShort(v record.Verdict, load string, ran, window time.Duration) record.Verdict {
	v.Grade = record.Invalid
	v.Findings = append([]record.Finding{{
		Rule: wording.Whole, Load: load, Grade: record.Invalid, Value: float64(ran),
		Limit: float64(window), Unit: record.UnitNs, Side: record.Below,
	}}, v.Findings...)
	return v
}

// JSON writes load and verdict whole, and its percentiles with their intervals:
// docs/formats/load-json.md.
func JSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // "≥ 5 <" is read by people too
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

// CSV writes a row for each interval of the window: docs/formats/load-csv.md. The histograms are
// those of the intervals, for the ends of the percentiles; without them these columns are empty.
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

// endsAt are the ends of p50 and p99 of the interval that begins there; nothing where its answers
// do not suffice.
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

// field is a column's value, or nothing where there is none: a zero would be read as one.
func field(column []int64, i int, known bool) string {
	if !known || i >= len(column) {
		return ""
	}
	return strconv.FormatInt(column[i], 10)
}

// HLog writes the interval histograms in HdrHistogram's log format, version 1.3, which its plotter
// and every port read: docs/formats/load-hlog.md. Values are nanoseconds, times seconds since the
// window opened; the title is a comment in it. The histograms get their times set, nothing else.
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
	for _, iv := range intervals {
		iv.Response.SetStartTimeMs(iv.Offset.Milliseconds())
		iv.Response.SetEndTimeMs((iv.Offset + iv.Length).Milliseconds())
		if err := out.OutputIntervalHistogram(iv.Response); err != nil {
			return err
		}
	}
	return nil
}

// HLogTitle says what the histograms of a log are, of a trial's load or of one alone.
func HLogTitle(subject string) string {
	return "response time in ns, by the time of the response, of " + subject
}

// SaveHLog writes the log of a trial's load into a run's folder, as hdr/TRIAL.LOAD.hlog.
func SaveHLog(dir, trial, name string, intervals []load.Interval) error {
	dir = filepath.Join(dir, "hdr")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, trial+"."+name+".hlog"), func(w io.Writer) error {
		return HLog(w, HLogTitle(trial), intervals)
	})
}

// Spectrum writes the percentile spectrum of the response times as wrk2 and HdrHistogram's other
// tools do, in milliseconds, for their plotter.
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

// page is what a load's text is gathered on.
type page struct{ format.Page }

// row is a line with a name before it.
func (p *page) row(name, format string, args ...any) {
	p.Line("  %-12s "+format, append([]any{name}, args...)...)
}
