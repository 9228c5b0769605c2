package report

import (
	"bytes"
	"strings"
	"testing"

	"prony.example/internal/report/runs"
	"prony.example/record"
)

// TestReportBeginsWithTheAnswer checks that a report of two targets begins with how one differs
// from the other, in each format. A report of more targets is a ranking without such an answer.
func TestReportBeginsWithTheAnswer(t *testing.T) {
	var two []record.Record
	for _, r := range made() {
		if r.Target.Name == "go-nethttp" || r.Target.Name == "node-express" {
			two = append(two, r)
		}
	}
	run := &runs.Run{Head: record.Run{Baseline: "go-nethttp"}, Records: pointers(two)}
	study := analyze(two, fixtureOptions())
	answers := run.Answers(&study)
	if len(answers) != 1 {
		t.Fatalf("%d answers, want 1", len(answers))
	}
	const headline = "node-express uses 267"
	sentence := answers[0].Sentences()[0]
	if !strings.HasPrefix(sentence, headline) {
		t.Errorf("the answer is %q, want %q …", sentence, headline)
	}
	html := page(t, two, HTMLOptions{Answers: answers})
	for _, want := range []string{"<h1>" + headline, "<title>" + headline,
		`<meta property="og:title" content="` + headline,
		`id="node-express-relative-to-go-nethttp"`} {
		if strings.Count(html, want) != 1 {
			t.Errorf("the page has not once %s", want)
		}
	}
	sheet := study.Sheet()
	sheet.Answers = []string{sentence}
	for name, print := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, sheet, TextOptions{}) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, sheet, MarkdownOptions{}) },
	} {
		var b bytes.Buffer
		if err := print(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(strings.TrimLeft(b.String(), "*"), headline) {
			t.Errorf("%s does not begin with the answer:\n%s", name, b.String())
		}
	}
	run.Records = pointers(made())
	all := analyze(made(), fixtureOptions())
	if n := len(run.Answers(&all)); n != 0 {
		t.Errorf("a ranking has %d answers", n)
	}
}
