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

// Env is the variable that names the folder of all projects' caches.
const Env = "PRONY_CACHE"

// systemCache is the folder of root's caches: root's own home is closed to the users that build and
// serve for it.
const systemCache = "/var/cache/prony"

// unusedFor is after how long without a use the cache of a project is removed.
const unusedFor = 30 * 24 * time.Hour

// usedEnd is the end of the name of a project's stamp.
const usedEnd = ".used"

// Project is the folder in which clones and builds of a project are kept. It is outside of the
// project, so that neither git nor a build tool that looks for its files in the folders above finds
// the project's. It is made if it is not there, and held until the program ends; those of projects
// that were not used for 30 days are removed.
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
		_ = removeUnused(stamp, now) // what cannot be removed stays, and fails nothing
	}
	return folder, nil
}

// likeProject opens a cache to whoever may enter the project's folder, and to nobody else: files of
// a private home stay private, and the user that serves there gets to the cache. A cache that root
// makes belongs to the project's owner.
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

// projects is the folder of all projects' caches, as an absolute path.
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

// removeUnused removes a project's cache, unless it is in use or was within unusedFor. The caller
// has the lock.
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
		return err // somebody else's, who removes it
	}
	return errors.Join(err, os.Remove(stamp))
}
