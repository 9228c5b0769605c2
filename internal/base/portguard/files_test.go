package portguard

import (
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	check := func(limit uint64, least, most, files, want int, says string) {
		t.Helper()
		n, warning, err := fit(limit, least, most, files)
		if err != nil {
			warning = err.Error()
		}
		if n != want || !strings.Contains(warning, says) || says == "" && warning != "" {
			t.Errorf("a limit of %d: %d connections, %q, want %d, %q", limit, n, warning, want,
				says)
		}
	}
	check(0, 8, 100, 1, 100, "")   // unknown
	check(164, 8, 100, 1, 100, "") // 64 + 100
	check(163, 8, 100, 1, 99, "at most 99 connections at a time instead of 100, because this "+
		"process may have 163 open files: raise the limit with ulimit -n 164")
	check(72, 8, 100, 1, 8, "at most 8 connections")
	check(71, 8, 100, 1, 0, "this process may have 71 open files, but it needs at least 72: raise "+
		"the limit with ulimit -n 164")
	check(16, 8, 100, 1, 0, "may have 16 open files")
	check(864, 8, 100, 8, 100, "")
	check(863, 8, 100, 8, 99, "ulimit -n 864")
	check(1<<63, 8, 100, 8, 100, "") // no limit
	if n, warning, err := Fit(1, 1, 1); n != 1 || warning != "" || err != nil {
		t.Errorf("here: %d, %q, %v", n, warning, err)
	}
}
