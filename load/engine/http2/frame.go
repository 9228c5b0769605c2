package http2

import (
	"encoding/binary"
	"fmt"
)

// Types of frames (RFC 9113, section 6).
const (
	typeData         = 0
	typeHeaders      = 1
	typePriority     = 2
	typeReset        = 3
	typeSettings     = 4
	typePush         = 5
	typePing         = 6
	typeGoAway       = 7
	typeWindow       = 8
	typeContinuation = 9
)

// Flags.
const (
	flagEndStream  = 1 // of DATA and HEADERS
	flagAck        = 1 // of SETTINGS and PING
	flagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 32
)

// Settings (section 6.5.2).
const (
	setTableSize     = 1
	setPush          = 2
	setMaxStreams    = 3
	setInitialWindow = 4
	setFrameSize     = 5
	setListSize      = 6
)

// Codes of errors (section 7).
const (
	codeNone       = 0
	codeProtocol   = 1
	codeInternal   = 2
	codeFlow       = 3
	codeFrameSize  = 6
	codeRefused    = 7
	codeCancel     = 8
	codeCompress   = 9
	codeCalm       = 11
	codeInadequate = 12
	preface        = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	headSize       = 9
	frameMax       = 1 << 14   // bytes of a frame's payload, until a peer permits more
	frameMost      = 1<<24 - 1 // the most that a peer may permit
	windowMax      = 1<<31 - 1
	windowInitial  = 1<<16 - 1
	settingSize    = 6
	priorityLength = 5
)

var codes = [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR",
	"SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL",
	"COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY",
	"HTTP_1_1_REQUIRED"}

// codeName returns the RFC's name of an error code.
func codeName(code uint32) string {
	if int(code) < len(codes) {
		return codes[code]
	}
	return fmt.Sprintf("error %#x", code)
}

// fault is an error of the peer. It ends the connection, or only the stream.
type fault struct {
	code uint32
	text string
}

func (f *fault) Error() string {
	return "HTTP/2: " + f.text + " (" + codeName(f.code) + ")"
}

func wrong(code uint32, format string, args ...any) error {
	return &fault{code, fmt.Sprintf(format, args...)}
}

// frame is a received frame, or a piece of a DATA frame.
type frame struct {
	kind, flags byte
	id          uint32
	payload     []byte // without padding and priority; valid until the next call of the reader
	size        int    // DATA: bytes that count for flow control; all in the first piece
	last        bool   // DATA: the frame ends here
}

func (f *frame) has(flag byte) bool { return f.flags&flag != 0 }

// number returns the first number of the payload.
func (f *frame) number() uint32 { return binary.BigEndian.Uint32(f.payload) }

// reader splits input into frames in place. It buffers an incomplete frame, but passes DATA on in
// pieces.
type reader struct {
	part      []byte
	within    bool   // DATA: the frame continues
	remaining int    // DATA: bytes to come
	pad       int    // DATA: padding to come
	data      frame  // DATA: the current frame
	pending   uint32 // the stream whose fields must continue in the next frame
}

// reset drops the state of a connection.
func (r *reader) reset() { *r = reader{part: r.part[:0]} }

// partial reports whether a frame is incomplete.
func (r *reader) partial() bool { return len(r.part) > 0 || r.within }

// next takes a frame, or a piece of one, from the beginning of b. If ok is false, it has consumed
// all of b and needs more.
func (r *reader) next(b []byte) (f frame, tail []byte, ok bool, err error) {
	if r.within {
		f, tail, ok = r.piece(b)
		return f, tail, ok, nil
	}
	for {
		from := b
		if len(r.part) > 0 {
			from = r.part
		}
		n, err := r.need(from)
		if err != nil {
			return f, nil, false, err
		}
		if len(from) >= n {
			if len(r.part) > 0 {
				r.part = r.part[:0]
			} else {
				b = b[n:]
			}
			return r.open(from[:n], b)
		}
		if len(b) == 0 {
			return f, nil, false, nil
		}
		n = min(n-len(r.part), len(b))
		r.part = append(r.part, b[:n]...)
		b = b[n:]
	}
}

// need returns the number of bytes needed of the frame that b begins with: all, or for DATA only
// the head.
func (r *reader) need(b []byte) (int, error) {
	if len(b) < headSize {
		return headSize, nil
	}
	n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	kind, flags := b[3], b[4]
	id := binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)
	switch {
	case n > frameMax:
		return 0, wrong(codeFrameSize, "a frame of %d bytes came, and %d are permitted", n,
			frameMax)
	case r.pending != 0 && (kind != typeContinuation || id != r.pending):
		return 0, wrong(codeProtocol, "the fields of stream %d do not go on where they must",
			r.pending)
	case r.pending == 0 && kind == typeContinuation:
		return 0, wrong(codeProtocol, "fields go on that have not begun")
	case kind == typeData && flags&flagPadded != 0:
		if n == 0 {
			return 0, errPadding
		}
		return headSize + 1, nil
	case kind == typeData:
		return headSize, nil
	}
	return headSize + n, nil
}

var errPadding = wrong(codeProtocol, "a frame has more padding than bytes")

// open parses a complete frame, or the head of a DATA frame whose payload begins in b.
func (r *reader) open(full, b []byte) (f frame, tail []byte, ok bool, err error) {
	f.kind, f.flags = full[3], full[4]
	f.id = binary.BigEndian.Uint32(full[5:]) &^ (1 << 31)
	if f.kind == typeData {
		r.remaining = int(full[0])<<16 | int(full[1])<<8 | int(full[2])
		f.size, r.pad = r.remaining, 0
		if f.has(flagPadded) {
			r.pad = int(full[headSize])
			r.remaining -= 1 + r.pad
		}
		switch {
		case r.remaining < 0:
			return f, nil, false, errPadding
		case f.id == 0:
			return f, nil, false, wrong(codeProtocol, "data came for no stream")
		}
		r.data, r.within = f, true
		f, tail, _ = r.piece(b)
		return f, tail, true, nil
	}
	f.payload = full[headSize:]
	if f.kind == typeHeaders {
		if err := f.strip(); err != nil {
			return f, nil, false, err
		}
	}
	if err := f.check(); err != nil {
		return f, nil, false, err
	}
	if f.kind == typeHeaders || f.kind == typeContinuation {
		if r.pending = f.id; f.has(flagEndHeaders) {
			r.pending = 0
		}
	}
	return f, b, true, nil
}

// piece returns the part of a DATA frame that has come. A frame's first piece has the size of all,
// even if its payload is empty.
func (r *reader) piece(b []byte) (f frame, tail []byte, ok bool) {
	f = r.data
	r.data.size = 0
	n := min(r.remaining, len(b))
	f.payload, b = b[:n], b[n:]
	r.remaining -= n
	if r.remaining == 0 {
		skip := min(r.pad, len(b))
		r.pad, b = r.pad-skip, b[skip:]
	}
	f.last = r.remaining == 0 && r.pad == 0
	r.within = !f.last
	return f, b, f.last || n > 0
}

// strip removes padding and priority.
func (f *frame) strip() error {
	pad := 0
	if f.has(flagPadded) {
		if len(f.payload) == 0 {
			return errPadding
		}
		pad, f.payload = int(f.payload[0]), f.payload[1:]
	}
	if f.has(flagPriority) {
		if len(f.payload) < priorityLength {
			return wrong(codeFrameSize, "a priority is cut short")
		}
		f.payload = f.payload[priorityLength:]
	}
	if pad > len(f.payload) {
		return errPadding
	}
	f.payload = f.payload[:len(f.payload)-pad]
	return nil
}

// sizes are the payload sizes of types with a fixed size, plus 1.
var sizes = [...]int{typePriority: 6, typeReset: 5, typePing: 9, typeWindow: 5,
	typeContinuation: 0}

// check checks size and stream of a frame by its type.
func (f *frame) check() error {
	n, good := len(f.payload), true
	if int(f.kind) < len(sizes) && sizes[f.kind] > 0 {
		good = n == sizes[f.kind]-1
	}
	switch f.kind {
	case typeSettings:
		good = n%settingSize == 0 && (n == 0 || !f.has(flagAck))
	case typeGoAway:
		good = n >= 8
	case typePush:
		return wrong(codeProtocol, "the server pushes, although Prony disabled it")
	}
	if !good {
		return wrong(codeFrameSize, "a frame of type %d has %d bytes", f.kind, n)
	}
	switch f.kind {
	case typeHeaders, typePriority, typeReset, typeContinuation:
		good = f.id != 0
	case typeSettings, typePing, typeGoAway:
		good = f.id == 0
	case typeWindow:
		good = f.id != 0 || f.number()&windowMax != 0
	}
	if !good {
		return wrong(codeProtocol, "a frame of type %d came for stream %d", f.kind, f.id)
	}
	return nil
}

// appendHead appends the head of a frame.
func appendHead(dst []byte, n int, kind, flags byte, id uint32) []byte {
	return append(dst, byte(n>>16), byte(n>>8), byte(n), kind, flags, byte(id>>24), byte(id>>16),
		byte(id>>8), byte(id))
}

// appendNumber appends a frame with one number as payload.
func appendNumber(dst []byte, kind byte, id, n uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(dst, 4, kind, 0, id), n)
}

// appendSettings appends a SETTINGS frame from pairs of name and value.
func appendSettings(dst []byte, pairs ...uint32) []byte {
	dst = appendHead(dst, len(pairs)/2*settingSize, typeSettings, 0, 0)
	for k := 0; k < len(pairs); k += 2 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(pairs[k]))
		dst = binary.BigEndian.AppendUint32(dst, pairs[k+1])
	}
	return dst
}

// appendGoAway appends a GOAWAY frame.
func appendGoAway(dst []byte, code uint32) []byte {
	dst = appendHead(dst, 8, typeGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	return binary.BigEndian.AppendUint32(dst, code)
}

// appendFields appends a header block in as many frames as it needs.
func appendFields(dst, block []byte, flags byte, id uint32) []byte {
	kind := byte(typeHeaders)
	for len(block) > frameMax {
		dst = append(appendHead(dst, frameMax, kind, flags, id), block[:frameMax]...)
		kind, flags, block = typeContinuation, 0, block[frameMax:]
	}
	return append(appendHead(dst, len(block), kind, flags|flagEndHeaders, id), block...)
}
