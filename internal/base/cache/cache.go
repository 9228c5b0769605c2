// Package cache provides folders for things that later runs reuse: one for each kind, below .prony
// or outside of the project. Locks coordinate processes that fill them. The package that stores a
// thing validates it.
package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// poll is the time between attempts to take a lock.
const poll = 50 * time.Millisecond

// Folder creates the folder for things of a kind below root if it does not exist, and returns its
// absolute path.
func Folder(root, kind string) (string, error) {
	folder, err := filepath.Abs(filepath.Join(root, ".prony", kind))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	return folder, nil
}

// Lock takes an exclusive advisory lock on a file (flock(2)). The kernel releases it when the
// program ends, even after a crash. If another process has the lock, Lock calls waiting once.
// Errors name the subject, such as a build or a fetch. Unlocking keeps the file: after a removal
// two processes could lock two files of one name.
func Lock(ctx context.Context, path, subject string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for tries := 0; ; tries++ {
		// Polls, because a blocked flock ignores the context.
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // closing the last descriptor releases the lock
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
			return nil, errors.Join(fmt.Errorf("wait for another process that works on %s: %w",
				subject,
				context.Cause(ctx)), file.Close())
		case <-time.After(poll):
		}
	}
}

// held maps paths of stamps to the files that this program has locked. The map keeps them
// reachable: the garbage collector closes unreachable files, and that would release their locks.
var held = struct {
	sync.Mutex
	files map[string]*os.File
}{files: map[string]*os.File{}}

// Hold records in the times of a stamp, a file beside the cached thing, that the thing is used now.
// Until the program ends it also holds a shared advisory lock (flock(2)), so that Free returns
// false.
func Hold(stamp string, now time.Time) error {
	held.Lock()
	defer held.Unlock()
	if held.files[stamp] == nil {
		file, err := lockNow(stamp, syscall.LOCK_SH)
		if err != nil {
			return fmt.Errorf("hold %s: %w", filepath.Base(stamp), err)
		}
		held.files[stamp] = file
	}
	if err := os.Chtimes(stamp, now, now); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

// Free reports whether no program holds a stamp, and prevents new holders until release. The caller
// must have the Lock under which such things are used: only with it a stamp may be removed before
// release.
func Free(stamp string) (release func(), free bool, err error) {
	file, err := lockNow(stamp, syscall.LOCK_EX)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("ask for %s: %w", filepath.Base(stamp), err)
	}
	return func() { _ = file.Close() }, true, nil // closing the last descriptor releases the lock
}

// lockNow locks a file without waiting.
func lockNow(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, file.Close())
		}
	}
}
