package main

import (
	"strings"
	"testing"

	"prony.example/record"
)

// Every verb that prints a run names a planned load that a record lacks.
func TestMissingLoadIsNamed(t *testing.T) {
	root := checkout(t)
	dir := measured(t, root, "run")
	lost := ""
	edit(t, dir, func(r *record.Record) {
		if lost == "" {
			lost, r.Loads = r.Loads[0].Name, r.Loads[1:]
		}
	})
	pair := []string{dir + ":go-nethttp", dir + ":rust-axum"}
	for _, args := range [][]string{{"report", dir}, {"report", dir, "--format", "json"},
		{"report", dir, "--format", "markdown"}, append([]string{"compare"}, pair...),
		append([]string{"compare", "--format", "json"}, pair...),
		append([]string{"gate"}, pair...), {"audit", dir}} {
		stdout, stderr, _ := say(t, mock{}, args...)
		want := "load " + lost + " is missing: run.json plans it"
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%q prints\n%s%s\nwant %q", args, stdout, stderr, want)
		}
	}
}
