package probe

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// FuzzProc checks that no text crashes the parsers: kernels differ, and files change while they are
// read.
func FuzzProc(f *testing.F) {
	for _, file := range []string{"/proc/stat", "/proc/self/stat", "/proc/pressure/cpu",
		"/proc/net/dev"} {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b[:min(len(b), 2000)])
		}
	}
	f.Add([]byte("1 (a) b) ) R 1"))
	f.Add([]byte("1 (a)"))
	f.Add([]byte("some avg10=0.00 total="))
	f.Add([]byte("cpu  99999999999999999999 1 1 1 1 1 1 1 1 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Numbers beyond int64 wrap; the kernel writes none here.
		sound := !bytes.Contains(b, []byte("-")) &&
			!slices.ContainsFunc(bytes.Fields(b), func(w []byte) bool { return len(w) > 17 })
		h := ParseHost(b)
		if sound && h.Busy != unknown && (h.Busy < 0 || h.Total < h.Busy) {
			t.Errorf("%+v of %q", h, b)
		}
		parsePressure(b)
		parseStat(b)
		ParseProcess(b)
		keyed(b, "lo:")
	})
}
