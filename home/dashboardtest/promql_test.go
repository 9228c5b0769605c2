package dashboardtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/boards"
)

const series = "testdata/series.txt"

// TestPromQL checks every query with Prometheus' parser and engine, over the series that are really
// sent: with all values selected, and with each single value.
func TestPromQL(t *testing.T) {
	d := open(t, series)
	for _, b := range dashboards(t) {
		all, each := resolve(t, &b, d)
		for _, q := range b.Queries() {
			if q.In != boards.PromQL {
				continue
			}
			for _, values := range []map[string]string{all, each} {
				text, unknown := fill(q.Text, values)
				if len(unknown) > 0 {
					t.Errorf("%s: no value for %v", q.Place, unknown)
					continue
				}
				for _, problem := range d.judge(text, q.Legend) {
					t.Errorf("%s, with %s: %s\n%s", q.Place, describeValues(values), problem, text)
				}
			}
		}
	}
}

// judge returns what is wrong with an expression: it is invalid, it or a part of it finds nothing,
// or it groups by a label that no series has.
func (d *data) judge(expr, legend string) []string {
	tree, err := d.parser.ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	got, err := d.ask(expr)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	if len(got) == 0 {
		problems = append(problems, "there is no such series")
	}
	for _, s := range got {
		if s.F != s.F {
			problems = append(problems, "the answer is not a number: "+s.Metric.String())
		}
	}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		problems = append(problems, d.judgeNode(n)...)
		return nil
	})
	return append(problems, missing(legend, got)...)
}

func (d *data) judgeNode(n parser.Node) []string {
	switch n := n.(type) {
	case *parser.VectorSelector:
		found, err := d.selected(n.LabelMatchers)
		if err != nil {
			return []string{err.Error()}
		}
		if len(found) == 0 {
			return []string{"nothing has " + n.String()}
		}
		var problems []string
		for _, m := range n.LabelMatchers {
			// A misspelt label is empty everywhere, and !=, =~".*" and ="" match that.
			has := func(l labels.Labels) bool { return l.Has(m.Name) }
			if !slices.ContainsFunc(d.named(n), has) {
				problems = append(problems, fmt.Sprintf("no %s has the label %s", n.Name, m.Name))
			}
		}
		return problems
	case *parser.AggregateExpr:
		if n.Without {
			return []string{"it groups without labels: new ones would change its answer"}
		}
		return d.judgeLabels(n.Expr, n.Grouping)
	case *parser.BinaryExpr:
		if n.VectorMatching != nil && n.VectorMatching.On {
			return append(d.judgeLabels(n.LHS, n.VectorMatching.MatchingLabels),
				d.judgeLabels(n.RHS, n.VectorMatching.MatchingLabels)...)
		}
	}
	return nil
}

// named returns the series of a selector's metric with any other labels.
func (d *data) named(n *parser.VectorSelector) []labels.Labels {
	i := slices.IndexFunc(n.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == labels.MetricName
	})
	if i < 0 {
		return nil
	}
	found, err := d.selected(n.LabelMatchers[i : i+1])
	if err != nil {
		return nil // the caller reports that it found nothing
	}
	return found
}

// judgeLabels reports labels of an expression that no series has.
func (d *data) judgeLabels(e parser.Expr, names []string) []string {
	have := map[string]bool{}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			for _, l := range d.named(n) {
				l.Range(func(one labels.Label) { have[one.Name] = true })
			}
		case *parser.Call:
			if n.Func.Name == "label_replace" {
				if dst, ok := n.Args[1].(*parser.StringLiteral); ok {
					have[dst.Val] = true
				}
			}
		}
		return nil
	})
	var problems []string
	for _, name := range names {
		if !have[name] {
			problems = append(problems, fmt.Sprintf("nothing in %s has the label %s", e, name))
		}
	}
	return problems
}

var inLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// missing reports labels of a legend that no sample has.
func missing(legend string, got promql.Vector) []string {
	var problems []string
	for _, m := range inLegend.FindAllStringSubmatch(legend, -1) {
		has := func(s promql.Sample) bool { return s.Metric.Has(m[1]) }
		if !slices.ContainsFunc(got, has) {
			problems = append(problems, fmt.Sprintf("the legend %q wants the label %s, which no "+
				"sample has", legend, m[1]))
		}
	}
	return problems
}

// TestJudge checks that each kind of mistake is found.
func TestJudge(t *testing.T) {
	d := open(t, series)
	check := func(expr, legend, want string) {
		t.Helper()
		got := strings.Join(d.judge(expr, legend), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	check(`sum by (target) (prony_load_outstanding)`, "{{target}}", "")
	check(`sum by (target (prony_load_outstanding)`, "", "parse error")
	check(`sum(prony_load_outstandin)`, "", "there is no such series")
	check(`sum(prony_load_outstandin) or vector(0)`, "", "nothing has prony_load_outstandin")
	check(`sum by (taget) (prony_load_outstanding)`, "", "has the label taget")
	check(`prony_load_outstanding{taget=~".*"}`, "",
		"no prony_load_outstanding has the label taget")
	check(`prony_load_outstanding / on (targt) group_left () sum(prony_load_outstanding)`, "",
		"has the label targt")
	check(`sum by (target) (prony_load_outstanding)`, "{{load}}", "wants the label load")
	check(`rate(prony_load_outstanding[1s])`, "", "there is no such series")
	check(`sum(prony_service_throttled_share) / 0`, "", "not a number")
	check(`sum without (trial) (prony_load_outstanding)`, "", "groups without")
	check(`sum by (mode) (label_replace(jvm_class_count, "mode", "$1", "job", ".*/(.*)"))`,
		"{{mode}}", "")
}

// TestOwnMetrics compares the list of Prony's own metrics, the fixture and the dashboards.
func TestOwnMetrics(t *testing.T) {
	d := open(t, series)
	var asked strings.Builder
	for _, b := range dashboards(t) {
		for _, q := range b.Queries() {
			asked.WriteString(q.Text + "\n")
		}
	}
	known := map[string]bool{"prony_phase": true}
	for _, name := range telemetry.LiveMetrics {
		known[name] = true
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(asked.String()) {
			t.Errorf("no dashboard has %s, which prony load sends", name)
		}
	}
	for _, m := range telemetry.Metrics {
		known[m.Name] = true
		found, err := d.selected([]*labels.Matcher{
			labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, m.Name)})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("%s has no %s, which the lab sends", boards.Folder, m.Name)
		}
		may := append(slices.Clone(telemetry.CommonLabels), m.Labels...)
		may = append(may, labels.MetricName, "job", "service_name")
		for _, l := range found {
			for name := range l.Map() {
				if !slices.Contains(may, name) {
					t.Errorf("%s: %s has the label %s, which the lab does not give it",
						boards.Folder, m.Name, name)
				}
			}
		}
		if !regexp.MustCompile(`\b` + m.Name + `\b`).MatchString(asked.String()) {
			t.Errorf("no dashboard has %s, which the lab sends", m.Name)
		}
	}
	for _, name := range d.metrics(t) {
		if strings.HasPrefix(name, "prony_") && !known[name] {
			t.Errorf("%s has %s, which Prony does not send; it sends %s", boards.Folder, name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
}
