package main

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/tidy"
	"prony.example/record"
)

// measured returns the folder of a run of two targets, of which rust-axum is the faster one.
func measured(t *testing.T, root, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(root, name)
	_, stderr, exit := say(t, mock{}, append([]string{"run", "--root", root, "--out", dir,
		"--targets", "go-nethttp,rust-axum", "--blocks", "4"}, args...)...)
	if exit != cli.Fine {
		t.Fatal(stderr)
	}
	return dir
}

// edit changes every record of a run.
func edit(t *testing.T, dir string, change func(*record.Record)) {
	t.Helper()
	_, records, _, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for _, r := range records {
		change(r)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, b...), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, record.TrialsFile), lines, 0o644); err != nil {
		t.Fatal(err)
	}
}

// throughputOf multiplies the throughput of a target.
func throughputOf(target string, by float64) func(*record.Record) {
	return func(r *record.Record) {
		if r.Target.Name == target {
			l := &r.Loads[0]
			before := float64(l.Done + l.Errors.Total())
			l.ThroughputPerS *= by
			l.Done = int64(float64(l.Done) * by)
			for i, n := range l.Series.Done {
				l.Series.Done[i] = int64(float64(n) * by)
			}
			if len(l.Series.Done) > 0 {
				l.Done = 0
				for _, n := range l.Series.Done {
					l.Done += n
				}
			}
			after := float64(l.Done + l.Errors.Total()) // each takes the same CPU time
			l.Service.CPUNs = int64(float64(l.Service.CPUNs) * after / max(before, 1))
		}
	}
}

func TestTrend(t *testing.T) {
	root := checkout(t)
	check := func(exit int, words string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append([]string{"trend"}, args...)...)
		if got != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%q exits with %d, want %d and %q:\n%s%s", args, got, exit, words, stdout,
				stderr)
		}
	}
	check(cli.Failed, "find runs: ", "--root", root)
	dir := filepath.Join(root, "results")
	first := measured(t, root, filepath.Join("results", "run-0"))
	_, records, _, err := record.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	// Ten days, of which the last five have a tenth less; every day is a little different.
	for day := 1; day < 10; day++ {
		copied := filepath.Join(dir, "run-"+string(rune('0'+day)))
		if err := os.CopyFS(copied, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		by := 1 + 0.002*float64(day%3)
		if day >= 5 {
			by *= 0.9
		}
		edit(t, copied, func(r *record.Record) {
			throughputOf("go-nethttp", by)(r)
			r.Time = records[0].Time.AddDate(0, 0, day)
		})
	}
	head := filepath.Join(dir, "run-3", record.RunFile)
	if err := os.WriteFile(head, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	check(cli.Fine, "slower: −10 %", "--root", root)
	check(cli.Fine, "prony: run left out: read run", dir)
	check(cli.GateFailed, "9 runs", dir, "--fail-on-regression", "--metric", "throughput")
	check(cli.Fine, "no change", dir, "--fail-on-regression", "--targets", "rust-axum")
	check(cli.Fine, "| 1 change |", dir, "--format", "markdown")
	check(cli.Fine, `"worse": true`, dir, "--format", "json")
	check(cli.Fine, "scenario,target,config_hash", dir, "--format", "csv")
	check(cli.Misused, "--alpha must be a probability", dir, "--alpha", "2")
	check(cli.Misused, `--format "html": there are text, `, dir, "--format", "html")
	check(cli.Failed, "find runs", filepath.Join(root, "nowhere"))
}

// A row with an empty name, as from an unset variable, does not compare all rows.
func TestComparesNoEmptyRow(t *testing.T) {
	root := checkout(t)
	run := measured(t, root, "run")
	for _, args := range [][]string{{"gate", run + ":", run + ":"},
		{"gate", run + ":go-nethttp", run + ":"}, {"compare", run + ":", run + ":rust-axum"},
		{"compare", filepath.Join(run, record.RunFile) + ":", run}} {
		stdout, stderr, exit := say(t, mock{}, args...)
		if exit != cli.Misused || stdout != "" {
			t.Errorf("%q: exit %d, want %d\n%s%s", args, exit, cli.Misused, stdout, stderr)
		}
		has(t, "what is said", stderr, `:": the row after the colon is empty`)
	}
}

func TestHelpOfComparisonTeaches(t *testing.T) {
	for _, verb := range []string{"compare", "gate", "trend"} {
		stdout, _, exit := say(t, mock{}, verb, "--help")
		if exit != cli.Fine || !strings.Contains(stdout, "Examples:\n  prony "+verb) {
			t.Errorf("help of %s (exit %d) teaches little:\n%s", verb, exit, stdout)
		}
	}
}

// Every prony command of the examples parses: verbs, flags and their values are real.
func TestExamples(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	check := func(file string, want map[string]int) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(repo, "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		var flow map[string]any
		if err := yaml.Unmarshal(text, &flow); err != nil {
			t.Fatal(err)
		}
		if got := parseAll(t, flow); !maps.Equal(got, want) {
			t.Errorf("%s uses %v, want %v", file, got, want)
		}
	}
	check("github-actions.yml", map[string]int{"run": 1, "gate": 1, "compare": 1})
	check("gitlab-ci.yml", map[string]int{"versus": 1, "gate": 1, "compare": 1})
}

// parseAll parses the commands of prony in all texts of a document, and counts their verbs.
func parseAll(t *testing.T, v any) map[string]int {
	t.Helper()
	verbs := map[string]int{}
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			for verb, n := range parseAll(t, part) {
				verbs[verb] += n
			}
		}
	case []any:
		for _, part := range v {
			for verb, n := range parseAll(t, part) {
				verbs[verb] += n
			}
		}
	case string:
		joined := strings.ReplaceAll(strings.ReplaceAll(v, "\\\n", " "), "||\n", "||")
		for line := range strings.Lines(joined) {
			command, _, _ := strings.Cut(strings.ReplaceAll(line, `"`, ""), "||")
			words := strings.Fields(strings.ReplaceAll(command, "$BLOCKS", "10"))
			if len(words) > 1 && words[0] == "prony" {
				verbs[parseLine(t, line, words[1:])]++
			}
		}
	}
	return verbs
}

// parseLine parses one command and returns its verb.
func parseLine(t *testing.T, line string, words []string) string {
	t.Helper()
	root := newRoot(&app{world: mock{}, stdout: io.Discard, stderr: io.Discard})
	c, args, err := root.Find(words)
	if err != nil || c == root {
		t.Fatalf("%q: %v", line, err)
	}
	if err := c.ParseFlags(args); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	return c.Name()
}

// Another checkout's targets run in the same blocks, and the gate needs only the run.
func TestGateAgainstAnotherCheckout(t *testing.T) {
	root, base := checkout(t), checkout(t)
	dir := filepath.Join(root, "run")
	_, stderr, exit := say(t, mock{}, "run", "--root", root, "--against", base, "--out", dir,
		"--targets", "go-nethttp", "--blocks", "3")
	if exit != cli.Fine {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{{dir}, {dir + ":go-nethttp@base", dir + ":go-nethttp"}} {
		stdout, stderr, exit := say(t, mock{}, append([]string{"gate"}, args...)...)
		if exit != cli.Fine && exit != cli.GateFailed {
			t.Errorf("%q exits with %d: %s", args, exit, stderr)
		}
		has(t, "the gate", stdout, "go-nethttp against go-nethttp@base", "peak throughput")
		if strings.Contains(stdout, "not paired") {
			t.Errorf("%q is not paired:\n%s", args, stdout)
		}
	}
}

// TestOwnFiles checks that no report replaces a run's records, also not through a link, and that an
// error has the name of the file as it was typed.
func TestOwnFiles(t *testing.T) {
	dir := measured(t, checkout(t), "results/run")
	link := filepath.Join(t.TempDir(), "link.json")
	head := filepath.Join(dir, record.RunFile)
	if err := os.Symlink(head, link); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{head: "choose another file",
		link: "choose another file", filepath.Join(dir, record.TrialsFile): "choose another file",
		"/nowhere/x.json": "write report: open /nowhere/x.json: no such file or directory"} {
		_, stderr, exit := say(t, mock{}, "compare", dir, "--format", "json", "-o", file)
		if exit != cli.Failed || !strings.Contains(stderr, want) {
			t.Errorf("-o %s exits with %d: %s", file, exit, stderr)
		}
	}
	if after, err := os.ReadFile(head); err != nil || string(after) != string(before) {
		t.Errorf("the head has changed, error %v", err)
	}
}

// TestTrendOfCopies checks that copies of a run count once.
func TestTrendOfCopies(t *testing.T) {
	root := checkout(t)
	first := measured(t, root, "results/a")
	dir := filepath.Dir(first)
	if err := os.CopyFS(filepath.Join(dir, "b"), os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{dir}, {dir, "--metric", "throughput"}} {
		stdout, stderr, _ := say(t, mock{}, append([]string{"trend"}, args...)...)
		if !strings.HasPrefix(stdout, "1 run, ") ||
			!strings.Contains(stderr, "1 run left out: copies of other runs") {
			t.Errorf("%q: %s%s", args, stdout, stderr)
		}
	}
}
