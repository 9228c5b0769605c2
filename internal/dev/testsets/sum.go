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
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"prony.example/internal/base/files"
)

// program is the program of a test: its executable file, which changes with all code that it links,
// and its package's folder, from the root of the repository.
type program struct {
	executable, root, dir string
}

// began is the folder in which this program was started: go test starts it in its package's folder.
var began, _ = os.Getwd()

// self is the program of this test.
var self = sync.OnceValues(func() (program, error) {
	executable, err := os.Executable()
	if err != nil {
		return program{}, fmt.Errorf("find the program of a test: %w", err)
	}
	return programIn(executable, began)
})

// programIn returns the program of a package in a folder. The root of the repository is the highest
// folder above with a module.
func programIn(executable, folder string) (p program, err error) {
	for above := folder; ; above = filepath.Dir(above) {
		if _, err := os.Stat(filepath.Join(above, "go.mod")); err == nil {
			p.root = above
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	if p.root == "" {
		return p, fmt.Errorf("find the root of the repository: no go.mod in or above %s", folder)
	}
	p.executable = executable
	p.dir, err = filepath.Rel(p.root, folder)
	return p, err
}

// sum returns a hash of all that a test depends on.
func (p program) sum(test string, needs Needs) (string, error) {
	h := sha256.New()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("ask for the kernel's version: %w", err)
	}
	code, err := files.Digest(p.executable)
	if err != nil {
		return "", fmt.Errorf("hash the program of %s: %w", test, err)
	}
	say(h, memory, p.dir, test, code, runtime.GOOS, string(kernel))
	say(h, slices.Sorted(slices.Values(needs.Facts))...)
	names := slices.Sorted(slices.Values(needs.Files))
	data := filepath.Join(p.dir, "testdata")
	if _, err := os.Stat(filepath.Join(p.root, data)); err == nil {
		names = append(names, data)
	}
	for _, name := range names {
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
// executable. It follows links.
func hashBelow(h hash.Hash, root, name string) error {
	say(h, name)
	_, tree, err := files.Hash(filepath.Join(root, name), func(string) bool { return false }, true)
	if err != nil {
		return err
	}
	h.Write(tree.Sum(nil))
	return nil
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

// name returns the file name of a test's result.
func name(test string) string {
	sum := sha256.Sum256([]byte(test))
	return hex.EncodeToString(sum[:16])
}
