package dashboardtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// builtin are Grafana's own variables for a quarter of an hour in a narrow panel, with the step of
// 5 s of testdata/series.txt.
var builtin = map[string]string{
	"__rate_interval": "1m", "__interval": "15s", "__range": "15m",
}

// reference matches $name, ${name} and ${name:format}. A name that begins with a digit is a group
// of a regular expression, which Grafana also leaves unchanged.
var reference = regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)(?::\w+)?\}|([A-Za-z_]\w*))`)

// fill replaces the variables of a text by values, and returns the names of unknown ones.
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

// labelValues matches the only form of a variable's query used here.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// valued provides the values of variables: the fixture's data, or a running stack.
type valued interface {
	// values returns the values of a label in the series that a selector finds, ascending.
	values(uid, selector, label string) ([]string, error)
}

// resolve returns the values of a dashboard's variables as Grafana determines them: in order,
// because one may refer to previous ones. In all, everything is selected if possible; in each, the
// single values are joined as Grafana joins them.
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

// text returns a variable's query, or the initial text of a textbox.
func (v variable) text() string {
	var of struct{ Query string }
	if err := json.Unmarshal(v.Query, &of.Query); err == nil {
		return of.Query
	}
	if err := json.Unmarshal(v.Query, &of); err != nil {
		return "" // not valid for a variable
	}
	return of.Query
}

// join formats several values for a regular expression as Grafana does.
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

// TestVariables checks that all used variables exist, and that all existing ones are used.
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

// describeValues formats values for failures.
func describeValues(values map[string]string) string {
	var all []string
	for k, v := range values {
		all = append(all, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
