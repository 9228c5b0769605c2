package tlsconn

import (
	"errors"
	"io"
)

// Bounds against peers that send no data, as in crypto/tls.
const (
	uselessMax = 16      // consecutive records and messages without data
	messageMax = 1 << 16 // bytes of a handshake message
)

// Messages after the handshake (RFC 8446, section 4.6).
const (
	messageHead      = 4
	messageTicket    = 4
	messageKeyUpdate = 24
)

var (
	errUselessRecords  = errors.New("tls: too many ignored records")
	errUselessMessages = errors.New("tls: too many non-advancing records")
)

// reader decrypts the peer's records after the handshake. It decrypts records that come complete in
// place.
type reader struct {
	half
	part     []byte // of a record that is incomplete
	complete bool   // the record in part was complete and was returned
	stale    bool   // a request left after part began
	old      bool   // the last record returned was stale
	useless  int
	message  []byte // of a handshake message that is incomplete
	reply    bool   // a key update must be sent before the next request
	room     *rooms

	// tap is called with each record before the first one with data, and with the record's real
	// type.
	tap      func(record []byte, kind byte) error
	retained []byte
}

// rooms are reusable buffers for incomplete records.
type rooms struct{ free [][]byte }

func (r *rooms) take() []byte {
	n := len(r.free)
	if n == 0 {
		return make([]byte, 0, recordMax)
	}
	b := r.free[n-1]
	r.free = r.free[:n-1]
	return b
}

func (r *rooms) give(b []byte) { r.free = append(r.free, b[:0]) }

// next returns the data of the next record with data, and the rest of b. If data is empty, all of b
// is consumed and more must come. The data is in b or in the reader, and valid until the next call.
// io.EOF is the peer's orderly close.
func (r *reader) next(b []byte) (data, tail []byte, err error) {
	for {
		record, remainder, err := r.frame(b)
		if record == nil || err != nil {
			return nil, nil, err
		}
		b = remainder
		data, err := r.take(record)
		if err != nil || len(data) > 0 {
			return data, b, err
		}
	}
}

// partial reports whether a record is incomplete.
func (r *reader) partial() bool { return len(r.part) > 0 && !r.complete }

// drop resets the reader and releases its buffer.
func (r *reader) drop() {
	if r.part != nil {
		r.room.give(r.part)
	}
	*r = reader{room: r.room, retained: r.retained[:0]}
}

// frame cuts the next record from part and b, or keeps b as part.
func (r *reader) frame(b []byte) (record, tail []byte, err error) {
	if r.complete {
		r.room.give(r.part)
		r.part, r.complete = nil, false
	}
	if r.part == nil {
		r.old = false
		n, err := size(b)
		switch {
		case err != nil || len(b) == 0:
			return nil, nil, err
		case n > 0 && n <= len(b):
			return b[:n], b[n:], nil
		}
		r.part = append(r.room.take(), b...)
		return nil, nil, nil
	}
	if lacks := headSize - len(r.part); lacks > 0 {
		lacks = min(lacks, len(b))
		r.part, b = append(r.part, b[:lacks]...), b[lacks:]
	}
	n, err := size(r.part)
	if n == 0 {
		return nil, nil, err
	}
	lacks := min(n-len(r.part), len(b))
	r.part, b = append(r.part, b[:lacks]...), b[lacks:]
	if len(r.part) < n {
		return nil, nil, nil
	}
	r.complete, r.old, r.stale = true, r.stale, false
	return r.part, b, nil
}

// take processes a record and returns its data.
func (r *reader) take(record []byte) ([]byte, error) {
	plain, kind := record[headSize:], record[0]
	if r.tap != nil {
		r.retained = append(r.retained[:0], record...)
	}
	if kind != typeCipherSpec { // which is never encrypted (RFC 8446, section 5)
		var err error
		if plain, kind, err = r.open(record); err != nil {
			return nil, err
		}
	}
	switch {
	case len(plain) > plainMax:
		return nil, wrong(alertRecordOverflow)
	case len(r.message) > 0 && kind != typeHandshake:
		return nil, wrong(alertUnexpectedMessage)
	case kind == typeData && len(plain) > 0:
		r.useless, r.tap = 0, nil
		return plain, nil
	}
	if r.tap != nil {
		if err := r.tap(r.retained, kind); err != nil {
			return nil, err
		}
	}
	switch kind {
	case typeData:
		return nil, r.ignore()
	case typeCipherSpec:
		if len(plain) != 1 || plain[0] != 1 {
			return nil, wrong(alertDecodeError)
		}
		return nil, r.ignore()
	case typeAlert:
		return nil, r.alerted(plain)
	case typeHandshake:
		return nil, r.messages(plain)
	}
	return nil, wrong(alertUnexpectedMessage)
}

// ignore counts a record without data.
func (r *reader) ignore() error {
	if r.useless++; r.useless > uselessMax {
		return errUselessRecords
	}
	return nil
}

func (r *reader) alerted(b []byte) error {
	switch {
	case len(b) != 2:
		return wrong(alertUnexpectedMessage)
	case b[1] == alertCloseNotify:
		return io.EOF
	case b[1] == alertUserCanceled: // has no meaning in TLS 1.3, but is sent
		return r.ignore()
	}
	return said(b[1])
}

// messages processes handshake messages after the handshake. The tap handles tickets; here they
// only count.
func (r *reader) messages(b []byte) error {
	if len(b) == 0 {
		return wrong(alertUnexpectedMessage)
	}
	r.message = append(r.message, b...)
	for len(r.message) >= messageHead {
		m := r.message
		n := int(m[1])<<16 | int(m[2])<<8 | int(m[3])
		if n > messageMax {
			return wrong(alertInternalError)
		}
		if n += messageHead; len(m) < n {
			return nil
		}
		if m[0] == messageKeyUpdate {
			if n != messageHead+1 || m[messageHead] > 1 {
				return wrong(alertDecodeError)
			}
		} else if m[0] != messageTicket {
			return wrong(alertUnexpectedMessage)
		}
		if r.useless++; r.useless > uselessMax {
			return errUselessMessages
		}
		if m[0] == messageKeyUpdate {
			if len(m) > n { // the rest would have been encrypted with the old key
				return wrong(alertUnexpectedMessage)
			}
			r.reply = r.reply || m[messageHead] == 1
			if err := r.update(); err != nil {
				return err
			}
		}
		r.message = m[:copy(m, m[n:])]
	}
	return nil
}
