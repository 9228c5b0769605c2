package boards

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Reference matches $name, ${name} and ${name:format}. A name that begins with a digit is a group
// of a regular expression, which Grafana also leaves unchanged.
var Reference = regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)(?::\w+)?\}|([A-Za-z_]\w*))`)

// Fill replaces the variables of a text by values, and returns the names of unknown ones. Grafana's
// own variables, such as $__interval, stay unless they have a value: its server replaces them.
func Fill(text string, values map[string]string) (filled string, unknown []string) {
	filled = Reference.ReplaceAllStringFunc(text, func(reference string) string {
		m := Reference.FindStringSubmatch(reference)
		name := m[1] + m[2]
		if v, ok := values[name]; ok {
			return v
		}
		if !strings.HasPrefix(name, "__") {
			unknown = append(unknown, name)
		}
		return reference
	})
	return filled, unknown
}

// labelValues matches the only form of a variable's query used here.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// Valued provides the values of variables.
type Valued interface {
	// Values returns the values of a label in the series that a selector finds, ascending.
	Values(uid, selector, label string) ([]string, error)
}

// Resolve returns the values of a dashboard's variables as Grafana determines them: in order,
// because one may refer to previous ones. In all, everything is selected if possible; in joined,
// the single values are joined as Grafana joins them. Problems are variables without values.
func (b *Board) Resolve(d Valued) (all, joined map[string]string, problems []string) {
	all, joined = map[string]string{}, map[string]string{}
	report := func(format string, args ...any) {
		problems = append(problems, b.UID+": variable "+fmt.Sprintf(format, args...))
	}
	for _, v := range b.Templating.List {
		if v.Type == "textbox" {
			all[v.Name] = v.Text()
			joined[v.Name] = all[v.Name]
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			report("%s has the query %q, want label_values(METRIC, LABEL)", v.Name, v.Definition)
			continue
		}
		text, unknown := Fill(m[1], all)
		if len(unknown) > 0 {
			report("%s refers to %v, and no previous variable has this name", v.Name, unknown)
			continue
		}
		values, err := d.Values(v.Datasource.UID, text, m[2])
		if err != nil {
			report("%s: %v", v.Name, err)
			continue
		}
		if len(values) == 0 {
			report("%s: no series of %s has the label %s", v.Name, text, m[2])
			continue
		}
		all[v.Name], joined[v.Name] = v.AllValue, join(values)
		if !v.IncludeAll {
			all[v.Name] = values[len(values)-1] // the newest run
			joined[v.Name] = all[v.Name]
		}
	}
	return all, joined, problems
}

// Text returns a variable's query, or the initial text of a textbox.
func (v Variable) Text() string {
	var object struct{ Query string }
	if err := json.Unmarshal(v.Query, &object.Query); err == nil {
		return object.Query
	}
	if err := json.Unmarshal(v.Query, &object); err != nil {
		return "" // not valid for a variable
	}
	return object.Query
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
