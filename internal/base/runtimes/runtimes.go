// Package runtimes is what the lab knows of that which runs targets. Whatever else depends on a
// runtime asks here; tools and versions of languages are those of internal/service.
package runtimes

import (
	"bytes"
	"slices"
	"time"
)

// Runtime is one of them.
type Runtime struct {
	Name string
	// HotSpot is a JVM: it takes options from its environment and logs its collections.
	HotSpot bool
	// Compiles is one that compiles while it serves, so that it gets faster for a while.
	Compiles bool
	// Profilers know the runtime's own frames, best first; others see a process from outside.
	Profilers []string
}

// all has Go's binaries and native images both as "native".
var all = []Runtime{
	{"jvm", true, true, []string{"async-profiler", "jfr"}},
	{"aot", true, true, []string{"async-profiler", "jfr"}}, // a JVM that starts from a cache
	{"native", false, false, []string{"pprof"}},
	{"node", false, true, []string{"v8"}},
	{"cpython", false, false, []string{"py-spy"}},
}

// Names are those of all, as manifests and suites have them.
var Names = names()

func names() (out []string) {
	for _, r := range all {
		out = append(out, r.Name)
	}
	return out
}

// Of is the runtime of a name; of one that is not known nothing is known, but that it may compile.
func Of(name string) Runtime {
	index := slices.IndexFunc(all, func(r Runtime) bool { return r.Name == name })
	if index < 0 {
		return Runtime{Name: name, Compiles: true}
	}
	return all[index]
}

// Role is what a thread of a runtime is there for.
type Role int

// Roles of threads.
const (
	Serves   Role = iota // the program's own, or unknown
	Compiles             // bytecode to machine code
	Collects             // garbage
	Either               // compiles or collects, as there is work of either kind
)

// threads are how the names of those begin that do not serve, as the kernel cuts them: 15 bytes.
// Runtimes that do not name theirs are not here, and so nothing is said of them: Go collects on any
// thread, and so do native images; Node has named its workers since 24 (nodejs/node #56416), and
// V8 gives them whatever is to be done. HotSpot's VM thread works while all others are stopped,
// which is mostly for the collector; with the serial one it is the collector.
var threads = []struct {
	begin string
	role  Role
}{
	{"C1 Compiler", Compiles}, {"C2 Compiler", Compiles}, {"JVMCI", Compiles}, // HotSpot
	{"GC Thread#", Collects}, {"VM Thread", Collects}, {"G1 ", Collects}, {"ZWorker", Collects},
	{"ZDirector", Collects}, {"ZDriver", Collects}, {"ZStat", Collects}, {"ZUncommit", Collects},
	{"RuntimeWorker#", Collects}, {"Shenandoah ", Collects},
	{"V8Worker", Either}, // V8
	{".NET Tiered Com", Compiles}, {".NET Server GC", Collects}, {".NET BGC", Collects},
}

// RoleOf is the role of a thread by its name.
func RoleOf(thread []byte) Role {
	for _, t := range threads {
		if bytes.HasPrefix(thread, []byte(t.begin)) {
			return t.role
		}
	}
	return Serves
}

// When compilers have fallen silent.
const (
	// SilentFor is how long they must be: as long as a steady state's tail.
	SilentFor = 2 * time.Second
	// silentRun is the share of one core that they may still use. A warm JVM compiles a method now
	// and then.
	silentRun = 0.02
	// silentWant is the share of the time for which they may have run or waited for a core. Beside
	// 60 runnable threads a compiler with much to do gets less than silentRun of a core, and is not
	// silent. One with a short task waits for as long as a few turns of the others take, so that
	// this must be more.
	silentWant = 0.1
	// behindWant is the share from which on there may always have been something to compile.
	behindWant = 0.5
)

// Silent says whether compilers that ran and waited for a core for so long, in ns, in a stretch of
// time had hardly anything to do.
func Silent(runNs, waitNs, ofNs int64) bool {
	total := float64(ofNs)
	return float64(runNs) < silentRun*total && float64(runNs+waitNs) < silentWant*total
}

// Behind says whether they may have had something to do all the time: then nobody knows what is
// still to come.
func Behind(runNs, waitNs, ofNs int64) bool {
	return float64(runNs+waitNs) >= behindWant*float64(ofNs)
}
