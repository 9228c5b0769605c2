package load

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"prony.example/load/engine"
)

// Servers close connections that they had promised to keep: after a number of requests, after a
// time, or before a restart. If the close crosses a request, the server never processed it. This is
// no failure of the service (RFC 9112, section 9.3.1; RFC 9113, section 8.7). The worker sends the
// request again on a new connection, as clients do. Its due time, send time and timeout remain
// those of the first send, so all times include the detour. Each repeated send is counted, see
// record.Load.Retried.

// repeatMax bounds how often one request is sent again. Over HTTP/1.1 a second connection that ends
// without a response is already a failure; an HTTP/2 server can refuse streams forever.
const repeatMax = 10

// notRepeatable is the cause of failClosed.
const notRepeatable = "the server closed the kept-alive connection without an answer, and a " +
	"request with this method must not be sent twice"

// perhapsProcessed follows the cause of failClosed if the peer ended a connection in order. A
// WebSocket's message has no method that says whether it may be sent twice.
const perhapsProcessed = "; it may have processed the message, which must not be sent twice"

// idempotent are the methods whose requests may be sent again although the server may have
// processed the first (RFC 9110, section 9.2.2).
var idempotent = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
	http.MethodPut, http.MethodDelete}

// untaken reports whether the server did not process the request of connection i, which has ended
// with err. The worker is sure if the engine reported it, or if no byte of the request left a
// connection that had served a response before. It assumes it if no byte of the response came over
// such an HTTP/1.1 connection or WebSocket, or over one that had expired. On another fresh
// connection, or within a response, a close or a reset is the server's failure.
func (w *worker) untaken(i int, err error) (untaken, sure bool) {
	c := &w.conns[i]
	if c.repeats >= repeatMax {
		return false, false
	}
	switch err.(type) {
	case Untaken, engine.Unsolicited:
		return true, true
	}
	_, ended := err.(engine.Ended)
	begun := c.first != 0 || c.resp.Status != 0 // also if only an interim response has come
	if begun || err != nil && !ended && !isGone(err) || c.answers == 0 && !w.expired(c) {
		return false, false
	}
	sure = w.engine.Unsent(i) == len(c.out)
	return sure || ended || w.cfg.serial, sure
}

// expired reports whether connection c had waited for its first request for a second, or for about
// as long as another that the server closed meanwhile: then its idle timeout meets the request. A
// new connection has not waited, so this cannot happen to a request twice.
func (w *worker) expired(c *conn) bool { return c.passed-c.since >= min(w.idleNs/2, 1e9) }

// crossed sends the request of connection i again if its response is 408 with an end of the
// connection: the server gave up waiting before the request arrived (RFC 9110, section 15.5.9). A
// second such response counts.
func (w *worker) crossed(i int, now int64) bool {
	c := &w.conns[i]
	if !c.resp.Close || c.repeats > 0 || !c.route.repeatable || c.route.status == c.resp.Status ||
		!w.cfg.serial {
		return false
	}
	w.engine.Close(i)
	w.retry(i, now)
	return true
}

// isGone reports whether an error means that the peer has closed the connection.
func isGone(err error) bool {
	return slices.ContainsFunc(goneErrors, func(gone error) bool { return errors.Is(err, gone) })
}

// serial reports whether a protocol, by its name in records, is HTTP/1.1: one request at a time, on
// a connection that can close without notice.
func serial(protocol string) bool {
	return protocol == "" || strings.HasPrefix(protocol, "HTTP/1.1")
}

// retry reopens connection i for the request that was on it.
func (w *worker) retry(i int, now int64) {
	c := &w.conns[i]
	c.repeats++
	w.unsent(i)
	w.gone(i)
	c.task = waiting
	w.book.reconnected(now)
	w.open(i, now)
}

// sendAgain repeats the request of connection i. If the request has not left the engine before,
// this is its first send.
func (w *worker) sendAgain(i int32) {
	c := &w.conns[i]
	w.expect(c)
	if !c.pending {
		w.book.sentAgain(c)
	}
	w.engine.Send(int(i), c.out)
}
