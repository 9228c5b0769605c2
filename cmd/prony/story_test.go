package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/observe/gclog"
	"prony.example/internal/observe/profile"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// newStory returns the story of a request that was due 5 ms into its window, was sent 1 ms later,
// and took 10 ms.
func newStory(t *testing.T) *story {
	t.Helper()
	l := &record.Load{Name: "peak", WindowOpenedMonotonicNs: 1e9}
	l.ResponseTime = record.Dist{P50Ns: 2e6, P99Ns: 4e6, MaxNs: 10e6}
	s := &story{dir: t.TempDir(), record: &record.Record{Trial: "b1-01-a"}, load: l,
		request: record.Traced{TraceID: "abc", Class: "slowest", ScheduledNs: 5e6, LagNs: 1e6,
			FirstByteNs: 8e6, ResponseNs: 10e6}}
	s.record.Limits.CPUs = 2
	return s
}

// keep writes a file of the story's run.
func (s *story) keep(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStoryProfile checks that a story has the CPU profiles of its own load, as far as they can be
// read.
func TestStoryProfile(t *testing.T) {
	s := newStory(t)
	stacks := profile.NewStacks(profile.CPU)
	stacks.Add([]string{"main", "hash"}, 3, 30e6)
	stacks.Add([]string{"main"}, 1, 10e6)
	var data bytes.Buffer
	if err := stacks.Profile().Write(&data); err != nil {
		t.Fatal(err)
	}
	s.keep(t, "profiles/a.pb.gz", data.Bytes())
	s.keep(t, "profiles/torn.pb.gz", data.Bytes()[:data.Len()/2])
	check := func(load, kind, file, want string) {
		t.Helper()
		s.record.Profiles = []record.Profile{{Load: load, Kind: kind, File: file, Tool: "perf 6"}}
		var out bytes.Buffer
		s.printProfile(&out)
		if out.String() != want {
			t.Errorf("%s of %s in %q: %q, want %q", kind, load, file, out.String(), want)
		}
	}
	check("peak", profile.CPU, "profiles/a.pb.gz", "CPU time by function during load peak, by "+
		"perf 6, for all requests together\n   75.0 %  hash\n   25.0 %  main\n"+
		"  draw a flame graph: prony profile "+s.dir+" --trial b1-01-a -o flame.html\n")
	check("base", profile.CPU, "profiles/a.pb.gz", "")
	check("peak", profile.Alloc, "profiles/a.pb.gz", "")
	check("peak", profile.CPU, "", "")
	check("peak", profile.CPU, "profiles/torn.pb.gz", "")
	check("peak", profile.CPU, "profiles/none.pb.gz", "")
}

// TestStoryMoment checks that a story has the first sample at or after its end, 15 ms.
func TestStoryMoment(t *testing.T) {
	s := newStory(t)
	const at = "resources at that moment\n  the service used 1.50 of 2 CPUs, 64 MiB of memory " +
		"and 7 threads\n\n"
	check := func(times []int64, threads []int64, want string) {
		t.Helper()
		data, err := json.Marshal(record.Samples{TimeNs: times, CPUCores: []float64{0.5, 1.5, 2},
			RSSBytes: []int64{1 << 20, 64 << 20, 2 << 20}, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		s.keep(t, "series/b1-01-a.peak.json", data)
		var out bytes.Buffer
		s.printMoment(&out)
		if out.String() != want {
			t.Errorf("samples at %v: %q, want %q", times, out.String(), want)
		}
	}
	check([]int64{14e6, 15e6, 16e6}, []int64{6, 7, 8}, at)
	check([]int64{14e6, 15e6 + 1, 16e6}, []int64{6, 7, 8}, at)
	check([]int64{1e6, 2e6, 15e6 - 1}, []int64{6, 7, 8}, "") // none since then
	check([]int64{14e6, 15e6, 16e6}, []int64{6, 7}, at)
	check([]int64{14e6, 15e6, 16e6}, []int64{6}, "")
	s.keep(t, "series/b1-01-a.peak.json", []byte("{"))
	var out bytes.Buffer
	if s.printMoment(&out); out.Len() > 0 {
		t.Errorf("a torn file: %q", out.String())
	}
}

// TestStoryPauses checks the times of pauses, which count from when the request was due.
func TestStoryPauses(t *testing.T) {
	s := newStory(t)
	check := func(want string) {
		t.Helper()
		var out bytes.Buffer
		if s.printPauses(&out); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	check("")
	s.logged = true
	check("garbage collections\n  no garbage collection during the request\n\n")
	s.pauses = []gclog.Event{
		{StartNs: 1e9 + 8e6, PauseNs: 2e6, GC: true, Kind: "Young", Cause: "System.gc()"},
		{StartNs: 1e9 + 9e6, PauseNs: 1e6, GC: true, Kind: "Full"},
		{StartNs: 1e9 + 10e6, PauseNs: 1e6, Kind: "ICBufferFull", Cause: "not used"},
	}
	check("pauses during the request\n" +
		"  Young for 2.00 ms, 3.00 ms after it was due (System.gc())\n" +
		"  Full for 1.00 ms, 4.00 ms after it was due\n" +
		"  ICBufferFull for 1.00 ms, 5.00 ms after it was due (no collection)\n\n")
}

// TestStoryWithoutFirstByte checks that a first byte is shown only if there was one.
func TestStoryWithoutFirstByte(t *testing.T) {
	for ns, want := range map[int64]bool{0: false, 1: true} {
		s := newStory(t)
		s.request.FirstByteNs = ns
		var out bytes.Buffer
		err := s.print(&out)
		if err != nil || strings.Contains(out.String(), "first byte") != want {
			t.Errorf("%d ns: %v\n%s", ns, err, out.String())
		}
	}
}

// TestStoryConclusion checks which part of the response time of 10 ms is named: one of more than
// half of it.
func TestStoryConclusion(t *testing.T) {
	check := func(want string, change func(*story)) {
		t.Helper()
		s := newStory(t)
		change(s)
		if got := s.conclusion(); got != want && !(want != "" && strings.HasPrefix(got, want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("conclusion: 8.00 ms of 10.0 ms passed between sending", func(*story) {})
	check("", func(s *story) { s.request.FirstByteNs = 5e6 })
	check("conclusion: 6.00 ms of 10.0 ms passed before", func(s *story) {
		s.request.LagNs, s.request.FirstByteNs = 6e6, 1e6
	})
	check("conclusion: 7.00 ms of 10.0 ms was within the spans", func(s *story) {
		s.trace = &traces.Trace{DurationNs: 7e6}
	})
	check("conclusion: 6.00 ms of 10.0 ms was outside of the spans", func(s *story) {
		s.trace = &traces.Trace{DurationNs: 3e6}
	})
	check("conclusion: 6.00 ms of 10.0 ms was in pauses", func(s *story) {
		// It was due at 1.005 s. The first pause began 2 ms before, and took 8 ms.
		s.trace = &traces.Trace{DurationNs: 9e6}
		s.pauses = []gclog.Event{{StartNs: 1e9 + 3e6, PauseNs: 8e6}}
	})
}

// TestStoryWords checks why a request was kept, and the reason for a large send delay: more than
// half of the response time.
func TestStoryWords(t *testing.T) {
	for class, want := range map[string]string{"failed": "it failed", "uniform": "drawn at random",
		"slowest": "one of the slowest requests with a trace id"} {
		if got := whyText(record.Traced{Class: class}); got != want {
			t.Errorf("%s: %q, want %q", class, got, want)
		}
	}
	const busy = " (every connection was busy: most of this time belongs to earlier requests)"
	for lagNs, want := range map[int64]string{5e6: "", 5e6 + 1: busy} {
		if got := waited(record.Traced{LagNs: lagNs, ResponseNs: 10e6}); got != want {
			t.Errorf("%d of 10 ms: %q, want %q", lagNs, got, want)
		}
	}
}
