package service

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// Bases are all images that a Dockerfile takes from elsewhere.
func TestBases(t *testing.T) {
	got := Bases(`# syntax=docker/dockerfile:1
FROM --platform=linux/amd64 golang:1.26 AS build
RUN echo FROM nowhere
FROM scratch AS empty
FROM \
  build as train
COPY --from=Build --chown=1 /a /a
COPY --from=maven:3 /m /m
COPY --from=0 /x /x
COPY a b
FROM debian:12@sha256:0123
FROM ${BASE}
COPY --from=golang:1.26 /y /y
`)
	want := []string{"golang:1.26", "maven:3", "debian:12@sha256:0123"}
	if !slices.Equal(got, want) {
		t.Errorf("bases %q, want %q", got, want)
	}
}

// An image is built again if its base has changed under the same name.
func TestImageOfAnotherBase(t *testing.T) {
	bin := dock(t, docker)
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM debian:12\n")
	image := func(cached bool) string {
		t.Helper()
		built, err := w.Image(t.Context(), w.s)
		if err != nil {
			t.Fatal(err)
		}
		if built.Cached != cached {
			t.Errorf("%s: cached %v, want %v", built.Front, built.Cached, cached)
		}
		return built.Front
	}
	absent := image(false) // the builder fetches it
	put(t, filepath.Join(bin, "debian_12"), "sha256:aa 1000")
	first := image(false)
	if again := image(true); again != first || first == absent {
		t.Errorf("%s, then %s, without the base %s", first, again, absent)
	}
	put(t, filepath.Join(bin, "debian_12"), "sha256:bb 1000")
	if moved := image(false); moved == first {
		t.Errorf("of another base it is %s still", moved)
	}
}

// Earlier images without recent use are removed with their files. Images that are locked, were used
// recently or belong to another service stay.
func TestImagesArePruned(t *testing.T) {
	bin := dock(t, docker)
	w := newWorkshop(t, "out", []string{"touch", "out"})
	dockerfile := filepath.Join(w.s.Dir, "Dockerfile")
	put(t, dockerfile, "FROM scratch\n")
	built, err := w.Image(t.Context(), w.s)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(built.Log)
	long := time.Now().Add(-idleFor - time.Hour)
	earlier := func(name string, used time.Time) (files []string) {
		log := filepath.Join(folder, name+".log")
		cut := len(name) - hashDigits
		files = []string{log, filepath.Join(folder, name+".tools.json"),
			filepath.Join(bin, "prony_"+name[:cut-1]+"_"+name[cut:])}
		for _, f := range files {
			put(t, f, "sha256:cc 1")
		}
		stamp := filepath.Join(folder, name+stampEnd)
		put(t, stamp, "")
		if err := os.Chtimes(stamp, used, used); err != nil {
			t.Fatal(err)
		}
		return append(files, stamp)
	}
	idle := earlier("sh-none-0123456789ab", long)
	fresh := earlier("sh-none-0123456789ac", time.Now())
	other := earlier("sh-none-otel-0123456789ab", long)
	held := strings.TrimSuffix(built.Log, ".log") + stampEnd // locked by this program
	if err := os.Chtimes(held, long, long); err != nil {
		t.Fatal(err)
	}
	put(t, dockerfile, "FROM scratch\nARG X\n")
	if _, err := w.Image(t.Context(), w.s); err != nil {
		t.Fatal(err)
	}
	there := func(files []string) (n int) {
		for _, f := range files {
			if _, err := os.Stat(f); err == nil {
				n++
			}
		}
		return n
	}
	if there(idle) != 0 || there(fresh) != 4 || there(other) != 4 ||
		there([]string{held, built.Log}) != 2 {
		t.Errorf("of four files %d of an idle image, %d of a fresh one and %d of another's are "+
			"left, and %d of two of the one in use", there(idle), there(fresh), there(other),
			there([]string{held, built.Log}))
	}
}

// A build that hangs is ended, and the error says so.
func TestImageBuildHasABound(t *testing.T) {
	dock(t, "#!/bin/sh\n[ $1 = build ] && exec sleep 600\nexit 1\n")
	w := newWorkshop(t, "out", []string{"touch", "out"})
	w.Bound = 200 * time.Millisecond
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM x\n")
	began := time.Now()
	_, err := w.Image(t.Context(), w.s)
	if err == nil || !strings.Contains(err.Error(), "the step was ended after 200ms") ||
		strings.Count(err.Error(), "the end of ") != 1 ||
		time.Since(began) > 2*time.Minute {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// With a real engine, the build uses the base that the engine has at that time, and the image's
// name depends on it.
func TestRealBaseMoves(t *testing.T) {
	testsets.Once(t, "images of a base that moves", testsets.Needs{})
	program, err := exec.LookPath("docker")
	if err != nil || exec.Command(program, "info").Run() != nil {
		t.Skip("needs a Docker engine")
	}
	base := fmt.Sprintf("prony-test-base:%d", os.Getpid())
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { do("image", "rm", base) })
	move := func(text string) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "base.txt"), text)
		put(t, filepath.Join(dir, "Dockerfile"), "FROM scratch\nCOPY base.txt /\n")
		do("build", "-t", base, dir)
	}
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM "+base+"\nCOPY main.txt /\n")
	put(t, filepath.Join(w.s.Dir, "main.txt"), base) // unique to this test
	image := func() *Built {
		t.Helper()
		built, err := w.Image(t.Context(), w.s)
		if err != nil {
			t.Fatal(err)
		}
		if !built.Cached {
			t.Cleanup(func() { do("image", "rm", built.Front) })
		}
		return built
	}
	move("one")
	first := image()
	if again := image(); !again.Cached || again.Front != first.Front {
		t.Errorf("of the same base it is %s, cached %v, before %s", again.Front, again.Cached,
			first.Front)
	}
	move("two")
	if moved := image(); moved.Cached || moved.SHA256 == first.SHA256 {
		t.Errorf("of another base it is %s, cached %v, before %s", moved.Image(), moved.Cached,
			first.Image())
	}
}
