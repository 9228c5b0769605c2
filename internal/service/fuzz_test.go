package service

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad checks that no manifest makes Load panic, and that each target of an accepted manifest
// can be started without a panic.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"../../services/*/service.yaml",
		"testdata/broken/*/service.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal("no manifests", err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := filepath.Join(t.TempDir(), "a")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "service.yaml"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load(dir)
		if err != nil {
			return
		}
		for _, x := range s.Targets {
			v := Values{Host: "127.0.0.1", CPUs: 1, MemoryBytes: 64 << 20}
			for i := range s.Processes(x) {
				v.Ports = append(v.Ports, 8000+i)
			}
			if _, err := s.Starts(&Built{}, x, v); err != nil {
				t.Logf("%s: %v", x.Name, err) // a word that is refused only by a run
			}
		}
	})
}
