// Package http2 speaks HTTP/2 (RFC 9113) over an engine that moves bytes: a slot of its own is a
// stream of a connection below, so that several requests are under way on each.
//
//	Send ─► header block, known by its text ─► frames ─► Push ─► engine below
//	Received ◄─ text of HTTP/1.1 ◄─ header block, known by its bytes ◄─ frames, read in place
//
// Requests and answers are texts of HTTP/1.1 here too, so that checks and books are the same for
// all protocols. A request's fields are literals that enter no table, so that its block is the same
// each time and is made once. Answers go through a decoder (golang.org/x/net/http2/hpack), but for
// those whose bytes have been read before while the table was the same. Bodies are handed through
// as they come; one without a length becomes chunks.
//
// What a peer says is bounded: frames, blocks of fields and their number, frames that bring nothing
// and such that want an answer. What goes beyond ends the connection, with an error that says so.
//
// Unary calls of gRPC have the same texts: their messages lose and get their prefix, and what the
// trailers say becomes the answer's status.
//
// Non-goals: pushes (refused), priorities (ignored), CONNECT, other trailers' content, streams and
// compressed messages of gRPC.
package http2
