package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// inStarts returns four starts of two targets, launched in either order, with 40 rounds of 40 ms
// each. The machine serves between 1,000 and 1,390 requests in a slice of a, and 5 % fewer in one
// of b.
func inStarts() ([]record.Record, table.SlicesReader) {
	var records []record.Record
	heads := map[string]record.SlicesHead{}
	all := map[string][]record.Slice{}
	for start := 1; start <= 4; start++ {
		file := fmt.Sprintf("slices/s%d.ndjson", start)
		names := []string{"old", "new"}
		if start%2 == 0 {
			names = []string{"new", "old"}
		}
		head := record.SlicesHead{SideBySide: record.SideBySide{Rounds: 40, LeadInNs: 20e6,
			WindowNs: 40e6, Freeze: record.FreezeSignals}}
		for target, name := range names {
			r := record.Record{Run: "run", Trial: fmt.Sprintf("b%d-%s", start, name), Suite: "s",
				Time: time.Unix(int64(start)*100, 0).UTC(), Block: start, Scenario: "hello",
				Target: record.Target{Name: name}, Outcome: record.Measured, DurationNs: 10e9,
				Verdict: record.Verdict{Grade: record.Valid}}
			side := head.SideBySide
			side.File = file
			r.SideBySide = &side
			head.Trials = append(head.Trials, r.Trial)
			sum := &record.Sliced{Slices: 40, IdleTimeNs: 2.4e9}
			for round := 1; round <= 40; round++ {
				n := int64(1000 + 10*((round+7*start)%40))
				if name == "new" {
					n = n * 95 / 100
				}
				all[file] = append(all[file], record.Slice{Round: round, Target: target,
					OpenedNs: 20e6, ClosedNs: 60e6, EndedNs: 61e6, Requests: n, CPUNs: 38e6})
				sum.Requests, sum.TimeNs, sum.CPUNs = sum.Requests+n, sum.TimeNs+40e6,
					sum.CPUNs+38e6
			}
			r.Loads = []record.Load{{Name: "peak", Model: record.Closed, Connections: 64,
				WindowNs: 2e9, ThroughputPerS: 27e3 + float64(start), Done: 54e3, Slices: sum}}
			records = append(records, r)
		}
		heads[file] = head
	}
	return records, func(file string) (record.SlicesHead, []record.Slice, error) {
		if all[file] == nil {
			return record.SlicesHead{}, nil, fmt.Errorf("no file %s", file)
		}
		return heads[file], all[file], nil
	}
}

// TestSlicesFigure checks that each round is a dot near its start's ratio, above the machine's
// speed.
func TestSlicesFigure(t *testing.T) {
	records, read := inStarts()
	s := analyze(records, table.Options{Baseline: "old", Slices: read})
	v := slicesOf(s.Scenarios[0])
	if v == nil || len(v.Ratios) != 2 || v.Speed == nil || v.Lead != "Each small dot shows one "+
		"round" {
		t.Fatalf("%+v", v)
	}
	throughput := v.Ratios[0]
	starts, sum := throughput.Groups[0].Rows, throughput.Groups[1].Rows
	if len(starts) != 4 || len(sum) != 1 || sum[0].Name != "all starts" || sum[0].Center == "" {
		t.Fatalf("%d starts, %+v", len(starts), sum)
	}
	// All ratios are near 0.95, so that 1 lies beyond the axis of throughput.
	if throughput.Mark != "" {
		t.Errorf("the line at 1 is at %s", throughput.Mark)
	}
	for i, row := range append(starts, v.Speed.Groups[0].Rows...) {
		if len(row.Dots) != 40 || !strings.HasPrefix(row.Dots[4].Title, "round 5: ") {
			t.Errorf("row %d, %s, has %d dots: %+v", i, row.Name, len(row.Dots), row.Dots[:1])
		}
	}
	// Whole requests: 950 of 1,000, 959 of 1,010, …: at most one of a thousand less than 95 %.
	if text := starts[0].Text; text != "0.950" && text != "0.949" {
		t.Errorf("start 1 has %s", text)
	}
	if text := v.Speed.Groups[0].Rows[0].Text; text != "25.0k – 34.8k" { // 1,000 and 1,390 in 40 ms
		t.Errorf("the machine served %s", text)
	}
	var b strings.Builder
	if err := HTML(&b, s, HTMLOptions{Title: "t"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h3>Slices</h3>",
		"throughput of new divided by old, by start and round",
		"The machine&#39;s speed: requests/s of old by round"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s = analyze(records, table.Options{Baseline: "old"})
	if v := slicesOf(s.Scenarios[0]); v != nil {
		t.Errorf("without raw slices: %+v", v)
	}
}

// TestManyRounds checks that several rounds share a dot, of their sums, if there are too many.
func TestManyRounds(t *testing.T) {
	records, read := inStarts()
	s := analyze(records, table.Options{Baseline: "old", Slices: read})
	sc := s.Scenarios[0]
	points := pointsOf(sc.Starts.Raw[1], []*table.Target{sc.Target("old")},
		[]*table.Target{sc.Target("new")}, 15)
	if len(points) != 3 || points[2].title() != "rounds 31–40" {
		t.Fatalf("%+v", points)
	}
	var old, changed int64
	for _, p := range points {
		old, changed = old+p.a.Requests, changed+p.b.Requests
	}
	if ratio := float64(changed) / float64(old); math.Abs(ratio-0.95) > 0.001 {
		t.Errorf("%d over %d requests", changed, old)
	}
}

// TestPageOfStarts checks that a page of starts calls no start a block.
func TestPageOfStarts(t *testing.T) {
	records, read := inStarts()
	records[1].Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{
		{Rule: "steal", Load: "peak", Grade: record.Suspect, Unit: record.UnitShare, Value: 0.1}}}
	records[0].Loads[0].Series = record.Series{IntervalNs: 1e9, Done: []int64{27e3, 27e3}}
	s := analyze(records, table.Options{Baseline: "old", Slices: read})
	var b strings.Builder
	if err := HTML(&b, s, HTMLOptions{Title: "t"}); err != nil {
		t.Fatal(err)
	}
	page, data, _ := strings.Cut(b.String(), "<script")
	if !strings.Contains(data, `"block":1,"repeat":"start"`) {
		t.Errorf("the data of the plots name no start: %.300s", data)
	}
	_, page, _ = strings.Cut(page, "<body")
	for _, want := range []string{"new, start 1: ", "hello · start 1 · ",
		`<th scope="col">start</th>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for i := strings.Index(page, "block"); i >= 0; i = strings.Index(page, "block") {
		t.Errorf("a start is called a block: …%s…", page[max(0, i-60):min(i+60, len(page))])
		page = page[i+5:]
	}
}
