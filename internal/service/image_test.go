package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docker is a program that keeps images as files of their size and fails where the Dockerfile says
// so.
const docker = `#!/bin/sh
dir=$(dirname "$0")
echo "$@" >>"$dir/asked"
case $1 in
build) cd . && grep -q BROKEN Dockerfile && { echo "no such base"; exit 1; }
  while [ $# -gt 0 ]; do [ "$1" = --tag ] && tag=$2; shift; done
  echo "made it"; echo 312000000 >"$dir/$(echo "$tag" | tr /: __)" ;;
image) for tag; do :; done; cat "$dir/$(echo "$tag" | tr /: __)" 2>/dev/null ;;
esac
`

func TestImage(t *testing.T) {
	w := newWorkshop(t, "out", []string{"touch", "out"})
	put(t, filepath.Join(w.s.Dir, "Dockerfile"), "FROM scratch\n")
	bin := t.TempDir()
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin+":"+path)
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	built := w.build()
	if built.ImageBytes != 0 {
		t.Errorf("%d bytes before there was an image", built.ImageBytes)
	}
	for range 2 { // made, then taken
		if err := w.Image(t.Context(), w.s, built); err != nil {
			t.Fatal(err)
		}
	}
	asked := read(t, bin, "asked")
	tag := "prony/sh-none:" + built.Hash[:12]
	if n := strings.Count(asked, "build --network host --tag "+tag+" --file Dockerfile ."); n != 1 {
		t.Errorf("%d builds of %s:\n%s", n, tag, asked)
	}
	if again := w.build(); built.ImageBytes != 312000000 || again.ImageBytes != 312000000 ||
		!again.Cached {
		t.Errorf("%d bytes, later %d", built.ImageBytes, again.ImageBytes)
	}
	if log := read(t, filepath.Dir(built.Dir), imageLog); log != "made it\n" {
		t.Errorf("log %q", log)
	}
}

func TestImageErrors(t *testing.T) {
	check := func(file, text, program, want string) {
		t.Helper()
		w := newWorkshop(t, "out", []string{"touch", "out"})
		put(t, filepath.Join(w.s.Dir, file), text)
		built := w.build()
		bin := t.TempDir()
		if program != "" {
			put(t, filepath.Join(bin, "docker"), program)
			if err := os.Chmod(filepath.Join(bin, "docker"), 0o755); err != nil {
				t.Fatal(err)
			}
			bin += ":" + os.Getenv("PATH")
		}
		t.Setenv("PATH", bin)
		err := w.Image(t.Context(), w.s, built)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	path := os.Getenv("PATH")
	check("Dockerfile", "FROM x\n", "", "build the image of sh-none: needs docker: not found")
	t.Setenv("PATH", path)
	check("other", "", docker, "build the image of sh-none: it has no Dockerfile")
	t.Setenv("PATH", path)
	check("Dockerfile", "BROKEN\n", docker, "no such base")
	t.Setenv("PATH", path)
	check("Dockerfile", "FROM x\n", "#!/bin/sh\n", "and does not know its size")
}
