package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Env is the name of the variable that sets the folder of all projects' caches.
const Env = "PRONY_CACHE"

// systemCache is the folder of root's caches. Root's home is not an option because the users that
// build and serve for root cannot enter it.
const systemCache = "/var/cache/prony"

// unusedFor is the age of the last use after which Project removes a cache.
const unusedFor = 30 * 24 * time.Hour

// usedEnd is the suffix of a stamp's name.
const usedEnd = ".used"

// Project creates and returns the folder in which clones and builds of a project are kept. The
// folder is outside of the project, so that git and build tools that search parent folders for
// their files find none of the project's. Project holds the folder until the program ends, and
// removes the caches of projects that were not used for 30 days.
func Project(ctx context.Context, root string, now time.Time) (string, error) {
	all, err := projects()
	if err != nil {
		return "", err
	}
	ownText, err := filepath.Abs(root)
	if err == nil {
		err = os.MkdirAll(all, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create the cache folder: %w; set %s to another folder", err, Env)
	}
	if real, err := filepath.EvalSymlinks(ownText); err == nil {
		ownText = real
	}
	sum := sha256.Sum256([]byte(ownText))
	folder := filepath.Join(all, fmt.Sprintf("%s-%x", filepath.Base(ownText), sum[:6]))
	unlock, err := Lock(ctx, filepath.Join(all, "lock"), "prony", func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := errors.Join(os.MkdirAll(folder, 0o755), likeProject(folder, ownText)); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	if err := Hold(folder+usedEnd, now); err != nil {
		return "", err
	}
	stamps, _ := filepath.Glob(filepath.Join(all, "*"+usedEnd)) // a constant pattern is well formed
	for _, stamp := range stamps {
		_ = removeUnused(stamp, now) // best effort: a cache that cannot be removed is not an error
	}
	return folder, nil
}

// likeProject gives a cache the permissions of the project's folder: all users can enter the cache
// only if they can enter the project, so that files of a private home stay private and the user
// that serves has access. A cache that root creates gets the project's owner.
func likeProject(folder, project string) error {
	info, err := os.Stat(project)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o755)
	for dir := project; ; dir = filepath.Dir(dir) {
		if fileInfo, err := os.Stat(dir); err != nil || fileInfo.Mode()&0o001 == 0 {
			mode = 0o700
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = os.Lchown(folder, int(s.Uid), int(s.Gid))
	}
	return errors.Join(err, os.Chmod(folder, mode))
}

// projects returns the absolute path of the folder of all projects' caches.
func projects() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 && os.Getenv("XDG_CACHE_HOME") == "" {
		return systemCache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the cache: %w; set %s to a folder", err, Env)
	}
	return filepath.Join(dir, "prony"), nil
}

// removeUnused removes a project's cache if no program holds it and its last use is older than
// unusedFor. The caller must have the lock.
func removeUnused(stamp string, now time.Time) error {
	info, err := os.Stat(stamp)
	if err != nil || now.Sub(info.ModTime()) < unusedFor {
		return err
	}
	release, free, err := Free(stamp)
	if err != nil || !free {
		return err
	}
	defer release()
	err = os.RemoveAll(strings.TrimSuffix(stamp, usedEnd))
	if errors.Is(err, fs.ErrPermission) {
		return err // another user's cache, which that user's runs remove
	}
	return errors.Join(err, os.Remove(stamp))
}
