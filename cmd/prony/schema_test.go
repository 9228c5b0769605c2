package main

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
		{Name: "audit", Title: "An audit: prony audit --json", Of: audited{},
			Version: auditVersion, Printed: true},
		{Name: "capacity", Title: "A search for a capacity: prony capacity --json",
			Of: capacityReport{}},
	} {
		schema.Publish(t, *update, d)
	}
}

// keepsSchemas checks all files of a real run against the published schemas.
func keepsSchemas(t *testing.T, dir string) {
	t.Helper()
	for file, name := range map[string]string{"run.json": "run", "trials.ndjson": "record",
		"progress.ndjson": "progress", "report.json": "report"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".json" {
			schema.Valid(t, name, data)
			continue
		}
		for line := range bytes.Lines(data) {
			schema.Valid(t, name, line)
		}
	}
}
