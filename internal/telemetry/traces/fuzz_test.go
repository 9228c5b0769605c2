package traces

import (
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/telemetry"
)

// FuzzRead checks that no file of stored traces causes a panic, whatever a crash left in it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"traceId":"1","spans":[{"name":"a","attributes":{"k":1}}]}` + "\n{"))
	f.Add([]byte(`{"traceId":"1","spans":[{}, null],"durationNs":-1}` + "\nnull\n[]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		for _, name := range []string{telemetry.SpansFile, MetricsFile} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		traces, _, err := Read(dir, Filter{Slowest: true, Limit: 3})
		if err != nil || len(traces) > 3 {
			t.Errorf("%d traces, %v", len(traces), err)
		}
		for _, x := range traces {
			if len(x.Spans) == 0 {
				t.Errorf("%+v", x)
			}
		}
		if _, _, err := ReadCalls(dir, "", ""); err != nil {
			t.Error(err)
		}
	})
}
