package testsets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"prony.example/internal/base/files"
)

// program lists the sources of a test's program: the package under test with its tests and their
// data, and all packages of the same module that it links.
type program struct {
	pkg   string   // its import path
	root  string   // of the module
	files []string // from the root, sorted
	dirs  []string // of the packages, from the root, sorted
}

// listed is the output of go list for a package. With -test, packages appear again as built for a
// test, with the tests' files.
type listed struct {
	ImportPath, Dir string
	Module          *struct {
		Path, Dir string
		Main      bool
	}
	GoFiles, CgoFiles, CFiles, HFiles, SFiles, EmbedFiles []string
}

// List returns the JSON output of go list in a folder, one value per package.
func List[T any](ctx context.Context, dir string, args ...string) (all []T, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var item T
		if err := d.Decode(&item); err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, item)
	}
	return all, nil
}

// look returns the packages that the tests of the package in dir link.
func look(ctx context.Context, dir string) (*program, error) {
	all, err := List[listed](ctx, dir, "-deps", "-test", "-json=ImportPath,Dir,Module,"+
		"GoFiles,CgoFiles,CFiles,HFiles,SFiles,EmbedFiles", ".")
	if err != nil {
		return nil, fmt.Errorf("list what a test links: %w", err)
	}
	p := &program{}
	modules := rootOf(all)
	for _, l := range all {
		if l.Module != nil && slices.Contains(modules, l.Module.Dir) &&
			!strings.HasSuffix(l.ImportPath, ".test") {
			p.root = modules[0]
			p.add(l, l.Dir == dir)
		}
	}
	if p.pkg == "" {
		return nil, fmt.Errorf("list what a test links: %s holds no package of a module", dir)
	}
	testdata := filepath.Join(dir, "testdata")
	if _, err := os.Stat(testdata); err == nil {
		below, err := filepath.Rel(p.root, testdata)
		if err != nil {
			return nil, fmt.Errorf("list what a test links: %w", err)
		}
		p.files = append(p.files, filepath.ToSlash(below))
	}
	for _, module := range modules {
		below, err := filepath.Rel(p.root, module)
		if err != nil {
			return nil, fmt.Errorf("list what a test links: %w", err)
		}
		p.files = append(p.files, path.Join(filepath.ToSlash(below), "go.mod"),
			path.Join(filepath.ToSlash(below), "go.sum"))
	}
	slices.Sort(p.files)
	slices.Sort(p.dirs)
	p.files, p.dirs = slices.Compact(p.files), slices.Compact(p.dirs)
	return p, nil
}

// rootOf returns the folders of this repository's modules among packages: the root module's first,
// then, for a test of a module in a subfolder, that module's.
func rootOf(all []listed) (folders []string) {
	for _, l := range all {
		if l.Module != nil && l.Module.Main {
			folders = []string{l.Module.Dir}
			for _, above := range all {
				if m := above.Module; m != nil && m.Path == path.Dir(l.Module.Path) &&
					m.Dir == filepath.Dir(l.Module.Dir) {
					return []string{m.Dir, l.Module.Dir}
				}
			}
			return folders
		}
	}
	return nil
}

// add adds the files of a package. The package under test sets pkg.
func (p *program) add(l listed, isOwn bool) {
	if isOwn && !strings.ContainsAny(l.ImportPath, " ") {
		p.pkg = l.ImportPath
	}
	below := strings.TrimPrefix(strings.TrimPrefix(l.Dir, p.root), string(filepath.Separator))
	dir := path.Clean(filepath.ToSlash(below))
	p.dirs = append(p.dirs, dir)
	files := slices.Concat(l.GoFiles, l.CgoFiles, l.CFiles, l.HFiles, l.SFiles, l.EmbedFiles)
	for _, name := range files {
		p.files = append(p.files, path.Join(dir, filepath.ToSlash(name)))
	}
}

// sum returns a hash of all that a test depends on.
func (p *program) sum(test string, needs Needs) (string, error) {
	h := sha256.New()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("ask for the kernel's version: %w", err)
	}
	say(h, memory, p.pkg, test, runtime.Version(), runtime.GOOS, runtime.GOARCH, string(kernel))
	say(h, slices.Sorted(slices.Values(needs.Facts))...)
	for _, name := range slices.Concat(p.files, slices.Sorted(slices.Values(needs.Files))) {
		if err := hashBelow(h, p.root, name); err != nil {
			return "", fmt.Errorf("hash what %s depends on: %w", test, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// say hashes texts so that different lists of them never have the same input.
func say(h hash.Hash, texts ...string) {
	fmt.Fprintf(h, "%q\n", texts)
}

// hashBelow hashes a file, or all files below a folder, with their names and whether they are
// executable. It follows links, and ignores a missing go.sum.
func hashBelow(h hash.Hash, root, name string) error {
	top := filepath.Join(root, name)
	if _, err := os.Lstat(top); path.Base(name) == "go.sum" && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	say(h, name)
	_, tree, err := files.Hash(top, func(string) bool { return false }, true)
	if err != nil {
		return err
	}
	h.Write(tree.Sum(nil))
	return nil
}

// touched reports whether a test depends on one of the changed files, named from the root, or may
// have depended on it before its removal.
func (p *program) touched(needs Needs, changed []string) bool {
	return slices.ContainsFunc(changed, func(name string) bool {
		if path.Ext(name) == ".go" && slices.Contains(p.dirs, path.Dir(name)) {
			return true
		}
		below := func(dir string) bool {
			return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
		}
		return slices.ContainsFunc(p.files, below) || slices.ContainsFunc(needs.Files, below)
	})
}

// changedSince names the files that differ from a commit, tracked by git or not.
func changedSince(ctx context.Context, root, base string) ([]string, error) {
	var names []string
	for _, args := range [][]string{
		{"diff", "--name-only", "--no-renames", "--relative", "-z", base, "--"},
		{"ls-files", "--others", "--exclude-standard", "-z"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("ask git what differs from %s: %w", base, err)
		}
		for _, name := range bytes.FieldsFunc(out, func(r rune) bool { return r == 0 }) {
			names = append(names, string(name))
		}
	}
	return names, nil
}

// name returns the file name of a test's result.
func name(test string) string {
	sum := sha256.Sum256([]byte(test))
	return hex.EncodeToString(sum[:16])
}
