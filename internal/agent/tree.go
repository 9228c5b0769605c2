package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
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

const lockPoll = 50 * time.Millisecond

// lock takes an advisory lock on a file (flock(2)), as builds do: the kernel gives it back when the
// program ends, however that happens, and the file stays. It calls waiting, once, when another one
// holds it.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for tries := 0; ; tries++ {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // the last close gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", filepath.Base(path), err),
				file.Close())
		}
		if tries == 0 {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another fetch: %w", context.Cause(ctx)),
				file.Close())
		case <-time.After(lockPoll):
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
