package generator

import (
	"context"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
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

// Describe returns the engine that a load would use, and why.
func (p Prony) Describe() (load.EngineInfo, error) {
	var s load.Spec
	err := p.choice().Set(&s)
	return s.Describe, err
}

func (p Prony) choice() load.Choice { return load.Choice{Engine: p.Engine, Speak: p.Stack} }
