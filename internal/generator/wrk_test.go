package generator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load"
	"prony.example/record"
)

// correct is stats_correct of wrk's stats.c; wrk does not call it if the interval is unknown, here
// 0.
func correct(data map[int64]int64, expected int64) map[int64]int64 {
	data = maps.Clone(data)
	top := slices.Max(slices.Collect(maps.Keys(data)))
	for n := expected * 2; n <= top && expected > 0; n++ {
		count := data[n]
		for m := n - expected; count > 0 && m > expected; m -= expected {
			data[m] += count
		}
	}
	return data
}

func pairs(data map[int64]int64) (out [][2]int64) {
	for _, us := range slices.Sorted(maps.Keys(data)) {
		if data[us] > 0 {
			out = append(out, [2]int64{us, data[us]})
		}
	}
	return out
}

func TestRestoreTakesOutWhatWrkInvents(t *testing.T) {
	check := func(real map[int64]int64, expected int64) {
		t.Helper()
		var want samples
		for us, n := range real {
			want.add(us*1e3, n)
		}
		got, ok := restore(pairs(correct(real, expected)), expected, want.n)
		if !ok || !sameCounts(got.h, want.h) || got.sum != want.sum {
			t.Errorf("of %v with %d µs expected came %+v, %v", real, expected, got, ok)
		}
	}
	// The sample of 5 adds 3; that of 9 adds 7, 5 and 3: 12 samples become 16.
	check(map[int64]int64{1: 10, 5: 1, 9: 1}, 2)
	check(map[int64]int64{1: 10, 2: 3}, 5) // none is slow
	check(map[int64]int64{100: 1}, 1)      // all below it are synthetic
	check(map[int64]int64{7: 3}, 0)        // nothing was corrected
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		real := map[int64]int64{}
		for range r.IntN(40) + 1 {
			real[r.Int64N(3000)+1] += r.Int64N(5) + 1
		}
		check(real, r.Int64N(500)+1)
	}
}

func sameCounts(a, b *hdrhistogram.Histogram) bool { return a.Equals(b) }

func TestRestoreRefuses(t *testing.T) {
	real := map[int64]int64{1: 10, 5: 1, 9: 1}
	bent := pairs(correct(real, 2))
	check := func(what string, counts [][2]int64, expected, want int64) {
		t.Helper()
		if got, ok := restore(counts, expected, want); ok {
			t.Errorf("%s: restored %+v", what, got)
		}
	}
	check("another total", bent, 2, 13)
	check("another interval", bent, 3, 12) // 9 would have added a 6, which is missing
	check("no counts", nil, 2, 0)
	check("negative", [][2]int64{{4, -1}}, 1, -1)
}

func TestLuaStrings(t *testing.T) {
	for in, want := range map[string]string{
		"/a?b=1&c":   `"/a?b=1&c"`,
		"a\"b\\c\nd": `"a\034b\092c\010d"`,
		"%d[]":       `"\037d\091\093"`,
		"ü":          `"\195\188"`,
		"":           `""`,
	} {
		if got := lua(in); got != want {
			t.Errorf("lua(%q) = %s, want %s", in, got, want)
		}
	}
}

// jobFor returns a job of a tool with a spec, in a folder of the test.
func jobFor(t *testing.T, tool *tool, s load.Spec) *job {
	t.Helper()
	r, err := requests(&s, tool.can.keys)
	if err != nil {
		t.Fatal(err)
	}
	return &job{spec: &s, path: tool.name, dir: t.TempDir(), length: tool.upTo(s.Window),
		threads: min(max(len(s.Cores), 1), s.Connections), requests: r, version: "1"}
}

// wrkJob returns a job with a given report.
func wrkJob(t *testing.T, tool *tool, report string) *job {
	t.Helper()
	s := load.Spec{Connections: 3, Cores: []int{0, 1}, Model: record.Closed, Timeout: time.Second}
	s.Scenario.Requests = []load.Request{{Method: "GET", Path: "/", WantSize: -1}}
	j := jobFor(t, tool, s)
	if err := os.WriteFile(filepath.Join(j.dir, wrkReport), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

func reportOf(counts [][2]int64, more string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(counts), " ", ","), "],[", "], [")
	return `{"requests":12,"us":24,"bytes":99,"samples":16,"connect":1,"read":2,"write":3,` +
		`"status":4,"timeout":0,"min":1,"mean":2.5,"max":9,"p50":2,"p90":5,"p99":8,"p999":9,` +
		`"counts":` + text + more + "}"
}

// TestWrkExample checks that a single bad status is named, and none if there was none.
func TestWrkExample(t *testing.T) {
	for status, want := range map[int]string{0: "", 1: "responses had a status above 399"} {
		_, got, err := readReport(wrkJob(t, wrk, fmt.Sprintf(`{"status": %d}`, status)), &output{})
		if err != nil || got.errors.Example != want {
			t.Errorf("status %d: %q, %v", status, got.errors.Example, err)
		}
	}
}

// TestWrkReport checks 12 requests over 3 connections in 24 µs: the expected interval is 24 / (12 /
// 3) = 6 µs, so that only times from 12 µs on were corrected.
func TestWrkReport(t *testing.T) {
	real := map[int64]int64{1: 8, 5: 3, 40: 1}
	counts := pairs(correct(real, 6)) // 34, 28, 22, 16 and 10 are synthetic
	if len(counts) != 8 {
		t.Fatalf("counts are %v", counts)
	}
	j := wrkJob(t, wrk, reportOf(counts, ""))
	got, err := readWrk(j, &output{})
	if err != nil {
		t.Fatal(err)
	}
	// 12 requests, of which 4 had an error status; 3 connections on 2 threads leave one unused.
	if got.good != 8 || got.errors.Status != 4 || got.errors.Connect != 1 || got.errors.Read != 2 ||
		got.errors.Write != 3 || got.conns != 2 || got.durationNs != 24000 || got.bytesIn != 99 {
		t.Errorf("it is %+v", got)
	}
	d := got.service
	if d.Count != 12 || d.P50Ns != 1000 || d.MinNs != 1000 || d.HDR == "" || d.MaxNs < 40000 {
		t.Errorf("service time is %+v", d)
	}
	// Without counts only the synthetic percentiles exist, which a note says.
	j = wrkJob(t, wrk, reportOf(nil, ""))
	got, err = readWrk(j, &output{})
	if err != nil {
		t.Fatal(err)
	}
	if d := got.service; d.P99Ns != 8000 || d.HDR != "" || len(got.notes) != 1 ||
		got.notes[0].Kind != NoteWrkBackfilled {
		t.Errorf("service time is %+v with notes %q", d, got.notes)
	}
}

func TestWrk2Report(t *testing.T) {
	j := wrkJob(t, wrk2, reportOf(nil, ""))
	text, err := os.ReadFile("testdata/wrk2-full.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readWrk2(j, &output{text: text})
	if err != nil {
		t.Fatal(err)
	}
	if got.good != 8 || got.response.P99Ns != 8000 || got.response.Count != 16 {
		t.Errorf("it is %+v", got)
	}
	// From its second table.
	if d := got.service; d.P50Ns != 234e3 || d.P99Ns != 1.46e6 || d.MaxNs != 20.928e6 ||
		d.MinNs != 34e3 || d.Count != 2382 || d.MeanNs != 351e3 {
		t.Errorf("service time is %+v", d)
	}
	if _, err := readWrk(wrkJob(t, wrk, "{"), &output{}); err == nil {
		t.Error("half a report is not an error")
	}
}
