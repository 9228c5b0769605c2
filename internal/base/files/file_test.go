package files_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/files"
)

func put(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

// loginUID returns the content of a kernel file without a size.
func loginUID(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/loginuid")
	if err != nil {
		t.Skip("the kernel has no /proc/self/loginuid")
	}
	return string(text)
}

// TestRead checks Read, Text and Kept.
func TestRead(t *testing.T) {
	check := func(what, name, bytes, text, kept string) {
		t.Helper()
		say := func(got string, err error) string {
			if err != nil {
				return "! " + strings.ReplaceAll(err.Error(), name, "X")
			}
			return got
		}
		read, err := files.Read(name, 10)
		if got := say(string(read), err); got != bytes {
			t.Errorf("%s: Read gives %q, want %q", what, got, bytes)
		}
		plain, err := files.Text(name, 10)
		if got := say(string(plain), err); got != text {
			t.Errorf("%s: Text gives %q, want %q", what, got, text)
		}
		again, err := files.Kept(name, 10)
		if got := say(string(again), err); got != kept {
			t.Errorf("%s: Kept gives %q, want %q", what, got, kept)
		}
	}
	const nul, pipe, large = "! read X: the file is not text: it contains NUL bytes",
		"! read X: it is not a regular file; data from a pipe or a device cannot be read twice: " +
			"save it to a file", "! read X: the file has more than the allowed 0 MiB"
	check("whole", put(t, "0123456789"), "0123456789", "0123456789", "0123456789")
	check("empty", put(t, ""), "", "", "")
	check("a mark", put(t, "\ufeffab"), "\ufeffab", "ab", "ab")
	check("NUL", put(t, "a\x00"), "a\x00", nul, nul)
	for start, hint := range map[string]string{
		"\xff\xfea\x00":    "it is UTF-16; save it as UTF-8",
		"\xfe\xff\x01a":    "it is UTF-16; save it as UTF-8",
		"a\x00b\x00":       "it is UTF-16; save it as UTF-8",
		"\x00a\x00b":       "it is UTF-16; save it as UTF-8",
		"\x1f\x8b\x08\x01": "it is compressed by gzip; unpack it first, as gunzip does",
		"\x28\xb5\x2f\xfd": "it is compressed by zstd; unpack it first, as unzstd does",
		"\xfd7zXZ\x00":     "it is compressed by xz; unpack it first, as unxz does",
		"PK\x03\x04\x00":   "it is a ZIP archive; unpack it first, as unzip does",
		"BZh91AY&SY":       "it is compressed by bzip2; unpack it first, as bunzip2 does",
		"\x00\x00a\x00":    "the file is not text: it contains NUL bytes",
		"ab\x00c":          "the file is not text: it contains NUL bytes",
	} {
		check(hint, put(t, start), start, "! read X: "+hint, "! read X: "+hint)
	}
	const more = "! read X: the file has 11 bytes, but at most 0 MiB are allowed"
	check("more", put(t, "01234567890"), more, more, more)
	const folder = "! open X: it is a folder, but a file is required"
	check("a folder", t.TempDir(), folder, folder, folder)
	const none = "! open X: no such file or directory"
	check("none", filepath.Join(t.TempDir(), "a"), none, none, none)
	check("endless", "/dev/zero", large, nul, pipe)
	silent := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	check("a pipe that nobody writes to", silent, "", "", pipe)
	// "files.test\n" is a byte longer than the bound; the kernel reports no size.
	check("no size is told", "/proc/self/comm", large, large, large)
	id := loginUID(t)
	check("no size is told, and little", "/proc/self/loginuid", id, id, id)
}

// TestPlain opens a regular file only by its own name, and does not wait for a pipe.
func TestPlain(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "f"), filepath.Join(dir, "l"), filepath.Join(dir, "p")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Symlink(file, link),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{file: "", link: "it is not a regular file",
		pipe: "it is not a regular file", dir: "it is not a regular file",
		filepath.Join(dir, "none"): "no such file"} {
		f, err := files.Plain(name)
		if err == nil {
			err = f.Close()
			if want != "" {
				t.Errorf("%s was opened", name)
			}
		}
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestPipe checks that a slow pipe is read to its end.
func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		for _, piece := range []string{"a", "b", strings.Repeat("c", 4096)} {
			if _, err := w.WriteString(piece); err != nil {
				t.Error(err)
			}
		}
	}()
	got, err := files.Text(fmt.Sprintf("/proc/self/fd/%d", r.Fd()), files.Settings)
	if want := "ab" + strings.Repeat("c", 4096); string(got) != want || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestWrite checks that a file has the old or the new content, and that no other files remain.
func TestWrite(t *testing.T) {
	broken := errors.New("broken")
	check := func(what, name string, fail error, want string) {
		t.Helper()
		err := files.Write(name, func(w io.Writer) error {
			_, err := io.WriteString(w, "new")
			return errors.Join(err, fail)
		})
		if !errors.Is(err, fail) {
			t.Errorf("%s: %v", what, err)
		}
		data, err := os.ReadFile(name)
		if string(data) != want || (err != nil) != (want == "") {
			t.Errorf("%s: it holds %q, %v", what, data, err)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
		if len(left) > 2 || err != nil {
			t.Errorf("%s: %q, %v", what, left, err)
		}
	}
	check("another", put(t, "old"), nil, "new")
	check("it fails", put(t, "old"), broken, "old")
	check("a first one", filepath.Join(t.TempDir(), "a"), nil, "new")
	check("a first one fails", filepath.Join(t.TempDir(), "a"), broken, "")
	name := put(t, "old")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	check("through a link", link, nil, "new")
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := files.Put("/dev/null", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := files.Put("/dev/full", []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

// TestGlob checks that a pattern is about what is in a folder, not about the folder's name.
func TestGlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a]*")
	for _, name := range []string{"b/run.json", "a/run.json", "c/other"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(dir, "a", "run.json"), filepath.Join(dir, "b", "run.json")}
	if got := files.Glob(dir, "*/run.json"); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := files.Glob(dir+"x", "*"); len(got) > 0 {
		t.Errorf("found %q in no folder", got)
	}
}
