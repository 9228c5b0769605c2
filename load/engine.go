package load

import "prony.example/load/engine"

// What an engine is: see package engine. A load has one by itself; who brings another sets
// Spec.Engine.
type (
	Engine   = engine.Engine
	Handler  = engine.Handler
	Streamer = engine.Streamer
	Drained  = engine.Drained
	Op       = engine.Op
	Untaken  = engine.Untaken
)

// The operations of a connection that an error can interrupt.
const (
	Connecting = engine.Connecting
	Writing    = engine.Writing
	Reading    = engine.Reading
)

// CallStatus is added to the code of a gRPC answer that is not OK, to have it beside those of HTTP:
// 614 is Unavailable (14).
const CallStatus = engine.CallStatus
