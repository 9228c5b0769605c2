package generator

import (
	"context"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// Prony is the built-in generator.
type Prony struct {
	Engine string          // load.Auto, which is the default, or the name of another
	Stack  *nethttp.Config // of any protocol but HTTP/1.1 in the clear; nil: that
}

// Offer runs the load. It fails when the engine asked for cannot be had here.
func (p Prony) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	if err := p.choice().Set(&s); err != nil {
		return nil, err
	}
	return load.Run(ctx, s)
}

// Describe says which engine a load would have, and why.
func (p Prony) Describe() (load.EngineInfo, error) {
	var s load.Spec
	err := p.choice().Set(&s)
	return s.Describe, err
}

func (p Prony) choice() load.Choice { return load.Choice{Engine: p.Engine, Speak: p.Stack} }
