package pace

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzReadTrace requires arrivals that can be replayed, and that writing and reading them returns
// the same.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(traceHead + "\n0\n0.000000001\n# x\n\n12.5\n"))
	f.Add([]byte(traceHead + "\n1.0000000001\n"))
	f.Add([]byte(traceHead + "\n9223372036.854775807\n"))
	f.Add([]byte("0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		trace, err := ReadTrace(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(trace) == 0 || trace[0] < 0 || !slices.IsSorted(trace) {
			t.Fatalf("%v of %q", trace, b)
		}
		p, err := newReplay(trace)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err = WriteTrace(&out, p, trace[len(trace)-1]+1)
		again, err2 := ReadTrace(strings.NewReader(out.String()))
		if err != nil || err2 != nil || !slices.Equal(again, trace) {
			t.Errorf("%v, %v: %v was written and is read as %v", err, err2, trace, again)
		}
	})
}
