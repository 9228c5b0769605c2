// Package engine is what the load generator wants of what moves its bytes: connections that are
// opened, sent on and closed, and outcomes that come back. The packages below it are such engines;
// package load chooses one of them.
//
// Non-goals: HTTP. An engine of HTTP/2, or of gRPC, takes and gives texts of HTTP/1.1, so that the
// checks and the books of a load are the same for all.
package engine

import "github.com/HdrHistogram/hdrhistogram-go"

// Engine moves bytes for one load thread. It owns the sockets; a slot is a connection's number from
// 0 to the count given when it was made. One thread calls it, nothing in it is shared.
//
// The shape fits both readiness (epoll) and completion (io_uring): Send and Open only ask, and
// every outcome comes back through the Handler inside Wait.
type Engine interface {
	// Open begins to connect the slot to the engine's address. The outcome is Opened or Closed.
	Open(slot int)
	// Send queues b on the slot. b must stay untouched until the answer or the slot's end. An
	// engine that gathers sends lets them go at the latest when Wait is called next.
	Send(slot int, b []byte)
	// Close drops the slot's connection without a word to the Handler.
	Close(slot int)
	// Wait delivers what has happened, waiting for it until the deadline (clock.Mono) at most. A
	// deadline that has passed only polls.
	Wait(deadline int64, h Handler) error
	// Release closes all sockets and the engine.
	Release()
}

// Handler hears what happened to a slot, and when: at is clock.Mono as read by the engine when it
// learned of it, once for each call. Its methods may call Send, Open and Close.
type Handler interface {
	Opened(slot int, atNs int64)
	// Received hands over bytes as they came; b is valid during the call only.
	Received(slot int, atNs int64, b []byte)
	// Closed ends the slot: an orderly close of the peer (err nil), a failed connect, a reset, a
	// failed write. The slot may be opened again.
	Closed(slot int, atNs int64, op Op, err error)
}

// Streamer is an engine whose connections take bytes at any time, for protocols that have several
// requests under way on one.
type Streamer interface {
	Engine
	// Push sends as much of b as can leave at once, and returns how much that was; b is the
	// caller's again. After less than all of it the Handler, which is a Drained, hears when there
	// is room again. A write that fails is told as one of Send is. A connection that is pushed to
	// is not sent to.
	Push(slot int, b []byte) int
}

// Drained is a Handler that pushes.
type Drained interface {
	Handler
	// Drained says that a slot which has not taken all has room again.
	Drained(slot int, atNs int64)
}

// Handshaker is an engine that also takes the time of TLS handshakes, in nanoseconds. The histogram
// is read after the load's end.
type Handshaker interface {
	Handshakes() *hdrhistogram.Histogram
	// Session is what the last of them came to, as records have it, and how many took up the
	// session of one before.
	Session() (spoken string, resumed int64)
}

// Untaken is the error of a Closed whose request the peer has not processed, by its own word or
// because the request never left: a stream above the last one of an HTTP/2 GOAWAY, one that the
// peer refuses (REFUSED_STREAM), a connection that had ended before the request. Such a request may
// be sent again, whatever its method (RFC 9113, section 8.7).
type Untaken string

// Error implements error.
func (u Untaken) Error() string { return string(u) }

// Op is what an error interrupted.
type Op uint8

// The operations of a connection.
const (
	Connecting Op = iota
	Writing
	Reading
)

// CallStatus is added to the code of a gRPC answer that is not OK, to have it beside those of HTTP:
// 614 is Unavailable (14).
const CallStatus = 600

// Headless is an engine whose requests may have no header fields, and then cannot carry trace ids.
type Headless interface{ Headless() bool }
