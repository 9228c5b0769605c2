//go:build linux && !portable

package load

import "testing"

func TestSecondNumber(t *testing.T) {
	check := func(line string, want int64) {
		t.Helper()
		if got := secondNumber([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
	check("12345 678 9\n", 678) // schedstat: on the processor, waiting for it, turns
	check("0 0 0\n", 0)
	check("1 9223372036854775807 1\n", 1<<63-1)
	check("", 0)
	check("7", 0)
	check("7 ", 0)
}
