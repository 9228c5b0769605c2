package cpuclock

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzText wants that no text of a kernel ends the program, and that what it says is never below
// what there was: kernels differ, and a read may end anywhere.
func FuzzText(f *testing.F) {
	for _, text := range []string{statText, schedstatText, percpuText, "", "cpu", "cpu \ncpu0",
		"usage_usec 5\n", "cpu0 99999999999999999999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Numbers beyond an int64 wrap, which the kernel has none of here.
		if slices.ContainsFunc(bytes.FieldsFunc(b, func(r rune) bool { return r < '0' || r > '9' }),
			func(w []byte) bool { return len(w) > 10 }) || len(b) > 4000 {
			return
		}
		m := &Machine{}
		for _, ns := range []int64{steal(b), m.sum(b, statBusy), m.sum(b, schedstatBusy),
			m.percpu(b)} {
			if ns < unknown {
				t.Errorf("%d ns of %q", ns, b)
			}
		}
		after(b, "usage_usec ")
	})
}
