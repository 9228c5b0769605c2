package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An image that its builder's libraries belong to also starts where the builder is not readable; a
// library elsewhere, such as the system's, is not copied.
func TestNativeImageOwnsItsLibraries(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip(err)
	}
	w := newWorkshop(t, "target/app")
	m := newMachine(t)
	m.has("graal/bin/native-image", "")
	m.link("bin/native-image", "graal/bin/native-image")
	m.says[filepath.Join(m.dir, "bin/native-image")] = "native-image 25.0.2 2026-01-20"
	w.Tools = m.tools()
	w.s.Needs = []Need{{Tool: "native-image", Version: "25"}}
	put(t, filepath.Join(w.s.Dir, "lib.c"), "int seven(void) { return 7; }")
	put(t, filepath.Join(w.s.Dir, "app.c"), "int seven(void); int main(void) { return seven(); }")
	for _, c := range []struct{ folder, found string }{
		{"graal/lib/svm/jdk", "target/jdk-lib/libseven.so"}, {"elsewhere", ""},
	} {
		lib := filepath.Join(m.dir, c.folder)
		if err := os.MkdirAll(lib, 0o755); err != nil {
			t.Fatal(err)
		}
		w.s.Build.Steps = [][]string{
			{gcc, "-shared", "-fPIC", "-o", filepath.Join(lib, "libseven.so"), "lib.c"},
			{"mkdir", "target"},
			{gcc, "-o", "target/app", "app.c", "-L" + lib, "-lseven",
				"-Wl,-rpath,$ORIGIN/jdk-lib:" + lib},
		}
		built := w.build()
		copied, err := filepath.Glob(filepath.Join(built.Dir, "target/*/*"))
		if err != nil {
			t.Fatal(err)
		}
		if c.found == "" {
			if len(copied) > 0 {
				t.Errorf("%s: copied %q", c.folder, copied)
			}
			continue
		}
		if len(copied) != 1 || copied[0] != filepath.Join(built.Dir, c.found) {
			t.Errorf("%s: copied %q, want %s", c.folder, copied, c.found)
		}
		if err := os.RemoveAll(lib); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(built.Dir, "target/app"))
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("without its builder the image ends so: %v", err)
		}
	}
}
