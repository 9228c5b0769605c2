package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"prony.example/internal/dev/testsets"
)

// audits ask those who keep lists of known vulnerabilities, by kind of what is asked about: what is
// linked here, and what services are made of. Each is given the files of its kind. An index of
// Python's that does not know what has long been wrong with one package tells nothing of others.
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

// unasked is what they say where the list cannot be reached, or the tool is not here.
var unasked = regexp.MustCompile(`fetching vulnerabilities|endpoint returned an error|` +
	`ConnectionError|Could not find a version|No matching distribution|no such command|` +
	`: not found|fetch advisory database|HTTPError|knows no advisories`)

// Nothing that is linked or installed is known to be broken. What a list says tomorrow is another
// thing than what it says today, so that nothing is remembered.
func TestAudits(t *testing.T) {
	testsets.Whole(t, "lists of known vulnerabilities")
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
