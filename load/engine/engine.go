// Package engine defines the interface between the load generator and the engines that move its
// bytes: connections are opened, sent on and closed, and outcomes come back. The packages below it
// implement engines; package load chooses one of them.
//
// Non-goals: HTTP semantics. An engine for HTTP/2 or gRPC takes and returns HTTP/1.1 text, so
// checks and books of a load are the same for all protocols.
package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Engine moves bytes for one load thread. It owns the sockets; a slot is a connection's number,
// from 0 up to the count given when the engine was made. Only one thread calls it, and it shares
// nothing.
//
// Send and Open only request, and every outcome comes back through the Handler inside Wait.
type Engine interface {
	// Open begins to connect the slot to the engine's address. The outcome is Opened or Closed.
	Open(slot int)
	// Send queues b on the slot. b must stay unchanged until the response or the slot's end. An
	// engine that batches sends flushes them in the next Wait at the latest.
	Send(slot int, b []byte)
	// Unsent returns how many bytes of the slot's last Send have not left: the kernel has not
	// accepted them, or they have no frame yet. It is valid until the slot's next Send or Open, so
	// also after the slot's end. An engine that cannot know it returns 0.
	Unsent(slot int) int
	// Close drops the slot's connection without calling the Handler.
	Close(slot int)
	// Wait delivers events and waits for them until the deadline (clock.Mono) at most. With a
	// deadline in the past it only polls.
	Wait(deadline int64, h Handler) error
	// Release closes all sockets and the engine.
	Release()
}

// Handler receives the events of slots. atNs is clock.Mono as read by the engine when it learned of
// the event, once for each call. Its methods may call Send, Open and Close.
type Handler interface {
	Opened(slot int, atNs int64)
	// Received passes bytes in the order received; b is valid only during the call.
	Received(slot int, atNs int64, b []byte)
	// Closed ends the slot: an orderly close by the peer (err nil, or ErrTruncated over TLS), a
	// failed connect, a reset, or a failed write. The slot may be opened again.
	Closed(slot int, atNs int64, op Op, err error)
}

// WaitMost is the largest number of connections whose events an engine handles in one Wait.
const WaitMost = 64

// Streamer is an engine whose connections accept bytes at any time, for protocols with several
// requests under way on one connection.
type Streamer interface {
	Engine
	// Push sends as much of b as can leave at once, and returns how much that was; b is then the
	// caller's again. If Push sent less than all of it, the engine calls Drained on the Handler
	// when there is room again. A failed write is reported as for Send. Do not use both Push and
	// Send on a connection.
	Push(slot int, b []byte) int
}

// Drained is a Handler for Push.
type Drained interface {
	Handler
	// Drained reports that a slot has room again after an incomplete Push.
	Drained(slot int, atNs int64)
}

// Queueing is an engine in which a request can wait after Send: for a stream that the server
// permits, or for the end of a Wait, which sends the requests of many events together.
type Queueing interface {
	// Queues reports whether requests can wait in the engine. If so, it calls Sent of a Departures
	// once for each Send, in a Wait, unless the slot ends before.
	Queues() bool
}

// Departures is a Handler for Queueing.
type Departures interface {
	Handler
	// Sent reports that the request of the slot's last Send leaves at a moment: its first bytes are
	// passed to the connection. freeNs is when the server permitted the stream for which it had
	// waited, or AtOnce. Unlike the Handler's other methods, Sent must not call the engine.
	Sent(slot int, freeNs, atNs int64)
}

// AtOnce is the freeNs of a request that did not wait for a stream.
const AtOnce = math.MinInt64

// Handshaker is an engine that also measures the duration of TLS handshakes, in nanoseconds. The
// histogram is read after the load has ended.
type Handshaker interface {
	Handshakes() *hdrhistogram.Histogram
	// Session returns the negotiated parameters of the last handshake, as in records, and how many
	// handshakes resumed an earlier session.
	Session() (spoken string, resumed int64)
}

// Layer is an engine over another one.
type Layer interface {
	// Below returns the engine below.
	Below() Engine
}

// Delayer is an engine that adds a network's delay.
type Delayer interface {
	// Seed sets the seed of the jitter, before the first Open.
	Seed(seed uint64)
	// Added returns the times, in nanoseconds, that were added to round trips: from a request that
	// left to the first bytes that came after it. It is read after the load has ended.
	Added() *hdrhistogram.Histogram
	// Passed counts what was held, and what was passed on or reported after it.
	Passed() int64
}

// DelayerOf returns the delayer among an engine and those below it; nil if there is none.
func DelayerOf(e Engine) Delayer {
	for {
		if d, ok := e.(Delayer); ok {
			return d
		}
		l, ok := e.(Layer)
		if !ok {
			return nil
		}
		e = l.Below()
	}
}

// Limited is an engine for protocols in which the server limits concurrent streams.
type Limited interface {
	// Shortage returns how many of the requested streams per connection the server does not permit,
	// at its lowest limit. It is read after the load has ended.
	Shortage() int
}

// Untaken is the error of a Closed whose request the peer has not processed, because the peer says
// so or because the request never left: a stream above the last one of an HTTP/2 GOAWAY, a stream
// that the peer refuses (REFUSED_STREAM), or a connection that had ended before the request. Such a
// request may be sent again, whatever its method (RFC 9113, section 8.7).
type Untaken string

// Error implements error.
func (u Untaken) Error() string { return string(u) }

// Unsolicited is the error of a Closed whose connection had these bytes of the peer before the
// request of the last Send left. The request has not left.
type Unsolicited string

// Error implements error.
func (u Unsolicited) Error() string {
	return fmt.Sprintf("an unsolicited response (%d bytes) came before the request", len(u))
}

// Ended is the error of a Closed whose peer ended the connection in order while a request was under
// way, by a WebSocket's close frame (RFC 6455, section 5.5.1). The peer may have processed the
// request.
type Ended string

// Error implements error.
func (e Ended) Error() string { return string(e) }

// ErrTruncated is the error of a Closed over TLS whose peer ended the connection without the alert
// close_notify. A response whose end only the connection shows may then be incomplete (RFC 9112,
// section 9.8); for others it is an orderly close.
var ErrTruncated = errors.New("the server ended TLS without close_notify, so the answer, which " +
	"has no length, may be incomplete")

// Op is the operation that an error interrupted.
type Op uint8

// The operations of a connection.
const (
	Connecting Op = iota
	Writing
	Reading
)

// CallStatus is added to the code of a gRPC response that is not OK, so that gRPC and HTTP codes
// fit in one number: 614 is Unavailable (14).
const CallStatus = 600

// Headless is an engine whose requests can lack header fields, and then cannot carry trace ids.
type Headless interface{ Headless() bool }
