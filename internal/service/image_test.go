package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docker is a program that stores images as files with their id and size, and fails if the
// Dockerfile says so.
const docker = `#!/bin/sh
dir=$(dirname "$0")
echo "$DOCKER_BUILDKIT $@" >>"$dir/asked"
case $1 in
build) grep -q BROKEN Dockerfile && { echo "no such base"; exit 1; }
  while [ $# -gt 0 ]; do [ "$1" = --tag ] && tag=$2; shift; done
  echo "made $tag"; echo "sha256:ab${tag%%:*} 1000" >"$dir/$(echo "$tag" | tr /: __)" ;;
image) for tag; do :; done
  [ "$2" = rm ] && { rm "$dir/$(echo "$tag" | tr /: __)"; exit; }
  cat "$dir/$(echo "$tag" | tr /: __)" 2>/dev/null ;;
run) [ "$7" = --version ] || cat "$dir/$6 in $(echo "$7" | sed 's/:[0-9a-f]*//; s/.*[/]//')" ;;
esac
`

// dock puts a docker at the front of PATH and returns its folder.
func dock(t *testing.T, program string) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return bin
}

func TestImage(t *testing.T) {
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM scratch\n")
	bin := dock(t, docker)
	image := func(cached bool) *Built {
		t.Helper()
		built, err := w.Image(t.Context(), w.s)
		if err != nil {
			t.Fatal(err)
		}
		if built.Cached != cached || built.ImageBytes != 1000 || built.SizeBytes != 1000 {
			t.Errorf("cached %v, %d bytes, artifact %d", built.Cached, built.ImageBytes,
				built.SizeBytes)
		}
		return built
	}
	first := image(false)
	tag := "prony/sh-none:" + first.Hash[:hashDigits]
	if again := image(true); again.Hash != first.Hash || again.Images[""] != tag ||
		again.Image() != tag+" id sha256:abprony/sh-none" {
		t.Errorf("hash %s, images %v, called %s", again.Hash, again.Images, again.Image())
	}
	asked := read(t, bin, "asked")
	if n := strings.Count(asked, "1 build --network host --tag "+tag+
		" --file Dockerfile .\n"); n != 1 {
		t.Errorf("%d builds of %s:\n%s", n, tag, asked)
	}
	if log, err := os.ReadFile(first.Log); string(log) != "made "+tag+"\n" {
		t.Errorf("log %q, error %v", log, err)
	}
	put(t, filepath.Join(w.s.Dir, "main.txt"), "other source")
	if changed := image(false); changed.Hash == first.Hash {
		t.Error("other sources have the same image")
	}
	// A process's own build stores the size of the image.
	built := w.build()
	if err := w.Weigh(built, first); err != nil {
		t.Fatal(err)
	}
	if again := w.build(); again.ImageBytes != 1000 || !again.Cached {
		t.Errorf("%d bytes noted, cached %v", again.ImageBytes, again.Cached)
	}
}

// A system has an image for each process except those with none; a target with such a process
// cannot be a container. A further build uses a Dockerfile of its own, or the argument BUILD.
func TestImagesOf(t *testing.T) {
	bin := dock(t, docker)
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM scratch\n")
	w.s.Targets = []Target{{Name: "h2", Mode: "platform"}, {Name: "postgres", Mode: "platform"}}
	w.s.Run.Processes = []Process{{Name: "db", Targets: []string{"postgres"}, Image: "none"},
		{Name: "back"}, {Name: "front"}}
	built, err := w.Image(t.Context(), w.s)
	if err != nil {
		t.Fatal(err)
	}
	hash := built.Hash[:hashDigits]
	want := map[string]string{"back": "prony/sh-none-back:" + hash,
		"front": "prony/sh-none-front:" + hash}
	if len(built.Images) != 2 || built.Images["back"] != want["back"] ||
		built.Front != want["front"] || built.ImageBytes != 2000 {
		t.Errorf("images %v, front %s, %d bytes", built.Images, built.Front, built.ImageBytes)
	}
	if asked := read(t, bin, "asked"); !strings.Contains(asked, "--build-arg SERVICE=back .") {
		t.Errorf("asked for\n%s", asked)
	}
	if a, b := w.s.NoImage(w.s.Targets[0]), w.s.NoImage(w.s.Targets[1]); a != "" ||
		b != "process db of the service has no image" {
		t.Errorf("h2: %q, postgres: %q", a, b)
	}
	w.s.Run.Processes = nil
	w.s.Other = "aot-platform"
	check := func(wantFile string, wantArgs ...string) {
		t.Helper()
		file, args := w.s.dockerfile()
		if file != wantFile || !slices.Equal(args, wantArgs) {
			t.Errorf("%s with %q, want %s with %q", file, args, wantFile, wantArgs)
		}
	}
	check("Dockerfile.aot", "MODE=platform")
	if why := w.s.NoImage(w.s.Targets[0]); why != "it has no Dockerfile.aot" {
		t.Errorf("without its Dockerfile: %q", why)
	}
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM scratch\nARG BUILD=\n")
	check("Dockerfile", "BUILD=aot")
	further, err := w.Image(t.Context(), w.s)
	if err != nil {
		t.Fatal(err)
	}
	w.s.Other = ""
	if usual, err := w.Image(t.Context(), w.s); err != nil || usual.Hash == further.Hash {
		t.Errorf("both builds have the image %s, error %v", further.Hash, err)
	}
}

func TestImageErrors(t *testing.T) {
	check := func(file, text, program, want string) {
		t.Helper()
		t.Run(want, func(t *testing.T) {
			w := newWorkshop(t, "out", []string{"touch", "out"})
			put(t, filepath.Join(w.s.Dir, file), text)
			if program == "" {
				t.Setenv("PATH", t.TempDir())
			} else {
				dock(t, program)
			}
			_, err := w.Image(t.Context(), w.s)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	check("Dockerfile", "FROM x\n", "", "build the image of sh-none: needs docker: not found")
	check("other", "", docker, "build the image of sh-none: it has no Dockerfile")
	check("Dockerfile", "BROKEN\n", docker, "no such base")
	check("Dockerfile", "FROM x\n", "#!/bin/sh\n", "but did not report its size")
}

// Versions of tools at run time come from the image, those of compilers from the stage that made
// it, once for each image. Tools in neither are left out, with a message.
func TestToolsOfAnImage(t *testing.T) {
	bin := dock(t, docker)
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM golang AS build\nFROM scratch\n")
	w.s.Needs = []Need{{Tool: "java"}, {Tool: "go"}, {Tool: "mvn"}, {Tool: "cargo"}}
	lacks := func() bool {
		return w.said("image prony/" + w.tag(t) + " does not report the version of cargo that " +
			"built it")
	}
	put(t, filepath.Join(bin, "java in sh-none"), `openjdk version "25.0.3" 2026-04-21`)
	put(t, filepath.Join(bin, "go in sh-none-build"), "go version go1.26.5 linux/amd64")
	put(t, filepath.Join(bin, "mvn in sh-none"), "Apache Maven 3.9.16")
	check := func() {
		t.Helper()
		built, err := w.Image(t.Context(), w.s)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(built.Versions()); got != "map[go:1.26.5 java:25.0.3]" {
			t.Errorf("versions %s", got)
		}
	}
	check()
	if !lacks() {
		t.Errorf("said %q", w.lines)
	}
	w.s.Needs = w.s.Needs[:3]
	check() // taken from the file
	asked := len(read(t, bin, "asked"))
	check()
	again := read(t, bin, "asked")[asked:]
	if strings.Contains(again, "run") || strings.Contains(again, "build ") {
		t.Errorf("asked again for\n%s", again)
	}
	// Another image with the same name is queried again.
	name := strings.ReplaceAll(w.tag(t), ":", "_")
	put(t, filepath.Join(bin, "prony_"+name), "sha256:cd 1000")
	put(t, filepath.Join(bin, "go in sh-none-build"), "go version go1.26.6 linux/amd64")
	built, err := w.Image(t.Context(), w.s)
	if err != nil || built.Versions()["go"] != "1.26.6" {
		t.Errorf("versions %v, error %v", built.Versions(), err)
	}
}

// tag returns the name of the image of a workshop's service, without the owner.
func (w *workshop) tag(t *testing.T) string {
	t.Helper()
	built, err := w.Image(t.Context(), w.s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(built.Front, "prony/")
}
