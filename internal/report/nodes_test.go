package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// thousand returns 1,000 trials of several runs.
func thousand() []record.Record {
	var records []record.Record
	base := rich()
	for run := 0; len(records) < 1000; run++ {
		for _, r := range base {
			r.Run = fmt.Sprintf("%s-%d", r.Run, run)
			r.Trial = fmt.Sprintf("%s-%d", r.Trial, run)
			records = append(records, r)
		}
	}
	return records[:1000]
}

// thousandPage is their page, made once for all tests.
var thousandPage = sync.OnceValues(func() (string, error) {
	records := thousand()
	var b bytes.Buffer
	err := HTML(&b, analyze(records, fixtureOptions()), HTMLOptions{Samples: samplesOf(records)})
	return b.String(), err
})

// mostNodes bounds the nodes of a page of 1,000 trials as a browser reads it. There were 149,000
// when all trials were markup, and 25,000 when each trial was folded by itself.
const mostNodes = 4_000

// TestFewNodes checks that a page of many trials has few nodes, and every trial exactly once in the
// elements that a reader opens.
func TestFewNodes(t *testing.T) {
	testsets.Whole(t, "a page in a browser")
	text, err := thousandPage()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(text)) // noscript elements are text, as with scripts
	if err != nil {
		t.Fatal(err)
	}
	n, folded := 0, 0
	for node := range doc.Descendants() {
		n++
		if node.Type == html.TextNode && node.Parent.Data == "noscript" {
			folded += strings.Count(node.Data, `<details class="trial"`)
		}
	}
	t.Logf("%d nodes in %d bytes", n, len(text))
	if n > mostNodes {
		t.Errorf("%d nodes, want at most %d", n, mostNodes)
	}
	const trials = 1000
	if folded != trials {
		t.Errorf("%d trials are folded, want %d", folded, trials)
	}
	for i := range trials {
		if c := strings.Count(text, fmt.Sprintf(`id="trial-%d"`, i+1)); c != 1 {
			t.Fatalf("trial %d is there %d times", i+1, c)
		}
	}
}

// TestDotsOfManyTrials checks that more dots than a page has as elements are paths at the same
// places, the hollow ones with a hole.
func TestDotsOfManyTrials(t *testing.T) {
	drawn := func(n int) string {
		var row stripRow
		for k := range n {
			row.Dots = append(row.Dots, stripDot{X: place(float64(k) / 10), Y: "50.00%",
				Title: "block", Hollow: k == 0})
		}
		all, err := pages()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		s := strip{Caption: "x", Groups: []stripGroup{{Rows: []stripRow{row}}}}
		if err := all.ExecuteTemplate(&b, "strip", s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	few, many := drawn(mostCircles), drawn(mostCircles+1)
	if strings.Count(few, "<circle") != mostCircles || strings.Contains(few, "<path") {
		t.Errorf("%d dots are not as many circles:\n%.400s", mostCircles, few)
	}
	if strings.Contains(many, "<circle") || strings.Count(many, `class="dots inner"`) != 1 ||
		strings.Count(many, "<path") != 2+dotLayers {
		t.Errorf("%d dots are not a few paths:\n%.400s", mostCircles+1, many)
	}
	for k := range mostCircles + 1 {
		want := 1
		if k == 0 { // the dot, and its hole
			want = 2
		}
		if n := strings.Count(many, fmt.Sprintf("M%.2f 50.00h0", float64(k)/10)); n != want {
			t.Errorf("dot %d is drawn %d times", k, n)
		}
	}
}

// TestBatches checks that the heads of batches count how trials ended.
func TestBatches(t *testing.T) {
	var trials []trialView
	for k := range mostUnfolded + 2 {
		v := trialView{Mark: "VALID", Class: "valid"}
		switch k {
		case 3:
			v = trialView{Mark: "2 findings", Class: "none"}
		case 7:
			v = trialView{Mark: "1 finding", Class: "none"}
		case mostUnfolded + 1:
			v = trialView{Mark: "failed", Class: "failed"}
		}
		trials = append(trials, v)
	}
	if n := len(batchesOf(trials[:mostUnfolded])); n != 0 {
		t.Errorf("%d batches of few trials", n)
	}
	var got []string
	for _, b := range batchesOf(trials) {
		got = append(got, b.Title+": "+b.Outcomes)
	}
	want := []string{"Trials 1 to 50: 48 VALID, 2 with findings", "Trials 51 to 100: 50 VALID",
		"Trials 101 to 102: 1 VALID, 1 failed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
