package cpuclock

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzText checks that no text crashes the parsers, and that results are -1 or more: kernels
// differ, and a read may end anywhere.
func FuzzText(f *testing.F) {
	for _, text := range []string{statText, schedstatText, percpuText, "", "cpu", "cpu \ncpu0",
		"usage_usec 5\n", "cpu0 99999999999999999999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Numbers beyond int64 wrap; the kernel writes none here.
		if slices.ContainsFunc(bytes.FieldsFunc(b, func(r rune) bool { return r < '0' || r > '9' }),
			func(w []byte) bool { return len(w) > 10 }) || len(b) > 4000 {
			return
		}
		m := &Machine{}
		for _, ns := range []int64{steal(b), m.sum(b, statBusy), m.sum(b, schedstatBusy),
			m.percpu(b), endedChildren(b)} {
			if ns < unknown {
				t.Errorf("%d ns of %q", ns, b)
			}
		}
		after(b, "usage_usec ")
	})
}
