package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// TestSet writes limits into the files of a group and names those that cannot be written.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "memory.max"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused := set(launch.Group{Dir: dir, Version: 2}, []cgroup.Setting{
		{Limit: "cpu", File: "cpu.max", Value: "max 100000"},
		{Limit: "memory", File: "memory.max", Value: int64(64 << 20)}})
	want := []string{"memory (cgroup v2): open " + filepath.Join(dir, "memory.max") +
		": is a directory"}
	if !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil || string(text) != "max 100000" {
		t.Errorf("cpu.max is %q, error %v", text, err)
	}
}
