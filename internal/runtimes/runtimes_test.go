package runtimes_test

import (
	"testing"

	"prony/internal/runtimes"
)

func TestOf(t *testing.T) {
	check := func(name string, hotSpot bool, profiler string) {
		t.Helper()
		r := runtimes.Of(name)
		if r.Name != name || r.HotSpot != hotSpot ||
			profiler != "" && (len(r.Profilers) == 0 || r.Profilers[0] != profiler) ||
			profiler == "" && len(r.Profilers) > 0 {
			t.Errorf("%+v, want %v and %q", r, hotSpot, profiler)
		}
	}
	check("jvm", true, "async-profiler")
	check("aot", true, "async-profiler")
	check("native", false, "pprof")
	check("beam", false, "")
	for _, name := range runtimes.Names {
		if len(runtimes.Of(name).Profilers) == 0 {
			t.Errorf("no profiler knows the frames of %s", name)
		}
	}
}
