// Package runtimes lists the runtimes of targets and their properties. All decisions that depend on
// a runtime use it; tools and versions of languages are in internal/service.
package runtimes

import (
	"bytes"
	"slices"
	"time"
)

// Runtime describes a runtime.
type Runtime struct {
	Name string
	// HotSpot reports a JVM that takes options from its environment and logs its collections.
	HotSpot bool
	// Compiles reports a runtime that compiles while it serves, and so gets faster for a while.
	Compiles bool
	// Profilers lists profilers with frames of the runtime, best first; other profilers see the
	// process from outside.
	Profilers []string
}

// all lists the runtimes. Go's binaries and native images are both "native".
var all = []Runtime{
	{"jvm", true, true, []string{"async-profiler", "jfr"}},
	{"aot", true, true, []string{"async-profiler", "jfr"}}, // a JVM that starts from a cache
	{"native", false, false, []string{"pprof"}},
	{"node", false, true, []string{"v8"}},
	{"cpython", false, false, []string{"py-spy"}},
}

// Names lists the names of all runtimes, as in manifests and suites.
var Names = names()

func names() (out []string) {
	for _, r := range all {
		out = append(out, r.Name)
	}
	return out
}

// Of returns the runtime with a name. An unknown runtime may compile and has no other properties.
func Of(name string) Runtime {
	index := slices.IndexFunc(all, func(r Runtime) bool { return r.Name == name })
	if index < 0 {
		return Runtime{Name: name, Compiles: true}
	}
	return all[index]
}

// Role is the purpose of a thread of a runtime.
type Role int

// Roles of threads.
const (
	Serves   Role = iota // runs the program's code, or unknown
	Compiles             // compiles bytecode to machine code
	Collects             // collects garbage
	Either               // compiles or collects
)

// threads lists the names' beginnings of threads that don't serve, as the kernel cuts names: 15
// bytes. Runtimes without thread names are missing: Go and native images collect on any thread.
// Node has named its workers since 24 (nodejs/node #56416), and V8 gives them work of all kinds.
// HotSpot's VM thread works while all others are stopped, which is mostly for the collector; the
// serial collector runs on it.
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

// RoleOf returns the role of a thread by its name.
func RoleOf(thread []byte) Role {
	for _, t := range threads {
		if bytes.HasPrefix(thread, []byte(t.begin)) {
			return t.role
		}
	}
	return Serves
}

// Limits of the time that silent compilers may use.
const (
	// SilentFor is the time for which compilers must be silent: as long as a steady state's tail.
	SilentFor = 2 * time.Second
	// silentRun is the share of one core that silent compilers may still use. A warm JVM compiles a
	// method now and then.
	silentRun = 0.02
	// silentWant is the share of the time for which silent compilers may run or wait for a core.
	// Beside 60 runnable threads a busy compiler gets less than silentRun of a core. A compiler
	// with a short task waits for a few turns of the other threads, so silentWant must be larger.
	silentWant = 0.1
	// behindWant is the share from which on compilers may have been busy all the time.
	behindWant = 0.5
)

// Silent reports whether compilers that ran for runNs and waited for a core for waitNs in a stretch
// of ofNs had hardly any work.
func Silent(runNs, waitNs, ofNs int64) bool {
	total := float64(ofNs)
	return float64(runNs) < silentRun*total && float64(runNs+waitNs) < silentWant*total
}

// Behind reports whether compilers may have been busy all the time. How much they still have to
// compile is then unknown.
func Behind(runNs, waitNs, ofNs int64) bool {
	return float64(runNs+waitNs) >= behindWant*float64(ofNs)
}
