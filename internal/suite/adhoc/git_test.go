package adhoc

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// If git does not find a revision, the error has the next step: the clone of a pipeline often lacks
// history or local branches.
func TestAbsentRevisions(t *testing.T) {
	testsets.Live(t)
	git := func(dir string, args ...string) {
		t.Helper()
		gitIn(t, dir, args...)
	}
	at := t.TempDir()
	whole, shallow := filepath.Join(at, "whole"), filepath.Join(at, "shallow")
	git(at, "init", "-q", "-b", "main", whole)
	git(whole, "commit", "-q", "--allow-empty", "-m", "one")
	git(whole, "commit", "-q", "--allow-empty", "-m", "two")
	git(whole, "branch", "older", "HEAD~1")
	git(at, "clone", "-q", "--depth", "1", "file://"+whole, shallow)
	git(at, "clone", "-q", whole, "all")
	git(at, "clone", "-q", "--bare", whole, "bare")
	if err := os.Mkdir(filepath.Join(whole, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, revision, want string }{
		{"whole", "nothing", "with the revision nothing (git rev-parse: exit status 1)"},
		{"shallow", "HEAD~1", "a shallow clone: get its history with git fetch --unshallow"},
		{"all", "older", "; did you mean origin/older?"},
		{"bare", "main", "is a bare repository; run prony in a clone of it"},
		{"whole/sub", "main", "the revision has no folder sub/; run prony in a folder that it has"},
		{".", "main", "not a git repository"},
	} {
		s := Source{Dir: filepath.Join(at, c.dir), Way: Revision{Git: c.revision}}
		_, err := s.Clone(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: error %v, want %q", c.revision, c.dir, err, c.want)
		}
		if c.dir == "whole" && err != nil && strings.Contains(err.Error(), ";") {
			t.Errorf("%v: has a hint without a reason", err)
		}
	}
}

// Two revisions of one commit are not compared unless they are started in different ways. A
// revision may be named by the text of its message.
func TestSameCommits(t *testing.T) {
	testsets.Live(t)
	at := t.TempDir()
	gitIn(t, at, "init", "-q", "-b", "main")
	gitIn(t, at, "commit", "-q", "--allow-empty", "-m", "fix the bug")
	gitIn(t, at, "branch", "feature")
	gitIn(t, at, "commit", "-q", "--allow-empty", "-m", "two")
	for _, c := range []struct {
		a, b, start string
		again, same bool
	}{
		{a: "main", b: "HEAD", same: true},
		{a: "feature", b: ":/fix the bug", same: true},
		{a: "main", b: "feature"},
		{a: "main", b: "HEAD", again: true},
		{a: "main", b: "main"},
		{a: "main", b: "HEAD", start: "./app --fast"},
	} {
		sources := []Source{{Name: "a", Dir: at, Way: Revision{Git: c.a, Start: "./app"}},
			{Name: "b", Dir: at, Way: Revision{Git: c.b, Start: Command(cmp.Or(c.start, "./app"))},
				Again: c.again}}
		cache := t.TempDir()
		for i := range sources {
			if _, err := sources[i].Clone(t.Context(), cache); err != nil {
				t.Fatal(err)
			}
		}
		if err := Differ(sources); (err != nil) != c.same {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c",
		"user.email=a@b"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// Files that are only pointers of Git LFS are named. Once git has the filter, a new clone gets
// their content. A filter that is missing is named as well.
func TestPointers(t *testing.T) {
	testsets.Live(t)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "config"))
	}
	app, cache := t.TempDir(), t.TempDir()
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"
	for name, text := range map[string]string{".gitattributes": "*.bin filter=lfs -text\n",
		"a.bin": pointer, "b.bin": "content", "c.bin": pointer, "d.txt": pointer} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, app, "init", "-q", "-b", "main")
	gitIn(t, app, "add", ".")
	gitIn(t, app, "commit", "-q", "-m", "one")
	check := func(note, failure string) {
		t.Helper()
		s := Source{Dir: app, Way: Revision{Git: "main"}}
		got, err := s.Clone(t.Context(), cache)
		if failure != "" {
			if err == nil || !strings.HasSuffix(err.Error(), failure) {
				t.Errorf("error %v, want %q", err, failure)
			}
		} else if err != nil || got != note {
			t.Errorf("note %q, error %v, want %q", got, err, note)
		}
	}
	note := "--git main: a.bin and 1 more: only a pointer of Git LFS instead of the content; " +
		"install git-lfs, then type git lfs install"
	check(note, "")
	check(note, "") // from the cache
	gitIn(t, app, "config", "--global", "filter.lfs.required", "true")
	gitIn(t, app, "config", "--global", "filter.lfs.smudge", "echo git-lfs: not found >&2; false")
	check("", "install git-lfs, by which git is set up to fetch large files")
	gitIn(t, app, "config", "--global", "filter.lfs.smudge", "cat > /dev/null; echo content")
	check("", "")
}
