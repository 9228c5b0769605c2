package load

// Engine moves bytes for one load thread. It owns the sockets; a slot is a connection's number from
// 0 to the count given when it was made. One thread calls it, nothing in it is shared.
//
// The shape fits both readiness (epoll) and completion (io_uring): Send and Open only ask, and
// every outcome comes back through the Handler inside Wait.
type Engine interface {
	// Open begins to connect the slot to the engine's address. The outcome is Opened or Closed.
	Open(slot int)
	// Send queues b on the slot. b must stay untouched until the answer or the slot's end.
	Send(slot int, b []byte)
	// Close drops the slot's connection without a word to the Handler.
	Close(slot int)
	// Wait delivers what has happened, waiting for it until the deadline (clock.Mono) at most. A
	// deadline that has passed only polls.
	Wait(deadline int64, h Handler) error
	// Release closes all sockets and the engine.
	Release()
}

// Handler hears what happened to a slot. Its methods may call Send, Open and Close.
type Handler interface {
	Opened(slot int)
	// Received hands over bytes as they came; b is valid during the call only.
	Received(slot int, b []byte)
	// Closed ends the slot: an orderly close of the peer (err nil), a failed connect, a reset, a
	// failed write. The slot may be opened again.
	Closed(slot int, op Op, err error)
}

// Op is what an error interrupted.
type Op uint8

// The operations of a connection.
const (
	Connecting Op = iota
	Writing
	Reading
)
