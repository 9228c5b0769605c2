package spanstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

// spec is a span to send.
type spec struct {
	trace, id, parent uint64
	service, name     string
	start, ns         int64
	failed, asked     bool
}

func (s spec) write(out ptrace.Span) {
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[8:], s.trace)
	var id, parent pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], s.id)
	binary.BigEndian.PutUint64(parent[:], s.parent)
	out.SetTraceID(trace)
	out.SetSpanID(id)
	out.SetParentSpanID(parent)
	out.SetName(cmp.Or(s.name, "GET /"))
	out.SetKind(ptrace.SpanKindServer)
	out.SetStartTimestamp(pcommon.Timestamp(s.start))
	out.SetEndTimestamp(pcommon.Timestamp(s.start + s.ns))
	if s.failed {
		out.Status().SetCode(ptrace.StatusCodeError)
	}
	if s.asked {
		out.TraceState().FromRaw("vendor=1, prony=slowest")
	}
}

// makeTraces makes a request of spans, with a resource for each service.
func makeTraces(list ...spec) ptrace.Traces {
	out := ptrace.NewTraces()
	by := map[string]ptrace.SpanSlice{}
	for _, s := range list {
		service := cmp.Or(s.service, "web")
		if _, ok := by[service]; !ok {
			r := out.ResourceSpans().AppendEmpty()
			r.Resource().Attributes().PutStr("service.name", service)
			by[service] = r.ScopeSpans().AppendEmpty().Spans()
		}
		s.write(by[service].AppendEmpty())
	}
	return out
}

func idOf(n uint64) string { return fmt.Sprintf("%032x", n) }

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, s *Store, list ...spec) {
	t.Helper()
	must(t, s.ConsumeTraces(context.Background(), makeTraces(list...)))
}

func end(t *testing.T, s *Store, trial string) Ended {
	t.Helper()
	out, err := s.End(trial)
	must(t, err)
	c := out.Counts
	if c.Received != c.Kept+c.Dropped {
		t.Errorf("received %d, kept %d and dropped %d", c.Received, c.Kept, c.Dropped)
	}
	return out
}

func read(t *testing.T, dir string, f traces.Filter) []*traces.Trace {
	t.Helper()
	out, bad, err := traces.Read(dir, f)
	must(t, err)
	for _, b := range bad {
		t.Error(b)
	}
	return out
}

// The store keeps the same traces as brute force over all traces: of each window the slowest, and
// of each class those with the lowest hashes; in any order of arrival.
func TestKeepsTheRightOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	now := clock.Wall().UnixNano()
	var all []spec
	for i := range 600 {
		all = append(all, spec{trace: uint64(i + 1), id: 1, start: now - 30*second +
			r.Int64N(30*second), ns: r.Int64N(40), failed: r.IntN(9) == 0, asked: r.IntN(5) == 0})
	}
	o := Options{Asked: 9, Errors: 4, Slow: 6, Uniform: 5}
	marks := []telemetry.Mark{
		{Trial: "t", Kind: telemetry.Open, Name: "a", WallNs: now - 20*second},
		{Trial: "t", Kind: telemetry.Close, Name: "a", WallNs: now - 10*second}}
	want := brute(all, o, now-20*second, now-10*second)
	if len(want) < 40 {
		t.Fatalf("%d traces are too few to tell", len(want))
	}
	var first []byte
	for round := range 3 {
		dir := t.TempDir()
		s := open(t, dir, o)
		must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}), s.Mark(marks[0]), s.Mark(marks[1]))
		for _, part := range slices.Collect(slices.Chunk(all, 7+round)) {
			send(t, s, part...)
		}
		end(t, s, "t")
		must(t, s.Close())
		got := map[string]string{}
		for _, k := range read(t, dir, traces.Filter{}) {
			got[k.TraceID] = k.Window + " " + strings.Join(k.Classes, ",")
		}
		if !maps.Equal(got, want) {
			t.Errorf("round %d: kept %v\nwant %v", round, got, want)
		}
		b, err := os.ReadFile(filepath.Join(dir, telemetry.SpansFile))
		must(t, err)
		if round > 0 && !bytes.Equal(b, first) {
			t.Errorf("round %d: another order makes another file", round)
		}
		first = b
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// brute sorts all traces, and returns window and classes of each by its id.
func brute(all []spec, o Options, from, to int64) map[string]string {
	windows := map[string][]spec{}
	for _, s := range all {
		name := ""
		if from <= s.start && s.start < to {
			name = "a"
		}
		windows[name] = append(windows[name], s)
	}
	hash := func(s spec) uint64 {
		var id pcommon.TraceID
		binary.BigEndian.PutUint64(id[8:], s.trace)
		return evenHash(id)
	}
	even := func(a, b spec) int { return cmp.Compare(hash(a), hash(b)) }
	slowest := func(a, b spec) int { return cmp.Or(cmp.Compare(b.ns, a.ns), even(a, b)) }
	out := map[string]string{}
	for name, list := range windows {
		take := func(class string, n int, order func(a, b spec) int, holds func(spec) bool) {
			fit := slices.DeleteFunc(slices.Clone(list), func(s spec) bool { return !holds(s) })
			slices.SortFunc(fit, order)
			for _, s := range fit[:min(n, len(fit))] {
				id := idOf(s.trace)
				if out[id] == "" {
					out[id] = name + " " + class
				} else if !strings.Contains(out[id], class) {
					out[id] += "," + class
				}
			}
		}
		asked := func(s spec) bool { return s.asked }
		every := func(spec) bool { return true }
		take(traces.Asked, (o.Asked+1)/2, slowest, asked)
		take(traces.Asked, o.Asked/2, even, asked)
		take(traces.Failed, o.Errors, even, func(s spec) bool { return s.failed })
		take(traces.Slow, o.Slow, slowest, every)
		take(traces.Uniform, o.Uniform, even, every)
	}
	return out
}

// Spans of two services in any order and in separate requests make one trace, whose root is the
// span whose parent the lab sent.
func TestAssembly(t *testing.T) {
	now := clock.Wall().UnixNano()
	list := []spec{
		{trace: 5, id: 3, parent: 2, service: "db", name: "select", start: now - 80, ns: 20},
		{trace: 5, id: 2, parent: 1, start: now - 90, ns: 60, name: "find"},
		{trace: 5, id: 1, parent: 99, start: now - 100, ns: 100, name: "GET /owners", asked: true},
		{trace: 5, id: 4, parent: 1, service: "db", start: now - 130, ns: 5}, // its clock is behind
	}
	r := rand.New(rand.NewPCG(1, 9))
	for range 5 {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		must(t, s.Begin(telemetry.Trial{ID: "t"}))
		for _, one := range list {
			send(t, s, one)
		}
		end(t, s, "t")
		must(t, s.Close())
		got := read(t, dir, traces.Filter{})
		if len(got) != 1 {
			t.Fatalf("%d traces, want 1", len(got))
		}
		g := got[0]
		if g.Service != "web" || g.Name != "GET /owners" || g.DurationNs != 100 || g.Roots != 1 ||
			len(g.Spans) != 4 || !slices.Contains(g.Classes, traces.Asked) {
			t.Errorf("%+v", g)
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// A trace is judged after enough silence, also without other arrivals. Later spans are added to it,
// and windows count them until the end.
func TestSilenceAndLateSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir, Options{Silence: 12 * time.Second, Every: time.Second})
		began := clock.Wall().UnixNano()
		must(t, s.Begin(telemetry.Trial{ID: "t"}),
			s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Open, Name: "a", WallNs: began}))
		send(t, s, spec{trace: 1, id: 1, start: began + 1, ns: 10})
		time.Sleep(11500 * time.Millisecond)
		synctest.Wait()
		judged := func() bool {
			s.trials.Lock()
			defer s.trials.Unlock()
			return len(s.pending.byID) == 0
		}
		if judged() {
			t.Error("the trace is judged after 11.5 s")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !judged() {
			t.Error("the trace is not judged after 12.5 s")
		}
		must(t, s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Close, Name: "a",
			WallNs: began + 100}))
		send(t, s, spec{trace: 1, id: 2, parent: 1, start: began + 99, ns: 10, failed: true},
			spec{trace: 1, id: 3, parent: 1, start: began + 100, ns: 10})
		told := end(t, s, "t")
		if got := told.Loads["a"]; got.Spans != 2 || got.ErrorSpans != 1 {
			t.Errorf("the window had %+v, want 2 spans, 1 of them an error", got)
		}
		must(t, s.Close())
		got := read(t, dir, traces.Filter{Class: traces.Failed})
		if len(got) != 1 || len(got[0].Spans) != 3 || got[0].Window != "a" || got[0].Errors != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// Parallel trials are distinguished by their resource; spans without a trial are counted.
func TestTrials(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	must(t, s.Begin(telemetry.Trial{ID: "left"}), s.Begin(telemetry.Trial{ID: "right"}))
	for i, trial := range []string{"left", "right", "", "gone"} {
		td := makeTraces(spec{trace: uint64(i + 1), id: 1, start: 1})
		if trial != "" {
			td.ResourceSpans().At(0).Resource().Attributes().PutStr(traces.TrialAttribute, trial)
		}
		must(t, s.ConsumeTraces(context.Background(), td))
	}
	if got := end(t, s, "left").Counts; got.Received != 1 {
		t.Errorf("left had %+v", got)
	}
	if got := end(t, s, "right"); got.Counts.Received != 2 || len(got.IDs) != 2 {
		t.Errorf("right had %+v", got)
	}
	send(t, s, spec{trace: 9, id: 1})
	if got := s.Counts(); got != (Counts{Received: 5, Kept: 3, Dropped: 2}) {
		t.Errorf("in all %+v", got)
	}
	if _, err := s.End("left"); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("ended twice: %v", err)
	}
	if err := s.Mark(telemetry.Mark{Trial: "left", Kind: telemetry.Open}); err == nil {
		t.Error("a mark of a trial that has ended is taken")
	}
	must(t, s.Begin(telemetry.Trial{ID: "open"}))
	if err := s.Begin(telemetry.Trial{ID: "open"}); err == nil {
		t.Error("a trial begins twice")
	}
	must(t, s.Close())
}

// A trace is wanted while it may still be kept, and when it is kept.
func TestWanted(t *testing.T) {
	s := open(t, t.TempDir(), Options{Silence: 1})
	must(t, s.Begin(telemetry.Trial{ID: "t"}))
	check := func(n byte, want bool) {
		t.Helper()
		if id := (pcommon.TraceID{15: n}); s.MayKeep(id) != want {
			t.Errorf("trace %d is wanted: %v, want %v", n, !want, want)
		}
	}
	send(t, s, spec{trace: 1, id: 1, start: 1})
	send(t, s, spec{trace: 2, id: 1, start: 1})
	if under := len(s.pending.byID); under != 1 {
		t.Fatalf("%d traces are under assembly, want the second alone", under)
	}
	check(1, true)
	check(2, true)
	check(3, false)
	must(t, s.Close())
}

// A line that a crash left incomplete is reported with its number; the lines around it are read.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		s := open(t, dir, Options{})
		must(t, s.Begin(telemetry.Trial{ID: fmt.Sprint(i)}))
		send(t, s, spec{trace: uint64(i + 1), id: 1, start: 1})
		must(t, s.Close()) // ends the trial
		if i > 0 {
			break
		}
		file := filepath.Join(dir, telemetry.SpansFile)
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString(`{"trial":"torn","tr`)
		must(t, err, f.Close())
	}
	got, bad, err := traces.Read(dir, traces.Filter{})
	must(t, err)
	if len(got) != 2 || len(bad) != 1 || bad[0].Line != 2 {
		t.Errorf("%d traces and %v", len(got), bad)
	}
	// A full disk may also leave one in an open file.
	f, err := OpenLines(filepath.Join(t.TempDir(), "lines"))
	must(t, err)
	_, err = f.WriteString(`{"a":`)
	must(t, err, AppendLines(f, []int{1, 2}), AppendLines(f, []int{3}))
	text, err := os.ReadFile(f.Name())
	must(t, err, f.Close())
	if string(text) != "{\"a\":\n1\n2\n3\n" {
		t.Errorf("%q", text)
	}
	if _, _, err := traces.Read(t.TempDir(), traces.Filter{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestFilter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range 4 {
		trial := telemetry.Trial{ID: fmt.Sprint("t", i%2), Target: fmt.Sprint("x", i/2)}
		must(t, s.Begin(trial))
		send(t, s, spec{trace: uint64(i + 1), id: 1, start: int64(i + 1), ns: int64(10 * (i + 1)),
			failed: i == 3, service: fmt.Sprint("s", i)})
		end(t, s, trial.ID)
	}
	must(t, s.Close())
	check := func(want string, f traces.Filter) {
		t.Helper()
		var ids []string
		for _, k := range read(t, dir, f) {
			ids = append(ids, k.TraceID[31:])
		}
		if got := strings.Join(ids, ""); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
	check("1234", traces.Filter{})
	check("4321", traces.Filter{Slowest: true})
	check("43", traces.Filter{Slowest: true, Limit: 2})
	check("13", traces.Filter{Trial: "t0"})
	check("34", traces.Filter{Target: "x1"})
	check("4", traces.Filter{Class: traces.Failed})
	check("1234", traces.Filter{Class: traces.Uniform})
	check("234", traces.Filter{Min: 20}) // inclusive
	check("3", traces.Filter{ID: idOf(3)})
	check("1234", traces.Filter{ID: idOf(3)[:31]})
	check("2", traces.Filter{Service: "s1"})
	check("", traces.Filter{Window: "a"})
}
