package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// bytecode is left out of digests: Python writes it where it likes, with times in it.
const bytecode = "__pycache__"

// sumTree is the SHA-256, in hex, over the sorted names and contents of the files below root. Links
// count by where they point.
func sumTree(root string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == bytecode {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			fmt.Fprintf(h, "link %q %q\n", name, link)
			return err
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a link", path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "file %q %d\n", name, info.Size())
		return feed(h, path)
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// sumFile is the SHA-256 of one file, in hex.
func sumFile(path string) (string, error) {
	h := sha256.New()
	err := feed(h, path)
	return hex.EncodeToString(h.Sum(nil)), err
}

func feed(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return errors.Join(err, file.Close())
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
