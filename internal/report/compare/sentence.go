package compare

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"prony.example/internal/base/units"
	"prony.example/record/metric"
)

// Decisive lists the words for the metric that decides a comparison of services.
var Decisive = []string{"cpu", "throughput", "p99", "capacity"}

var decisiveMetrics = map[string]string{"cpu": "peak/cpu_per_request",
	"throughput": "peak/throughput", "p99": "half/p99", "capacity": "users/capacity"}

// DecidedBy returns the metrics of an answer, as Options.Metrics has them: that of a word of
// Decisive, then the others. If the first one has no value, the next one decides.
func DecidedBy(word string) []string {
	metrics := []string{decisiveMetrics[word]}
	for _, candidate := range Decisive {
		if candidate != word {
			metrics = append(metrics, decisiveMetrics[candidate])
		}
	}
	return metrics
}

// Sentence returns the answer in words: how b differs from a in the metric that decides, with its
// interval or the smallest difference that would have been detected, then in the other metrics.
func (c Comparison) Sentence(a, b string) string {
	return strings.Join(c.Sentences(a, b), " ")
}

// Sentences returns the sentences of Sentence: the one on the metric that decides comes first.
func (c Comparison) Sentences(a, b string) (texts []string) {
	var rows []*Row
	for _, r := range c.each() {
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil
	}
	decides := max(slices.IndexFunc(rows, func(r *Row) bool { return r.requested }), 0)
	texts = append(texts, rows[decides].decided(a, b))
	for i, r := range rows {
		if i != decides {
			texts = append(texts, r.brief())
		}
	}
	return texts
}

// decided returns a row as a sentence with both names.
func (r *Row) decided(a, b string) string {
	if r.Ratio == nil && (r.Outcome == Better || r.Outcome == Worse) {
		return fmt.Sprintf("%s: %s, %s in %s than %s.", b, changeText(*r), r.Text, r.Label, a)
	}
	if r.Outcome == Silent {
		return fmt.Sprintf("%s and %s: no comparison of %s: %s.", b, a, r.Label, r.OutcomeText())
	}
	if r.Outcome != Better && r.Outcome != Worse || !r.HasRatio() {
		return fmt.Sprintf("%s and %s: %s in %s.", b, a, r.OutcomeText(), r.Label)
	}
	how := fmt.Sprintf("%s has %s %s than %s", b, Comparative(r.Ratio.Center, "more", "less"),
		r.Label, a)
	switch r.Metric {
	case metric.CPU:
		how = fmt.Sprintf("%s uses %s %s than %s", b,
			Comparative(r.Ratio.Center, "more", "less"), r.Label, a)
	case metric.Throughput:
		how = fmt.Sprintf("%s serves %s requests per second than %s", b,
			Comparative(r.Ratio.Center, "more", "fewer"), a)
	case metric.Capacity:
		how = fmt.Sprintf("%s has a capacity that is %s than that of %s", b,
			Comparative(r.Ratio.Center, "higher", "lower"), a)
	default:
		if metric.Named(r.Metric, r.Unit).Quantile > 0 {
			how = fmt.Sprintf("%s of %s is %s than that of %s", r.Label, b,
				Comparative(r.Ratio.Center, "longer", "shorter"), a)
		}
	}
	return fmt.Sprintf("%s (%.3g %% CI %s)%s.", how, 100*r.Ratio.Confidence, Interval(*r.Ratio),
		r.suspicion())
}

// brief returns a row as a short sentence that follows another one.
func (r *Row) brief() string {
	name := capital(r.Label)
	if r.Outcome == Better || r.Outcome == Worse {
		return fmt.Sprintf("%s: %s%s.", name, changeText(*r), r.suspicion())
	}
	return fmt.Sprintf("%s: %s.", name, r.OutcomeText())
}

// capital returns a text with a capital as its first letter, unless it is a name such as p99.
func capital(text string) string {
	if first := []rune(text); len(first) > 1 && !unicode.IsDigit(first[1]) {
		return strings.ToUpper(string(first[:1])) + string(first[1:])
	}
	return text
}

// Comparative formats a ratio as a difference in words: 1.049 is "4.9 % more".
func Comparative(ratio float64, up, down string) string {
	if ratio < 1 {
		return units.Percent(1-ratio) + " " + down
	}
	return units.Percent(ratio-1) + " " + up
}
