package collector_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

const (
	batchSpans  = 50
	senderCount = 4
	batchEvery  = 40 * time.Millisecond // of each sender: 4 × 50 / 40 ms = 5,000 spans/s
	askedEvery  = 40                    // batches of which one is a trace that is always kept
	lineEvery   = 20                    // batches of which one has a log record
)

// sent is what senders have sent, and what was answered with 200.
type sent struct {
	mu              sync.Mutex
	batches         int
	acked, possible int64           // spans
	traces          map[string]bool // asked ones that were acknowledged
	lines           map[string]bool // log records that were acknowledged
	point           int             // the last acknowledged value
}

func (s *sent) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	s.possible += batchSpans
	return s.batches
}

// batch returns the spans of one trace, as OTLP.
func batch(n int) (id pcommon.TraceID, body []byte) {
	d := ptrace.NewTraces()
	r := d.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "shop")
	r.Resource().Attributes().PutStr("prony.trial", trial.ID)
	spans := r.ScopeSpans().AppendEmpty().Spans()
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	now := pcommon.NewTimestampFromTime(clock.Wall())
	for i := range batchSpans {
		s := spans.AppendEmpty()
		s.SetTraceID(id)
		s.SetSpanID(pcommon.SpanID{1, byte(i)})
		if i > 0 {
			s.SetParentSpanID(pcommon.SpanID{1})
		}
		s.SetName("GET /owners")
		s.SetStartTimestamp(now)
		s.SetEndTimestamp(now + 1000)
		if n%askedEvery == 0 {
			s.TraceState().FromRaw("prony=1")
		}
	}
	body, _ = ptraceotlp.NewExportRequestFromTraces(d).MarshalProto() // never fails
	return id, body
}

func warning(text string) []byte {
	d := plog.NewLogs()
	r := d.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("prony.trial", trial.ID)
	l := r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	l.SetTimestamp(pcommon.NewTimestampFromTime(clock.Wall()))
	l.SetSeverityNumber(plog.SeverityNumberWarn)
	l.Body().SetStr(text)
	body, _ := plogotlp.NewExportRequestFromLogs(d).MarshalProto() // never fails
	return body
}

// delivered reports whether a request was answered with 200.
func delivered(e telemetry.Endpoints, path, kind string, body []byte) bool {
	res, err := http.Post("http://"+e.HTTP+path, kind, bytes.NewReader(body))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// load sends until the collector is gone.
func (s *sent) load(e telemetry.Endpoints) {
	const proto = "application/x-protobuf"
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for range tick.C {
		n := s.next()
		id, body := batch(n)
		if !delivered(e, "/v1/traces", proto, body) {
			return
		}
		line := fmt.Sprintf("line %d", n)
		lineToo := n%lineEvery == 0 && delivered(e, "/v1/logs", proto, warning(line))
		point := pointJSON(n, clock.Wall().UnixNano())
		pointToo := n%lineEvery == 1 && delivered(e, "/v1/metrics", "application/json",
			[]byte(point))
		s.mu.Lock()
		s.acked += batchSpans
		if n%askedEvery == 0 {
			s.traces[id.String()] = true
		}
		if lineToo {
			s.lines[line] = true
		}
		if pointToo {
			s.point = max(s.point, n)
		}
		s.mu.Unlock()
	}
}

var homeNeeds = testsets.Needs{Files: []string{"home", "internal/telemetry"}}

// killed kills a collector under load so many times, and checks that everything that was answered
// with 200 is stored.
func killed(t *testing.T, kills int, least, most time.Duration) {
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, uint64(kills)))
	s := &sent{traces: map[string]bool{}, lines: map[string]bool{}}
	c := launched(t, telemetry.LaunchSpec{Dir: dir})
	client := telemetry.NewClient(c.Endpoints().Query, c.Token())
	defer client.Close()
	if err := client.Begin(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	for range kills {
		var senders sync.WaitGroup
		for range senderCount {
			senders.Go(func() { s.load(c.Endpoints()) })
		}
		time.Sleep(least + time.Duration(random.Int64N(int64(most-least))))
		if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-c.Exited()
		senders.Wait()
		c = launched(t, telemetry.LaunchSpec{Dir: dir})
		last, _ := strconv.Atoi(ask(t, c.Endpoints(), "last_over_time(jobs[1h])"))
		if last < s.point {
			t.Errorf("the last value is %d after a kill, want %d", last, s.point)
		}
	}
	report := endOf(t, c)
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if n := received(report.Telemetry, record.Spans); n < s.acked || n > s.possible {
		t.Errorf("%d spans are counted, want %d to %d", n, s.acked, s.possible)
	}
	s.check(t, dir)
	if st := stats(t, dir); st.Broken != kills {
		t.Errorf("%d kills are counted, want %d", st.Broken, kills)
	}
	t.Logf("%d kills: %d spans acknowledged of %d sent, %d traces, %d log records", kills, s.acked,
		s.possible, len(s.traces), len(s.lines))
}

// check compares the stored files with what was acknowledged.
func (s *sent) check(t *testing.T, dir string) {
	t.Helper()
	calls := int64(0)
	eachLine(t, filepath.Join(dir, traces.MetricsFile), func(c traces.Calls) { calls += c.Calls })
	if calls < s.acked || calls > s.possible {
		t.Errorf("%d calls are in the span metrics, want %d to %d", calls, s.acked, s.possible)
	}
	stored := map[string]int{}
	eachLine(t, filepath.Join(dir, telemetry.SpansFile), func(c traces.Trace) {
		stored[c.TraceID] += len(c.Spans)
	})
	for id := range s.traces {
		if stored[id] != batchSpans {
			t.Errorf("trace %s has %d spans, want %d", id, stored[id], batchSpans)
		}
	}
	lines := map[string]int{}
	eachLine(t, filepath.Join(dir, telemetry.LogsFile), func(r logs.Record) { lines[r.Body]++ })
	for line := range s.lines {
		if lines[line] != 1 {
			t.Errorf("%q is stored %d times", line, lines[line])
		}
	}
	if len(s.traces) == 0 || len(s.lines) == 0 || s.point == 0 {
		t.Errorf("%d traces, %d lines and the value %d were acknowledged", len(s.traces),
			len(s.lines), s.point)
	}
}

func eachLine[T any](t *testing.T, name string, do func(T)) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		do(v)
	}
}

// What was answered with 200 survives kills at any moment.
func TestAcknowledgedIsStored(t *testing.T) {
	testsets.Once(t, "three kills of the collector", homeNeeds)
	killed(t, 3, 300*time.Millisecond, 600*time.Millisecond)
}

func TestAcknowledgedIsStoredForLong(t *testing.T) {
	testsets.Long(t, "50 kills of the collector at 5,000 spans/s", homeNeeds)
	killed(t, 50, 100*time.Millisecond, 1500*time.Millisecond)
}
