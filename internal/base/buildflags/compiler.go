// Package buildflags defines how the Go programs of this repository are built. `make bench`, tests,
// releases and prony-home use the same flags, so that Go's build cache compiles shared packages
// once.
package buildflags

import (
	"slices"
	"strings"
)

// Module is the path of this module. To publish the module at an address, replace the path here, in
// go.mod and in all imports.
const Module = "prony.example"

// Flags lists the flags of every compilation, tests included. -trimpath makes outputs independent
// of the checkout's folder. grpcnotrace leaves out grpc's debug pages, which need a template
// engine. Debug tables (DWARF) would take a tenth of the compiler's time, and profiles and panics
// don't need them. netgo, osusergo and -gcflags=std= match the builds of the services, so that both
// share compiled standard packages.
var Flags = []string{"-trimpath", "-tags=netgo,osusergo,grpcnotrace", "-gcflags=all=-dwarf=false",
	"-gcflags=std="}

// Link is the linker flag of programs: without symbol tables, programs and link times are smaller
// by a third.
const Link = "-ldflags=-s -w"

// Lavish is a variable for the compiler's environment: with less frequent garbage collections the
// compiler needs a sixth less time, and more memory.
const Lavish = "GOGC=400"

// Build returns the arguments of `go build` with Flags, Link and the given flags and packages.
func Build(more ...string) []string {
	return slices.Concat([]string{"build"}, Flags, []string{Link}, more)
}

// Tagged returns the arguments of Build with one more build tag.
func Tagged(tag string, more ...string) []string {
	out := Build(more...)
	for i, flag := range out {
		if strings.HasPrefix(flag, "-tags=") {
			out[i] += "," + tag
		}
	}
	return out
}
