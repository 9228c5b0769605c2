package dashboardtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"prony.example/internal/telemetry/boards"
)

// patience limits npm, which waits long for a registry that does not answer.
const patience = 3 * time.Minute

// unreachable matches messages of npm without access to its packages, which are no fault of a
// dashboard.
var unreachable = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|` +
	`ENETUNREACH|ENOTCACHED|E40[134]\b|E50\d\b|ERR_SOCKET`)

// asked is a query in the input format of testdata/grammar/check.mjs.
type asked struct {
	In   language `json:"in"`
	Text string   `json:"text"`
}

// grammars installs Grafana's grammars of LogQL and TraceQL, which its editors use, and returns a
// function that checks queries. Loki's and Tempo's parsers are not separate libraries.
func grammars(t *testing.T) func([]asked) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("Grafana's grammars are fetched: not in -short")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on PATH: install Node to put LogQL and TraceQL to Grafana's grammars")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm on PATH: install Node to put LogQL and TraceQL to Grafana's grammars")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "check.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata/grammar", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := command(t, dir, nil, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err != nil && unreachable.Match(out) {
		t.Skipf("npm has no packages here: %s", out)
	}
	if err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return func(queries []asked) []string {
		t.Helper()
		in, err := json.Marshal(queries)
		if err != nil {
			t.Fatal(err)
		}
		out, err := command(t, dir, in, node, "check.mjs")
		if err != nil {
			t.Fatalf("node check.mjs: %v\n%s", err, out)
		}
		var problems []string
		if err := json.Unmarshal(out, &problems); err != nil || len(problems) != len(queries) {
			t.Fatalf("node check.mjs: %v, %d answers for %d queries\n%s", err, len(problems),
				len(queries), out)
		}
		return problems
	}
}

func command(t *testing.T, dir string, in []byte, name string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	return cmd.CombinedOutput()
}

// TestLogQLAndTraceQL checks the other queries with the grammars of Grafana's editors.
func TestLogQLAndTraceQL(t *testing.T) {
	check := grammars(t)
	d := open(t, series)
	var queries []asked
	var where []string
	for _, b := range dashboards(t) {
		all, each := resolve(t, &b, d)
		for _, q := range b.Queries() {
			if q.In != boards.LogQL && q.In != boards.TraceQL {
				continue
			}
			for _, values := range []map[string]string{all, each} {
				text, _ := fill(q.Text, values)
				queries, where = append(queries, asked{q.In, text}), append(where, q.Place)
			}
		}
	}
	for i, problem := range check(queries) {
		if problem != "" {
			t.Errorf("%s: %s %s: %s", where[i], queries[i].In, queries[i].Text, problem)
		}
	}
}

// TestGrammars checks that the grammars also refuse queries.
func TestGrammars(t *testing.T) {
	check := grammars(t)
	queries := []asked{
		{boards.LogQL, `{service_name="prony"} | kind="phase"`},
		{boards.LogQL, `{service_name="prony" | kind`},
		{boards.TraceQL, `{ span.a = "b" && duration > 20ms }`},
		{boards.TraceQL, `{ span.a = "b" && }`},
	}
	got := check(queries)
	for i, want := range []bool{true, false, true, false} {
		if (got[i] == "") != want {
			t.Errorf("%s %s: %q, want it understood: %v", queries[i].In, queries[i].Text, got[i],
				want)
		}
	}
}

// TestSelectors checks rules outside of the grammars: Loki needs a matcher that refuses the empty
// string, and selectors of profiles are Prometheus' own.
func TestSelectors(t *testing.T) {
	d := open(t, series)
	for _, b := range dashboards(t) {
		all, _ := resolve(t, &b, d)
		for _, q := range b.Queries() {
			if q.In != boards.Selector && q.In != boards.LogQL {
				continue
			}
			text, _ := fill(q.Text, all)
			if q.In == boards.LogQL {
				text = text[:strings.Index(text, "}")+1]
			}
			if _, err := d.parser.ParseExpr(text); err != nil {
				t.Errorf("%s: %s: %v", q.Place, text, err)
			}
		}
	}
}
