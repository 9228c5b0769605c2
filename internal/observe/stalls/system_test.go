//go:build linux && !portable

package stalls

import (
	"maps"
	"testing"
)

func TestParseSteal(t *testing.T) {
	const text = `cpu  11 22 33 44 55 66 77 88 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu1 10 20 30 40 50 60 70 0 0 0
cpu2 1 2 3
cpu12 1 1 1 900 900 1 1 3 0 0
intr 55 1 2 3 4 5 6 7 8 9
`
	want := map[int]int64{0: 80 * ms, 1: 0, 12: 30 * ms}
	if got := parseSteal(text); !maps.Equal(got, want) {
		t.Errorf("stolen %v, want %v", got, want)
	}
}

func TestRingBytes(t *testing.T) {
	// 16,384 ticks of 24 bytes are 96 pages of 4 KiB, and 128 is the next power of two.
	if got := ringBytes(capacity * tickBytes); got != 512<<10 {
		t.Errorf("a ring has %d bytes", got)
	}
	if got := ringBytes(1); got&(got-1) != 0 || got == 0 {
		t.Errorf("a ring for a byte has %d bytes", got)
	}
}
