package http2

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// whole is a frame with its complete payload.
type whole struct {
	kind, flags byte
	id          uint32
	payload     string
	size        int
}

// ours parses the input in pieces and joins DATA.
func ours(said []byte, piece int) (all []whole, err error) {
	var r reader
	var data whole
	for len(said) > 0 {
		b := bytes.Clone(said[:min(piece, len(said))])
		said = said[len(b):]
		for {
			f, rest, ok, err := r.next(b)
			if err != nil {
				return all, err
			}
			if !ok {
				break
			}
			b = rest
			if f.kind != typeData {
				all = append(all, whole{f.kind, f.flags, f.id, string(f.payload), 0})
				continue
			}
			data.kind, data.flags, data.id = f.kind, f.flags, f.id
			data.payload, data.size = data.payload+string(f.payload), data.size+f.size
			if f.last {
				all, data = append(all, data), whole{}
			}
		}
	}
	return all, nil
}

// theirs parses the same by golang.org/x/net/http2.
func theirs(said []byte) (all []whole, err error) {
	r := http2.NewFramer(nil, bytes.NewReader(said))
	r.SetMaxReadFrameSize(frameMax)
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return all, err
		}
		h := f.Header()
		w := whole{byte(h.Type), byte(h.Flags), h.StreamID, "", 0}
		switch f := f.(type) {
		case *http2.DataFrame:
			w.payload, w.size = string(f.Data()), int(h.Length)
		case *http2.HeadersFrame:
			w.payload = string(f.HeaderBlockFragment())
		case *http2.ContinuationFrame:
			w.payload = string(f.HeaderBlockFragment())
		case *http2.PingFrame:
			w.payload = string(f.Data[:])
		case *http2.UnknownFrame:
			w.payload = string(f.Payload())
		case *http2.PushPromiseFrame:
			return all, errors.New("a push")
		}
		all = append(all, w)
	}
}

// Both readers return the same frames, for any input in any pieces.
func FuzzReader(f *testing.F) {
	var said bytes.Buffer
	w := http2.NewFramer(&said, nil)
	w.AllowIllegalWrites = true
	seed := func() {
		f.Add(bytes.Clone(said.Bytes()), uint8(200))
		f.Add(bytes.Clone(said.Bytes()), uint8(1))
		said.Reset()
	}
	must := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				f.Fatal(err)
			}
		}
	}
	must(w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 9}),
		w.WriteSettingsAck(), w.WritePing(false, [8]byte{1, 2}), w.WriteWindowUpdate(3, 9),
		w.WriteData(1, false, []byte("hello")), w.WriteDataPadded(1, true, []byte("you"),
			make([]byte, 9)), w.WriteRSTStream(5, http2.ErrCodeCancel),
		w.WriteGoAway(7, http2.ErrCodeNo, []byte("bye")), w.WriteRawFrame(99, 5, 3, []byte("?")))
	seed()
	must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("abc"),
		PadLength: 5, Priority: http2.PriorityParam{Weight: 3}}),
		w.WriteContinuation(1, false, nil), w.WriteContinuation(1, true, []byte("d")))
	seed()
	must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}), w.WritePing(true, [8]byte{}))
	seed()
	must(w.WriteContinuation(1, true, nil))
	seed()
	must(w.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2}))
	seed()
	for _, b := range []string{"\x00\x00\x00\x00\x08\x00\x00\x00\x01", "\x00\x00\x01\x00\x08\x00" +
		"\x00\x00\x01\x01", "\x00\x40\x01\x00\x00\x00\x00\x00\x01", "\x00\x00\x05\x01\x28\x00\x00" +
		"\x00\x011234", "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x80\x00\x00\x00"} {
		said.WriteString(b)
		seed()
	}
	f.Fuzz(func(t *testing.T, said []byte, piece uint8) {
		agree(t, said, int(piece)+1)
	})
}

// agree requires both readers to accept the same frames and to stop at the same one. A Framer also
// rejects window updates of zero on a stream and settings out of bounds, which here are checked
// when the frame is applied.
func agree(t *testing.T, said []byte, piece int) {
	t.Helper()
	got, err := ours(said, piece)
	want, other := theirs(said)
	for i := range min(len(got), len(want)) {
		a, b := got[i], want[i]
		switch a.kind {
		case typePriority, typeReset, typeSettings, typeGoAway, typeWindow, priorityUpdate:
			b.payload = a.payload
		}
		if a != b {
			t.Fatalf("frame %d is %+v, want %+v", i, a, b)
		}
	}
	ended := errors.Is(other, io.EOF) || errors.Is(other, io.ErrUnexpectedEOF)
	switch {
	case len(got) == len(want) && (err == nil) == ended:
	case len(got) == len(want) && err != nil && ended && len(said) > 0:
		// refused by its head, before all of it has come; or padding that a Framer takes for an end
	case len(got) > len(want) && !ended && lenient(got[len(want)]):
	default:
		t.Fatalf("%d frames and %v, want %d and %v", len(got), err, len(want), other)
	}
}

const priorityUpdate = 16 // RFC 9218, which this engine ignores

// lenient reports whether a frame is only rejected when it is applied.
func lenient(w whole) bool {
	return w.kind == typeWindow && w.id != 0 || w.kind == typeSettings && w.flags&flagAck == 0 ||
		w.kind == priorityUpdate
}

// Malformed frames are rejected with the RFC's code.
func TestFaults(t *testing.T) {
	check := func(name string, code uint32, said ...byte) {
		t.Helper()
		_, err := ours(said, 3)
		var f *fault
		if !errors.As(err, &f) || f.code != code {
			t.Errorf("%s: %v, want %s", name, err, codeName(code))
		}
	}
	check("long", codeFrameSize, 0, 0x40, 1, 0, 0, 0, 0, 0, 1)
	check("push", codeProtocol, 0, 0, 4, typePush, 4, 0, 0, 0, 1, 0, 0, 0, 2)
	check("ping", codeFrameSize, 0, 0, 1, typePing, 0, 0, 0, 0, 0, 0)
	check("ping of a stream", codeProtocol, 0, 0, 8, typePing, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		0)
	check("acknowledged settings", codeFrameSize, slices.Concat([]byte{0, 0, 6, typeSettings,
		flagAck, 0, 0, 0, 0}, make([]byte, 6))...)
	check("padding", codeProtocol, 0, 0, 2, typeData, flagPadded, 0, 0, 0, 1, 2, 0)
	check("padding of fields", codeProtocol, 0, 0, 2, typeHeaders, flagPadded, 0, 0, 0, 1, 2, 0)
	check("priority", codeFrameSize, 0, 0, 2, typeHeaders, flagPriority, 0, 0, 0, 1, 2, 0)
	check("data of no stream", codeProtocol, 0, 0, 0, typeData, 0, 0, 0, 0, 0)
	check("window of nothing", codeProtocol, 0, 0, 4, typeWindow, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	check("fields that do not go on", codeProtocol, 0, 0, 0, typeHeaders, 0, 0, 0, 0, 1,
		0, 0, 0, typeHeaders, 4, 0, 0, 0, 3)
	check("fields that have not begun", codeProtocol, 0, 0, 0, typeContinuation, 4, 0, 0, 0, 1)
}

// A Framer reads what is written.
func TestAppend(t *testing.T) {
	block := bytes.Repeat([]byte("0123456789"), 4000)
	b := appendSettings(nil, setPush, 0, setInitialWindow, 1<<20)
	b = appendNumber(b, typeWindow, 3, 77)
	b = appendFields(b, block, flagEndStream, 5)
	b = appendGoAway(b, codeCalm)
	r := http2.NewFramer(nil, bytes.NewReader(b))
	r.SetMaxReadFrameSize(frameMax)
	next := func() http2.Frame {
		f, err := r.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s := next().(*http2.SettingsFrame)
	if v, ok := s.Value(http2.SettingInitialWindowSize); v != 1<<20 || !ok || s.NumSettings() != 2 {
		t.Errorf("settings are %v", s)
	}
	if w := next().(*http2.WindowUpdateFrame); w.Increment != 77 || w.StreamID != 3 {
		t.Errorf("the window's update is %v", w)
	}
	h := next().(*http2.HeadersFrame)
	got := bytes.Clone(h.HeaderBlockFragment())
	for ended := h.HeadersEnded(); !ended; {
		c := next().(*http2.ContinuationFrame)
		got, ended = append(got, c.HeaderBlockFragment()...), c.HeadersEnded()
	}
	if !h.StreamEnded() || h.StreamID != 5 || !bytes.Equal(got, block) {
		t.Errorf("fields are %v, %d bytes", h, len(got))
	}
	if g := next().(*http2.GoAwayFrame); g.ErrCode != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("the farewell is %v", g)
	}
}
