package locate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/telemetry"
)

// place writes a program into a folder that only prints its version.
func place(t *testing.T, dir string, v telemetry.Version) string {
	t.Helper()
	said, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, telemetry.HomeName)
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = version ] && echo '%s'\n", said)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The program beside this one precedes one on the PATH, and both precede the checkout's.
func TestFind(t *testing.T) {
	own := telemetry.OwnVersion()
	beside, listed, root := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", listed+":/usr/bin:/bin")
	f := Finder{Beside: beside, Root: root}
	const nowhere = "neither beside this program nor in PATH"
	if _, err := f.Find(t.Context()); err == nil || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("%v, want %q", err, nowhere)
	}
	want := place(t, listed, own)
	if got, err := f.Find(t.Context()); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	want = place(t, beside, own)
	if got, err := f.Find(t.Context()); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	t.Setenv("PATH", ".") // the working directory is not trusted
	t.Chdir(listed)
	if got, err := (Finder{Beside: root, Root: root}).Find(t.Context()); err == nil {
		t.Errorf("found %s in the working directory", got)
	}
}

// Outside of a checkout, a program that make build made takes the sources of its own one.
func TestCheckout(t *testing.T) {
	source := func(dir string) string {
		main := filepath.Join(dir, homeModule, homeMain)
		if err := os.MkdirAll(main, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(main, "main.go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	given, own, none := source(t.TempDir()), source(t.TempDir()), t.TempDir()
	for _, row := range []struct{ root, folder, want string }{
		{given, own + "/bin", given}, {none, own + "/bin", own}, {"", own + "/bin", own},
		{none, own + "/dist", ""}, {none, none + "/bin", ""},
	} {
		if got := (Finder{Root: row.root}).checkout(row.folder); got != row.want {
			t.Errorf("root %q, program in %s: %q, want %q", row.root, row.folder, got, row.want)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(own, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if got := (Finder{}).checkout(own + "/bin"); got != "" {
			t.Errorf("%s is taken, which belongs to another user", got)
		}
	}
}

func TestVersions(t *testing.T) {
	own := telemetry.OwnVersion()
	other := telemetry.Version{Protocol: own.Protocol + 1, Version: own.Version}
	older := telemetry.Version{Protocol: own.Protocol, Version: "v0.1"}
	for _, row := range []struct {
		v    telemetry.Version
		want string
	}{
		{own, ""}, {older, "it has version v0.1 (protocol"},
		{other, "build both from one checkout"},
	} {
		err := check(t.Context(), place(t, t.TempDir(), row.v), own)
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.v, err, row.want)
		}
	}
	mute := filepath.Join(t.TempDir(), telemetry.HomeName)
	if err := os.WriteFile(mute, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := check(t.Context(), mute, own); err == nil ||
		!strings.Contains(err.Error(), "read the program's version: exit status 3") {
		t.Errorf("%v", err)
	}
}

// A program that another user could have written is not run, not even for its version.
func TestTrust(t *testing.T) {
	own := telemetry.OwnVersion()
	for _, row := range []struct {
		name  string
		plant func(t *testing.T, dir, path string) error
		want  string
		root  bool // only root can plant it
	}{
		{"a link to one's own", func(t *testing.T, dir, path string) error {
			real := place(t, t.TempDir(), own)
			return os.Symlink(real, path)
		}, "", false},
		{"a folder", func(_ *testing.T, _, path string) error { return os.Mkdir(path, 0o755) },
			"not a regular file", false},
		{"all may write", func(t *testing.T, dir, _ string) error {
			return os.Chmod(place(t, dir, own), 0o757)
		}, "chmod o-w", false},
		{"all may write beside it", func(t *testing.T, dir, _ string) error {
			place(t, dir, own)
			return os.Chmod(dir, 0o777)
		}, "chmod o-w", false},
		{"as in /tmp", func(t *testing.T, dir, _ string) error {
			place(t, dir, own)
			return os.Chmod(dir, 0o777|os.ModeSticky)
		}, "", false},
		{"another's", func(t *testing.T, dir, _ string) error {
			return os.Chown(place(t, dir, own), 12345, -1)
		}, "belongs to another user", true},
		{"in another's folder", func(t *testing.T, dir, _ string) error {
			place(t, dir, own)
			return os.Chown(dir, 12345, -1)
		}, "belongs to another user", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.root && os.Geteuid() != 0 {
				t.Skip("needs root, to give a file away")
			}
			dir := t.TempDir()
			if err := row.plant(t, dir, filepath.Join(dir, telemetry.HomeName)); err != nil {
				t.Fatal(err)
			}
			_, err := Finder{Beside: dir}.Find(t.Context())
			if (err == nil) != (row.want == "") ||
				err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// The checkout's program is built once, from a copy of exactly its sources.
func TestBuild(t *testing.T) {
	testsets.Once(t, "the home of telemetry", testsets.Needs{Files: []string{"home/cmd/prony-home",
		"internal/telemetry", "internal/report/rows", "go.mod", "go.sum"}})
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(look(t, "go"))+":/usr/bin:/bin")
	var said []string
	f := Finder{Root: root, Progress: func(line string) { said = append(said, line) }}
	first, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said = nil
	again, err := f.Find(t.Context())
	if err != nil || again != first || !strings.HasPrefix(first, filepath.Join(root, ".prony")) {
		t.Errorf("%s, then %s, %v", first, again, err)
	}
	if slices.ContainsFunc(said, func(line string) bool {
		return strings.Contains(line, "go build") || strings.Contains(line, "cached")
	}) {
		t.Errorf("of what is there already it says %q", said)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"./"+homeMain)
	cmd.Dir = filepath.Join(root, homeModule)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	of, err := sourcesOf(root, homeModule+"/"+homeMain)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		dir, ours := strings.CutPrefix(name, buildflags.Module+"/")
		if ours && !of[dir] {
			t.Errorf("the sources lack %s", dir)
		}
		delete(of, dir)
	}
	for dir := range of {
		t.Errorf("the sources have %s, which is not linked", dir)
	}
}

func TestSources(t *testing.T) {
	of := sources{"cmd/a": true, "internal/b": true, "internal/b/c": true}
	for name, want := range map[string]bool{
		"go.mod": true, "home/go.sum": true, "README.md": false, "cmd": true, "cmd/a": true,
		"services/x/go.mod": false,
		"cmd/a/main.go":     true, "cmd/a/main_test.go": false, "cmd/other": false,
		"cmd/other/main.go": false, "internal": true, "internal/b/b.go": true,
		"internal/b/page/x.css": true, "internal/b/page": true, "internal/b/testdata": false,
		"internal/b/d/d.go": false, "internal/b/c/c.go": true, "internal/bb": false,
		"internal/bb/b.go": false, "services": false,
	} {
		if got := of.has(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func look(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
