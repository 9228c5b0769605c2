package logstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"prony.example/home/spanstore"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
)

const second = int64(1e9)

type spec struct {
	ns       int64
	severity plog.SeverityNumber
	word     string // replaces the number
	body     string
	trace    uint64
	service  string
}

func idOf(n uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func lines(list ...spec) plog.Logs {
	out := plog.NewLogs()
	for _, s := range list {
		r := out.ResourceLogs().AppendEmpty()
		r.Resource().Attributes().PutStr("service.name", cmp.Or(s.service, "web"))
		scope := r.ScopeLogs().AppendEmpty()
		scope.Scope().SetName("app.Main")
		l := scope.LogRecords().AppendEmpty()
		l.SetTimestamp(pcommon.Timestamp(s.ns))
		l.SetSeverityNumber(s.severity)
		l.SetSeverityText(s.word)
		l.Body().SetStr(s.body)
		if s.trace != 0 {
			l.SetTraceID(idOf(s.trace))
		}
	}
	return out
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	must(t, err)
	return s
}

func send(t *testing.T, s *Store, list ...spec) {
	t.Helper()
	must(t, s.ConsumeLogs(context.Background(), lines(list...)))
}

func end(t *testing.T, s *Store, trial string, kept func(pcommon.TraceID) bool) spanstore.Ended {
	t.Helper()
	out, err := s.End(trial, kept)
	must(t, err)
	if c := out.Counts; c.Received != c.Kept+c.Dropped {
		t.Errorf("received %d, kept %d and dropped %d", c.Received, c.Kept, c.Dropped)
	}
	if len(s.trials.Trials) == 0 && (s.heldBytes != 0 || s.trials.Bytes != 0) {
		t.Errorf("%d and %d bytes after the end", s.heldBytes, s.trials.Bytes)
	}
	return out
}

func read(t *testing.T, dir string, f logs.Filter) []*logs.Record {
	t.Helper()
	out, bad, err := logs.Read(dir, f)
	must(t, err)
	for _, b := range bad {
		t.Error(b)
	}
	return out
}

// The store keeps the same records as brute force over all records, in any order of arrival.
func TestKeepsTheRightOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	now := clock.Wall().UnixNano()
	var all []spec
	for i := range 800 {
		s := spec{ns: now - 30*second + r.Int64N(30*second), body: fmt.Sprint("line ", i),
			severity: plog.SeverityNumber(1 + r.IntN(24))}
		if r.IntN(4) == 0 {
			s.trace = uint64(1 + r.IntN(40))
		}
		all = append(all, s)
	}
	kept := func(id pcommon.TraceID) bool { return id[15]%4 == 0 }
	o := Options{Warnings: 30, Uniform: 12}
	from, to := now-20*second, now-10*second
	want := brute(all, o, from, to)
	var first []byte
	for round := range 3 {
		dir := t.TempDir()
		s := open(t, dir, o)
		must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}),
			s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Open, Name: "a", WallNs: from}),
			s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Close, Name: "a", WallNs: to}))
		for _, part := range slices.Collect(slices.Chunk(all, 11+round)) {
			send(t, s, part...)
		}
		told := end(t, s, "t", kept).Loads["a"].Logs
		must(t, s.Close())
		got := map[string]string{}
		for _, k := range read(t, dir, logs.Filter{}) {
			got[k.Body] = k.Window + " " + strings.Join(k.Classes, ",")
		}
		if !maps.Equal(got, want) {
			t.Errorf("round %d: kept %v\nwant %v", round, got, want)
		}
		inside := 0
		for _, s := range all {
			if from <= s.ns && s.ns < to {
				inside++
			}
		}
		if told != int64(inside) {
			t.Errorf("%d in the window, want %d", told, inside)
		}
		b, err := os.ReadFile(filepath.Join(dir, telemetry.LogsFile))
		must(t, err)
		if round > 0 && !bytes.Equal(b, first) {
			t.Errorf("round %d: another order makes another file", round)
		}
		first = b
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// brute returns window and classes of each kept record by its body.
func brute(all []spec, o Options, from, to int64) map[string]string {
	hash := func(s spec) uint64 {
		l := lines(s).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		return arrival{record: l, service: "web"}.hash()
	}
	windows := map[string][]spec{}
	for _, s := range all {
		name := ""
		if from <= s.ns && s.ns < to {
			name = "a"
		}
		windows[name] = append(windows[name], s)
	}
	out := map[string]string{}
	for name, list := range windows {
		grade := func(s spec) int { return (int(s.severity) + 3) / 4 } // 1-4 trace … 21-24 fatal
		take := func(class string, n int, holds func(spec) bool) {
			fit := slices.DeleteFunc(slices.Clone(list), func(s spec) bool { return !holds(s) })
			slices.SortFunc(fit, func(a, b spec) int {
				if class == logs.Warning && grade(a) != grade(b) {
					return grade(b) - grade(a)
				}
				return cmp.Compare(hash(a), hash(b))
			})
			for _, s := range fit[:min(n, len(fit))] {
				if out[s.body] == "" {
					out[s.body] = name + " " + class
				} else {
					out[s.body] += "," + class
				}
			}
		}
		bad := func(s spec) bool { return s.severity >= plog.SeverityNumberWarn }
		take(logs.Warning, o.Warnings, bad)
		take(logs.Uniform, o.Uniform, func(s spec) bool { return !bad(s) })
		take(logs.Traced, len(list), func(s spec) bool { return s.trace != 0 && s.trace%4 == 0 })
	}
	return out
}

// In a flood of records with trace ids, held records stay within their bytes, those of wanted
// traces are dropped last, and counts are complete.
func TestFlood(t *testing.T) {
	const flood, part, mb = 300_000, 500, 1 << 20
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := heap(), int64(0)
	dir := t.TempDir()
	s := open(t, dir, Options{HeldBytes: 2 * mb, KeptBytes: 2 * mb,
		Wanted: func(id pcommon.TraceID) bool { return id == idOf(7) }})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	for i := range flood / part {
		list := make([]spec, part)
		for j := range list {
			n := uint64(i*part + j + 1)
			list[j] = spec{ns: 1 + int64(n), trace: n, body: "something happened",
				severity: plog.SeverityNumberInfo}
		}
		send(t, s, list...)
		if s.heldBytes > 2*mb || s.trials.Bytes > 2*mb {
			t.Fatalf("%d bytes are held, %d kept", s.heldBytes, s.trials.Bytes)
		}
		if i%200 == 0 {
			most = max(most, heap()-before)
		}
	}
	if most > 12*mb {
		t.Errorf("%d MB in use", most/mb)
	}
	got := end(t, s, "t", func(id pcommon.TraceID) bool { return id == idOf(7) }).Counts
	must(t, s.Close())
	if got.Received != flood {
		t.Errorf("%+v", got)
	}
	if r := read(t, dir, logs.Filter{TraceID: idOf(7).String()}); len(r) != 1 {
		t.Errorf("%d records of the wanted trace", len(r))
	}
}

// If warnings exceed the bytes, the sample is dropped first.
func TestFloodOfLargeWarnings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{KeptBytes: 1 << 20})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	body := strings.Repeat("x", 10_000)
	for i := range 2000 {
		severity := plog.SeverityNumberInfo
		if i%2 == 0 {
			severity = plog.SeverityNumberError
		}
		send(t, s, spec{ns: int64(i + 1), severity: severity, body: body})
	}
	end(t, s, "t", nil)
	must(t, s.Close())
	// 1 MiB / 10.4 kB = 100 at most, all of them warnings.
	all := len(read(t, dir, logs.Filter{}))
	if n := len(read(t, dir, logs.Filter{MinSeverity: logs.Warn})); n < 90 || n > 100 || n < all {
		t.Errorf("%d warnings of %d records", n, all)
	}
}

func TestOddRecords(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	ld := lines(spec{ns: 1, word: "Warning", body: "by its word"},
		spec{ns: 2, severity: 99, body: "beyond fatal"}, spec{ns: 3, severity: -4, body: "below"},
		spec{ns: 4, body: strings.Repeat("ö", 5<<20)}, spec{ns: 5}, spec{ns: 6, body: "many"})
	all := ld.ResourceLogs()
	record := func(i int) plog.LogRecord {
		return all.At(i).ScopeLogs().At(0).LogRecords().At(0)
	}
	record(4).Body().SetEmptyMap().PutInt("n", 1)
	for i := range 10_000 {
		record(5).Attributes().PutInt(fmt.Sprint(i), int64(i))
	}
	must(t, s.ConsumeLogs(context.Background(), ld))
	end(t, s, "t", nil)
	must(t, s.Close())
	var got []string
	for _, r := range read(t, dir, logs.Filter{}) {
		got = append(got, fmt.Sprintf("%s %.12s %d %d", r.Severity, r.Body, len(r.Body)/100, r.Cut))
	}
	want := []string{"warn by its word 0 0", "fatal beyond fatal 0 0", "unspecified below 0 0",
		"unspecified öööööööööööö 164 0", `unspecified {"n":1} 0 0`, "unspecified many 0 9872"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// The time of a record is the first of its own, the observed and the arrival's that is known, and
// at most the last moment in int64.
func TestTimes(t *testing.T) {
	check := func(written, observed uint64, want int64) {
		t.Helper()
		r := plog.NewLogRecord()
		r.SetTimestamp(pcommon.Timestamp(written))
		r.SetObservedTimestamp(pcommon.Timestamp(observed))
		if got := (arrival{record: r, wallNs: 7}).time(); got != want {
			t.Errorf("written %d, observed %d: %d, want %d", written, observed, got, want)
		}
	}
	check(5, 6, 5)
	check(0, 6, 6)
	check(0, 0, 7)
	check(math.MaxInt64, 6, math.MaxInt64)
	check(math.MaxInt64+1, 6, math.MaxInt64)
	check(math.MaxInt64+2, 6, math.MaxInt64)
	check(0, math.MaxUint64, math.MaxInt64)
}

func TestFilter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i, trial := range []string{"t0", "t1"} {
		must(t, s.Begin(telemetry.Trial{ID: trial, Target: fmt.Sprint("x", i)}))
		base := int64(10 * i)
		send(t, s, spec{ns: base + 1, body: "one", severity: 9, trace: uint64(i + 1)},
			spec{ns: base + 2, body: "two", severity: 13, service: "db"},
			spec{ns: base + 3, body: "three", severity: 17})
		end(t, s, trial, func(pcommon.TraceID) bool { return true })
	}
	must(t, s.Close())
	check := func(want string, f logs.Filter) {
		t.Helper()
		var got []string
		for _, r := range read(t, dir, f) {
			got = append(got, fmt.Sprint(r.Ns))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%+v: %s, want %s", f, text, want)
		}
	}
	check("1 2 3 11 12 13", logs.Filter{})
	check("1 2", logs.Filter{Limit: 2})
	check("11 12 13", logs.Filter{Trial: "t1"})
	check("1 2 3", logs.Filter{Target: "x0"})
	check("2 12", logs.Filter{Service: "db"})
	check("2 3 12 13", logs.Filter{MinSeverity: logs.Level("WARN")})
	check("3 13", logs.Filter{MinSeverity: logs.Level("error")})
	check("11", logs.Filter{TraceID: idOf(2).String()})
	check("2 3 12 13", logs.Filter{Grep: regexp.MustCompile("^t")})
	check("1 2 3 11 12 13", logs.Filter{Grep: regexp.MustCompile(`app\.Main`)})
}

func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, telemetry.LogsFile), []byte(`{"trial":"x","ns`), 0o600))
	s := open(t, dir, Options{})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	send(t, s, spec{ns: 1, body: "whole"})
	must(t, s.Close()) // ends the trial
	got, bad, err := logs.Read(dir, logs.Filter{})
	must(t, err)
	if len(got) != 1 || len(bad) != 1 || bad[0].Line != 1 {
		t.Errorf("%d records and %v", len(got), bad)
	}
	if _, _, err := logs.Read(t.TempDir(), logs.Filter{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestTrials(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	must(t, s.Begin(telemetry.Trial{ID: "left"}), s.Begin(telemetry.Trial{ID: "right"}))
	for i, trial := range []string{"left", "right", "", "gone"} {
		ld := lines(spec{ns: int64(i + 1), service: trial})
		if trial != "" {
			ld.ResourceLogs().At(0).Resource().Attributes().PutStr(traces.TrialAttribute, trial)
		}
		must(t, s.ConsumeLogs(context.Background(), ld))
	}
	left := end(t, s, "left", nil).Counts
	right := end(t, s, "right", nil).Counts
	all := s.Counts()
	if left.Received != 1 || right.Received != 2 ||
		all != (spanstore.Counts{Received: 4, Kept: 3, Dropped: 1}) {
		t.Errorf("%+v\n%+v\n%+v", left, right, all)
	}
	for _, err := range []error{s.Mark(telemetry.Mark{Trial: "left"}), func() error {
		_, err := s.End("left", nil)
		return err
	}()} {
		if err == nil || !strings.Contains(err.Error(), "not running") {
			t.Errorf("error %v", err)
		}
	}
	must(t, s.Close())
}
