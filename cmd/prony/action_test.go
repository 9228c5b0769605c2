package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/record"
)

// TestAction runs the action's own scripts as a runner would, all but the one that builds prony, in
// a repository with a service in another language than Prony's.
func TestAction(t *testing.T) {
	testsets.Once(t, "the action's scripts", testsets.Needs{Files: []string{"action.yml"},
		Facts: []string{testsets.Version("python3", "--version")}})
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3: ", err)
	}
	action := readAction(t)
	dir := ownFolder(t)
	executable(t, dir, "app.py", otherApp)
	for _, line := range []string{"add app.py", "-c user.name=a -c user.email=a@b commit -qm two"} {
		if out, err := exec.Command("git", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", line, err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	executable(t, bin, "prony", "#!/bin/sh\nPRONY_TEST_MAIN=1 exec "+self+" \"$@\"\n")
	summary := filepath.Join(bin, "summary.md")
	inputs := map[string]string{"build": "true", "run": python + " app.py", "get": "/\n/x\n",
		"base": "HEAD", "blocks": "2", "options": "--interleave blocks --measure 300ms " +
			"--warmup 300ms -c 8 -H 'X-Words: a b'"}
	runAction(t, action, inputs, bin, summary)
	for _, file := range []string{summary, filepath.Join(dir, "prony-run", "compare.html")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		has(t, file, string(text), "head", "base", "peak CPU per request")
	}
	head, _, _, err := record.Read(filepath.Join(dir, "prony-run"))
	if err != nil || !slices.Contains(head.Command, "X-Words: a b") {
		t.Errorf("the options are %q, error %v", head.Command, err)
	}

	// A project has the same in its file.
	executable(t, dir, "prony.yaml", `targets:
  base: {git: HEAD, build: "true", command: `+python+` app.py}
  head: {command: `+python+` app.py}
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 8}]
`)
	inputs = map[string]string{"project": ".", "base": "", "blocks": "1", "out": "project-run",
		"metric": "cpu_per_request", "options": "--interleave blocks --measure 300ms " +
			"--warmup 300ms"}
	runAction(t, action, inputs, bin, summary)
	text, err := os.ReadFile(summary)
	if err != nil || !strings.Contains(string(text), "\n| peak CPU per request |") ||
		strings.Contains(string(text), "\n| peak throughput |") {
		t.Errorf("judged by another number than it was asked for: %v: %s", err, text)
	}
	_, records, _, err := record.Read(filepath.Join(dir, "project-run"))
	if err != nil || len(records) != 2 {
		t.Errorf("%d records of the project, %v", len(records), err)
	}
}

// runAction runs the scripts of the action's steps in order.
func runAction(t *testing.T, action actionFile, inputs map[string]string, bin, summary string) {
	t.Helper()
	ran := ""
	for _, step := range action.Runs.Steps {
		if step.Run == "" || step.Name == "Build Prony" {
			continue
		}
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", step.Run)
		cmd.Env = append(os.Environ(), "GITHUB_STEP_SUMMARY="+summary,
			"PATH="+bin+":"+os.Getenv("PATH"))
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+action.fill(t, value, inputs))
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		// On a busy machine, any result of a gate is valid; only its call counts.
		judged := errors.As(err, &exit) && step.Name == "Gate" &&
			(exit.ExitCode() == cli.GateFailed || exit.ExitCode() == cli.Invalid)
		if err != nil && !judged {
			t.Fatalf("%s: %v\n%s", step.Name, err, out)
		}
		ran += step.Name + "; "
	}
	if ran != "Measure base and head; Page; Gate; Summary; " {
		t.Errorf("ran %s", ran)
	}
}

// TestActionSummary checks that the summary of a run that measured nothing neither fails nor hides
// the reason of the step that failed.
func TestActionSummary(t *testing.T) {
	dir := t.TempDir()
	summary := filepath.Join(dir, "summary.md")
	for _, step := range readAction(t).Runs.Steps {
		if step.Name != "Summary" {
			continue
		}
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", step.Run)
		cmd.Env = []string{"PATH=" + dir, "OUT=" + dir, "GITHUB_STEP_SUMMARY=" + summary}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	t.Error("the action has no step Summary")
}

// otherApp is a service that none of Prony's toolchains builds.
const otherApp = `import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet a response: a second one would wait for an ACK of the first

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *args):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`

// executable writes an executable file.
func executable(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

type actionFile struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Runs struct {
		Steps []struct {
			Name, Run string
			Env       map[string]string
		}
	}
}

func readAction(t *testing.T) (out actionFile) {
	t.Helper()
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(repo, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill replaces GitHub's expressions by inputs or their defaults.
func (a actionFile) fill(t *testing.T, text string, inputs map[string]string) string {
	t.Helper()
	for name, input := range a.Inputs {
		value, given := inputs[name]
		if input.Required && !given {
			t.Errorf("input %s is not given", name)
		}
		if !given {
			value = input.Default
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("${{ inputs.%s }}", name), value)
	}
	if strings.Contains(text, "${{") {
		t.Errorf("what is %s?", text)
	}
	return text
}
