package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// leftOut are the names that builds by hand leave in a service's folder and git ignores: anywhere
// in it, or only at its top, where src/bin may be somebody's source.
var (
	leftOut      = []string{"node_modules", "target", "__pycache__"}
	leftOutAtTop = []string{"bin", "venv", ".venv"}
)

// entry is a file or symbolic link of a tree, its name relative and with slashes.
type entry struct {
	name string
	info fs.FileInfo
}

// walk lists what is below root, or root itself if it is a file, sorted by name. Anything but
// folders, regular files and symbolic links is an error: a build must not depend on it.
func walk(root string, skip func(name string) bool) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if name != "." && skip(name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			return fmt.Errorf("%s is neither a file nor a link", path)
		}
		info, err := d.Info()
		entries = append(entries, entry{name, info})
		return err
	})
	return entries, err
}

func nothing(string) bool { return false }

// ignored says whether a name in a service's folder is not source.
func ignored(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	last := name[strings.LastIndexByte(name, '/')+1:]
	return slices.Contains(leftOutAtTop, top) || slices.Contains(leftOut, last)
}

func (s *Service) ignored(name string) bool {
	if s.Only != nil {
		return !s.Only(name)
	}
	return ignored(name)
}

// Sources names the files of the service's folder that are its source, sorted, with slashes: all
// but what builds by hand leave there.
func (s *Service) Sources() (names []string, err error) {
	entries, err := walk(s.Dir, s.ignored)
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names, err
}

// addTo feeds an entry to a digest: its kind, name, length and content, so that no two trees give
// the same bytes. Of the mode only the right to execute counts, as in git; of a link, where it
// points.
func (e entry) addTo(h hash.Hash, root string) error {
	path := filepath.Join(root, filepath.FromSlash(e.name))
	if e.info.Mode().Type() == fs.ModeSymlink {
		link, err := os.Readlink(path)
		fmt.Fprintf(h, "link %q %q\n", e.name, link)
		return err
	}
	kind := "file"
	if e.info.Mode()&0o111 != 0 {
		kind = "program"
	}
	fmt.Fprintf(h, "%s %q %d\n", kind, e.name, e.info.Size())
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(h, file)
	return errors.Join(err, file.Close())
}

// digest is the SHA-256, in hex, over the sorted names and contents of the files at root (a folder
// or one file), and the sum of their sizes in bytes. Links count by where they point, and nothing
// in the size.
func digest(root string) (sum string, sizeBytes int64, err error) {
	entries, h, err := hashed(root, nothing)
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		if e.info.Mode().IsRegular() {
			sizeBytes += e.info.Size()
		}
	}
	return hex.EncodeToString(h.Sum(nil)), sizeBytes, nil
}

// hashed walks, and feeds what it finds to a digest.
func hashed(root string, skip func(name string) bool) ([]entry, hash.Hash, error) {
	entries, err := walk(root, skip)
	if err != nil {
		return nil, nil, err
	}
	h := sha256.New()
	for _, e := range entries {
		if err := e.addTo(h, root); err != nil {
			return nil, nil, err
		}
	}
	return entries, h, nil
}

// copyTree copies entries from one folder to another, which may not exist yet. Files become
// writable for their owner, whatever they were: a build may want to change its copy.
func copyTree(from, to string, entries []entry) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		source := filepath.Join(from, filepath.FromSlash(e.name))
		target := filepath.Join(to, filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if e.info.Mode().Type() == fs.ModeSymlink {
			link, err := os.Readlink(source)
			if err == nil {
				err = os.Symlink(link, target)
			}
			if err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, e.info.Mode().Perm()|0o600); err != nil {
			return err
		}
	}
	return nil
}
