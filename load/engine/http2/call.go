package http2

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"prony.example/load/engine"
)

// gRPC status codes (grpc/doc/statuscodes.md) that this client sets.
const (
	callCanceled  = 1
	callUnknown   = 2
	callDenied    = 7
	callExhausted = 8
	callNowhere   = 12 // Unimplemented
	callInternal  = 13
	callGone      = 14 // Unavailable
	callStranger  = 16 // Unauthenticated
)

const (
	prefixSize = 5 // of a message: a flag for compression, and the length
	// The maximum message size: the default of all gRPC clients, or more if memory allows for that
	// many calls at once.
	callMin, callTop = 4 << 20, 64 << 20
	callsMost        = 256 << 20
	foreignMax       = 1 << 10 // bytes read of a response that is not gRPC
)

// CallMax returns the maximum message size in bytes if slots calls are under way at once.
func CallMax(slots int) int { return min(max(callsMost/max(slots, 1), callMin), callTop) }

// NewCalls is New for unary gRPC calls (grpc/doc/PROTOCOL-HTTP2.md): a request's path is the
// method, its body the message. A response has status 200 and the message, or status
// engine.CallStatus plus the gRPC code and the server's error message. It is held until it is
// complete, because the code comes last. The timeout is sent to the server; 0 sends none.
func NewCalls(below engine.Streamer, slots, streams int, secure bool,
	timeout time.Duration) *Engine {
	e := New(below, slots, streams, secure)
	e.callMax = CallMax(slots)
	e.heads.call = appendString(appendInt(nil, 0, 4, places["content-type"]),
		[]byte("application/grpc"))
	e.heads.call = appendPair(e.heads.call, "te", "trailers")
	if timeout > 0 {
		e.heads.call = appendPair(e.heads.call, "grpc-timeout", wait(timeout))
	}
	return e
}

func appendPair(dst []byte, name, value string) []byte {
	return appendString(appendString(append(dst, 0), []byte(name)), []byte(value))
}

// wait formats a timeout for gRPC: at most eight digits, rounded up.
func wait(d time.Duration) string {
	for _, unit := range []struct {
		name string
		ns   time.Duration
	}{{"n", 1}, {"u", time.Microsecond}, {"m", time.Millisecond}, {"S", time.Second}} {
		if n := (d + unit.ns - 1) / unit.ns; n < 1e8 {
			return strconv.FormatInt(int64(n), 10) + unit.name
		}
	}
	return "99999999S"
}

// reserved are the request fields that gRPC defines itself, besides those of the connection.
var reserved = map[string]bool{"content-type": true, "content-length": true, "grpc-timeout": true,
	"grpc-encoding": true, "grpc-status": true, "grpc-message": true, "grpc-message-type": true}

// said holds the gRPC fields of a header block; the text beside it is grpc-message.
type said struct {
	grpc bool // content-type is gRPC's
	odd  bool // a field is not base64 although its name ends in -bin
	code int  // grpc-status; none: missing; unread: not a number
}

const unread = -2

// say handles a field of a call.
func (f *fields) say(name, value string) {
	switch name {
	case "content-type":
		tail, ok := strings.CutPrefix(value, "application/grpc")
		f.got.grpc = f.got.grpc || ok && (tail == "" || tail[0] == '+' || tail[0] == ';')
	case "grpc-status":
		if f.got.code == unread {
			return
		}
		n, err := strconv.ParseInt(value, 10, 32)
		switch {
		case err != nil:
			f.got.code = unread
		case n < 0 || n > callStranger:
			f.got.code = callUnknown // unknown codes are Unknown (statuscodes.md)
		default:
			f.got.code = int(n)
		}
	case "grpc-message":
		f.got.text = appendDecoded(f.got.text[:0], value)
	case "grpc-encoding":
	default:
		if strings.HasSuffix(name, "-bin") {
			encoding := base64.RawStdEncoding
			if len(value)%4 == 0 {
				encoding = base64.StdEncoding
			}
			_, err := encoding.DecodeString(value)
			f.got.odd = f.got.odd || err != nil
		}
	}
}

// appendDecoded appends a percent-decoded text; a percent sign without two hexadecimal digits is
// literal.
func appendDecoded(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				dst, i = append(dst, byte(n)), i+2
				continue
			}
		}
		dst = append(dst, s[i])
	}
	return dst
}

// call is the state of a lane's gRPC response.
type call struct {
	prefix   [prefixSize]byte // of the current message
	have     int              // bytes of prefix so far
	messages int              // complete messages
	foreign  int              // code for a response that is not gRPC; 0: it is gRPC
}

// callHead handles the first or last header block of a call's response.
func (e *Engine) callHead(i int, atNs int64, a *answer, end bool) {
	l := &e.lanes[i]
	switch {
	case l.foreign > 0:
		if end {
			e.settle(i, atNs, l.foreign, string(l.retained), codeNone)
		}
	case l.answered && !end:
		e.settle(i, atNs, callInternal, "gRPC: fields came within the response", codeProtocol)
	case a.code == unread:
		e.settle(i, atNs, callUnknown, "gRPC: grpc-status is not a number", codeProtocol)
	case !l.answered && !a.grpc:
		e.callForeign(i, atNs, a, end)
	case a.odd:
		e.settle(i, atNs, callInternal, "gRPC: metadata is not base64", codeProtocol)
	case end:
		e.callEnd(i, atNs, a)
	default:
		l.answered = true
		e.conns[l.connIndex].useless = 0
	}
}

// callForeign handles the head of a plain HTTP response (grpc/doc/http-grpc-status-mapping.md).
func (e *Engine) callForeign(i int, atNs int64, a *answer, end bool) {
	l := &e.lanes[i]
	switch a.status {
	case 0, 400:
		l.foreign = callInternal
	case 401:
		l.foreign = callStranger
	case 403:
		l.foreign = callDenied
	case 404:
		l.foreign = callNowhere
	case 429, 502, 503, 504:
		l.foreign = callGone
	default:
		if l.foreign = callUnknown; a.status < 200 {
			if l.foreign = 0; end {
				e.settle(i, atNs, callInternal, "gRPC: an interim status alone", codeProtocol)
			}
			return
		}
	}
	l.answered = true
	e.conns[l.connIndex].useless = 0
	l.retained = fmt.Appendf(
		l.retained[:0],
		"gRPC: the answer is none of gRPC, HTTP status %d: ",
		a.status,
	)
	l.remaining = foreignMax
	if end {
		e.settle(i, atNs, l.foreign, string(l.retained), codeNone)
	}
}

// callData handles a piece of a call's response: of the message, of a second message, which is an
// error, or of a body that is not gRPC.
func (e *Engine) callData(i int, atNs int64, b []byte, end bool) {
	l := &e.lanes[i]
	if l.foreign > 0 {
		n := min(len(b), int(l.remaining))
		l.retained, l.remaining = append(l.retained, b[:n]...), l.remaining-int64(n)
		if end {
			e.settle(i, atNs, l.foreign, string(l.retained), codeNone)
		} else if l.remaining == 0 {
			e.settle(i, atNs, l.foreign, string(l.retained), codeCancel)
		}
		return
	}
	for len(b) > 0 {
		if l.have < prefixSize {
			n := copy(l.prefix[l.have:], b)
			if l.have, b = l.have+n, b[n:]; l.have < prefixSize {
				break
			}
			l.remaining = int64(binary.BigEndian.Uint32(l.prefix[1:]))
			if l.remaining > int64(e.callMax) {
				e.settle(i, atNs, callExhausted, fmt.Sprintf("gRPC: a message of %d bytes came, "+
					"and %d are the most", l.remaining, e.callMax), codeCancel)
				return
			}
			if l.messages == 0 {
				l.retained = append(l.retained[:0], callOK...)
				l.retained = strconv.AppendInt(l.retained, l.remaining, 10)
				l.retained = append(l.retained, "\r\n\r\n"...)
			}
		}
		n := min(len(b), int(l.remaining))
		if l.messages == 0 {
			l.retained = append(l.retained, b[:n]...)
		}
		if l.remaining, b = l.remaining-int64(n), b[n:]; l.remaining > 0 {
			break
		}
		l.have = 0
		if l.messages++; l.prefix[0] != 0 || l.messages > 1 {
			e.settle(i, atNs, callInternal, wrongMessage(l.prefix[0]), codeCancel)
			return
		}
	}
	if end {
		e.settle(i, atNs, callInternal, "gRPC: the answer has no trailers", codeNone)
	}
}

const (
	callLine = "HTTP/1.1 200 OK\r\n"
	callOK   = callLine + "Content-Length: "
)

// wrongMessage describes the error of a message with this flag.
func wrongMessage(flag byte) string {
	switch flag {
	case 0:
		return "gRPC: two messages came, and one is an answer"
	case 1:
		return "gRPC: a message is compressed, although compression was not requested"
	}
	return fmt.Sprintf("gRPC: a message begins with %d", flag)
}

// callEnd handles the trailers.
func (e *Engine) callEnd(i int, atNs int64, a *answer) {
	l := &e.lanes[i]
	switch {
	case l.have > 0:
		e.settle(i, atNs, callInternal, "gRPC: a message is cut short", codeNone)
	case a.code == none:
		e.settle(i, atNs, callUnknown, "gRPC: the trailers have no grpc-status", codeNone)
	case a.code > 0:
		e.settle(i, atNs, a.code, string(a.text), codeNone)
	case l.messages == 0:
		e.settle(i, atNs, callInternal, "gRPC: status OK, and no message", codeNone)
	default:
		t := l.retained
		if e.conns[l.connIndex].phase == leaving {
			e.text = append(append(e.text[:0], callLine...), "Connection: close\r\n"...)
			e.text = append(e.text, t[len(callLine):]...)
			t = e.text
		}
		e.over(i)
		e.to.Received(i, atNs, t)
	}
}

// settle ends a failed call. If reset is not codeNone, settle resets the stream, because the server
// has not ended it.
func (e *Engine) settle(i int, atNs int64, code int, text string, reset uint32) {
	l := &e.lanes[i]
	c := &e.conns[l.connIndex]
	t := strconv.AppendInt(append(e.text[:0], "HTTP/1.1 "...), int64(engine.CallStatus+code), 10)
	t = append(t, " \r\n"...)
	if c.phase == leaving {
		t = append(t, "Connection: close\r\n"...)
	}
	t = strconv.AppendInt(append(t, "Content-Length: "...), int64(len(text)), 10)
	t = append(append(t, "\r\n\r\n"...), text...)
	e.text = t
	if reset != codeNone {
		c.out = appendNumber(c.out, typeReset, l.id, reset)
		l.tail = nil // so that over does not reset it again
	}
	e.over(i)
	e.to.Received(i, atNs, t)
}

// callReset maps an HTTP/2 error code to a gRPC code (PROTOCOL-HTTP2.md, "Errors").
func callReset(code uint32) int {
	switch code {
	case codeRefused:
		return callGone
	case codeCancel:
		return callCanceled
	case codeFlow, codeCalm:
		return callExhausted
	case codeInadequate:
		return callDenied
	}
	if int(code) < len(codes) {
		return callInternal
	}
	return callUnknown
}
