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

// unlisted are the folders that hold what tools made, for when git cannot say.
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

// list names the regular files below root that git tracks or would, sorted, with slashes. Where git
// does not answer (not installed, an unpacked archive) it walks.
func list(root string) ([]string, error) {
	names, err := listGit(root)
	// An outer repository that ignores this folder answers too, with nothing.
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

// touchFolders opens each folder, because go test keeps a result until a file or folder that the
// test itself opened changes, and a new file would go unseen behind git's answer. Of the root it
// looks at git's index instead: in it are .git, which every git status and so every go run touches,
// and results, by which no result would ever be kept.
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

// isText tells text from bytes as git does: no NUL near the start.
func isText(content []byte) bool {
	return !bytes.Contains(content[:min(len(content), 8000)], []byte{0})
}
