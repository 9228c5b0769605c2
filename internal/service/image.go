package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/files"
)

// ErrNoDocker reports that Docker, which builds images, is not installed.
var ErrNoDocker = errors.New("needs docker: not found (install Docker Engine)")

// noImage is the image of a process that cannot be a container.
const noImage = "none"

// NoImage returns why a target cannot be started as a container; empty: it can.
func (s *Service) NoImage(t Target) string {
	if s.Made != nil && len(s.Made.Images) > 0 {
		return ""
	}
	for _, p := range s.Processes(t) {
		if p.Image == noImage {
			return fmt.Sprintf("process %s of the service has no image", p.Name)
		}
	}
	file, _ := s.dockerfile()
	if !files.IsFile(filepath.Join(s.Dir, file)) {
		return "it has no " + file
	}
	return ""
}

// dockerfile returns the Dockerfile of a build and its arguments. A further build, with WORD as the
// first word of its name, uses Dockerfile.WORD with the argument MODE; or the usual Dockerfile with
// BUILD=WORD, if that has an argument BUILD.
func (s *Service) dockerfile() (file string, args []string) {
	word, _, _ := strings.Cut(s.Other, "-")
	if word == "" {
		return "Dockerfile", nil
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, "Dockerfile"))
	if err == nil && strings.Contains(string(data), "\nARG BUILD") {
		return "Dockerfile", []string{"BUILD=" + word}
	}
	return "Dockerfile." + word, []string{"MODE=" + s.Targets[0].Mode}
}

// Image builds the images of a service's containers by its Dockerfile: one, or one for each process
// of a system, with the build argument SERVICE. Their names are prony/SERVICE:HASH, with a hash of
// the sources and the bases, and an image of this name is taken again. The result is like that of
// Build, with the image as artifact. The build uses the host's network, to reach the same mirrors
// and proxies.
func (b *Builder) Image(ctx context.Context, s *Service) (*Built, error) {
	built, err := b.image(ctx, s)
	if err != nil {
		do := "build"
		if s.Made != nil && len(s.Made.Images) > 0 {
			do = "find"
		}
		return nil, fmt.Errorf("%s the image of %s: %w", do, s.Label(), err)
	}
	return built, nil
}

func (b *Builder) image(ctx context.Context, s *Service) (*Built, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, ErrNoDocker
	}
	if s.Made != nil && s.Made.Compose != nil {
		return b.compose(ctx, docker, s)
	}
	if s.Made != nil && len(s.Made.Images) > 0 {
		return found(ctx, docker, *s.Made)
	}
	if why := s.NoImage(Target{}); why != "" {
		return nil, errors.New(why)
	}
	_, h, err := files.Hash(s.Dir, s.ignored, true)
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	from, args := s.dockerfile()
	fmt.Fprintf(h, "file %q arguments %q\n", from, args)
	wanted := image{docker: docker, dir: s.Dir, file: from, args: args, bound: b.Bound}
	if err := wanted.addBases(ctx, h); err != nil {
		return nil, fmt.Errorf("read its base images: %w", err)
	}
	dir, err := cache.Folder(b.Root, "images")
	if err != nil {
		return nil, err
	}
	unlock, err := cache.Lock(ctx, filepath.Join(dir, s.Name+".lock"), "build", func() {
		b.say("build the image of %s: waiting for another build of the same image", s.Label())
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	built := &Built{Dir: s.Dir, Hash: hex.EncodeToString(h.Sum(nil)), Images: map[string]string{},
		Cached: true}
	for _, process := range s.imaged() {
		i := wanted
		name := s.buildName()
		if process != "" {
			name, i.args = name+"-"+process, append(args[:len(args):len(args)], "SERVICE="+process)
		}
		i.tag = "prony/" + name + ":" + built.Hash[:hashDigits]
		i.log = filepath.Join(dir, name+"-"+built.Hash[:hashDigits]+".log")
		if err := b.take1(ctx, &i, built); err != nil {
			return nil, err
		}
		if err := b.keepImage(ctx, &i); err != nil {
			return nil, err
		}
		built.Images[process], built.Front, built.Log = i.tag, i.tag, i.log
		if built.Tools, err = b.toolsOf(ctx, &i, built.SHA256, s.Needs); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// found describes an image that was made elsewhere. It pulls nothing, so the trial measures the
// image that is present now.
func found(ctx context.Context, docker string, built Built) (*Built, error) {
	i := image{docker: docker, tag: built.Front}
	id, size := i.look(ctx)
	if id == "" {
		return nil, fmt.Errorf("the Docker engine has no image %s, and Prony does not pull "+
			"images; run docker build or docker pull first", i.tag)
	}
	built.SHA256, built.SizeBytes, built.ImageBytes = strings.TrimPrefix(id, "sha256:"), size, size
	built.Tools = map[string]Tool{}
	if built.Port != 0 {
		return &built, nil
	}
	output, err := Command(ctx, os.TempDir(), os.Environ(), docker, "image", "inspect", "--format",
		"{{range $port, $_ := .Config.ExposedPorts}}{{$port}} {{end}}", i.tag).Output()
	if err != nil {
		return nil, fmt.Errorf("read the ports of %s: %w", i.tag, err)
	}
	ports := strings.Fields(string(output))
	if len(ports) > 1 {
		return nil, fmt.Errorf("image %s exposes %s: set the key port to the port that receives "+
			"requests",
			i.tag, strings.Join(ports, ", "))
	}
	for _, port := range ports {
		number, _, _ := strings.Cut(port, "/")
		if built.Port, err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("image %s exposes %q, which is not a port", i.tag, port)
		}
	}
	return &built, nil
}

// imaged returns the processes of a service that have an image; "" for a service that is not a
// system. The last receives the requests.
func (s *Service) imaged() (out []string) {
	if len(s.Run.Processes) == 0 {
		return []string{""}
	}
	for _, p := range s.Run.Processes {
		if p.Image != noImage {
			out = append(out, p.Name)
		}
	}
	return out
}

// image is an image to build.
type image struct {
	docker, dir, file, tag, log string
	args                        []string
	bound                       time.Duration // of its build; 0: stepBound
}

// take1 builds an image, or takes the existing one, and adds it to built. The digest becomes that
// of this image.
func (b *Builder) take1(ctx context.Context, i *image, built *Built) error {
	id, size := i.look(ctx)
	if id == "" {
		b.say("build %s: docker build --file %s", i.tag, i.file)
		built.Cached = false
		if err := i.build(ctx); err != nil {
			return err
		}
		if id, size = i.look(ctx); id == "" {
			return fmt.Errorf("docker built %s, but did not report its size", i.tag)
		}
	}
	built.SHA256 = strings.TrimPrefix(id, "sha256:")
	built.SizeBytes += size
	built.ImageBytes = built.SizeBytes
	return nil
}

func (i *image) build(ctx context.Context, more ...string) (err error) {
	log, err := os.Create(i.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	args := []string{"build", "--network", "host", "--tag", i.tag, "--file", i.file}
	args = append(args, more...)
	for _, arg := range i.args {
		args = append(args, "--build-arg", arg)
	}
	ctx, cancel := bounded(ctx, i.bound)
	defer cancel()
	// The Dockerfiles use cache mounts, which the classic builder lacks.
	cmd := Command(ctx, i.dir, append(os.Environ(), "DOCKER_BUILDKIT=1"), i.docker,
		append(args, ".")...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return withTail(cmp.Or(context.Cause(ctx), err), log)
	}
	return nil
}

// look returns an image's id and its size in bytes; "" and 0 if it does not exist or the engine
// does not answer.
func (i *image) look(ctx context.Context) (id string, size int64) {
	out, err := Command(ctx, os.TempDir(), os.Environ(), i.docker, "image", "inspect", "--format",
		"{{.Id}} {{.Size}}", i.tag).Output()
	if err != nil {
		return "", 0
	}
	id, text, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	size, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", 0
	}
	return id, size
}

// Image returns name and id of the image of the process that receives the requests; empty: none.
// The id is the engine's, of the image's configuration: registries do not have it, so the text is
// not a reference that could be pulled.
func (b *Built) Image() string {
	if b.Front == "" {
		return ""
	}
	return b.Front + " id sha256:" + b.SHA256
}

// Weigh stores the size of the same service's image with a build, for tables.
func (b *Builder) Weigh(built, image *Built) error {
	built.ImageBytes = image.ImageBytes
	return built.mark()
}

// Bases returns the images that a Dockerfile builds upon or copies from, without duplicates, in
// order. It leaves out stages, scratch and names with arguments.
func Bases(dockerfile string) (out []string) {
	stages := []string{"scratch"}
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var base, stage string
		flags, tail := flagged(words[1:])
		switch {
		case strings.EqualFold(words[0], "FROM") && len(tail) > 0:
			base = tail[0]
			if len(tail) == 3 && strings.EqualFold(tail[1], "AS") {
				stage = tail[2]
			}
		case strings.EqualFold(words[0], "COPY"):
			base = flags["--from"]
		}
		number := base != "" && strings.Trim(base, "0123456789") == "" // the number of a stage
		if base != "" && !number && !strings.Contains(base, "$") && !slices.Contains(out, base) &&
			!slices.Contains(stages, strings.ToLower(base)) {
			out = append(out, base)
		}
		stages = append(stages, strings.ToLower(stage))
	}
	return out
}

// flagged splits the words of an instruction into its flags and the rest.
func flagged(words []string) (flags map[string]string, tail []string) {
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

// addBases writes the bases of an image into the hash of its name, by their ids: a name such as
// debian:12 changes its meaning with the next pull. For a base that the engine lacks, and the
// builder will fetch, it writes only the name.
func (i *image) addBases(ctx context.Context, h io.Writer) error {
	text, err := os.ReadFile(filepath.Join(i.dir, i.file))
	if err != nil {
		return err
	}
	for _, base := range Bases(string(text)) {
		wanted := *i
		wanted.tag = base
		id, _ := wanted.look(ctx)
		fmt.Fprintf(h, "base %q is %q\n", base, id)
	}
	return ctx.Err()
}
