package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Files that Prony's own output goes to are not the service's.
func TestStampsWithoutOutput(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"data", "log.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	usual := outputs
	outputs = append([]string{filepath.Join(dir, "log.txt")}, usual...)
	defer func() { outputs = usual }()
	all := stamps(dir)
	if _, isThere := all["data"]; !isThere || len(all) != 1 {
		t.Errorf("stamps of %v, want of data alone", all)
	}
}
