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

// idleFor is the time without use after which an earlier copy is removed. Returning to a branch
// within days should need no build, and months of changes should not fill the disk.
const idleFor = 7 * 24 * time.Hour

// stampEnd is the suffix of a stamp: a file beside a copy or an image's log that labs lock during
// use, with the time of the last use.
const stampEnd = ".used"

// keepCopy locks the copy in a folder for this lab, and removes earlier ones. The caller holds the
// lock of the build, so that no other lab takes a copy meanwhile.
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

// keepImage locks an image for this lab, and removes earlier images of the same name with their
// files. The engine keeps layers that another image or its builder uses. The caller holds the lock
// of the service's images.
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

// keep locks the result at a path for this lab. It then discards results of other sources or bases
// in the same folder, found by name and end, that no lab has locked and that were unused for
// idleFor. A failed removal is reported to stays and is not an error.
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

// isCopyOf reports whether a folder belongs to the build of this name. Names of further builds have
// it as a prefix: java-spring and java-spring-native.
func isCopyOf(folder, name string) bool {
	hash, ok := strings.CutPrefix(folder, name+"-")
	return ok && len(hash) == hashDigits && strings.Trim(hash, "0123456789abcdef") == ""
}

// discardIdle removes a result unless it was used recently or is in use. A result without a stamp
// gets one, and its idle time begins now.
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

// discard removes a copy, its mark first, so that an interrupted removal leaves no valid build.
func discard(folder string) error {
	err := os.Remove(filepath.Join(folder, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(folder)
}
