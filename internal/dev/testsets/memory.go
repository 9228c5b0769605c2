package testsets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"prony.example/internal/base/clock"
)

// Folder returns the folder for results that tests remember, and creates it. Only this user may
// read or write it.
func Folder() (string, error) {
	above, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of what tests keep: %w", err)
	}
	dir := filepath.Join(above, "prony", "tests")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of what tests keep: %w", err)
	}
	return dir, own(dir)
}

// own returns an error unless a folder belongs only to this user. Links are errors.
func own(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at what tests keep: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("use what tests keep: %s (%s) is not this user's alone, and what it "+
			"holds may be somebody else's; remove it", dir, info.Mode())
	}
	return nil
}

// self is the program of this test, read once.
var self = sync.OnceValues(func() (*program, error) { return look(context.Background(), began) })

// began is the folder in which this program was started: go test starts it in its package's folder.
var began, _ = os.Getwd()

// memory begins a remembered result: a line with the sum, and when the test passed for it.
const memory = "prony test 1"

// recall returns when a test passed for a sum. It ignores files that another user could have
// written.
func recall(path, sum string) (when string, ok bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return "", false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != uint32(os.Geteuid()) {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err != nil {
		return "", false
	}
	when, ok = strings.CutPrefix(string(text), memory+" "+sum+" ")
	return strings.TrimSpace(when), ok
}

// settle remembers that a test has passed for a sum, or forgets it. It replaces the file
// atomically.
func settle(path, sum string, passed bool) error {
	if !passed {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a test: %w", err)
		}
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("remember a test: %w", err)
	}
	when := clock.Wall().UTC().Format(time.RFC3339)
	_, err = fmt.Fprintf(file, "%s %s %s\n", memory, sum, when)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("remember a test: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
