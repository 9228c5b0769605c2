package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prony/internal/cache"
	"prony/internal/clock"
)

// idleFor is after how long without a use an earlier copy is removed. Going back to a branch within
// days should not build anew; months of changes should not fill the disk.
const idleFor = 7 * 24 * time.Hour

// stampEnd is the end of the name of a copy's stamp, the file beside its folder that is held by the
// labs which use the copy, and was changed when one last did.
const stampEnd = ".used"

// keep holds the copy in a folder for this lab, then removes copies of other sources of the same
// build that no lab holds, and that none has used for idleFor. The lock of the build is held, so
// that nobody takes a copy meanwhile. One that cannot be removed is told and fails nothing.
func (b *Builder) keep(s *Service, kept, name, folder string) error {
	now := clock.Wall()
	if err := cache.Hold(folder+stampEnd, now); err != nil {
		return err
	}
	others, err := os.ReadDir(kept)
	if err != nil {
		return err
	}
	removed := 0
	for _, e := range others {
		other := filepath.Join(kept, e.Name())
		if !e.IsDir() || other == folder || !isCopyOf(e.Name(), name) {
			continue
		}
		switch gone, err := discardIdle(other, now); {
		case err != nil:
			b.say("build %s: an earlier copy stays: %v", s.Label(), err)
		case gone:
			removed++
		}
	}
	if removed > 0 {
		b.say("build %s: earlier copies removed that were not used for %d days: %d", s.Label(),
			int(idleFor.Hours()/24), removed)
	}
	return nil
}

// isCopyOf says whether a folder is of a build of that name. A service's further build begins with
// the same words: java-spring and java-spring-native.
func isCopyOf(folder, name string) bool {
	hash, ok := strings.CutPrefix(folder, name+"-")
	return ok && len(hash) == hashDigits && strings.Trim(hash, "0123456789abcdef") == ""
}

// discardIdle removes a copy unless it was used of late or is in use. Of one without a stamp nobody
// knows either, so that it gets one and its days begin.
func discardIdle(folder string, now time.Time) (gone bool, err error) {
	stamp := folder + stampEnd
	used, err := os.Stat(stamp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	fresh := err != nil
	if !fresh && now.Sub(used.ModTime()) < idleFor {
		return false, nil
	}
	release, free, err := cache.Free(stamp)
	if err != nil || !free {
		return false, err
	}
	defer release()
	if fresh {
		return false, nil
	}
	if err := discard(folder); err != nil {
		return false, err
	}
	return true, os.Remove(stamp)
}

// discard removes a copy, its mark first: what is left if that is cut short is no build.
func discard(folder string) error {
	err := os.Remove(filepath.Join(folder, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(folder)
}
