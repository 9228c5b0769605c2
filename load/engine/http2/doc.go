// Package http2 implements HTTP/2 (RFC 9113) over an engine that moves bytes. A slot is a stream of
// a connection of the engine below, so several requests can be under way on each connection.
//
//	Send ─► header block, cached by text ─► frames ─► Push ─► engine below
//	Received ◄─ text of HTTP/1.1 ◄─ header block, cached by bytes ◄─ frames, read in place
//
// Requests and responses are HTTP/1.1 text here too, so checks and books are the same for all
// protocols. A request's fields are literals without indexing, so its block is always the same and
// is encoded once. Responses are decoded by golang.org/x/net/http2/hpack, unless the same bytes
// were decoded before and the table has not changed since. Bodies are passed through in the pieces
// received; a body without a length becomes chunks.
//
// Input from a peer is bounded: frames, size and number of fields, consecutive frames without
// content, and frames that require a reply. Exceeding a bound ends the connection with an error
// that names it.
//
// A request leaves when its stream begins, and not before the end of a batch: what the events of a
// Wait lead to is pushed at its end, once for each connection. The engine reports each departure
// (engine.Departures), so that the wait for a stream is not part of the service time.
//
// Unary gRPC calls use the same text: the engine adds and removes the prefix of messages, and the
// status in the trailers becomes the response's status.
//
// Non-goals: server push (refused), priorities (ignored), CONNECT, contents of other trailers, gRPC
// streams and compressed gRPC messages.
package http2
