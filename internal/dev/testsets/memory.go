package testsets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
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

// memory begins a remembered result: a line with the sum, and when the test passed for it.
const memory = "prony test 2"

// recall returns when a test passed for a sum.
func recall(path, sum string) (when string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	when, ok = strings.CutPrefix(string(text), memory+" "+sum+" ")
	return strings.TrimSpace(when), ok
}

// settle remembers that a test has passed for a sum, or forgets it.
func settle(path, sum string, passed bool) error {
	if !passed {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a test: %w", err)
		}
		return nil
	}
	when := clock.Wall().UTC().Format(time.RFC3339)
	if err := files.Put(path, fmt.Appendf(nil, "%s %s %s\n", memory, sum, when)); err != nil {
		return fmt.Errorf("remember a test: %w", err)
	}
	return nil
}
