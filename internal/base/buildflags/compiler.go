// Package buildflags is how the Go programs of this repository are built, in one place, so that
// what make bench, its tests, a release and the home of telemetry share is compiled once.
package buildflags

import (
	"slices"
	"strings"
)

// Module is the path of this module. It has no address yet: another one is put here, into go.mod
// and into the import lines.
const Module = "prony.example"

// Flags is for everything that compiles, tests too. What it makes is the same in whatever folder
// a checkout lies; grpc's pages about itself, which would keep a template engine, are not used. A
// debugger's tables would be a tenth of the compiler's time and are linked into nothing; what
// profiles and panics name stays. Go's own packages, with their own net and os/user, are as in the
// services, so that both compile them once.
var Flags = []string{"-trimpath", "-tags=netgo,osusergo,grpcnotrace", "-gcflags=all=-dwarf=false",
	"-gcflags=std="}

// Link is for programs beside that: without what only a debugger reads, a third of their size and
// of the linker's time.
const Link = "-ldflags=-s -w"

// Lavish is for the environment of what compiles: its garbage is collected seldom. A sixth of the
// compiler's time goes into that, on machines with memory to spare.
const Lavish = "GOGC=400"

// Build is go build with both, and what follows: more flags, -o, packages.
func Build(more ...string) []string {
	return slices.Concat([]string{"build"}, Flags, []string{Link}, more)
}

// Tagged is Build with one tag more.
func Tagged(tag string, more ...string) []string {
	out := Build(more...)
	for i, flag := range out {
		if strings.HasPrefix(flag, "-tags=") {
			out[i] += "," + tag
		}
	}
	return out
}
