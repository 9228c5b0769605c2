package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

// systems are the other systems that prony supports, as GOOS/GOARCH. Its files differ by processor
// only for Linux, whose programs the release's test builds.
var systems = []string{"darwin/arm64", "windows/amd64"}

// portsNeed are the sources of the programs.
var portsNeed = testsets.Needs{
	Files: []string{
		"cmd",
		"home",
		"internal",
		"load",
		"record",
		"stats",
		"contract",
		"Makefile",
		"go.mod",
		"go.sum",
	},
}

// golang runs Go in the checkout for a system, with the Makefile's flags and one more tag.
func golang(t *testing.T, system, tag, line string) {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^FLAGS = (.*-tags=[\w,]+)(.*)$`).
		FindStringSubmatch(string(text))
	if flags == nil {
		t.Fatal("the Makefile has no FLAGS")
	}
	os, arch, _ := strings.Cut(system, "/")
	verb, rest, _ := strings.Cut(line, " ")
	cmd := exec.Command("sh", "-c", "go "+verb+" "+flags[1]+tag+flags[2]+" "+rest)
	cmd.Dir = "../.."
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+os, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: go %s: %v\n%s", system, line, err, out)
	}
}

// The program builds for each system, and vet passes, except for its tests, which run on Linux.
func TestOtherSystems(t *testing.T) {
	testsets.Long(t, "programs of other systems", portsNeed)
	hidden := struct{ Replace map[string]string }{map[string]string{}}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"cmd/*/*_test.go", "internal/*/*_test.go",
		"internal/*/*/*_test.go", "internal/*/*/*/*_test.go", "contract/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			hidden.Replace[f] = "" // Go takes it as missing
		}
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	data, err := json.Marshal(hidden)
	if err != nil || os.WriteFile(overlay, data, 0o600) != nil {
		t.Fatal(err)
	}
	for _, system := range systems {
		golang(t, system, "", "build -o "+os.DevNull+" ./cmd/prony")
		golang(t, system, "",
			"vet -overlay "+overlay+" $(go list -deps ./cmd/prony | grep ^prony/)")
	}
}

// The files of other systems run here by the tag portable: the tests of the packages that have
// some, and the verbs that work everywhere, through the real program.
func TestPortable(t *testing.T) {
	testsets.Long(t, "what other systems have", portsNeed)
	testsets.Measured(t)
	const here = "linux/" // of any processor: Go's own
	golang(
		t,
		here,
		",portable",
		"test -timeout 300s ./load/engine/nethttp ./internal/generator/progress",
	)
	dir := t.TempDir()
	program := filepath.Join(dir, "prony")
	golang(t, here, ",portable", "build -o "+program+" ./cmd/prony")
	const busy = -2 // it measured, or the verdict says that the machine was busy
	prony := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		exit := cmd.ProcessState.ExitCode()
		if code == busy && (exit == cli.Fine || exit == cli.Invalid) {
			code = exit
		}
		if exit != code {
			t.Fatalf("prony %q: %v, want exit code %d\n%s", args, err, code, out)
		}
		return string(out)
	}
	url := null(t)
	for _, run := range []string{"a", "b"} {
		out := prony(busy, "load", url, "--rate", "1000", "-d", "2s", "--save="+run, "--name", "it",
			"--pacing", "precise")
		has(t, "the load", out, "generator    stack", "no thread is pinned", "0 failed")
	}
	prony(busy, "load", url, "-c", "2", "-d", "1s", "--http2")
	has(t, "report", prony(busy, "report", "a"), "it", "p99")
	has(t, "compare", prony(busy, "compare", "a", "b", "--allow-mismatch"), "it: run", "B to A")
	has(t, "trend", prony(busy, "trend", "a", "b"), "2 runs")
	has(t, "gate", prony(cli.Invalid, "gate", "a", "b", "--allow-mismatch"), "INSUFFICIENT DATA",
		"n >= 2 of each")
	has(t, "completion", prony(0, "completion", "bash"), "prony")
	if err := os.WriteFile(filepath.Join(dir, "results.md"), []byte(
		"| server | p50 | p99 |\n|---|---|---|\n| a | 9 ms | 3 ms |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	prony(cli.Invalid, "audit", "results.md")
	has(t, "cores", prony(2, "load", url, "--cores", "0"), "--cores", "on Linux alone")
	has(t, "ceiling", prony(1, "load", url, "--ceiling"), "works only on Linux")
	has(t, "capacity", prony(busy, "capacity", url, "--slo", "p99<1s", "--budget", "5s",
		"--window", "1s"), "the generator limit is unknown")
	for _, verb := range []string{"run", "versus", "doctor"} {
		has(t, verb, prony(1, verb, "--any", "thing"), verb+" works only on Linux")
	}
	var want, got []string
	for _, c := range verbs(newRoot(&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})) {
		want = append(want, c.Name())
	}
	for _, name := range regexp.MustCompile(`(?m)^  ([a-z]+) `).
		FindAllStringSubmatch(prony(0, "--help"), -1) {
		got = append(got, name[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("--help lists %q, on Linux %q", got, want)
	}
}
