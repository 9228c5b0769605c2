package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// samplesOf makes a probe's series for every load of a run.
func samplesOf(records []record.Record) []record.Samples {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []record.Samples
	for _, r := range records {
		for _, l := range r.Loads {
			s := record.Samples{Trial: r.Trial, Load: l.Name}
			for k := range 40 {
				s.TimeNs = append(s.TimeNs, int64(k)*250e6)
				s.CPUCores = append(s.CPUCores, l.Service.CPUShare*(0.95+0.05*rng.Float64()))
				s.RSSBytes = append(s.RSSBytes, l.Service.RSSMaxBytes*int64(900+k)/1000)
			}
			all = append(all, s)
		}
	}
	return all
}

func page(t *testing.T, records []record.Record, o HTMLOptions) string {
	t.Helper()
	return pageWith(t, records, fixtureOptions(), o)
}

func pageWith(t *testing.T, records []record.Record, so table.Options, o HTMLOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, analyze(records, so), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHTMLIsOneFile checks that the page refers to no other file, and that its policy would forbid
// it.
func TestHTMLIsOneFile(t *testing.T) {
	html := page(t, made(), HTMLOptions{Samples: samplesOf(made())})
	if !strings.Contains(html, `content="default-src 'none';`) &&
		!strings.Contains(html, `content="default-src &#39;none&#39;;`) {
		t.Error("no content security policy that denies by default")
	}
	markup := strings.NewReplacer(pageJS, "", pageCSS, "").Replace(html)
	for _, m := range regexp.MustCompile(`(?i)\s(src|href|srcset|action|poster|data)="[^"]*`).
		FindAllString(markup, -1) {
		if !strings.Contains(m, `href="#`) {
			t.Errorf("an attribute leads out of the file: %s", m)
		}
	}
	for _, row := range []struct{ in, pattern string }{
		{pageCSS, `url\(|@import`},
		{pageJS, `(?i)\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts`},
		{pageJS, `(?i)</script|<!--`}, // would end or comment out the element
		{pageCSS, `(?i)</style`},
	} {
		if m := regexp.MustCompile(row.pattern).FindString(row.in); m != "" {
			t.Errorf("the bundle contains %q", m)
		}
	}
	if strings.Count(html, "<script") != 2 {
		t.Errorf("%d scripts, wanted the data and the code", strings.Count(html, "<script"))
	}
}

// TestHTMLEscapes checks that text of services, targets and files stays text.
func TestHTMLEscapes(t *testing.T) {
	const evil = `</script><script>alert("x")</script><img src=x onerror=alert(1)>` + "\u2028" +
		`<!--" '&amp;`
	records := sample()
	for i := range records {
		r := &records[i]
		r.Target.Name += evil
		r.Suite, r.Scenario, r.Run, r.Trial = evil, evil, evil, evil
		r.Provenance.Command = []string{evil}
		r.Provenance.CPUModel, r.Provenance.Kernel = evil, evil
		r.Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{
			{Rule: evil, Load: "peak", Grade: record.Suspect, Text: &record.Words{
				Observed: evil, Limit: evil, Hint: evil}},
		}}
		if r.Failure != nil {
			r.Failure.Log = []string{evil}
		}
		for k := range r.Loads {
			r.Loads[k].Errors = record.Errors{Body: 1, Example: evil}
		}
	}
	html := page(t, records, HTMLOptions{Title: evil})
	if n := strings.Count(html, "<script"); n != 2 {
		t.Errorf("%d scripts, wanted 2", n)
	}
	if strings.Contains(html, "<img") || strings.Count(html, "</script>") != 2 {
		t.Error("text became markup")
	}
	_, rest, _ := strings.Cut(html, `<script type="application/json" id="data">`)
	data, _, found := strings.Cut(rest, "</script>")
	var d pageData
	if err := json.Unmarshal([]byte(data), &d); err != nil || !found {
		t.Fatalf("the data does not read back: %v", err)
	}
	if d.Scenarios[0].Name != evil {
		t.Errorf("the scenario reads back as %q", d.Scenarios[0].Name)
	}
}

// TestFoldedHTMLEscapes: no text ends the element that a page of many trials folds it in.
func TestFoldedHTMLEscapes(t *testing.T) {
	const evil = `</noscript><img src=x onerror=alert(1)>`
	var records []record.Record
	for run := 0; len(records) <= mostUnfolded; run++ {
		for _, r := range sample() {
			r.Run, r.Trial = fmt.Sprintf("%s-%d", r.Run, run), fmt.Sprintf("%s-%d", r.Trial, run)
			r.Target.Name += evil
			r.Provenance.Command = []string{evil}
			records = append(records, r)
		}
	}
	html := page(t, records, HTMLOptions{})
	folded := strings.Count(html, "<noscript>")
	if folded < len(records)/inBatch || folded != strings.Count(html, "</noscript>") {
		t.Errorf("%d trials are in %d elements with %d ends", len(records), folded,
			strings.Count(html, "</noscript>"))
	}
	if strings.Contains(html, "<img") {
		t.Error("text became markup")
	}
}

// TestHTMLReadsWithoutScripts checks that the markup has each cell, footnote and note of the table.
func TestHTMLReadsWithoutScripts(t *testing.T) {
	html := page(t, made(), HTMLOptions{})
	markup, _, _ := strings.Cut(html, `<script type="application/json"`)
	text := strings.NewReplacer("<wbr>", "", "&#43;", "+", "&#39;", "'", "&#34;", `"`,
		"&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(markup)
	sheet := sheetOf(made(), fixtureOptions())
	want := []string{sheet.Head.Under("canonical").String(), sheet.Tools, sheet.Reproduce}
	for _, tab := range sheet.Tables {
		for _, f := range tab.Footnotes {
			want = append(want, f.String())
		}
		want = append(want, table.Texts(tab.Notes)...)
		for _, row := range tab.Rows {
			want = append(want, row.Span.String())
			for k, c := range row.Cells {
				want = append(want, c.Number())
				if !ownColumn(tab, k) {
					want = append(want, interval(c.Range()))
				}
			}
		}
	}
	want = append(want, fmt.Sprintf("%d numbers VALID", sheet.Numbers.Valid))
	for _, v := range excluded(sheet.Verdicts) {
		want = append(want, v.Reason)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the markup lacks %q", w)
		}
	}
	if n := strings.Count(markup, `<details class="trial"`); n != len(made()) {
		t.Errorf("%d trials in the list, wanted %d", n, len(made()))
	}
	// One half of go-nethttp, four of java-jdk/virtual, and its peak with the half that is a share.
	if n := strings.Count(markup, ": INVALID, excluded from results</h4>"); n != 7 {
		t.Errorf("%d loads are said to be INVALID, wanted 7", n)
	}
}

// TestHTMLIsTheSameTwice checks that a report is a function of records.
func TestHTMLIsTheSameTwice(t *testing.T) {
	a, b := page(t, sample(), HTMLOptions{}), page(t, sample(), HTMLOptions{})
	if a != b {
		t.Error("two reports of the same records differ")
	}
}

// TestHTMLOfNothing checks that a run without records has a page.
func TestHTMLOfNothing(t *testing.T) {
	if html := page(t, nil, HTMLOptions{}); !strings.Contains(html, "no records") {
		t.Error("the page of an empty run does not say so")
	}
}

// TestData checks that the plots have the study's numbers.
func TestData(t *testing.T) {
	s := analyze(made(), fixtureOptions())
	sc := dataOf(s, HTMLOptions{Samples: samplesOf(made())}).Scenarios[0]
	if len(sc.Latency) != 2 || len(sc.Series) != 6 || sc.Cost == nil || sc.Loads != nil {
		t.Fatalf("%d latencies, %d series, cost %v, loads %v: wanted 2, 6, some and none",
			len(sc.Latency), len(sc.Series), sc.Cost, sc.Loads)
	}
	if sc.Latency[0].Load != "half" {
		t.Errorf("the first latency is that of %s, wanted the open load's", sc.Latency[0].Load)
	}
	// The first point of a curve is the table's p50, in ms.
	curve := sc.Latency[0].Lines[0]
	p50, _ := s.Scenarios[0].Targets[0].Metric("half", "p50")
	if curve.Target != s.Scenarios[0].Targets[0].Name || *curve.Ms[0] != p50.Summary.Center/1e6 {
		t.Errorf("%s starts at %v ms, wanted %v ns", curve.Target, *curve.Ms[0],
			p50.Summary.Center)
	}
	// 2,856 requests a trial bear p99.8 at most: n(1-q) >= 3.84q, so 1-q >= 0.00134.
	var slow pageLine
	for _, line := range sc.Latency[0].Lines {
		if line.Target == "python-django/reactive" {
			slow = line
		}
	}
	for i, q := range sc.Latency[0].Quantiles {
		if (slow.Ms[i] != nil) != (1-q >= 0.00134) {
			t.Errorf("python-django/reactive at q = %v: %v", q, slow.Ms[i])
		}
	}
	// The verdict over time is that of the load: go-nethttp lost its third half, and no peak.
	for _, s := range sc.Series {
		for _, trial := range s.Trials {
			lost := s.Target == "go-nethttp" && trial.Block == 3 && trial.Load == "half"
			if s.Target == "go-nethttp" && (trial.Verdict == record.Invalid) != lost {
				t.Errorf("block %d of %s, %s: %s", trial.Block, s.Target, trial.Load,
					trial.Verdict)
			}
		}
	}
	// A shorter last interval has its own length.
	l := &record.Load{WindowNs: 25e8, Series: record.Series{IntervalNs: 1e9,
		Done: []int64{10, 20, 15}}}
	last, _ := seriesOfLoad(&record.Record{}, l, nil)
	if !slices.Equal(last.Seconds, []float64{1, 2, 2.5}) ||
		!slices.Equal(last.PerS, []float64{10, 20, 30}) {
		t.Errorf("short last interval: %v, %v per second", last.Seconds, last.PerS)
	}
	trial := sc.Series[0].Trials[0]
	if trial.Probe == nil || len(trial.Probe.Cores) != 40 || len(trial.PerS) != fixtureWindowS {
		t.Errorf("first series %+v", trial)
	}
}

// TestUnknownRange checks that the page explains the word unknown once if an interval is unknown.
func TestUnknownRange(t *testing.T) {
	v := tableView{Rows: []rowView{{Cells: []cellView{{Range: "1 – 2"}}}}}
	if v.explainUnknown(); len(v.Notes) > 0 {
		t.Errorf("notes %v without an unknown interval", v.Notes)
	}
	v.Rows[0].Cells = append(v.Rows[0].Cells, cellView{Range: "unknown", unknown: true})
	v.explainUnknown()
	if v.explainUnknown(); len(v.Notes) != 1 || v.Notes[0].Kind != table.NoteUnknowns {
		t.Errorf("notes %v, want the meaning of unknown once", v.Notes)
	}
}
