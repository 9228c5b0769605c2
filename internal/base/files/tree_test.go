package files_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/files"
)

// plant makes a tree from names with their texts; a text that begins with > is a link's target.
func plant(t *testing.T, tree map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range tree {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(text, ">")
		err := os.WriteFile(path, []byte(text), 0o644)
		if link {
			err = errors.Join(os.Remove(path), os.Symlink(target, path))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func none(string) bool { return false }

// TestWalk checks that files and links are listed by name, and what is skipped.
func TestWalk(t *testing.T) {
	root := plant(t, map[string]string{"b": "", "a/y": "", "a/x": ">../b", "c/d/e": "", "z": ">no"})
	check := func(from string, skip func(string) bool, want ...string) {
		t.Helper()
		entries, err := files.Walk(from, skip)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(root, none, "a/x", "a/y", "b", "c/d/e", "z")
	check(root, func(name string) bool { return name == "a" || name == "c/d/e" }, "b", "z")
	check(root, func(name string) bool { return name == "." }, "a/x", "a/y", "b", "c/d/e", "z")
	check(filepath.Join(root, "b"), none, ".")
	if _, err := files.Walk(filepath.Join(root, "no"), none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tree that does not exist: %v", err)
	}
	pipe := filepath.Join(root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	check(root, none, "a/x", "a/y", "b", "c/d/e", "z")
}

// TestHash checks which changes of a tree change its digest.
func TestHash(t *testing.T) {
	sum := func(root string, modes bool) string {
		t.Helper()
		_, h, err := files.Hash(root, none, modes)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	base := map[string]string{"a": "text", "b/c": "", "l": ">a"}
	root := plant(t, base)
	check := func(what string, name, text string, same bool) {
		t.Helper()
		tree := map[string]string{name: text}
		for name, text := range base {
			if _, changed := tree[name]; !changed {
				tree[name] = text
			}
		}
		if (sum(plant(t, tree), true) == sum(root, true)) != same {
			t.Errorf("%s: the same digest is %v", what, !same)
		}
	}
	check("nothing", "a", "text", true)
	check("a text", "a", "tex", false)
	check("one more file", "b/d", "", false)
	check("a link's target", "l", ">b", false)
	check("a file instead of a link", "l", "a", false)

	plain := sum(root, true)
	if err := os.Chmod(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if sum(root, true) == plain || sum(root, false) != plain {
		t.Error("the right to execute counts only if modes do")
	}
	if err := os.Chmod(filepath.Join(root, "a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum(root, true) != plain {
		t.Error("the right to read counts")
	}
	if _, _, err := files.Hash(filepath.Join(root, "no"), none, true); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("a tree that does not exist: %v", err)
	}
}

// TestDigest compares with FIPS 180-2, appendix B.1.
func TestDigest(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got, err := files.Digest(put(t, "abc")); got != abc || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := files.Digest(t.TempDir()); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := files.Digest(put(t, "") + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestFailedWrites checks that Write reports a file that it cannot replace.
func TestFailedWrites(t *testing.T) {
	below := filepath.Join(put(t, "old"), "a")
	if err := files.Put(below, nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "no", "a")
	if err := files.Put(gone, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
	if err := files.SyncFolder(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// TestString checks that String removes a mark, as Text does.
func TestString(t *testing.T) {
	if got, err := files.String(put(t, "\ufeffab"), 10); got != "ab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := files.String(put(t, "ab"), 1); got != "" || err == nil {
		t.Errorf("%q, %v, want an error", got, err)
	}
}
