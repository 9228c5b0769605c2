package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

// audits query lists of known vulnerabilities for the linked modules, and for the packages of
// services. Each script receives the files of its kind. A Python index without an old, known
// vulnerability of one package has no advisories.
var audits = []struct{ file, script string }{
	{"go.mod", `for f; do cd "$(dirname "$f")" &&
go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... || exit; done`},
	{"package-lock.json", `for f; do cd "$(dirname "$f")" && npm audit --omit=dev || exit; done`},
	{"Cargo.lock", `for f; do cargo audit --file "$f" || exit; done`},
	{"requirements.txt", `python3 -m venv "$TMP" && "$TMP/bin/pip" install -q pip-audit || exit
audit() { "$TMP/bin/pip-audit" --progress-spinner=off "$@"; }
echo jinja2==2.11.2 >"$TMP/old.txt"
if audit --no-deps -r "$TMP/old.txt"; then echo "the index knows no advisories"; exit 1; fi
for f; do set -- "$@" -r "$f"; shift; done; audit "$@"`},
}

// unasked matches the output if the list cannot be reached, or the tool is missing.
var unasked = regexp.MustCompile(`fetching vulnerabilities|endpoint returned an error|` +
	`ConnectionError|Could not find a version|No matching distribution|no such command|` +
	`: not found|fetch advisory database|HTTPError|knows no advisories`)

// No linked or installed package has a known vulnerability. The lists change every day, so that a
// result is remembered only for that day.
func TestAudits(t *testing.T) {
	testsets.Long(t, "lists of known vulnerabilities", testsets.Needs{Files: []string{"go.mod",
		"services"}, Facts: []string{clock.Wall().UTC().Format(time.DateOnly)}})
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range audits {
		files, err := filepath.Glob(filepath.Join(root, "services", "*", a.file))
		if err != nil || len(files) == 0 {
			t.Errorf("no service has a %s, error %v", a.file, err)
		}
		if a.file == "go.mod" {
			files = append(files, filepath.Join(root, a.file))
		}
		t.Run(a.file, func(t *testing.T) {
			cmd := exec.Command("sh", append([]string{"-c", a.script, "sh"}, files...)...)
			cmd.Env = append(os.Environ(), "TMP="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err == nil {
				return
			}
			if why := unasked.FindIndex(out); why != nil {
				said := out[bytes.LastIndexByte(out[:why[0]], '\n')+1:]
				line, _, _ := bytes.Cut(said, []byte("\n"))
				t.Skipf("nobody can be asked here: %s", line)
			}
			t.Errorf("%v\n%s", err, out)
		})
	}
}
