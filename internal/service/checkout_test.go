package service

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// do runs git with a user name, and allows submodules by path, which git refuses by default.
func do(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := Git(t.Context(), dir, append([]string{"-c", "user.name=a", "-c", "user.email=a@b",
		"-c", "protocol.file.allow=always"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// repositoryIn makes a repository with one commit of the file f.
func repositoryIn(t *testing.T, dir, text string) {
	t.Helper()
	put(t, filepath.Join(dir, "f"), text)
	do(t, dir, "init", "-q", "-b", "main")
	do(t, dir, "add", "f")
	do(t, dir, "commit", "-q", "-m", "one")
}

// nested makes repositories: app has the submodule lib, which has deep, and a second one, gone.
func nested(t *testing.T) (app string) {
	t.Helper()
	top := t.TempDir()
	for _, name := range []string{"deep", "lib", "gone", "app"} {
		repositoryIn(t, filepath.Join(top, name), name)
	}
	app = filepath.Join(top, "app")
	do(t, filepath.Join(top, "lib"), "submodule", "--quiet", "add", "../deep", "in/deep")
	do(t, filepath.Join(top, "lib"), "commit", "-q", "-m", "two")
	do(t, app, "submodule", "--quiet", "add", "../lib", "lib")
	do(t, app, "submodule", "--quiet", "add", filepath.Join(top, "gone"), "gone")
	do(t, app, "submodule", "--quiet", "update", "--init", "--recursive")
	do(t, app, "commit", "-q", "-m", "two")
	do(t, app, "tag", "v2")
	return app
}

// A clone is an independent repository. It has the submodules of the user's repository, even if
// their own repositories and work trees are gone, and no others.
func TestCheckoutClone(t *testing.T) {
	app := nested(t)
	do(t, app, "submodule", "--quiet", "deinit", "--force", "lib")
	for _, gone := range []string{"../lib", "../deep", "../gone", "gone", ".git/modules/gone"} {
		if err := os.RemoveAll(filepath.Join(app, gone)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_DIR", t.TempDir()) // as in a hook of another repository
	c := Checkout{Repo: app, Commit: do(t, app, "rev-parse", "HEAD")}
	to := filepath.Join(t.TempDir(), "clone")
	missing, err := c.Clone(t.Context(), to)
	if err != nil || !slices.Equal(missing, []string{"gone"}) {
		t.Fatalf("missing %q, error %v; want gone alone", missing, err)
	}
	for path, want := range map[string]string{"f": "app", "lib/f": "lib", "lib/in/deep/f": "deep"} {
		text, err := os.ReadFile(filepath.Join(to, path))
		if err != nil || string(text) != want {
			t.Errorf("%s has %q, error %v; want %s", path, text, err, want)
		}
	}
	do(t, to, "submodule", "--quiet", "update", "--force", "--recursive", "lib")
	for dir, want := range map[string]string{".": to, "lib": filepath.Join(to, "lib")} {
		if got := do(t, filepath.Join(to, dir), "rev-parse", "--show-toplevel"); got != want {
			t.Errorf("in %s git finds %s, want %s", dir, got, want)
		}
	}
	if got := do(t, to, "describe", "--tags", "--dirty", "--always"); got != "v2" {
		t.Errorf("the clone is described as %s, want v2", got)
	}
	if got := do(t, to, "rev-parse", "--git-common-dir"); got != ".git" {
		t.Errorf("the clone's git directory is %s", got)
	}
	for _, dir := range []string{".", "lib", "lib/in/deep"} {
		head := do(t, filepath.Join(to, dir), "rev-parse", "HEAD")
		if _, err := Git(t.Context(), filepath.Join(to, dir), "push", "--quiet", "origin",
			head+":refs/heads/pushed"); err == nil {
			t.Errorf("a build can push from %s", dir)
		}
	}
	if got := do(t, app, "branch", "--all"); strings.Contains(got, "pushed") {
		t.Errorf("the user's repository has got %s", got)
	}
}

// A clone does not depend on the user's configuration: names of remotes, hooks, allowed protocols.
func TestCheckoutIgnoresConfiguration(t *testing.T) {
	app, home := t.TempDir(), t.TempDir()
	repositoryIn(t, app, "x")
	hook := filepath.Join(home, "post-checkout")
	put(t, hook, "#!/bin/sh\necho > "+home+"/called\nexit 1\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(home, "config"), "[clone]\n\tdefaultRemoteName = upstream\n"+
		"[core]\n\thooksPath = "+home+"\n[protocol \"file\"]\n\tallow = never\n")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "config"))
	c := Checkout{Repo: app, Commit: do(t, app, "rev-parse", "HEAD")}
	if _, err := c.Clone(t.Context(), filepath.Join(t.TempDir(), "clone")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(home, "called")); err == nil {
		t.Error("the user's hook was called")
	}
}

// A partial clone that lacks files of the revision is an error.
func TestCheckoutOfPartialClone(t *testing.T) {
	at := t.TempDir()
	app, part := filepath.Join(at, "app"), filepath.Join(at, "part")
	repositoryIn(t, app, "old")
	put(t, filepath.Join(app, "f"), "new")
	do(t, app, "commit", "-q", "-a", "-m", "two")
	do(t, app, "config", "uploadpack.allowFilter", "true")
	do(t, at, "clone", "-q", "--filter=blob:none", "file://"+app, "part")
	old := do(t, part, "rev-parse", "HEAD~1")
	c := Checkout{Repo: part, Commit: old}
	_, err := c.Clone(t.Context(), filepath.Join(at, "clone"))
	if err == nil || !strings.Contains(err.Error(), "git fetch --refetch") {
		t.Errorf("error %v", err)
	}
	do(t, part, "fetch", "-q", "--refetch", "--no-filter")
	if _, err := c.Clone(t.Context(), filepath.Join(at, "clone")); err != nil {
		t.Error(err)
	}
}

// Submodules missing in a clone are filled in once the user's repository has them.
func TestCheckoutRefills(t *testing.T) {
	app := nested(t)
	away := app + "-gone"
	if err := errors.Join(os.RemoveAll(filepath.Join(app, "gone")),
		os.Rename(filepath.Join(app, ".git/modules/gone"), away)); err != nil {
		t.Fatal(err)
	}
	c := Checkout{Repo: app, Commit: do(t, app, "rev-parse", "HEAD"),
		At: filepath.Join(t.TempDir(), "clone")}
	if missing, err := c.Clone(t.Context(), c.At); err != nil || len(missing) != 1 {
		t.Fatalf("missing %q, error %v", missing, err)
	}
	if err := os.Rename(away, filepath.Join(app, ".git/modules/gone")); err != nil {
		t.Fatal(err)
	}
	if missing, err := c.Refill(t.Context()); err != nil || len(missing) != 0 {
		t.Errorf("missing %q, error %v", missing, err)
	}
	if text, err := os.ReadFile(filepath.Join(c.At, "gone", "f")); string(text) != "gone" {
		t.Errorf("gone/f has %q, error %v", text, err)
	}
}

// A clone has the remote of the user's repository, because URLs of submodules are relative to it.
func TestCheckoutRemote(t *testing.T) {
	for name, url := range map[string]string{"origin": "https://git.example.org/a/b.git",
		"upstream": "../beside"} {
		app := filepath.Join(t.TempDir(), "app")
		repositoryIn(t, app, "x")
		do(t, app, "remote", "add", name, url)
		c := Checkout{Repo: app, Commit: do(t, app, "rev-parse", "HEAD")}
		to := filepath.Join(t.TempDir(), "clone")
		if _, err := c.Clone(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		want := url
		if strings.HasPrefix(url, ".") {
			want = filepath.Join(app, url)
		}
		if got := do(t, to, "config", "remote.origin.url"); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// What is no clone of the revision is an error, and leaves no folder.
func TestNoCheckout(t *testing.T) {
	app := filepath.Join(t.TempDir(), "app")
	repositoryIn(t, app, "x")
	for what, c := range map[string]Checkout{
		"no repository":       {Repo: t.TempDir(), Commit: "HEAD"},
		"an unknown revision": {Repo: app, Commit: strings.Repeat("0", 40)},
	} {
		c.At = filepath.Join(t.TempDir(), "clone")
		if missing, err := c.Clone(t.Context(), c.At); err == nil || missing != nil {
			t.Errorf("%s: missing %q, error %v", what, missing, err)
		}
		if _, err := os.Stat(c.At); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder is left, %v", what, err)
		}
	}
	if _, err := (Checkout{Repo: t.TempDir(), At: app}).Refill(t.Context()); err == nil {
		t.Error("submodules from no repository: no error")
	}
}
