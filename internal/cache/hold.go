package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

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
