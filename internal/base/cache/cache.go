// Package cache keeps things for the next run: in a folder for each kind, below .prony or outside
// of the project, with locks between those who fill it. The package that keeps a thing knows what
// it is and whether it is whole.
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

// poll is how often a lock is asked for again.
const poll = 50 * time.Millisecond

// Folder is where things of a kind are kept below root. It is made if it is not there. It is
// absolute.
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

// Lock takes an advisory lock on a file (flock(2)), which the kernel gives back when the program
// ends, however that happens. It calls waiting, once, when another one holds it; what they do is
// called by what, a build or a fetch. The file stays: removing it would let two of them lock two
// files of one name.
func Lock(ctx context.Context, path, subject string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for tries := 0; ; tries++ {
		// Asking again and again, because a blocked flock does not see the context.
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
			return nil, errors.Join(fmt.Errorf("wait for another process that works on %s: %w",
				subject,
				context.Cause(ctx)), file.Close())
		case <-time.After(poll):
		}
	}
}

// held are the stamps that this program holds, by path. They stay here because a file that nobody
// refers to is closed by the collector, and its lock would be gone with it.
var held = struct {
	sync.Mutex
	files map[string]*os.File
}{files: map[string]*os.File{}}

// Hold notes with a stamp, a file beside the kept thing, that it is used now, and keeps it from
// Free until the program ends, however that happens: it takes a shared advisory lock (flock(2)).
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

// Free says whether no program holds a stamp, and keeps it so until release. Who calls it holds
// the Lock under which such things are taken: a stamp may be removed before release only there.
func Free(stamp string) (release func(), free bool, err error) {
	file, err := lockNow(stamp, syscall.LOCK_EX)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("ask for %s: %w", filepath.Base(stamp), err)
	}
	return func() { _ = file.Close() }, true, nil // the last close gives the lock back
}

// lockNow locks a file at once or fails.
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
