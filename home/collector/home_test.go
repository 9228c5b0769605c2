package collector

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"prony.example/home/spanstore"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// fakes record their calls.
type fakes struct {
	mu     sync.Mutex
	told   []string
	points []pmetric.Metrics
	events []plog.Logs
	fates  Outcomes
	broken error
	ended  error
}

func (f *fakes) say(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, what)
	return f.broken
}

func (f *fakes) ConsumeTraces(context.Context, ptrace.Traces) error { return f.say("traces") }
func (f *fakes) ConsumeLogs(_ context.Context, d plog.Logs) error {
	f.mu.Lock()
	f.events = append(f.events, d)
	f.mu.Unlock()
	return f.say("logs")
}
func (f *fakes) ConsumeOwn(ctx context.Context, d pmetric.Metrics) (map[string]int64, error) {
	return nil, f.ConsumeMetrics(ctx, d)
}
func (f *fakes) ConsumeMetrics(_ context.Context, d pmetric.Metrics) error {
	f.mu.Lock()
	f.points = append(f.points, d)
	f.mu.Unlock()
	return f.say("metrics")
}
func (f *fakes) Handler() http.Handler         { return http.NotFoundHandler() }
func (f *fakes) Begin(t telemetry.Trial) error { return f.say(f.pages("begin", t)) }

func (f *fakes) Scrape(t telemetry.Trial) error { return f.say(f.pages("scrape", t)) }

// pages formats a call for a trial, with its pages.
func (f *fakes) pages(what string, t telemetry.Trial) string {
	for _, page := range t.Scrape {
		what += " " + page.URL
	}
	return what + " " + t.ID
}
func (f *fakes) Mark(m telemetry.Mark) error { return f.say(m.Kind + " " + m.Name) }
func (f *fakes) End(id string) (map[string]record.WindowTelemetry, Outcomes, error) {
	told := map[string]record.WindowTelemetry{"high": {Spans: 4}}
	return told, f.fates, errors.Join(f.say("end "+id), f.ended)
}
func (f *fakes) Save(spanstore.Put) error { return nil }
func (f *fakes) Load(byte, []byte) error  { return nil }
func (f *fakes) Files() []string          { return nil }
func (f *fakes) Fates() Outcomes          { return f.fates }
func (f *fakes) Close() error             { return f.say("close") }

func up(t *testing.T, c Config) *Home {
	t.Helper()
	return upIn(t, t.TempDir(), c)
}

func upIn(t *testing.T, dir string, c Config) *Home {
	t.Helper()
	c.Dir = dir
	c.GRPC, c.HTTP, c.Zipkin = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Query, c.Token = "127.0.0.1:0", token
	h, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

const token = "the lab's"

// call returns the status and the text of an answer.
func call(t *testing.T, h *Home, method, path, kind, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.query+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", telemetry.Bearer+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

const jason = "application/json"

func spansOf(service string, n int) []byte {
	d := ptrace.NewTraces()
	r := d.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	ss := r.ScopeSpans().AppendEmpty().Spans()
	now := pcommon.NewTimestampFromTime(clock.Wall())
	for i := range n {
		s := ss.AppendEmpty()
		s.SetName("GET /")
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{1, byte(i)})
		s.SetStartTimestamp(now)
		s.SetEndTimestamp(now)
	}
	data, _ := ptraceotlp.NewExportRequestFromTraces(d).MarshalProto()
	return data
}

func deliver(t *testing.T, h *Home, path string, body []byte) int {
	t.Helper()
	res, err := http.Post("http://"+h.Endpoints().HTTP+path, "application/x-protobuf",
		strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestOrders covers accepted control requests, and the answers to refused ones.
func TestOrders(t *testing.T) {
	h := up(t, Config{Open: func(string) (Stores, error) { return &fakes{}, nil }})
	for _, row := range []struct {
		method, path, kind, body string
		code                     int
		want                     string
	}{
		{"GET", "/prony/health", "", "", 204, ""},
		{"GET", "/prony/endpoints", "", "", 200, h.Endpoints().GRPC},
		{"GET", "/prony/trial", "", "", 404, ""},
		{"POST", "/prony/trial", "text/plain", `{"id":"a"}`, 415, "application/json"},
		{"POST", "/prony/trial", jason, `{`, 400, "read the command"},
		{"POST", "/prony/trial", jason, `{"id":"a","what":1}`, 400, "unknown field"},
		{"POST", "/prony/trial", jason, `{"id":"` + strings.Repeat("a", maxOrder) + `"}`, 400,
			"too large"},
		{"POST", "/prony/trial", jason, `{}`, 409, "the trial has no id"},
		{"POST", "/prony/mark", jason, `{"trial":"a","kind":"open","name":"x"}`, 409,
			`trial "a" is not running`},
		{"POST", "/prony/end", jason, `{"trial":"a"}`, 409, "not running"},
		{"POST", "/prony/trial", jason, `{"id":"a"}`, 204, ""},
		{"POST", "/prony/trial", jason, `{"id":"a"}`, 409, "has already begun"},
		{"POST", "/prony/mark", jason, `{"trial":"a","kind":"shut","name":"x"}`, 409,
			"phase, open and close"},
		{"POST", "/prony/mark", jason, `{"trial":"a","kind":"open","name":"x"}`, 204, ""},
		{"GET", "/prony/stats", "", "", 200, `"marks":[{"trial":"a","kind":"open"`},
		{"POST", "/prony/end", jason, `{"trial":"a"}`, 200, `"high":{"windowNs":0,"spans":4`},
		{"POST", "/prony/end", jason, `{"trial":"a"}`, 409, "not running"},
		{"GET", "/anything", "", "", 404, ""},
	} {
		code, text := call(t, h, row.method, row.path, row.kind, row.body)
		if code != row.code || !strings.Contains(text, row.want) {
			t.Errorf("%s %s %.60s: %d %q, want %d %q", row.method, row.path, row.body, code, text,
				row.code, row.want)
		}
	}
}

// Control requests without the token are refused, and so are requests of web pages on all ports.
func TestDoors(t *testing.T) {
	f := &fakes{}
	h := up(t, Config{Open: func(string) (Stores, error) { return f, nil }})
	e := h.Endpoints()
	check := func(want int, url, host, kind string, header ...string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+url,
			strings.NewReader(`{"id":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Host = host
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s of %q, %s, %q: %d, want %d", url, host, kind, header, res.StatusCode, want)
		}
	}
	const auth, evil = "Authorization", "http://evil.example"
	for _, order := range []string{"trial", "scrape", "mark", "end", "points"} {
		for _, bad := range []string{"", token, telemetry.Bearer, telemetry.Bearer + token + "x"} {
			check(401, e.Query+"/prony/"+order, "", jason, auth, bad)
		}
	}
	if len(f.told) > 0 {
		t.Errorf("the stores were told %q", f.told)
	}
	for _, url := range []string{e.Query + "/prony/trial", e.Query + "/prony/stats",
		e.HTTP + "/v1/traces", e.Zipkin + "/api/v2/spans"} {
		check(421, url, "rebound.example", jason, auth, telemetry.Bearer+token)
		check(403, url, "", jason, auth, telemetry.Bearer+token, "Origin", evil)
	}
	check(415, e.Zipkin+"/api/v2/spans", "", "text/plain")
	check(415, e.HTTP+"/v1/traces", "", "text/plain")
	// For another host, from another origin, of another media type; on both ports.
	if spans := h.counted().Signals[2]; spans.Refused != 6 {
		t.Errorf("spans: %+v, want 6 refused", spans)
	}
	check(204, e.Query+"/prony/trial", "", jason, auth, telemetry.Bearer+token)
}

// A trial's report counts only what arrived since its begin, and its counts are consistent.
func TestReport(t *testing.T) {
	f := &fakes{fates: Outcomes{SpansKept: 3}, ended: errors.New("the disk is full")}
	h := up(t, Config{Open: func(string) (Stores, error) { return f, nil }})
	deliver(t, h, "/v1/traces", spansOf("before", 5))
	if code, text := call(t, h, "POST", "/prony/trial", jason, `{"id":"a"}`); code != 204 {
		t.Fatal(code, text)
	}
	deliver(t, h, "/v1/traces", spansOf("shop", 4))
	deliver(t, h, "/v1/traces", []byte("\xff"))
	code, text := call(t, h, "POST", "/prony/end", jason, `{"trial":"a"}`)
	var r telemetry.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil || code != 200 {
		t.Fatal(code, text, err)
	}
	got := r.Telemetry.Signals[2] // logs, points, spans
	got.Bytes = 0
	want := record.Signal{Name: record.Spans, Requests: 1, Received: 4, Refused: 1, Kept: 3,
		Dropped: 1} // 4 - 3
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if v := r.Telemetry.Sources; len(v) != 1 || v[0].Service != "shop" || v[0].Spans != 4 {
		t.Errorf("voices %+v, want shop with 4", v)
	}
	if r.Telemetry.Partial != "the disk is full" {
		t.Errorf("partial: %q", r.Telemetry.Partial)
	}
	if c := r.Telemetry.Collector; c.CPUNs <= 0 || c.CPUShare <= 0 || c.RSSBytes <= 1<<20 {
		t.Errorf("the home's cost: %+v", c)
	}
}

// Marks become lines, and points that show which phases are open.
func TestMarks(t *testing.T) {
	f := &fakes{}
	h := up(t, Config{Open: func(string) (Stores, error) { return f, nil }})
	if err := h.begin(t.Context(), telemetry.Trial{Run: "r", ID: "a", Target: "shop"}); err != nil {
		t.Fatal(err)
	}
	const torn = `{"run":"q","ta` // by a full disk
	err := os.WriteFile(filepath.Join(h.c.Dir, MarksFile), []byte(torn), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Wall().UnixNano()
	for _, m := range []telemetry.Mark{
		{Trial: "a", Kind: telemetry.Phase, Name: "warmup", WallNs: now},
		{Trial: "a", Kind: telemetry.Phase, Name: "high", WallNs: now + 1},
		{Trial: "a", Kind: telemetry.Open, Name: "high", WallNs: now + 2},
		{Trial: "a", Kind: telemetry.Close, Name: "high", WallNs: now + 3},
	} {
		if err := h.mark(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.end(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.points {
		for _, r := range d.ResourceMetrics().All() {
			m := r.ScopeMetrics().At(0).Metrics().At(0)
			p := m.Gauge().DataPoints().At(0)
			kind, _ := p.Attributes().Get("kind")
			name, _ := p.Attributes().Get("name")
			got = append(got, m.Name()+" "+kind.Str()+" "+name.Str()+" "+
				[]string{"0", "1"}[p.IntValue()])
		}
	}
	want := []string{"prony.phase phase warmup 1", "prony.phase phase warmup 0",
		"prony.phase phase high 1", "prony.phase window high 1", "prony.phase window high 0",
		"prony.phase phase high 0"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("points\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	data, err := os.ReadFile(filepath.Join(h.c.Dir, MarksFile))
	first, ended := strings.CutPrefix(string(data), torn+"\n")
	if err != nil || !ended || strings.Count(first, "\n") != 4 ||
		!strings.HasPrefix(first, `{"run":"r","target":"shop","trial":"a","kind":"phase"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// Pages are scraped from the start of their trial's processes, and recorded for a restarted
// collector. Pages of a trial that is not under way are refused.
func TestPages(t *testing.T) {
	f := &fakes{}
	h := up(t, Config{Open: func(string) (Stores, error) { return f, nil }})
	if err := h.begin(t.Context(), telemetry.Trial{ID: "a", Target: "shop"}); err != nil {
		t.Fatal(err)
	}
	there := []telemetry.ScrapeTarget{{URL: "http://10.9.8.7:1/metrics"}}
	if err := h.scrape(t.Context(), telemetry.Trial{ID: "b", Scrape: there}); err == nil {
		t.Error("a trial that is not under way is scraped")
	}
	if err := h.scrape(t.Context(), telemetry.Trial{ID: "a", Scrape: there}); err != nil {
		t.Fatal(err)
	}
	if want := "scrape http://10.9.8.7:1/metrics a"; !slices.Contains(f.told, want) {
		t.Errorf("the stores were told %q, not %q", f.told, want)
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	u := h.stats(t.Context()).Trials
	if len(u) != 1 || len(u[0].Trial.Scrape) != 1 || u[0].Trial.Target != "shop" {
		t.Errorf("a home that goes on would know of %+v", u)
	}
}

// Everything is sent on, marks as events. With ForwardOnly nothing is stored here.
func TestForwards(t *testing.T) {
	there := &fakes{}
	other := up(t, Config{Open: func(string) (Stores, error) { return there, nil }})
	for _, row := range []struct{ endpoint string }{
		{"http://" + other.Endpoints().HTTP}, {"grpc://" + other.Endpoints().GRPC},
	} {
		before := other.counted()
		h := up(t, Config{Forward: row.endpoint, ForwardOnly: true})
		if err := h.begin(t.Context(), telemetry.Trial{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		deliver(t, h, "/v1/traces", spansOf("shop", 4))
		lines := plog.NewLogs()
		lines.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		data, _ := plogotlp.NewExportRequestFromLogs(lines).MarshalProto()
		deliver(t, h, "/v1/logs", data)
		deliver(t, h, "/v1/metrics", pointsOf("shop", 1))
		if err := h.mark(t.Context(), telemetry.Mark{Trial: "a", Kind: telemetry.Open,
			Name: "high", WallNs: clock.Wall().UnixNano()}); err != nil {
			t.Fatal(err)
		}
		sum := func() (n int64) {
			for _, s := range minus(other.counted(), before).Signals {
				n += s.Received
			}
			return n
		}
		// 4 spans, 1 record and the mark's event, 1 point and the mark's
		wait(t, func() bool { return sum() == 8 })
		wait(t, func() bool { // the exporters count after the answer
			h.writing.Lock()
			defer h.writing.Unlock()
			s := h.stats(t.Context())
			return len(s.Forwarded) == 3 && s.Forwarded[0].Sent == 2 && // logs
				s.Forwarded[1].Sent == 2 && s.Forwarded[2].Sent == 4
		})
		r, err := h.end(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Telemetry.Signals[2]; got.Kept != 0 || got.Dropped != 4 {
			t.Errorf("%+v, want nothing kept here", got)
		}
		wait(t, func() bool { return sum() == 9 }) // including the end of the window
	}
}

// wait waits for another goroutine, for two minutes at most.
func wait(t *testing.T, ok func() bool) {
	t.Helper()
	end := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not come about")
		}
	}
}

// quiet waits until nothing arrived for 300 ms and no request is in progress, for 3 s at most.
func TestQuiet(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, row := range []struct {
		name  string
		last  func(now int64) int64 // ns since the beginning
		busy  func(now int64) int64
		after int64 // ms
	}{
		{"silent for long", func(int64) int64 { return -1000 * ms }, nil, 0},
		{"silent since now", func(int64) int64 { return 0 }, nil, 300},
		{"one more at 200 ms: 200 + 300", func(now int64) int64 {
			if now < 200*ms {
				return 0
			}
			return 200 * ms
		}, nil, 500},
		{"never silent", func(now int64) int64 { return now }, nil, 3000},
		// Checked again every 30 ms.
		{"a sender until 50 ms", func(int64) int64 { return -1000 * ms }, func(now int64) int64 {
			if now < 50*ms {
				return 1
			}
			return 0
		}, 60},
		{"a sender that never ends", func(int64) int64 { return -1000 * ms },
			func(int64) int64 { return 1 }, 3000},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := clock.Mono()
			last := func() int64 { return began + row.last(clock.Mono()-began) }
			busy := func() int64 {
				if row.busy == nil {
					return 0
				}
				return row.busy(clock.Mono() - began)
			}
			if err := quiet(t.Context(), silence, patience, last, busy); err != nil {
				t.Fatal(err)
			}
			if got := (clock.Mono() - began) / ms; got != row.after {
				t.Errorf("%s: after %d ms, want %d", row.name, got, row.after)
			}
		})
	}
}

// Counts of two collectors of one folder add up, and unknown losses of a sender stay unknown.
func TestPlusMinus(t *testing.T) {
	a := record.Telemetry{
		Signals: []record.Signal{{Name: record.Spans, Requests: 1, Received: 10, Bytes: 100}},
		Sources: []record.TelemetrySource{{Service: "x", Spans: 10, LostSpans: -1},
			{Service: "y", Logs: 1, LostSpans: 2}},
		Collector: record.CollectorCost{CPUNs: 5, RSSBytes: 7},
	}
	b := record.Telemetry{
		Signals: []record.Signal{{Name: record.Spans, Requests: 2, Received: 5, Bytes: 50}},
		Sources: []record.TelemetrySource{{Service: "x", Spans: 5, LostSpans: -1},
			{Service: "y", LostSpans: 3}, {Service: "z", Points: 1, LostSpans: -1}},
		Collector: record.CollectorCost{CPUNs: 6, RSSBytes: 9},
	}
	sum := plus(a, b)
	if s := sum.Signals[0]; s.Requests != 3 || s.Received != 15 || s.Bytes != 150 {
		t.Errorf("%+v", s)
	}
	want := []record.TelemetrySource{{Service: "x", Spans: 15, LostSpans: -1},
		{Service: "y", Logs: 1, LostSpans: 5}, {Service: "z", Points: 1, LostSpans: -1}}
	for i, v := range sum.Sources {
		if v != want[i] {
			t.Errorf("%+v, want %+v", v, want[i])
		}
	}
	if sum.Collector.CPUNs != 11 || sum.Collector.RSSBytes != 9 {
		t.Errorf("%+v", sum.Collector)
	}
	back := minus(sum, a)
	if s := back.Signals[0]; s != b.Signals[0] {
		t.Errorf("%+v, want %+v", s, b.Signals[0])
	}
	for i, v := range back.Sources {
		if v != b.Sources[i] {
			t.Errorf("%+v, want %+v", v, b.Sources[i])
		}
	}
}

// The folder of another program version is not overwritten.
func TestForeignStats(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":99}`: "has version 99", `{`: "move the folder away",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, telemetry.StatsFile), []byte(text),
			0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Start(t.Context(), Config{Dir: dir, Query: "127.0.0.1:0",
			Open: func(string) (Stores, error) { return &fakes{}, nil }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// If an address is in use, nothing stays open: the stores are closed again.
func TestTakenDoor(t *testing.T) {
	first := up(t, Config{Open: func(string) (Stores, error) { return &fakes{}, nil }})
	for _, c := range []Config{
		{Query: first.query}, {Query: "127.0.0.1:0", HTTP: first.Endpoints().HTTP},
		{Query: "127.0.0.1:0", GRPC: "127.0.0.1:0", Zipkin: first.Endpoints().HTTP},
	} {
		f := &fakes{}
		c.Dir, c.Open = t.TempDir(), func(string) (Stores, error) { return f, nil }
		_, err := Start(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), "another collector") {
			t.Errorf("%+v: %v", c, err)
		}
		if len(f.told) != 1 || f.told[0] != "close" {
			t.Errorf("%+v: the stores were told %v, want close", c, f.told)
		}
	}
}
