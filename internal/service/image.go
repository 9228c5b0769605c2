package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// imageLog is what the image's build printed, beside the log of the service's own.
const imageLog = "image.log"

// ErrNoDocker says that there is nothing to build images with.
var ErrNoDocker = errors.New("needs docker: not found (install Docker Engine)")

// Image builds the container's image of a built service from its Dockerfile, as prony/SERVICE:HASH,
// and notes its size with the build. That of a further build is Dockerfile.WORD, of the first word
// of its name, with the build argument MODE; without one it has no image. An image that is there
// already is taken. Building uses the host's network, so that the mirrors and proxies which the
// host's own builds use are reached likewise.
func (b *Builder) Image(ctx context.Context, s *Service, built *Built) error {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return fmt.Errorf("build the image of %s: %w", s.Label(), ErrNoDocker)
	}
	file := "Dockerfile"
	if word, _, _ := strings.Cut(s.Other, "-"); word != "" {
		file += "." + word
	}
	if !isFile(filepath.Join(s.Dir, file)) {
		if s.Other != "" {
			return nil
		}
		return fmt.Errorf("build the image of %s: it has no %s", s.Label(), file)
	}
	tag := "prony/" + strings.TrimSuffix(s.Name+"-"+s.Other, "-") + ":" + built.Hash[:hashDigits]
	if built.ImageBytes = imageSize(ctx, docker, tag); built.ImageBytes == 0 {
		b.say("build %s: docker build --file %s", s.Label(), file)
		if err := makeImage(ctx, docker, tag, file, s, built); err != nil {
			return fmt.Errorf("build the image of %s: %w", s.Label(), err)
		}
		if built.ImageBytes = imageSize(ctx, docker, tag); built.ImageBytes == 0 {
			return fmt.Errorf("build the image of %s: docker built %s and does not know its size",
				s.Label(), tag)
		}
	}
	m := mark{Hash: built.Hash, SHA256: built.SHA256, SizeBytes: built.SizeBytes,
		DurationNs: built.DurationNs, ImageBytes: built.ImageBytes}
	return m.write(filepath.Join(filepath.Dir(built.Dir), markFile))
}

func makeImage(ctx context.Context, docker, tag, file string, s *Service, built *Built) error {
	log, err := os.Create(filepath.Join(filepath.Dir(built.Dir), imageLog))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // what is missing in it is no image's fault
	args := []string{"build", "--network", "host", "--tag", tag, "--file", file}
	if s.Other != "" {
		args = append(args, "--build-arg", "MODE="+s.Targets[0].Mode)
	}
	cmd := command(ctx, s.Dir, os.Environ(), docker, append(args, ".")...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return withTail(err, log)
	}
	return nil
}

// imageSize is the size of an image in bytes, 0 where there is none or nobody answers.
func imageSize(ctx context.Context, docker, tag string) int64 {
	out, err := command(ctx, os.TempDir(), os.Environ(), docker, "image", "inspect", "--format",
		"{{.Size}}", tag).Output()
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
