package tidy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/buildflags"
)

// Module is the path of the module whose root Root looks for.
const Module = buildflags.Module

// unlisted are folders of generated files, for trees without git.
var unlisted = []string{".git", ".prony", "node_modules", "results", "target", "__pycache__"}

// Root returns the repository's root: the nearest folder upwards from the working directory whose
// go.mod is this module's. A service's own go.mod on the way does not count.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository's root: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+Module+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find the repository's root: no go.mod of " + Module + " upwards")
		}
		dir = up
	}
}

// list returns the regular files below root that git tracks or would track, sorted, with slashes.
// If git fails (not installed, an unpacked archive), it walks the tree.
func list(root string) ([]string, error) {
	names, err := listGit(root)
	// git also succeeds in a folder that an outer repository ignores, but lists nothing.
	if err != nil || !slices.Contains(names, "go.mod") {
		names, err = listWalk(root)
	}
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err != nil || !info.Mode().IsRegular() // deleted but still in the index, or a link
	})
	slices.Sort(names)
	return slices.Compact(names), touchFolders(root, names)
}

func listGit(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

func listWalk(root string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(unlisted, d.Name()) {
			return fs.SkipDir
		}
		if !d.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// touchFolders opens each folder, because go test reuses a result until a file or folder that the
// test itself opened changes; git's answer alone would hide new files. For the root, it reads git's
// index instead: the root contains .git, which every git status and so every go run changes, and
// results, which would always invalidate a result.
func touchFolders(root string, names []string) error {
	_, _ = os.Stat(filepath.Join(root, ".git", "index")) // absent in a worktree or an archive
	last := "."
	for _, name := range names {
		dir := path.Dir(name)
		if dir == last || dir == "." {
			continue
		}
		last = dir
		f, err := os.Open(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// isText distinguishes text from binary data as git does: no NUL near the start.
func isText(content []byte) bool {
	return !bytes.Contains(content[:min(len(content), 8000)], []byte{0})
}
