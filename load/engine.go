package load

import "prony.example/load/engine"

// The types of package engine that users of Spec.Engine need. A load without Spec.Engine has a
// default engine.
type (
	Engine   = engine.Engine
	Handler  = engine.Handler
	Streamer = engine.Streamer
	Drained  = engine.Drained
	Queueing = engine.Queueing
	Op       = engine.Op
	Untaken  = engine.Untaken
)

// The operations of a connection that an error can interrupt.
const (
	Connecting = engine.Connecting
	Writing    = engine.Writing
	Reading    = engine.Reading
)

// CallStatus is added to the code of a gRPC response that is not OK, so that gRPC and HTTP codes
// fit in one number: 614 is Unavailable (14).
const CallStatus = engine.CallStatus

// LastCallStatus is the status of the last gRPC code, UNAUTHENTICATED.
const LastCallStatus = CallStatus + 16
