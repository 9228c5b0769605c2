package summary

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/dev/schema"
	"prony.example/load"
	"prony.example/record"
)

var update = flag.Bool("update", false, "bless what is printed as testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s\n(bless with -update)", file, got, want)
	}
}

// hist returns n values from lo on, each a hundredth of lo above the previous one.
func hist(n int64, lo int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 1<<40, 3)
	for i := range n {
		if err := h.RecordValue(lo + i%1000*lo/100); err != nil {
			panic("a test's value is out of range: " + err.Error())
		}
	}
	return h
}

func dist(n, lo int64) record.Dist {
	if n == 0 {
		return record.Dist{}
	}
	h := hist(n, lo)
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("a test's histogram has no code: " + err.Error())
	}
	return record.Dist{
		Count: n, MinNs: h.Min(), MeanNs: h.Mean(), MaxNs: h.Max(), P50Ns: h.ValueAtQuantile(50),
		P90Ns: h.ValueAtQuantile(90), P99Ns: h.ValueAtQuantile(99),
		P999Ns: h.ValueAtQuantile(99.9), HDR: string(b),
	}
}

// open returns a load at 5,000/s for 2 s: 10,000 requests, two of which fail.
func open() *record.Load {
	return &record.Load{
		Name: "load", Model: record.Open, Arrivals: "poisson", Connections: 64, Threads: 1,
		RatePerS: 5000, Seed: 1, TraceHash: "bf66f99f16deb680", WindowNs: 2e9, LeadInNs: 5e8,
		DrainNs: 5e9, Scheduled: 10_000, Sent: 9_999, Done: 9_990, Answered: 9_998,
		BytesIn: 3_000_000, BytesOut: 800_000, ThroughputPerS: 4995,
		Errors: record.Errors{Timeout: 1, Status: 1, Example: "GET /hello: status 503, want 200"},
		Waited: 12, InFlightMean: 5.69, Reconnects: 1, Retried: 1,
		ResponseTime: dist(9_999, 200e3), ServiceTime: dist(9_999, 190e3),
		FirstByte: dist(9_999, 180e3), Lag: dist(10_000, 4e3), OwnLag: dist(10_000, 3e3),
		ConnectTime: dist(65, 40e3),
		Series: record.Series{
			IntervalNs: 500e6, Scheduled: []int64{2500, 2490, 2510, 2500},
			Sent: []int64{2500, 2490, 2510, 2499}, Done: []int64{2498, 0, 4990, 2502},
			Failed: []int64{0, 0, 2, 0}, P50Ns: []int64{1e6, 0, 5e8, 1e6},
			P99Ns: []int64{2e6, 0, 9e8, 2e6}, MaxNs: []int64{3e6, 0, 1e9, 3e6},
		},
		Generator: record.Gen{
			Engine: "epoll", EngineReason: "default on Linux",
			Pacing: "frugal: timerfd, absolute", CPUNs: 37e6, CPUPerRequestNs: 3700,
			CPUShare: 0.0185, Priority: "other nice 0",
		},
	}
}

func closed() *record.Load {
	l := open()
	l.Model, l.Arrivals, l.RatePerS, l.TraceHash, l.Waited = record.Closed, "", 0, "", 0
	l.ResponseTime, l.Lag, l.OwnLag = l.ServiceTime, record.Dist{}, record.Dist{}
	l.Errors, l.Sent, l.Answered, l.Reconnects = record.Errors{}, 10_000, 10_000, 0
	return l
}

// of returns the report of a load with these findings, the worst of which is first.
func of(l *record.Load, findings ...record.Finding) Report {
	v := record.Verdict{Grade: record.Valid, Findings: findings}
	if len(findings) > 0 {
		v.Grade = findings[0].Grade
	}
	return Report{
		Target: "http://127.0.0.1:8080/hello", Load: l, Verdict: v,
		Command: []string{"prony", "load", "http://127.0.0.1:8080/hello?a=1&b=it's", "--seed", "1"},
	}
}

var (
	wrong = record.Finding{Rule: "errors", Load: "load", Grade: record.Suspect,
		Value: 0.0002, Unit: record.UnitShare, Side: record.Above, Facts: record.Facts{Count: 2,
			Total: 10000, Messages: []string{"GET /hello: status 503, want 200"}}}
	tooMuch = record.Finding{Rule: "capacity", Load: "load", Grade: record.Invalid,
		Value: 812.3, Limit: 50, Unit: record.UnitPerS, Side: record.Above}
)

func textOf(t *testing.T, r Report, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if w := utf8.RuneCountInString(line); w > 100 {
			t.Errorf("line %d is %d columns wide: %s", i+1, w, line)
		}
	}
	return b.String()
}

func TestText(t *testing.T) {
	golden(t, "open.txt", textOf(t, of(open(), wrong), Options{}))
	golden(t, "closed.txt", textOf(t, of(closed()), Options{}))
	golden(t, "remark.txt", textOf(t, of(closed(), record.Finding{Rule: "delayed ack", Load: "load",
		Grade: record.Valid, Value: 40.2e6, Unit: record.UnitNs, Note: true},
		record.Finding{Rule: "timer", Grade: record.Valid}), Options{}))
	golden(t, "spectrum.txt", textOf(t, of(closed()), Options{Spectrum: true}))

	users := closed()
	users.Users, users.Think, users.Lag = "ramp 0..700 in 1m", "exponential 1s", open().Lag
	users.ResponseTime = open().ResponseTime
	golden(t, "users.txt", textOf(t, of(users), Options{}))

	few := open()
	few.ResponseTime, few.ServiceTime, few.Lag = dist(380, 200e3), dist(381, 190e3), dist(7, 4e3)
	few.FirstByte, few.ConnectTime = dist(30, 1e3), record.Dist{}
	golden(t, "few.txt", textOf(t, of(few, wrong), Options{}))

	none := open()
	none.ResponseTime, none.ServiceTime, none.FirstByte = dist(0, 0), dist(0, 0), dist(0, 0)
	none.Done, none.Answered, none.ThroughputPerS = 0, 0, 0
	none.Errors = record.Errors{Connect: 3, Read: 10_000, Example: "GET /: reset by peer"}
	golden(t, "none.txt", textOf(t, of(none, wrong), Options{Spectrum: true}))

	cut := of(open())
	cut.Ran = 1234567 * time.Microsecond
	cut.Load.WindowNs, cut.Load.Censored = int64(cut.Ran), 3
	cut.Verdict = CutShort(record.Verdict{Grade: record.Valid}, "load", cut.Ran, 2*time.Second, 0)
	golden(t, "cut.txt", textOf(t, cut, Options{}))
}

// everything returns a flow over TLS with a rate profile.
func everything() *record.Load {
	l := open()
	l.Protocol, l.Shape, l.RateOf = "HTTP/2 over TLS", "ramp 0..10k/s in 2 s", "50% of peak"
	l.Churn, l.Streams = 100, 8
	l.FlowTime, l.TLSTime = dist(3_333, 900e3), dist(65, 800e3)
	l.Routes = []record.Route{
		{Name: "create owner", Sent: 3334, Answered: 3334, ResponseTime: dist(3334, 200e3)},
		{Name: "update owner", Sent: 3333, Answered: 3331, Failed: 2,
			ResponseTime: dist(300, 200e3)},
		{Name: "GET /never", ResponseTime: dist(0, 0)},
	}
	return l
}

// A closed load over HTTP/2 with more streams than the server permits has a response time of its
// own, and requests that were due before they were sent.
func TestTextOfPermittedStreams(t *testing.T) {
	permitted := 5
	l := closed()
	l.Protocol, l.Connections, l.Streams, l.StreamsPermitted = "HTTP/2 over TLS", 1, 50, &permitted
	l.Waited, l.ResponseTime, l.Lag = 9_990, dist(9_999, 2e6), dist(10_000, 1.8e6)
	golden(t, "permitted.txt", textOf(t, of(l), Options{}))
}

func TestTextOfEverything(t *testing.T) {
	golden(t, "everything.txt", textOf(t, of(everything(), wrong), Options{}))
}

// TestRoutesWithoutResponses checks that a percentile of a route is refused if it is among requests
// of this route that were never answered, although few of all requests were not.
func TestRoutesWithoutResponses(t *testing.T) {
	l := open()
	l.Censored = 9 // of 10,000
	l.Routes = []record.Route{
		{Name: "stuck", Sent: 509, Answered: 500, ResponseTime: dist(500, 200e3)},
		{Name: "fluent", Sent: 9000, Answered: 9000, ResponseTime: dist(9000, 200e3)},
	}
	text := textOf(t, of(l), Options{})
	for name, known := range map[string]bool{"stuck": false, "fluent": true} {
		_, line, _ := strings.Cut(text, "\n  "+name)
		line, _, _ = strings.Cut(line, "\n")
		p50, p99, _ := strings.Cut(line, "] ") // the interval of p50
		if !strings.Contains(p50, "[") || strings.Contains(p99, "[") != known {
			t.Errorf("%s has %q", name, line)
		}
	}
}

// TestTextOfGenerators checks that the generators of a load are listed, faulty ones first.
func TestTextOfGenerators(t *testing.T) {
	l := open()
	for i := range 10 {
		l.Generators = append(l.Generators, record.Generator{Index: i, Name: fmt.Sprint("host/", i),
			Sent: 1000, LagMaxNs: 40e3, CPUShare: 0.2, Clock: record.Clock{WallNs: int64(i) * 5e8,
				OffsetNs: 7e9, ErrorNs: 20e3, DriftNs: -30e3, DriftErrorNs: 5e3}})
	}
	l.Generators[9].Fault = "is gone 3.2 s after the beginning"
	l.Generators[7].Findings = []record.Finding{{Rule: "lag", Grade: record.Suspect}}
	golden(t, "generators.txt", textOf(t, of(l), Options{}))
}

func TestLatencyIsWithheldAboveCapacity(t *testing.T) {
	text := textOf(t, of(everything(), tooMuch, wrong), Options{Spectrum: true})
	golden(t, "capacity.txt", text)
	var kept []string
	for line := range strings.Lines(text) {
		// Handshakes wait in no queue of requests; the routes' head is above dashes.
		if !strings.HasPrefix(line, "  connect ") && !strings.HasPrefix(line, "  TLS ") &&
			!strings.HasPrefix(line, "  route ") {
			kept = append(kept, line)
		}
	}
	for _, words := range []string{"p50", "p90", "p99", "max", "mean", "ercentile"} {
		if strings.Contains(strings.Join(kept, ""), words) {
			t.Errorf("there is a %s in\n%s", words, text)
		}
	}
	// Another load's capacity does not affect this one.
	other := tooMuch
	other.Load = "half"
	if text := textOf(t, of(open(), other), Options{}); strings.Contains(text, "withheld") {
		t.Errorf("latency is withheld though another load was too high:\n%s", text)
	}
}

func TestModel(t *testing.T) {
	check := func(l record.Load, want string) {
		t.Helper()
		if got := Model(&l); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
	check(record.Load{Model: record.Closed, Connections: 1}, "closed, 1 connection")
	check(record.Load{Model: record.Closed, Connections: 1000, Users: "0..1000 in 30 s",
		Think: "exponential 1 s"}, "closed, users 0..1000 in 30 s, think exponential 1 s, "+
		"1,000 connections")
	check(record.Load{Model: record.Open, Arrivals: "replay", RatePerS: 0.5, Connections: 2,
		Churn: 1}, "open, replay at 0.50/s, 2 connections renewed every 1 answer")
	check(record.Load{Driver: "wrk 4.1.0", Model: record.Closed, Connections: 8},
		"wrk 4.1.0, closed, 8 connections")
}

func TestCutShort(t *testing.T) {
	check := func(grade string, also ...record.Finding) {
		t.Helper()
		before := record.Verdict{Grade: grade, Findings: also}
		v := CutShort(before, "load", 1500*time.Millisecond, 10*time.Second, 0)
		findings := append([]record.Finding{{Rule: "whole", Load: "load", Grade: record.Invalid,
			Value: 1.5e9, Limit: 10e9, Unit: record.UnitNs, Side: record.Below}}, also...)
		if v.Grade != record.Invalid || !reflect.DeepEqual(v.Findings, findings) {
			t.Errorf("%s became %+v, want INVALID with %+v", grade, v, findings)
		}
	}
	check(record.Valid)
	check(record.Suspect, wrong)
	check(record.Invalid, wrong, tooMuch)
	// A load by number has no window.
	v := CutShort(record.Verdict{}, "load", 1500*time.Millisecond, 24*time.Hour, 20_000)
	if w := wording.WithWords(v.Findings)[0].Text; w.Limit != "20,000 requests" ||
		v.Findings[0].Limit != 0 {
		t.Errorf("the limit is %q: %+v", w.Limit, v.Findings[0])
	}
}

func TestJSON(t *testing.T) {
	r := of(everything(), wrong)
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	schema.Valid(t, "load", b.Bytes())
	var got struct {
		Load        record.Load
		Verdict     record.Verdict
		Percentiles []Percentile
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	r.Verdict.Findings = wording.WithWords(r.Verdict.Findings)
	if !reflect.DeepEqual(got.Load, *r.Load) || !reflect.DeepEqual(got.Verdict, r.Verdict) {
		t.Errorf("what comes back is\n%+v, want\n%+v, %+v", got, *r.Load, r.Verdict)
	}
}

func TestCSV(t *testing.T) {
	check := func(name string, l *record.Load, want string, intervals ...load.Interval) {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := CSV(&b, l, intervals); err != nil {
				t.Fatal(err)
			}
			head := "offset_ns,length_ns,scheduled,sent,done,failed,p50_ns,p99_ns,max_ns," +
				"p50_lo_ns,p50_hi_ns,p99_lo_ns,p99_hi_ns\n"
			if got := b.String(); got != head+want {
				t.Errorf("it is\n%s, want\n%s", got, head+want)
			}
			if _, err := csv.NewReader(&b).ReadAll(); err != nil {
				t.Error(err)
			}
		})
	}
	// 100 values: p50 has the ranks 50 -+ 1.96 * 5, 40 and 60; a p99 needs more.
	flat := hdrhistogram.New(1, 1<<40, 3)
	for ns := range int64(100) {
		if err := flat.RecordValue(1 + ns); err != nil {
			t.Fatal(err)
		}
	}
	check("open", open(), `0,500000000,2500,2500,2498,0,1000000,2000000,3000000,,,,
500000000,500000000,2490,2490,0,0,,,,,,,
1000000000,500000000,2510,2510,4990,2,500000000,900000000,1000000000,40,60,,
1500000000,500000000,2500,2499,2502,0,1000000,2000000,3000000,,,,
`, load.Interval{Offset: time.Second, Length: time.Second / 2, Response: flat})
	short := closed() // three intervals, the last of 0.3 s, and nothing scheduled
	short.WindowNs, short.Series.Scheduled = 13e8, nil
	short.Series.Done = short.Series.Done[:3]
	check("closed and short", short, `0,500000000,,2500,2498,0,1000000,2000000,3000000,,,,
500000000,500000000,,2490,0,0,,,,,,,
1000000000,300000000,,2510,4990,2,500000000,900000000,1000000000,,,,
`)
	check("nothing", &record.Load{}, "")
}

// TestHLog checks that the library's reader reads the log back, and that writing repeats exactly.
func TestHLog(t *testing.T) {
	intervals := []load.Interval{
		{Offset: 0, Length: 250 * time.Millisecond, Response: hist(1000, 200e3)},
		{Offset: 250 * time.Millisecond, Length: 250 * time.Millisecond, Response: hist(0, 0)},
		{Offset: 500 * time.Millisecond, Length: 100 * time.Millisecond, Response: hist(3, 5e9)},
	}
	var first, again bytes.Buffer
	if err := errors.Join(HLog(&first, HLogTitle("x"), intervals),
		HLog(&again, HLogTitle("x"), intervals)); err != nil {
		t.Fatal(err)
	}
	if first.String() != again.String() {
		t.Error("the same intervals make two different logs")
	}
	golden(t, "hlog.txt", first.String())
	r := hdrhistogram.NewHistogramLogReader(&first)
	for i, iv := range intervals {
		h, err := r.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d is %v, error %v", i, h, err)
		}
		from, to := iv.Offset.Milliseconds(), (iv.Offset + iv.Length).Milliseconds()
		if h.StartTimeMs() != from || h.EndTimeMs() != to {
			t.Errorf("interval %d is from %d to %d ms, want %d to %d", i, h.StartTimeMs(),
				h.EndTimeMs(), from, to)
		}
		same := slices.Equal(h.Distribution(), iv.Response.Distribution())
		if h.TotalCount() != iv.Response.TotalCount() || !same {
			t.Errorf("interval %d has %d values, want %d", i, h.TotalCount(),
				iv.Response.TotalCount())
		}
	}
	if h, err := r.NextIntervalHistogram(); h != nil || err != nil {
		t.Errorf("after the last interval there is %v, error %v", h, err)
	}
}

// Intervals shorter than a millisecond have a length, too.
func TestHLogOfShortIntervals(t *testing.T) {
	var b bytes.Buffer
	err := HLog(&b, "x", []load.Interval{
		{Length: 1500 * time.Microsecond, Response: hist(1, 1e3)},
		{Offset: 1500 * time.Microsecond, Length: 20, Response: hist(1, 1e3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n0.000000,0.001500,", "\n0.001500,0.000001,"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &b)
		}
	}
}

// full simulates a disk without room.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestWritingFails(t *testing.T) {
	r := of(open(), wrong)
	intervals := []load.Interval{{Length: time.Second, Response: hist(10, 1e3)}}
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error { return Text(w, r, Options{}) },
		"json": func(w io.Writer) error { return JSON(w, r) },
		"csv":  func(w io.Writer) error { return CSV(w, r.Load, nil) },
		"hlog": func(w io.Writer) error { return HLog(w, "x", intervals) },
	} {
		var whole bytes.Buffer
		if err := write(&whole); err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, whole.Len() - 1} {
			if err := write(&full{room}); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s with room for %d of %d bytes: error is %v", name, room, whole.Len(),
					err)
			}
		}
	}
	broken := open()
	broken.ResponseTime.HDR = "no histogram"
	err := Spectrum(io.Discard, broken)
	if err == nil || !strings.HasPrefix(err.Error(), "write the spectrum: ") {
		t.Errorf("error is %v", err)
	}
}
