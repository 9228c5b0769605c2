package runtimes_test

import (
	"testing"

	"prony.example/internal/base/runtimes"
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

// TestRoleOf checks names from /proc/PID/task/TID/comm of JDK 25 with each of its collectors, from
// Node 24's source, and of .NET's threads as the kernel cuts them.
func TestRoleOf(t *testing.T) {
	check := func(role runtimes.Role, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := runtimes.RoleOf([]byte(name)); got != role {
				t.Errorf("%q has role %d, want %d", name, got, role)
			}
		}
	}
	check(runtimes.Compiles, "C1 CompilerThre", "C2 CompilerThre", "JVMCI CompilerT",
		".NET Tiered Com")
	check(runtimes.Collects, "VM Thread", "GC Thread#0", "GC Thread#11", "G1 Conc#0",
		"G1 Main Marker", "G1 Refine#0", "G1 Service", "ZDirector", "ZDriverMajor",
		"ZDriverMinor", "ZStat", "ZUncommitter#0", "ZWorkerOld#0", "ZWorkerYoung#0",
		"RuntimeWorker#0", "Shenandoah Cont", "Shenandoah GC T", ".NET Server GC", ".NET BGC")
	check(runtimes.Either, "V8Worker")
	check(runtimes.Serves, "", "java", "VM Periodic Tas", "Common-Cleaner", "ForkJoinPool-1-",
		"VirtualThread-u", "http-nio-8080-e", "Signal Dispatch", "node", "MainThread",
		"libuv-worker", "G1", ".NET TP Worker")
}
