package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

// FuzzRead checks that no file of records and no service log causes a panic, or a line longer than
// the displayed part.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"trial":"a","severity":"ERROR","ns":1,"body":"x"}` + "\n{\n"))
	f.Add([]byte(strings.Repeat("x", traces.MaxValueBytes+1) + "\r\n\x00\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		for _, name := range []string{telemetry.LogsFile, "t.log"} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Read(dir, Filter{Limit: 3}); err != nil {
			t.Error(err)
		}
		lines, err := ReadFiles(dir, Filter{}, nil)
		if err != nil {
			t.Error(err)
		}
		for _, l := range lines {
			if len(l.Text) > traces.MaxValueBytes+len("…") {
				t.Errorf("%d bytes of a line", len(l.Text))
			}
		}
	})
}
