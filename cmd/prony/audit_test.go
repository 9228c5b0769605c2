package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/schema"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/report/audit"
)

// published returns a file of the audit's tests, from here.
func published(name string) string {
	return filepath.Join("..", "..", "internal", "report", "audit", "testdata", name)
}

func TestAuditExitsAsItFinds(t *testing.T) {
	check := func(exit int, wants []string, args ...string) {
		t.Helper()
		out, errs, got := say(t, mock{}, append([]string{"audit"}, args...)...)
		if got != exit {
			t.Errorf("audit %v exits %d, want %d\n%s%s", args, got, exit, out, errs)
		}
		has(t, strings.Join(args, " "), out+errs, wants...)
	}
	empty := filepath.Join(t.TempDir(), "empty.txt")
	words := filepath.Join(t.TempDir(), "words.md")
	for file, text := range map[string]string{empty: "", words: "# Words\n\nonly\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	contradicts, doubtful := published("docker-microservices.md"), published("easeagent-k6.md")
	check(cli.Invalid, []string{"CONTRADICTION: asked requests", "999,979",
		"docker-microservices.md:20",
		"5 contradictions", "Not checked, because numbers are missing"}, contradicts)
	check(cli.Fine, []string{"times from 1.43s to 1.6s", "0 contradictions"},
		doubtful)
	check(cli.Invalid, []string{"5 contradictions", "0 contradictions"}, doubtful, contradicts)
	// An unreadable file does not prevent the report of the others.
	check(cli.Failed, []string{"5 contradictions", "is empty"}, empty, contradicts)
	check(cli.Failed, []string{"has no results", "--column NAME=MEANING"}, words)
	check(cli.Failed, []string{"no such file"}, "absent.md")
	check(cli.Misused, []string{"write NAME=MEANING"}, "--column", "Speed", contradicts)
	check(cli.Misused, []string{`no file has a column "Speed"; known columns are `, "Requests/s"},
		"--column",
		"Speed=rate", contradicts)
	check(cli.Misused, []string{`no file has a column "Speed"`, "no such file"}, "--column",
		"Speed=rate",
		"absent.csv")
	check(cli.Invalid, []string{"could not read 3 lines:", `Requests/s "TOO SLOW"`}, contradicts)
	check(cli.Misused, []string{"expected prony audit FILE"})
	check(cli.Fine, []string{"p99.9", "exit code is 4", "trials.ndjson"}, "--help")
}

func TestAuditPrintsJSON(t *testing.T) {
	out, errs, exit := say(t, mock{}, "audit", "--json", published("java-http.json"))
	schema.Valid(t, "audit", []byte(out))
	var got audited
	if err := json.Unmarshal([]byte(out), &got); err != nil || exit != cli.Invalid {
		t.Fatalf("exit %d, %v\n%s%s", exit, err, out, errs)
	}
	if got.Version != auditVersion || len(got.Files) != 1 {
		t.Fatalf("%+v", got)
	}
	f := got.Files[0]
	i := slices.IndexFunc(f.Findings,
		func(f audit.Finding) bool { return f.Rule == "asked duration" })
	if i != 0 || f.Findings[0].Cases[0].Line != 18 || f.Findings[0].Source == "" ||
		f.Rules != f.Checked+len(f.Unchecked) {
		t.Errorf("%+v", f)
	}
	out, _, _ = say(t, mock{}, "audit", "--json", "absent")
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Files) != 0 {
		t.Errorf("of nothing it prints %s (%v)", out, err)
	}
}

// The page shows the program's output, line by line; an ellipsis leaves lines out.
func TestAuditPageShowsWhatIsSaid(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := tidy.Commands(repo)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(repo)
	shown := 0
	for _, c := range commands {
		if c.File != "docs/audit.md" {
			continue
		}
		shown++
		out, _, _ := say(t, mock{}, c.Args...)
		said := strings.Split(out, "\n")
		for i, line := range c.Output {
			if line != "…" && !slices.Contains(said, line) {
				t.Errorf("%s:%d: it does not say %q\n%s", c.File, c.Line+1+i, line, out)
			}
		}
		if len(c.Output) < 4 {
			t.Errorf("%s:%d: shows %d lines", c.File, c.Line, len(c.Output))
		}
	}
	if shown < 4 {
		t.Errorf("the page shows %d commands", shown)
	}
}
