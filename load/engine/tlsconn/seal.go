// Package tlsconn speaks TLS over an engine that does not: what is sent leaves it sealed, what
// comes is opened, and between the two nothing is allocated.
//
//	Send ─► records, sealed ─► engine below ─► kernel
//	Received ◄─ records, opened where they stand ◄─ engine below ◄─ kernel
//
// Handshakes are crypto/tls's own: certificates, resumption and all that can be negotiated are its
// business, and the secrets of TLS 1.3 are in its key log. What follows one is done here: records
// (RFC 8446, section 5), updates of keys, alerts. Limits, their order and the words of errors are
// those of crypto/tls, which the tests hold it to.
//
// Non-goals: to decide whom to trust, early data (0-RTT), certificates of clients.
package tlsconn
