package gclog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead checks, for any log, that no pause ends before it begins, that pauses are in order, and
// that sums of a window are not negative.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) == 0 {
		f.Fatal(err, "no logs")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
	}
	f.Add([]byte("[9223372036854775807ns][gc] GC(0) Pause Young 1M->1M(1M) 99999999999999.0ms\n"))
	f.Add([]byte("[1ns][safepoint] Safepoint \"Z\", Total: 9223372036854775807 ns\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Problems) > maxProblems || int64(len(l.Problems)) > l.Skipped {
			t.Errorf("%d problems of %d lines", len(l.Problems), l.Skipped)
		}
		for i, e := range l.Events {
			if e.PauseNs < 0 || e.StartNs < 0 || e.EndNs() < e.StartNs {
				t.Errorf("%+v", e)
			}
			if i > 0 && e.StartNs < l.Events[i-1].StartNs {
				t.Errorf("%+v after %+v", e, l.Events[i-1])
			}
		}
		w := l.Window(0, always)
		if w.PauseNs < 0 || w.PauseMaxNs > w.PauseNs || w.AllocatedBytes < -1 ||
			w.HeapAfterBytes < 0 || w.Collections < 0 {
			t.Errorf("%+v", w)
		}
	})
}
