package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The folder results has a README.md that names the files of a run. It is written once, and not
// beside a run in a folder of the user's choice.
func TestReadme(t *testing.T) {
	results := filepath.Join(t.TempDir(), "results")
	create := func(id, name string) {
		t.Helper()
		w, err := Create(filepath.Join(results, name), Run{ID: id})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(results, "README.md")
	create("now", "mine")
	create("now", filepath.Join("..", "mine", "now"))
	for _, name := range []string{file, filepath.Join(results, "..", "mine", "README.md")} {
		if _, err := os.Stat(name); err == nil {
			t.Fatalf("%s is beside a run in a folder of the user's choice", name)
		}
	}
	create("now", "now")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{RunFile, TrialsFile, SlicesDir + "/",
		"docs/formats/record.md"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("README.md does not name %s:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join("..", "docs", "formats", "record.md")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("ours\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	create("later", "later")
	if text, err := os.ReadFile(file); err != nil || string(text) != "ours\n" {
		t.Errorf("%q, %v: a changed README.md was not kept", text, err)
	}
}
