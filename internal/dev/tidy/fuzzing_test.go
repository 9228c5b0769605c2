package tidy

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

const (
	fuzzTime = "30s" // of each target
	// shrinkTime is the time for making an input of new coverage smaller. With go test's default of
	// a minute, a target may spend all its time on one input.
	shrinkTime = "2s"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// TestFuzzing fuzzes each fuzz target of the repository for a while. A failing input is stored in
// the package's testdata/fuzz, as by go test -fuzz.
func TestFuzzing(t *testing.T) {
	if os.Getenv(testsets.Set) != testsets.Later {
		t.Skip(testsets.Longer + "every fuzz target for " + fuzzTime)
	}
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range repository.names() {
		if !strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		for _, target := range fuzzTarget.FindAllStringSubmatch(repository[file], -1) {
			dir := path.Dir(file)
			t.Run(dir+"/"+target[1], func(t *testing.T) {
				testsets.Long(t, "fuzzing", testsets.Needs{Files: linkedBy(t, root, dir)})
				args := append([]string{"test"}, buildflags.Flags...)
				cmd := exec.Command("go", append(args, "-vet=off", "-run=^$",
					"-fuzz=^"+target[1]+"$", "-fuzztime="+fuzzTime,
					"-fuzzminimizetime="+shrinkTime, ".")...)
				cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// linkedBy are the folders of the repository whose code the tests of a folder link.
func linkedBy(t *testing.T, root, dir string) (out []string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-test", "-f", "{{.Dir}}", ".")
	cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
	folders, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for folder := range strings.Lines(string(folders)) {
		inside, err := filepath.Rel(root, strings.TrimSpace(folder))
		if err == nil && filepath.IsLocal(inside) && !slices.Contains(out, inside) {
			out = append(out, inside)
		}
	}
	return out
}

// A target depends on the code that its package links.
func TestFuzzingNeeds(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	got := linkedBy(t, root, "internal/suite/importer")
	for _, want := range []string{"internal/suite/importer", "internal/base/shellwords"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	if slices.Contains(got, "load/engine/epoll") {
		t.Error("an engine is linked")
	}
}
