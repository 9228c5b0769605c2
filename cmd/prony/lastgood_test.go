package main

import (
	"os"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
)

// A gate checks its flags before the command that makes the run, accepts only a whole run as the
// next base, and finds the base also from another folder.
func TestGateLastGood(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	t.Chdir(dir)
	check := func(want string, exit int, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, args...)
		if got != exit {
			t.Errorf("%q: exit %d, want %d", args, got, exit)
		}
		has(t, args[0], stdout+stderr, want)
	}
	run := func(name, seed string) {
		t.Helper()
		check("", cli.Fine, "run", "--targets", "go-nethttp", "--blocks", "4", "--seed", seed,
			"--out", name)
	}
	run("n1", "1")
	run("n2", "2")
	check("n1:go-nethttp is a row: name only NEW, a run's folder", cli.Misused, "gate",
		"n1:go-nethttp", "--last-good", "good")
	check("x.json is not written", cli.Fine, "gate", "n1", "--last-good", "good", "-o", "x.json")
	check("is itself the last good run", cli.Misused, "gate", dir+"/n1", "--last-good", "good")
	made := []string{"--", "run", "--targets", "go-nethttp", "--blocks", "1", "--out", "n3"}
	for _, wrong := range [][]string{{"--max-regression", "five"}, {"--allow-invalid", "-1"},
		{"--format", "html"}, {"--github", "--format", "json"}} {
		check("", cli.Misused, append(append([]string{"gate", "n3", "--last-good", "good"},
			wrong...), made...)...)
	}
	check("--last-good already names BASE", cli.Misused, append([]string{"gate", "n1", "n3",
		"--last-good", "good"}, made...)...)
	if exists("n3") {
		t.Error("a command ran before the gate's own flags were checked")
	}
	if err := os.Mkdir("below", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("below")
	check("PASS: peak throughput", cli.Fine, "gate", "../n2", "--last-good", "../good",
		"--max-regression", "90%")
	t.Chdir(dir)
	if text, err := files.String("good", 100); err != nil || text != "../n2\n" {
		t.Errorf("the base is %q, error %v", text, err)
	}
}

// A command after -- prints external actions as its gate does, which goes on to do so.
func TestInnerCommandsAreShown(t *testing.T) {
	defer cmdlog.Show(nil)
	t.Chdir(checkout(t))
	say(t, mock{}, "-x", "gate", "n", "--last-good", "good", "--", "agents")
	if !cmdlog.Watched() {
		t.Error("-x ends with the inner command")
	}
}
