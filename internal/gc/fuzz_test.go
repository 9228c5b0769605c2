package gc

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead wants no log to end the program, and sums of any window that can be.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no logs", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
	}
	f.Add([]byte("[9223372036854775807ns][gc] GC(0) Pause Young (Normal) 24M->4M(64M) 3.9ms\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		log, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err) // of reading, and nothing failed to be read
		}
		for _, to := range []int64{0, 1e9, math.MaxInt64} {
			g := log.Window(0, to)
			if g.PauseNs < 0 || g.PauseMaxNs < 0 || g.PauseMaxNs > g.PauseNs ||
				g.Collections < 0 || g.HeapAfterBytes < 0 || g.AllocatedBytes < -1 {
				t.Errorf("%+v of %q", g, b)
			}
		}
	})
}
