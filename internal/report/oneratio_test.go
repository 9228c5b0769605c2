package report

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/record"
	"prony.example/stats"
)

// rated returns a trial of a target with a rate under the load peak.
func rated(name string, block int, perS float64) record.Record {
	r := trialOf(subject{target: named(name, "Go", "", "", "native", "")}, block, block,
		time.Date(2026, 11, 21, 3, block, 0, 0, time.UTC))
	n := int64(10 * perS)
	r.Loads = []record.Load{{Name: "peak", Model: record.Closed, Connections: 64, Threads: 1,
		WindowNs: 10e9, Scheduled: n, Sent: n, Done: n, Answered: n, ThroughputPerS: perS}}
	return r
}

// outputs returns the same ratio, of b to a, as each output has it.
func outputs(t *testing.T, records []record.Record) map[string]string {
	t.Helper()
	run := &runs.Run{Head: record.Run{Baseline: "a",
		Command: []string{"prony", "versus", "--by", "throughput"}}, Records: pointers(records)}
	study := analyze(records, table.Options{Baseline: "a"})
	answers := run.Answers(&study)
	if len(answers) != 1 {
		t.Fatalf("%d answers", len(answers))
	}
	c := answers[0].Comparison
	limit := compare.Limit{Load: "peak", Metric: "throughput", Most: 0.05}
	gate, err := compare.Judge(c, []compare.Limit{limit}, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"the answer": strings.Join(answers[0].Sentences(), " ")}
	sheet := study.Sheet()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"the table": func(b *bytes.Buffer) error { return Text(b, sheet, TextOptions{}) },
		"its Markdown": func(b *bytes.Buffer) error {
			return Markdown(b, sheet, MarkdownOptions{})
		},
		"the report": func(b *bytes.Buffer) error { return HTML(b, study, HTMLOptions{}) },
		"the report's answer": func(b *bytes.Buffer) error {
			return HTML(b, study, HTMLOptions{Answers: answers})
		},
		"compare":           func(b *bytes.Buffer) error { return compare.Text(b, c) },
		"compare, Markdown": func(b *bytes.Buffer) error { return compare.Markdown(b, c) },
		"compare, its page": func(b *bytes.Buffer) error { return Compare(b, c, HTMLOptions{}) },
		"gate":              func(b *bytes.Buffer) error { return compare.GateText(b, gate) },
		"gate, Markdown":    func(b *bytes.Buffer) error { return compare.GateMarkdown(b, gate) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := html.UnescapeString(b.String())
		text = strings.NewReplacer(pageJS, "", pageCSS, "", "\u00a0", " ", "\\", "").Replace(text)
		out[name] = strings.Join(strings.Fields(text), " ")
	}
	return out
}

// A ratio with a wide interval is unknown if the interval includes 1, and is printed if not:
// tables, answers, gates and pages agree. The interval of three blocks is that of Student's t with
// two degrees of freedom.
func TestOneRuleForWideRatios(t *testing.T) {
	check := func(known bool, ratios ...float64) {
		t.Helper()
		var records []record.Record
		var as, bs []float64
		for i, ratio := range ratios {
			a := 1000 * float64(i+10)
			as, bs = append(as, a), append(bs, a*ratio)
			records = append(records, rated("a", i+1, a), rated("b", i+1, a*ratio))
		}
		r := stats.PairedRatio(as, bs, 0.95)
		changes := units.Change(r.Lo) + " to " + units.Change(r.Hi)
		numbers := func(format string) string { return fmt.Sprintf(format, r.Lo, r.Hi) }
		want := map[string]string{"the table": numbers("[%.2f, %.2f]"),
			"its Markdown": numbers("[%.2f, %.2f]"), "the report": numbers("%.2f – %.2f")}
		for name, text := range outputs(t, records) {
			ends := want[name]
			if ends == "" {
				ends = changes
			}
			if strings.Contains(text, ends) != known {
				t.Errorf("%v: %s has %q: %v, want %v\n%s", ratios, name, ends, !known, known, text)
			}
		}
	}
	check(true, 1.2, 1.25, 1.3)    // 1.13 to 1.38
	check(true, 8, 20, 40)         // 2.5 to 138
	check(true, 0.125, 0.05, 0.01) // 0.002 to 0.84
	check(false, 0.5, 2, 1.5)      // 0.19 to 7
}
