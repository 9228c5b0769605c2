package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
)

// idleFor is after how long without a use an earlier copy is removed. Going back to a branch within
// days should not build anew; months of changes should not fill the disk.
const idleFor = 7 * 24 * time.Hour

// stampEnd is the end of the name of a stamp, the file beside a copy or an image's log that is held
// by the labs which use it, and was changed when one last did.
const stampEnd = ".used"

// keepCopy holds the copy in a folder for this lab, and removes earlier ones. The lock of the build
// is held, so that nobody takes a copy meanwhile.
func (b *Builder) keepCopy(s *Service, name, folder string) error {
	removed, err := keep(folder, name, "", discard, func(_ string, err error) {
		b.say("build %s: an earlier copy could not be removed: %v", s.Label(), err)
	})
	if removed > 0 {
		b.say("build %s: earlier copies that were unused for %d days and were removed: %d",
			s.Label(),
			int(idleFor.Hours()/24), removed)
	}
	return err
}

// keepImage holds an image for this lab, and removes earlier ones of the same name, with what is
// kept beside them. Its layers stay with the engine for as long as another image or its builder has
// them. The lock of the service's images is held.
func (b *Builder) keepImage(ctx context.Context, i *image) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(i.tag, "prony/"), ":")
	_, err := keep(strings.TrimSuffix(i.log, ".log"), name, ".log", func(dir string) error {
		wanted := *i
		wanted.tag = "prony/" + name + ":" + dir[len(dir)-hashDigits:]
		if id, _ := wanted.look(ctx); id != "" {
			out, err := Command(ctx, os.TempDir(), os.Environ(), i.docker, "image", "rm",
				wanted.tag).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
			}
		}
		for _, end := range []string{".log", ".tools.json"} {
			if err := os.Remove(dir + end); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		return nil
	}, func(alternative string, err error) {
		b.say("an earlier image %s could not be removed: %v", alternative, err)
	})
	return err
}

// keep holds what was made at a path for this lab, then discards what was made of other sources or
// bases under the same name, that no lab holds, and that none has used for idleFor. In its folder
// each is found by its name and the end. What cannot be removed stays, which fails nothing.
func keep(ownText, name, end string, discard func(dir string) error,
	stays func(alternative string, err error)) (removed int, err error) {
	now := clock.Wall()
	if err := cache.Hold(ownText+stampEnd, now); err != nil {
		return 0, err
	}
	peers, err := os.ReadDir(filepath.Dir(ownText))
	for _, e := range peers {
		alternative, ok := strings.CutSuffix(e.Name(), end)
		dir := filepath.Join(filepath.Dir(ownText), alternative)
		if !ok || dir == ownText || !isCopyOf(alternative, name) {
			continue
		}
		switch gone, err := discardIdle(dir, now, discard); {
		case err != nil:
			stays(alternative, err)
		case gone:
			removed++
		}
	}
	return removed, err
}

// isCopyOf says whether a folder is of a build of that name. A service's further build begins with
// the same words: java-spring and java-spring-native.
func isCopyOf(folder, name string) bool {
	hash, ok := strings.CutPrefix(folder, name+"-")
	return ok && len(hash) == hashDigits && strings.Trim(hash, "0123456789abcdef") == ""
}

// discardIdle removes what is kept unless it was used of late or is in use. Of what has no stamp
// nobody knows either, so that it gets one and its days begin.
func discardIdle(kept string, now time.Time, discard func(kept string) error) (gone bool,
	err error) {
	stamp := kept + stampEnd
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
	if err := discard(kept); err != nil {
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
