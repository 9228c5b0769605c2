package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony/internal/result"
	"prony/internal/tidy"
)

// measured is the folder of a run of two targets, of which rust-axum is the faster one.
func measured(t *testing.T, root, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(root, name)
	_, stderr, exit := say(t, mock{}, append([]string{"run", "--root", root, "--out", dir,
		"--targets", "go-nethttp,rust-axum", "--blocks", "4"}, args...)...)
	if exit != exitFine {
		t.Fatal(stderr)
	}
	return dir
}

// edit changes every record of a run.
func edit(t *testing.T, dir string, change func(*result.Record)) {
	t.Helper()
	_, records, _, err := result.Read(dir)
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
	if err := os.WriteFile(filepath.Join(dir, result.TrialsFile), lines, 0o644); err != nil {
		t.Fatal(err)
	}
}

// throughputOf multiplies that of a target.
func throughputOf(target string, by float64) func(*result.Record) {
	return func(r *result.Record) {
		if r.Target.Name == target {
			r.Loads[0].ThroughputPerS *= by
		}
	}
}

func TestCompare(t *testing.T) {
	root := checkout(t)
	a, b := measured(t, root, "a"), measured(t, root, "b", "--seed", "7")
	check := func(exit int, words string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append([]string{"compare"}, args...)...)
		if got != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%q exits with %d, want %d and %q:\n%s%s", args, got, exit, words, stdout,
				stderr)
		}
	}
	check(exitFine, "rust-axum against go-nethttp", a, "--targets", "go-nethttp,rust-axum")
	check(exitFine, "paired within blocks", a+":go-nethttp", a+":rust-axum")
	check(exitFine, "Nothing pairs these runs", a, b)
	check(exitFine, "rust-axum: run", a+":rust-axum", b)
	check(exitFine, "divided by those of the control go-nethttp", a, b, "--control", "go-nethttp")
	check(exitFine, "| peak throughput |", a, b, "--format", "markdown")
	check(exitFine, `"paired": true`, a, "--format", "json")
	check(exitFine, "\ncached read,half,open,p99,", a, b, "--format", "csv", "--metric", "p99")
	check(exitUsage, "no such row; there are go-nethttp, rust-axum", a+":go", b)
	check(exitUsage, "compare "+a+":go-nethttp with what?", a+":go-nethttp")
	check(exitUsage, "--targets names two rows", a, b, "--targets", "go-nethttp")
	check(exitUsage, "there is no format", a, "--format", "xml")
	check(exitUsage, "no row has a metric p98; see --metric all", a, "--metric", "p98")
	check(exitUsage, "got 0 arguments")
	check(exitError, "it has no run.json", filepath.Join(root, "c"), b)
	edit(t, b, func(r *result.Record) { r.Loads[0].Connections = 7 })
	check(exitError, "peak connections: 64 against 7\nto compare them all the same", a, b)
	check(exitFine, "!! UNLIKE METHODS", a, b, "--unlike")
}

// The page is a file; what it holds is tested where it is made.
func TestComparePage(t *testing.T) {
	root := checkout(t)
	dir, page := measured(t, root, "a"), filepath.Join(root, "page.html")
	_, stderr, exit := say(t, mock{}, "compare", dir, "--format", "html", "-o", page)
	if exit != exitFine {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(strings.ToLower(string(b)), "<!doctype html>") {
		t.Errorf("the page begins with %.40q, error %v", b, err)
	}
	if _, _, exit := say(t, mock{}, "compare", dir, "--format", "html"); exit != exitUsage {
		t.Errorf("a page on the terminal exits with %d", exit)
	}
}

func TestGate(t *testing.T) {
	root := checkout(t)
	a, b := measured(t, root, "a"), measured(t, root, "b")
	check := func(exit int, words string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append([]string{"gate"}, args...)...)
		if got != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%q exits with %d, want %d and %q:\n%s%s", args, got, exit, words, stdout,
				stderr)
		}
	}
	goBase, rust := a+":go-nethttp", a+":rust-axum"
	check(exitFine, "PASS: peak throughput", goBase, rust)
	check(exitGate, "FAIL: peak throughput", rust, goBase)
	check(exitGate, "::error title=prony gate fail%3A go-nethttp peak throughput::", rust, goBase,
		"--github")
	check(exitGate, `"outcome": "fail"`, rust, goBase, "--format", "json")
	check(exitGate, "❌", rust, goBase, "--format", "markdown")
	check(exitUsage, "want 5% or p99=10%", a, b, "--max-regression", "five")
	check(exitUsage, `--inconclusive is pass or fail, not "maybe"`, a, b, "--inconclusive", "maybe")
	check(exitUsage, "there is no format", a, b, "--format", "xml")
	check(exitUsage, "a page goes into a file", a, b, "--format", "html")
	summary := filepath.Join(root, "summary.md")
	check(exitGate, "FAIL: peak", rust, goBase, "--format", "markdown", "-o", summary)
	if md, err := os.ReadFile(summary); err != nil || !strings.HasPrefix(string(md), "❌") {
		t.Errorf("the summary is %s, error %v", md, err)
	}
	edit(t, b, throughputOf("go-nethttp", 0.95))
	close := []string{goBase, b + ":go-nethttp", "--max-regression", "5%"}
	check(exitInconclusive, "INCONCLUSIVE: peak throughput", close...)
	check(exitFine, "INCONCLUSIVE", append(close, "--inconclusive", "pass")...)
	check(exitGate, "INCONCLUSIVE", append(close, "--inconclusive", "fail")...)
	edit(t, b, func(r *result.Record) {
		if r.Block == 2 {
			r.Verdict.Grade = result.Invalid
		}
	})
	check(exitInvalid, "UNFIT: 1 trial of a side was INVALID", close...)
	check(exitInconclusive, "INCONCLUSIVE", append(close, "--allow-invalid", "1")...)
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
	check(exitError, "find runs: ", "--root", root)
	dir := filepath.Join(root, "results")
	first := measured(t, root, filepath.Join("results", "run-0"))
	_, records, _, err := result.Read(first)
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
		edit(t, copied, func(r *result.Record) {
			throughputOf("go-nethttp", by)(r)
			r.Time = records[0].Time.AddDate(0, 0, day)
		})
	}
	head := filepath.Join(dir, "run-3", result.RunFile)
	if err := os.WriteFile(head, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	check(exitFine, "slower: −10 %", "--root", root)
	check(exitFine, "prony: left out: read run", dir)
	check(exitGate, "9 runs", dir, "--fail-on-regression", "--metric", "throughput")
	check(exitFine, "no change", dir, "--fail-on-regression", "--targets", "rust-axum")
	check(exitFine, "| 1 change |", dir, "--format", "markdown")
	check(exitFine, `"worse": true`, dir, "--format", "json")
	check(exitFine, "scenario,target,method", dir, "--format", "csv")
	check(exitUsage, "--alpha is a probability", dir, "--alpha", "2")
	check(exitUsage, "there is no format", dir, "--format", "html")
	check(exitError, "find runs", filepath.Join(root, "nowhere"))
}

func TestHelpOfComparisonTeaches(t *testing.T) {
	for _, verb := range []string{"compare", "gate", "trend"} {
		stdout, _, exit := say(t, mock{}, verb, "--help")
		if exit != exitFine || !strings.Contains(stdout, "Examples:\n  prony "+verb) {
			t.Errorf("help of %s (exit %d) teaches little:\n%s", verb, exit, stdout)
		}
	}
}

// Every prony command of the example workflow parses: verbs, flags and their values are real.
func TestExampleWorkflow(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(repo, "examples", "github-actions.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var flow struct {
		Jobs map[string]struct {
			Steps []struct {
				Name, Uses, Run string
			}
		}
	}
	if err := yaml.Unmarshal(text, &flow); err != nil {
		t.Fatal(err)
	}
	verbs := map[string]int{}
	for _, s := range flow.Jobs["gate"].Steps {
		joined := strings.ReplaceAll(strings.ReplaceAll(s.Run, "\\\n", " "), "||\n", "||")
		for line := range strings.Lines(joined) {
			command, _, _ := strings.Cut(strings.ReplaceAll(line, `"`, ""), "||")
			words := strings.Fields(strings.ReplaceAll(command, "$BLOCKS", "10"))
			if len(words) == 0 || words[0] != "prony" {
				continue
			}
			root := newRoot(&app{world: mock{}, stdout: io.Discard, stderr: io.Discard})
			c, args, err := root.Find(words[1:])
			if err != nil || c == root {
				t.Fatalf("%q: %v", line, err)
			}
			if err := c.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			verbs[c.Name()]++
		}
	}
	if verbs["run"] != 1 || verbs["gate"] != 1 || verbs["compare"] != 1 {
		t.Errorf("the workflow uses %v", verbs)
	}
}

// Another checkout's targets run in the same blocks, and the run alone is what the gate needs.
func TestGateAgainstAnotherCheckout(t *testing.T) {
	root, base := checkout(t), checkout(t)
	dir := filepath.Join(root, "run")
	_, stderr, exit := say(t, mock{}, "run", "--root", root, "--against", base, "--out", dir,
		"--targets", "go-nethttp", "--blocks", "3")
	if exit != exitFine {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{{dir}, {dir + ":go-nethttp@base", dir + ":go-nethttp"}} {
		stdout, stderr, exit := say(t, mock{}, append([]string{"gate"}, args...)...)
		if exit != exitFine && exit != exitGate {
			t.Errorf("%q exits with %d: %s", args, exit, stderr)
		}
		has(t, "the gate", stdout, "go-nethttp against go-nethttp@base", "peak throughput")
		if strings.Contains(stdout, "Nothing pairs") {
			t.Errorf("%q is not paired:\n%s", args, stdout)
		}
	}
}
