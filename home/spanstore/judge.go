package spanstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/traces"
)

// judge ends the assembly of a trace and stores it if it gets a place.
func (s *Store) judge(p *pending) {
	s.pending.remove(p)
	t := p.trial
	if len(p.spans) == 0 { // its only span is larger than a trace may be
		t.Counts.Dropped += p.cut
		return
	}
	at, roots := root(p.spans)
	top := p.spans[at]
	c := &candidate{id: p.id, hash: evenHash(p.id), asked: p.asked, Seat: Seat{Bytes: p.bytes}}
	c.trace = traces.Trace{
		Trial: t.ID, Target: t.Target, TraceID: p.id.String(), Service: top.service,
		StartNs: nanos(top.span.StartTimestamp()), DurationNs: duration(top.span),
		Errors: p.errors, Cut: p.cut, Roots: roots,
	}
	if !t.groupOf(c).Wants(c) {
		t.Counts.Dropped += int64(len(p.spans)) + p.cut
		return
	}
	c.trace.Name = traces.CutText(top.span.Name(), traces.MaxNameBytes)
	c.trace.Spans = make([]traces.Span, len(p.spans))
	for i, h := range p.spans {
		c.trace.Spans[i] = spanOf(h.span, h.service)
	}
	t.kept[c.id] = c
	s.trials.Keep(t, t.groupOf(c), c)
}

// groupOf returns the group of the window in which the trace began, as far as it is known.
func (t *trial) groupOf(c *candidate) Group[*candidate] {
	c.trace.Window = t.Windows.At(c.trace.StartNs)
	return t.Group(c.trace.Window)
}

// drop is called when a candidate has lost its last place.
func (s *Store) drop(t *trial, c *candidate) {
	delete(t.kept, c.id)
	t.Counts.Dropped += int64(len(c.trace.Spans)) + c.trace.Cut
}

// late adds a span to a trace that is already kept, and assigns its places again.
func (s *Store) late(t *trial, c *candidate, span ptrace.Span, service string) {
	span, size := trim(span)
	t.Group(c.trace.Window).Withdraw(c)
	s.trials.Bytes -= c.Bytes // Keep adds it again
	if span.Status().Code() == ptrace.StatusCodeError {
		c.trace.Errors++
	}
	c.asked = c.asked || isAsked(span.TraceState().AsRaw())
	if len(c.trace.Spans) >= maxSpans || c.Bytes+size > traceBytes {
		c.trace.Cut++
	} else {
		c.trace.Spans = append(c.trace.Spans, spanOf(span, service))
		c.Bytes += size
		c.stale = true
		if nanos(span.StartTimestamp()) <= c.trace.StartNs { // it may be the root
			c.settle()
		}
	}
	s.trials.Keep(t, t.groupOf(c), c)
}

// settle finds the root again. It does not run for every late span, which would take quadratic
// time.
func (c *candidate) settle() {
	c.trace.Settle()
	c.stale = false
}

// End ends a trial: it judges traces under assembly, writes and syncs the kept ones, and sends the
// metrics. The counts are right even after an error.
func (s *Store) End(id string) (Ended, error) {
	nowNs := clock.Wall().UnixNano()
	t, out, err := s.finish(id, nowNs)
	if err != nil {
		return Ended{}, err
	}
	// From here on no other goroutine uses the trial, so writing files and the callback do not
	// block arrivals.
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	return out, errors.Join(AppendLines(s.trace, t.sorted()),
		AppendLines(s.calls, t.metrics.lines(t, nowNs)), s.export(ctx, []*trial{t}, nowNs))
}

const exportTimeout = 10 * time.Second

// finish judges the remaining traces of a trial and removes it from those under way.
func (s *Store) finish(id string, nowNs int64) (*trial, Ended, error) {
	s.trials.Lock()
	defer s.trials.Unlock()
	t := s.trials.Find(id)
	if t == nil {
		return nil, Ended{}, fmt.Errorf("end trial %s: the trial is not running", id)
	}
	for e := s.pending.silent.Front(); e != nil; {
		p := e.Value.(*pending)
		if e = e.Next(); p.trial == t {
			s.judge(p)
		}
	}
	out := Ended{Loads: t.Windows.End(nowNs), IDs: map[pcommon.TraceID]bool{}}
	for id, c := range t.kept {
		out.IDs[id] = true
		if c.stale {
			c.settle()
		}
		s.trials.Bytes -= c.Bytes
		t.Counts.Kept += int64(len(c.trace.Spans))
		t.Counts.Dropped += c.trace.Cut
		c.trace.Window = t.Windows.At(c.trace.StartNs) // marks may have arrived since
		c.trace.Classes = c.classes()
	}
	s.trials.End(t)
	out.Counts = t.Counts
	return t, out, nil
}

// sorted returns the kept traces by start, with the spans of each by start.
func (t *trial) sorted() (out []*traces.Trace) {
	for _, c := range t.kept {
		out = append(out, &c.trace)
		c.trace.Sort()
	}
	slices.SortFunc(out, func(a, b *traces.Trace) int {
		return cmp.Or(cmp.Compare(a.StartNs, b.StartNs), cmp.Compare(a.TraceID, b.TraceID))
	})
	return out
}

// OpenLines opens a file of lines for appending, and creates it and its folder if they are missing.
// It terminates a line that a crash left incomplete, which then counts as one invalid line.
func OpenLines(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := Terminate(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Terminate ends an incomplete last line of a file.
func Terminate(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err = f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
		_, err = f.WriteString("\n")
	}
	return err
}

// AppendLines writes values as JSON, one a line, and syncs the file. It is safe for concurrent use:
// it writes only complete lines, and writes of an os.File are serialized. It terminates a line that
// a full disk left incomplete.
func AppendLines[T any](f *os.File, values []T) error {
	if len(values) == 0 {
		return nil
	}
	if err := Terminate(f); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	const batch = 1 << 20
	var buffer []byte
	for i, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
		buffer = append(append(buffer, line...), '\n')
		if len(buffer) < batch && i < len(values)-1 {
			continue
		}
		if _, err := f.Write(buffer); err != nil {
			return fmt.Errorf("write %s: %w; free some space", f.Name(), err)
		}
		buffer = buffer[:0]
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return nil
}
