package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

// The formats of a report with their own flags, and the combinations that they refuse.
func TestReportForms(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "r")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--blocks", "2", "--out",
		dir); exit != cli.Fine {
		t.Fatal(stderr)
	}
	check := func(exit int, has, not string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append([]string{"report", dir}, args...)...)
		all := stdout + stderr
		if got != exit || !strings.Contains(all, has) || not != "" && strings.Contains(all, not) {
			t.Errorf("%q exits %d and says\n%.2000s\nwant %d with %q without %q", args, got, all,
				exit, has, not)
		}
	}
	const method = "[how the numbers are made](docs/method.md)"
	check(cli.Fine, method, "<details>", "--format", "markdown")
	check(cli.Fine, " RSS |", "", "--format", "markdown", "--columns", "all")
	check(cli.Fine, method, " RSS |", "--format", "markdown", "--columns", "essential")
	check(cli.Fine, "| target | cost RSS |", "p99", "--format", "markdown", "--columns", "cost/rss")
	check(cli.Fine, "without stalls", "p99", "--format", "markdown", "--columns",
		"peak/withoutStalls") // the suite does not request it
	check(cli.Fine, "<details>", "", "--format", "markdown", "--fold")
	check(cli.Fine, "</svg>", "|", "--format", "svg")
	check(cli.Misused, `--columns "few" does not exist; choose all, essential, or for this run `+
		`tier, `, "",
		"--format", "markdown", "--columns", "cost/rss,few")
	check(cli.Misused, `--table "rows": there are trials, summary, series`, "", "--table", "rows")
	check(cli.Misused, `--format "xml": there are text, `, "", "--format", "xml")
	saved, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(saved), "docs/method.md") {
		t.Error("the run's folder has a link that leads nowhere from there")
	}
}

// The collector stores tables as Parquet, selected by format or suffix. A Parquet file begins and
// ends with its magic number.
func TestReportAsParquet(t *testing.T) {
	testsets.Once(t, "the home of telemetry", testsets.Needs{Files: homeSources})
	onPath(t)
	dir := measured(t, checkout(t), "r")
	check := func(args ...string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "y.parquet")
		_, stderr, exit := say(t, mock{}, append([]string{"report", dir, "-o", file},
			args...)...)
		b, err := os.ReadFile(file)
		if text := string(b); exit == cli.Fine && err == nil &&
			strings.HasPrefix(text, "PAR1") && strings.HasSuffix(text, "PAR1") {
			return text
		}
		t.Fatalf("%q exits %d, said %s, wrote %.20q, %v", args, exit, stderr, b, err)
		return ""
	}
	check()
	for _, table := range []string{"trials", "summary", "series"} {
		text := check("--format", "parquet", "--table", table)
		if !strings.Contains(text, "prony.table") || !strings.Contains(text, table) {
			t.Errorf("%s is not a table of Parquet: %.20q", table, text)
		}
	}
}
