package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

// gitIn runs git as a user with a name, and permits submodules by path, which git otherwise
// refuses.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c",
		"user.email=a@b", "-c", "protocol.file.allow=always"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// gitState returns the state that a build must not change: work tree, index, refs, configuration.
func gitState(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, args := range []string{"status --porcelain --ignore-submodules=none", "diff",
		"diff --cached", "show-ref --head", "config --list --local", "submodule status",
		"stash list"} {
		b.WriteString(gitIn(t, dir, strings.Fields(args)...) + "\n")
	}
	return b.String()
}

// A build runs in a clone of its own: whatever git commands it runs, the user's repository, its
// submodules and uncommitted changes stay unchanged, and the build has its own.
func TestVersusBuildsOutsideOfTheRepository(t *testing.T) {
	testsets.Whole(t, "whole comparisons")
	dir := ownFolder(t)
	lib := filepath.Join(t.TempDir(), "lib")
	write := func(path, text string) {
		t.Helper()
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(lib, "says"), "one")
	gitIn(t, lib, "init", "-q", "-b", "main")
	gitIn(t, lib, "add", ".")
	gitIn(t, lib, "commit", "-q", "-m", "one")
	gitIn(t, dir, "submodule", "--quiet", "add", lib, "lib")
	gitIn(t, dir, "add", "app")
	gitIn(t, dir, "commit", "-q", "-m", "two")
	gitIn(t, dir, "tag", "v1.0.0")
	write(filepath.Join(dir, "more"), "")
	gitIn(t, dir, "add", "more")
	gitIn(t, dir, "commit", "-q", "-m", "three")
	if err := os.RemoveAll(lib); err != nil { // it is only in the user's repository
		t.Fatal(err)
	}
	write(filepath.Join(dir, "lib", "says"), "work that is not committed")
	write(filepath.Join(dir, "lib", "new"), "of mine")
	write(filepath.Join(dir, "app"), "#!/bin/sh\nexit 1\n")
	before := gitState(t, dir)
	// As in a hook: git then uses this repository from any folder.
	t.Setenv("GIT_DIR", filepath.Join(dir, ".git"))
	t.Setenv("GIT_WORK_TREE", dir)
	const build = `set -e
test "$(git rev-parse --show-toplevel)" = "$(pwd -P)"
git submodule update --init --force
test "$(cat lib/says)" = one
git describe --tags > version
git -C lib reset -q --hard; git clean -qffdx -e version; git stash list
git checkout -q -B mine; git config prony.was here; git tag built
`
	const run = `SAYS="$(cat version)" ./app`
	stdout, stderr, exit := versus(t, "--git", "HEAD~1", "--git", "HEAD~1", "-n", "a", "-n", "b",
		"--build", build, "--run", run, "--get", "/", "--plan")
	if exit != cli.Fine {
		t.Errorf("exit %d\n%s%s", exit, stdout, stderr)
	}
	_, stderr, exit = versus(t, "--git", "HEAD~1", "--git", "HEAD", "-n", "a", "-n", "b",
		"--build", build, "--run", run, "--get", "/", "--plan")
	if exit != cli.Failed {
		t.Errorf("two versions that say which they are: exit %d, want %d", exit, cli.Failed)
	}
	has(t, "what is said", stderr,
		`a responds with body "v1.0.0", but b responds with body "v1.0.0-1-g`)
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	if after := gitState(t, dir); after != before {
		t.Errorf("the user's repository was\n%s\nand is\n%s", before, after)
	}
	for path, want := range map[string]string{"lib/says": "work that is not committed",
		"lib/new": "of mine", "app": "#!/bin/sh\nexit 1\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(text) != want {
			t.Errorf("%s has %q, error %v; want %q", path, text, err, want)
		}
	}
}

// A project's target that is built from the working directory is also built outside of the
// repository, where git finds none.
func TestProjectBuildsOutsideOfTheRepository(t *testing.T) {
	testsets.Whole(t, "whole comparisons")
	dir := ownFolder(t)
	before := gitState(t, dir)
	stdout, stderr, exit := inProject(t, `targets:
  a: {command: ./app, build: '! git rev-parse --git-dir && ! git clean -qffdx'}
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 2, measure: 200ms}]
warmup: {min: 0s, max: 300ms, connections: 2}
blocks: 1
limits: {cpus: 1, memory: 256M}
`, "run", "--out", "r")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Errorf("exit %d\n%s%s", exit, stdout, stderr)
	}
	for _, path := range []string{"prony.yaml", "r"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if after := gitState(t, dir); after != before {
		t.Errorf("the user's repository was\n%s\nand is\n%s", before, after)
	}
}
