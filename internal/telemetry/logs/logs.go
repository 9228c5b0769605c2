// Package logs reads the logs of services: Read returns stored log records, ReadFiles the lines of
// the files that services write themselves.
//
// Non-goals: it does not store logs (logstore does) or interpret lines.
package logs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/files"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// Classes of stored records. A record may have several.
const (
	Warning = "warning" // severity WARN or above
	Traced  = "traced"  // belongs to a stored trace
	Uniform = "uniform" // in a uniform sample of the others
)

// Severities are the ranges of severity numbers in OTLP's data model, in ascending order. The first
// one is for records without a severity.
var Severities = []string{"unspecified", "trace", "debug", "info", "warn", "error", "fatal"}

// Warn is the index of warnings in Severities.
const Warn = 4

// Record is a stored log record, a line of logs.ndjson.
type Record struct {
	Trial      string            `json:"trial"`
	Target     string            `json:"target"`
	Window     string            `json:"window,omitempty"` // in which it was written
	Classes    []string          `json:"classes"`
	Ns         int64             `json:"ns"` // Unix time
	Service    string            `json:"service"`
	Severity   string            `json:"severity"` // one of Severities
	Logger     string            `json:"logger,omitempty"`
	Body       string            `json:"body"`
	TraceID    string            `json:"traceId,omitempty"`
	SpanID     string            `json:"spanId,omitempty"`
	Attributes traces.Attributes `json:"attributes,omitempty"`
	Cut        int64             `json:"cut,omitempty"` // attributes left out
}

// Level returns the index in Severities of a word in any case; -1: unknown.
func Level(word string) int {
	word = strings.ToLower(strings.TrimSpace(word))
	for level, names := range [...]string{"unspecified", "trace", "debug", "info notice",
		"warn warning", "error err severe", "fatal critical panic"} {
		if slices.Contains(strings.Fields(names), word) {
			return level
		}
	}
	return -1
}

// Filter selects stored records. Zero fields select all.
type Filter struct {
	Trial       string
	Target      string
	TraceID     string // or a prefix of it
	Service     string
	MinSeverity int            // index in Severities
	Grep        *regexp.Regexp // in body, logger or an attribute's text
	Limit       int            // maximum number, the earliest first
}

func (f *Filter) holds(r *Record) bool {
	return (f.Trial == "" || f.Trial == r.Trial) &&
		(f.Target == "" || f.Target == r.Target) &&
		(f.Service == "" || f.Service == r.Service) &&
		strings.HasPrefix(r.TraceID, strings.ToLower(f.TraceID)) &&
		(f.MinSeverity <= 0 || Level(r.Severity) >= f.MinSeverity) &&
		(f.Grep == nil || f.matches(r))
}

func (f *Filter) matches(r *Record) bool {
	if f.Grep.MatchString(r.Body) || f.Grep.MatchString(r.Logger) {
		return true
	}
	for _, v := range r.Attributes {
		if f.Grep.MatchString(fmt.Sprint(v)) {
			return true
		}
	}
	return false
}

// Read returns the stored records of a telemetry folder that match the filter, by time. Other
// lines, such as crashes leave behind, are in bad. The error is fs.ErrNotExist if nothing was
// stored.
func Read(dir string, f Filter) (records []*Record, bad []*record.BadRecord, err error) {
	bad, err = traces.ReadLines(filepath.Join(dir, telemetry.LogsFile), func(r *Record) error {
		if r.Trial == "" || Level(r.Severity) < 0 {
			return errors.New("the record has no trial or no known severity")
		}
		if f.holds(r) {
			records = append(records, r)
		}
		return nil
	})
	slices.SortStableFunc(records, func(a, b *Record) int { return cmp.Compare(a.Ns, b.Ns) })
	if f.Limit > 0 && len(records) > f.Limit {
		records = records[:f.Limit]
	}
	return records, bad, err
}

// Line is a line of a file that a service wrote itself, without any parsed fields.
type Line struct {
	Trial string `json:"trial"` // from the file's name
	File  string `json:"file"`  // path below the folder
	Line  int    `json:"line"`
	Text  string `json:"text"`
}

// ReadFiles returns lines of the files that the services of a run wrote, logs/TRIAL*.log, in the
// order of files and lines. It applies Trial, TraceID, Grep and Limit of the filter, and keep for
// Target, but no severity, which lines do not have. It cuts lines at traces.MaxValueBytes.
func ReadFiles(dir string, f Filter, keep func(trial string) bool) (out []Line, err error) {
	for _, path := range files.Glob(dir, "*.log") {
		name := filepath.Base(path)
		trial := strings.TrimSuffix(name, ".log")
		if f.Trial != "" && trial != f.Trial && !strings.HasPrefix(trial, f.Trial+".") ||
			keep != nil && !keep(trial) {
			continue
		}
		err := readFile(path, func(number int, text string) bool {
			if !strings.Contains(text, f.TraceID) || f.Grep != nil && !f.Grep.MatchString(text) {
				return true
			}
			out = append(out, Line{trial, name, number, text})
			return f.Limit <= 0 || len(out) < f.Limit
		})
		if err != nil {
			return out, fmt.Errorf("read log: %w", err)
		}
		if f.Limit > 0 && len(out) >= f.Limit {
			break
		}
	}
	return out, nil
}

// readFile passes the lines of a file to use until use returns false. It holds only the displayed
// part of a long line in memory.
func readFile(path string, use func(number int, text string) bool) error {
	file, err := files.Plain(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, traces.MaxValueBytes)
	for number := 1; ; number++ {
		b, long, err := r.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text := string(b)
		for long && err == nil {
			if !strings.HasSuffix(text, "…") {
				text = strings.ToValidUTF8(text, "") + "…"
			}
			_, long, err = r.ReadLine()
		}
		if !use(number, text) {
			return nil
		}
	}
}
