package tlsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
)

// Types of records (RFC 8446, section 5.1).
const (
	typeCipherSpec = 20
	typeAlert      = 21
	typeHandshake  = 22
	typeData       = 23
)

// Bounds of records, in bytes (RFC 8446, section 5).
const (
	headSize  = 5
	plainMax  = 1 << 14
	sealedMax = plainMax + 256
	recordMax = headSize + sealedMax
	tagSize   = 16 // of every suite
	addedSize = headSize + 1 + tagSize
)

// Alerts (RFC 8446, section 6).
const (
	alertCloseNotify       = 0
	alertUnexpectedMessage = 10
	alertBadRecordMAC      = 20
	alertRecordOverflow    = 22
	alertDecodeError       = 50
	alertProtocolVersion   = 70
	alertInternalError     = 80
	alertUserCanceled      = 90
)

// wrong returns an error of the peer's data, formatted as by crypto/tls.
func wrong(alert uint8) error {
	return &net.OpError{Op: "local error", Err: tls.AlertError(alert)}
}

// said returns the error for an alert from the peer.
func said(alert uint8) error {
	return &net.OpError{Op: "remote error", Err: tls.AlertError(alert)}
}

// objection returns the alert to send for a local error.
func objection(err error) (alert byte, ok bool) {
	var local *net.OpError
	var code tls.AlertError
	var head tls.RecordHeaderError
	switch {
	case errors.As(err, &local) && local.Op == "local error" && errors.As(err, &code):
		return byte(code), true
	case errors.As(err, &head) && head.RecordHeader[1] == 3 && head.RecordHeader[2] == 3:
		return alertRecordOverflow, true
	case errors.As(err, &head):
		return alertProtocolVersion, true
	case err == errUselessRecords || err == errUselessMessages:
		return alertUnexpectedMessage, true
	}
	return 0, false
}

// seal appends b as encrypted records, each as large as possible.
func (h *half) seal(dst, b []byte) []byte {
	for len(b) > plainMax {
		dst = h.record(dst, typeData, b[:plainMax])
		b = b[plainMax:]
	}
	return h.record(dst, typeData, b)
}

// record appends one encrypted record.
func (h *half) record(dst []byte, kind byte, b []byte) []byte {
	n := len(b) + 1 + tagSize
	from := len(dst)
	dst = slices.Grow(dst, headSize+n)
	dst = append(dst, typeData, 3, 3, byte(n>>8), byte(n))
	dst = append(append(dst, b...), kind)
	head, plain := dst[from:from+headSize], dst[from+headSize:]
	h.aead.Seal(plain[:0], h.number(), plain, head)
	return dst[:from+headSize+n]
}

// open decrypts a record in place and returns its real type. The checks and their order are those
// of crypto/tls.
func (h *half) open(record []byte) (plain []byte, kind byte, err error) {
	kind = record[0]
	sealed := record[headSize:]
	plain, err = h.aead.Open(sealed[:0], h.number(), sealed, record[:headSize])
	if err != nil {
		return nil, 0, wrong(alertBadRecordMAC)
	}
	if kind != typeData {
		return nil, 0, wrong(alertUnexpectedMessage)
	}
	if len(plain) > plainMax+1 {
		return nil, 0, wrong(alertRecordOverflow)
	}
	for i := len(plain) - 1; i >= 0; i-- {
		if plain[i] != 0 {
			return plain[:i], plain[i], nil
		}
	}
	if len(plain) > 0 {
		return nil, 0, wrong(alertUnexpectedMessage)
	}
	return plain, kind, nil
}

// size returns the length of the record that b begins with, from its head; 0: the head is
// incomplete.
func size(b []byte) (int, error) {
	if len(b) < headSize {
		return 0, nil
	}
	if b[1] != 3 || b[2] != 3 {
		return 0, badHead(b, fmt.Sprintf("received record with version %x when expecting version "+
			"%x", int(b[1])<<8|int(b[2]), tls.VersionTLS12))
	}
	n := int(b[3])<<8 | int(b[4])
	if n > sealedMax {
		return 0, badHead(b, fmt.Sprintf("oversized record received with length %d", n))
	}
	return headSize + n, nil
}

func badHead(b []byte, text string) error {
	return tls.RecordHeaderError{Msg: text, RecordHeader: [headSize]byte(b)}
}
