package service

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/record"
)

// A folder that another process replaces by a link while it is copied gives no file from outside,
// nor does a file that becomes a link. A pipe is not waited for.
func TestCopyReadsNothingOutside(t *testing.T) {
	check := func(what string, replace func(dir, victims string) error) {
		t.Helper()
		from, to, victims := t.TempDir(), t.TempDir(), t.TempDir()
		dir := filepath.Join(from, "dir")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(to, "dir"), 0o700),
			os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
			os.WriteFile(filepath.Join(victims, "file"), []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(from)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		entries, err := os.ReadDir(dir)
		if err = errors.Join(err, os.Remove(filepath.Join(dir, "file")), os.Remove(dir),
			replace(dir, victims)); err != nil {
			t.Fatal(err)
		}
		c := &copier{ctx: t.Context(), root: root, from: from, to: to, chunk: make([]byte, 9)}
		if err := c.entry("dir/file", entries[0], nil); err == nil {
			t.Errorf("%s: no error", what)
		}
		if b, err := os.ReadFile(filepath.Join(to, "dir", "file")); err == nil {
			t.Errorf("%s: the copy is %q", what, b)
		}
	}
	check("folder", func(dir, victims string) error { return os.Symlink(victims, dir) })
	check("file", func(dir, victims string) error {
		return errors.Join(os.Mkdir(dir, 0o700),
			os.Symlink(filepath.Join(victims, "file"), filepath.Join(dir, "file")))
	})
	check("pipe", func(dir, _ string) error {
		return errors.Join(os.Mkdir(dir, 0o700),
			syscall.Mkfifo(filepath.Join(dir, "file"), 0o600))
	})
}

// The steps of copied leave typical results of builds: a script with its interpreter's path, as in
// a virtual environment of Python, links of each kind, a read-only folder, an old modification
// time.
var copied = [][]string{
	{"sh", "-c", `mkdir -p venv/bin locked && ln -s "$(command -v sh)" venv/bin/shell &&
		{ echo "#!$PWD/venv/bin/shell"; echo 'echo "in $0 reads $(cat main.txt)"'; } > run &&
		chmod 755 run && ln -s "$PWD/main.txt" absolute && ln -s src/bin/part.txt relative &&
		ln -s ../outside outside && echo out > ../outside && mkdir .git && echo x > .git/HEAD &&
		echo kept > locked/file && chmod 400 locked/file && chmod 500 locked &&
		touch -d 2001-02-03T04:05:06.5Z main.txt`},
}

func TestCopy(t *testing.T) {
	w := newWorkshop(t, "main.txt", copied...)
	built := w.build()
	locked := filepath.Join(built.Dir, "locked")
	t.Cleanup(func() { os.Chmod(locked, 0o700) }) //nolint:errcheck // can be removed then
	if err := syscall.Mkfifo(filepath.Join(built.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "starts", CopyPrefix+"1-1")
	fresh, err := built.Copy(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Dir != filepath.Join(dir, "service") || fresh.SHA256 != built.SHA256 {
		t.Errorf("the copy is %+v of %+v", fresh, built)
	}
	for _, name := range []string{"main.txt", "src/bin/part.txt", "relative", "locked/file"} {
		if got, want := read(t, fresh.Dir, name), read(t, built.Dir, name); got != want {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"main.txt", "run", "locked", "locked/file", "src", "."} {
		got, err1 := os.Lstat(filepath.Join(fresh.Dir, name))
		want, err2 := os.Lstat(filepath.Join(built.Dir, name))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if got.Mode() != want.Mode() || !got.ModTime().Equal(want.ModTime()) ||
			os.SameFile(got, want) {
			t.Errorf("%s is %v of %v, want %v of %v", name, got.Mode(), got.ModTime(),
				want.Mode(), want.ModTime())
		}
	}
	for _, name := range []string{".git", "pipe"} {
		if _, err := os.Lstat(filepath.Join(fresh.Dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was copied: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"absolute": filepath.Join(fresh.Dir, "main.txt"), "relative": "src/bin/part.txt",
		"outside": filepath.Join(filepath.Dir(built.Dir), "outside"),
	} {
		if got, err := os.Readlink(filepath.Join(fresh.Dir, name)); got != want {
			t.Errorf("%s leads to %s, %v, want %s", name, got, err, want)
		}
	}
	checkCopyRuns(t, built, fresh)
	if err := errors.Join(RemoveCopy(dir), RemoveCopy(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is there after it was removed: %v", err)
	}
	read(t, built.Dir, "main.txt") // the build still exists
}

// checkCopyRuns starts the script of the copy, which must use the copy's interpreter.
func checkCopyRuns(t *testing.T, built, fresh *Built) {
	t.Helper()
	line, _, _ := strings.Cut(read(t, fresh.Dir, "run"), "\n")
	if line != "#!"+filepath.Join(fresh.Dir, "venv/bin/shell") {
		t.Errorf("the script begins with %q", line)
	}
	s := &Service{Name: "s", Run: Run{Command: []string{"./run", "{dir}/main.txt"},
		Env: map[string]string{"WHERE": "{dir}"}}, Targets: []Target{{Name: "t"}}}
	values := Values{Host: "h", Ports: []int{1}, CPUs: 1, MemoryBytes: 1 << 20, Pad: 3}
	var written [][]string
	for _, b := range []*Built{built, fresh} {
		starts, err := s.Starts(b, s.Targets[0], values)
		if err != nil {
			t.Fatal(err)
		}
		start := starts[0]
		written = append(written, start.Written)
		if start.Args[0] != filepath.Join(b.Dir, "run") ||
			start.Args[1] != filepath.Join(b.Dir, "main.txt") ||
			!slices.Contains(start.Env, "WHERE="+b.Dir) ||
			!slices.Contains(start.Env, "PRONY_PAD=xxx") {
			t.Errorf("started as %q with %q", start.Args, start.Env)
		}
		cmd := exec.Command(start.Args[0])
		cmd.Dir = b.Dir
		out, err := cmd.CombinedOutput()
		if want := "in " + start.Args[0] + " reads source\n"; string(out) != want || err != nil {
			t.Errorf("it says %q, %v, want %q", out, err, want)
		}
	}
	if !slices.Equal(written[0], written[1]) {
		t.Errorf("the records would have %q and %q", written[0], written[1])
	}
}

// An impossible copy returns the reason and leaves nothing.
func TestNoCopy(t *testing.T) {
	w := newWorkshop(t, "main.txt", []string{"true"})
	built := w.build()
	check := func(b *Built, dir, reason string) {
		t.Helper()
		var none *NoCopy
		if _, err := b.Copy(t.Context(), dir); !errors.As(err, &none) || none.Reason != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	dir := filepath.Join(t.TempDir(), CopyPrefix+"1-1")
	check(&Built{Images: map[string]string{"": "i"}}, dir, record.NoCopyContainer)
	check(&Built{Attached: netip.MustParseAddrPort("127.0.0.1:1")}, dir, record.NoCopyAttached)
	check(&Built{Dir: t.TempDir()}, dir, record.NoCopyGiven)
	sparse, err := os.Create(filepath.Join(built.Dir, "sparse"))
	if err := errors.Join(err, sparse.Truncate(copyBytes), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	check(built, dir, record.NoCopyLarge)
	remove(t, built.Dir, "sparse")
	check(built, "/proc/"+CopyPrefix+"1-1", record.NoCopyFailed)
	_, err = (&Built{folder: "relative", Dir: built.Dir}).Copy(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), record.NoCopyFailed+": Rel: ") {
		t.Errorf("a folder that is not below that of its build: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := built.Copy(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Only a folder with the name and the mark of a copy is removed.
func TestRemoveCopyOfOthers(t *testing.T) {
	precious := filepath.Join(t.TempDir(), "precious")
	put(t, filepath.Join(precious, CopyMark), "")
	if err := RemoveCopy(precious); err == nil {
		t.Error("a folder of another name was removed")
	}
	unmarked := filepath.Join(t.TempDir(), CopyPrefix+"1-1")
	put(t, filepath.Join(unmarked, "file"), "")
	if err := RemoveCopy(unmarked); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{precious, unmarked} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	empty := filepath.Join(t.TempDir(), CopyPrefix+"1-2")
	if err := errors.Join(os.Mkdir(empty, 0o700), RemoveCopy(empty)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that was not filled yet is left: %v", err)
	}
}

// BenchmarkCopy copies 32 MiB in 2,000 files, about the size of a virtual environment of Python.
func BenchmarkCopy(b *testing.B) {
	folder := b.TempDir()
	built := &Built{Dir: filepath.Join(folder, copyDir), folder: folder}
	for i := range 2000 {
		name := filepath.Join(built.Dir, string(rune('a'+i%20)), time.Duration(i).String())
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, make([]byte, 16<<10), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	dir := filepath.Join(b.TempDir(), CopyPrefix+"1-1")
	for b.Loop() {
		if _, err := built.Copy(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
		if err := RemoveCopy(dir); err != nil {
			b.Fatal(err)
		}
	}
}
