package nethttp

import (
	"errors"
	"fmt"
	"io"

	"prony.example/internal/base/clock"
)

// Bounds of responses, in bytes, for servers that never end one. A response is held until it is
// complete, because its length is sent to the Handler first.
const (
	answerMax = 64 << 20  // of one response
	heldMax   = 256 << 20 // of all responses that an engine reads at a time
	// pieceMin fits most services' responses, and pieceMax bounds the growth.
	pieceMin, pieceMax = 512, 256 << 10
)

// body is a response body in pieces, so that nothing is copied as it grows.
type body struct {
	pieces [][]byte
	length int
	atNs   int64 // when it was complete
}

// hold reads a body to its end. It fails if the body exceeds the bounds. let releases the body's
// bytes from the count.
func (e *Engine) hold(r io.Reader) (b body, let func(), err error) {
	let = func() { e.retained.Add(-int64(b.length)) }
	piece := make([]byte, 0, pieceMin)
	for err == nil {
		if len(piece) == cap(piece) {
			b.pieces = append(b.pieces, piece)
			piece = make([]byte, 0, min(2*cap(piece), pieceMax))
		}
		var n int
		n, err = r.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		b.length += n
		if all := e.retained.Add(int64(n)); b.length > answerMax || all > heldMax {
			return b, let, fmt.Errorf("the answer has no end within %d MiB, or all that are "+
				"under way within %d MiB", answerMax>>20, heldMax>>20)
		}
	}
	b.atNs = clock.Mono()
	if !errors.Is(err, io.EOF) {
		return b, let, err
	}
	if len(piece) > 0 {
		b.pieces = append(b.pieces, piece)
	}
	return b, let, nil
}

// answer passes the body to the sink.
func (b body) answer(s *sink) {
	for _, piece := range b.pieces {
		s.answer(b.atNs, piece)
	}
}
