package testsets

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scratch is a module with a package under test, one that it links, one that it does not, and files
// like those of a service.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module scratch\n\ngo 1.26\n",
		"a/a.go":            "package a\n\nimport \"scratch/b\"\n\nvar A = b.B\n",
		"a/a_test.go":       "package a\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n",
		"a/out_test.go":     "package a_test\n\nimport _ \"scratch/c\"\n",
		"a/testdata/golden": "golden\n",
		"b/b.go":            "package b\n\nimport _ \"embed\"\n\n//go:embed data\nvar B string\n",
		"b/data":            "embedded\n",
		"b/b_test.go":       "package b\n",
		"c/c.go":            "package c\n",
		"d/d.go":            "package d\n",
		"service/main.py":   "print(1)\n",
		"service/run":       "#!/bin/sh\n",
		"contract/golden":   "hello\n",
		"docs/page.md":      "words\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var scratchNeeds = Needs{Files: []string{"service", "contract/golden"}, Facts: []string{"tool 1"}}

// sumOf reads the scratch module again.
func sumOf(t *testing.T, dir string, needs Needs) string {
	t.Helper()
	p, err := look(t.Context(), filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.sum("TestA", needs)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A changed byte in any dependency of a test changes the sum; a byte elsewhere does not.
func TestSumHasEveryByte(t *testing.T) {
	dir := scratch(t)
	before := sumOf(t, dir, scratchNeeds)
	if again := sumOf(t, dir, scratchNeeds); again != before {
		t.Errorf("two sums of the same bytes: %s, %s", before, again)
	}
	for name, counts := range map[string]bool{
		"go.mod": true, "a/a.go": true, "a/a_test.go": true, "a/out_test.go": true,
		"a/testdata/golden": true, "b/b.go": true, "b/data": true, "c/c.go": true,
		"service/main.py": true, "service/run": true, "contract/golden": true,
		"b/b_test.go": false, "d/d.go": false, "docs/page.md": false,
	} {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, string(text)+"\n")
		if changed := sumOf(t, dir, scratchNeeds) != before; changed != counts {
			t.Errorf("with another byte in %s the sum changed: %v, want %v", name, changed, counts)
		}
		write(t, file, string(text))
	}
	if sumOf(t, dir, scratchNeeds) != before {
		t.Error("with all as it was the sum is another")
	}
}

// So does a file that is added, removed, moved or made executable, and another fact.
func TestSumHasNamesAndFacts(t *testing.T) {
	dir := scratch(t)
	last := sumOf(t, dir, scratchNeeds)
	changes := func(what string, needs Needs) {
		t.Helper()
		sum := sumOf(t, dir, needs)
		if sum == last {
			t.Errorf("%s: the same sum", what)
		}
		last = sum
	}
	write(t, filepath.Join(dir, "service", "new.py"), "")
	changes("a new file of the service", scratchNeeds)
	write(t, filepath.Join(dir, "b", "more.go"), "package b\n")
	changes("a new file of the code", scratchNeeds)
	if err := os.Rename(filepath.Join(dir, "service", "new.py"),
		filepath.Join(dir, "service", "old.py")); err != nil {
		t.Fatal(err)
	}
	changes("another name", scratchNeeds)
	if err := os.Chmod(filepath.Join(dir, "service", "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	changes("may be run", scratchNeeds)
	if err := os.Symlink("main.py", filepath.Join(dir, "service", "link")); err != nil {
		t.Fatal(err)
	}
	changes("a link", scratchNeeds)
	changes("another fact", Needs{Files: scratchNeeds.Files, Facts: []string{"tool 2"}})
	changes("one fact more", Needs{Files: scratchNeeds.Files, Facts: []string{"tool 2", ""}})
	changes("one file less", Needs{Files: scratchNeeds.Files[:1], Facts: []string{"tool 2", ""}})
	p, err := look(t.Context(), filepath.Join(dir, "a"))
	if err != nil || p.pkg != "scratch/a" || !slices.Equal(p.dirs, []string{"a", "b", "c"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := p.sum("TestA", Needs{Files: []string{"gone"}}); err == nil {
		t.Error("a file that is not there has a sum")
	}
}

// touched reports changed, added and removed files since a base.
func TestTouched(t *testing.T) {
	dir := scratch(t)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=n", "-c", "user.email=e@x", "-c",
			"commit.gpgsign=false"}, args...)
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "all")
	for name, want := range map[string]bool{
		"service/main.py": true, "service/new.py": true, "a/a_test.go": true, "b/data": true,
		"b/new.go": true, "contract/golden": true, "a/testdata/new": true, "go.mod": true,
		"d/d.go": false, "docs/page.md": false, "docs/new.md": false, "services": false,
	} {
		p, err := look(t.Context(), filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		before, err := os.ReadFile(file)
		write(t, file, "// "+string(before)+"\n")
		changed, failed := changedSince(t.Context(), dir, "HEAD")
		if failed != nil || !slices.Equal(changed, []string{name}) {
			t.Errorf("%s: changed is %q, %v", name, changed, failed)
		}
		if got := p.touched(scratchNeeds, changed); got != want {
			t.Errorf("%s touches the test: %v, want %v", name, got, want)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			changed, failed = changedSince(t.Context(), dir, "HEAD")
			if got := p.touched(scratchNeeds, changed); failed != nil || got != want {
				t.Errorf("without %s: touched is %v, want %v, %v", name, got, want, failed)
			}
			write(t, file, string(before))
		}
	}
	if _, err := changedSince(t.Context(), dir, "no-such-commit"); err == nil {
		t.Error("of no commit it is known what changed")
	}
}

// Only a pass is remembered, for one sum, in a file that belongs to this user.
func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	check := func(what, sum string, want bool) {
		t.Helper()
		if when, ok := recall(path, sum); ok != want || ok && !strings.HasSuffix(when, "Z") {
			t.Errorf("%s: recalled %v at %q, want %v", what, ok, when, want)
		}
	}
	put := func(passed bool, sum string) {
		t.Helper()
		if err := settle(path, sum, passed); err != nil {
			t.Fatal(err)
		}
	}
	check("nothing yet", "abc", false)
	put(false, "abc")
	check("failed", "abc", false)
	put(true, "abc")
	check("passed", "abc", true)
	check("another sum", "abd", false)
	check("a sum's beginning", "ab", false)
	put(false, "abd")
	check("failed since", "abc", false)
	put(true, "abc")
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	check("others may write to it", "abc", false)
	put(true, "abc")
	check("replaced as a whole", "abc", true)
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, ok := recall(link, "abc"); ok {
		t.Error("a link is believed")
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		check("another user's", "abc", false)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A folder that is readable for others, belongs to another user, or is a link, is not used.
func TestFolderIsOurs(t *testing.T) {
	above := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", above)
	dir, err := Folder()
	if err != nil || dir != filepath.Join(above, "prony", "tests") {
		t.Fatal(dir, err)
	}
	refused := func(what string) {
		t.Helper()
		_, err := Folder()
		if err == nil || !strings.Contains(err.Error(), "is not this user's alone") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	refused("others may look into it")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	refused("a link")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(); err != nil {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused("another user's")
	}
}

func TestPackageUnderTest(t *testing.T) {
	if _, err := look(context.Background(), t.TempDir()); err == nil {
		t.Error("a folder without a package has tests")
	}
	of, err := self()
	if err != nil || of.pkg != "prony.example/internal/dev/testsets" {
		t.Fatal(of, err)
	}
	for _, want := range []string{"internal/dev/testsets/sum.go",
		"internal/dev/testsets/once_test.go",
		"internal/base/cache/cache.go", "go.sum"} {
		if !slices.Contains(of.files, want) {
			t.Errorf("%s is not among %q", want, of.files)
		}
	}
}

// Folder fails if a file is in the way, and if there is no place for caches.
func TestFolderFails(t *testing.T) {
	check := func(cache, want string) {
		t.Helper()
		t.Setenv("XDG_CACHE_HOME", cache)
		t.Setenv("HOME", "")
		if dir, err := Folder(); dir != "" || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("cache %q: %q, %v, want %q", cache, dir, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	check(file, "make the folder of what tests keep: mkdir "+file+": not a directory")
	check("", "find the folder of what tests keep: ")
}
