package record

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/dev/schema"
)

var update = flag.Bool("update", false, "write the schemas in docs/formats")

func TestSchemas(t *testing.T) {
	for _, d := range []schema.Document{
		{Name: "record", Title: "A trial: a line of trials.ndjson", Of: Record{}, Version: Version},
		{Name: "run", Title: "A run's head: run.json", Of: Run{}, Version: Version},
		{Name: "progress", Title: "How a run gets on: a line of progress.ndjson", Of: Progress{}},
	} {
		schema.Publish(t, *update, d)
	}
}

// keepsTheSchemas validates the files of a run's folder against the published schemas.
func keepsTheSchemas(t *testing.T, dir string) {
	t.Helper()
	for file, name := range map[string]string{RunFile: "run", TrialsFile: "record"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if file == RunFile {
			schema.Valid(t, name, data)
			continue
		}
		for line := range bytes.Lines(data) {
			schema.Valid(t, name, line)
		}
	}
}
