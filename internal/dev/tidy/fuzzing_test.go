package tidy

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// fuzzTime is how long each target is fuzzed.
const fuzzTime = "30s"

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
				testsets.Long(t, "fuzzing", testsets.Needs{Files: []string{dir}})
				args := append([]string{"test"}, buildflags.Flags...)
				cmd := exec.Command("go", append(args, "-vet=off", "-run=^$",
					"-fuzz=^"+target[1]+"$", "-fuzztime="+fuzzTime, ".")...)
				cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
