package generator

import (
	"context"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/network"
)

// Prony is the built-in generator.
type Prony struct {
	Engine string          // load.Auto, the default, or an engine's name
	Stack  *nethttp.Config // of other protocols than plain HTTP/1.1; nil: HTTP/1.1
}

// Offer runs the load. It returns an error if the requested engine is not available, or if this
// process cannot open all connections.
func (p Prony) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	if err := roomHere().check(&s, p.Stack); err != nil {
		return nil, err
	}
	if err := p.choice().Set(&s); err != nil {
		return nil, err
	}
	return load.Run(ctx, s)
}

// Describe returns the engine that a load over a network would use, and why. It returns an error if
// the requested engine is not available, or if it cannot delay the network.
func (p Prony) Describe(d network.Delay) (load.EngineInfo, error) {
	s := load.Spec{Network: d}
	err := p.choice().Set(&s)
	return s.Describe, err
}

func (p Prony) choice() load.Choice { return load.Choice{Engine: p.Engine, Speak: p.Stack} }
