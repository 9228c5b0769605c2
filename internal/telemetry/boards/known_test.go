package boards

import (
	"maps"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

func TestReadSeries(t *testing.T) {
	check := func(line string, want Series) {
		t.Helper()
		got, err := ReadSeries(line)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || !maps.Equal(got.Labels, want.Labels) ||
			got.First != want.First || got.Slope != want.Slope {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	check(`a{b="c", d="e \"f\" {g}"} 3+0.5x60`, Series{Name: "a", First: 3, Slope: 0.5,
		Labels: map[string]string{"b": "c", "d": `e "f" {g}`}})
	check(`a{} -1x60`, Series{Name: "a", First: -1})
	check(`a{} 1e-05-2e+02x60`, Series{Name: "a", First: 1e-05, Slope: -200})
	step := "{{schema:3 sum:2 count:3 offset:-4 buckets:[1 0 2]}}"
	check("a{} "+step+"+"+step+"x60", Series{Name: "a"})
	s, err := ReadSeries("a{} " + step + "+" + step + "x60")
	if err != nil || s.Native == nil || s.Native.offset != -4 || len(s.Native.buckets) != 3 {
		t.Errorf("%s: %+v, %v", step, s.Native, err)
	}
	for _, line := range []string{"", "a 1x60", "a{} x60", "a{} 1", `a{b="c} 1x60`} {
		if s, err := ReadSeries(line); err == nil && len(s.Labels) > 0 {
			t.Errorf("%q is read as %+v", line, s)
		}
	}
}

// A series without labels is the same when it is written and read again.
func FuzzReadSeries(f *testing.F) {
	f.Add(`a{b="c"} 3+0.5x60`)
	f.Add("a{} {{schema:3 sum:2 count:3 offset:-4 buckets:[1]}}+{{schema:3}}x60")
	f.Fuzz(func(t *testing.T, line string) {
		var s Series
		var err error
		testsets.Allocates(t, 1<<20+uint64(1000*len(line)), func() { s, err = ReadSeries(line) })
		if err == nil && !strings.HasPrefix(line, s.Name+"{") {
			t.Errorf("%q has the name %q", line, s.Name)
		}
	})
}
