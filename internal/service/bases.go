package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony/internal/cache"
	"prony/internal/clock"
)

// Bases are the images that a Dockerfile builds upon or copies from, each once, in order: not its
// own stages, nor scratch, nor what an argument names.
func Bases(dockerfile string) (out []string) {
	stages := []string{"scratch"}
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var base, stage string
		flags, rest := flagged(words[1:])
		switch {
		case strings.EqualFold(words[0], "FROM") && len(rest) > 0:
			base = rest[0]
			if len(rest) == 3 && strings.EqualFold(rest[1], "AS") {
				stage = rest[2]
			}
		case strings.EqualFold(words[0], "COPY"):
			base = flags["--from"]
		}
		number := base != "" && strings.Trim(base, "0123456789") == "" // of a stage
		if base != "" && !number && !strings.Contains(base, "$") && !slices.Contains(out, base) &&
			!slices.Contains(stages, strings.ToLower(base)) {
			out = append(out, base)
		}
		stages = append(stages, strings.ToLower(stage))
	}
	return out
}

// flagged parts the flags in front of an instruction's words from these.
func flagged(words []string) (flags map[string]string, rest []string) {
	flags = map[string]string{}
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") {
			return flags, words[i:]
		}
		flags[name] = value
	}
	return flags, nil
}

// addBases writes the bases of an image into the hash that it is named after, as the engine has
// them: a name such as debian:12 means another image once somebody has pulled it anew. One that the
// engine does not have is the builder's to fetch, by its name alone.
func (i *image) addBases(ctx context.Context, h io.Writer) error {
	text, err := os.ReadFile(filepath.Join(i.dir, i.file))
	if err != nil {
		return err
	}
	for _, base := range Bases(string(text)) {
		of := *i
		of.tag = base
		id, _ := of.look(ctx)
		fmt.Fprintf(h, "base %q is %q\n", base, id)
	}
	return ctx.Err()
}

// keepImage holds an image for this lab, and removes images of other sources or bases of the same
// name, with what is kept beside them, that no lab holds and that none has used for idleFor. Its
// layers stay with the engine for as long as another image or its builder has them. The lock of the
// service's images is held. One that cannot be removed is told and fails nothing.
func (b *Builder) keepImage(ctx context.Context, i *image) error {
	now := clock.Wall()
	folder, own := filepath.Split(strings.TrimSuffix(i.log, ".log"))
	if err := cache.Hold(filepath.Join(folder, own+stampEnd), now); err != nil {
		return err
	}
	others, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(i.tag, "prony/"), ":")
	for _, e := range others {
		other, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok || other == own || !isCopyOf(other, name) {
			continue
		}
		if err := i.discardIdle(ctx, name, filepath.Join(folder, other), now); err != nil {
			b.say("an earlier image %s stays: %v", other, err)
		}
	}
	return nil
}

// discardIdle removes an earlier image and its files unless it is in use or was of late.
func (i *image) discardIdle(ctx context.Context, name, kept string, now time.Time) error {
	stamp := kept + stampEnd
	used, err := os.Stat(stamp)
	fresh := os.IsNotExist(err)
	if err != nil && !fresh || err == nil && now.Sub(used.ModTime()) < idleFor {
		return err
	}
	release, free, err := cache.Free(stamp)
	if err != nil || !free {
		return err
	}
	defer release()
	if fresh { // its days begin
		return nil
	}
	of := *i
	of.tag = "prony/" + name + ":" + kept[len(kept)-hashDigits:]
	if id, _ := of.look(ctx); id != "" {
		out, err := Command(ctx, os.TempDir(), os.Environ(), i.docker, "image", "rm",
			of.tag).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	for _, end := range []string{".log", ".tools.json", stampEnd} {
		if err := os.Remove(kept + end); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
