package nethttp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type endless struct{ bytes int }

func (r *endless) Read(b []byte) (int, error) {
	r.bytes += len(b)
	return len(b), nil
}

func TestAnswersAreHeldWithinBounds(t *testing.T) {
	e := &Engine{}
	for _, text := range []string{"", "a", strings.Repeat("b", pieceMin),
		strings.Repeat("c", 3*pieceMax+1)} {
		for _, r := range []io.Reader{strings.NewReader(text),
			iotest.DataErrReader(strings.NewReader(text)), // the end comes with the last bytes
			iotest.HalfReader(strings.NewReader(text))} {
			b, let, err := e.hold(r)
			if got := string(bytes.Join(b.pieces, nil)); err != nil || got != text ||
				b.length != len(text) || e.retained.Load() != int64(len(text)) {
				t.Errorf("%d of %d bytes, %d held, error %v", len(got), len(text),
					e.retained.Load(), err)
			}
			let()
		}
	}
	lets := []func(){}
	for i, want := range []int{answerMax, answerMax, answerMax, answerMax - 1, 0} {
		if want == answerMax-1 {
			e.retained.Add(1) // another response: the fourth exceeds the common bound
		}
		r := &endless{}
		_, let, err := e.hold(r)
		if err == nil || r.bytes < want-4*pieceMax || r.bytes > want+2*pieceMax {
			t.Errorf("the answer %d without end: %d bytes read, want about %d; error %v", i,
				r.bytes, want, err)
		}
		lets = append(lets, let)
	}
	for _, let := range lets {
		let()
	}
	torn := errors.New("torn")
	_, let, err := e.hold(iotest.ErrReader(torn))
	if let(); !errors.Is(err, torn) || e.retained.Load() != 1 {
		t.Errorf("error %v, %d bytes held in the end, want the 1 of somebody else", err,
			e.retained.Load())
	}
}
