//go:build !linux || portable

package generator

import (
	"context"
	"errors"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// Engines are the names of those that can be asked for.
var Engines = []string{Auto}

// raw says that there are no engines of system calls here.
const raw = false

// useRaw has HTTP/1.1 in the clear spoken by the engine that works on every system.
func (p Prony) useRaw(s *load.Spec) error {
	useStack(s, nethttp.Config{Protocol: nethttp.H1, Network: "tcp", Address: s.Address.String()})
	s.Describe.Protocol = "" // as of every engine that speaks it
	s.Describe.Reason = "the faster engines need Linux" + unwatched
	return nil
}

// unwatched is what is not known of a generator here, for whoever reads of its engine.
const unwatched = "; on this system no thread is pinned, and how long one waited for a " +
	"processor is not known"

// run would run another tool in bounds that only Linux keeps.
func run(context.Context, command, string, []int) (*output, error) {
	return &output{}, errors.New("other tools are started on Linux alone; use prony load")
}
