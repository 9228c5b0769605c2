package collector

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"prony.example/home/journal"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// failedSpan is a request of one span with an error, and a log record in its trace.
func failedSpan(n byte) (spans, line []byte) {
	d := ptrace.NewTraces()
	s := d.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	now := pcommon.NewTimestampFromTime(clock.Wall())
	s.SetTraceID(pcommon.TraceID{n})
	s.SetSpanID(pcommon.SpanID{n})
	s.SetStartTimestamp(now)
	s.SetEndTimestamp(now)
	s.Status().SetCode(ptrace.StatusCodeError)
	l := plog.NewLogs()
	r := l.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetTraceID(s.TraceID())
	r.SetTimestamp(now)
	spans, _ = ptraceotlp.NewExportRequestFromTraces(d).MarshalProto() // never fails
	line, _ = plogotlp.NewExportRequestFromLogs(l).MarshalProto()      // never fails
	return spans, line
}

func deliverFailed(t *testing.T, h *Home, from, to byte) {
	t.Helper()
	for n := from; n <= to; n++ {
		spans, line := failedSpan(n)
		if c1, c2 := deliver(t, h, "/v1/traces", spans),
			deliver(t, h, "/v1/logs", line); c1 != 200 || c2 != 200 {
			t.Fatal(c1, c2)
		}
	}
}

// left returns a copy of what a collector would leave if it were killed now, without its metrics.
func left(t *testing.T, h *Home) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{JournalFile, telemetry.StatsFile, telemetry.SpansFile,
		telemetry.LogsFile} {
		data, err := os.ReadFile(filepath.Join(h.c.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkStoredLines checks how many traces and log records are in the files.
func checkStoredLines(t *testing.T, dir string, want int) {
	t.Helper()
	for _, name := range []string{telemetry.SpansFile, telemetry.LogsFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if n := strings.Count(string(data), "\n"); err != nil || n != want {
			t.Errorf("%s has %d lines, %v; want %d", name, n, err, want)
		}
	}
}

// trialWith begins trial a with an open window.
func trialWith(t *testing.T, h *Home) {
	t.Helper()
	err := h.begin(t.Context(), telemetry.Trial{ID: "a", Target: "shop"})
	mark := telemetry.Mark{Trial: "a", Kind: telemetry.Open, Name: "high",
		WallNs: clock.Wall().UnixNano() - 1}
	if err = errors.Join(err, h.mark(t.Context(), mark)); err != nil {
		t.Fatal(err)
	}
}

// A collector continues with everything that a killed one accepted: before and after a renewed
// journal, and also if the journal's end is incomplete.
func TestRecovers(t *testing.T) {
	h := up(t, Config{})
	deliverFailed(t, h, 100, 101) // before the trial: counted, not stored
	trialWith(t, h)
	deliverFailed(t, h, 1, 3)
	if err := h.renew(); err != nil {
		t.Fatal(err)
	}
	deliverFailed(t, h, 4, 5)
	for torn, end := range []string{"", "\x08\x00\x00\x00half"} {
		dir := left(t, h)
		name := filepath.Join(dir, JournalFile)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(data, end...), 0o644); err != nil {
			t.Fatal(err)
		}
		again := upIn(t, dir, Config{})
		deliverFailed(t, again, 6, 6)
		r, err := again.end(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		spans := r.Telemetry.Signals[2]
		spans.Bytes = 0
		want := record.Signal{Name: record.Spans, Requests: 6, Received: 6, Kept: 6}
		if spans != want || r.Loads["high"].Spans != 6 || r.Loads["high"].Logs != 6 {
			t.Errorf("%+v and %+v, want %+v", spans, r.Loads["high"], want)
		}
		if p := r.Telemetry.Partial; !strings.Contains(p, "was killed") ||
			strings.Contains(p, "8 bytes of its journal were incomplete") != (torn == 1) {
			t.Errorf("partial: %q", p)
		}
		checkStoredLines(t, dir, 6)
		again.writing.Lock()
		s := again.stats(t.Context())
		again.writing.Unlock()
		if n := s.Telemetry.Signals[2].Received; n != 8 || s.Torn != torn || s.Broken != 1 ||
			len(s.Trials) != 0 {
			t.Errorf("%d spans, torn %d, broken %d, trials %v", n, s.Torn, s.Broken, s.Trials)
		}
	}
}

// A collector that is killed while it stores the end of a trial stores nothing twice.
func TestEndIsRepeated(t *testing.T) {
	h := up(t, Config{})
	trialWith(t, h)
	deliverFailed(t, h, 1, 3)
	if err := h.logEnd(false, "a"); err != nil {
		t.Fatal(err)
	}
	before := left(t, h)
	if _, _, err := h.stores.End("a"); err != nil {
		t.Fatal(err)
	}
	after := left(t, h)
	checkStoredLines(t, before, 0)
	checkStoredLines(t, after, 3)
	for _, dir := range []string{before, after} {
		again := upIn(t, dir, Config{})
		checkStoredLines(t, dir, 3)
		if len(again.under) != 0 {
			t.Errorf("%d trials are running", len(again.under))
		}
	}
	h.mu.Lock()
	h.under = nil // it has ended
	h.mu.Unlock()
}

// Trials that go on with the next collector do so after a regular end, and after a failed start.
func TestGoesOn(t *testing.T) {
	h := up(t, Config{})
	trialWith(t, h)
	deliverFailed(t, h, 1, 2)
	dir := left(t, h)
	if _, err := Start(t.Context(), Config{Dir: dir, Query: "192.0.2.1:1"}); err == nil {
		t.Fatal("it serves an address of no machine")
	}
	checkStoredLines(t, dir, 0)
	const free = "127.0.0.1:0"
	again, err := Start(t.Context(), Config{Dir: dir, HTTP: free, Query: free})
	if err != nil {
		t.Fatal(err)
	}
	deliverFailed(t, again, 3, 3)
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkStoredLines(t, dir, 3)
	if _, err := os.Stat(filepath.Join(dir, JournalFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want no journal after a regular end", err)
	}
	third := upIn(t, dir, Config{})
	deliverFailed(t, third, 4, 4)
	if err := third.EndEarlier(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkStoredLines(t, dir, 4)
}

// What the journal does not accept is refused.
func TestJournalRefuses(t *testing.T) {
	h := up(t, Config{})
	trialWith(t, h)
	// A folder of this name prevents a new journal, which would begin within a second.
	obstacle := filepath.Join(h.c.Dir, JournalFile+".new")
	if err := errors.Join(os.Mkdir(obstacle, 0o755), h.journal.Close(false)); err != nil {
		t.Fatal(err)
	}
	spans, line := failedSpan(1)
	if c1, c2 := deliver(t, h, "/v1/traces", spans), deliver(t, h, "/v1/logs",
		line); c1 != 503 || c2 != 503 {
		t.Errorf("%d and %d, want 503", c1, c2)
	}
	if s := h.counted().Signals[2]; s.Received != 0 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	h.secure()
	if c := deliver(t, h, "/v1/traces", spans); c != 200 {
		t.Errorf("%d after the journal was renewed", c)
	}
}

// A journal of another version is not overwritten.
func TestJournalOfAnotherVersion(t *testing.T) {
	h := up(t, Config{})
	dir := left(t, h)
	name := filepath.Join(dir, JournalFile)
	other, _, err := journal.Open(name, func(byte, []byte) error { return nil })
	if err == nil {
		err = errors.Join(other.Renew(func(put func(byte, []byte) error) error {
			return put(stateRecord, []byte(`{"version":99}`))
		}), other.Close(false))
	}
	data, failed := os.ReadFile(name)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Config{Dir: dir, Query: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "has version 99") {
		t.Errorf("%v", err)
	}
	if now, err := os.ReadFile(name); err != nil || string(now) != string(data) {
		t.Errorf("%q, %v", now, err)
	}
}
