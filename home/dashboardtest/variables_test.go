package dashboardtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// builtin are Grafana's own variables, as they would be for a quarter of an hour in a panel that is
// not very wide. A step of 5 s is that of testdata/series.txt.
var builtin = map[string]string{
	"__rate_interval": "1m", "__interval": "15s", "__range": "15m",
}

// reference finds $name, ${name} and ${name:format}. What begins with a digit is no variable but a
// group of a regular expression, and Grafana leaves it alone, too.
var reference = regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)(?::\w+)?\}|([A-Za-z_]\w*))`)

// fill puts values for the variables of a text, and returns the names of those that it has none
// for.
func fill(text string, values map[string]string) (filled string, unknown []string) {
	filled = reference.ReplaceAllStringFunc(text, func(found string) string {
		m := reference.FindStringSubmatch(found)
		name := m[1] + m[2]
		if v, ok := builtin[name]; ok {
			return v
		}
		if v, ok := values[name]; ok {
			return v
		}
		unknown = append(unknown, name)
		return found
	})
	return filled, unknown
}

// labelValues is the only form of a variable's query that is used here.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// valued is what a variable's values come from: the fixture's data, or a stack that is up.
type valued interface {
	// values are those of a label of the series that a selector finds, ascending.
	values(uid, selector, label string) ([]string, error)
}

// resolve finds the values of a dashboard's variables in data, as Grafana does: in their order, as
// one may refer to those before it. In all, everything is chosen where that can be; in each, every
// value one by one, joined as Grafana joins them.
func resolve(t *testing.T, b *board, d valued) (all, each map[string]string) {
	t.Helper()
	all, each = map[string]string{}, map[string]string{}
	for _, v := range b.Templating.List {
		if v.Type == "textbox" {
			all[v.Name] = v.text()
			each[v.Name] = all[v.Name]
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("%s: variable %s asks for %q, want label_values(METRIC, LABEL)", b.UID, v.Name,
				v.Definition)
			continue
		}
		text, unknown := fill(m[1], all)
		if len(unknown) > 0 {
			t.Errorf("%s: variable %s refers to %v, of which none is before it", b.UID, v.Name,
				unknown)
			continue
		}
		found, err := d.values(v.Datasource.UID, text, m[2])
		if err != nil {
			t.Errorf("%s: variable %s: %v", b.UID, v.Name, err)
			continue
		}
		if len(found) == 0 {
			t.Errorf("%s: variable %s: no series of %s has the label %s", b.UID, v.Name, text, m[2])
			continue
		}
		all[v.Name], each[v.Name] = v.AllValue, join(found)
		if !v.IncludeAll {
			all[v.Name] = found[len(found)-1] // the newest run
			each[v.Name] = all[v.Name]
		}
	}
	return all, each
}

// text is what a variable asks, or, of a textbox, what stands in it at first.
func (v variable) text() string {
	var of struct{ Query string }
	if err := json.Unmarshal(v.Query, &of.Query); err == nil {
		return of.Query
	}
	if err := json.Unmarshal(v.Query, &of); err != nil {
		return "" // which is none that a variable may have
	}
	return of.Query
}

// join is how Grafana gives several values to a regular expression.
func join(values []string) string {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, strings.ReplaceAll(regexp.QuoteMeta(v), `\`, `\\`))
	}
	slices.Sort(quoted)
	return "(" + strings.Join(quoted, "|") + ")"
}

func TestFill(t *testing.T) {
	check := func(text, want string, wantUnknown ...string) {
		t.Helper()
		got, unknown := fill(text, map[string]string{"run": "r1", "service": "a|b"})
		if got != want || !slices.Equal(unknown, wantUnknown) {
			t.Errorf("fill %q: %q and unknown %q, want %q and %q", text, got, unknown, want,
				wantUnknown)
		}
	}
	check(`x{run="$run"}[$__range]`, `x{run="r1"}[15m]`)
	check(`{ a =~ "${service:pipe}" }`, `{ a =~ "a|b" }`)
	check(`label_replace(x, "mode", "$1", "s", ".*/(.*)")`,
		`label_replace(x, "mode", "$1", "s", ".*/(.*)")`)
	check(`x{a="$rum",b="$runs"}`, `x{a="$rum",b="$runs"}`, "rum", "runs")
}

// TestVariables looks whether all that are used are there, and all that are there are used.
func TestVariables(t *testing.T) {
	for _, b := range boards(t) {
		known := map[string]string{}
		for _, v := range b.Templating.List {
			known[v.Name] = "x"
			if v.Label == "" || v.text() == "" {
				t.Errorf("%s: variable %s wants a label and a query", b.UID, v.Name)
			}
			if v.Type == "textbox" {
				continue
			}
			if v.Type != "query" || v.text() != v.Definition {
				t.Errorf("%s: variable %s wants the type query, and one query in both places, "+
					"not %q and %q", b.UID, v.Name, v.text(), v.Definition)
			}
			if v.IncludeAll && v.AllValue == "" {
				t.Errorf("%s: variable %s says nothing for All: Grafana would name every value",
					b.UID, v.Name)
			}
			if v.Refresh != 2 {
				t.Errorf("%s: variable %s is not asked for again when the time range changes",
					b.UID, v.Name)
			}
		}
		used := map[string]bool{}
		texts := []string{}
		for _, q := range b.queries() {
			texts = append(texts, q.text)
		}
		for _, v := range b.Templating.List {
			texts = append(texts, v.Definition)
		}
		for _, text := range texts {
			if _, unknown := fill(text, known); len(unknown) > 0 {
				t.Errorf("%s: %s refers to %v, which the dashboard does not have", b.UID, text,
					unknown)
			}
			for _, m := range reference.FindAllStringSubmatch(text, -1) {
				used[m[1]+m[2]] = true
			}
		}
		for name := range known {
			if !used[name] {
				t.Errorf("%s: variable %s is in no query", b.UID, name)
			}
		}
	}
}

// describeValues is for failures.
func describeValues(values map[string]string) string {
	var all []string
	for k, v := range values {
		all = append(all, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
