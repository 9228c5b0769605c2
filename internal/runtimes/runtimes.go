// Package runtimes is what the lab knows of that which runs targets. Whatever else depends on a
// runtime asks here; tools and versions of languages are those of internal/service.
package runtimes

import "slices"

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
	at := slices.IndexFunc(all, func(r Runtime) bool { return r.Name == name })
	if at < 0 {
		return Runtime{Name: name, Compiles: true}
	}
	return all[at]
}
