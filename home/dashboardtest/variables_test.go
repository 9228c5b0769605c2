package dashboardtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/telemetry/boards"
)

// builtin are Grafana's own variables for a quarter of an hour in a narrow panel, with the step of
// 5 s of testdata/series.txt.
var builtin = map[string]string{
	"__rate_interval": "1m", "__interval": "15s", "__range": "15m",
}

// fill replaces the variables of a text by values, and Grafana's own.
func fill(text string, values map[string]string) (filled string, unknown []string) {
	both := maps.Clone(builtin)
	maps.Copy(both, values)
	return boards.Fill(text, both)
}

// resolve returns the values of a dashboard's variables, see boards.Board.Resolve.
func resolve(t *testing.T, b *board, d boards.Valued) (all, each map[string]string) {
	t.Helper()
	all, each, problems := b.Resolve(d)
	for _, problem := range problems {
		t.Error(problem)
	}
	return all, each
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
	for _, b := range dashboards(t) {
		known := map[string]string{}
		for _, v := range b.Templating.List {
			known[v.Name] = "x"
			if v.Label == "" || v.Text() == "" {
				t.Errorf("%s: variable %s wants a label and a query", b.UID, v.Name)
			}
			if v.Type == "textbox" {
				continue
			}
			if v.Type != "query" || v.Text() != v.Definition {
				t.Errorf("%s: variable %s wants the type query, and one query in both places, "+
					"not %q and %q", b.UID, v.Name, v.Text(), v.Definition)
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
		for _, q := range b.Queries() {
			texts = append(texts, q.Text)
		}
		for _, v := range b.Templating.List {
			texts = append(texts, v.Definition)
		}
		for _, text := range texts {
			if _, unknown := fill(text, known); len(unknown) > 0 {
				t.Errorf("%s: %s refers to %v, which the dashboard does not have", b.UID, text,
					unknown)
			}
			for _, m := range boards.Reference.FindAllStringSubmatch(text, -1) {
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
