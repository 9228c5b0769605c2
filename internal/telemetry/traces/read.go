package traces

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// Filter selects stored traces. Zero fields select all.
type Filter struct {
	Trial   string
	Target  string
	Window  string
	ID      string // of the trace, or a prefix
	Class   string // a class of stored traces, such as Failed
	Service string // with a span in the trace
	Min     int64  // duration in ns, inclusive
	Slowest bool   // the slowest first; otherwise by start
	Limit   int
}

func (f *Filter) holds(t *Trace) bool {
	return (f.Trial == "" || f.Trial == t.Trial) &&
		(f.Target == "" || f.Target == t.Target) &&
		(f.Window == "" || f.Window == t.Window) &&
		strings.HasPrefix(t.TraceID, strings.ToLower(f.ID)) &&
		(f.Class == "" || slices.Contains(t.Classes, f.Class)) &&
		t.DurationNs >= f.Min &&
		(f.Service == "" || slices.ContainsFunc(t.Spans, func(s Span) bool {
			return s.Service == f.Service
		}))
}

// Read returns the stored traces of a telemetry folder that match the filter. Other lines, such as
// crashes leave behind, are in bad. The error is fs.ErrNotExist if nothing was stored.
func Read(dir string, f Filter) (traces []*Trace, bad []*record.BadRecord, err error) {
	bad, err = ReadLines(filepath.Join(dir, telemetry.SpansFile), func(t *Trace) error {
		if len(t.Spans) == 0 || t.TraceID == "" {
			return errors.New("the trace has no id or no spans")
		}
		if f.holds(t) {
			traces = append(traces, t)
		}
		return nil
	})
	slices.SortStableFunc(traces, func(a, b *Trace) int {
		if f.Slowest {
			if c := cmp.Compare(b.DurationNs, a.DurationNs); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.StartNs, b.StartNs)
	})
	if f.Limit > 0 && len(traces) > f.Limit {
		traces = traces[:f.Limit]
	}
	return traces, bad, err
}

// ReadCalls returns the span metrics of a telemetry folder, of one trial or target, or of all.
func ReadCalls(dir, trial, target string) (calls []*Calls, bad []*record.BadRecord, err error) {
	bad, err = ReadLines(filepath.Join(dir, MetricsFile), func(c *Calls) error {
		if len(c.Buckets) != len(Bounds)+1 {
			return fmt.Errorf("the histogram has %d buckets, but this version of Prony supports %d",
				len(c.Buckets),
				len(Bounds)+1)
		}
		if (trial == "" || trial == c.Trial) && (target == "" || target == c.Target) {
			calls = append(calls, c)
		}
		return nil
	})
	return calls, bad, err
}

// ReadLines reads a file of JSON values, one a line, and passes each to use. Lines that are invalid
// or refused by use are in bad; empty lines are skipped.
func ReadLines[T any](path string, use func(*T) error) (bad []*record.BadRecord, err error) {
	in, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read telemetry: %w", err)
	}
	defer in.Close()
	return record.ReadLines(path, in, func(b []byte) error {
		if len(bytes.TrimSpace(b)) == 0 {
			return nil
		}
		v := new(T)
		if err := jsontree.DecodeLine(b, v); err != nil {
			return err
		}
		return use(v)
	})
}
