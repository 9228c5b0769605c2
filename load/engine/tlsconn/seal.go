// Package tlsconn adds TLS to an engine without it: it encrypts sent bytes and decrypts received
// bytes, without allocations.
//
//	Send ─► records, sealed ─► engine below ─► kernel
//	Received ◄─ records, opened where they stand ◄─ engine below ◄─ kernel
//
// Handshakes are done by crypto/tls, including certificates, resumption and negotiation; its key
// log supplies the secrets of TLS 1.3. After a handshake, this package handles records (RFC 8446,
// section 5), key updates and alerts. Limits, their order and the texts of errors are those of
// crypto/tls, and the tests compare them.
//
// Non-goals: trust decisions, early data (0-RTT), client certificates.
package tlsconn
