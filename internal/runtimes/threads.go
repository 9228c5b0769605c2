package runtimes

import "bytes"

// Role is what a thread of a runtime is there for.
type Role int

// Roles of threads.
const (
	Serves   Role = iota // the program's own, or nobody can say
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
