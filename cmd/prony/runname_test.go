package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"prony.example/record"
)

// TestNewest checks that runs are ordered by the time at which they began, also those in folders
// that the user named, and that folders without a readable head come last.
func TestNewest(t *testing.T) {
	results := t.TempDir()
	for name, head := range map[string]string{
		"2026-11-21T03-40-11Z":   `{}`,
		"2026-11-21T03-40-11Z-2": `{}`,
		"2026-11-23T03-40-11Z":   `{"id": "2020-01-01T00-00-00Z"}`,
		"zero":                   `{"id": "2026-11-22T03-40-11Z"}`,
		"broken":                 `{`,
	} {
		dir := filepath.Join(results, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, record.RunFile)
		if err := os.WriteFile(file, []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(results, "2027-01-01T00-00-00Z"), 0o755); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, dir := range newest(results) {
		got = append(got, filepath.Base(dir))
	}
	want := []string{"2026-11-23T03-40-11Z", "zero", "2026-11-21T03-40-11Z-2",
		"2026-11-21T03-40-11Z", "broken"}
	if !slices.Equal(got, want) {
		t.Errorf("newest first: %q, want %q", got, want)
	}
}
