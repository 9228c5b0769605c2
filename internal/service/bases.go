package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
