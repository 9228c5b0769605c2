package file

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
)

// Entry is a file or symbolic link of a tree, its name relative and with slashes.
type Entry struct {
	Name string
	Info fs.FileInfo
}

// Walk lists what is below root, or root itself if it is a file, sorted by name. Anything but
// folders, regular files and symbolic links is an error: a build must not depend on it.
func Walk(root string, skip func(name string) bool) ([]Entry, error) {
	var entries []Entry
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
		entries = append(entries, Entry{name, info})
		return err
	})
	return entries, err
}

// Hash walks, and feeds what it finds to a digest, SHA-256.
func Hash(root string, skip func(name string) bool, modes bool) ([]Entry, hash.Hash, error) {
	entries, err := Walk(root, skip)
	if err != nil {
		return nil, nil, err
	}
	h := sha256.New()
	for _, e := range entries {
		if err := e.addTo(h, root, modes); err != nil {
			return nil, nil, err
		}
	}
	return entries, h, nil
}

// addTo feeds an entry to a digest: its kind, name, length and content, so that no two trees give
// the same bytes. Of the mode, where modes count, only the right to execute does, as in git; of a
// link, where it points.
func (e Entry) addTo(h hash.Hash, root string, modes bool) error {
	path := filepath.Join(root, filepath.FromSlash(e.Name))
	if e.Info.Mode().Type() == fs.ModeSymlink {
		link, err := os.Readlink(path)
		fmt.Fprintf(h, "link %q %q\n", e.Name, link)
		return err
	}
	kind := "file"
	if modes && e.Info.Mode()&0o111 != 0 {
		kind = "program"
	}
	fmt.Fprintf(h, "%s %q %d\n", kind, e.Name, e.Info.Size())
	return Feed(h, path)
}

// Feed copies what a file holds, however much that is.
func Feed(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

// Digest is the SHA-256 of what a file holds, in hex.
func Digest(path string) (string, error) {
	h := sha256.New()
	err := Feed(h, path)
	return hex.EncodeToString(h.Sum(nil)), err
}
