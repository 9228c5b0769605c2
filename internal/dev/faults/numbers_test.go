package faults

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// notFinite matches the texts of invalid numbers outside of the page's own code.
var notFinite = regexp.MustCompile(
	`(?:^|[^A-Za-z.?])(NaN|&#43;Inf|[+-]Inf|Infinity|%!\w|9,223,372,036,854,775)\b[^(]`)

// A record with an impossible number breaks no reader of records: it is reported as damaged, or
// shown.
func TestAbsurdNumbers(t *testing.T) {
	testsets.Once(t, "records with numbers that cannot be", programFiles)
	more := testsets.More(t, programFiles)
	readers := []string{"report RUN", "report RUN --format json", "report RUN --format csv",
		"report RUN -o OUT.html", "report RUN -o OUT.parquet", "audit RUN",
		"gate RUN RUN --allow-mismatch",
		"audit RUN --json", "trend RUN/..", "trend RUN/.. --format json",
		"compare RUN --targets a/b,c/d --allow-mismatch",
		"compare RUN RUN --allow-mismatch -o OUT.json",
		"compare RUN --targets a/b,c/d --allow-mismatch -o OUT.html", "explain RUN"}
	for k, text := range readers {
		for i, number := range absurd {
			if !more && i != k%len(absurd) {
				continue
			}
			t.Run(text+"/"+number, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.count(number)
				e := s.try("", s.arguments(text)...)
				e.check(t)
				if e.code < 0 || e.code == 1 || e.code == 2 {
					e.refused(t, 1, 2)
				}
				s.numbers(t, e, text)
			})
		}
	}
}

// count replaces the numbers in the records of the run.
func (s *scene) count(number string) {
	s.t.Helper()
	sound, err := os.ReadFile(s.path("RUN/trials.ndjson"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := fractions.ReplaceAllString(string(sound), `"$1":`+number)
	if !strings.ContainsAny(number, "eNI") {
		text = whole.ReplaceAllString(text, `"$1":`+number)
	}
	s.put("RUN/trials.ndjson", text)
}

// numbers requires that the output has its format, with valid numbers.
func (s *scene) numbers(t *testing.T, e ended, text string) {
	t.Helper()
	out := e.stdout
	if files, err := filepath.Glob(s.path("OUT.*")); err != nil {
		t.Fatal(err)
	} else if len(files) == 1 {
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		out = string(data)
	} else if strings.Contains(text, "OUT") && e.code == 0 {
		t.Error("it has written nothing")
	}
	switch {
	case strings.HasSuffix(text, "parquet"):
		return
	case strings.HasSuffix(text, "json") && out != "" && !json.Valid([]byte(out)):
		t.Errorf("no JSON: %.300s", out)
	case strings.HasSuffix(text, "csv"):
		if _, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil {
			t.Error(err)
		}
	}
	if at := notFinite.FindString(out); at != "" {
		t.Errorf("it says %q", at)
	}
}

// A key in another case is an error with file, line and the right key, and its value never counts,
// in files of a run, suites and prony.yaml.
func TestKeysInAnotherCase(t *testing.T) {
	testsets.Once(t, "keys that differ only in case", programFiles)
	for _, row := range []struct{ args, file, right, wrong, says string }{
		{"report RUN", "RUN/trials.ndjson", `"block":1`, `"Block":1`,
			`RUN/trials.ndjson:1: not a record: the key "Block" must be written "block"`},
		{"compare RUN RUN", "RUN/run.json", `"blocks"`, `"Blocks"`, `run.json: line `},
		{"--root ROOT run ROOT/suites/canonical.yaml --out OUT", "ROOT/suites/canonical.yaml",
			"blocks: 1", "Blocks: 1", `suites/canonical.yaml:6: unknown key "Blocks" in ` +
				`"Blocks: 1"; did you mean "blocks"?`},
		{"--root ROOT run ROOT/suites/canonical.yaml --out OUT", "ROOT/suites/canonical.yaml",
			"model: closed", "model: closed, Model: open", `unknown key "Model"`},
		{"run --out OUT", "prony.yaml", "command", "Command",
			`prony.yaml:1: unknown key "Command"`},
	} {
		t.Run(row.args+row.wrong, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.put("prony.yaml", "targets: {app: {command: ./app}}\n")
			sound, err := os.ReadFile(s.path(row.file))
			if err != nil || !strings.Contains(string(sound), row.right) {
				t.Fatalf("%v: %s", err, sound)
			}
			s.put(row.file, strings.Replace(string(sound), row.right, row.wrong, 1))
			e := s.try("", s.arguments(row.args)...)
			e.check(t)
			want := strings.Join(s.arguments(row.says), " ")
			if e.code == 0 && !strings.Contains(row.file, "trials") ||
				!strings.Contains(e.stderr, want) {
				t.Errorf("exit %d, it says %s, want %s", e.code, e.stderr, want)
			}
		})
	}
}
