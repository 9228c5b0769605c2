package report

import (
	"bytes"
	"slices"
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
	for i := range two { // of containers, whose rows have other names than the targets
		two[i].Target.Launcher = "docker"
		if two[i].Target.Name != "go-nethttp" {
			again := two[i]
			again.Target.Name, again.Target.ControlOf = "go-nethttp-again", "go-nethttp"
			two = append(two, again)
		}
	}
	run.Records = pointers(two)
	study = analyze(two, fixtureOptions())
	if answers = run.Answers(&study); len(answers) != 1 || !strings.HasPrefix(
		answers[0].Sentences()[0], "node-express in docker uses 267") {
		t.Errorf("%d answers of containers: %+v", len(answers), answers)
	}
	run.Records = pointers(made())
	all := analyze(made(), fixtureOptions())
	if n := len(run.Answers(&all)); n != 0 {
		t.Errorf("a ranking has %d answers", n)
	}
}

// The page of a single load begins with its verdict and the reasons, in the words of prony load.
func TestLoadBeginsWithItsVerdict(t *testing.T) {
	one := slices.Clone(made()[:1]) // made is shared
	one[0].Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{
		{Rule: "steal", Load: "peak", Grade: record.Suspect, Value: 0.05, Unit: record.UnitShare,
			PossibleBias: []record.Bias{{Metric: "throughput", Share: 0.06}}},
		{Rule: "drift", Load: "peak", Grade: record.Valid},
		{Rule: "retried", Load: "peak", Grade: record.Valid, Note: true},
	}}
	_, head, _ := strings.Cut(page(t, one, HTMLOptions{Only: &one[0]}), "<body>")
	head, _, _ = strings.Cut(head, "<nav")
	at := 0
	for _, want := range []string{"<h1>", " of java-netty: SUSPECT</h1>", "<strong>steal: ",
		" (can have moved throughput by 6.0 %)</strong><br>", "<strong>retried: ",
		"noted, too small to change a result: drift"} {
		next := strings.Index(head[at:], want)
		if next < 0 {
			t.Fatalf("the page's head has no %q after %q", want, head[:at])
		}
		at += next
	}
	run := &runs.Run{Head: record.Run{Suite: "load"}, Records: pointers(one)}
	study := analyze(one, fixtureOptions())
	texts := run.AnswerTexts(&study)
	const want = "load of java-netty: SUSPECT. steal: the hypervisor took 5.0 % of the processor " +
		"time (can have moved throughput by 6.0 %). retried: 0 of 0 requests were sent again."
	if len(texts) != 1 || texts[0] != want {
		t.Errorf("the answer is %q, want %q", texts, want)
	}
	run.Head.Trials = []string{one[0].Trial, "another"}
	if run.OnlyLoad(&study) != nil {
		t.Error("an interrupted run is taken for a load")
	}
	if html := page(t, one, HTMLOptions{}); strings.Contains(html, "of java-netty: SUSPECT") {
		t.Error("a run of one trial is taken for a load")
	}
}
