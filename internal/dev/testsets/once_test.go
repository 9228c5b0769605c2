package testsets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scratch is a repository with a package under test, its program, and files like those of a
// service.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module scratch\n",
		"home/go.mod":       "module scratch/home\n",
		"program":           "\x7fELF",
		"home/a/a_test.go":  "package a\n",
		"home/a/testdata/x": "golden\n",
		"home/testdata/x":   "of another package\n",
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

// sumOf reads the scratch repository again.
func sumOf(t *testing.T, dir string, needs Needs) string {
	t.Helper()
	p, err := programIn(filepath.Join(dir, "program"), filepath.Join(dir, "home", "a"))
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
		"program": true, "home/a/testdata/x": true, "service/main.py": true, "service/run": true,
		"contract/golden":  true,
		"home/a/a_test.go": false, "home/testdata/x": false, "go.mod": false, "docs/page.md": false,
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
	write(t, filepath.Join(dir, "home", "a", "testdata", "more"), "")
	changes("a new file of the test's data", scratchNeeds)
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
	p, err := programIn("/no-program", filepath.Join(dir, "home", "a"))
	if err != nil || p.root != dir || p.dir != filepath.Join("home", "a") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := p.sum("TestA", Needs{}); err == nil {
		t.Error("a program that is not there has a sum")
	}
	p.executable = filepath.Join(dir, "program")
	if _, err := p.sum("TestA", Needs{Files: []string{"gone"}}); err == nil {
		t.Error("a file that is not there has a sum")
	}
	if _, err := programIn("/no-program", t.TempDir()); err == nil {
		t.Error("a folder outside of a module has a root")
	}
}

// Only a pass is remembered, for one sum.
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
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
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

func TestProgramOfTest(t *testing.T) {
	p, err := self()
	if err != nil || p.dir != filepath.Join("internal", "dev", "testsets") {
		t.Fatal(p, err)
	}
	if sum, err := p.sum(t.Name(), Needs{Files: []string{"go.sum"}}); err != nil || len(sum) != 64 {
		t.Errorf("%q, %v", sum, err)
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
